/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See stream.h. All bytes go through struct raw, which has what was read before and what is not sent yet; OpenSSL sees it as a BIO. So there
 * is one rule for both kinds: nothing of the owner's is taken while something is unsent, and then up to one record is.
 *
 * Invariants: events are called from the loop only (on_in, on_out, on_turn, each at most one event); after stream_close() none is; what was
 * found to have failed never moves a byte again.
 */
#include "stream.h"

#include "ca.h"
#include "limits.h"
#include "raw.h"
#include "roots.h"
#include "tls.h"

#include "lib/base/host.h"
#include "lib/loop/loop.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

enum { RECORD_MAX = 16384 };

struct stream {
	struct stream *next, *before; /* of those that linger */
	struct ev_loop *loop;
	const struct stream_events *events; /* NULL: closed */
	void *owner;
	ev_io in, out;
	ev_timer
		turn; /* an event of the next turn that no socket tells; while lingering it is the deadline */
	struct raw raw;
	struct buf again; /* unread bytes of inside TLS */
	SSL *ssl;         /* owned; NULL: plain */
	struct ca *ca;    /* borrowed: of a server */
	char name[HOST_NAME_MAX_BYTES + 1];
	size_t name_n;
	enum stream_state state;
	bool want_read, want_write;
	bool ended; /* a clean end was read */
	bool shut;  /* nothing follows from us */
	bool finned;
	bool told; /* the failure, to the owner */
	bool lingering;
	size_t dropped;
	struct err fault;
};

/* Streams of this process that were closed and are not gone. */
static struct stream *lingerers;
static size_t lingering;

/* ---- what is waited for ---- */

static void
watch(struct stream *s, ev_io *w, bool on)
{
	if (on && !ev_is_active(w))
		ev_io_start(s->loop, w);
	if (!on && ev_is_active(w))
		ev_io_stop(s->loop, w);
}

/* From the next turn of the loop on, so that others have theirs even when the owner leaves its bytes where they are. */
static void
wake(struct stream *s)
{
	if (ev_is_active(&s->turn))
		return;
	ev_timer_set(&s->turn, 0, 0);
	ev_timer_start(s->loop, &s->turn);
}

/* Bytes for the owner that no socket will tell of. */
static bool
has_bytes(const struct stream *s)
{
	return raw_unread(&s->raw) != 0 || s->again.n != 0 ||
	       (s->ssl != NULL && SSL_pending(s->ssl) > 0);
}

static void
update(struct stream *s)
{
	bool open = s->state == STREAM_OPEN && s->events != NULL;
	bool read = open && s->want_read && !s->ended;

	watch(s, &s->in, s->state == STREAM_SHAKING || (read && !has_bytes(s)) || s->lingering);
	watch(s, &s->out,
		s->state != STREAM_FAILED && (s->raw.unsent.n != 0 || (open && s->want_write)));
	if ((read && has_bytes(s)) || (s->state == STREAM_FAILED && !s->told && s->events != NULL))
		wake(s);
}

/* Returns the code. The owner hears of it from the loop. */
static int
fail(struct stream *s)
{
	s->state = STREAM_FAILED;
	update(s);
	return s->fault.code;
}

static int
fail_socket(struct stream *s, int code)
{
	(void)err_set(
		&s->fault, -ECONNRESET, "the connection was cut off: %s", strerrordesc_np(-code));
	return fail(s);
}

static int
fail_tls(struct stream *s)
{
	(void)tls_fault(s->ssl, s->raw.fault, &s->fault);
	return fail(s);
}

/* ---- the handshake ---- */

/* What must hold of a server beside what OpenSSL tested. */
static bool
server_is_fine(struct stream *s)
{
	const unsigned char *protocol;
	unsigned n;

	if (SSL_is_server(s->ssl))
		return true;
	SSL_get0_alpn_selected(s->ssl, &protocol, &n);
	if (SSL_get0_peer_certificate(s->ssl) == NULL || SSL_get_verify_result(s->ssl) != X509_V_OK)
		(void)err_set(&s->fault, -EKEYREJECTED, "the certificate was not verified");
	else if (n != 0 && !view_is(view_of(protocol, n), "http/1.1"))
		(void)err_set(&s->fault, -EPROTO,
			"TLS: the server chose a protocol that was not offered");
	else
		return true;
	return false;
}

static void
shake(struct stream *s)
{
	int r;

	ERR_clear_error();
	r = SSL_do_handshake(s->ssl);
	(void)raw_flush(&s->raw); /* a fault of the socket is met again by the next call */
	if (r == 1 && server_is_fine(s)) {
		if (SSL_is_server(s->ssl))
			raw_acknowledge(&s->raw); /* no ticket of ours follows its Finished */
		s->state = STREAM_OPEN;
		s->events->shaken(s->owner);
	} else if (r == 1) {
		(void)fail(s);
	} else if (SSL_get_error(s->ssl, r) != SSL_ERROR_WANT_READ) {
		(void)fail_tls(s);
	}
}

/* The server name that the program says, against the one that its address or its proxy request said. An address has none. */
static int
on_server_name(SSL *ssl, int *alert, void *arg)
{
	struct stream *s = SSL_get_app_data(ssl);
	const char *said = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
	struct view name = view_of(s->name, s->name_n);
	struct address a;
	bool literal = address_parse(name, &a) == 0;

	(void)arg;
	if (said == NULL ? literal : (!literal && view_eq_nocase(view_str(said), name)))
		return SSL_TLSEXT_ERR_OK;
	*alert = SSL_AD_UNRECOGNIZED_NAME;
	return SSL_TLSEXT_ERR_ALERT_FATAL;
}

static int
on_certificate(SSL *ssl, void *arg)
{
	struct stream *s = SSL_get_app_data(ssl);
	struct err err = {0};

	(void)arg;
	return ca_leaf_use(s->ca, ssl, view_of(s->name, s->name_n), &err) < 0 ? 0 : 1;
}

static int
begin_tls(struct stream *s, SSL_CTX *ctx, struct view name, struct err *err)
{
	SSL *ssl;
	BIO *bio;

	must(s->ssl == NULL && s->state == STREAM_OPEN && name.n < sizeof(s->name));
	memcpy(s->name, name.p, name.n);
	s->name_n = name.n;
	ERR_clear_error();
	ssl = SSL_new(ctx);
	bio = ssl == NULL ? NULL : raw_bio(&s->raw);
	if (bio == NULL || SSL_set_app_data(ssl, s) != 1) {
		BIO_free(bio);
		SSL_free(ssl);
		return err_set(err, -ENOMEM, "no memory for TLS");
	}
	SSL_set_bio(ssl, bio, bio);
	s->ssl = ssl;
	return 0;
}

/* The first step is made from the loop. */
static void
begin_shaking(struct stream *s)
{
	s->state = STREAM_SHAKING;
	update(s);
	wake(s);
}

int
stream_serve_tls(struct stream *s, struct ca *ca, struct view name, struct err *err)
{
	SSL_CTX *ctx = ca_context(ca);

	if (begin_tls(s, ctx, name, err) < 0)
		return err->code;
	s->ca = ca;
	(void)SSL_CTX_set_tlsext_servername_callback(ctx, on_server_name);
	SSL_set_cert_cb(s->ssl, on_certificate, NULL);
	SSL_set_accept_state(s->ssl);
	begin_shaking(s);
	return 0;
}

/* Server name and verification from the same name: neither of the two sets the other. */
static bool
expect(SSL *ssl, struct view name, char *text)
{
	X509_VERIFY_PARAM *p = SSL_get0_param(ssl);
	struct address a;

	X509_VERIFY_PARAM_set_hostflags(
		p, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
	SSL_set_verify(ssl, SSL_VERIFY_PEER, NULL);
	if (address_parse(name, &a) == 0)
		return X509_VERIFY_PARAM_set1_ip(p, a.b, a.family == AF_INET ? 4 : 16) == 1;
	return host_name_ok(name) && X509_VERIFY_PARAM_set1_host(p, text, name.n) == 1 &&
	       SSL_set_tlsext_host_name(ssl, text) == 1;
}

int
stream_connect_tls(struct stream *s, struct roots *roots, struct view name, struct view pinned,
	struct err *err)
{
	SSL_CTX *ctx = roots_context(roots, pinned, err);

	if (ctx == NULL)
		return err->code;
	if (begin_tls(s, ctx, name, err) < 0)
		return err->code;
	s->name[name.n] = '\0';
	if (!expect(s->ssl, name, s->name)) {
		SSL_free(s->ssl);
		s->ssl = NULL;
		return err_set(err, -EINVAL, "the name of a server is needed");
	}
	SSL_set_connect_state(s->ssl);
	begin_shaking(s);
	return 0;
}

/* ---- bytes ---- */

static ssize_t
read_plain(struct stream *s, void *room, size_t n)
{
	ssize_t r = raw_read(&s->raw, room, n);

	if (r < 0 && r != -EAGAIN)
		return fail_socket(s, (int)r);
	return r;
}

static ssize_t
read_again(struct stream *s, void *room, size_t n)
{
	if (n > s->again.n)
		n = s->again.n;
	memcpy(room, s->again.p, n);
	buf_drop(&s->again, n);
	if (s->again.n == 0)
		buf_done(&s->again);
	return (ssize_t)n;
}

static ssize_t
read_tls(struct stream *s, void *room, size_t n)
{
	size_t got = 0;
	int r;

	if (s->again.n != 0)
		return read_again(s, room, n);
	ERR_clear_error();
	r = SSL_read_ex(s->ssl, room, n, &got);
	if (r == 1)
		return (ssize_t)got;
	r = SSL_get_error(s->ssl, r);
	if (r == SSL_ERROR_WANT_READ)
		return -EAGAIN;
	return r == SSL_ERROR_ZERO_RETURN ? 0 : fail_tls(s);
}

ssize_t
stream_read(struct stream *s, void *room, size_t n)
{
	ssize_t r;

	must(s->events != NULL && n != 0);
	if (s->state == STREAM_FAILED)
		return s->fault.code;
	if (s->state == STREAM_SHAKING)
		return -EAGAIN;
	if (s->ended)
		return 0;
	r = s->ssl == NULL ? read_plain(s, room, n) : read_tls(s, room, n);
	s->ended = r == 0;
	if (s->state == STREAM_OPEN)
		update(s);
	return r;
}

static ssize_t
write_tls(struct stream *s, struct view bytes)
{
	size_t put = 0;
	int r;

	r = raw_flush(&s->raw);
	if (r == -EAGAIN)
		return r;
	if (r < 0)
		return fail_socket(s, r);
	ERR_clear_error();
	r = SSL_write_ex(s->ssl, bytes.p, bytes.n < RECORD_MAX ? bytes.n : RECORD_MAX, &put);
	return r == 1 ? (ssize_t)put : fail_tls(s);
}

ssize_t
stream_write(struct stream *s, struct view bytes)
{
	ssize_t r;

	must(s->events != NULL && !s->shut && bytes.n != 0);
	if (s->state == STREAM_FAILED)
		return s->fault.code;
	if (s->state == STREAM_SHAKING)
		return -EAGAIN;
	if (s->ssl != NULL) {
		r = write_tls(s, bytes);
	} else {
		r = raw_write(&s->raw, bytes);
		if (r < 0 && r != -EAGAIN)
			return fail_socket(s, (int)r);
	}
	if (s->state == STREAM_OPEN)
		update(s);
	return r;
}

/* Behind all that was taken. */
static void
fin(struct stream *s)
{
	if (s->finned || s->raw.unsent.n != 0)
		return;
	s->finned = true;
	(void)shutdown(s->raw.fd, SHUT_WR); /* a peer that is gone has no use for it */
}

void
stream_shut(struct stream *s)
{
	if (s->shut)
		return;
	s->shut = true;
	if (s->ssl != NULL && s->state == STREAM_OPEN) {
		ERR_clear_error();
		s->raw.last = true;
		(void)SSL_shutdown(s->ssl); /* only writes; what it cannot is met by raw_flush */
		s->raw.last = false;
	}
	(void)raw_flush(&s->raw);
	fin(s);
	s->want_write = false;
	update(s);
}

/* ---- the end ---- */

static void
linger_begin(struct stream *s)
{
	s->lingering = true;
	s->next = lingerers;
	if (s->next != NULL)
		s->next->before = s;
	lingerers = s;
	lingering++;
}

static void
linger_end(struct stream *s)
{
	if (!s->lingering)
		return;
	if (s->next != NULL)
		s->next->before = s->before;
	if (s->before != NULL)
		s->before->next = s->next;
	else
		lingerers = s->next;
	lingering--;
}

static void
release(struct stream *s, bool reset)
{
	watch(s, &s->in, false);
	watch(s, &s->out, false);
	ev_timer_stop(s->loop, &s->turn);
	SSL_free(s->ssl);
	s->ssl = NULL;
	raw_done(&s->raw, reset);
	buf_done(&s->again);
	linger_end(s);
	loop_free_later(s->loop, s);
}

void
stream_close(struct stream *s, bool abort)
{
	bool failed = s->state == STREAM_FAILED;

	must(s->events != NULL);
	if (!abort && !failed)
		stream_shut(s);
	s->events = NULL;
	if (abort || failed || (s->ended && s->finned) || lingering >= LIMIT_LINGERING) {
		release(s, abort);
		return;
	}
	linger_begin(s);
	ev_timer_stop(s->loop, &s->turn);
	ev_timer_set(&s->turn, (double)LIMIT_LINGER_MS / 1e3, 0);
	ev_timer_start(s->loop, &s->turn);
	s->state = STREAM_OPEN;
	update(s);
}

void
streams_end(void)
{
	while (lingerers != NULL)
		release(lingerers, false);
}

/* Not even looked at: only so that the kernel does not answer it with a reset. */
static void
linger(struct stream *s)
{
	char room[8192];
	ssize_t r = recv(s->raw.fd, room, sizeof(room), 0);

	if (r > 0)
		s->dropped += (size_t)r;
	if (r == 0)
		s->ended = true;
	if ((r < 0 && errno != EAGAIN && errno != EINTR) || s->dropped > LIMIT_LINGER_BYTES ||
		(s->ended && s->finned))
		release(s, false);
	else if (s->ended)
		watch(s, &s->in, false);
}

/* ---- events ---- */

static void
tell_failure(struct stream *s)
{
	s->told = true;
	s->events->failed(s->owner, &s->fault);
}

/* After an event: the owner may have closed it. */
static void
settle(struct stream *s)
{
	if (s->events != NULL)
		update(s);
}

static void
on_in(struct ev_loop *loop, ev_io *w, int events)
{
	struct stream *s = w->data;

	(void)loop, (void)events;
	if (s->lingering) {
		linger(s);
		return;
	}
	if (s->state == STREAM_SHAKING)
		shake(s);
	else if (s->state == STREAM_OPEN)
		s->events->readable(s->owner);
	settle(s);
}

static void
on_out(struct ev_loop *loop, ev_io *w, int events)
{
	struct stream *s = w->data;
	int r = raw_flush(&s->raw);

	(void)loop, (void)events;
	if (r < 0 && r != -EAGAIN) {
		if (s->lingering)
			release(s, false);
		else
			(void)fail_socket(s, r);
		return;
	}
	if (s->shut)
		fin(s);
	if (s->lingering) {
		if (s->ended && s->finned)
			release(s, false);
		else
			watch(s, &s->out, s->raw.unsent.n != 0);
		return;
	}
	if (r == 0 && s->state == STREAM_OPEN && s->want_write)
		s->events->writable(s->owner);
	settle(s);
}

static void
on_turn(struct ev_loop *loop, ev_timer *w, int events)
{
	struct stream *s = w->data;

	(void)loop, (void)events;
	if (s->lingering) {
		release(s, false);
		return;
	}
	if (s->state == STREAM_FAILED && !s->told)
		tell_failure(s);
	else if (s->state == STREAM_SHAKING)
		shake(s);
	else if (s->state == STREAM_OPEN && s->want_read && has_bytes(s))
		s->events->readable(s->owner);
	settle(s);
}

/* ---- life ---- */

struct stream *
stream_new(struct ev_loop *loop, int fd, const struct stream_events *events, void *owner)
{
	struct stream *s = calloc(1, sizeof(*s));

	if (s == NULL) {
		(void)close(fd); /* nothing was sent on it */
		return NULL;
	}
	s->loop = loop;
	s->events = events;
	s->owner = owner;
	raw_init(&s->raw, fd, STREAM_UNREAD_MAX, LIMIT_UNSENT_BYTES);
	buf_init(&s->again, STREAM_UNREAD_MAX);
	ev_io_init(&s->in, on_in, fd, EV_READ);
	ev_io_init(&s->out, on_out, fd, EV_WRITE);
	ev_timer_init(&s->turn, on_turn, 0, 0);
	s->in.data = s->out.data = s->turn.data = s;
	return s;
}

void
stream_give(struct stream *s, const struct stream_events *events, void *owner)
{
	s->events = events;
	s->owner = owner;
	s->want_read = s->want_write = false;
	update(s);
}

enum stream_state
stream_state(const struct stream *s)
{
	return s->state;
}

int
stream_unread(struct stream *s, struct view bytes, struct err *err)
{
	struct buf both;

	if (bytes.n == 0)
		return 0;
	if (s->ssl == NULL) {
		if (raw_put_back(&s->raw, bytes, err) < 0)
			return err->code;
		update(s);
		return 0;
	}
	buf_init(&both, s->again.max);
	buf_add_view(&both, bytes);
	buf_add_view(&both, buf_view(&s->again));
	if (buf_check(&both) < 0) {
		buf_done(&both);
		return err_set(err, -ENOBUFS, "too much is to be read again");
	}
	buf_done(&s->again);
	s->again = both;
	update(s);
	return 0;
}

void
stream_want_read(struct stream *s, bool on)
{
	s->want_read = on;
	update(s);
}

void
stream_want_write(struct stream *s, bool on)
{
	s->want_write = on;
	update(s);
}

int
stream_fd(const struct stream *s)
{
	return s->ssl != NULL || raw_unread(&s->raw) != 0 ? -1 : s->raw.fd;
}

bool
stream_stale(struct stream *s)
{
	char byte;
	size_t n;
	int r;

	if (s->state != STREAM_OPEN || s->ended || has_bytes(s))
		return true;
	if (s->ssl == NULL)
		return recv(s->raw.fd, &byte, 1, MSG_PEEK) >= 0 || errno != EAGAIN;
	/* What belongs to TLS itself (tickets) is read by this and is no reason. */
	ERR_clear_error();
	r = SSL_peek_ex(s->ssl, &byte, 1, &n);
	return r == 1 || SSL_get_error(s->ssl, r) != SSL_ERROR_WANT_READ;
}
