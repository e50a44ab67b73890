/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The request half of an exchange; see exchange.h. Views of the head look into x->text, which nobody touches until the next head; what follows
 * the head stands in c->in.
 */
#include "exchange.h"

#include "limits.h"
#include "proxy.h"
#include "refuse.h"
#include "upstream.h"

#include "lib/loop/loop.h"

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
exchange_end(struct conn *c)
{
	struct exchange *x = c->x;

	if (x == NULL)
		return;
	buf_done(&x->text);
	buf_done(&x->query);
	buf_done(&x->answer_text);
	outbox_done(&x->up);
	loop_free_later(c->g->loop, x);
}

/* What was of the last request. Its buffers stay. */
static void
exchange_reset(struct conn *c)
{
	struct exchange *x = c->x;

	buf_clear(&x->query);
	buf_clear(&x->answer_text);
	outbox_clear(&x->up);
	x->params.n = 0;
	x->rule = NULL;
	x->decision = (struct egress_decision){.rule = EGRESS_NO_RULE};
	x->request = (struct egress_request){0};
	x->head.method = HTTP_METHODS;
	x->interim = (struct http_interim){0};
	x->counted = x->kept = x->complete = x->any = x->answered = false;
	x->chunked = x->keep = x->again = x->dry = x->switched = x->sent = false;
	x->key[0] = x->accept[0] = '\0';
	x->judged = 0;
	x->passed[0] = x->passed[1] = 0;
	x->dry_since = 0;
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
	if (x->request.path.n == 0 || x->request.path.p[0] != '/')
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

/* Told, and cut off on both sides. */
void
exchange_cut(struct conn *c, enum egress_reason reason)
{
	tell(c, reason);
	conn_close(c, true);
}

static enum egress_reason
reason_of(enum http_reason no)
{
	enum egress_reason reason;

	return egress_reason_parse(view_str(http_reason_code(no)), &reason) < 0
		       ? EGRESS_REASON_FRAMING
		       : reason;
}

void
exchange_refuse_http(struct conn *c, enum http_reason no)
{
	exchange_refuse(
		c, reason_of(no), http_reason_status(no, HTTP_REQUEST), http_reason_text(no));
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
	exchange_refuse_http(c, no);
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
		exchange_refuse_http(c, no);
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
			exchange_refuse_http(c, bad);
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
		exchange_refuse(c, EGRESS_REASON_BROKER, 0,
			x->sent ? "it does not answer" : "it leased nothing in time");
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
