/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams against OpenSSL on the other end of a real connection: what a server's certificate may be (G16), what TLS may do (G17, G18), whose
 * name is served (G2, G6, G7), and that nothing that was cut looks complete (I9).
 */
#include "ends.h"

#include "gateway/ca.h"
#include "gateway/limits.h"
#include "gateway/roots.h"

#include "lib/loop/loop.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static struct ev_loop *loop;
static struct heard h;
static struct other o;
static struct stream *s;
static struct err err;
static struct ca *ca;
static SSL_CTX *client;
static uint8_t room[65536];

static struct view
text(const char *t)
{
	return view_str(t);
}

static int
set_up(void **state)
{
	static struct policy p;
	struct buf pem, jks;

	(void)state;
	loop = loop_new();
	p = (struct policy){.nrules = 2};
	p.rule[0] = (struct rule){
		.kind = RULE_KIND_FETCH, .tls = true, .host = text("allowed.test")};
	p.rule[1] = (struct rule){
		.kind = RULE_KIND_FETCH, .tls = true, .host = text("192.0.2.7"), .literal = true};
	buf_init(&pem, 65536);
	buf_init(&jks, 65536);
	ca = ca_new(&err);
	assert_non_null(ca);
	assert_int_equal(ca_certify(ca, &p, &pem, &jks, &err), 0);
	buf_done(&pem);
	buf_done(&jks);
	client = SSL_CTX_new(TLS_client_method());
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++)
		ends_step(loop, NULL);
	loop_free(loop);
	ca_free(ca);
	SSL_CTX_free(client);
	return 0;
}

static void
done(void)
{
	stream_close(s, true);
	other_done(&o);
	ends_step(loop, NULL);
}

/* ---- plain ---- */

static void
bytes_arrive_both_ways_and_an_end_is_an_end(void **state)
{
	int fd;

	(void)state;
	s = ends_stream(loop, &h, &fd);
	assert_int_equal(stream_read(s, room, sizeof(room)), -EAGAIN);
	assert_int_equal(stream_write(s, text("to you")), 6);
	assert_int_equal(write(fd, "to me", 5), 5);
	for (int i = 0; i < 5; i++)
		ends_step(loop, NULL);
	assert_int_equal(h.readable, 0); /* nobody wants it */
	stream_want_read(s, true);
	ends_run(loop, NULL, h.readable > 0);
	assert_int_equal(stream_read(s, room, sizeof(room)), 5);
	assert_memory_equal(room, "to me", 5);
	assert_int_equal(read(fd, room, sizeof(room)), 6);
	assert_memory_equal(room, "to you", 6);
	h.readable = 0;
	assert_int_equal(shutdown(fd, SHUT_WR), 0);
	ends_run(loop, NULL, h.readable > 0);
	assert_int_equal(stream_read(s, room, sizeof(room)), 0);
	assert_int_equal(stream_read(s, room, sizeof(room)), 0);
	h.readable = 0;
	for (int i = 0; i < 5; i++)
		ends_step(loop, NULL);
	assert_int_equal(h.readable, 0); /* an end is told once */
	assert_int_equal(h.failed, 0);
	stream_close(s, true);
	assert_int_equal(read(fd, room, 1), -1);
	assert_int_equal(errno, ECONNRESET);
	(void)close(fd);
}

static void
what_was_read_before_is_read_again_first(void **state)
{
	int fd;

	(void)state;
	s = ends_stream(loop, &h, &fd);
	assert_int_equal(write(fd, "three", 5), 5);
	assert_int_equal(stream_unread(s, text("two"), &err), 0);
	assert_int_equal(stream_unread(s, text("one"), &err), 0);
	assert_int_equal(stream_fd(s), -1);
	stream_want_read(s, true);
	ends_run(loop, NULL, h.readable > 0);
	assert_int_equal(stream_read(s, room, 4), 4);
	assert_memory_equal(room, "onet", 4);
	h.readable = 0;
	ends_run(loop, NULL, h.readable > 0);
	assert_int_equal(stream_read(s, room, 100), 2);
	assert_memory_equal(room, "wo", 2);
	assert_true(stream_fd(s) >= 0);
	ends_run(loop, NULL, stream_read(s, room, 100) == 5);
	assert_memory_equal(room, "three", 5);
	assert_int_equal(stream_unread(s, view_of(room, sizeof(room)), &err), 0);
	assert_int_equal(stream_unread(s, text("x"), &err), -ENOBUFS);
	stream_close(s, true);
	(void)close(fd);
}

static void
a_full_peer_is_waited_for(void **state)
{
	size_t sent = 0, got = 0;
	ssize_t r;
	int fd;

	(void)state;
	s = ends_stream(loop, &h, &fd);
	while ((r = stream_write(s, view_of(room, sizeof(room)))) > 0)
		sent += (size_t)r;
	assert_int_equal(r, -EAGAIN);
	stream_want_write(s, true);
	for (int i = 0; i < 5; i++)
		ends_step(loop, NULL);
	assert_int_equal(h.writable, 0);
	while (got < sent) {
		r = read(fd, room, sizeof(room));
		got += r > 0 ? (size_t)r : 0;
		ends_step(loop, NULL);
	}
	assert_int_equal(got, sent);
	ends_run(loop, NULL, h.writable > 0);
	assert_true(h.writable > 0);
	stream_close(s, false);
	(void)close(fd);
	ends_step(loop, NULL);
}

static void
a_reset_is_a_failure_told_once(void **state)
{
	const struct linger now = {.l_onoff = 1};
	int fd;

	(void)state;
	s = ends_stream(loop, &h, &fd);
	stream_want_read(s, true);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)), 0);
	(void)close(fd);
	ends_run(loop, NULL, h.readable > 0);
	assert_int_equal(stream_read(s, room, 1), -ECONNRESET);
	assert_int_equal(h.failed, 0); /* not from within the call */
	for (int i = 0; i < 5; i++)
		ends_step(loop, NULL);
	assert_int_equal(h.failed, 1);
	assert_int_equal(h.why.code, -ECONNRESET);
	assert_int_equal(stream_state(s), STREAM_FAILED);
	assert_int_equal(stream_write(s, text("x")), -ECONNRESET);
	stream_close(s, false);
}

/* The last words arrive although the peer still sends, and it is not waited for for ever. */
static void
a_close_does_not_overtake_the_last_words(void **state)
{
	size_t more = 0;
	ssize_t r;
	int fd;

	(void)state;
	s = ends_stream(loop, &h, &fd);
	assert_int_equal(write(fd, room, 1000), 1000);
	assert_int_equal(stream_write(s, text("refused")), 7);
	stream_close(s, false);
	for (int i = 0; i < 5; i++) {
		ends_step(loop, NULL);
		assert_int_equal(write(fd, room, 1000), 1000);
	}
	assert_int_equal(read(fd, room, sizeof(room)), 7);
	assert_int_equal(read(fd, room, sizeof(room)), 0);
	do {
		r = send(fd, room, sizeof(room), MSG_NOSIGNAL | MSG_DONTWAIT);
		if (r < 0 && errno == EAGAIN)
			r = 1;
		more += r > 0 ? (size_t)r : 0;
		ends_step(loop, NULL);
	} while (r > 0 && more < 2 * LIMIT_LINGER_BYTES);
	assert_true(more >= LIMIT_LINGER_BYTES / 2 && more < 2 * LIMIT_LINGER_BYTES);
	(void)close(fd);
}

static void
an_idle_peer_is_stale_when_it_says_anything(void **state)
{
	int fd;

	(void)state;
	s = ends_stream(loop, &h, &fd);
	assert_false(stream_stale(s));
	assert_int_equal(write(fd, "x", 1), 1);
	ends_run(loop, NULL, stream_stale(s));
	assert_true(stream_stale(s));
	stream_close(s, true);
	(void)close(fd);
	s = ends_stream(loop, &h, &fd);
	(void)close(fd);
	ends_run(loop, NULL, stream_stale(s));
	assert_true(stream_stale(s));
	stream_close(s, true);
}

/* ---- as server ---- */

static void
serve(const char *name, const char *said)
{
	int fd;

	s = ends_stream(loop, &h, &fd);
	other_begin(&o, client, fd, false, said);
	assert_int_equal(stream_serve_tls(s, ca, text(name), &err), 0);
	assert_int_equal(stream_read(s, room, 1), -EAGAIN);
	assert_int_equal(stream_write(s, text("x")), -EAGAIN);
	ends_run(loop, &o, (o.shaken && h.shaken) || (o.broken && h.failed));
}

static void
G1_a_program_is_served_in_the_name_that_it_meant(void **state)
{
	X509 *cert;

	(void)state;
	serve("allowed.test", "allowed.test");
	assert_true(o.shaken && h.shaken == 1);
	cert = SSL_get0_peer_certificate(o.ssl);
	assert_int_equal(X509_check_host(cert, "allowed.test", 0, 0, NULL), 1);
	assert_int_not_equal(X509_check_host(cert, "other.test", 0, 0, NULL), 1);
	stream_want_read(s, true);
	assert_int_equal(SSL_write(o.ssl, "question", 8), 8);
	ends_run(loop, &o, h.readable > 0);
	assert_int_equal(stream_read(s, room, 3), 3);
	h.readable = 0;
	ends_run(loop, &o, h.readable > 0); /* of what no socket tells any more */
	assert_int_equal(stream_read(s, room, 100), 5);
	assert_memory_equal(room, "stion", 5);
	assert_int_equal(stream_read(s, room, 100), -EAGAIN);
	assert_int_equal(stream_write(s, text("answer")), 6);
	ends_run(loop, &o, o.n == 6);
	assert_memory_equal(o.got, "answer", 6);
	assert_int_equal(stream_fd(s), -1);
	stream_shut(s);
	ends_run(loop, &o, o.ended);
	assert_true(o.ended);
	done();
}

/* How long its first words take, of a program that leaves it to the kernel (Nagle) when small ones are sent. */
static double
first_words_ms(void)
{
	double before;

	serve("allowed.test", "allowed.test");
	assert_true(o.shaken && h.shaken == 1);
	stream_want_read(s, true);
	before = ev_time();
	assert_int_equal(SSL_write(o.ssl, "question", 8), 8);
	ends_run(loop, &o, h.readable > 0);
	before = ev_time() - before;
	done();
	return before * 1e3;
}

static void
the_first_words_do_not_wait_for_an_acknowledgement(void **state)
{
	double best = 1e3;

	(void)state;
	for (int i = 0; i < 5; i++) {
		double ms = first_words_ms();

		best = ms < best ? ms : best;
	}
	assert_true(best < 20); /* Linux waits 40 ms before it acknowledges by itself */
}

static void
G2_another_server_name_is_not_served(void **state)
{
	static const char *const said[] = {
		"evil.test", "sub.allowed.test", "allowed.tes", "192.0.2.7"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(said); i++) {
		serve("allowed.test", said[i]);
		assert_false(o.shaken);
		assert_int_equal(h.shaken, 0);
		assert_int_equal(h.failed, 1);
		ends_run(loop, &o, o.broken);
		assert_int_equal(o.alert, SSL_AD_UNRECOGNIZED_NAME);
		done();
	}
}

static void
G6_no_server_name_only_for_an_address(void **state)
{
	(void)state;
	serve("allowed.test", NULL);
	assert_false(o.shaken);
	assert_int_equal(h.failed, 1);
	done();
	serve("192.0.2.7", NULL);
	assert_true(o.shaken);
	assert_int_equal(X509_check_ip_asc(SSL_get0_peer_certificate(o.ssl), "192.0.2.7", 0), 1);
	done();
	serve("192.0.2.7", "192.0.2.7");
	assert_false(o.shaken);
	done();
}

static void
G7_the_case_of_a_server_name_is_no_matter(void **state)
{
	(void)state;
	serve("allowed.test", "ALLOWED.Test");
	assert_true(o.shaken && h.shaken == 1);
	done();
	serve("allowed.test", "allowed.test.");
	assert_false(o.shaken);
	done();
}

static void
G9_a_hello_that_was_read_before_begins_the_handshake(void **state)
{
	size_t n = 0;
	int fd;

	(void)state;
	s = ends_stream(loop, &h, &fd);
	other_begin(&o, client, fd, false, "allowed.test");
	assert_int_equal(SSL_do_handshake(o.ssl), -1);
	stream_want_read(s, true);
	ends_run(loop, NULL, h.readable > 0);
	n = (size_t)stream_read(s, room, sizeof(room));
	assert_true(n > 100 && n < 17000);
	stream_want_read(s, false);
	assert_int_equal(stream_unread(s, view_of(room, n), &err), 0);
	assert_int_equal(stream_serve_tls(s, ca, text("allowed.test"), &err), 0);
	assert_int_equal(h.shaken, 0); /* only from the loop */
	ends_run(loop, &o, o.shaken && h.shaken);
	assert_true(o.shaken && h.shaken == 1);
	assert_int_equal(stream_unread(s, text("inside"), &err), 0);
	assert_int_equal(SSL_write(o.ssl, " TLS", 4), 4);
	stream_want_read(s, true);
	h.readable = 0;
	ends_run(loop, &o, h.readable > 0);
	assert_int_equal(stream_read(s, room, 100), 6);
	ends_run(loop, &o, stream_read(s, room, 100) == 4);
	assert_memory_equal(room, " TLS", 4);
	done();
}

static void
G21_a_program_that_rejects_our_certificate_is_told_apart(void **state)
{
	(void)state;
	SSL_CTX_set_verify(client, SSL_VERIFY_PEER, NULL);
	serve("allowed.test", "allowed.test");
	assert_true(o.broken);
	ends_run(loop, &o, h.failed);
	assert_int_equal(h.failed, 1);
	assert_int_equal(h.why.code, -ECONNABORTED);
	done();
	SSL_CTX_set_max_proto_version(client, TLS1_2_VERSION);
	serve("allowed.test", "allowed.test");
	ends_run(loop, &o, h.failed);
	assert_int_equal(h.why.code, -ECONNABORTED);
	done();
}

static void
G17_old_versions_and_ciphers_without_certificates_are_refused(void **state)
{
	(void)state;
	SSL_CTX_set_security_level(client, 0);
	(void)SSL_CTX_set_min_proto_version(client, TLS1_VERSION);
	(void)SSL_CTX_set_max_proto_version(client, TLS1_1_VERSION);
	serve("allowed.test", "allowed.test");
	assert_false(o.shaken);
	assert_int_equal(h.failed, 1);
	assert_int_equal(h.why.code, -EPROTO);
	done();
	(void)SSL_CTX_set_max_proto_version(client, TLS1_2_VERSION);
	assert_int_equal(SSL_CTX_set_cipher_list(client, "aNULL"), 1);
	serve("allowed.test", "allowed.test");
	assert_false(o.shaken);
	done();
}

static void
G17_renegotiation_by_a_program_is_refused(void **state)
{
	(void)state;
	(void)SSL_CTX_set_max_proto_version(client, TLS1_2_VERSION);
	serve("allowed.test", "allowed.test");
	assert_true(o.shaken);
	stream_want_read(s, true);
	assert_int_equal(SSL_renegotiate(o.ssl), 1);
	(void)SSL_do_handshake(o.ssl);
	h.readable = 0;
	ends_run(loop, &o, h.readable > 0);
	(void)stream_read(s, room, sizeof(room));
	ends_run(loop, &o, o.broken);
	assert_int_equal(o.alert, SSL_AD_NO_RENEGOTIATION);
	done();
}

static SSL_SESSION *kept;

static int
keep(SSL *ssl, SSL_SESSION *session)
{
	(void)ssl;
	SSL_SESSION_free(kept);
	kept = session;
	return 1;
}

static void
resume(int version)
{
	SSL_CTX_set_session_cache_mode(client, SSL_SESS_CACHE_CLIENT);
	SSL_CTX_sess_set_new_cb(client, keep);
	(void)SSL_CTX_set_max_proto_version(client, version);
	serve("allowed.test", "allowed.test");
	assert_true(o.shaken);
	assert_int_equal(stream_write(s, text("x")), 1); /* tickets would have come before it */
	ends_run(loop, &o, o.n == 1);
	if (kept == NULL)
		kept = SSL_get1_session(o.ssl);
	done();
}

/* Each is one record, and after it others have their turn: who sends them without end has not the process. */
static void
L9_keys_that_are_changed_without_end_hold_nobody_up(void **state)
{
	enum { MANY = 200 };
	int turns = 0;

	(void)state;
	serve("allowed.test", "allowed.test");
	for (int i = 0; i < MANY; i++) {
		assert_int_equal(SSL_key_update(o.ssl, SSL_KEY_UPDATE_NOT_REQUESTED), 1);
		assert_int_equal(SSL_do_handshake(o.ssl), 1);
	}
	assert_int_equal(SSL_write(o.ssl, "x", 1), 1);
	stream_want_read(s, true);
	do {
		h.readable = 0;
		ends_run(loop, NULL, h.readable > 0);
		turns++;
	} while (stream_read(s, room, sizeof(room)) == -EAGAIN && turns < 2 * MANY);
	assert_int_equal(room[0], 'x');
	assert_in_range(turns, MANY, MANY + 1);
	assert_int_equal(h.failed, 0);
	done();
}

static void
G18_no_session_is_taken_up_again(void **state)
{
	int fd;

	(void)state;
	for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
		resume(version);
		assert_false(SSL_SESSION_has_ticket(kept));
		s = ends_stream(loop, &h, &fd);
		other_begin(&o, client, fd, false, "allowed.test");
		assert_int_equal(SSL_set_session(o.ssl, kept), 1);
		assert_int_equal(stream_serve_tls(s, ca, text("allowed.test"), &err), 0);
		ends_run(loop, &o, o.shaken && h.shaken);
		assert_true(o.shaken);
		assert_false(SSL_session_reused(o.ssl));
		done();
		SSL_SESSION_free(kept);
		kept = NULL;
	}
}

static void
only_HTTP_1_1_is_spoken(void **state)
{
	static const uint8_t both[] = "\x02h2\x08http/1.1", two[] = "\x02h2";
	const unsigned char *chosen;
	unsigned n;

	(void)state;
	(void)SSL_CTX_set_alpn_protos(client, both, sizeof(both) - 1);
	serve("allowed.test", "allowed.test");
	assert_true(o.shaken);
	SSL_get0_alpn_selected(o.ssl, &chosen, &n);
	assert_int_equal(n, 8);
	assert_memory_equal(chosen, "http/1.1", 8);
	done();
	(void)SSL_CTX_set_alpn_protos(client, two, sizeof(two) - 1);
	serve("allowed.test", "allowed.test");
	assert_false(o.shaken);
	assert_int_equal(o.alert, SSL_AD_NO_APPLICATION_PROTOCOL);
	done();
}

static void
I9_a_cut_connection_is_no_end(void **state)
{
	(void)state;
	for (int clean = 0; clean < 2; clean++) {
		serve("allowed.test", "allowed.test");
		stream_want_read(s, true);
		assert_int_equal(SSL_write(o.ssl, "half", 4), 4);
		if (clean == 1)
			(void)SSL_shutdown(o.ssl);
		(void)shutdown(SSL_get_fd(o.ssl), SHUT_WR);
		ends_run(loop, &o, h.readable > 0);
		assert_int_equal(stream_read(s, room, 100), 4);
		h.readable = 0;
		ends_run(loop, &o, h.readable > 0);
		assert_int_equal(stream_read(s, room, 100), clean == 1 ? 0 : -ECONNRESET);
		ends_run(loop, &o, h.failed);
		assert_int_equal(h.failed, clean == 1 ? 0 : 1);
		done();
	}
}

static void
I9_an_aborted_stream_never_ends_cleanly(void **state)
{
	(void)state;
	serve("allowed.test", "allowed.test");
	assert_int_equal(stream_write(s, text("half")), 4);
	ends_run(loop, &o, o.n == 4);
	stream_close(s, true);
	ends_run(loop, &o, o.broken || o.ended);
	assert_true(o.broken && !o.ended);
	other_done(&o);
}

static void
garbage_in_place_of_records_fails(void **state)
{
	int fd;

	(void)state;
	serve("allowed.test", "allowed.test");
	stream_want_read(s, true);
	fd = SSL_get_fd(o.ssl);
	memset(room, 0x17, 64);
	assert_int_equal(write(fd, room, 64), 64);
	ends_run(loop, &o, h.readable > 0);
	assert_true(stream_read(s, room, 100) < 0);
	ends_run(loop, &o, h.failed);
	assert_int_equal(h.why.code, -EPROTO);
	done();
}

/* What the socket does not take waits here; then other bytes than those may come, and all arrive in order. */
static void
a_full_peer_in_TLS_is_waited_for(void **state)
{
	static uint8_t all[8 << 20];
	size_t sent = 0, got = 0;
	ssize_t r = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(all); i++)
		all[i] = (uint8_t)(i * 7 + i / 251);
	serve("allowed.test", "allowed.test");
	stream_want_write(s, true);
	while (got < sizeof(all)) {
		size_t n = sizeof(all) - sent;

		while (n > 0 &&
			(r = stream_write(
				 s, view_of(all + sent, n > 20000 ? 20000 - sent % 7 : n))) > 0) {
			sent += (size_t)r;
			n = sizeof(all) - sent;
		}
		assert_true(sent == sizeof(all) || r == -EAGAIN);
		(void)ev_run(loop, EVRUN_NOWAIT);
		r = SSL_read(o.ssl, room, (int)(1 + got % sizeof(room)));
		if (r > 0) {
			assert_memory_equal(room, all + got, (size_t)r);
			got += (size_t)r;
		}
		ERR_clear_error();
	}
	assert_true(h.writable > 0);
	stream_close(s, false);
	ends_run(loop, &o, o.ended);
	assert_true(o.ended && !o.broken);
	other_done(&o);
}

/* A close right after the last bytes were taken does not lose them, although the peer has not read for long. */
static void
a_close_waits_for_what_was_taken(void **state)
{
	size_t sent = 0, got = 0;
	ssize_t r;

	(void)state;
	serve("allowed.test", "allowed.test");
	while ((r = stream_write(s, view_of(room, sizeof(room)))) > 0)
		sent += (size_t)r;
	stream_close(s, false);
	for (int i = 0; i < 10000 && !o.ended; i++) {
		r = SSL_read(o.ssl, room, sizeof(room));
		got += r > 0 ? (size_t)r : 0;
		o.ended = r <= 0 && SSL_get_error(o.ssl, (int)r) == SSL_ERROR_ZERO_RETURN;
		ERR_clear_error();
		(void)ev_run(loop, EVRUN_NOWAIT);
	}
	assert_true(o.ended);
	assert_int_equal(got, sent);
	other_done(&o);
}

/* ---- as client ---- */

static void
reach(SSL_CTX *server, const char *name, const char *pinned)
{
	struct roots *roots = roots_new();
	int fd;

	assert_int_equal(roots_add(roots, pinned, wanted_roots(), &err), 0);
	s = ends_stream(loop, &h, &fd);
	other_begin(&o, server, fd, true, NULL);
	assert_int_equal(stream_connect_tls(s, roots, text(name), text(pinned), &err), 0);
	ends_run(loop, &o, (o.shaken && h.shaken) || h.failed);
	roots_free(roots);
}

static void
G16_row(const char *name, const struct wanted *w, bool good)
{
	SSL_CTX *server = wanted_server(w);

	reach(server, name, "");
	assert_int_equal(h.shaken, good ? 1 : 0);
	assert_int_equal(h.failed, good ? 0 : 1);
	if (!good)
		assert_int_equal(h.why.code, -EKEYREJECTED);
	done();
	SSL_CTX_free(server);
}

static void
G16_a_good_certificate_is_accepted(void **state)
{
	(void)state;
	G16_row("allowed.test", &(struct wanted){.dns = {"allowed.test"}}, true);
	G16_row("allowed.test", &(struct wanted){.dns = {"x.test", "allowed.test"}}, true);
	G16_row("a.allowed.test", &(struct wanted){.dns = {"*.allowed.test"}}, true);
}

static void
G16_wrong_name(void **state)
{
	(void)state;
	G16_row("allowed.test", &(struct wanted){.dns = {"evil.test"}}, false);
	G16_row("allowed.test", &(struct wanted){.dns = {"sub.allowed.test"}}, false);
	G16_row("sub.allowed.test", &(struct wanted){.dns = {"allowed.test"}}, false);
	G16_row("a.b.allowed.test", &(struct wanted){.dns = {"*.allowed.test"}}, false);
}

static void
G16_expired_and_not_yet_valid(void **state)
{
	(void)state;
	G16_row("allowed.test",
		&(struct wanted){.dns = {"allowed.test"}, .from_s = -7200, .to_s = -60}, false);
	G16_row("allowed.test",
		&(struct wanted){.dns = {"allowed.test"}, .from_s = 60, .to_s = 7200}, false);
}

static void
G16_self_signed_and_signed_by_a_stranger(void **state)
{
	(void)state;
	G16_row("allowed.test", &(struct wanted){.dns = {"allowed.test"}, .self_signed = true},
		false);
	G16_row("allowed.test", &(struct wanted){.dns = {"allowed.test"}, .by_stranger = true},
		false);
}

static void
G16_wildcards_too_wide_or_partial(void **state)
{
	(void)state;
	G16_row("allowed.test", &(struct wanted){.dns = {"*.test"}}, false);
	G16_row("allowed.test", &(struct wanted){.dns = {"*"}}, false);
	G16_row("a1.allowed.test", &(struct wanted){.dns = {"a*.allowed.test"}}, false);
	G16_row("1a.allowed.test", &(struct wanted){.dns = {"*a.allowed.test"}}, false);
	G16_row("a.allowed.test", &(struct wanted){.dns = {"*.*.test"}}, false);
}

static void
G16_only_a_common_name(void **state)
{
	(void)state;
	G16_row("allowed.test", &(struct wanted){.common = "allowed.test"}, false);
}

static void
G16_only_an_address(void **state)
{
	(void)state;
	G16_row("allowed.test", &(struct wanted){.common = "allowed.test", .address = "192.0.2.7"},
		false);
	G16_row("192.0.2.7", &(struct wanted){.address = "192.0.2.7"}, true);
	G16_row("192.0.2.8", &(struct wanted){.address = "192.0.2.7"}, false);
	G16_row("192.0.2.7", &(struct wanted){.dns = {"192.0.2.7"}}, false);
	G16_row("2001:db8::7", &(struct wanted){.address = "2001:db8::7"}, true);
}

static void
G16_a_name_with_a_NUL(void **state)
{
	(void)state;
	G16_row("allowed.test", &(struct wanted){.dns = {"allowed.test\0.evil.test"}, .dns_n = 23},
		false);
}

static void
G16_a_certificate_for_clients(void **state)
{
	(void)state;
	G16_row("allowed.test", &(struct wanted){.dns = {"allowed.test"}, .client_only = true},
		false);
}

static const struct wanted fine = {.dns = {"allowed.test"}};

static void
the_server_hears_the_same_name_and_only_HTTP_1_1(void **state)
{
	SSL_CTX *server = wanted_server(&fine);

	(void)state;
	reach(server, "allowed.test", "pinned");
	assert_int_equal(h.shaken, 1);
	assert_string_equal(SSL_get_servername(o.ssl, TLSEXT_NAMETYPE_host_name), "allowed.test");
	assert_int_equal(stream_write(s, text("GET")), 3);
	ends_run(loop, &o, o.n == 3);
	assert_memory_equal(o.got, "GET", 3);
	assert_false(stream_stale(s)); /* tickets are no bytes */
	assert_int_equal(SSL_write(o.ssl, "x", 1), 1);
	ends_run(loop, &o, stream_stale(s));
	assert_true(stream_stale(s));
	done();
	reach(server, "allowed.test", "");
	(void)SSL_shutdown(o.ssl);
	ends_run(loop, &o, stream_stale(s));
	assert_true(stream_stale(s));
	done();
	SSL_CTX_free(server);
}

static void
G17_servers_of_old_TLS_or_without_certificates_are_refused(void **state)
{
	SSL_CTX *server = wanted_server(&fine);

	(void)state;
	SSL_CTX_set_security_level(server, 0);
	(void)SSL_CTX_set_min_proto_version(server, TLS1_VERSION);
	(void)SSL_CTX_set_max_proto_version(server, TLS1_1_VERSION);
	reach(server, "allowed.test", "");
	assert_int_equal(h.failed, 1);
	assert_int_equal(h.why.code, -EPROTO);
	done();
	(void)SSL_CTX_set_max_proto_version(server, TLS1_2_VERSION);
	assert_int_equal(SSL_CTX_set_cipher_list(server, "aNULL:NULL"), 1);
	reach(server, "allowed.test", "");
	assert_int_equal(h.failed, 1);
	done();
	SSL_CTX_free(server);
}

static void
G17_renegotiation_by_a_server_is_refused(void **state)
{
	SSL_CTX *server = wanted_server(&fine);

	(void)state;
	(void)SSL_CTX_set_max_proto_version(server, TLS1_2_VERSION);
	reach(server, "allowed.test", "");
	assert_int_equal(h.shaken, 1);
	stream_want_read(s, true);
	assert_int_equal(SSL_renegotiate(o.ssl), 1);
	(void)SSL_do_handshake(o.ssl);
	h.readable = 0;
	ends_run(loop, &o, h.readable > 0);
	(void)stream_read(s, room, sizeof(room));
	ends_run(loop, &o, o.alert != 0);
	assert_int_equal(o.alert, SSL_AD_NO_RENEGOTIATION);
	done();
	SSL_CTX_free(server);
}

static void
G17_a_server_that_asks_for_a_certificate_gets_none(void **state)
{
	SSL_CTX *server = wanted_server(&fine);

	(void)state;
	SSL_CTX_set_verify(server, SSL_VERIFY_PEER, NULL);
	reach(server, "allowed.test", "");
	assert_true(h.shaken == 1 && o.shaken);
	assert_null(SSL_get0_peer_certificate(o.ssl));
	done();
	SSL_CTX_set_verify(server, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	reach(server, "allowed.test", "");
	assert_false(o.shaken);
	done();
	SSL_CTX_free(server);
}

static void
I9_an_answer_that_is_cut_is_no_end(void **state)
{
	SSL_CTX *server = wanted_server(&fine);

	(void)state;
	reach(server, "allowed.test", "");
	stream_want_read(s, true);
	assert_int_equal(SSL_write(o.ssl, "HTTP/1.1 200 OK", 15), 15);
	(void)shutdown(SSL_get_fd(o.ssl), SHUT_WR);
	h.readable = 0;
	ends_run(loop, &o, stream_read(s, room, 100) == 15);
	h.readable = 0;
	ends_run(loop, &o, h.readable > 0);
	assert_int_equal(stream_read(s, room, 100), -ECONNRESET);
	done();
	SSL_CTX_free(server);
}

static void
a_server_that_hangs_up_in_the_handshake_is_no_server(void **state)
{
	struct roots *roots = roots_new();
	int fd;

	(void)state;
	assert_int_equal(roots_add(roots, "", wanted_roots(), &err), 0);
	s = ends_stream(loop, &h, &fd);
	assert_int_equal(stream_connect_tls(s, roots, text("allowed.test"), text(""), &err), 0);
	(void)shutdown(fd, SHUT_WR);
	ends_run(loop, NULL, h.failed);
	assert_int_equal(h.failed, 1);
	assert_int_equal(h.why.code, -ECONNRESET);
	stream_close(s, true);
	(void)close(fd);
	s = ends_stream(loop, &h, &fd);
	assert_int_equal(
		stream_connect_tls(s, roots, text("allowed.test"), text("other"), &err), -ENOENT);
	assert_int_equal(stream_connect_tls(s, roots, text("not a name"), text(""), &err), -EINVAL);
	assert_int_equal(stream_connect_tls(s, roots, text("allowed.test"), text(""), &err), 0);
	assert_int_equal(write(fd, "HTTP/1.1 400 Bad Request\r\n\r\n", 28), 28);
	ends_run(loop, NULL, h.failed);
	assert_int_equal(h.why.code, -EPROTO);
	stream_close(s, true);
	(void)close(fd);
	roots_free(roots);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(bytes_arrive_both_ways_and_an_end_is_an_end),
		TEST(what_was_read_before_is_read_again_first),
		TEST(a_full_peer_is_waited_for),
		TEST(a_reset_is_a_failure_told_once),
		TEST(a_close_does_not_overtake_the_last_words),
		TEST(an_idle_peer_is_stale_when_it_says_anything),
		TEST(G1_a_program_is_served_in_the_name_that_it_meant),
		TEST(the_first_words_do_not_wait_for_an_acknowledgement),
		TEST(G2_another_server_name_is_not_served),
		TEST(G6_no_server_name_only_for_an_address),
		TEST(G7_the_case_of_a_server_name_is_no_matter),
		TEST(G9_a_hello_that_was_read_before_begins_the_handshake),
		TEST(G21_a_program_that_rejects_our_certificate_is_told_apart),
		TEST(G17_old_versions_and_ciphers_without_certificates_are_refused),
		TEST(G17_renegotiation_by_a_program_is_refused),
		TEST(L9_keys_that_are_changed_without_end_hold_nobody_up),
		TEST(G18_no_session_is_taken_up_again),
		TEST(only_HTTP_1_1_is_spoken),
		TEST(I9_a_cut_connection_is_no_end),
		TEST(I9_an_aborted_stream_never_ends_cleanly),
		TEST(garbage_in_place_of_records_fails),
		TEST(a_full_peer_in_TLS_is_waited_for),
		TEST(a_close_waits_for_what_was_taken),
		TEST(G16_a_good_certificate_is_accepted),
		TEST(G16_wrong_name),
		TEST(G16_expired_and_not_yet_valid),
		TEST(G16_self_signed_and_signed_by_a_stranger),
		TEST(G16_wildcards_too_wide_or_partial),
		TEST(G16_only_a_common_name),
		TEST(G16_only_an_address),
		TEST(G16_a_name_with_a_NUL),
		TEST(G16_a_certificate_for_clients),
		TEST(the_server_hears_the_same_name_and_only_HTTP_1_1),
		TEST(G17_servers_of_old_TLS_or_without_certificates_are_refused),
		TEST(G17_renegotiation_by_a_server_is_refused),
		TEST(G17_a_server_that_asks_for_a_certificate_gets_none),
		TEST(I9_an_answer_that_is_cut_is_no_end),
		TEST(a_server_that_hangs_up_in_the_handshake_is_no_server),
	};

	(void)signal(SIGPIPE, SIG_IGN);
	(void)OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
