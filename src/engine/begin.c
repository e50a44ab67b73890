/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transaction before the first byte; see begin.h. Order: lock, clock, the engine's checks of lib/action/check.def for DISPATCH,
 * reservation, step, execution, audit; commit; fsync; then EXECUTE. It never sends what is not on disk, and never begins twice:
 * proposal_step refuses a row that is not approved any more, and the schema a second execution of a proposal.
 */
#include "engine/begin.h"

#include "engine/budgets.h"
#include "engine/call.h"
#include "engine/contain.h"
#include "engine/limits.h"
#include "engine/outbox.h"
#include "engine/proposal.h"
#include "engine/reconcile.h"
#include "engine/result.h"
#include "lib/action/check.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

#include <errno.h>

struct begin {
	struct engine *engine;
	struct proposal p;
	struct execution x;
	const struct operation *op; /* borrowed from the catalogue */
	struct buf approvals;
	struct buf room; /* of the record */
	struct proposal_record record;
	uint8_t digests[8][SHA256_BYTES]; /* of the decisions in `approvals` */
	size_t ndigests;
	const struct principal *who;
	struct view request_id;
	/* A check that failed, for good. */
	enum denial denial;
	char text[256];
};

static void
begin_init(struct begin *b, struct engine *e)
{
	*b = (struct begin){.engine = e};
	proposal_init(&b->p, e);
	execution_init(&b->x, e);
	buf_init(&b->approvals, 41000);
	buf_init(&b->room, PROPOSAL_RECORD_MAX);
}

static void
begin_done(struct begin *b)
{
	proposal_done(&b->p);
	execution_done(&b->x);
	buf_done(&b->approvals);
	buf_done(&b->room);
}
#define auto_begin __attribute__((cleanup(begin_done)))

/* ---- the checks; -EPERM with b->denial, or a fault ---- */

static int
deny(struct begin *b, enum denial denial)
{
	b->denial = denial;
	(void)snprintf(b->text, sizeof(b->text), "%s", denial_sentence(denial));
	return -EPERM;
}

/* The same with more to say. */
static int
deny_for(struct begin *b, enum denial denial, const char *why)
{
	b->denial = denial;
	(void)snprintf(b->text, sizeof(b->text), "%s: %s", denial_sentence(denial), why);
	return -EPERM;
}

/* Half-open: at its millisecond it is over. The clock is read after the lock was taken. */
static int
check_clock(struct begin *b)
{
	b->x.started_ms = clock_real_ms();
	if (b->x.started_ms < b->p.dispatch_by_ms)
		return 0;
	return deny(b, DENIAL_DISPATCH_EXPIRED);
}

static int
check_contained(struct begin *b, struct err *err)
{
	char scope[SCOPE_TEXT];
	enum denial denial;
	int r = contained(b->engine, b->p.tenant, &b->p.task, &denial, scope, err);

	return r < 0 || denial == DENIAL_NONE ? r : deny_for(b, denial, scope);
}

/* The broker takes so many at a time, and what it refuses is over; so what is too much waits here, where it stays approved. */
static int
check_room(struct begin *b, struct err *err)
{
	struct engine *e = b->engine;

	if (call_count(e, CALL_EXECUTE, NULL) < LIMIT_EXECUTES &&
		call_count(e, CALL_EXECUTE, b->p.tenant) < LIMIT_EXECUTES_PER_TENANT)
		return 0;
	e->begin_waits = true;
	return err_set(err, -EBUSY, "as many executions are under way as may be at the same time");
}

/* A closed task keeps what it proposed before; one of whose sandboxes something still stands sends nothing. */
static int
check_task(struct begin *b, struct err *err)
{
	auto_task struct task t;
	int r;

	task_init(&t, b->engine);
	r = task_load(&t, &b->p.task, err);
	if (r < 0 || t.state != TASK_STATE_MARKED)
		return r;
	return err_set(err, -EBUSY,
		"something of a sandbox of this task still stands on the host; nothing of it is "
		"sent until that is removed");
}

/* The pinned operation is the one that was shown: the broker refuses any other, so nothing is begun for it. */
static int
check_revisions(struct begin *b)
{
	const struct proposal_record *r = &b->record;

	b->op = catalogue_find(&b->engine->catalogue, view_str(b->p.operation));
	if (b->op == NULL)
		return deny(b, DENIAL_OPERATION_UNKNOWN);
	if (memcmp(r->schema, b->op->schema, SHA256_BYTES) != 0)
		return deny(b, DENIAL_SCHEMA_CHANGED);
	if (memcmp(r->adapter, b->op->adapter, SHA256_BYTES) != 0)
		return deny(b, DENIAL_ADAPTER_CHANGED);
	return memcmp(r->policy, b->op->policy, SHA256_BYTES) == 0 ? 0
								   : deny(b, DENIAL_POLICY_CHANGED);
}

static int
check_operation(struct begin *b, struct err *err)
{
	uint8_t digest[SHA256_BYTES];

	proposal_digest(buf_view(&b->p.record), digest);
	if (memcmp(digest, b->p.digest, sizeof(digest)) != 0)
		return deny(b, DENIAL_DIGEST);
	if (proposal_record_read(buf_view(&b->p.record), &b->room, &b->record, err) < 0)
		return deny(b, DENIAL_RECORD_MALFORMED);
	return check_revisions(b);
}

static int
check_grant(struct begin *b, struct err *err)
{
	auto_query struct query q = query_of(b->engine->store, Q_GRANT_HOLDS);
	int r;

	arg_id(&q, &b->p.grant);
	arg_id(&q, &b->p.task);
	r = query_next(&q, err);
	if (r <= 0)
		return r < 0 ? r : deny_for(b, DENIAL_NO_GRANT, "there is no such grant");
	if (col_u64(&q) != 0)
		return deny_for(b, DENIAL_NO_GRANT, "the grant was taken back");
	if (b->x.started_ms >= col_u64(&q))
		return deny_for(b, DENIAL_NO_GRANT, "the time of the grant is over");
	return 0;
}

static int
reserve(struct begin *b, struct err *err)
{
	const struct budget_of of = {.task = b->p.task,
		.tenant = b->p.tenant,
		.op = b->op,
		.day = budget_day(b->x.started_ms)};
	int r = budget_reserve(b->engine, &of, COUNTER_ATTEMPTS, 1, err);

	b->x.day = of.day;
	if (r == 0 && b->p.amount > 0)
		r = budget_reserve(b->engine, &of, COUNTER_MONEY, (uint64_t)b->p.amount, err);
	if (r == 0)
		r = budget_call_reserve(b->engine, &of, b->op->provider.response_max, err);
	return r == -EDQUOT ? deny_for(b, DENIAL_BUDGET, err->text) : r;
}

static int
check(struct begin *b, struct err *err)
{
	int r = check_clock(b);

	if (r == 0)
		r = check_contained(b, err);
	if (r == 0)
		r = check_task(b, err);
	if (r == 0)
		r = check_operation(b, err);
	if (r == 0)
		r = check_grant(b, err);
	if (r == 0)
		r = check_room(b, err);
	return r == 0 ? reserve(b, err) : r;
}

/* ---- what is written ---- */

static int
read_approvals(struct begin *b, struct err *err)
{
	auto_query struct query q = query_of(b->engine->store, Q_DECISION_SIGNED);
	int r;

	arg_id(&q, &b->p.id);
	for (r = query_next(&q, err); r > 0; r = query_next(&q, err)) {
		struct view decision = col_view(&q), signature = col_view(&q);

		if (b->ndigests == ARRAY_LEN(b->digests))
			return err_set(err, -EUCLEAN, "too many approvals of one proposal");
		approvals_put(&b->approvals, decision, signature);
		sha256_of(decision, b->digests[b->ndigests++]);
	}
	if (r == 0 && buf_check(&b->approvals) < 0)
		return err_set(err, -ENOMEM, "no memory for approvals");
	return r;
}

static int
write_execution(struct begin *b, struct err *err)
{
	struct execution *x = &b->x;
	const struct proposal *p = &b->p;

	x->proposal = p->id;
	x->task = p->task;
	(void)snprintf(x->tenant, sizeof(x->tenant), "%s", p->tenant);
	(void)snprintf(x->operation, sizeof(x->operation), "%s", p->operation);
	(void)snprintf(x->key, sizeof(x->key), "%.*s", VIEW_ARGS(b->record.idempotency_key));
	(void)snprintf(x->provider_account, sizeof(x->provider_account), "%.*s",
		VIEW_ARGS(b->record.provider_account));
	(void)snprintf(x->currency, sizeof(x->currency), "%s", p->currency);
	x->amount = p->amount;
	x->state = EXECUTION_STATE_DISPATCHING;
	x->lookup_until_ms = lookup_until(b->op, x->started_ms);
	return execution_insert(x, err);
}

static void
put_dispatching(struct canon_writer *w, const void *arg)
{
	const struct begin *b = arg;
	uint8_t key[SHA256_BYTES];

	put_digest(w, "adapter", b->record.adapter);
	put_i64(w, "amount", b->x.amount);
	canon_key(w, view_str("approvals"));
	canon_array_begin(w);
	for (size_t i = 0; i < b->ndigests; i++)
		canon_bytes_hex(w, view_of(b->digests[i], SHA256_BYTES));
	canon_array_end(w);
	put_digest(w, "catalogue", b->record.catalogue);
	put_str(w, "currency", b->x.currency);
	put_digest(w, "digest", b->p.digest);
	put_u64(w, "dispatch_by_ms", b->p.dispatch_by_ms);
	put_execution(w, &b->x);
	sha256_of(view_str(b->x.key), key);
	put_digest(w, "key_digest", key);
	put_digest(w, "policy", b->record.policy);
	put_execution_proposal(w, &b->x);
	put_str(w, "provider_account", b->x.provider_account);
	put_digest(w, "schema", b->record.schema);
}

static int
write_all(struct begin *b, struct err *err)
{
	int r = read_approvals(b, err);

	if (r == 0)
		r = proposal_step(&b->p, PROPOSAL_DISPATCH, err);
	if (r == 0)
		r = write_execution(b, err);
	if (r == 0)
		r = execution_audit(&b->x, "execution.dispatching", b->who, b->request_id,
			put_dispatching, b, err);
	return r;
}

/* 0: it is dispatching, and on disk. */
static int
commit_begin(struct begin *b, const struct id *proposal, struct err *err)
{
	auto_tx struct tx tx = {0};
	int r = tx_begin(&tx, b->engine->store, err);

	if (r == 0)
		r = proposal_load(&b->p, proposal, err);
	if (r == 0 && b->p.state != PROPOSAL_STATE_APPROVED)
		return err_set(err, -EALREADY, "it is %s", proposal_state_text(b->p.state));
	if (r == 0)
		r = check(b, err);
	if (r == 0)
		r = write_all(b, err);
	if (r == 0)
		r = tx_commit(&tx, err);
	if (r == 0)
		store_sync(b->engine->store);
	return r;
}

/* ---- after the transaction ---- */

static void
send_execute(struct begin *b, struct call *c)
{
	struct err err;

	c->kind = CALL_EXECUTE;
	memcpy(c->tenant, b->x.tenant, sizeof(c->tenant));
	c->bytes = b->op->provider.response_max;
	c->day = b->x.day;
	c->wait.done = on_execution_told;
	checkpoint_before(b->engine);
	if (BROKER_ASK(b->engine, &c->wait, EXECUTE, execute, EXECUTED, &err,
		    {.execution = b->x.id,
			    .proposal = b->p.id,
			    .record = buf_view(&b->p.record),
			    .approvals = buf_view(&b->approvals)}) < 0) {
		c->kind = CALL_NONE; /* nothing was sent: the next broker is asked and says so */
		executions_again(b->engine);
	}
}

static enum proposal_event
event_of(enum denial denial)
{
	if (denial == DENIAL_DISPATCH_EXPIRED)
		return PROPOSAL_EXPIRE;
	if (denial == DENIAL_CONTAINED || denial == DENIAL_RESTORED || denial == DENIAL_NO_GRANT)
		return PROPOSAL_REVOKE;
	if (denial == DENIAL_OPERATION_UNKNOWN || denial == DENIAL_SCHEMA_CHANGED ||
		denial == DENIAL_ADAPTER_CHANGED || denial == DENIAL_POLICY_CHANGED)
		return PROPOSAL_SUPERSEDE;
	return PROPOSAL_DENY;
}

/* A check failed for good: another proposal must be made and approved. */
static int
end_denied(struct begin *b, struct err *err)
{
	auto_tx struct tx tx = {0};
	int r = tx_begin(&tx, b->engine->store, err);

	if (r == 0)
		r = proposal_load(&b->p, &b->p.id, err);
	if (r < 0)
		return r;
	proposal_deny(&b->p, b->denial, view_str(b->text));
	r = proposal_step(&b->p, event_of(b->denial), err);
	if (r == 0)
		r = outbox_revoke(b->engine, &b->p.id, err);
	if (r == 0)
		r = proposal_audit(
			&b->p, "proposal.not_dispatched", b->who, b->request_id, NULL, NULL, err);
	if (r == 0)
		r = tx_commit(&tx, err);
	if (r == 0)
		store_sync(b->engine->store);
	return r;
}

static void
begun(struct begin *b, struct call *c, struct reply to)
{
	struct err err;

	send_execute(b, c);
	if (call_wait(c, to, WAITS_PROPOSAL, &err) < 0)
		answer_refused(b->engine, to, &err);
}

static int
try(struct begin *b, const struct id *proposal, struct reply to, struct err *err)
{
	struct engine *e = b->engine;
	struct call *c;
	int r;

	if (!broker_there(e))
		return err_set(err, -ENOTCONN, "the broker is not there at the moment");
	id_new(&b->x.id);
	r = call_of(e, &b->x.id, proposal, &c, err);
	if (r < 0)
		return r;
	c->who = *b->who;
	r = commit_begin(b, proposal, err);
	if (r == 0) {
		begun(b, c, to);
		return 0;
	}
	call_drop(c);
	if (r == -EPERM) {
		r = end_denied(b, err);
		outbox_tell(e);
	}
	return r < 0 ? r : 1;
}

/* It was begun before: whoever asks now waits for the same. */
static bool
wait_too(struct engine *e, const struct id *proposal, struct reply to)
{
	struct err err;

	list_each (c, &e->calls, struct call, link)
		if (id_eq(&c->proposal, proposal) && c->kind == CALL_EXECUTE)
			return call_wait(c, to, WAITS_PROPOSAL, &err) == 0;
	return false;
}

void
execution_begin(struct engine *e, const struct id *proposal, struct reply to,
	const struct principal *who, struct view request_id)
{
	auto_begin struct begin b;
	struct err err;
	int r;

	begin_init(&b, e);
	b.who = who;
	b.request_id = request_id;
	r = try(&b, proposal, to, &err);
	if (r == 0 || (r == -EALREADY && wait_too(e, proposal, to)))
		return;
	if (r < 0 && r != -EALREADY) {
		/* Once, not at each time that it is tried. */
		if (to.generation != 0)
			log_line("an approved proposal is not begun yet: %s", err.text);
		executions_again(e);
	}
	call_show(e, proposal, to);
}

void
execution_begin_all(struct engine *e)
{
	static const struct reply nobody;
	uint64_t after = 0;
	struct err err;

	e->begin_waits = false;
	while (call_count(e, CALL_EXECUTE, NULL) < LIMIT_EXECUTES) {
		struct id id;
		int r;

		{
			auto_query struct query q = query_of(e->store, Q_PROPOSAL_APPROVED);

			arg_u64(&q, after);
			r = query_next(&q, &err);
			if (r <= 0)
				break;
			after = col_u64(&q);
			col_id(&q, &id);
		}
		execution_begin(e, &id, nobody, &principal_engine, view_of(NULL, 0));
	}
	e->begin_waits |= call_count(e, CALL_EXECUTE, NULL) >= LIMIT_EXECUTES;
}
