/* SPDX-License-Identifier: Apache-2.0 */
/* Executions that are unknown; see reconcile.h. */
#include "engine/reconcile.h"

#include "engine/budgets.h"
#include "engine/limits.h"
#include "engine/proposal.h"
#include "engine/propose.h"
#include "engine/result.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

#include <errno.h>

enum { DUE_MAX = 16 };

/* ---- when ---- */

uint64_t
lookup_until(const struct operation *op, uint64_t started_ms)
{
	const struct capability *c = &op->provider.capability;

	if (c->lookup == LOOKUP_NONE)
		return started_ms + LIMIT_LEDGER_WINDOW_MS;
	return started_ms + (c->key_window_ms != 0 ? c->key_window_ms : LIMIT_LOOKUP_WINDOW_MS);
}

static bool
provider_tells(struct engine *e, const struct execution *x)
{
	const struct operation *op = catalogue_find(&e->catalogue, view_str(x->operation));

	return op != NULL && op->provider.capability.lookup != LOOKUP_NONE;
}

uint64_t
lookup_next(uint32_t lookups, uint64_t now_ms, uint64_t until_ms)
{
	static const uint32_t after_ms[] = {1000, 5000, 30000, 300000};
	uint64_t at = now_ms +
		      (lookups < ARRAY_LEN(after_ms) ? after_ms[lookups] : LIMIT_LOOKUP_EVERY_MS);

	return at < until_ms ? at : 0;
}

static int
set_next(struct execution *x, struct err *err)
{
	auto_query struct query q = query_of(x->engine->store, Q_EXECUTION_LOOKUP);

	arg_u64(&q, x->lookups);
	arg_u64(&q, x->lookup_ms);
	arg_id(&q, &x->id);
	return query_run(&q, err);
}

int
lookup_put_off(struct execution *x, struct err *err)
{
	x->lookups++;
	x->lookup_ms = lookup_next(x->lookups, clock_real_ms(), x->lookup_until_ms);
	return set_next(x, err);
}

/* ---- looking up ---- */

static int
read_record(struct engine *e, const struct id *id, struct proposal *p, struct err *err)
{
	int r;

	proposal_init(p, e);
	r = proposal_load(p, id, err);
	if (r == 0 && p->record.n == 0)
		return err_set(err, -EUCLEAN, "an execution without a record");
	return r;
}

static int
ask_provider(struct call *c, struct err *err)
{
	auto_proposal struct proposal p;
	int r = read_record(c->engine, &c->proposal, &p, err);

	if (r < 0)
		return r;
	c->kind = CALL_LOOKUP;
	c->bytes = 0;
	c->day = budget_day(clock_real_ms());
	c->wait.done = on_execution_told;
	r = BROKER_ASK(c->engine, &c->wait, LOOKUP_ASK, lookup_ask, EXECUTED, err,
		{.execution = c->execution, .record = buf_view(&p.record)});
	if (r < 0)
		c->kind = CALL_NONE;
	return r;
}

int
ledger_ask(struct call *c, struct err *err)
{
	int r;

	c->kind = CALL_ASK;
	c->wait.done = on_execution_told;
	r = BROKER_ASK(c->engine, &c->wait, EXECUTION_ASK, execution_ask, EXECUTED, err,
		{.execution = c->execution, .proposal = c->proposal});
	if (r < 0)
		c->kind = CALL_NONE;
	return r;
}

static int
look_up(const struct execution *x, struct call *c, struct err *err)
{
	return provider_tells(c->engine, x) ? ask_provider(c, err) : ledger_ask(c, err);
}

static int
due(struct engine *e, struct id *ret, size_t max, struct err *err)
{
	auto_query struct query q = query_of(e->store, Q_EXECUTION_DUE);
	int r, n = 0;

	arg_u64(&q, clock_real_ms());
	arg_u64(&q, max);
	for (r = query_next(&q, err); r > 0; r = query_next(&q, err))
		col_id(&q, &ret[n++]);
	return r < 0 ? r : n;
}

static int
look_up_one(struct engine *e, const struct id *id, struct err *err)
{
	auto_execution struct execution x;
	struct call *c;
	int r;

	execution_init(&x, e);
	r = execution_load(&x, id, err);
	if (r == 0)
		r = call_of(e, id, &x.proposal, &c, err);
	if (r < 0 || c->kind != CALL_NONE)
		return r;
	c->who = principal_engine;
	c->request_id[0] = '\0';
	r = look_up(&x, c, err);
	if (r < 0)
		call_drop(c);
	return r;
}

void
on_lookups(struct ev_loop *loop, ev_timer *w, int events)
{
	struct engine *e = container_of(w, struct engine, lookup);
	unsigned busy = call_count(e, CALL_LOOKUP, NULL);
	struct id ids[DUE_MAX];
	size_t room;
	struct err err = {0};
	int n, r = 0;

	(void)loop, (void)events;
	if (!broker_there(e))
		return; /* armed again by the next one */
	if (busy >= LIMIT_LOOKUPS)
		return; /* armed again by the next answer */
	room = LIMIT_LOOKUPS - busy;
	n = due(e, ids, room < DUE_MAX ? room : DUE_MAX, &err);
	for (int i = 0; r == 0 && i < n; i++)
		r = look_up_one(e, &ids[i], &err);
	if (n < 0 || r < 0)
		log_line("executions are not looked up: %s", err.text);
	/* What is with the broker arms it again with its answer. */
	if (n <= 0 || r < 0)
		executions_again(e);
}

static uint64_t
next(struct engine *e)
{
	auto_query struct query q = query_of(e->store, Q_EXECUTION_NEXT);
	struct err err;

	return query_one(&q, &err) < 0 ? 0 : col_u64(&q);
}

void
lookups_arm(struct engine *e)
{
	uint64_t at = next(e), now = clock_real_ms();

	ev_timer_stop(e->loop, &e->lookup);
	if (at == 0)
		return;
	ev_now_update(e->loop);
	/* One whose last look-up could not be recorded is due still: not in each turn. */
	ev_timer_set(&e->lookup,
		(double)(at > now + LIMIT_LOOKUP_MIN_MS ? at - now : LIMIT_LOOKUP_MIN_MS) / 1000,
		0);
	ev_timer_start(e->loop, &e->lookup);
}

/* ---- asked for ---- */

static void on_settled(struct broker_wait *w, const struct broker_answer *a);

static void
asked_by(struct call *c, const struct principal *p, struct view request_id)
{
	size_t n = request_id.n < sizeof(c->request_id) ? request_id.n : 0;

	c->who = *p;
	if (n > 0)
		memcpy(c->request_id, request_id.p, n);
	c->request_id[n] = '\0';
}

/* What the person signed must be about this execution: the broker tests the signature, not which request it came with. */
static int
read_settlement(struct execution *x, struct view bytes, enum attempt *ret, struct err *err)
{
	struct settlement_record record;
	char id[ID_TEXT];
	auto_buf struct buf room;
	struct err why;

	buf_init(&room, DECISION_RECORD_MAX);
	id_text(&x->id, ID_EXECUTION, id);
	if (settlement_record_read(bytes, &room, &record, &why) < 0)
		return DENY(err, RECORD_MALFORMED, "the settlement is not one: %s", why.text);
	if (!view_is(record.execution, id))
		return DENY(err, DIGEST, "the settlement is about another execution");
	*ret = record.succeeded ? ATTEMPT_SUCCEEDED : ATTEMPT_FAILED;
	return 0;
}

static int
settle(struct execution *x, struct call *c, const struct msg_reconcile *m, struct err *err)
{
	auto_proposal struct proposal p;
	int r = read_record(x->engine, &x->proposal, &p, err);

	if (r < 0)
		return r;
	buf_clear(&c->settlement);
	buf_clear(&c->signature);
	buf_add_view(&c->settlement, m->settlement);
	buf_add_view(&c->signature, m->signature);
	if (buf_check(&c->settlement) < 0 || buf_check(&c->signature) < 0)
		return err_set(err, -ENOMEM, "no memory for a settlement");
	c->kind = CALL_SETTLE;
	c->wait.done = on_settled;
	r = BROKER_ASK(x->engine, &c->wait, SETTLE_ASK, settle_ask, DECISION_IS, err,
		{.execution = x->id,
			.record = buf_view(&p.record),
			.settlement = m->settlement,
			.signature = m->signature});
	if (r < 0)
		c->kind = CALL_NONE;
	return r;
}

/* A repeated settlement says the same again, or contradicts what is recorded. */
static int
settled_before(struct execution *x, enum attempt outcome, struct reply to, struct err *err)
{
	bool same = x->state == EXECUTION_STATE_MANUAL ? x->settled == outcome
						       : (x->state == EXECUTION_STATE_SUCCEEDED) ==
								 (outcome == ATTEMPT_SUCCEEDED);

	if (!same)
		return REFUSE(err, CONFLICT, "the execution is %s already",
			execution_state_text(x->state));
	execution_answer(x, to);
	return 0;
}

static int
reconcile(struct execution *x, const struct principal *p, struct reply to,
	const struct msg_reconcile *m, struct err *err)
{
	enum attempt outcome = ATTEMPT_UNKNOWN;
	struct call *c;
	int r = m->settlement.n == 0 ? 0 : read_settlement(x, m->settlement, &outcome, err);

	if (r < 0)
		return r;
	if (!execution_is_open(x->state)) {
		if (m->settlement.n != 0)
			return settled_before(x, outcome, to, err);
		execution_answer(x, to);
		return 0;
	}
	if (x->state == EXECUTION_STATE_DISPATCHING)
		return REFUSE(err, CONFLICT,
			"the execution is being carried out; ask again when it ended");
	if (!broker_there(x->engine))
		return DENY(err, BROKER_UNAVAILABLE, "the broker is not there at the moment");
	r = call_of(x->engine, &x->id, &x->proposal, &c, err);
	if (r < 0)
		return r;
	if (c->kind != CALL_NONE && m->settlement.n != 0)
		return REFUSE(
			err, CONFLICT, "the broker is being asked about it; try again in a moment");
	if (c->kind == CALL_NONE && m->settlement.n == 0 &&
		call_count(x->engine, CALL_LOOKUP, NULL) >= LIMIT_LOOKUPS) {
		call_drop(c);
		return REFUSE(err, UNAVAILABLE,
			"as many executions are being looked up as may be at the same time; try "
			"again in a moment");
	}
	r = call_wait(c, to, WAITS_EXECUTION, err);
	if (r < 0) {
		call_drop(c);
		return r;
	}
	if (c->kind != CALL_NONE)
		return 0;
	asked_by(c, p, m->request_id);
	r = m->settlement.n != 0 ? settle(x, c, m, err) : look_up(x, c, err);
	if (r < 0) {
		call_refuse(c, err);
		call_drop(c);
	}
	return 0;
}

int
on_reconcile(struct engine *e, struct reply to, const struct msg_reconcile *m, struct err *err)
{
	auto_execution struct execution x;
	struct principal p;
	int r;

	execution_init(&x, e);
	r = caller_find(e, &m->caller, &p, err);
	if (r == 0)
		r = execution_find(&x, &p, &m->execution, err);
	if (r == 0 && (m->settlement.n == 0) != (m->signature.n == 0))
		return REFUSE(err, BAD_REQUEST, "a settlement comes with its signature");
	return r == 0 ? reconcile(&x, &p, to, m, err) : r;
}

/* ---- a person says ---- */

struct settled {
	const struct execution *x;
	const struct call *c;
	const struct msg_decision_is *by;
};

static void
put_settled(struct canon_writer *w, const void *arg)
{
	const struct settled *s = arg;
	uint8_t digest[SHA256_BYTES];

	put_view(w, "approver", s->by->approver);
	put_execution(w, s->x);
	put_view(w, "key", s->by->key);
	put_str(w, "operation", s->x->operation);
	put_str(w, "outcome", attempt_text(s->x->settled));
	put_execution_proposal(w, s->x);
	sha256_of(buf_view(&s->c->settlement), digest);
	put_digest(w, "settlement", digest);
}

static int
keep_settlement(
	struct execution *x, struct call *c, const struct msg_decision_is *by, struct err *err)
{
	auto_query struct query q = query_of(x->engine->store, Q_EXECUTION_SETTLED);

	arg_blob(&q, buf_view(&c->settlement));
	arg_blob(&q, buf_view(&c->signature));
	arg_view(&q, by->approver);
	arg_id(&q, &x->id);
	return query_run(&q, err);
}

static int
record_settled(struct call *c, const struct msg_decision_is *by, struct err *err)
{
	struct engine *e = c->engine;
	auto_execution struct execution x;
	const struct settled s = {.x = &x, .c = c, .by = by};
	auto_tx struct tx tx = {0};
	int r = tx_begin(&tx, e->store, err);

	execution_init(&x, e);
	if (r == 0)
		r = execution_load(&x, &c->execution, err);
	if (r == 0)
		r = read_settlement(&x, buf_view(&c->settlement), &x.settled, err);
	if (r < 0)
		return r;
	x.ended_ms = clock_real_ms();
	x.lookup_ms = 0;
	r = execution_move(&x, EXECUTION_SETTLE, err);
	if (r == 0)
		r = keep_settlement(&x, c, by, err);
	if (r == 0)
		r = execution_audit(&x, "execution.settled", &c->who, view_str(c->request_id),
			put_settled, &s, err);
	if (r == 0)
		r = tx_commit(&tx, err);
	if (r == 0)
		store_sync(e->store);
	return r;
}

/*
 * The ledger has its end already: somebody settled it, or it was looked up, and that was not recorded here. Then the ledger is the answer to
 * whoever settles it again.
 */
static bool
ended_before(struct call *c, enum denial denial)
{
	struct err err;

	return denial == DENIAL_STATE && ledger_ask(c, &err) == 0;
}

static void
on_settled(struct broker_wait *w, const struct broker_answer *a)
{
	struct call *c = container_of(w, struct call, wait);
	struct engine *e = c->engine;
	enum denial denial = a->denial != DENIAL_NONE ? a->denial : a->m.decision_is.denial;
	struct view text = a->denial != DENIAL_NONE ? a->text : a->m.decision_is.text;
	struct err err = {0};

	if (ended_before(c, denial))
		return;
	if (denial != DENIAL_NONE)
		err_denied(&err, denial, text);
	else
		(void)record_settled(c, &a->m.decision_is, &err);
	c->kind = CALL_NONE;
	if (err.code == 0)
		call_answer(c);
	else
		call_refuse(c, &err);
	lookups_arm(e);
	call_drop(c);
}
