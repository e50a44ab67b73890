/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection; see conn.h. This file has its life: what was meant, the ClientHello, deadlines and the end. A connection that was closed keeps
 * its memory until the end of the turn, so whoever called something that may close it looks at its state.
 */
#include "conn.h"

#include "accept.h"
#include "allotment.h"
#include "ca.h"
#include "exchange.h"
#include "hello.h"
#include "limits.h"
#include "tunnel.h"
#include "upstream.h"
#include "verdict.h"

#include "lib/loop/loop.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

enum { HTTPS_PORT = 443, HELLO_ROOM = 16384 + 5 * 256 };

static const int8_t steps[CONN_STATES][CONN_EVENTS] = {
#define STATE(name, prose)
#define EVENT(name, prose)
#define STEP(from, event, to) [CONN_##from][CONN_ON_##event] = CONN_##to + 1,
#include "conn.fsm"
#undef STATE
#undef EVENT
#undef STEP
};

void
conn_step(struct conn *c, enum conn_event event)
{
	must(steps[c->state][event] != 0);
	c->state = (enum conn_state)(steps[c->state][event] - 1);
}

uint8_t *
conn_scratch(void)
{
	static uint8_t room[CONN_PIECE];

	return room;
}

ev_tstamp
conn_now(const struct conn *c)
{
	return ev_now(c->g->loop);
}

/* The timer is only brought forward; when it fires early it is set again, so that most requests never touch it. */
void
conn_due(struct conn *c, uint64_t ms)
{
	ev_tstamp in = (double)ms / 1e3;

	c->due = conn_now(c) + in;
	if (ev_is_active(&c->timer) && ev_timer_remaining(c->g->loop, &c->timer) <= in)
		return;
	ev_timer_stop(c->g->loop, &c->timer);
	ev_timer_set(&c->timer, in, 0);
	ev_timer_start(c->g->loop, &c->timer);
}

/* ---- verdicts ---- */

void
conn_verdict(const struct conn *c, enum verdict verdict, enum egress_reason reason,
	struct verdict_of *ret)
{
	*ret = (struct verdict_of){
		.verdict = verdict,
		.reason = reason,
		.scheme = c->at.scheme,
		.rule = c->rule,
		.port = c->at.port,
		.name = c->at.name,
		.address = view_str(c->address),
	};
}

void
conn_drop(struct conn *c, enum egress_reason reason)
{
	struct verdict_of v;

	conn_verdict(c, VERDICT_REFUSED, reason, &v);
	verdict_tell(c->g, &v);
	conn_close(c, true);
}

/* ---- the end ---- */

void
conn_close(struct conn *c, bool abort)
{
	struct gateway *g = c->g;

	if (c->state == CONN_CLOSED)
		return;
	c->state = CONN_CLOSED;
	ev_timer_stop(g->loop, &c->timer);
	upstream_forget(take_ptr(c->ask));
	verdict_forget(take_ptr(c->wait));
	if (c->up != NULL)
		upstream_put(g, take_ptr(c->up), false);
	if (c->tunnel != NULL)
		tunnel_abort(take_ptr(c->tunnel));
	if (c->out.stream != NULL)
		stream_close(take_ptr(c->out.stream), abort);
	outbox_done(&c->out);
	buf_done(&c->in);
	exchange_end(c);
	list_remove(&c->link);
	loop_free_later(g->loop, c);
	if (g->nconns-- == LIMIT_CONNECTIONS)
		listeners_pause(g, false);
}

void
conns_end(struct gateway *g)
{
	list_each (c, &g->conns, struct conn, link)
		conn_close(c, true);
}

void
conns_wake(struct gateway *g)
{
	list_each (c, &g->conns, struct conn, link) {
		if (c->x != NULL)
			c->x->dry = false;
		if (c->tunnel != NULL)
			tunnel_go_on(c->tunnel);
		else
			conn_run(c);
	}
}

/* ---- where to ---- */

enum egress_reason
conn_place(struct conn *c, struct view name, uint16_t port, enum egress_scheme scheme)
{
	must(name.n <= HOST_NAME_MAX_BYTES);
	memcpy(c->name, name.p, name.n);
	c->name[name.n] = '\0';
	c->at = (struct egress_place){
		.scheme = scheme, .name = view_of(c->name, name.n), .port = port};
	c->rules = 0;
	return rules_place(&c->g->policy, &c->at, &c->rules, NULL);
}

static const struct rule *
first_rule(const struct conn *c)
{
	size_t i = 0;

	must(c->rules != 0);
	while ((c->rules >> i & 1) == 0)
		i++;
	return &c->g->policy.rule[i];
}

/* What is spoken at a port for which there are rules, or that is TLS's own. */
static enum rule_kind
port_speaks(const struct conn *c, bool *ret_tls)
{
	const struct policy *p = &c->g->policy;

	*ret_tls = c->at.port == HTTPS_PORT;
	for (size_t i = 0; i < p->nrules; i++) {
		if (p->rule[i].port != c->at.port)
			continue;
		*ret_tls = p->rule[i].tls || p->rule[i].kind == RULE_KIND_PASSTHROUGH;
		return p->rule[i].kind;
	}
	return RULE_KIND_FETCH;
}

static void
want_hello(struct conn *c)
{
	c->at.scheme = EGRESS_SCHEME_HTTPS;
	conn_step(c, CONN_ON_TLS);
	conn_due(c, LIMIT_HELLO_MS);
}

static void
want_request(struct conn *c)
{
	c->at.scheme = EGRESS_SCHEME_HTTP;
	conn_step(c, CONN_ON_PLAIN);
	exchange_expect(c);
}

void
conn_open(struct conn *c)
{
	const struct rule *r = first_rule(c);

	c->rule = EGRESS_NO_RULE;
	switch (r->kind) {
	case RULE_KIND_FETCH:
	case RULE_KIND_BROKERED:
		c->at.scheme = r->tls ? EGRESS_SCHEME_HTTPS : EGRESS_SCHEME_HTTP;
		must(rules_place(&c->g->policy, &c->at, &c->rules, NULL) == EGRESS_REASON_NONE);
		if (r->tls)
			want_hello(c);
		else
			want_request(c);
		return;
	case RULE_KIND_PASSTHROUGH:
		want_hello(c);
		c->at.scheme = EGRESS_SCHEME_PASSTHROUGH;
		c->rule = (uint16_t)(r - c->g->policy.rule);
		return;
	case RULE_KIND_TCP:
		c->at.scheme = EGRESS_SCHEME_TCP;
		c->rule = (uint16_t)(r - c->g->policy.rule);
		conn_step(c, CONN_ON_TUNNEL);
		conn_due(c, LIMIT_WAIT_MS);
		return;
	case RULE_KIND_MAX:
		break;
	}
	must(false);
}

/* Nobody may go there: what speaks TLS is closed when its hello is read, a request is answered, all else is closed. */
static void
open_doomed(struct conn *c, enum egress_reason reason)
{
	bool tls;
	enum rule_kind kind = port_speaks(c, &tls);

	c->doomed = reason;
	if (tls)
		want_hello(c);
	else if (kind == RULE_KIND_TCP)
		conn_drop(c, reason);
	else
		want_request(c);
}

/* Its budget first: nothing is read of a connection that may not be. */
static bool
admit(struct conn *c)
{
	enum egress_reason reason;

	if (!allotment_take(c->g, OF_CONNECTIONS, 1)) {
		if (allotment_coming(c->g))
			return false;
		conn_drop(c, EGRESS_REASON_QUOTA);
		return false;
	}
	if (c->proxy) {
		conn_step(c, CONN_ON_PLAIN);
		exchange_expect(c);
		return true;
	}
	reason = rules_place(&c->g->policy, &c->at, &c->rules, NULL);
	if (reason == EGRESS_REASON_NONE)
		conn_open(c);
	else
		open_doomed(c, reason);
	return true;
}

/* ---- ClientHello ---- */

/* "unrecognized_name", so that a program hears why. It is not in TLS yet: the bytes of the alert as they are. */
static void
say_unrecognized(struct conn *c)
{
	static const uint8_t alert[] = {21, 3, 3, 0, 2, 2, 112};

	if (outbox_put(&c->out, view_of(alert, sizeof(alert)), conn_now(c)) < 0)
		return;
}

static enum egress_reason
judge_hello(const struct conn *c, const struct hello *h)
{
	struct address a;
	bool literal = address_parse(c->at.name, &a) == 0;

	if (h->name_bad)
		return EGRESS_REASON_NAME_MISMATCH;
	if (!h->has_name && !literal)
		return EGRESS_REASON_NO_SNI;
	if (h->has_name && (literal || !view_eq(view_of(h->name, h->name_n), c->at.name)))
		return EGRESS_REASON_NAME_MISMATCH;
	if (h->ech && c->at.scheme == EGRESS_SCHEME_PASSTHROUGH)
		return EGRESS_REASON_ECH;
	return EGRESS_REASON_NONE;
}

static void
doomed_by_name(struct conn *c, const struct hello *h)
{
	if (c->at.name.n == 0 && h->has_name && !h->name_bad &&
		host_name_ok(view_of(h->name, h->name_n))) {
		memcpy(c->name, h->name, h->name_n);
		c->at.name = view_of(c->name, h->name_n);
	}
	conn_drop(c, c->doomed);
}

static void
serve_tls(struct conn *c)
{
	struct err err = {0};

	if (!allotment_take(c->g, OF_HANDSHAKES, 1)) {
		if (!allotment_coming(c->g))
			conn_drop(c, EGRESS_REASON_QUOTA);
		return;
	}
	conn_step(c, CONN_ON_NAMED);
	conn_due(c, LIMIT_HELLO_MS);
	if (stream_unread(c->out.stream, buf_view(&c->in), &err) < 0 ||
		stream_serve_tls(c->out.stream, c->g->ca, c->at.name, &err) < 0) {
		conn_drop(c, EGRESS_REASON_NOT_TLS);
		return;
	}
	buf_clear(&c->in);
}

static bool
hello(struct conn *c)
{
	struct hello h = {0};
	enum egress_reason no;

	switch (hello_read(buf_view(&c->in), &h)) {
	case HELLO_MORE:
		if (c->ended)
			conn_drop(c, c->doomed != EGRESS_REASON_NONE ? c->doomed
								     : EGRESS_REASON_NOT_TLS);
		return false;
	case HELLO_NOT_TLS:
		conn_drop(c, c->doomed != EGRESS_REASON_NONE ? c->doomed : EGRESS_REASON_NOT_TLS);
		return false;
	case HELLO_LONG:
		conn_drop(c,
			c->doomed != EGRESS_REASON_NONE ? c->doomed : EGRESS_REASON_HEADER_LIMIT);
		return false;
	case HELLO_DONE:
		break;
	}
	if (c->doomed != EGRESS_REASON_NONE) {
		doomed_by_name(c, &h);
		return false;
	}
	no = judge_hello(c, &h);
	if (no != EGRESS_REASON_NONE) {
		if (no != EGRESS_REASON_ECH)
			say_unrecognized(c);
		struct verdict_of v;

		conn_verdict(c, VERDICT_REFUSED, no, &v);
		verdict_tell(c->g, &v);
		conn_close(c, false);
		return false;
	}
	if (c->at.scheme == EGRESS_SCHEME_PASSTHROUGH) {
		conn_step(c, CONN_ON_TUNNEL);
		conn_due(c, LIMIT_WAIT_MS);
		return true;
	}
	serve_tls(c);
	return false;
}

/* ---- events of the program's stream ---- */

/* How many bytes of the program may be here without being used. */
static size_t
ahead(const struct conn *c)
{
	switch (c->state) {
	case CONN_HELLO:
		return HELLO_ROOM;
	case CONN_HEAD:
		return SIZE_MAX; /* the head has its own limit */
	case CONN_ASK:
	case CONN_BROKER:
		return LIMIT_AHEAD;
	case CONN_RELAY:
		return exchange_ahead(c);
	case CONN_ADMIT:
	case CONN_SHAKE:
	case CONN_OPAQUE:
	case CONN_TUNNEL:
	case CONN_LINGER:
	case CONN_CLOSED:
	case CONN_STATES:
		break;
	}
	return 0;
}

static void
watch(struct conn *c)
{
	if (c->state == CONN_CLOSED || c->state == CONN_TUNNEL || c->state == CONN_SHAKE)
		return;
	stream_want_read(c->out.stream, !c->ended && c->in.n < ahead(c));
	if (c->in.n == 0 && c->in.cap > CONN_PIECE)
		buf_done(&c->in);
}

void
conn_run(struct conn *c)
{
	bool more = true;

	while (more) {
		switch (c->state) {
		case CONN_ADMIT:
			more = admit(c);
			break;
		case CONN_HELLO:
			more = hello(c);
			break;
		case CONN_HEAD:
			more = exchange_head(c);
			break;
		case CONN_ASK:
			more = exchange_ask(c);
			break;
		case CONN_RELAY:
			more = exchange_relay(c);
			break;
		case CONN_LINGER:
			if (outbox_left(&c->out) == 0)
				conn_close(c, false);
			more = false;
			break;
		case CONN_OPAQUE:
			through_ask(c);
			more = false;
			break;
		case CONN_SHAKE:
		case CONN_BROKER:
		case CONN_TUNNEL:
		case CONN_CLOSED:
			more = false;
			break;
		case CONN_STATES:
			must(false);
		}
	}
	watch(c);
}

static void
on_readable(void *owner)
{
	struct conn *c = owner;
	size_t room = ahead(c);

	while (!c->ended && c->in.n < room) {
		uint8_t *piece = conn_scratch();
		ssize_t n = stream_read(c->out.stream, piece, CONN_PIECE);

		if (n == -EAGAIN)
			break;
		if (n < 0)
			return; /* it is told of by on_failed */
		c->ended = n == 0;
		buf_add(&c->in, piece, (size_t)n);
		if (n < CONN_PIECE && stream_fd(c->out.stream) >= 0)
			break;
		if (c->in.n >= CONN_PIECE)
			break; /* the rest is told of again */
	}
	if (buf_check(&c->in) < 0) {
		conn_drop(c, EGRESS_REASON_HEADER_LIMIT);
		return;
	}
	conn_run(c);
}

static void
on_writable(void *owner)
{
	struct conn *c = owner;

	if (outbox_flush(&c->out, conn_now(c)) < 0)
		return; /* on_failed */
	exchange_room(c);
	conn_run(c);
}

static void
on_shaken(void *owner)
{
	struct conn *c = owner;

	conn_step(c, CONN_ON_SHAKEN);
	exchange_expect(c);
	conn_run(c);
}

static void
on_failed(void *owner, const struct err *why)
{
	struct conn *c = owner;

	if (c->state == CONN_SHAKE) {
		conn_drop(c, why->code == -ECONNABORTED ? EGRESS_REASON_CLIENT_CA
			     : why->code == -ECONNRESET ? EGRESS_REASON_CLOSED
							: EGRESS_REASON_NOT_TLS);
		return;
	}
	exchange_lost(c);
	conn_close(c, true);
}

static const struct stream_events events = {on_readable, on_writable, on_shaken, on_failed};

/* ---- time ---- */

static void
on_timer(struct ev_loop *loop, ev_timer *w, int revents)
{
	struct conn *c = container_of(w, struct conn, timer);
	ev_tstamp in = c->due - ev_now(loop);

	(void)revents;
	if (in > 0) {
		ev_timer_set(&c->timer, in, 0);
		ev_timer_start(loop, &c->timer);
		return;
	}
	switch (c->state) {
	case CONN_ADMIT:
		conn_drop(c, EGRESS_REASON_QUOTA);
		return;
	case CONN_HELLO:
		conn_drop(c, c->doomed != EGRESS_REASON_NONE ? c->doomed : EGRESS_REASON_TIMEOUT);
		return;
	case CONN_SHAKE:
		conn_drop(c, EGRESS_REASON_TIMEOUT);
		return;
	case CONN_LINGER:
		conn_close(c, true);
		return;
	case CONN_HEAD:
	case CONN_ASK:
	case CONN_BROKER:
	case CONN_RELAY:
		exchange_late(c);
		conn_run(c);
		return;
	case CONN_OPAQUE:
		if (c->ask == NULL && c->up == NULL)
			conn_drop(c, EGRESS_REASON_QUOTA);
		return;
	case CONN_TUNNEL:
		through_late(c);
		return;
	case CONN_CLOSED:
	case CONN_STATES:
		return; /* what they wait for has its own time */
	}
}

/* ---- the beginning ---- */

void
conn_new(struct gateway *g, int fd, const struct meant *to)
{
	struct conn *c = calloc(1, sizeof(*c));
	int one = 1;

	if (c == NULL) {
		(void)close(fd); /* nothing was read of it */
		return;
	}
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)); /* else only slower */
	c->g = g;
	c->state = CONN_ADMIT;
	c->proxy = to->proxy;
	c->rule = EGRESS_NO_RULE;
	must(to->name.n <= HOST_NAME_MAX_BYTES);
	if (to->name.n > 0)
		memcpy(c->name, to->name.p, to->name.n);
	c->at = (struct egress_place){.name = view_of(c->name, to->name.n), .port = to->port};
	buf_init(&c->in, LIMIT_AHEAD + 2 * CONN_PIECE);
	ev_init(&c->timer, on_timer);
	list_append(&g->conns, &c->link);
	g->nconns++;
	outbox_init(&c->out, stream_new(g->loop, fd, &events, c), conn_now(c));
	if (c->out.stream == NULL) {
		conn_close(c, true);
		return;
	}
	conn_due(c, LIMIT_WAIT_MS);
	conn_run(c);
}
