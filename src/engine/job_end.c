/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a job: what the relay saw, what the guest claims and, when it did not end well, what the
 * kernel counted, become one reason; recorded, then answered.
 */
#include "engine/cell.h"
#include "engine/create.h"
#include "engine/job.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

#include <errno.h>

bool
job_needs_usage(const struct msg_job_ended *end)
{
	if (end->timed_out || end->cancelled || end->end == JOB_END_NOT_STARTED)
		return false;
	return end->end != JOB_END_EXITED || end->code != 0;
}

enum job_reason
job_reason_of(const struct msg_job_ended *end, const struct usage *before, const struct usage *now)
{
	if (end->timed_out)
		return JOB_REASON_TIMEOUT;
	if (end->cancelled)
		return JOB_REASON_CANCELLED;
	if (end->end == JOB_END_NOT_STARTED)
		return JOB_REASON_NOT_STARTED;
	if (job_needs_usage(end) && now != NULL) {
		if (now->oom_kills > before->oom_kills)
			return JOB_REASON_OOM;
		if (now->pids_refused > before->pids_refused)
			return JOB_REASON_PIDS;
		if (now->disk_free_bytes == 0 || now->inodes_free == 0)
			return JOB_REASON_DISK;
	}
	return end->end == JOB_END_EXITED ? JOB_REASON_EXITED : JOB_REASON_SIGNALLED;
}

/* ---- the record ---- */

static void
put_end(struct canon_writer *w, const void *arg)
{
	const struct job *j = arg;
	const struct msg_job_ended *m = &j->end;

	if (j->ended) {
		put_i64(w, "code", m->code);
		if (!digest_is_zero(m->content))
			put_digest(w, "content", m->content);
		put_u64(w, "cpu_us", m->cpu_us);
		put_bool(w, "holders", m->holders);
	}
	put_str(w, "kind", job_kind_text(j->kind));
	if (j->ended)
		put_u64(w, "memory_peak_bytes", m->memory_peak_bytes);
	put_str(w, "reason", job_reason_text(j->reason));
	if (j->ended) {
		put_u64(w, "stderr_kept", m->stderr_kept);
		put_u64(w, "stderr_seen", m->stderr_seen);
		put_u64(w, "stdin_bytes", m->stdin_bytes);
		put_u64(w, "stdout_kept", m->stdout_kept);
		put_u64(w, "stdout_seen", m->stdout_seen);
		put_u64(w, "wall_us", m->wall_us);
	}
}

/* Counters are claims of a process that may be taken over: bounded to what the store can hold. */
static uint64_t
bounded(uint64_t v)
{
	return v > INT64_MAX ? INT64_MAX : v;
}

static int
end_row(const struct job *j, struct err *err)
{
	const struct msg_job_ended *m = &j->end;
	auto_query struct query q = query_of(j->sandbox->engine->store, Q_JOB_END);

	arg_text(&q, job_reason_text(j->reason));
	arg_i64(&q, m->code);
	arg_u64(&q, m->holders);
	arg_u64(&q, clock_real_ms());
	arg_u64(&q, bounded(m->wall_us));
	arg_u64(&q, bounded(m->cpu_us));
	arg_u64(&q, bounded(m->memory_peak_bytes));
	arg_u64(&q, bounded(m->stdout_seen));
	arg_u64(&q, bounded(m->stdout_kept));
	arg_u64(&q, bounded(m->stderr_seen));
	arg_u64(&q, bounded(m->stderr_kept));
	arg_u64(&q, bounded(m->stdin_bytes));
	arg_digest(&q, m->content);
	arg_id(&q, &j->id);
	return query_run(&q, err);
}

/* The one place where the reason of a job changes. */
static int
job_step(struct job *j, enum job_reason reason, struct err *err)
{
	return job_next(j->reason, reason, &j->reason, err);
}

/* Inside the open transaction. */
static int
record(struct job *j, struct err *err)
{
	struct sandbox *s = j->sandbox;
	const struct audit_event ev = {.event = "job.end",
		.tenant = s->tenant,
		.task = &s->task,
		.sandbox = &s->id,
		.job = &j->id,
		.who = &principal_engine,
		.data = put_end,
		.arg = j};
	int r = end_row(j, err);

	if (r == 0 && j->cell_open)
		r = cell_record_lost(j, err);
	return r == 0 ? audit_append(s->engine, &ev, err) : r;
}

static int
record_alone(struct job *j, struct err *err)
{
	auto_tx struct tx tx = {0};
	int r = tx_begin(&tx, j->sandbox->engine->store, err);

	if (r == 0)
		r = record(j, err);
	return r == 0 ? tx_commit(&tx, err) : r;
}

static void
answer(struct job *j)
{
	list_each (w, &j->waiters, struct waiter, link)
		job_answer(j->sandbox->engine, &j->id, w->to);
}

void
job_finish(struct job *j, enum job_reason reason)
{
	struct sandbox *s = j->sandbox;
	bool input = j->input, good;
	struct err err;

	must(job_step(j, reason, &err) == 0);
	if (record_alone(j, &err) < 0) {
		log_line("the end of a command is not recorded yet: %s", err.text);
		j->reason =
			JOB_REASON_RUNNING; /* as the database has it; tried again by the tick */
		j->uncommitted = true;
		return;
	}
	good = reason == JOB_REASON_EXITED && j->end.code == 0 &&
	       memcmp(j->content, j->end.content, 32) == 0;
	answer(j);
	if (s->relay != NULL)
		IPC_SEND(s->relay, 0, JOB_RECORDED, job_recorded, {.job = j->id});
	sandbox_touch(s);
	job_free(j);
	if (input)
		create_input_done(s, good);
}

/* ---- messages ---- */

static void
ask_usage(struct job *j)
{
	struct sandbox *s = j->sandbox;
	static const struct reply nobody;
	struct waiter *w;
	struct err err;

	if (wait_add(s, WAIT_USAGE, nobody, &w, &err) < 0) {
		job_finish(j, job_reason_of(&j->end, &s->usage, NULL));
		return;
	}
	w->job = j;
	j->asked = true;
	IPC_SEND(s->engine->supervisor, 0, USAGE_ASK, usage_ask, {.sandbox = s->id});
}

void
job_usage(struct job *j, const struct usage *u)
{
	job_finish(j, job_reason_of(&j->end, &j->sandbox->usage, u));
}

int
on_job_ended(struct sandbox *s, const struct msg_job_ended *m, struct err *err)
{
	struct job *j = job_live(s, &m->job);

	if (j == NULL && s->resync_ms != 0) {
		/* After a restart: recorded before, and the relay was not told. */
		IPC_SEND(s->relay, 0, JOB_RECORDED, job_recorded, {.job = m->job});
		return 0;
	}
	if (j == NULL || j->ended)
		return err_set(err, -EPROTO, "JOB_ENDED for a job that does not run");
	j->ended = true;
	j->end = *m;
	/* While it ends, the supervisor answers GONE instead; then all of them end together. */
	if (job_needs_usage(m) && s->state != SANDBOX_STATE_STOPPING)
		ask_usage(j);
	else
		job_finish(j, job_reason_of(m, &s->usage, NULL));
	return 0;
}

/* ---- when its sandbox is gone ---- */

static enum job_reason
lost_reason(const struct job *j)
{
	if (j->ended)
		return job_reason_of(&j->end, &j->sandbox->usage, NULL);
	switch (j->sandbox->reason) {
	case SANDBOX_REASON_AGENT_LOST:
	case SANDBOX_REASON_RELAY_LOST:
	case SANDBOX_REASON_GATEWAY_LOST:
	case SANDBOX_REASON_PROTOCOL:
	case SANDBOX_REASON_ENGINE_RESTART:
		return JOB_REASON_AGENT_LOST;
	case SANDBOX_REASON_OOM:
		return JOB_REASON_OOM;
	case SANDBOX_REASON_NONE:
	case SANDBOX_REASON_KILLED:
	case SANDBOX_REASON_TTL:
	case SANDBOX_REASON_IDLE:
	case SANDBOX_REASON_TASK_CLOSED:
	case SANDBOX_REASON_SPAWN_FAILED:
	case SANDBOX_REASON_MEASURED_DIFFERENT:
	case SANDBOX_REASON_HOST_STOPPED:
	case SANDBOX_REASON_MAX:
		break;
	}
	return JOB_REASON_SANDBOX_ENDED;
}

int
jobs_record_lost(struct sandbox *s, struct err *err)
{
	int r = 0;

	list_each (j, &s->jobs, struct job, link) {
		enum job_reason before = j->reason;

		if (r < 0)
			return r;
		r = job_step(j, lost_reason(j), err);
		if (r == 0)
			r = record(j, err);
		j->reason = before; /* the caller may have to do it all again */
	}
	return r;
}

void
jobs_answer_lost(struct sandbox *s)
{
	list_each (j, &s->jobs, struct job, link) {
		answer(j);
		job_free(j);
	}
}
