/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tunnels: tcp and passthrough rules, and a WebSocket behind its 101. From here on bytes are counted, against the budgets of the task, and nothing
 * else is seen of them: methods and paths are not there any more. Policy, record and posture call such rules weak.
 */
#include "conn.h"

#include "allotment.h"
#include "exchange.h"
#include "limits.h"
#include "tunnel.h"
#include "upstream.h"
#include "verdict.h"

#include "lib/base/attr.h"

static void
verdict_of_it(const struct conn *c, enum verdict verdict, enum egress_reason reason,
	struct verdict_of *ret)
{
	if (c->x != NULL && c->x->switched)
		exchange_verdict(c, verdict, reason, ret);
	else
		conn_verdict(c, verdict, reason, ret);
}

/*
 * What a WebSocket moves is the body of its answer and of its request: the rule's maxima hold. A rule whose methods have no body has no
 * request_max; then the budget alone bounds what is said.
 */
static enum egress_reason
over_rule(const struct conn *c, enum tunnel_way way, size_t n)
{
	const struct exchange *x = c->x;
	uint64_t max;

	if (x == NULL || !x->switched)
		return EGRESS_REASON_NONE;
	max = way == TUNNEL_IN ? x->rule->response_max : x->rule->request_max;
	if ((way == TUNNEL_OUT && max == 0) || n <= max - x->passed[way])
		return EGRESS_REASON_NONE;
	return way == TUNNEL_IN ? EGRESS_REASON_RESP_LIMIT : EGRESS_REASON_BODY_LIMIT;
}

static enum tunnel_may
hold(struct conn *c, enum tunnel_way way)
{
	c->stopped = EGRESS_REASON_QUOTA;
	if (!allotment_coming(c->g))
		return TUNNEL_STOP;
	if (c->held[way] == 0) {
		c->held[way] = conn_now(c);
		conn_due(c, LIMIT_WAIT_MS);
	}
	return TUNNEL_HOLD;
}

static enum tunnel_may
on_pass(void *owner, enum tunnel_way way, size_t n)
{
	struct conn *c = owner;
	bool out = way == TUNNEL_OUT;
	struct verdict_of v;

	c->stopped = over_rule(c, way, n);
	if (c->stopped != EGRESS_REASON_NONE)
		return TUNNEL_STOP;
	if (!allotment_take(c->g, out ? OF_BYTES_OUT : OF_BYTES_IN, n))
		return hold(c, way);
	c->held[way] = 0;
	if (c->x != NULL)
		c->x->passed[way] += n;
	verdict_of_it(c, VERDICT_ALLOWED, EGRESS_REASON_NONE, &v);
	verdict_bytes(c->g, &v, out ? n : 0, out ? 0 : n);
	return TUNNEL_PASS;
}

static void
tell_aborted(const struct conn *c, enum egress_reason reason)
{
	struct verdict_of v;

	verdict_of_it(c, VERDICT_ABORTED, reason, &v);
	verdict_tell(c->g, &v);
}

static void
on_done(void *owner, enum tunnel_end end, const char *text)
{
	struct conn *c = owner;
	enum egress_reason reason = EGRESS_REASON_CLOSED;

	(void)text;
	c->tunnel = NULL;
	if (end == TUNNEL_STOPPED)
		reason = c->stopped;
	else if (end == TUNNEL_IDLE || end == TUNNEL_LIFE)
		reason = EGRESS_REASON_TIMEOUT;
	if (end != TUNNEL_CLEAN)
		tell_aborted(c, reason);
	conn_close(c, true);
}

/* An engine that says nothing does not hold it for ever. */
void
through_late(struct conn *c)
{
	ev_tstamp due = conn_now(c) - (double)(LIMIT_WAIT_MS - LIMIT_REST_MS) / 1e3;

	for (size_t i = 0; i < ARRAY_LEN(c->held); i++) {
		if (c->held[i] == 0)
			continue;
		if (c->held[i] <= due) {
			tell_aborted(c, EGRESS_REASON_QUOTA);
			conn_close(c, true);
			return;
		}
		conn_due(c, LIMIT_WAIT_MS);
	}
}

static const struct tunnel_events events = {on_pass, on_done};

void
through_begin(struct conn *c)
{
	const struct tunnel_limits limits = {
		.life_ms = LIMIT_TUNNEL_MS,
		.idle_ms = c->state == CONN_RELAY ? LIMIT_TUNNEL_IDLE_MS : 0,
	};
	struct err err = {0};

	conn_step(c, CONN_ON_OPEN);
	if (c->in.n > 0 && stream_unread(c->out.stream, buf_view(&c->in), &err) < 0) {
		tell_aborted(c, EGRESS_REASON_CLOSED); /* more than can wait for a tunnel */
		conn_close(c, true);
		return;
	}
	buf_done(&c->in);
	c->tunnel = tunnel_new(c->g->loop, take_ptr(c->out.stream),
		upstream_stream_take(take_ptr(c->up)), &limits, &events, c);
	if (c->tunnel == NULL)
		conn_close(c, true);
}

/* ---- a rule's tunnel ---- */

static void
refuse(struct conn *c, enum egress_reason reason)
{
	conn_drop(c, reason);
}

static void
on_kept(void *owner, enum egress_reason reason)
{
	struct conn *c = owner;

	c->wait = NULL;
	if (reason == EGRESS_REASON_NONE)
		through_begin(c);
	else
		refuse(c, reason);
}

static void
on_readable(void *owner)
{
	(void)owner; /* nothing is wanted of it before the tunnel has it */
}

static void
on_failed(void *owner, const struct err *why)
{
	(void)why;
	refuse(owner, EGRESS_REASON_UNREACHABLE);
}

static const struct stream_events waiting = {on_readable, on_readable, on_readable, on_failed};

static void
on_server(void *owner, enum egress_reason reason, struct upstream *up, const char *text)
{
	struct conn *c = owner;
	struct verdict_of v;
	struct verdict_wait *wait;

	(void)text;
	c->ask = NULL;
	if (reason != EGRESS_REASON_NONE) {
		refuse(c, reason);
		return;
	}
	c->up = up;
	stream_give(up->stream, &waiting, c);
	memcpy(c->address, up->address, sizeof(c->address));
	conn_verdict(c, VERDICT_ALLOWED, EGRESS_REASON_NONE, &v);
	wait = verdict_ask(c->g, &v, on_kept, c);
	if (c->state == CONN_OPAQUE)
		c->wait = wait;
}

void
through_ask(struct conn *c)
{
	struct upstream_ask *ask;

	if (c->ask != NULL || c->up != NULL)
		return;
	if (!allotment_name(c->g, c->at.name)) {
		if (!allotment_coming(c->g))
			refuse(c, EGRESS_REASON_QUOTA);
		return;
	}
	ask = upstream_get(c->g, c->rule, c->at.name, c->at.port, true, on_server, c);
	if (c->state == CONN_OPAQUE && c->up == NULL)
		c->ask = ask;
}
