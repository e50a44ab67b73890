/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tunnels between real connections: every byte arrives once, in order and counted, in the kernel or through memory; a slow side holds the other
 * one back; a half that ends is told; what was stopped, cut or too late is a reset on both sides.
 */
#include "ends.h"

#include "gateway/ca.h"
#include "gateway/tunnel.h"

#include "lib/base/clock.h"
#include "lib/loop/loop.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static struct ev_loop *loop;
static struct heard h;
static struct err err;
static uint8_t room[1 << 20], data[4 << 20];

static struct played {
	uint64_t moved[2];
	uint64_t room[2]; /* that it may move; above it `answer` */
	enum tunnel_may answer;
	int asked, done;
	enum tunnel_end end;
} owner;
static struct tunnel *tunnel;
static int program, server; /* the far ends */

static enum tunnel_may
pass(void *o, enum tunnel_way way, size_t n)
{
	(void)o;
	owner.asked++;
	if (owner.moved[way] + n > owner.room[way])
		return owner.answer;
	owner.moved[way] += n;
	return TUNNEL_PASS;
}

static void
done(void *o, enum tunnel_end end, const char *text)
{
	(void)o;
	assert_true(text[0] != '\0');
	owner.done++;
	owner.end = end;
}

static const struct tunnel_events events = {pass, done};

static void
begin(uint64_t idle_ms, uint64_t life_ms)
{
	struct stream *a = ends_stream(loop, &h, &program), *b = ends_stream(loop, &h, &server);

	owner = (struct played){.room = {UINT64_MAX, UINT64_MAX}};
	tunnel = tunnel_new(loop, a, b, &(struct tunnel_limits){idle_ms, life_ms}, &events, NULL);
	assert_non_null(tunnel);
}

static int
set_up(void **state)
{
	(void)state;
	loop = loop_new();
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 11 + i / 257);
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	(void)close(program);
	(void)close(server);
	for (int i = 0; i < 5; i++)
		ends_step(loop, NULL);
	loop_free(loop);
	return 0;
}

/* All of `data` from one far end to the other. */
static void
carry(int from, int to, size_t chunk)
{
	size_t sent = 0, got = 0;

	for (int idle = 0; got < sizeof(data) && idle < 20000; idle++) {
		size_t n = sizeof(data) - sent < chunk ? sizeof(data) - sent : chunk;
		ssize_t r = n == 0 ? 0 : send(from, data + sent, n, MSG_NOSIGNAL);

		sent += r > 0 ? (size_t)r : 0;
		(void)ev_run(loop, EVRUN_NOWAIT);
		r = recv(to, room, chunk / 2 + 1, 0);
		if (r <= 0)
			continue;
		assert_memory_equal(room, data + got, (size_t)r);
		got += (size_t)r;
		idle = 0;
	}
	assert_int_equal(got, sizeof(data));
}

static size_t
descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	size_t n = 0;

	if (d == NULL)
		return SIZE_MAX;
	while (readdir(d) != NULL)
		n++;
	(void)closedir(d);
	return n;
}

static void
every_byte_arrives_once_and_is_counted(void **state)
{
	size_t before;

	(void)state;
	begin(0, 0);
	before = descriptors();
	carry(program, server, 100000);
	carry(server, program, 300000);
	assert_int_equal(owner.moved[TUNNEL_OUT], sizeof(data));
	assert_int_equal(owner.moved[TUNNEL_IN], sizeof(data));
	assert_true(descriptors() <= before + 8); /* spare pipes, of the process */
	tunnel_abort(tunnel);
}

/* No pipe can be had: bytes go through memory. */
static void
without_pipes_bytes_are_copied(void **state)
{
	struct rlimit was, now;
	size_t before;

	(void)state;
	begin(0, 0);
	before = descriptors();
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	now = was;
	now.rlim_cur = 3;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &now), 0);
	carry(program, server, 100000);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	assert_int_equal(descriptors(), before);
	assert_int_equal(owner.moved[TUNNEL_OUT], sizeof(data));
	tunnel_abort(tunnel);
}

static void
what_was_read_before_goes_first(void **state)
{
	struct stream *a = ends_stream(loop, &h, &program), *b = ends_stream(loop, &h, &server);

	(void)state;
	owner = (struct played){.room = {UINT64_MAX, UINT64_MAX}};
	assert_int_equal(stream_unread(a, view_str("hello "), &err), 0);
	assert_int_equal(stream_unread(b, view_str("banner "), &err), 0);
	assert_int_equal(send(program, "world", 5, 0), 5);
	tunnel = tunnel_new(loop, a, b, &(struct tunnel_limits){0}, &events, NULL);
	ends_run(loop, NULL, owner.moved[TUNNEL_OUT] == 11 && owner.moved[TUNNEL_IN] == 7);
	assert_int_equal(recv(server, room, 100, 0), 11);
	assert_memory_equal(room, "hello world", 11);
	assert_int_equal(recv(program, room, 100, 0), 7);
	tunnel_abort(tunnel);
}

static void
a_slow_side_holds_the_other_one_back(void **state)
{
	size_t sent = 0, later = 0;

	(void)state;
	begin(0, 0);
	for (int i = 0; i < 3000; i++) {
		ssize_t r = send(program, data, sizeof(data), MSG_NOSIGNAL);

		sent += r > 0 ? (size_t)r : 0;
		(void)ev_run(loop, EVRUN_NOWAIT);
	}
	later = owner.moved[TUNNEL_OUT];
	for (int i = 0; i < 100; i++)
		(void)ev_run(loop, EVRUN_NOWAIT);
	assert_int_equal(owner.moved[TUNNEL_OUT], later);
	assert_true(sent > later);                        /* the kernel holds the rest */
	assert_int_equal(send(server, "still", 5, 0), 5); /* the other way goes on */
	ends_run(loop, NULL, owner.moved[TUNNEL_IN] == 5);
	assert_int_equal(owner.moved[TUNNEL_IN], 5);
	tunnel_abort(tunnel);
}

static void
a_half_that_ends_is_told_and_the_other_goes_on(void **state)
{
	(void)state;
	begin(0, 0);
	assert_int_equal(send(program, "question", 8, 0), 8);
	assert_int_equal(shutdown(program, SHUT_WR), 0);
	ends_run(loop, NULL, recv(server, room, 1, MSG_PEEK) == 1);
	assert_int_equal(recv(server, room, 100, 0), 8);
	ends_run(loop, NULL, recv(server, room, 100, 0) == 0);
	assert_int_equal(recv(server, room, 100, 0), 0);
	assert_int_equal(owner.done, 0);
	assert_int_equal(send(server, "answer", 6, 0), 6);
	ends_run(loop, NULL, owner.moved[TUNNEL_IN] == 6);
	assert_int_equal(recv(program, room, 100, 0), 6);
	assert_int_equal(shutdown(server, SHUT_WR), 0);
	ends_run(loop, NULL, owner.done);
	assert_int_equal(owner.done, 1);
	assert_int_equal(owner.end, TUNNEL_CLEAN);
	ends_run(loop, NULL, recv(program, room, 100, 0) == 0);
	assert_int_equal(recv(program, room, 100, 0), 0);
}

static void
reset_on_both_sides(void)
{
	ends_run(loop, NULL, owner.done);
	assert_int_equal(owner.done, 1);
	while (recv(program, room, sizeof(room), 0) > 0)
		continue;
	assert_int_equal(errno, ECONNRESET);
	while (recv(server, room, sizeof(room), 0) > 0)
		continue;
	assert_int_equal(errno, ECONNRESET);
}

static void
I9_a_budget_that_ends_is_a_reset(void **state)
{
	(void)state;
	begin(0, 0);
	owner.room[TUNNEL_IN] = 10;
	owner.answer = TUNNEL_STOP;
	assert_int_equal(send(server, "0123456789", 10, 0), 10);
	ends_run(loop, NULL, owner.moved[TUNNEL_IN] == 10);
	assert_int_equal(send(server, "more", 4, 0), 4);
	ends_run(loop, NULL, owner.done);
	assert_int_equal(owner.end, TUNNEL_STOPPED);
	assert_int_equal(recv(program, room, 100, 0), 10); /* and no byte more */
	reset_on_both_sides();
}

static void
a_way_that_is_held_goes_on_where_it_stood(void **state)
{
	(void)state;
	begin(0, 0);
	owner.room[TUNNEL_OUT] = 4;
	owner.answer = TUNNEL_HOLD;
	assert_int_equal(send(program, "0123456789", 10, 0), 10);
	ends_run(loop, NULL, owner.asked > 0);
	for (int i = 0; i < 20; i++)
		ends_step(loop, NULL);
	assert_int_equal(owner.asked, 1); /* not again and again */
	assert_int_equal(recv(server, room, 100, 0), -1);
	owner.room[TUNNEL_OUT] = 100;
	tunnel_go_on(tunnel);
	ends_run(loop, NULL, owner.moved[TUNNEL_OUT] == 10);
	ends_run(loop, NULL, recv(server, room, 100, MSG_PEEK) == 10);
	assert_int_equal(recv(server, room, 100, 0), 10);
	assert_memory_equal(room, "0123456789", 10);
	assert_int_equal(send(program, "x", 1, 0), 1);
	ends_run(loop, NULL, owner.moved[TUNNEL_OUT] == 11);
	assert_int_equal(owner.moved[TUNNEL_OUT], 11);
	tunnel_abort(tunnel);
}

static void
a_side_that_is_cut_cuts_the_other(void **state)
{
	const struct linger now = {.l_onoff = 1};

	(void)state;
	begin(0, 0);
	assert_int_equal(setsockopt(server, SOL_SOCKET, SO_LINGER, &now, sizeof(now)), 0);
	(void)close(server);
	ends_run(loop, NULL, owner.done);
	assert_int_equal(owner.end, TUNNEL_CUT);
	assert_int_equal(recv(program, room, 1, 0), -1);
	assert_int_equal(errno, ECONNRESET);
	server = -1;
}

static void
L9_idle_and_life_have_an_end(void **state)
{
	uint64_t t = clock_mono_ms();

	(void)state;
	begin(150, 0);
	for (int i = 0; i < 4; i++) { /* bytes keep it */
		(void)usleep(100000);
		assert_int_equal(send(program, "x", 1, 0), 1);
		for (int k = 0; k < 5; k++)
			ends_step(loop, NULL);
	}
	assert_int_equal(owner.done, 0);
	ends_run(loop, NULL, owner.done);
	assert_int_equal(owner.end, TUNNEL_IDLE);
	assert_true(clock_mono_ms() - t >= 550);
	reset_on_both_sides();
	(void)close(program);
	(void)close(server);
	begin(0, 200);
	for (int i = 0; i < 4; i++) {
		(void)usleep(100000);
		if (owner.done == 0)
			assert_int_equal(send(program, "x", 1, 0), 1);
		for (int k = 0; k < 5; k++)
			ends_step(loop, NULL);
	}
	ends_run(loop, NULL, owner.done);
	assert_int_equal(owner.end, TUNNEL_LIFE);
	reset_on_both_sides();
}

/* A WebSocket: TLS on one side, so memory is the way. */
static void
between_TLS_and_plain(void **state)
{
	static struct policy policy = {.nrules = 1};
	SSL_CTX *client = SSL_CTX_new(TLS_client_method());
	struct stream *a = ends_stream(loop, &h, &program), *b;
	static struct other o;
	struct buf pem, jks;
	size_t got = 0;
	struct ca *ca;

	(void)state;
	buf_init(&pem, 65536);
	buf_init(&jks, 65536);
	policy.rule[0] = (struct rule){
		.kind = RULE_KIND_FETCH, .tls = true, .host = view_str("a.test")};
	ca = ca_new(&err);
	assert_non_null(ca);
	assert_int_equal(ca_certify(ca, &policy, &pem, &jks, &err), 0);
	other_begin(&o, client, program, false, "a.test");
	assert_int_equal(stream_serve_tls(a, ca, view_str("a.test"), &err), 0);
	ends_run(loop, &o, o.shaken && h.shaken);
	b = ends_stream(loop, &h, &server);
	owner = (struct played){.room = {UINT64_MAX, UINT64_MAX}};
	tunnel = tunnel_new(loop, a, b, &(struct tunnel_limits){0}, &events, NULL);
	assert_int_equal(SSL_write(o.ssl, data, 16384), 16384);
	ends_run(loop, NULL, owner.moved[TUNNEL_OUT] == 16384);
	assert_int_equal(recv(server, room, sizeof(room), 0), 16384);
	assert_memory_equal(room, data, 16384);
	for (size_t sent = 0; got < sizeof(data);) {
		ssize_t r = sent == sizeof(data)
				    ? 0
				    : send(server, data + sent, sizeof(data) - sent, 0);

		sent += r > 0 ? (size_t)r : 0;
		(void)ev_run(loop, EVRUN_NOWAIT);
		r = SSL_read(o.ssl, room, sizeof(room));
		if (r <= 0)
			continue;
		assert_memory_equal(room, data + got, (size_t)r);
		got += (size_t)r;
	}
	assert_int_equal(owner.moved[TUNNEL_IN], sizeof(data));
	assert_int_equal(shutdown(server, SHUT_WR), 0);
	ends_run(loop, &o, o.ended);
	assert_true(o.ended);
	tunnel_abort(tunnel);
	SSL_free(o.ssl);
	SSL_CTX_free(client);
	ca_free(ca);
	buf_done(&pem);
	buf_done(&jks);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(without_pipes_bytes_are_copied), /* first: later there are spare ones */
		TEST(every_byte_arrives_once_and_is_counted),
		TEST(what_was_read_before_goes_first),
		TEST(a_slow_side_holds_the_other_one_back),
		TEST(a_half_that_ends_is_told_and_the_other_goes_on),
		TEST(I9_a_budget_that_ends_is_a_reset),
		TEST(a_way_that_is_held_goes_on_where_it_stood),
		TEST(a_side_that_is_cut_cuts_the_other),
		TEST(L9_idle_and_life_have_an_end),
		TEST(between_TLS_and_plain),
	};

	(void)signal(SIGPIPE, SIG_IGN);
	(void)OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
