/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to the daemon; see client.h. */
#include "cli/client.h"

#include "cli/safe.h"
#include "lib/base/clock.h"
#include "lib/http/write.h"
#include "lib/json/fields.h"

#include <errno.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>

enum { HEAD_MAX = 32768 };

void
client_init(struct client *c)
{
	*c = (struct client){.signals = -1};
	buf_init(&c->refusal, (size_t)LIMIT_REFUSAL_BYTES * 8);
}

void
client_done(struct client *c)
{
	buf_done(&c->refusal);
	json_decref(take_ptr(c->refused));
}

/* A signal: 0, when the answer is waited for nevertheless; -EINTR. */
static int
take_signal(struct client *c, int signal, struct err *err)
{
	bool first = c->lingers && c->linger_until == 0;

	c->signalled = signal;
	if (!first)
		return err_set(err, -EINTR, "interrupted");
	c->linger_until = clock_mono_ms() + LIMIT_LINGER_MS;
	safe_say(
		"interrupted; waiting for the sandbox under way, to kill it (once more: leave it)");
	return 0;
}

int
client_wait(struct client *c, int fd, short events, uint64_t deadline_ms, struct err *err)
{
	struct pollfd wait[2] = {
		{.fd = fd, .events = events}, {.fd = c->signals, .events = POLLIN}};
	struct signalfd_siginfo info;

	for (;;) {
		uint64_t now = clock_mono_ms();
		uint64_t until = c->lingers && c->linger_until != 0 && c->linger_until < deadline_ms
					 ? c->linger_until
					 : deadline_ms;
		int n = poll(wait, 2, now < until ? (int)(until - now) : 0);

		if (n < 0 && errno != EINTR)
			return err_errno(err, "cannot wait");
		if (n > 0 && wait[1].revents != 0 &&
			read(c->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
			if (take_signal(c, (int)info.ssi_signo, err) < 0)
				return err->code;
			continue;
		}
		if (n > 0 && wait[0].revents != 0)
			return 0;
		if (n == 0)
			return err_set(err, -ETIMEDOUT, "the daemon does not answer");
	}
}

/* ---- sending ---- */

static int
compose(const struct client *c, const struct ask *ask, struct buf *out)
{
	char bearer[sizeof(c->place.token) + 8];
	struct http_write w;

	http_write_request(&w, out, ask->method, ask->target);
	http_write_field(&w, "Host", view_str(c->place.authority));
	http_write_field(&w, "User-Agent", view_str("demilune"));
	http_write_field(&w, "Accept", view_str(ask->accept != NULL ? ask->accept : "*/*"));
	if (c->place.token[0] != '\0') {
		(void)snprintf(bearer, sizeof(bearer), "Bearer %s", c->place.token);
		http_write_field(&w, "Authorization", view_str(bearer));
	}
	if (ask->ws_key != NULL) {
		http_write_field(&w, "Connection", view_str("Upgrade"));
		http_write_field(&w, "Upgrade", view_str("websocket"));
		http_write_field(&w, "Sec-WebSocket-Version", view_str("13"));
		http_write_field(&w, "Sec-WebSocket-Key", view_str(ask->ws_key));
	} else {
		http_write_field(&w, "Connection", view_str("close"));
	}
	if (ask->type != NULL) {
		http_write_field(&w, "Content-Type", view_str(ask->type));
		if (ask->feed != NULL)
			http_write_chunked(&w);
		else
			http_write_length(&w, ask->body_bytes != 0 ? ask->body_bytes : ask->body.n);
	} else if (ask->method == HTTP_POST || ask->method == HTTP_PUT) {
		http_write_length(&w, 0);
	}
	return http_write_end(&w);
}

/* 0: all was sent; 1: the answer began before that; negative. */
static int
send_all(struct exchange *x, struct view v, struct err *err)
{
	while (v.n != 0) {
		ssize_t n = send(x->fd, v.p, v.n, MSG_NOSIGNAL);
		struct pollfd early = {.fd = x->fd, .events = POLLIN};
		int r;

		if (n > 0) {
			v = view_skip(v, (size_t)n);
			continue;
		}
		if (n < 0 && (errno == EPIPE || errno == ECONNRESET))
			return 1; /* it may have answered before it closed */
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return err_errno(err, "cannot send to the daemon");
		if (poll(&early, 1, 0) == 1)
			return 1;
		r = client_wait(
			x->client, x->fd, POLLIN | POLLOUT, clock_mono_ms() + LIMIT_STALL_MS, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int
send_file(struct exchange *x, const struct ask *ask, struct err *err)
{
	uint64_t left = ask->body_bytes;

	while (left != 0) {
		size_t want = left < EXCHANGE_READ_BYTES ? (size_t)left : EXCHANGE_READ_BYTES;
		ssize_t n = read(ask->body_fd, x->room, want);
		int r;

		if (n < 0)
			return err_errno(err, "cannot read the local file");
		if (n == 0)
			return err_set(
				err, -EIO, "the local file became shorter while it was read");
		r = send_all(x, view_of(x->room, (size_t)n), err);
		if (r != 0)
			return r;
		left -= (uint64_t)n;
	}
	return 0;
}

int
exchange_send(struct exchange *x, struct view piece, struct err *err)
{
	char head[HTTP_CHUNK_HEAD];
	int r;

	if (piece.n == 0)
		return 0;
	r = send_all(x, view_of(head, http_chunk_head(piece.n, head)), err);
	if (r == 0)
		r = send_all(x, piece, err);
	return r == 0 ? send_all(x, view_str("\r\n"), err) : r;
}

static int
send_chunks(struct exchange *x, const struct ask *ask, struct err *err)
{
	int r = ask->feed(x, ask->arg, err);

	return r == 0 ? send_all(x, view_str("0\r\n\r\n"), err) : r;
}

/* ---- receiving ---- */

static int
receive(struct exchange *x, uint64_t ms, size_t *ret_n, struct err *err)
{
	for (;;) {
		ssize_t n = recv(x->fd, x->room, EXCHANGE_READ_BYTES, 0);
		int r;

		if (n >= 0) {
			*ret_n = (size_t)n;
			return 0;
		}
		if (errno != EAGAIN && errno != EINTR)
			return err_errno(err, "the connection to the daemon broke");
		r = client_wait(x->client, x->fd, POLLIN, clock_mono_ms() + ms, err);
		if (r < 0)
			return r;
	}
}

static int
bad_answer(enum http_reason reason, struct err *err)
{
	return err_set(err, -EBADMSG, "the daemon's answer is not understood: %s",
		http_reason_text(reason));
}

/* One head from head_bytes, reading more as needed; what follows it stays in head_bytes. */
static int
read_head(struct exchange *x, struct http_scan *scan, struct err *err)
{
	for (;;) {
		size_t n = 0;
		int r = http_head_feed(scan, buf_view(&x->head_bytes), &x->head);

		if (r == 1)
			return 0;
		if (r < 0)
			return bad_answer(scan->reason, err);
		r = receive(x, x->client->patience_ms != 0 ? x->client->patience_ms : LIMIT_HEAD_MS,
			&n, err);
		if (r < 0)
			return r;
		if (n == 0)
			return err_set(err, -EBADMSG,
				"the daemon closed the connection without an answer");
		buf_add(&x->head_bytes, x->room, n);
		if (buf_check(&x->head_bytes) < 0)
			return err_set(
				err, -EBADMSG, "the head of the daemon's answer is too large");
	}
}

static int
read_heads(struct exchange *x, const struct ask *ask, struct err *err)
{
	struct http_interim interim = {0};
	struct http_scan scan;
	enum http_reason reason;
	int r;

	for (;;) {
		http_scan_response(&scan, &x->limits, ask->method, ask->ws_key != NULL);
		r = read_head(x, &scan, err);
		if (r < 0)
			return r;
		if (x->head.status >= 200 || x->head.status == 101)
			break;
		reason = http_interim_admit(&interim, &x->head, scan.pos);
		if (reason != HTTP_FINE)
			return bad_answer(reason, err);
		buf_drop(&x->head_bytes, scan.pos);
	}
	/* The head stays where it is, its views point there; the rest is read from a copy in room. */
	must(x->head_bytes.n - scan.pos <= EXCHANGE_READ_BYTES);
	memcpy(x->room, x->head_bytes.p + scan.pos, x->head_bytes.n - scan.pos);
	x->left = view_of(x->room, x->head_bytes.n - scan.pos);
	if (x->head.framing != HTTP_BODY_TUNNEL)
		http_body_init(&x->body, &x->head, UINT64_MAX);
	return 0;
}

int
exchange_next(struct exchange *x, struct view *ret_piece, struct err *err)
{
	for (;;) {
		enum http_body_event event = http_body_next(&x->body, &x->left, ret_piece);
		size_t n = 0;
		int r;

		if (event == HTTP_BODY_DATA)
			return 1;
		if (event == HTTP_BODY_END)
			return 0;
		if (event == HTTP_BODY_REFUSED)
			return bad_answer(x->body.reason, err);
		r = receive(x, LIMIT_STALL_MS, &n, err);
		if (r < 0)
			return r;
		if (n == 0) {
			if (http_body_close(&x->body) == HTTP_FINE)
				return 0;
			return err_set(err, -EBADMSG, "the daemon's answer is cut off");
		}
		x->left = view_of(x->room, n);
	}
}

/* The whole body, at most `max` bytes. */
static int
read_body(struct exchange *x, size_t max, struct buf *ret, struct err *err)
{
	struct view piece;
	int r;

	buf_init(ret, max);
	while ((r = exchange_next(x, &piece, err)) == 1) {
		buf_add_view(ret, piece);
		if (buf_check(ret) < 0)
			return err_set(err, -EMSGSIZE,
				"the daemon's answer is larger than %zu bytes", max);
	}
	return r;
}

/* ---- refusals ---- */

struct refusal {
	struct field_str error;
};

static const struct json_limits answer_limits = {
	.max_bytes = LIMIT_ANSWER_BYTES, .max_depth = LIMIT_DEPTH, .nul_ok = true};

static int
refused(struct exchange *x, struct err *err)
{
	static const struct field rows[] = {
		FIELD_STR("error", struct refusal, error, .min = 1, .max = 8192)};
	struct client *c = x->client;
	struct refusal says = {0};
	struct err unused = {0};
	auto_buf struct buf body = {0};

	c->refusal_status = x->head.status;
	buf_clear(&c->refusal);
	json_decref(take_ptr(c->refused));
	if (read_body(x, LIMIT_REFUSAL_BYTES, &body, &unused) == 0 &&
		json_parse(buf_view(&body), &answer_limits, &c->refused, &unused) == 0 &&
		fields_read(c->refused, "", rows, ARRAY_LEN(rows), FIELDS_IGNORE_UNKNOWN, &says,
			&unused) == 0 &&
		says.error.state == FIELD_SET)
		safe_add(&c->refusal, says.error.v, 0);
	else
		buf_addf(&c->refusal, "the daemon refused with status %u and without a sentence",
			x->head.status);
	return err_set(err, -EREMOTEIO, "%.*s", VIEW_ARGS(buf_view(&c->refusal)));
}

/* ---- exchanges ---- */

void
exchange_done(struct exchange *x)
{
	if (x->client == NULL)
		return;
	fd_cleanup(&x->fd);
	buf_done(&x->head_bytes);
	free(take_ptr(x->room));
	x->client = NULL;
}

static int
exchange_begin(struct exchange *x, const struct ask *ask, struct err *err)
{
	auto_buf struct buf out;
	int r;

	buf_init(&out, HEAD_MAX + LIMIT_BODY_BYTES);
	if (compose(x->client, ask, &out) < 0)
		return err_set(err, -EINVAL,
			"this cannot be asked: an argument is too long or has odd characters");
	if (ask->body_bytes == 0)
		buf_add_view(&out, ask->body);
	if (buf_check(&out) < 0)
		return err_set(err, -E2BIG, "what is to be sent is larger than %d bytes",
			LIMIT_BODY_BYTES);
	r = place_connect(&x->client->place, &x->fd, err);
	if (r == 0)
		r = send_all(x, buf_view(&out), err);
	if (r == 0 && ask->feed != NULL)
		r = send_chunks(x, ask, err);
	else if (r == 0 && ask->body_bytes != 0)
		r = send_file(x, ask, err);
	return r < 0 ? r : read_heads(x, ask, err);
}

int
exchange_open(struct client *c, const struct ask *ask, struct exchange *ret, struct err *err)
{
	int r;

	*ret = (struct exchange){.client = c, .fd = -1};
	http_limits_init(&ret->limits);
	ret->limits.body_bytes = UINT64_MAX;
	buf_init(&ret->head_bytes, 2 * EXCHANGE_READ_BYTES);
	ret->room = malloc(EXCHANGE_READ_BYTES);
	if (ret->room == NULL)
		return err_set(err, -ENOMEM, "no memory");
	r = exchange_begin(ret, ask, err);
	if (r < 0)
		return r;
	if (ask->ws_key != NULL ? ret->head.status != 101 : ret->head.status / 100 != 2)
		return refused(ret, err);
	return 0;
}

int
client_json(struct client *c, const struct ask *ask, json_t **ret, struct err *err)
{
	auto_exchange struct exchange x = {0};
	auto_buf struct buf body = {0};
	int r = exchange_open(c, ask, &x, err);

	*ret = NULL;
	if (r == 0)
		r = read_body(&x, LIMIT_ANSWER_BYTES, &body, err);
	if (r == 0 && body.n != 0)
		r = json_parse(buf_view(&body), &answer_limits, ret, err);
	if (r < 0 && r != -EREMOTEIO && r != -EINTR && body.n != 0)
		return err_context(err, "the daemon's answer");
	return r;
}

int
client_get(struct client *c, struct view target, json_t **ret, struct err *err)
{
	return client_json(c, &(struct ask){.method = HTTP_GET, .target = target}, ret, err);
}

int
client_send(struct client *c, enum http_method method, struct view target, struct view body,
	json_t **ret, struct err *err)
{
	struct ask ask = {.method = method,
		.target = target,
		.type = body.n != 0 ? "application/json" : NULL,
		.body = body};

	return client_json(c, &ask, ret, err);
}

void
target_add(struct buf *out, const char *text)
{
	for (; *text != '\0'; text++) {
		unsigned char c = (unsigned char)*text;

		if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
			strchr("-._~", c) != NULL)
			buf_add_byte(out, c);
		else
			buf_addf(out, "%%%02X", c);
	}
}
