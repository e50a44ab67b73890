/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands that are answered as a whole (exec, jobs/{id}/output) or at once (detach). Clients give up after 30 s
 * without a byte: after LIMIT_EARLY_MS the head and blanks are sent, which JSON allows; the status is then 200 and a
 * timeout is told by exit code 124 and the reason.
 */
#include "exec.h"

#include "collect.h"
#include "conn.h"
#include "job.h"
#include "lib/loop/loop.h"
#include "route.h"

#include <errno.h>

enum { ARGV_MAX = 163840, ENV_MAX = 32768, UID_AGENT = 10001, UID_ROOT = 0 };

struct exec {
	struct collect out[OUTPUT_MAX];
	struct view stdin_text; /* borrowed from the request */
	const char *language;   /* NULL, or what was asked for */
	size_t base;            /* req->held without the output */
	bool detach, early;
	bool given_up; /* its output could not be held; the command goes on */
};

void
exec_words_init(struct exec_words *w)
{
	buf_init(&w->argv, ARGV_MAX);
	buf_init(&w->env, ENV_MAX);
}

void
exec_words_done(struct exec_words *w)
{
	buf_done(&w->argv);
	buf_done(&w->env);
}

static bool
env_names_ok(const struct field_json *env)
{
	json_t *json = (json_t *)(uintptr_t)env->v;

	for (void *i = json_object_iter(json); i != NULL; i = json_object_iter_next(json, i))
		if (view_has(view_of(json_object_iter_key(i), json_object_iter_key_len(i)), '='))
			return false;
	return true;
}

static int
command_check(const struct body_exec *b, uint32_t *ret_uid, struct err *err)
{
	if ((b->cmd.state == FIELD_SET) == (b->argv.state == FIELD_SET))
		return refuse(err, BAD_REQUEST,
			"give either cmd (shell text) or argv (program and arguments)");
	if (b->argv.state == FIELD_SET && json_string_length(json_array_get(b->argv.v, 0)) == 0)
		return refuse(err, BAD_REQUEST, "argv[0], the program, must not be empty");
	if (b->cwd.state == FIELD_SET && !view_starts(b->cwd.v, "/"))
		return refuse(err, BAD_REQUEST, "cwd must be an absolute path");
	if (b->env.state == FIELD_SET && !env_names_ok(&b->env))
		return refuse(err, BAD_REQUEST, "names in env must not contain '='");
	if (b->user.state != FIELD_SET || view_is(b->user.v, "agent"))
		*ret_uid = UID_AGENT;
	else if (view_is(b->user.v, "root"))
		*ret_uid = UID_ROOT;
	else
		return refuse(err, BAD_REQUEST, "user must be \"agent\" or \"root\"");
	return 0;
}

int
exec_message(struct request *req, struct exec_words *w, struct msg_job_run *ret, struct err *err)
{
	const struct body_exec *b = req->fields;
	struct msg_job_run m = {
		.caller = req->caller, .kind = JOB_KIND_EXEC, .request_id = view_str(req->id)};

	if (request_id(req, 0, ID_SANDBOX, &m.sandbox, err) < 0 ||
		command_check(b, &m.uid, err) < 0)
		return err->code;
	m.shell = b->cmd.state == FIELD_SET;
	if (m.shell) {
		buf_add_view(&w->argv, b->cmd.v);
		buf_add_byte(&w->argv, 0);
	}
	body_list(&b->argv, &w->argv);
	body_map(&b->env, true, &w->env);
	if (buf_check(&w->argv) < 0)
		return refuse(err, TOO_LARGE,
			"argv may have at most %d bytes; write a file and run it", ARGV_MAX);
	if (buf_check(&w->env) < 0)
		return refuse(err, TOO_LARGE, "env may have at most %d bytes", ENV_MAX);
	m.argv = buf_view(&w->argv);
	m.env = buf_view(&w->env);
	m.path = b->cwd.v;
	m.pty = b->pty.v;
	m.stdin_open = b->stdin.state == FIELD_SET && b->stdin.v.n > 0;
	m.keep_bytes = b->output_limit.state == FIELD_SET ? (uint64_t)b->output_limit.v
							  : LIMIT_OUTPUT_BYTES;
	m.timeout_ms = b->timeout_seconds_ms.state == FIELD_SET ? (uint64_t)b->timeout_seconds_ms.v
								: LIMIT_EXEC_MAX_MS;
	*ret = m;
	return 0;
}

int
exec_code(const struct msg_job_row *row)
{
	switch (row->reason) {
	case JOB_REASON_EXITED:
		return row->code;
	case JOB_REASON_SIGNALLED:
		return 128 + row->code;
	case JOB_REASON_NOT_STARTED:
		return row->code == ENOENT ? 127 : 126;
	case JOB_REASON_TIMEOUT:
		return 124;
	case JOB_REASON_PIDS:
	case JOB_REASON_DISK:
		return row->code > 0 ? row->code : 1;
	case JOB_REASON_RUNNING:
	case JOB_REASON_CANCELLED:
	case JOB_REASON_OOM:
	case JOB_REASON_AGENT_LOST:
	case JOB_REASON_SANDBOX_ENDED:
	case JOB_REASON_MAX:
		break;
	}
	return 137;
}

#define LOST "the sandbox ended during the command: "
static const char *const lost_why[SANDBOX_REASON_MAX] = {
	[SANDBOX_REASON_NONE] = LOST "why is in its record",
	[SANDBOX_REASON_KILLED] = LOST "it was killed by a request",
	[SANDBOX_REASON_TTL] = LOST "its time to live (ttl) was over",
	[SANDBOX_REASON_IDLE] = LOST "it was idle for too long",
	[SANDBOX_REASON_TASK_CLOSED] = LOST "its task was closed",
	[SANDBOX_REASON_AGENT_LOST] = LOST "its agent was lost",
	[SANDBOX_REASON_RELAY_LOST] = LOST "its relay was lost",
	[SANDBOX_REASON_OOM] = LOST "it ran out of memory (oom)",
	[SANDBOX_REASON_SPAWN_FAILED] = LOST "it could not be built",
	[SANDBOX_REASON_MEASURED_DIFFERENT] = LOST "it was measured different from its policy",
	[SANDBOX_REASON_HOST_STOPPED] = LOST "the host was stopped",
	[SANDBOX_REASON_ENGINE_RESTART] = LOST "the engine was restarted",
	[SANDBOX_REASON_PROTOCOL] = LOST "its agent broke the protocol",
	[SANDBOX_REASON_GATEWAY_LOST] = LOST
	"its gateway was lost, and with it all that it could reach",
};
#undef LOST

bool
exec_lost(const struct msg_job_row *row, const char **ret_text)
{
	switch (row->reason) {
	case JOB_REASON_AGENT_LOST:
		*ret_text = lost_why[SANDBOX_REASON_AGENT_LOST];
		return true;
	case JOB_REASON_SANDBOX_ENDED:
		*ret_text = lost_why[row->sandbox_reason];
		return true;
	case JOB_REASON_RUNNING:
	case JOB_REASON_EXITED:
	case JOB_REASON_SIGNALLED:
	case JOB_REASON_NOT_STARTED:
	case JOB_REASON_TIMEOUT:
	case JOB_REASON_CANCELLED:
	case JOB_REASON_OOM:
	case JOB_REASON_PIDS:
	case JOB_REASON_DISK:
	case JOB_REASON_MAX:
		break;
	}
	return false;
}

void
exec_timeout_text(const struct msg_job_row *row, char *ret, size_t n)
{
	(void)snprintf(ret, n,
		"timeout: the command ran for %llu.%03llu s and was killed with all its "
		"descendants",
		(unsigned long long)row->timeout_ms / 1000,
		(unsigned long long)row->timeout_ms % 1000);
}

void
exec_end_out(const struct msg_job_row *row, struct json_out *o)
{
	char id[ID_TEXT];

	json_out_key_int(o, "exit_code", exec_code(row));
	json_out_key_str(o, "reason", view_str(job_reason_text(row->reason)));
	if (row->reason == JOB_REASON_SIGNALLED)
		json_out_key_int(o, "signal", row->code);
	if (row->reason == JOB_REASON_NOT_STARTED)
		json_out_key_str(o, "not_started",
			view_str(strerrordesc_np(row->code) == NULL ? "unknown error"
								    : strerrordesc_np(row->code)));
	json_out_key_bool(o, "holders", row->holders);
	json_out_key_int(o, "duration_ms", (int64_t)(row->wall_us / 1000));
	json_out_key(o, "wall_ms");
	json_out_fixed3(o, (int64_t)row->wall_us);
	json_out_key(o, "cpu_ms");
	json_out_fixed3(o, (int64_t)row->cpu_us);
	json_out_key_int(o, "memory_peak_bytes", (int64_t)row->memory_peak_bytes);
	id_text(&row->job, ID_JOB, id);
	json_out_key_str(o, "job", view_str(id));
}

static void
collected_drop(struct request *req)
{
	struct exec *x = req->own;

	collect_done(&x->out[OUTPUT_STDOUT]);
	collect_done(&x->out[OUTPUT_STDERR]);
	req->held = x->base;
}

static void
on_out(struct job *job, enum output output, uint64_t offset, struct view data)
{
	struct request *req = job->owner;
	struct exec *x = req->own;

	if (x->given_up)
		return;
	collect_add(&x->out[output], offset, data);
	req->held = x->base + x->out[OUTPUT_STDOUT].head.cap + x->out[OUTPUT_STDOUT].tail.cap +
		    x->out[OUTPUT_STDERR].head.cap + x->out[OUTPUT_STDERR].tail.cap;
	x->given_up = !conn_fits(req->conn);
	if (x->given_up)
		collected_drop(req);
}

static void
on_gap(struct job *job, enum output output, uint64_t from, uint64_t to)
{
	struct request *req = job->owner;
	struct exec *x = req->own;

	collect_gap(&x->out[output], from, to);
}

/* The object without its end. */
static void
result_out(struct request *req, const struct msg_job_row *row)
{
	struct exec *x = req->own;
	struct json_out *o = request_out(req);

	json_out_object_begin(o);
	collect_out(&x->out[OUTPUT_STDOUT], "stdout", row->stdout_seen, o);
	collect_out(&x->out[OUTPUT_STDERR], "stderr", row->stderr_seen, o);
	exec_end_out(row, o);
	json_out_key_bool(o, "output_cut", req->job->out_cut);
	if (x->language != NULL)
		json_out_key_str(o, "language", view_str(x->language));
}

/* The status is out already: all that is left to say is the object. */
static void
early_finish(struct request *req, const char *error, const char *code)
{
	struct json_out *o = &req->out;

	if (error != NULL) {
		json_out_key_str(o, "error", view_str(error));
		json_out_key_str(o, "code", view_str(code));
	}
	json_out_object_end(o);
	if (json_out_end(o) < 0) {
		request_stream_abort(req);
		return;
	}
	request_stream_add(req, buf_view(&req->text));
	if (!request_gone(req))
		request_stream_end(req);
}

/* An object without a command's end. */
static void
early_refuse(struct request *req, const char *code, struct view why)
{
	char text[600];

	(void)snprintf(text, sizeof(text), "%.*s", VIEW_ARGS(why));
	json_out_object_begin(request_out(req));
	json_out_key_int(&req->out, "exit_code", 125);
	json_out_key_str(&req->out, "stdout", view_of(NULL, 0));
	json_out_key_str(&req->out, "stderr", view_str(text));
	early_finish(req, text, code);
}

/* Not by a status that makes clients ask again: the command ran. */
static void
unheld(struct request *req)
{
	struct exec *x = req->own;
	struct view text = view_str(
		"the command ended, but its output could not be held: too much waits to be read by "
		"this caller or by all; read jobs/{job}/stream, or ask for a lower output_limit");

	if (x->early)
		early_refuse(req, error_info(ERROR_TOO_LARGE)->code, text);
	else
		request_refuse(req, ERROR_TOO_LARGE, 0, text);
}

static void
on_done(struct job *job, const struct msg_job_row *row)
{
	struct request *req = job->owner;
	struct exec *x = req->own;
	const char *lost = NULL;
	char text[160];

	if (x->given_up) {
		unheld(req);
		return;
	}
	result_out(req, row);
	collected_drop(req); /* the answer has it now: in memory once */
	if (x->early && !conn_fits(req->conn)) {
		buf_done(&req->text);
		unheld(req);
		return;
	}
	if (exec_lost(row, &lost)) {
		if (x->early)
			early_finish(req, lost, error_info(ERROR_SANDBOX_ENDED)->code);
		else
			request_refuse_with(req, ERROR_SANDBOX_ENDED, DENIAL_NONE, view_str(lost));
	} else if (row->reason == JOB_REASON_TIMEOUT && !x->early) {
		exec_timeout_text(row, text, sizeof(text));
		request_refuse_with(req, ERROR_TIMEOUT, DENIAL_NONE, view_str(text));
	} else if (x->early) {
		early_finish(req, NULL, NULL);
	} else {
		json_out_object_end(&req->out);
		request_json(req, 200);
	}
}

static void
on_refused(struct job *job, const struct answer *answer)
{
	struct request *req = job->owner;
	struct exec *x = req->own;
	const struct msg_refused *m = answer->m;

	if (!x->early) {
		(void)request_refused(req, answer);
		return;
	}
	early_refuse(req, error_info(m->error) == NULL ? "internal" : error_info(m->error)->code,
		m->text);
}

static void
detach_answer(struct request *req)
{
	struct json_out *o = request_out(req);
	char id[ID_TEXT];

	id_text(&req->job->id, ID_JOB, id);
	json_out_object_begin(o);
	json_out_key_str(o, "job", view_str(id));
	json_out_key_str(o, "reason", view_str(job_reason_text(JOB_REASON_RUNNING)));
	json_out_object_end(o);
	request_json(req, 202);
}

static void
on_opened(struct job *job)
{
	struct request *req = job->owner;
	struct exec *x = req->own;

	if (x->stdin_text.n > 0) {
		job_send(job, x->stdin_text);
		job_send_end(job);
	}
	/* The session must live until the relay has all of stdin. */
	if (x->detach && job_backlog(job) == 0)
		detach_answer(req);
}

static void
on_drained(struct job *job)
{
	struct request *req = job->owner;
	struct exec *x = req->own;

	if (x->detach)
		detach_answer(req);
}

static const struct job_ops exec_job = {
	.opened = on_opened,
	.out = on_out,
	.gap = on_gap,
	.drained = on_drained,
	.done = on_done,
	.refused = on_refused,
};

static void
exec_tick(struct request *req)
{
	struct exec *x = req->own;
	struct err err = {0};

	if (!x->early) {
		if (request_stream_begin(req, 200, "application/json", NULL, &err) < 0) {
			request_timer(req, 0); /* HTTP/1.0: such a client waits */
			return;
		}
		x->early = true;
		if (!request_gone(req))
			request_timer(req, LIMIT_HEARTBEAT_MS);
	}
	if (!request_gone(req))
		request_stream_add(req, view_str(" "));
	if (!request_gone(req))
		request_check(req);
}

static void
exec_revoked(struct request *req, struct view text)
{
	job_revoked_free(take_ptr(req->job));
	early_refuse(req, error_info(ERROR_UNAUTHORIZED)->code, text);
}

static void
exec_gone(struct request *req)
{
	struct exec *x = req->own;

	collect_done(&x->out[OUTPUT_STDOUT]);
	collect_done(&x->out[OUTPUT_STDERR]);
	loop_free_later(req->api->loop, x);
}

static const struct request_ops exec_ops = {
	.tick = exec_tick, .revoked = exec_revoked, .gone = exec_gone};

static int
exec_new(struct request *req, size_t limit, struct err *err)
{
	struct exec *x = calloc(1, sizeof(*x));

	if (x == NULL)
		return refuse(err, INTERNAL, "no memory for a command");
	collect_init(&x->out[OUTPUT_STDOUT], limit);
	collect_init(&x->out[OUTPUT_STDERR], limit);
	x->base = req->held;
	req->own = x;
	req->ops = &exec_ops;
	if (!conn_fits(req->conn))
		return refuse(err, UNAVAILABLE, "%s", request_full);
	return 0;
}

/* A timeout that comes before clients give up can still be told by its status. */
static void
early_arm(struct request *req, uint64_t timeout_ms)
{
	if (timeout_ms > LIMIT_EARLY_MS + LIMIT_EARLY_MS / 4)
		request_timer(req, LIMIT_EARLY_MS);
}

int
exec_begin(struct request *req, const struct msg_job_run *m, const char *language, struct err *err)
{
	if (exec_new(req, m->keep_bytes, err) < 0)
		return err->code;
	((struct exec *)req->own)->language = language;
	if (job_run(req->api, m, &exec_job, req, &req->job, err) < 0)
		return err->code;
	early_arm(req, m->timeout_ms);
	return 0;
}

int
on_exec(struct request *req, struct err *err)
{
	const struct body_exec *b = req->fields;
	struct exec_words w;
	struct msg_job_run m;
	struct exec *x;
	int r;

	exec_words_init(&w);
	r = exec_message(req, &w, &m, err);
	if (r == 0)
		r = exec_begin(req, &m, NULL, err);
	if (r == 0) {
		x = req->own;
		x->detach = b->detach.v;
		x->stdin_text = b->stdin.v;
		if (x->detach)
			request_timer(req, 0);
	}
	exec_words_done(&w);
	return r;
}

int
on_job_output(struct request *req, struct err *err)
{
	struct msg_job_attach m = {.caller = req->caller};

	if (request_id(req, 0, ID_SANDBOX, &m.sandbox, err) < 0 ||
		request_id(req, 1, ID_JOB, &m.job, err) < 0 ||
		exec_new(req, LIMIT_OUTPUT_MAX_BYTES, err) < 0 ||
		job_attach(req->api, &m, &exec_job, req, &req->job, err) < 0)
		return err->code;
	request_timer(req, LIMIT_EARLY_MS);
	return 0;
}
