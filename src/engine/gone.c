/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a sandbox; see gone.h. */
#include "engine/gone.h"

#include "engine/gate.h"
#include "engine/job.h"
#include "engine/key.h"
#include "engine/life.h"
#include "engine/limits.h"
#include "engine/loan.h"
#include "engine/stopping.h"
#include "engine/task.h"
#include "engine/verdict.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/ipc/teardown.h"

#include <errno.h>

/* ---- asked for ---- */

static void
put_kill(struct canon_writer *w, const void *arg)
{
	const struct sandbox *s = arg;

	put_str(w, "reason", sandbox_reason_text(s->killed_reason));
}

static int
set_state(struct sandbox *s, struct err *err)
{
	auto_query struct query q = query_of(s->engine->store, Q_SANDBOX_STATE);

	arg_text(&q, sandbox_state_text(s->state));
	arg_text(&q, sandbox_reason_text(s->reason));
	arg_id(&q, &s->id);
	return query_run(&q, err);
}

static int
record_kill(struct sandbox *s, const struct principal *who, struct view request_id, struct err *err)
{
	auto_tx struct tx tx = {0};
	int r = tx_begin(&tx, s->engine->store, err);

	if (r == 0)
		r = set_state(s, err);
	if (r == 0)
		r = sandbox_audit(s, "sandbox.kill", who, request_id, put_kill, s, err);
	return r == 0 ? tx_commit(&tx, err) : r;
}

void
sandbox_kill(struct sandbox *s, enum sandbox_reason reason, const struct principal *who,
	struct view request_id)
{
	struct engine *e = s->engine;
	struct err err;

	if (s->state == SANDBOX_STATE_STOPPING)
		return;
	must(sandbox_step(s, SANDBOX_KILL, &err) == 0);
	s->reason = reason;
	s->deadline_ms = clock_mono_ms() + LIMIT_STEP_MS;
	s->killed_reason = reason;
	if (record_kill(s, who, request_id, &err) < 0) {
		log_line("a kill is not recorded yet: %s", err.text);
		s->kill_due = true;
		s->killer = *who;
	}
	if (!s->asked) {
		/* The supervisor never heard of it: nothing is there. */
		const struct msg_gone none = {.sandbox = s->id, .reason = reason};

		sandbox_ended(s, &none, true);
		return;
	}
	IPC_SEND(e->supervisor, 0, KILL, kill, {.sandbox = s->id, .reason = reason});
	store_sync(e->store); /* while the supervisor works */
}

/* ---- told ---- */

struct end {
	const struct sandbox *s;
	const struct proof *proof; /* NULL: not known */
};

static void
put_gone(struct canon_writer *w, const void *arg)
{
	const struct end *end = arg;

	put_proof(w, "proof", end->proof);
	put_str(w, "reason", sandbox_reason_text(end->s->reason));
	put_str(w, "state", sandbox_state_text(end->s->state));
	put_usage(w, "usage", &end->s->usage);
}

static void
put_proof_only(struct canon_writer *w, const void *arg)
{
	put_proof(w, "proof", arg);
}

/* The body of GONE, as the row keeps it. */
static void
told(struct buf *b, const struct id *id, enum sandbox_reason reason, const struct proof *proof,
	const struct usage *usage)
{
	const struct msg_gone m = {
		.sandbox = *id, .reason = reason, .proof = *proof, .usage = *usage};

	buf_init(b, 4096);
	msg_gone_put(b, &m);
	must(buf_check(b) == 0);
}

static int
end_row(struct sandbox *s, struct err *err)
{
	auto_buf struct buf gone;
	auto_query struct query q = query_of(s->engine->store, Q_SANDBOX_END);

	told(&gone, &s->id, s->reason, &s->proof, &s->usage);
	arg_text(&q, sandbox_state_text(s->state));
	arg_text(&q, sandbox_reason_text(s->reason));
	arg_u64(&q, s->ended_ms);
	arg_u64(&q, s->residue);
	arg_blob(&q, buf_view(&gone));
	arg_id(&q, &s->id);
	return query_run(&q, err);
}

static int
audit_task(struct task *t, const struct id *sandbox, const char *event, const struct proof *proof,
	struct err *err)
{
	const struct audit_event ev = {.event = event,
		.tenant = t->tenant,
		.task = &t->id,
		.sandbox = sandbox,
		.who = &principal_engine,
		.data = put_proof_only,
		.arg = proof};

	return audit_append(t->engine, &ev, err);
}

static int
mark_task(struct sandbox *s, struct err *err)
{
	auto_task struct task t;
	int r;

	task_init(&t, s->engine);
	r = task_load(&t, &s->task, err);
	if (r == 0)
		r = task_step(&t, TASK_MARK, err);
	return r == 0 ? audit_task(&t, &s->id, "task.marked", &s->proof, err) : r;
}

/* What its gateway had on loan: used, when nobody can say how much of it was (what it said last was not read, too); else as it told. */
static int
settle_gate(struct sandbox *s, bool proof_known, struct err *err)
{
	struct gate *g = s->gate;
	bool all = !proof_known || g->broke || g->unheard ||
		   s->reason == SANDBOX_REASON_GATEWAY_LOST;
	int r = untold_audit(g, err);

	return r == 0 ? loan_settle(g, all, err) : r;
}

/* One transaction: what could not be recorded before, the jobs that ran, the sandbox, the mark of the task. */
static int
record_end(struct sandbox *s, bool proof_known, struct err *err)
{
	const struct end end = {.s = s, .proof = proof_known ? &s->proof : NULL};
	auto_tx struct tx tx = {0};
	int r = tx_begin(&tx, s->engine->store, err);

	if (r == 0 && s->frozen_due)
		r = frozen_audit(s, err);
	if (r == 0 && s->kill_due)
		r = sandbox_audit(
			s, "sandbox.kill", &s->killer, view_of(NULL, 0), put_kill, s, err);
	if (r == 0)
		r = jobs_record_lost(s, err);
	if (r == 0 && s->gate != NULL)
		r = settle_gate(s, proof_known, err);
	if (r == 0)
		r = end_row(s, err);
	if (r == 0 && s->boot_us == 0)
		r = key_forget(s->engine, &s->id, err);
	if (r == 0)
		r = sandbox_audit(s, "sandbox.gone", &principal_engine, view_of(NULL, 0), put_gone,
			&end, err);
	if (r == 0 && s->residue)
		r = mark_task(s, err);
	return r == 0 ? tx_commit(&tx, err) : r;
}

static void
answer_all(struct sandbox *s)
{
	struct err err;

	if (s->refusal[0] != '\0')
		(void)REFUSE(&err, SPAWN, "%s", s->refusal);
	else
		(void)REFUSE(&err, SPAWN, "the sandbox ended (%s) before it was ready",
			sandbox_reason_text(s->reason));
	wait_answer(s, WAIT_READY, &err);
	wait_answer(s, WAIT_GONE, NULL);
	(void)REFUSE(&err, SANDBOX_ENDED, "the sandbox ended (%s); make another one for its task",
		sandbox_reason_text(s->reason));
	wait_answer(s, WAIT_FROZEN, &err);
	wait_answer(s, WAIT_TTL, &err);
	wait_answer(s, WAIT_USAGE, &err);
}

/*
 * The supervisor saw what came first: that agent, relay or gateway is lost may be how a TTL or a lack of memory
 * looks from here. Any other reason for which we asked it to end holds.
 */
static enum sandbox_reason
reason_of_end(const struct sandbox *s, enum sandbox_reason told)
{
	bool lost = s->reason == SANDBOX_REASON_AGENT_LOST ||
		    s->reason == SANDBOX_REASON_RELAY_LOST ||
		    s->reason == SANDBOX_REASON_GATEWAY_LOST;

	if (s->state == SANDBOX_STATE_STOPPING && (!lost || told == SANDBOX_REASON_NONE))
		return s->reason;
	return told != SANDBOX_REASON_NONE ? told : SANDBOX_REASON_KILLED;
}

/* An end that nobody asked for, no limit wanted and no record of a refusal tells of. */
static void
log_unexpected(const struct sandbox *s)
{
	char name[ID_TEXT];

	if (s->reason != SANDBOX_REASON_AGENT_LOST && s->reason != SANDBOX_REASON_RELAY_LOST &&
		s->reason != SANDBOX_REASON_PROTOCOL && s->reason != SANDBOX_REASON_GATEWAY_LOST)
		return;
	id_text(&s->id, ID_SANDBOX, name);
	log_line("%s ended: %s", name, sandbox_reason_text(s->reason));
}

void
sandbox_ended(struct sandbox *s, const struct msg_gone *m, bool proof_known)
{
	struct engine *e = s->engine;
	enum sandbox_state before = s->state;
	struct msg_gone gone = *m; /* *m may be s->gone */
	struct err err;

	if (s->gate != NULL)
		gate_drain(s->gate);
	s->reason = reason_of_end(s, gone.reason);
	s->proof = gone.proof;
	s->usage = gone.usage;
	s->residue = proof_known && !proof_is_zero(&gone.proof);
	s->ended_ms = clock_real_ms();
	must(sandbox_step(s, SANDBOX_GONE, &err) == 0);
	if (record_end(s, proof_known, &err) < 0) {
		log_line("the end of a sandbox is not recorded yet: %s", err.text);
		s->state = before; /* as the database has it; tried again by the tick */
		s->uncommitted = true;
		s->proof_known = proof_known;
		s->gone = gone;
		return;
	}
	s->uncommitted = false;
	log_unexpected(s);
	store_sync(e->store);
	jobs_answer_lost(s);
	answer_all(s);
	sandbox_free(s);
	stopping_check(e);
}

/* ---- again ---- */

static int
residue_row(struct engine *e, const struct sandbox *s, struct err *err)
{
	auto_buf struct buf gone;
	auto_query struct query q = query_of(e->store, Q_SANDBOX_RESIDUE);

	told(&gone, &s->id, s->reason, &s->proof, &s->usage);
	arg_u64(&q, s->residue);
	arg_blob(&q, buf_view(&gone));
	arg_id(&q, &s->id);
	return query_run(&q, err);
}

static int
task_residue(struct engine *e, const struct id *task, uint64_t *ret, struct err *err)
{
	auto_query struct query q = query_of(e->store, Q_TASK_RESIDUE);
	int r;

	arg_id(&q, task);
	r = query_one(&q, err);
	if (r == 0)
		*ret = col_u64(&q);
	return r;
}

/* All of its sandboxes at zero: clean again. Otherwise marked. */
static int
settle_task(struct sandbox *s, struct err *err)
{
	auto_task struct task t;
	uint64_t left = 0;
	int r;

	task_init(&t, s->engine);
	r = task_load(&t, &s->task, err);
	if (r == 0)
		r = task_residue(s->engine, &s->task, &left, err);
	if (r < 0)
		return r;
	if (left != 0) {
		r = task_step(&t, TASK_MARK, err);
		return r == 0 ? audit_task(&t, &s->id, "task.marked", &s->proof, err) : r;
	}
	if (t.state != TASK_STATE_MARKED)
		return 0;
	r = task_step(&t, t.closed_ms != 0 ? TASK_RECLOSE : TASK_REOPEN, err);
	return r == 0 ? audit_task(&t, &s->id, "task.clean", &s->proof, err) : r;
}

int
gone_again(struct engine *e, const struct msg_gone *m, struct err *err)
{
	auto_sandbox struct sandbox *s = sandbox_load(e, &m->sandbox, err);
	auto_tx struct tx tx = {0};
	bool before;
	int r;

	if (s == NULL)
		return err->code;
	before = s->residue;
	s->residue = !proof_is_zero(&m->proof);
	if (!before && !s->residue)
		return 0; /* said twice, the same */
	s->proof = m->proof;
	r = sandbox_step(s, SANDBOX_AGAIN, err);
	if (r == 0)
		r = tx_begin(&tx, e->store, err);
	if (r == 0)
		r = residue_row(e, s, err);
	if (r == 0)
		r = sandbox_audit(s, s->residue ? "sandbox.residue" : "sandbox.clean",
			&principal_engine, view_of(NULL, 0), put_proof_only, &s->proof, err);
	if (r == 0)
		r = settle_task(s, err);
	return r == 0 ? tx_commit(&tx, err) : r;
}

int
on_gone(struct engine *e, const struct msg_gone *m, struct err *err)
{
	struct sandbox *s = sandbox_live(e, &m->sandbox);
	struct err why;

	(void)err;
	if (s != NULL && !s->asked && !s->held)
		return err_set(err, -EPROTO, "GONE for a sandbox that was never asked for");
	if (s != NULL)
		sandbox_ended(s, m, true);
	else if (gone_again(e, m, &why) < 0 && why.code != -ENOENT)
		log_line("what was left of a sandbox is not recorded: %s", why.text);
	return 0;
}
