/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An allowed request on its way out: budget, server, record, then the bytes, written anew. Part of exchange.h. Invariant: no byte of a request is
 * in an outbox before its server is there and its record is kept.
 */
#include "exchange.h"

#include "allotment.h"
#include "brokered.h"
#include "hop.h"
#include "limits.h"
#include "upstream.h"

#include "lib/http/write.h"

#include <stdio.h>

enum { HTTPS_PORT = 443, HTTP_PORT = 80 };

/* ---- allowed: budget, server, record ---- */

/* It has LIMIT_WAIT_MS from when it first could not be taken, whatever comes meanwhile. */
static void
wait_budget(struct conn *c)
{
	struct exchange *x = c->x;

	if (!allotment_coming(c->g)) {
		exchange_refuse(c, EGRESS_REASON_QUOTA, 0, NULL);
	} else if (x->dry_since == 0) {
		x->dry_since = conn_now(c);
		conn_due(c, LIMIT_WAIT_MS);
	}
}

/* True: counted. False: it waits, or was refused. */
static bool
count(struct conn *c)
{
	struct gateway *g = c->g;
	bool brokered = c->x->rule->kind == RULE_KIND_BROKERED;

	if (!allotment_name(g, c->at.name) || (brokered && allotment_left(g, OF_REQUESTS, 1) == 1 &&
						      !allotment_take(g, OF_BROKERED, 1))) {
		/* told below */
	} else if (allotment_take(g, OF_REQUESTS, 1)) {
		c->x->counted = true;
		c->x->dry_since = 0;
		return true;
	}
	wait_budget(c);
	return false;
}

static void
on_server(void *owner, enum egress_reason reason, struct upstream *up, const char *text)
{
	struct conn *c = owner;

	c->ask = NULL;
	if (reason == EGRESS_REASON_NONE) {
		c->up = up;
		/* Asked again, and another one of its addresses than the record has: that is put on record too. */
		if (strcmp(c->address, up->address) != 0) {
			verdict_forget(take_ptr(c->wait));
			c->x->kept = false;
		}
		memcpy(c->address, up->address, sizeof(c->address));
		stream_give(up->stream, &answer_events, c);
		c->x->up.stream = up->stream;
		c->x->up.moved = conn_now(c);
	} else {
		exchange_refuse(c, reason, 0, text);
	}
	if (!c->calling)
		conn_run(c);
}

static void
server(struct conn *c)
{
	conn_due(c, LIMIT_WAIT_MS + LIMIT_CONNECT_MS + LIMIT_SHAKE_MS + LIMIT_WAIT_MS);
	c->calling = true;
	c->ask = upstream_get(
		c->g, c->x->decision.rule, c->at.name, c->at.port, c->x->again, on_server, c);
	c->calling = false;
}

static void
on_kept(void *owner, enum egress_reason reason)
{
	struct conn *c = owner;

	c->wait = NULL;
	if (reason == EGRESS_REASON_NONE)
		c->x->kept = true;
	else
		exchange_refuse(c, reason, 0, NULL);
	if (!c->calling)
		conn_run(c);
}

static void
record(struct conn *c)
{
	struct verdict_of v;

	exchange_verdict(c, VERDICT_ALLOWED, EGRESS_REASON_NONE, &v);
	conn_due(c, 2 * LIMIT_WAIT_MS); /* the wait has its own time */
	c->calling = true;
	c->wait = verdict_ask(c->g, &v, on_kept, c);
	c->calling = false;
}

/* ---- the request, written anew ---- */

static void
write_host(struct http_write *w, const struct conn *c)
{
	bool six = view_has(c->at.name, ':');
	uint16_t usual = c->at.scheme == EGRESS_SCHEME_HTTPS ? HTTPS_PORT : HTTP_PORT;
	char text[HOST_NAME_MAX_BYTES + 16];
	int n;

	n = snprintf(text, sizeof(text), "%s%s%s", six ? "[" : "", c->name, six ? "]" : "");
	if (c->at.port != usual)
		n += snprintf(text + n, sizeof(text) - (size_t)n, ":%u", (unsigned)c->at.port);
	http_write_field(w, "Host", view_of(text, (size_t)n));
}

static void
write_framing(struct http_write *w, const struct http_head *h)
{
	bool usual = h->method == HTTP_POST || h->method == HTTP_PUT || h->method == HTTP_PATCH;

	switch (h->framing) {
	case HTTP_BODY_LENGTH:
		http_write_length(w, h->length);
		return;
	case HTTP_BODY_CHUNKED:
		http_write_chunked(w);
		return;
	case HTTP_BODY_NONE:
		if (usual)
			http_write_length(w, 0);
		return;
	case HTTP_BODY_UNTIL_CLOSE:
	case HTTP_BODY_TUNNEL:
		break;
	}
	must(false); /* not of requests */
}

static void
write_websocket(struct http_write *w, const struct exchange *x)
{
	http_write_field(w, "Upgrade", view_str("websocket"));
	http_write_field(w, "Connection", view_str("Upgrade"));
	http_write_field(w, "Sec-WebSocket-Version", view_str("13"));
	http_write_field(w, "Sec-WebSocket-Key", view_str(x->key));
}

/* "/path?query" out of the parts; in an absolute form they do not stand at its beginning. */
static struct view
target_of(struct exchange *x)
{
	const struct http_target *t = &x->head.target;
	struct view origin = x->head.target_text;

	if (t->form == HTTP_FORM_ORIGIN)
		return origin;
	if (t->path.n > 0 && t->path.p >= origin.p && t->path.p < origin.p + origin.n)
		return view_of(t->path.p, (size_t)(origin.p + origin.n - t->path.p));
	buf_add_view(&x->answer_text, t->path); /* "/" that was not written; nothing is in it yet */
	buf_add_str(&x->answer_text, t->has_query ? "?" : "");
	buf_add_view(&x->answer_text, t->query);
	return buf_view(&x->answer_text);
}

static int
write_request(struct conn *c)
{
	struct exchange *x = c->x;
	const struct http_head *h = &x->head;
	struct buf *out = outbox_buf(&x->up);
	struct http_write w;
	int r;

	http_write_request(&w, out, h->method, target_of(x));
	write_host(&w, c);
	for (unsigned i = 0; i < h->fields; i++)
		if (!hop_drops(h->field[i].name, HTTP_REQUEST))
			http_write_field_view(&w, h->field[i].name, h->field[i].value);
	if (x->key[0] != '\0')
		write_websocket(&w, x);
	write_framing(&w, h);
	r = http_write_end(&w);
	buf_clear(&x->answer_text);
	return r;
}

/* Server and record are there. True: the first bytes may leave now, and did. */
static bool
relay_begin(struct conn *c)
{
	struct exchange *x = c->x;
	size_t n;

	if (outbox_left(&x->up) == 0 && write_request(c) < 0) {
		exchange_refuse(c, EGRESS_REASON_FRAMING, 0, "the head cannot be written anew");
		return false;
	}
	n = outbox_left(&x->up);
	if (!allotment_take(c->g, OF_BYTES_OUT, n)) {
		wait_budget(c);
		return false;
	}
	x->dry_since = 0;
	exchange_bytes(c, n, 0);
	http_body_init(&x->body, &x->head, x->rule->request_max);
	x->complete = x->head.framing == HTTP_BODY_NONE;
	x->heard = x->window = conn_now(c);
	x->window_bytes = 0;
	if (x->head.expect_continue && !x->complete && !x->again)
		buf_add_str(outbox_buf(&c->out), "HTTP/1.1 100 Continue\r\n\r\n");
	conn_step(c, CONN_ON_GO);
	conn_due(c, LIMIT_TICK_MS);
	answer_begin(c);
	if (outbox_flush(&c->out, conn_now(c)) < 0)
		conn_close(c, true);
	return true;
}

/*
 * What has come of a body is read before a server is asked for, so that of a fault in it nobody hears; what comes once its record is asked for
 * ends in an abort. A length alone cannot be wrong.
 */
static bool
body_begins_well(struct conn *c)
{
	struct exchange *x = c->x;
	struct view in, data = {0};

	if (x->head.framing != HTTP_BODY_CHUNKED || c->wait != NULL || x->kept ||
		x->judged >= c->in.n)
		return true;
	if (x->judged == 0)
		http_body_init(&x->body, &x->head, x->rule->request_max);
	in = view_skip(buf_view(&c->in), x->judged);
	for (;;) {
		switch (http_body_next(&x->body, &in, &data)) {
		case HTTP_BODY_DATA:
			continue;
		case HTTP_BODY_MORE:
			x->judged = c->in.n;
			return true;
		case HTTP_BODY_END:
			x->judged = SIZE_MAX;
			return true;
		case HTTP_BODY_REFUSED:
			exchange_refuse_http(c, x->body.reason);
			return false;
		}
	}
}

bool
exchange_ask(struct conn *c)
{
	struct exchange *x = c->x;

	if (!body_begins_well(c))
		return true;
	if (!x->counted && !count(c))
		return c->state != CONN_ASK;
	if (x->rule->kind != RULE_KIND_BROKERED && c->up == NULL) {
		if (c->ask == NULL)
			server(c);
		if (c->up == NULL)
			return c->state != CONN_ASK;
	}
	if (!x->kept) {
		if (c->wait == NULL)
			record(c);
		if (!x->kept)
			return c->state != CONN_ASK;
	}
	if (x->rule->kind == RULE_KIND_BROKERED) {
		conn_step(c, CONN_ON_LEASE);
		brokered_begin(c);
		return true;
	}
	(void)relay_begin(c);
	return c->state != CONN_ASK;
}

/* ---- the body ---- */

/* One piece of what the program sent. False: nothing more can be done now. */
static bool
body_piece(struct conn *c, struct view *in)
{
	struct exchange *x = c->x;
	struct view data = {0};

	switch (http_body_next(&x->body, in, &data)) {
	case HTTP_BODY_MORE:
		return false;
	case HTTP_BODY_DATA:
		must(allotment_take(c->g, OF_BYTES_OUT, data.n));
		exchange_bytes(c, data.n, 0);
		x->dry_since = 0;
		x->window_bytes += data.n;
		if (x->head.framing == HTTP_BODY_CHUNKED)
			http_chunk_add(outbox_buf(&x->up), data);
		else
			buf_add_view(outbox_buf(&x->up), data);
		return true;
	case HTTP_BODY_END:
		x->complete = true;
		x->heard = conn_now(c);
		if (x->head.framing == HTTP_BODY_CHUNKED)
			http_chunk_end(outbox_buf(&x->up));
		return false;
	case HTTP_BODY_REFUSED:
		exchange_refuse_http(c, x->body.reason);
		return false;
	}
	must(false);
}

/* There is no budget at the moment: this stands still until conns_wake(), and who waits too long is refused. */
void
exchange_dry(struct conn *c)
{
	struct exchange *x = c->x;

	if (x->dry_since == 0)
		x->dry_since = conn_now(c);
	x->dry = true;
	if (!allotment_coming(c->g) || conn_now(c) - x->dry_since > (double)LIMIT_WAIT_MS / 1e3)
		exchange_refuse(c, EGRESS_REASON_QUOTA, 0, NULL);
}

static void
body_move(struct conn *c)
{
	struct exchange *x = c->x;
	size_t used = 0;

	while (c->state == CONN_RELAY && !x->complete && !x->dry &&
		outbox_left(&x->up) < LIMIT_UNSENT) {
		size_t here = c->in.n - used,
		       may = (size_t)allotment_left(c->g, OF_BYTES_OUT, here);
		struct view in = view_of(c->in.p + used, may);
		bool more;

		if (here > 0 && may == 0) {
			if (!allotment_take(c->g, OF_BYTES_OUT, here)) /* asks for more */
				exchange_dry(c);
			break;
		}
		more = body_piece(c, &in);
		if (c->state != CONN_RELAY)
			return;
		used += may - in.n;
		if (!more && (x->complete || used == c->in.n || in.n > 0))
			break;
	}
	if (c->state == CONN_RELAY)
		buf_drop(&c->in, used);
}

bool
exchange_relay(struct conn *c)
{
	struct exchange *x = c->x;

	body_move(c);
	if (c->state != CONN_RELAY)
		return c->state != CONN_CLOSED;
	if (!x->complete && c->ended && c->in.n == 0) {
		exchange_cut(c, EGRESS_REASON_CLOSED); /* in the middle of its body */
		return false;
	}
	if (outbox_flush(&x->up, conn_now(c)) < 0)
		return false; /* the stream tells of it */
	if (x->switched && outbox_left(&c->out) == 0 && outbox_left(&x->up) == 0) {
		through_begin(c);
		return false;
	}
	stream_want_read(
		c->up->stream, !x->switched && !x->dry && outbox_left(&c->out) < LIMIT_UNSENT);
	return false;
}
