/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs: objects, start and requests; see job.h. */
#include "engine/job.h"

#include "engine/limits.h"
#include "engine/redact.h"
#include "engine/template.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/loop/loop.h"

#include <errno.h>

enum { UID_AGENT = 10001, UID_ROOT = 0, ENV_MAX = 32768 };

/* ---- objects ---- */

int
job_new(struct sandbox *s, const struct id *id, enum job_kind kind, struct job **ret,
	struct err *err)
{
	struct job *j = calloc(1, sizeof(*j));

	if (j == NULL)
		return err_set(err, -ENOMEM, "no memory for a job");
	j->sandbox = s;
	j->id = *id;
	j->kind = kind;
	j->reason = JOB_REASON_RUNNING;
	list_init(&j->waiters);
	list_append(&s->jobs, &j->link);
	s->jobs_n++;
	*ret = j;
	return 0;
}

struct job *
job_live(struct sandbox *s, const struct id *id)
{
	list_each (j, &s->jobs, struct job, link)
		if (id_eq(&j->id, id))
			return j;
	return NULL;
}

void
job_free(struct job *j)
{
	list_each (w, &j->waiters, struct waiter, link) {
		list_remove(&w->link);
		free(w);
	}
	/* An answer to USAGE_ASK may still come for it. */
	list_each (w, &j->sandbox->waiters, struct waiter, link)
		if (w->job == j)
			w->job = NULL;
	list_remove(&j->link);
	j->sandbox->jobs_n--;
	loop_free_later(j->sandbox->engine->loop, j);
}

static int
job_wait(struct job *j, struct reply to, struct err *err)
{
	struct waiter *w = calloc(1, sizeof(*w));

	if (w == NULL)
		return err_set(err, -ENOMEM, "no memory for a request");
	w->to = to;
	list_append(&j->waiters, &w->link);
	return 0;
}

/* ---- rows ---- */

static int
send_row(struct engine *e, struct query *q, struct reply to, struct err *err)
{
	struct msg_job_row row = {0};
	struct view kind, reason;

	col_id(q, &row.job);
	col_id(q, &row.sandbox);
	kind = col_view(q);
	reason = col_view(q);
	if (job_kind_parse(kind, &row.kind) < 0 || job_reason_parse(reason, &row.reason) < 0)
		return err_set(err, -EUCLEAN, "a job without kind or reason");
	row.code = (int32_t)col_i64(q);
	row.uid = (uint32_t)col_u64(q);
	row.holders = col_u64(q) != 0;
	row.timeout_ms = col_u64(q);
	row.started_ms = col_u64(q);
	row.ended_ms = col_u64(q);
	row.wall_us = col_u64(q);
	row.cpu_us = col_u64(q);
	row.memory_peak_bytes = col_u64(q);
	row.stdout_seen = col_u64(q);
	row.stdout_kept = col_u64(q);
	row.stderr_seen = col_u64(q);
	row.stderr_kept = col_u64(q);
	row.stdin_bytes = col_u64(q);
	col_digest(q, row.content);
	col_digest(q, row.argv_digest);
	row.text = col_view(q);
	row.cwd = col_view(q);
	if (sandbox_reason_parse(col_view(q), &row.sandbox_reason) < 0)
		return err_set(err, -EUCLEAN, "a job of a sandbox without a reason");
	REPLY(e, to, JOB_ROW, job_row, row);
	return 0;
}

void
job_answer(struct engine *e, const struct id *id, struct reply to)
{
	auto_query struct query q = query_of(e->store, Q_JOB_GET);
	struct err err;
	int r;

	if (!reply_alive(e, to))
		return;
	arg_id(&q, id);
	r = query_one(&q, &err);
	if (r == 0)
		r = send_row(e, &q, to, &err);
	if (r < 0)
		answer_refused(e, to, &err);
}

/* ---- start ---- */

struct start {
	const struct msg_job_run *m;
	const struct principal *who;
	struct id id;
	uint8_t argv_digest[32];
	struct buf text; /* redacted command, or the path */
};

static bool
strings_ok(struct view v)
{
	return v.n == 0 || v.p[v.n - 1] == '\0';
}

static int
check_exec(const struct msg_job_run *m, struct err *err)
{
	struct view left = m->argv;
	unsigned n = 0;

	for (; left.n > 0; n++)
		left = view_skip(left, strlen((const char *)left.p) + 1);
	if (n == 0 || m->argv.p[0] == '\0')
		return REFUSE(err, BAD_REQUEST, "the command is empty");
	if (m->shell && n != 1)
		return REFUSE(err, BAD_REQUEST, "a shell command is one text");
	if (m->path.n != 0 && m->path.p[0] != '/')
		return REFUSE(err, BAD_REQUEST, "the working directory must be an absolute path");
	return 0;
}

static int
check(const struct msg_job_run *m, struct err *err)
{
	if (!strings_ok(m->argv) || !strings_ok(m->env))
		return REFUSE(err, BAD_REQUEST, "argv and env are texts that end with NUL");
	if (m->uid != UID_AGENT && m->uid != UID_ROOT)
		return REFUSE(err, BAD_REQUEST,
			"a command runs as agent (10001) or as root (0, without capabilities)");
	if (m->timeout_ms > LIMIT_JOB_TIMEOUT_MS)
		return REFUSE(err, BAD_REQUEST, "timeout: at most a day");
	if (m->keep_bytes > LIMIT_KEEP_BYTES)
		return REFUSE(err, BAD_REQUEST, "kept output: at most %u MiB",
			(unsigned)(LIMIT_KEEP_BYTES >> 20));
	if (m->mode > 07777)
		return REFUSE(err, BAD_REQUEST, "mode: at most 07777");
	if (m->kind == JOB_KIND_EXEC)
		return check_exec(m, err);
	if (m->shell || m->pty || m->argv.n != 0)
		return REFUSE(err, BAD_REQUEST, "a file operation has no command");
	if (m->path.n == 0 || m->path.p[0] != '/')
		return REFUSE(err, BAD_REQUEST, "the path must be absolute");
	return 0;
}

static void
put_start(struct canon_writer *w, const void *arg)
{
	const struct start *st = arg;
	const struct msg_job_run *m = st->m;
	bool exec = m->kind == JOB_KIND_EXEC;

	if (exec) {
		put_digest(w, "argv_digest", st->argv_digest);
		if (m->path.n != 0)
			put_path(w, "cwd", m->path);
	}
	if (m->env.n != 0) {
		uint8_t digest[32];

		sha256_of(m->env, digest); /* values can be secrets */
		put_digest(w, "env_digest", digest);
	}
	put_str(w, "kind", job_kind_text(m->kind));
	if (m->mode != 0)
		put_u64(w, "mode", m->mode);
	if (!exec)
		put_path(w, "path", m->path);
	if (m->pty)
		put_bool(w, "pty", true);
	if (m->shell)
		put_bool(w, "shell", true);
	if (m->size_bytes != 0)
		put_u64(w, "size_bytes", m->size_bytes);
	if (exec) {
		auto_buf struct buf text;

		buf_init(&text, LIMIT_AUDIT_TEXT);
		redact_argv(m->argv, LIMIT_AUDIT_TEXT, &text);
		put_view(w, "text", buf_view(&text));
	}
	put_u64(w, "timeout_ms", m->timeout_ms);
	put_u64(w, "uid", m->uid);
}

static int
insert(struct sandbox *s, const struct start *st, struct err *err)
{
	const struct msg_job_run *m = st->m;
	auto_buf struct buf cwd;
	auto_query struct query q = query_of(s->engine->store, Q_JOB_INSERT);

	buf_init(&cwd, LIMIT_PATH_TEXT);
	arg_id(&q, &st->id);
	arg_id(&q, &s->id);
	arg_id(&q, &s->task);
	arg_text(&q, job_kind_text(m->kind));
	arg_u64(&q, m->uid);
	arg_u64(&q, m->timeout_ms);
	arg_u64(&q, clock_real_ms());
	arg_digest(&q, st->argv_digest);
	arg_view(&q, buf_view(&st->text));
	if (m->kind == JOB_KIND_EXEC)
		redact_text(m->path, LIMIT_PATH_TEXT, &cwd);
	arg_view(&q, buf_view(&cwd));
	return query_run(&q, err);
}

static int
record_start(struct sandbox *s, struct start *st, struct err *err)
{
	const struct audit_event ev = {.event = "job.start",
		.tenant = s->tenant,
		.task = &s->task,
		.sandbox = &s->id,
		.job = &st->id,
		.who = st->who,
		.request_id = st->m->request_id,
		.data = put_start,
		.arg = st};
	auto_tx struct tx tx = {0};
	int r = tx_begin(&tx, s->engine->store, err);

	if (r == 0)
		r = insert(s, st, err);
	if (r == 0)
		r = audit_append(s->engine, &ev, err);
	r = audit_refuse(r, "a path", err);
	return r == 0 ? tx_commit(&tx, err) : r;
}

/* The template's environment below the caller's. */
static int
merge_env(struct sandbox *s, struct view own, struct buf *ret, struct err *err)
{
	const struct template *t = template_by_digest(s->engine, s->digest);
	struct view left = t != NULL ? buf_view(&t->env) : view_of(NULL, 0);

	buf_init(ret, ENV_MAX);
	while (left.n > 0) {
		size_t n = strlen((const char *)left.p) + 1;
		const char *eq = memchr(left.p, '=', n);
		size_t name = eq != NULL ? (size_t)(eq - (const char *)left.p) + 1 : n;
		bool named = false;

		for (struct view o = own; o.n > 0 && !named;
			o = view_skip(o, strlen((const char *)o.p) + 1))
			named = o.n >= name && memcmp(o.p, left.p, name) == 0;
		if (!named)
			buf_add(ret, left.p, n);
		left = view_skip(left, n);
	}
	buf_add_view(ret, own);
	return buf_check(ret) < 0 ? REFUSE(err, TOO_LARGE, "the environment is larger than 32 KiB")
				  : 0;
}

static void
send_start(struct sandbox *s, const struct start *st, struct view env)
{
	const struct msg_job_run *m = st->m;
	const struct msg_job_start out = {.job = st->id,
		.kind = m->kind,
		.shell = m->shell,
		.pty = m->pty,
		.stdin_open = m->stdin_open,
		.live = m->live,
		.rows = m->rows,
		.columns = m->columns,
		.uid = m->uid,
		.mode = m->mode,
		.timeout_ms = m->timeout_ms,
		.keep_bytes = m->keep_bytes,
		.size_bytes = m->size_bytes,
		.path = m->path,
		.argv = m->argv,
		.env = m->kind == JOB_KIND_EXEC ? env : view_of(NULL, 0)};

	IPC_SEND(s->relay, 0, JOB_START, job_start, out);
}

/* One end of a fresh pair to the relay, the other to the api. */
static int
open_session(struct sandbox *s, const struct id *job, uint64_t stdout_from, uint64_t stderr_from,
	struct reply to, struct err *err)
{
	struct engine *e = s->engine;
	int pair[2];

	if (ipc_pair(pair, err) < 0)
		return err->code;
	auto_fd int relay_end = pair[0];
	auto_fd int api_end = pair[1];
	IPC_SEND_FD(s->relay, 0, JOB_SESSION, job_session, relay_end,
		{.job = *job, .stdout_from = stdout_from, .stderr_from = stderr_from});
	if (reply_alive(e, to))
		IPC_SEND_FD(e->api, to.tag, JOB_OPENED, job_opened, api_end, {.job = *job});
	return 0;
}

int
job_sandbox_ready(struct sandbox *s, struct err *err)
{
	switch (s->state) {
	case SANDBOX_STATE_RUNNING:
		break;
	case SANDBOX_STATE_CREATING:
		return REFUSE(err, CONFLICT,
			"the sandbox is being made; its creation answers when it is ready");
	case SANDBOX_STATE_PAUSED:
		return REFUSE(err, CONFLICT, "the sandbox is paused; resume it first");
	case SANDBOX_STATE_STOPPING:
	case SANDBOX_STATE_GONE:
	case SANDBOX_STATE_FAILED:
		return REFUSE(err, SANDBOX_ENDED, "the sandbox is ending (%s)",
			sandbox_reason_text(s->reason));
	case SANDBOX_STATE_MAX:
		must(false);
	}
	if (s->relay == NULL || s->relay->state != RELAY_LIVE)
		return REFUSE(err, UNAVAILABLE,
			"the sandbox is being taken over by a restarted engine; try again");
	return 0;
}

static int
start(struct sandbox *s, struct start *st, struct job **ret, struct err *err)
{
	auto_buf struct buf env = {0};
	int r = merge_env(s, st->m->env, &env, err);

	if (r < 0)
		return r;
	if (s->jobs_n >= LIMIT_JOBS_PER_SANDBOX)
		return REFUSE(err, QUOTA, "%u commands run in this sandbox already", s->jobs_n);
	id_new(&st->id);
	sha256_of(st->m->argv, st->argv_digest);
	buf_init(&st->text, LIMIT_ROW_TEXT);
	if (st->m->kind == JOB_KIND_EXEC)
		redact_argv(st->m->argv, LIMIT_ROW_TEXT, &st->text);
	else
		redact_text(st->m->path, LIMIT_ROW_TEXT, &st->text);
	r = job_new(s, &st->id, st->m->kind, ret, err);
	if (r == 0)
		r = record_start(s, st, err);
	if (r < 0 && *ret != NULL) {
		job_free(*ret);
		*ret = NULL;
	}
	if (r == 0)
		send_start(s, st, buf_view(&env));
	buf_done(&st->text);
	return r;
}

int
on_job_run(struct engine *e, struct reply to, const struct msg_job_run *m, struct err *err)
{
	struct principal p;
	struct start st = {.m = m, .who = &p};
	struct sandbox *s = NULL;
	struct job *j = NULL;
	int r = caller_find(e, &m->caller, &p, err);

	if (r == 0)
		r = sandbox_find_live(e, &p, &m->sandbox, &s, err);
	if (r == 0)
		r = check(m, err);
	if (r == 0)
		r = job_sandbox_ready(s, err);
	if (r == 0)
		r = start(s, &st, &j, err);
	if (r < 0)
		return r;
	sandbox_touch(s);
	r = job_wait(j, to, err);
	if (r == 0)
		r = open_session(s, &j->id, 0, 0, to, err);
	if (r < 0) /* it started and nobody can hear it */
		IPC_SEND(s->relay, 0, JOB_SIGNAL, job_signal, {.job = j->id, .signal = 0});
	return r;
}

int
job_feed_input(struct sandbox *s, struct view path, uint32_t mode, uint64_t size,
	const uint8_t content[static 32], int fd, struct err *err)
{
	const struct msg_job_run m = {.kind = JOB_KIND_FILE_WRITE,
		.stdin_open = true,
		.uid = UID_AGENT,
		.mode = mode,
		.timeout_ms = LIMIT_STEP_MS,
		.size_bytes = size,
		.path = path};
	struct start st = {.m = &m, .who = &principal_engine};
	struct job *j = NULL;
	int r = start(s, &st, &j, err);

	if (r < 0)
		return r;
	j->input = true;
	memcpy(j->content, content, 32);
	IPC_SEND_FD(s->relay, 0, JOB_FEED, job_feed, fd, {.job = j->id});
	return 0;
}

/* ---- requests about one ---- */

/* Is there such a job in this sandbox? */
static int
find_row(struct engine *e, const struct id *sandbox, const struct id *job, struct err *err)
{
	auto_query struct query q = query_of(e->store, Q_JOB_GET);
	struct id of;
	int r;

	arg_id(&q, job);
	r = query_one(&q, err);
	if (r == 0) {
		col_id(&q, &of);
		col_id(&q, &of);
	}
	if (r == -ENOENT || (r == 0 && !id_eq(&of, sandbox)))
		return REFUSE(err, NOT_FOUND, "no such command in this sandbox");
	return r;
}

/* A session on a job that nobody can play any more: it ends at once. */
static int
open_closed(struct engine *e, const struct id *job, struct reply to, struct err *err)
{
	int pair[2];

	if (ipc_pair(pair, err) < 0)
		return err->code;
	auto_fd int gone = pair[0];
	auto_fd int api_end = pair[1];
	(void)gone;
	if (reply_alive(e, to))
		IPC_SEND_FD(e->api, to.tag, JOB_OPENED, job_opened, api_end, {.job = *job});
	return 0;
}

int
on_job_attach(struct engine *e, struct reply to, const struct msg_job_attach *m, struct err *err)
{
	auto_sandbox struct sandbox *loaded = NULL;
	struct sandbox *s;
	struct principal p;
	struct job *j;
	int r = caller_find(e, &m->caller, &p, err);

	if (r == 0)
		r = sandbox_find(e, &p, &m->sandbox, &s, &loaded, err);
	if (r == 0)
		r = find_row(e, &m->sandbox, &m->job, err);
	if (r < 0)
		return r;
	j = loaded == NULL ? job_live(s, &m->job) : NULL;
	if (j != NULL) {
		r = job_wait(j, to, err);
		if (r < 0)
			return r;
	}
	if (loaded == NULL && s->relay != NULL) {
		sandbox_touch(s);
		r = open_session(s, &m->job, m->stdout_from, m->stderr_from, to, err);
	} else {
		r = open_closed(e, &m->job, to, err);
	}
	if (r == 0 && j == NULL)
		job_answer(e, &m->job, to);
	return r;
}

int
on_job_get(struct engine *e, struct reply to, const struct msg_job_get *m, struct err *err)
{
	auto_sandbox struct sandbox *loaded = NULL;
	struct sandbox *s;
	struct principal p;
	int r = caller_find(e, &m->caller, &p, err);

	if (r == 0)
		r = sandbox_find(e, &p, &m->sandbox, &s, &loaded, err);
	if (r == 0)
		r = find_row(e, &m->sandbox, &m->job, err);
	if (r == 0)
		job_answer(e, &m->job, to);
	return r;
}

int
on_job_list(struct engine *e, struct reply to, const struct msg_job_list *m, struct err *err)
{
	auto_sandbox struct sandbox *loaded = NULL;
	struct sandbox *s;
	struct principal p;
	uint64_t limit = m->limit == 0 || m->limit > LIMIT_PAGE_ROWS ? LIMIT_PAGE_ROWS : m->limit,
		 n = 0;
	int r = caller_find(e, &m->caller, &p, err);

	if (r == 0)
		r = sandbox_find(e, &p, &m->sandbox, &s, &loaded, err);
	if (r < 0)
		return r;
	auto_query struct query q = query_of(e->store, Q_JOB_PAGE);
	arg_id(&q, &m->sandbox);
	arg_id(&q, &m->after);
	arg_u64(&q, limit + 1);
	for (r = query_next(&q, err); r > 0 && n < limit; r = query_next(&q, err), n++)
		if (send_row(e, &q, to, err) < 0)
			return err->code;
	if (r >= 0)
		REPLY(e, to, END, end, {.more = r > 0});
	return r < 0 ? r : 0;
}

static void
put_signal(struct canon_writer *w, const void *arg)
{
	const struct msg_job_kill *m = arg;

	put_u64(w, "signal", m->signal);
}

int
on_job_kill(struct engine *e, struct reply to, const struct msg_job_kill *m, struct err *err)
{
	struct principal p;
	struct sandbox *s = NULL;
	auto_tx struct tx tx = {0};
	int r = m->revoked ? caller_find_ended(e, &m->caller, &p, err)
			   : caller_find(e, &m->caller, &p, err);

	if (r == 0 && m->revoked && m->signal != 0)
		r = REFUSE(err, FORBIDDEN, "a token that is not valid any more ends, no more");
	if (r == 0)
		r = sandbox_find_live(e, &p, &m->sandbox, &s, err);
	if (r == 0 && m->signal > 64)
		r = REFUSE(err, BAD_REQUEST, "signal: 0 to 64");
	if (r == 0)
		r = find_row(e, &m->sandbox, &m->job, err);
	if (r == 0 && job_live(s, &m->job) == NULL)
		r = REFUSE(err, CONFLICT, "the command ended already");
	if (r == 0 && s->relay == NULL)
		r = REFUSE(err, SANDBOX_ENDED, "the sandbox is ending");
	if (r == 0)
		r = tx_begin(&tx, e->store, err);
	if (r < 0)
		return r;
	const struct audit_event ev = {.event = "job.signal",
		.tenant = s->tenant,
		.task = &s->task,
		.sandbox = &s->id,
		.job = &m->job,
		.who = &p,
		.data = put_signal,
		.arg = m};
	r = audit_append(e, &ev, err);
	if (r == 0)
		r = tx_commit(&tx, err);
	if (r < 0)
		return r;
	sandbox_touch(s);
	IPC_SEND(s->relay, 0, JOB_SIGNAL, job_signal, {.job = m->job, .signal = m->signal});
	REPLY(e, to, DONE, done, {0});
	return 0;
}
