/* SPDX-License-Identifier: Apache-2.0 */
/* Results of executions; see result.h. */
#include "engine/result.h"

#include "engine/begin.h"
#include "engine/budgets.h"
#include "engine/limits.h"
#include "engine/outbox.h"
#include "engine/proposal.h"
#include "engine/quarantine.h"
#include "engine/reconcile.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/utf8.h"

#include <errno.h>

/* ---- members of records ---- */

void
put_execution(struct canon_writer *w, const struct execution *x)
{
	char text[ID_TEXT];

	id_text(&x->id, ID_EXECUTION, text);
	put_str(w, "execution", text);
}

void
put_execution_proposal(struct canon_writer *w, const struct execution *x)
{
	char text[ID_TEXT];

	id_text(&x->proposal, ID_PROPOSAL, text);
	put_str(w, "proposal", text);
}

struct told_of {
	const struct execution *x;
	const struct msg_executed *m;
};

static void
put_result(struct canon_writer *w, const void *arg)
{
	const struct told_of *t = arg;
	const struct execution *x = t->x;

	put_str(w, "attempt", attempt_text(t->m->attempt));
	put_u64(w, "bytes", t->m->bytes);
	put_u64(w, "calls", t->m->calls);
	put_str(w, "denial", denial_text(x->denial));
	put_u64(w, "ended_ms", x->ended_ms);
	put_execution(w, x);
	put_u64(w, "first_byte_us", x->first_byte_us);
	put_bool(w, "incident", x->incident);
	put_str(w, "operation", x->operation);
	put_execution_proposal(w, x);
	/* A receipt that is too large for a record is in the row; its digest is here. */
	if (x->receipt.n <= 2048) {
		put_view(w, "receipt", buf_view(&x->receipt));
	} else {
		uint8_t digest[SHA256_BYTES];

		sha256_of(buf_view(&x->receipt), digest);
		put_digest(w, "receipt_digest", digest);
	}
	put_digest(w, "response", x->response);
	put_u64(w, "sends", x->sends);
	put_u64(w, "spent_ms", x->spent_ms);
	put_str(w, "state", execution_state_text(x->state));
	put_u64(w, "status", x->status);
	put_str(w, "text", x->text);
}

static void
put_incident(struct canon_writer *w, const void *arg)
{
	const struct execution *x = arg;
	char task[ID_TEXT], suggestion[64];

	put_execution(w, x);
	put_str(w, "operation", x->operation);
	put_execution_proposal(w, x);
	put_str(w, "provider_account", x->provider_account);
	id_text(&x->task, ID_TASK, task);
	(void)snprintf(suggestion, sizeof(suggestion), "demilune contain %s", task);
	put_str(w, "suggestion", suggestion);
	put_str(w, "text", x->text);
}

/* ---- a result into the row ---- */

static enum execution_event
event_of(enum attempt a)
{
	switch (a) {
	case ATTEMPT_SUCCEEDED:
		return EXECUTION_SUCCEED;
	case ATTEMPT_UNKNOWN:
		return EXECUTION_LOSE;
	case ATTEMPT_UNSEEN:
	case ATTEMPT_DENIED:
	case ATTEMPT_NOT_SENT:
	case ATTEMPT_FAILED:
		return EXECUTION_FAIL;
	case ATTEMPT_MAX:
		break;
	}
	must(false);
}

/* At most size - 1 bytes, at a whole character. */
static size_t
fitting(struct view v, size_t size)
{
	size_t n = 0;

	while (n < v.n) {
		uint32_t point;
		int step = utf8_next(view_skip(v, n), &point);
		size_t next = n + (size_t)(step < 0 ? -step : step);

		if (next >= size)
			break;
		n = next;
	}
	return n;
}

/* An incident says what to do about it, in front. */
static void
set_text(struct execution *x, struct view text)
{
	char task[ID_TEXT];
	size_t n = 0;

	if (x->incident) {
		id_text(&x->task, ID_TASK, task);
		n = (size_t)snprintf(x->text, sizeof(x->text),
			"incident, stop the task with `demilune contain %s`: ", task);
	}
	if (text.n > 0) {
		size_t more = fitting(text, sizeof(x->text) - n);

		memcpy(x->text + n, text.p, more);
		n += more;
	}
	x->text[n] = '\0';
}

static int
take(struct execution *x, const struct msg_executed *m, const struct call *c, struct err *err)
{
	bool unseen = m->attempt == ATTEMPT_UNSEEN;
	uint64_t now = clock_real_ms();

	x->denial = unseen ? DENIAL_BROKER_UNAVAILABLE : m->denial;
	if (m->attempt == ATTEMPT_FAILED && x->denial == DENIAL_NONE)
		x->denial = DENIAL_PROVIDER_ANSWER;
	x->incident = x->incident || m->incident;
	x->status = m->status != 0 ? m->status : x->status;
	if (m->sends > x->sends)
		x->sends = m->sends;
	x->spent_ms = m->spent_ms != 0 ? m->spent_ms : x->spent_ms;
	x->first_byte_us = m->first_byte_us != 0 ? m->first_byte_us : x->first_byte_us;
	if (!digest_is_zero(m->response))
		memcpy(x->response, m->response, 32);
	set_text(x, unseen ? view_str("it was never sent: engine or broker was restarted before")
			   : m->text);
	/* A look-up that finds nothing does not take away what an answer said before. */
	if (x->receipt.n == 0 || !view_is(m->receipt, "{}")) {
		buf_clear(&x->receipt);
		buf_add_view(&x->receipt, m->receipt);
	}
	if (buf_check(&x->receipt) < 0)
		return err_set(err, -ENOMEM, "no memory for a receipt");
	if (m->attempt != ATTEMPT_UNKNOWN) {
		x->ended_ms = m->ended_ms != 0 ? m->ended_ms : now;
		x->lookup_ms = 0;
		return 0;
	}
	if (c->kind == CALL_LOOKUP || x->state == EXECUTION_STATE_UNKNOWN)
		x->lookups++;
	x->lookup_ms = lookup_next(x->lookups, now, x->lookup_until_ms);
	return 0;
}

static int
step_proposal(struct execution *x, enum execution_event event, struct err *err)
{
	static const enum proposal_event events[EXECUTION_EVENT_MAX] = {
		[EXECUTION_SUCCEED] = PROPOSAL_SUCCEED,
		[EXECUTION_FAIL] = PROPOSAL_FAIL,
		[EXECUTION_LOSE] = PROPOSAL_LOSE,
		[EXECUTION_SETTLE] = PROPOSAL_SETTLE};
	auto_proposal struct proposal p;
	int r;

	proposal_init(&p, x->engine);
	r = proposal_load(&p, &x->proposal, err);
	if (r < 0 || (event == EXECUTION_LOSE && p.state == PROPOSAL_STATE_UNKNOWN))
		return r;
	proposal_deny(&p, x->denial, view_str(x->text));
	/* What a person settled as not done may be asked for again. */
	p.is_void = event == EXECUTION_SETTLE && x->settled == ATTEMPT_FAILED;
	return proposal_step(&p, events[event], err);
}

/* Unknown keeps all that is reserved. */
static int
settle_budgets(struct execution *x, bool done, bool sent, struct err *err)
{
	const struct budget_of of = {.task = x->task,
		.tenant = x->tenant,
		.op = catalogue_find(&x->engine->catalogue, view_str(x->operation)),
		.day = x->day};
	uint64_t amount = x->amount > 0 ? (uint64_t)x->amount : 0;
	int r = budget_settle(x->engine, &of, COUNTER_ATTEMPTS, 1, sent ? 1 : 0, err);

	if (r == 0 && of.op != NULL && amount > 0)
		r = budget_settle(x->engine, &of, COUNTER_MONEY, amount, done ? amount : 0, err);
	return r;
}

int
execution_move(struct execution *x, enum execution_event event, struct err *err)
{
	int r = execution_step(x, event, err);

	if (r == 0)
		r = step_proposal(x, event, err);
	if (r < 0 || event == EXECUTION_LOSE)
		return r;
	if (event == EXECUTION_SETTLE)
		return settle_budgets(x, x->settled == ATTEMPT_SUCCEEDED, true, err);
	return settle_budgets(x, event == EXECUTION_SUCCEED, x->sends > 0, err);
}

static const char *
event_name(const struct execution *x, const struct call *c)
{
	switch (x->state) {
	case EXECUTION_STATE_SUCCEEDED:
		return "execution.succeeded";
	case EXECUTION_STATE_FAILED:
		return "execution.failed";
	case EXECUTION_STATE_UNKNOWN:
		return c->kind == CALL_LOOKUP ? "execution.lookup" : "execution.unknown";
	case EXECUTION_STATE_DISPATCHING:
	case EXECUTION_STATE_MANUAL:
	case EXECUTION_STATE_MAX:
		break;
	}
	must(false);
}

static int
record(struct execution *x, const struct msg_executed *m, const struct call *c, struct err *err)
{
	const struct told_of told = {.x = x, .m = m};
	bool was_unknown = x->state == EXECUTION_STATE_UNKNOWN, was_incident = x->incident;
	struct view id = view_str(c->request_id);
	int r = take(x, m, c, err);

	if (r == 0)
		r = execution_move(x, event_of(m->attempt), err);
	/* The broker was asked again and knows no more: nothing to record. */
	if (r < 0 || (was_unknown && x->state == EXECUTION_STATE_UNKNOWN && c->kind == CALL_ASK &&
			     x->incident == was_incident))
		return r;
	r = execution_audit(x, event_name(x, c), &c->who, id, put_result, &told, err);
	if (r == 0 && x->incident && !was_incident)
		r = execution_audit(x, "incident", &c->who, id, put_incident, x, err);
	return r;
}

/* Calls and bytes of this question; what was reserved for it is free again. */
static int
count(struct execution *x, struct call *c, uint32_t calls, uint64_t bytes, struct err *err)
{
	const struct budget_of of = {.task = x->task, .tenant = x->tenant, .day = c->day};
	int r;

	if (c->kind == CALL_EXECUTE)
		return budget_call_settle(x->engine, &of, c->bytes, calls, bytes, err);
	if (c->kind != CALL_LOOKUP)
		return 0;
	/* Looking up is never refused for want of budget, but it counts. */
	r = budget_settle(x->engine, &of, COUNTER_BROKER_CALLS, 0, calls, err);
	return r == 0 ? budget_settle(x->engine, &of, COUNTER_BROKER_BYTES, 0, bytes, err) : r;
}

/* UNSEEN is proof that nothing was sent, unless the ledger was once known to have it, or is not the one it was. */
static bool
unsure(const struct execution *x, const struct msg_executed *m)
{
	return m->attempt == ATTEMPT_UNSEEN &&
	       (x->spent_ms != 0 || x->sends != 0 || ledger_lost_since(x->engine, x->started_ms));
}

static int
apply(struct call *c, const struct msg_executed *m, struct err *err)
{
	struct engine *e = c->engine;
	const struct msg_executed lost = {.execution = m->execution,
		.attempt = ATTEMPT_UNKNOWN,
		.incident = true,
		.text = view_str(
			"the broker's ledger does not have it any more: nobody can say that "
			"it was not sent"),
		.receipt = view_str("{}")};
	auto_execution struct execution x;
	auto_tx struct tx tx = {0};
	int r = tx_begin(&tx, e->store, err);

	execution_init(&x, e);
	if (r == 0)
		r = execution_load(&x, &c->execution, err);
	if (r == 0)
		r = count(&x, c, m->calls, m->bytes, err);
	if (r == 0 && execution_is_open(x.state))
		r = record(&x, unsure(&x, m) ? &lost : m, c, err);
	if (r == 0)
		r = tx_commit(&tx, err);
	if (r == 0)
		store_sync(e->store);
	return r;
}

/* ---- the broker's answer ---- */

/* It has room for what waits to be begun. */
static void
begin_next(struct engine *e)
{
	if (!e->begin_waits)
		return;
	ev_timer_stop(e->loop, &e->again);
	ev_timer_set(&e->again, 0, 0);
	ev_timer_start(e->loop, &e->again);
}

static void
told(struct call *c, const struct msg_executed *m)
{
	struct engine *e = c->engine;
	struct err err;
	int r;

	if (!id_eq(&m->execution, &c->execution) ||
		(m->attempt == ATTEMPT_UNSEEN && c->kind != CALL_ASK))
		r = err_set(&err, -EPROTO, "the broker speaks of another execution");
	else
		r = apply(c, m, &err);
	c->kind = CALL_NONE;
	if (r < 0) {
		/* The ledger of the broker has it: it is asked again. */
		log_line("a result is not recorded yet: %s", err.text);
		executions_again(e);
		call_drop(c);
		return;
	}
	call_answer(c);
	lookups_arm(e);
	begin_next(e);
	call_drop(c);
}

/* Nothing was carried out, and nobody knows more. Whoever looked it up is told; who waits for its end waits. */
static void
no_answer(struct call *c, const struct broker_answer *a)
{
	struct engine *e = c->engine;
	enum call_kind kind = c->kind;
	const struct msg_executed none = {.execution = c->execution, .calls = 1, .bytes = c->bytes};
	auto_execution struct execution x;
	auto_tx struct tx tx = {0};
	struct err err;
	int r = tx_begin(&tx, e->store, &err);

	execution_init(&x, e);
	if (r == 0)
		r = execution_load(&x, &c->execution, &err);
	if (r == 0)
		r = count(&x, c, none.calls, none.bytes, &err);
	if (r == 0 && x.state == EXECUTION_STATE_UNKNOWN)
		r = lookup_put_off(&x, &err);
	if (r == 0)
		r = tx_commit(&tx, &err);
	if (r < 0)
		log_line("a question to the broker is not counted: %s", err.text);
	c->kind = CALL_NONE;
	if (kind == CALL_LOOKUP)
		call_answer(c);
	if (!a->lost)
		executions_again(e);
	lookups_arm(e);
	call_drop(c);
}

void
on_execution_told(struct broker_wait *w, const struct broker_answer *a)
{
	struct call *c = container_of(w, struct call, wait);
	struct err err;

	/* Not in the ledger: it is shut out first, and only that answer counts. */
	if (c->kind == CALL_LOOKUP && !a->lost && a->denial == DENIAL_STATE &&
		ledger_ask(c, &err) == 0)
		return;
	if (a->denial == DENIAL_NONE) {
		told(c, &a->m.executed);
		return;
	}
	if (!a->lost && c->kind == CALL_EXECUTE) {
		const struct msg_executed m = {.execution = c->execution,
			.attempt = ATTEMPT_DENIED,
			.denial = a->denial,
			.text = a->text,
			.receipt = view_str("{}")};

		told(c, &m);
		return;
	}
	no_answer(c, a);
}

/* ---- after a restart ---- */

static void
ask(struct engine *e, const struct id *execution, const struct id *proposal)
{
	struct call *c;
	struct err err;

	if (call_of(e, execution, proposal, &c, &err) < 0) {
		log_line("%s", err.text);
		return;
	}
	if (c->kind == CALL_NONE && ledger_ask(c, &err) < 0)
		call_drop(c);
}

static void
ask_all(struct engine *e)
{
	uint64_t after = 0;
	struct err err;

	for (;;) {
		struct id execution, proposal;

		{
			auto_query struct query q = query_of(e->store, Q_EXECUTION_DISPATCHING);

			arg_u64(&q, after);
			if (query_next(&q, &err) <= 0)
				return;
			after = col_u64(&q);
			col_id(&q, &execution);
			col_id(&q, &proposal);
		}
		ask(e, &execution, &proposal);
	}
}

/* It may be asked only when the store is known not to be older than what it signed. */
static bool
broker_accepted(struct engine *e)
{
	struct err err;

	if (e->broker.peer == NULL || !e->broker.told)
		return false;
	if (broker_there(e))
		return true;
	e->broker.peer->state = BROKER_LIVE;
	if (quarantine_check(e, &err) == 0) {
		outbox_start(e);
		return true;
	}
	log_line("the broker is not asked yet: %s", err.text);
	e->broker.peer->state = BROKER_NEW;
	executions_again(e);
	return false;
}

void
executions_resume(struct engine *e)
{
	ev_timer_stop(e->loop, &e->again);
	if (!broker_accepted(e))
		return;
	ask_all(e);
	execution_begin_all(e);
	lookups_arm(e);
}

void
on_executions_again(struct ev_loop *loop, ev_timer *w, int events)
{
	(void)loop, (void)events;
	executions_resume(container_of(w, struct engine, again));
}

void
executions_again(struct engine *e)
{
	if (ev_is_active(&e->again))
		return;
	ev_now_update(e->loop);
	ev_timer_set(&e->again, (double)LIMIT_AGAIN_MS / 1000, 0);
	ev_timer_start(e->loop, &e->again);
}
