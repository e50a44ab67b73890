/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The request half of an exchange; see exchange.h. Views of the head look into x->text, which nobody touches until the next head; what follows
 * the head stands in c->in.
 */
#include "exchange.h"

#include "allotment.h"
#include "brokered.h"
#include "hop.h"
#include "limits.h"
#include "proxy.h"
#include "refuse.h"
#include "upstream.h"

#include "lib/http/write.h"

#include <errno.h>
#include <stdio.h>
#include <sys/random.h>

enum { HTTPS_PORT = 443, HTTP_PORT = 80 };

static struct exchange *
exchange_of(struct conn *c)
{
	if (c->x != NULL)
		return c->x;
	c->x = calloc(1, sizeof(*c->x));
	if (c->x == NULL)
		return NULL;
	http_limits_init(&c->x->limits);
	c->x->limits.body_bytes = UINT64_MAX; /* the rule says how much */
	buf_init(&c->x->text, LIMIT_AHEAD + 2 * CONN_PIECE);
	buf_init(&c->x->query, c->x->limits.target_bytes);
	buf_init(&c->x->answer_text, c->x->limits.head_bytes + CONN_PIECE);
	outbox_init(&c->x->up, NULL, 0);
	return c->x;
}

void
exchange_free(struct exchange *x)
{
	if (x == NULL)
		return;
	buf_done(&x->text);
	buf_done(&x->query);
	buf_done(&x->answer_text);
	outbox_done(&x->up);
	free(x);
}

/* What was of the last request. Its buffers stay. */
static void
exchange_reset(struct conn *c)
{
	struct exchange *x = c->x;

	buf_clear(&x->query);
	buf_clear(&x->answer_text);
	x->up.stream = NULL;
	buf_clear(&x->up.bytes);
	x->up.at = 0;
	x->params.n = 0;
	x->rule = NULL;
	x->decision = (struct egress_decision){.rule = EGRESS_NO_RULE};
	x->request = (struct egress_request){0};
	x->head.method = HTTP_METHODS;
	x->interim = (struct http_interim){0};
	x->counted = x->kept = x->complete = x->any = x->answered = false;
	x->chunked = x->keep = x->again = x->dry = x->switched = x->sent = false;
	x->key[0] = x->accept[0] = '\0';
}

void
exchange_expect(struct conn *c)
{
	struct exchange *x = exchange_of(c);
	struct address a;

	if (x == NULL) {
		conn_close(c, true);
		return;
	}
	exchange_reset(c);
	c->address[0] = '\0';
	if (c->proxy)
		c->at = (struct egress_place){.name = view_of(c->name, 0)};
	/* To the proxy any host may be said; else an address only where one was meant. */
	x->limits.host_flags = c->proxy || address_parse(c->at.name, &a) == 0 ? HTTP_AUTHORITY_IP
									      : 0;
	http_scan_request(&x->scan, &x->limits);
	conn_due(c, c->in.n > 0 || c->doomed != EGRESS_REASON_NONE ? LIMIT_HEAD_MS : LIMIT_IDLE_MS);
}

/* ---- verdicts ---- */

/* Names of parameters, each with a NUL, for the record; until the next call. */
static struct view
query_names(const struct http_params *q)
{
	static uint8_t room[1024];
	size_t n = 0;

	for (unsigned i = 0; i < q->n; i++) {
		struct view name = q->param[i].name;

		if (name.n + 1 > sizeof(room) - n)
			return view_of(NULL, 0);
		memcpy(room + n, name.p, name.n);
		n += name.n;
		room[n++] = '\0';
	}
	return view_of(room, n);
}

void
exchange_verdict(const struct conn *c, enum verdict verdict, enum egress_reason reason,
	struct verdict_of *ret)
{
	const struct exchange *x = c->x;

	conn_verdict(c, verdict, reason, ret);
	ret->rule = x->decision.rule;
	if (x->head.method == HTTP_METHODS)
		return;
	ret->method = view_str(http_method_name(x->head.method));
	if (x->request.path.n == 0)
		return; /* what was not understood is not repeated */
	ret->path = x->request.path;
	ret->digest = x->digest;
	ret->query = query_names(&x->params);
}

void
exchange_bytes(const struct conn *c, uint64_t out, uint64_t in)
{
	struct verdict_of v;

	conn_verdict(c, VERDICT_ALLOWED, EGRESS_REASON_NONE, &v);
	v.rule = c->x->decision.rule;
	verdict_bytes(c->g, &v, out, in);
}

static void
tell(struct conn *c, enum egress_reason reason)
{
	struct exchange *x = c->x;
	struct verdict_of v;

	exchange_verdict(c, x->kept ? VERDICT_ABORTED : VERDICT_REFUSED, reason, &v);
	verdict_tell(c->g, &v);
}

/* ---- refusing ---- */

/* The server side of this request is over. */
static void
drop_server(struct conn *c)
{
	upstream_forget(take_ptr(c->ask));
	verdict_forget(take_ptr(c->wait));
	if (c->up != NULL)
		upstream_put(c->g, take_ptr(c->up), false);
}

static void
linger(struct conn *c)
{
	conn_step(c, CONN_ON_LAST);
	conn_due(c, LIMIT_STALL_MS);
	if (outbox_flush(&c->out, conn_now(c)) < 0)
		conn_close(c, true);
}

void
exchange_refuse(struct conn *c, enum egress_reason reason, unsigned status, const char *text)
{
	struct exchange *x = c->x;
	struct refusal r = {.reason = reason,
		.status = status != 0 ? status : egress_reason_status(reason),
		.place = c->at,
		.rule = x->decision.rule,
		.text = text,
		.head_only = x->head.method == HTTP_HEAD};

	tell(c, reason);
	drop_server(c);
	if (x->answered || r.status == 0) {
		conn_close(c, true); /* what was begun must not look complete */
		return;
	}
	refuse_write(outbox_buf(&c->out), &r);
	linger(c);
}

static enum egress_reason
reason_of(enum http_reason no)
{
	enum egress_reason reason;

	return egress_reason_parse(view_str(http_reason_code(no)), &reason) < 0
		       ? EGRESS_REASON_FRAMING
		       : reason;
}

/* Bytes that are no request: other protocols that were spoken to us by mistake, or on purpose. */
static bool
is_no_http(struct view in)
{
	uint8_t first = in.n == 0 ? 'A' : in.p[0];

	return view_starts(in, "PROXY ") ||
	       ((first < 'A' || first > 'Z') && (first < 'a' || first > 'z') && first != '\r' &&
		       first != '\n' && first != ' ' && first != '\t');
}

static void
refuse_bytes(struct conn *c, enum http_reason no)
{
	struct exchange *x = c->x;

	if (x->scan.lines <= 1 && is_no_http(buf_view(&c->in))) {
		conn_drop(c, EGRESS_REASON_NOT_HTTP);
		return;
	}
	x->head.method = HTTP_METHODS; /* nothing of it holds */
	exchange_refuse(
		c, reason_of(no), http_reason_status(no, HTTP_REQUEST), http_reason_text(no));
}

/* ---- judging ---- */

/* Host, and an absolute form, name what the connection leads to, port included. */
static enum egress_reason
place_agrees(const struct conn *c)
{
	const struct http_head *h = &c->x->head;
	const struct http_target *t = &h->target;
	bool https = c->at.scheme == EGRESS_SCHEME_HTTPS;
	uint16_t port = h->host.port != 0 ? h->host.port : https ? HTTPS_PORT : HTTP_PORT;

	if (h->host.kind == HTTP_HOST_NONE)
		return EGRESS_REASON_FRAMING;
	if (!view_eq(view_of(h->host.host, h->host.n), c->at.name) || port != c->at.port)
		return EGRESS_REASON_NAME_MISMATCH;
	/* The codec compared an absolute form with Host. */
	if (t->form == HTTP_FORM_ABSOLUTE && t->https != https)
		return EGRESS_REASON_NAME_MISMATCH;
	return EGRESS_REASON_NONE;
}

/*
 * Upgrade, in any form, asks for a rule. But for h2c, which some libraries add to each request in the clear: who does not know it does not
 * answer it, and it is not passed on.
 */
static bool
asks_upgrade(const struct http_head *h)
{
	unsigned n;
	const struct http_field *f = http_head_field(h, "upgrade", &n);

	return n > 1 || (f != NULL && !view_eq_nocase(f->value, view_str("h2c")));
}

static bool
has_credential(const struct http_head *h)
{
	for (unsigned i = 0; i < h->fields; i++)
		if (egress_field_is_credential(h->field[i].name))
			return true;
	return false;
}

static enum http_reason
read_query(struct exchange *x)
{
	const struct http_target *t = &x->head.target;
	uint8_t *room = buf_room(&x->query, t->query.n + 1);

	if (room == NULL)
		return HTTP_NO_QUERY_LONG;
	return http_query_parse(t->query, 0, room, &x->params);
}

static void
describe(struct exchange *x)
{
	const struct http_head *h = &x->head;

	x->request = (struct egress_request){
		.method = h->method,
		.path = h->target.path,
		.has_query = h->target.has_query,
		.query = h->target.has_query ? &x->params : NULL,
		.credential = has_credential(h),
		.upgrade = asks_upgrade(h),
		.body = h->framing != HTTP_BODY_NONE,
		.body_bytes = h->framing == HTTP_BODY_CHUNKED ? UINT64_MAX : h->length,
	};
}

static bool
hand_shakes(struct conn *c)
{
	struct exchange *x = c->x;
	uint8_t nonce[WS_NONCE_BYTES];
	enum http_reason no = ws_hand_check(&x->head, x->accept);

	if (no != HTTP_FINE) {
		x->accept[0] = '\0';
		exchange_refuse(c, reason_of(no), http_reason_status(no, HTTP_REQUEST),
			http_reason_text(no));
		return false;
	}
	must(getrandom(nonce, sizeof(nonce), 0) == (ssize_t)sizeof(nonce));
	ws_hand_key(nonce, x->key);
	return true;
}

/* The head is complete and its place is known. */
static void
judge(struct conn *c)
{
	struct exchange *x = c->x;
	enum egress_reason no = place_agrees(c);

	if (no != EGRESS_REASON_NONE) {
		exchange_refuse(c, no, 0, NULL);
		return;
	}
	if (x->head.method == HTTP_CONNECT || x->head.target.form == HTTP_FORM_AUTHORITY) {
		exchange_refuse(c, EGRESS_REASON_METHOD, 0, "a proxy inside of a connection");
		return;
	}
	if (x->head.target.has_query) {
		enum http_reason bad = read_query(x);

		if (bad != HTTP_FINE) {
			exchange_refuse(c, reason_of(bad), http_reason_status(bad, HTTP_REQUEST),
				http_reason_text(bad));
			return;
		}
	}
	describe(x);
	egress_request_digest(&c->at, &x->request, x->digest);
	rules_request(&c->g->policy, c->rules, &x->request, NULL, &x->decision);
	if (x->decision.reason != EGRESS_REASON_NONE) {
		exchange_refuse(c, x->decision.reason, x->decision.status, NULL);
		return;
	}
	if (x->request.upgrade && !hand_shakes(c))
		return;
	x->rule = &c->g->policy.rule[x->decision.rule];
	conn_step(c, CONN_ON_ALLOW);
}

/* CONNECT to a place of a rule: from here on the connection is as if that had been dialled. */
static void
connect_done(struct conn *c)
{
	buf_add_str(outbox_buf(&c->out), "HTTP/1.1 200 Connection established\r\n\r\n");
	if (outbox_flush(&c->out, conn_now(c)) < 0) {
		conn_close(c, true);
		return;
	}
	c->proxy = false;
	conn_open(c);
}

static void
head_proxy(struct conn *c)
{
	bool tunnel;
	unsigned status;
	enum egress_reason no = proxy_place(c, &tunnel, &status);

	if (no != EGRESS_REASON_NONE)
		exchange_refuse(c, no, status, NULL);
	else if (tunnel)
		connect_done(c);
	else
		judge(c);
}

/* The head becomes the exchange's; what follows it stays where it came. */
static void
head_take(struct conn *c)
{
	struct exchange *x = c->x;
	struct buf text = c->in;
	size_t n = x->scan.pos;

	c->in = x->text;
	x->text = text;
	buf_clear(&c->in);
	buf_add(&c->in, text.p + n, text.n - n);
	x->end = conn_now(c) + (double)LIMIT_EXCHANGE_MS / 1e3;
}

bool
exchange_head(struct conn *c)
{
	struct exchange *x = c->x;
	int r;

	if (c->in.n == 0) {
		if (c->ended)
			conn_close(c, false);
		return false;
	}
	if (x->scan.pos == 0 && c->doomed == EGRESS_REASON_NONE)
		conn_due(c, LIMIT_HEAD_MS);
	r = http_head_feed(&x->scan, buf_view(&c->in), &x->head);
	if (r == 0) {
		x->head.method = HTTP_METHODS;
		if (c->ended)
			exchange_refuse(c, EGRESS_REASON_FRAMING, 0, "the request is not complete");
		return c->ended;
	}
	if (r < 0) {
		refuse_bytes(c, x->scan.reason);
		return true;
	}
	head_take(c);
	if (c->doomed != EGRESS_REASON_NONE)
		exchange_refuse(c, c->doomed, 0, NULL);
	else if (c->proxy)
		head_proxy(c);
	else
		judge(c);
	return true;
}

/* ---- allowed: budget, server, record ---- */

/* True: counted. False: it waits, or was refused. */
static bool
count(struct conn *c)
{
	struct gateway *g = c->g;
	bool brokered = c->x->rule->kind == RULE_KIND_BROKERED;

	if (brokered && allotment_left(g, OF_REQUESTS, 1) == 1 &&
		!allotment_take(g, OF_BROKERED, 1)) {
		/* told below */
	} else if (allotment_take(g, OF_REQUESTS, 1)) {
		c->x->counted = true;
		return true;
	}
	if (allotment_coming(g))
		conn_due(c, LIMIT_WAIT_MS);
	else
		exchange_refuse(c, EGRESS_REASON_QUOTA, 0, NULL);
	return false;
}

static void
on_server(void *owner, enum egress_reason reason, struct upstream *up, const char *text)
{
	struct conn *c = owner;

	c->ask = NULL;
	if (reason == EGRESS_REASON_NONE) {
		c->up = up;
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
		conn_due(c, LIMIT_WAIT_MS);
		if (!allotment_coming(c->g))
			exchange_refuse(c, EGRESS_REASON_QUOTA, 0, NULL);
		return false;
	}
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

bool
exchange_ask(struct conn *c)
{
	struct exchange *x = c->x;

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

static void
body_refused(struct conn *c)
{
	enum http_reason no = c->x->body.reason;

	exchange_refuse(
		c, reason_of(no), http_reason_status(no, HTTP_REQUEST), http_reason_text(no));
}

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
		body_refused(c);
		return false;
	}
	must(false);
}

/* There is no budget at the moment: who waits too long is refused. */
void
exchange_dry(struct conn *c)
{
	struct exchange *x = c->x;

	if (!x->dry)
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

	while (c->state == CONN_RELAY && !x->complete && outbox_left(&x->up) < LIMIT_UNSENT) {
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

/* The program said that nothing follows, in the middle of its body. */
static void
body_cut(struct conn *c)
{
	tell(c, EGRESS_REASON_CLOSED);
	drop_server(c);
	conn_close(c, true);
}

bool
exchange_relay(struct conn *c)
{
	struct exchange *x = c->x;

	x->dry = x->dry && !allotment_left(c->g, OF_BYTES_OUT, 1);
	body_move(c);
	if (c->state != CONN_RELAY)
		return c->state != CONN_CLOSED;
	if (!x->complete && c->ended && c->in.n == 0) {
		body_cut(c);
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

/* ---- what conn.c asks ---- */

size_t
exchange_ahead(const struct conn *c)
{
	const struct exchange *x = c->x;

	if (!x->complete && (x->dry || outbox_left(&x->up) >= LIMIT_UNSENT))
		return 0;
	return LIMIT_AHEAD;
}

/* The program took bytes: there may be room for the server's. */
void
exchange_room(struct conn *c)
{
	if (c->x != NULL)
		c->x->heard = conn_now(c);
}

void
exchange_lost(struct conn *c)
{
	if (c->state == CONN_RELAY || c->state == CONN_BROKER ||
		(c->state == CONN_ASK && c->x->kept))
		tell(c, EGRESS_REASON_CLOSED);
}

static bool
relay_is_late(const struct conn *c)
{
	const struct exchange *x = c->x;
	ev_tstamp now = conn_now(c), stall = (double)LIMIT_STALL_MS / 1e3;

	if (now > x->end)
		return true;
	if (outbox_left(&c->out) > 0)
		return now - c->out.moved > stall;
	if (outbox_left(&x->up) > 0)
		return now - x->up.moved > stall;
	return x->complete && now - x->heard > (double)LIMIT_SILENT_MS / 1e3;
}

/* Once per window, while it is the program that is waited for. */
static bool
body_is_slow(struct conn *c)
{
	struct exchange *x = c->x;
	ev_tstamp now = conn_now(c);
	bool slow;

	if (x->complete || now - x->window < (double)LIMIT_BODY_WINDOW_MS / 1e3)
		return false;
	slow = x->window_bytes < LIMIT_BODY_WINDOW && outbox_left(&x->up) == 0 && !x->dry;
	x->window = now;
	x->window_bytes = 0;
	return slow;
}

static void
relay_late(struct conn *c)
{
	if (relay_is_late(c) || body_is_slow(c)) {
		exchange_refuse(c, EGRESS_REASON_TIMEOUT, 0, NULL);
		return;
	}
	if (c->x->dry)
		exchange_dry(c);
	if (c->state == CONN_RELAY)
		conn_due(c, LIMIT_TICK_MS);
}

void
exchange_late(struct conn *c)
{
	const struct exchange *x = c->x;

	switch (c->state) {
	case CONN_HEAD:
		if (c->doomed != EGRESS_REASON_NONE)
			conn_drop(c, c->doomed);
		else if (c->in.n == 0)
			conn_close(c, false);
		else
			exchange_refuse(c, EGRESS_REASON_TIMEOUT, 408, NULL);
		return;
	case CONN_ASK:
		exchange_refuse(c,
			!x->counted || x->kept ? EGRESS_REASON_QUOTA
			: c->up == NULL && x->rule->kind != RULE_KIND_BROKERED
				? EGRESS_REASON_UNREACHABLE
				: EGRESS_REASON_AUDIT,
			0, NULL);
		return;
	case CONN_BROKER:
		exchange_refuse(c, EGRESS_REASON_BROKER, 0, NULL);
		return;
	case CONN_RELAY:
		relay_late(c);
		return;
	case CONN_ADMIT:
	case CONN_HELLO:
	case CONN_SHAKE:
	case CONN_OPAQUE:
	case CONN_TUNNEL:
	case CONN_LINGER:
	case CONN_CLOSED:
	case CONN_STATES:
		break;
	}
	must(false); /* conn.c has these */
}

void
exchange_next(struct conn *c, bool keep)
{
	if (keep) {
		conn_step(c, CONN_ON_NEXT);
		exchange_expect(c);
	} else {
		linger(c);
	}
}
