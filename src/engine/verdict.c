/* SPDX-License-Identifier: Apache-2.0 */
/* Records of verdicts and flows; see verdict.h. The rows: net.c. */
#include "engine/verdict.h"

#include "engine/limits.h"
#include "engine/net.h"
#include "engine/propose.h"
#include "lib/base/clock.h"

#include <errno.h>

static int
append(struct gate *g, const char *event, void (*data)(struct canon_writer *, const void *),
	const void *arg, struct err *err)
{
	const struct principal who = principal_sandbox(&g->sandbox->id);

	return sandbox_audit(g->sandbox, event, &who, view_of(NULL, 0), data, arg, err);
}

static void
put_rule(struct canon_writer *w, const struct said *d)
{
	if (d->rule != EGRESS_NO_RULE)
		put_u64(w, "rule", d->rule + UINT64_C(1)); /* as people count them */
}

/* ---- verdicts ---- */

static void
put_verdict(struct canon_writer *w, const void *arg)
{
	const struct said *d = arg;

	if (d->address.n != 0)
		put_view(w, "address", d->address);
	if (!digest_is_zero(d->digest))
		put_digest(w, "digest", d->digest);
	if (d->method.n != 0)
		put_view(w, "method", d->method);
	put_view(w, "name", d->name);
	if (d->path.n != 0)
		put_path(w, "path", d->path);
	put_digest(w, "policy", d->gate->policy->digest);
	put_u64(w, "port", d->port);
	if (d->query.n != 0)
		put_strings(w, "query", d->query);
	put_str(w, "reason", egress_reason_text(d->reason));
	put_rule(w, d);
	put_str(w, "scheme", egress_scheme_text(d->scheme));
	put_str(w, "verdict", verdict_text(d->verdict));
}

int
verdict_write(struct said *d, struct err *err)
{
	int r = gate_may(d->gate, &d->result, err);

	if (r < 0 || d->result != EGRESS_REASON_NONE)
		return r;
	r = append(d->gate, "egress.verdict", put_verdict, d, err);
	/* Text that a record cannot hold: nothing of it was written, and nothing moves. */
	if (r == -EILSEQ || r == -E2BIG || r == -ENOBUFS) {
		d->result = EGRESS_REASON_AUDIT;
		return 0;
	}
	if (r == 0)
		r = net_add(d, err);
	return r == 0 ? request_add(d, err) : r;
}

void
verdict_written(struct said *d)
{
	struct gate *g = d->gate;
	struct kept *k = &g->kept[g->kept_next];

	if (d->result != EGRESS_REASON_NONE || d->verdict != VERDICT_ALLOWED ||
		g->policy->rule[d->rule].kind != RULE_KIND_BROKERED || digest_is_zero(d->digest))
		return;
	*k = (struct kept){.rule = d->rule, .until_ms = clock_mono_ms() + LIMIT_LEASE_MS};
	memcpy(k->digest, d->digest, 32);
	g->kept_next = (g->kept_next + 1) % KEPT_MAX;
}

/* ---- flows ---- */

static void
put_flow(struct canon_writer *w, const void *arg)
{
	const struct said *d = arg;

	put_u64(w, "bytes_in", d->bytes_in);
	put_u64(w, "bytes_out", d->bytes_out);
	put_u64(w, "count", d->count);
	put_view(w, "name", d->name);
	put_digest(w, "policy", d->gate->policy->digest);
	put_u64(w, "port", d->port);
	put_str(w, "reason", egress_reason_text(d->reason));
	put_rule(w, d);
	put_str(w, "scheme", egress_scheme_text(d->scheme));
	put_str(w, "verdict", verdict_text(d->verdict));
}

/* The sum of flows, which are in the rows each by itself. */
static void
put_untold(struct canon_writer *w, const void *arg)
{
	const struct gate *g = arg;

	put_u64(w, "bytes_in", g->untold.bytes_in);
	put_u64(w, "bytes_out", g->untold.bytes_out);
	put_u64(w, "count", g->untold.count);
	put_u64(w, "flows", g->untold.flows);
	put_digest(w, "policy", g->policy->digest);
}

int
untold_audit(struct gate *g, struct err *err)
{
	return g->untold.flows == 0 ? 0 : append(g, "egress.flows", put_untold, g, err);
}

int
flow_write(struct said *d, struct err *err)
{
	struct gate *g = d->gate;
	int r = 0;

	d->alone = tokens_take(
		&g->flows, LIMIT_FLOW_RECORD_BURST, LIMIT_FLOW_RECORD_PER_S, clock_mono_ms());
	if (d->alone) {
		r = untold_audit(g, err);
		d->sum = g->untold;
		g->untold = (struct untold){0};
	}
	if (r == 0 && d->alone)
		r = append(g, "egress.flow", put_flow, d, err);
	return r == 0 ? net_add(d, err) : r;
}

static uint64_t
sum(uint64_t a, uint64_t b)
{
	return a > INT64_MAX - b ? INT64_MAX : a + b;
}

/* What was recorded as a sum is not recorded. */
void
flow_undone(struct said *d)
{
	struct untold *u = &d->gate->untold;

	u->flows += d->sum.flows;
	u->count += d->sum.count;
	u->bytes_out = sum(u->bytes_out, d->sum.bytes_out);
	u->bytes_in = sum(u->bytes_in, d->sum.bytes_in);
	d->sum = (struct untold){0};
}

void
flow_written(struct said *d)
{
	struct gate *g = d->gate;

	g->bytes_out = sum(g->bytes_out, d->bytes_out);
	g->bytes_in = sum(g->bytes_in, d->bytes_in);
	if (d->alone)
		return;
	g->untold.flows++;
	g->untold.count += d->count;
	g->untold.bytes_out = sum(g->untold.bytes_out, d->bytes_out);
	g->untold.bytes_in = sum(g->untold.bytes_in, d->bytes_in);
}
