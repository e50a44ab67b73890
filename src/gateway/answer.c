/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The answer half of an exchange; see exchange.h. The server is as hostile as the program: its head is read strictly and written anew, what would
 * outlive the answer is taken out (hop.def), and an answer that breaks off or grows too large is cut with a reset, never ended.
 */
#include "exchange.h"

#include "allotment.h"
#include "hop.h"
#include "limits.h"
#include "upstream.h"

#include "lib/http/write.h"

#include <errno.h>

enum { PROXY_AUTHENTICATION = 407, SWITCHING = 101, NOT_MODIFIED = 304, NO_CONTENT = 204 };

void
answer_begin(struct conn *c)
{
	struct exchange *x = c->x;

	http_limits_init(&x->answer_limits);
	x->answer_limits.body_bytes = x->rule->response_max;
	http_scan_response(&x->answer_scan, &x->answer_limits, x->head.method, x->key[0] != '\0');
	buf_clear(&x->answer_text);
	x->any = false;
}

/* ---- what went wrong ---- */

static void
refuse_answer(struct conn *c, enum http_reason no)
{
	enum egress_reason reason = EGRESS_REASON_ANSWER;

	if (no == HTTP_NO_BODY_LONG)
		reason = EGRESS_REASON_RESP_LIMIT;
	else if (no == HTTP_NO_HEAD_LONG || no == HTTP_NO_FIELDS || no == HTTP_NO_INTERIM)
		reason = EGRESS_REASON_HEADER_LIMIT;
	exchange_refuse(c, reason, http_reason_status(no, HTTP_RESPONSE), http_reason_text(no));
}

/* A connection that waited in the pool may have ended before the request came to it: what has no effect is asked for once more. */
static bool
may_ask_again(const struct conn *c)
{
	const struct exchange *x = c->x;
	enum http_method m = x->head.method;

	return c->up->used && !x->any && !x->again && x->head.framing == HTTP_BODY_NONE &&
	       x->key[0] == '\0' && (m == HTTP_GET || m == HTTP_HEAD || m == HTTP_OPTIONS);
}

static void
server_ended(struct conn *c, const char *why)
{
	struct exchange *x = c->x;

	if (may_ask_again(c)) {
		upstream_put(c->g, take_ptr(c->up), false);
		x->again = true;
		outbox_clear(&x->up);
		if (c->state == CONN_RELAY)
			conn_step(c, CONN_ON_AGAIN);
		return;
	}
	exchange_refuse(c, EGRESS_REASON_ANSWER, 0, why);
}

/* ---- the head ---- */

/* Named by the answer's Connection: of this hop. */
static bool
named(const struct http_head *h, struct view name)
{
	char text[64];

	if (name.n >= sizeof(text))
		return false;
	memcpy(text, name.p, name.n);
	text[name.n] = '\0';
	for (unsigned i = 0; i < h->fields; i++)
		if (view_eq_nocase(h->field[i].name, view_str("connection")) &&
			http_list_has(h->field[i].value, text))
			return true;
	return false;
}

static bool
has_connection(const struct http_head *h)
{
	for (unsigned i = 0; i < h->fields; i++)
		if (view_eq_nocase(h->field[i].name, view_str("connection")))
			return true;
	return false;
}

/* How the program sees where the body ends. False: at the end of the connection. */
static bool
write_framing(struct conn *c, struct http_write *w)
{
	struct exchange *x = c->x;
	const struct http_head *a = &x->answer;
	unsigned lengths;

	if (a->status == NO_CONTENT || a->status == NOT_MODIFIED)
		return true;
	(void)http_head_field(a, "content-length", &lengths);
	if (a->framing == HTTP_BODY_LENGTH || lengths == 1) {
		http_write_length(w, a->length);
		return true;
	}
	if (x->head.minor == 1) {
		http_write_chunked(w);
		x->chunked = a->framing != HTTP_BODY_NONE;
		return true;
	}
	http_write_until_close(w);
	return false;
}

/* False: it cannot be written, and the exchange is over. */
static bool
write_answer(struct conn *c)
{
	struct exchange *x = c->x;
	const struct http_head *a = &x->answer;
	bool connection = has_connection(a), ends;
	struct http_write w;

	http_write_response(&w, outbox_buf(&c->out), a->status);
	for (unsigned i = 0; i < a->fields; i++) {
		struct view name = a->field[i].name;

		if (!hop_drops(name, HTTP_RESPONSE) && (!connection || !named(a, name)))
			http_write_field_view(&w, name, a->field[i].value);
	}
	ends = write_framing(c, &w);
	x->keep = ends && x->head.keep_alive && x->complete;
	if (ends && !x->keep)
		http_write_field(&w, "Connection", view_str("close"));
	else if (ends && x->head.minor == 0)
		http_write_field(&w, "Connection", view_str("keep-alive"));
	if (http_write_end(&w) < 0) {
		refuse_answer(c, HTTP_NO_HEAD_LONG);
		return false;
	}
	x->answered = true;
	http_body_init(&x->answer_body, a, x->rule->response_max);
	return true;
}

/* 101: only what was asked for, and only when it proves that it read our key. */
static void
websocket_opened(struct conn *c, struct view rest)
{
	struct exchange *x = c->x;
	struct err err = {0};
	enum http_reason no = x->key[0] == '\0' ? HTTP_NO_SWITCH
						: ws_hand_verify(&x->answer, x->key);

	if (no != HTTP_FINE) {
		refuse_answer(c, no);
		return;
	}
	if (ws_hand_answer(outbox_buf(&c->out), x->accept) < 0 ||
		(rest.n > 0 && stream_unread(c->up->stream, rest, &err) < 0)) {
		refuse_answer(c, HTTP_NO_HEAD_LONG);
		return;
	}
	x->answered = true;
	x->switched = true;
}

/* A complete head. False: no more is to be read of the connection now. */
static bool
head_done(struct conn *c, struct view rest)
{
	struct exchange *x = c->x;
	const struct http_head *a = &x->answer;
	enum http_reason no = http_interim_admit(&x->interim, a, x->answer_scan.pos);

	if (no != HTTP_FINE) {
		refuse_answer(c, no);
		return false;
	}
	if (a->status == SWITCHING || (x->key[0] != '\0' && a->status >= 200)) {
		if (a->status == SWITCHING)
			websocket_opened(c, rest);
		else
			refuse_answer(c, HTTP_NO_WEBSOCKET);
		return false;
	}
	if (a->status < 200) {
		http_scan_response(
			&x->answer_scan, &x->answer_limits, x->head.method, x->key[0] != '\0');
		return true;
	}
	if (a->status == PROXY_AUTHENTICATION) {
		exchange_refuse(c, EGRESS_REASON_ANSWER, 502, "it asks for credentials of a proxy");
		return false;
	}
	return write_answer(c);
}

/* Whether a head may begin so: for the end of a line that is none nobody waits. */
static bool
may_begin(struct view in)
{
	struct view want = view_str("HTTP/1.");
	size_t n = in.n < want.n ? in.n : want.n;

	return view_eq(view_of(in.p, n), view_of(want.p, n));
}

/* Reads heads off `in` up to the final one. False: stop, or more bytes are needed. */
static bool
head_feed(struct conn *c, struct view *in)
{
	struct exchange *x = c->x;

	while (!x->answered) {
		bool held = x->answer_text.n > 0;
		struct view all = *in;
		size_t before = x->answer_text.n;
		int r;

		if (held) {
			buf_add_view(&x->answer_text, *in);
			all = buf_view(&x->answer_text);
		}
		r = buf_check(&x->answer_text) < 0
			    ? -ENOBUFS
			    : http_head_feed(&x->answer_scan, all, &x->answer);
		if (r < 0) {
			refuse_answer(c, r == -EBADMSG ? x->answer_scan.reason : HTTP_NO_HEAD_LONG);
			return false;
		}
		if (r == 0 && !may_begin(all)) {
			refuse_answer(c, HTTP_NO_STATUS_LINE);
			return false;
		}
		if (r == 0) {
			if (!held)
				buf_add_view(&x->answer_text, *in);
			return false;
		}
		*in = view_skip(*in, x->answer_scan.pos - before);
		if (!head_done(c, *in))
			return false;
		buf_clear(&x->answer_text);
	}
	return true;
}

/* ---- the body ---- */

/* All of it was read. What stands behind it is nobody's. */
static void
answer_end(struct conn *c, bool more)
{
	struct exchange *x = c->x;
	bool clean = !more && x->complete && x->answer.keep_alive && !x->answer.odd &&
		     !x->answer_body.odd && !x->head.odd && !x->body.odd &&
		     outbox_left(&x->up) == 0;

	if (x->chunked)
		http_chunk_end(outbox_buf(&c->out));
	upstream_put(c->g, take_ptr(c->up), clean);
	if (outbox_flush(&c->out, conn_now(c)) < 0) {
		conn_close(c, true);
		return;
	}
	exchange_next(c, x->keep);
}

static void
body_feed(struct conn *c, struct view in)
{
	struct exchange *x = c->x;
	struct view data = {0};

	for (;;) {
		switch (http_body_next(&x->answer_body, &in, &data)) {
		case HTTP_BODY_MORE:
			return;
		case HTTP_BODY_DATA:
			if (x->chunked)
				http_chunk_add(outbox_buf(&c->out), data);
			else
				buf_add_view(outbox_buf(&c->out), data);
			break;
		case HTTP_BODY_END:
			answer_end(c, in.n > 0);
			return;
		case HTTP_BODY_REFUSED:
			refuse_answer(c, x->answer_body.reason);
			return;
		}
	}
}

/* The server said that nothing follows. */
static void
answer_closed(struct conn *c)
{
	struct exchange *x = c->x;

	if (x->answered && http_body_close(&x->answer_body) == HTTP_FINE)
		answer_end(c, false);
	else
		server_ended(c, "the server ended the connection before its answer was complete");
}

void
answer_read(struct conn *c)
{
	struct exchange *x = c->x;
	uint8_t *piece = conn_scratch();

	while (c->state == CONN_RELAY && !x->switched && !x->dry &&
		outbox_left(&c->out) < LIMIT_UNSENT) {
		size_t may = (size_t)allotment_left(c->g, OF_BYTES_IN, CONN_PIECE);
		struct view in;
		ssize_t n;

		if (may == 0) {
			if (!allotment_take(c->g, OF_BYTES_IN, 1)) /* asks for more */
				exchange_dry(c);
			return;
		}
		n = stream_read(c->up->stream, piece, may);
		if (n < 0)
			return; /* later, or the stream tells that it failed */
		if (n == 0) {
			answer_closed(c);
			return;
		}
		must(allotment_take(c->g, OF_BYTES_IN, (uint64_t)n));
		exchange_bytes(c, 0, (uint64_t)n);
		x->any = true;
		x->dry_since = 0;
		x->heard = conn_now(c);
		in = view_of(piece, (size_t)n);
		if (x->answered || head_feed(c, &in))
			body_feed(c, in);
		if (c->state != CONN_RELAY || (n < CONN_PIECE && stream_fd(c->up->stream) >= 0))
			break;
	}
	if (c->state == CONN_RELAY && outbox_flush(&c->out, conn_now(c)) < 0)
		return; /* the program's stream tells */
}

/* ---- events of the server's stream ---- */

static void
on_readable(void *owner)
{
	struct conn *c = owner;

	if (c->state == CONN_RELAY)
		answer_read(c);
	conn_run(c);
}

static void
on_writable(void *owner)
{
	struct conn *c = owner;

	if (outbox_flush(&c->x->up, conn_now(c)) < 0)
		return; /* on_failed */
	conn_run(c);
}

static void
on_shaken(void *owner)
{
	(void)owner; /* it shook hands before it was ours */
}

static void
on_failed(void *owner, const struct err *why)
{
	struct conn *c = owner;

	(void)why;
	server_ended(c, "the connection to the server was cut off");
	conn_run(c);
}

const struct stream_events answer_events = {on_readable, on_writable, on_shaken, on_failed};
