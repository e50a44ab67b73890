/* SPDX-License-Identifier: Apache-2.0 */
/* Cells; see cell.h. */
#include "engine/cell.h"

#include "engine/limits.h"
#include "engine/redact.h"

struct record {
	const struct job *job;
	uint64_t number;
	const struct msg_cell_begin *begin; /* one of the two, or none: the job ended with it */
	const struct msg_cell_end *end;
};

static void
put_begin(struct canon_writer *w, const void *arg)
{
	const struct record *r = arg;
	auto_buf struct buf text;
	uint8_t digest[32];

	sha256_of(r->begin->code, digest);
	buf_init(&text, LIMIT_AUDIT_TEXT);
	redact_text(r->begin->code, LIMIT_AUDIT_TEXT, &text);
	put_u64(w, "cell", r->number);
	put_digest(w, "code_digest", digest);
	put_str(w, "source", "api");
	put_view(w, "text", buf_view(&text));
}

static void
put_end(struct canon_writer *w, const void *arg)
{
	const struct record *r = arg;

	put_u64(w, "cell", r->number);
	if (r->end == NULL) {
		put_str(w, "reason", job_reason_text(r->job->reason));
		put_str(w, "source", "engine");
		return;
	}
	put_i64(w, "code", r->end->code);
	put_str(w, "reason", job_reason_text(r->end->reason));
	put_str(w, "source", "api");
	put_u64(w, "stderr_seen", r->end->stderr_seen);
	put_u64(w, "stdout_seen", r->end->stdout_seen);
	put_u64(w, "wall_us", r->end->wall_us);
}

static int
append(const struct record *r, const struct principal *who, struct view request_id, struct err *err)
{
	struct sandbox *s = r->job->sandbox;
	const struct audit_event ev = {.event = r->begin != NULL ? "cell.start" : "cell.end",
		.tenant = s->tenant,
		.task = &s->task,
		.sandbox = &s->id,
		.job = &r->job->id,
		.who = who,
		.request_id = request_id,
		.data = r->begin != NULL ? put_begin : put_end,
		.arg = r};

	return audit_append(s->engine, &ev, err);
}

static int
append_alone(const struct record *r, const struct principal *who, struct view request_id,
	struct err *err)
{
	auto_tx struct tx tx = {0};
	int code = tx_begin(&tx, r->job->sandbox->engine->store, err);

	if (code == 0)
		code = append(r, who, request_id, err);
	return code == 0 ? tx_commit(&tx, err) : code;
}

int
cell_record_lost(const struct job *j, struct err *err)
{
	const struct record r = {.job = j, .number = j->cells};

	return append(&r, &principal_engine, view_of(NULL, 0), err);
}

/* The job that the api names: of this caller's tenant, in this sandbox, a command that runs. */
static int
find(struct engine *e, const struct caller *caller, const struct id *sandbox, const struct id *job,
	struct principal *ret_who, struct job **ret, struct err *err)
{
	struct sandbox *s = NULL;
	int r = caller_find(e, caller, ret_who, err);

	if (r == 0)
		r = sandbox_find_live(e, ret_who, sandbox, &s, err);
	if (r < 0)
		return r;
	*ret = job_live(s, job);
	if (*ret == NULL || (*ret)->kind != JOB_KIND_EXEC)
		return REFUSE(err, NOT_FOUND, "no such command runs in this sandbox");
	return 0;
}

int
on_cell_begin(struct engine *e, struct reply to, const struct msg_cell_begin *m, struct err *err)
{
	struct record record = {.begin = m};
	struct principal who;
	struct job *j = NULL;
	int r = find(e, &m->caller, &m->sandbox, &m->job, &who, &j, err);

	if (r == 0)
		r = job_sandbox_ready(j->sandbox, err);
	if (r < 0)
		return r;
	if (j->ended)
		return REFUSE(err, CONFLICT, "the command ended already");
	if (j->cell_open)
		return REFUSE(err, CONFLICT, "the code context is running something else");
	record.job = j;
	record.number = j->cells + 1;
	r = append_alone(&record, &who, m->request_id, err);
	if (r < 0)
		return r;
	j->cells++;
	j->cell_open = true;
	sandbox_touch(j->sandbox);
	REPLY(e, to, DONE, done, {0});
	return 0;
}

int
on_cell_end(struct engine *e, struct reply to, const struct msg_cell_end *m, struct err *err)
{
	struct record record = {.end = m};
	struct principal who;
	struct job *j = NULL;
	int r = find(e, &m->caller, &m->sandbox, &m->job, &who, &j, err);

	if (r < 0)
		return r;
	/* Why a process ended is decided here and not there: three reasons are left for the api. */
	if (m->reason != JOB_REASON_EXITED && m->reason != JOB_REASON_TIMEOUT &&
		m->reason != JOB_REASON_CANCELLED)
		return REFUSE(err, BAD_REQUEST, "a cell does not end that way");
	if (!j->cell_open)
		return REFUSE(err, CONFLICT, "no cell is open in this command");
	record.job = j;
	record.number = j->cells;
	r = append_alone(&record, &who, view_of(NULL, 0), err);
	if (r < 0)
		return r;
	j->cell_open = false;
	sandbox_touch(j->sandbox);
	REPLY(e, to, DONE, done, {0});
	return 0;
}
