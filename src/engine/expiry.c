/* SPDX-License-Identifier: Apache-2.0 */
/* Times of proposals, and their restart; see expiry.h. */
#include "engine/expiry.h"

#include "engine/budgets.h"
#include "engine/propose.h"
#include "lib/action/check.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

#include <errno.h>

enum { BATCH = 64 };

void
expiry_wake(struct engine *e)
{
	if (!ev_is_active(&e->actions))
		ev_timer_again(e->loop, &e->actions);
}

static void
put_why(struct canon_writer *w, const void *arg)
{
	const struct proposal *p = arg;

	put_str(w, "denial", denial_text(p->denial));
	put_str(w, "text", p->text);
}

static int
step(struct proposal *p, enum proposal_event event, enum denial denial, const char *text,
	const char *name, struct err *err)
{
	int r;

	proposal_deny(p, denial, view_str(text));
	r = proposal_step(p, event, err);
	if (r == 0)
		r = proposal_audit(p, name, &principal_engine, view_of(NULL, 0), put_why, p, err);
	return r;
}

int
expiry_step(struct proposal *p, enum denial denial, struct err *err)
{
	return step(p, PROPOSAL_EXPIRE, denial, denial_sentence(denial), "proposal.expired", err);
}

/* Is the broker asked about it? If not, its end could not be recorded when it came. */
static bool
is_checked(struct engine *e, const struct id *id)
{
	list_each (w, &e->broker.waits, struct broker_wait, link)
		if (w->expected == MSG_VERIFIED &&
			id_eq(&container_of(w, struct asked, wait)->proposal, id))
			return true;
	return false;
}

/* What the broker did for it is not known any more: all that was reserved. */
static int
give_up(struct proposal *p, struct err *err)
{
	const struct operation *op = catalogue_find(&p->engine->catalogue, view_str(p->operation));
	const struct budget_of of = {
		.task = p->task, .tenant = p->tenant, .day = budget_day(p->created_ms)};
	int r = step(p, PROPOSAL_DENY, DENIAL_AUDIT_UNAVAILABLE,
		denial_sentence(DENIAL_AUDIT_UNAVAILABLE), "proposal.denied", err);

	if (r == 0 && op != NULL && op->verify.n != 0)
		r = budget_call_settle(p->engine, &of, op->verify_provider.response_max, 1,
			op->verify_provider.response_max, err);
	return r;
}

/* One transaction for each: it is looked at again after the lock. */
static int
expire(struct engine *e, const struct id *id, struct err *err)
{
	auto_proposal struct proposal p;
	auto_tx struct tx tx = {0};
	int r = tx_begin(&tx, e->store, err);
	uint64_t now = clock_real_ms();

	proposal_init(&p, e);
	if (r == 0)
		r = proposal_load(&p, id, err);
	if (r < 0)
		return r;
	if (p.state == PROPOSAL_STATE_PENDING && now >= p.decide_by_ms)
		r = expiry_step(&p, DENIAL_DECIDE_EXPIRED, err);
	else if (p.state == PROPOSAL_STATE_APPROVED && now >= p.dispatch_by_ms)
		r = expiry_step(&p, DENIAL_DISPATCH_EXPIRED, err);
	else if (p.state == PROPOSAL_STATE_PROPOSED && !is_checked(e, id))
		r = give_up(&p, err);
	else
		return 0;
	return r == 0 ? tx_commit(&tx, err) : r;
}

/* Ids of a query, at most BATCH; how many. */
static int
take_ids(struct query *q, struct id ret[static BATCH], struct err *err)
{
	int r, n = 0;

	for (r = query_next(q, err); r > 0 && n < BATCH; r = query_next(q, err))
		col_id(q, &ret[n++]);
	return r < 0 ? r : n;
}

static int
due(struct engine *e, struct id ret[static BATCH], struct err *err)
{
	auto_query struct query q = query_of(e->store, Q_PROPOSAL_DUE);

	arg_u64(&q, clock_real_ms());
	return take_ids(&q, ret, err);
}

bool
expiry_tick(struct engine *e)
{
	struct id ids[BATCH];
	struct err err;
	int n = due(e, ids, &err), r = n < 0 ? n : 0;

	for (int i = 0; r == 0 && i < n; i++)
		r = expire(e, &ids[i], &err);
	if (r == 0) {
		auto_query struct query q = query_of(e->store, Q_PROPOSAL_OPEN_ALL);

		r = query_one(&q, &err);
		if (r == 0)
			return col_u64(&q) != 0;
	}
	log_line("proposals do not expire, tried again: %s", err.text);
	return true;
}

/* ---- restart ---- */

static enum denial
changed(const struct engine *e, const struct proposal *p)
{
	const struct operation *op = catalogue_find(&e->catalogue, view_str(p->operation));
	struct proposal_record r;
	auto_buf struct buf room;
	struct err err;

	buf_init(&room, PROPOSAL_RECORD_MAX);
	if (op == NULL)
		return DENIAL_OPERATION_UNKNOWN;
	if (proposal_record_read(buf_view(&p->record), &room, &r, &err) < 0)
		return DENIAL_RECORD_MALFORMED;
	if (memcmp(r.schema, op->schema, SHA256_BYTES) != 0)
		return DENIAL_SCHEMA_CHANGED;
	if (memcmp(r.adapter, op->adapter, SHA256_BYTES) != 0)
		return DENIAL_ADAPTER_CHANGED;
	if (memcmp(r.policy, op->policy, SHA256_BYTES) != 0)
		return DENIAL_POLICY_CHANGED;
	return DENIAL_NONE;
}

static int
restart_one(struct proposal *p, struct err *err)
{
	enum denial why;

	if (p->state == PROPOSAL_STATE_PROPOSED)
		return step(p, PROPOSAL_DENY, DENIAL_BROKER_UNAVAILABLE,
			"the host was restarted while it was checked; propose it again",
			"proposal.denied", err);
	why = changed(p->engine, p);
	if (why == DENIAL_NONE)
		return 0;
	return step(p, PROPOSAL_SUPERSEDE, why, denial_sentence(why), "proposal.superseded", err);
}

/* All of a state, one by one: each may leave it. */
static int
restart_all(struct engine *e, enum proposal_state state, struct err *err)
{
	uint64_t after = 0;
	int r = 0;

	for (;;) {
		auto_proposal struct proposal p;
		struct id id;

		proposal_init(&p, e);
		{
			auto_query struct query q = query_of(e->store, Q_PROPOSAL_IN);

			arg_text(&q, proposal_state_text(state));
			arg_u64(&q, after);
			r = query_next(&q, err);
			if (r <= 0)
				return r;
			col_id(&q, &id);
		}
		r = proposal_load(&p, &id, err);
		after = p.seq;
		if (r == 0)
			r = restart_one(&p, err);
		if (r < 0)
			return r;
	}
}

int
proposals_restart(struct engine *e, struct err *err)
{
	auto_tx struct tx tx = {0};
	int r = tx_begin(&tx, e->store, err);

	if (r == 0)
		r = budget_restart(e, err);
	if (r == 0)
		r = restart_all(e, PROPOSAL_STATE_PROPOSED, err);
	if (r == 0)
		r = restart_all(e, PROPOSAL_STATE_PENDING, err);
	if (r == 0)
		r = restart_all(e, PROPOSAL_STATE_APPROVED, err);
	if (r == 0)
		r = tx_commit(&tx, err);
	if (r == 0)
		expiry_wake(e);
	return r;
}
