/* SPDX-License-Identifier: Apache-2.0 */
/* Routes of code contexts. A cell that passes its time is interrupted; one that does not stop then is killed. */
#include "exec.h"
#include "lib/base/clock.h"
#include "repl.h"
#include "route.h"
#include "rows.h"

enum { CELL_DEFAULT_MS = 25000, INTERRUPT_MS = 2000, OPEN_MS = 20000, SIGNAL_INTERRUPT = 2 };

/* ---- answers ---- */

static struct view
text_of(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	return v == NULL || !json_is_string(v)
		       ? view_of(NULL, 0)
		       : view_of(json_string_value(v), json_string_length(v));
}

/* A map from MIME types to text; what is no string is left out. */
static void
result_out(struct json_out *o, json_t *result)
{
	json_out_object_begin(o);
	for (void *i = json_object_iter(result); i != NULL; i = json_object_iter_next(result, i)) {
		const json_t *v = json_object_iter_value(i);

		if (!json_is_string(v))
			continue;
		json_out_key_view(o, view_of(json_object_iter_key(i), json_object_iter_key_len(i)));
		json_out_str(o, view_of(json_string_value(v), json_string_length(v)));
	}
	json_out_object_end(o);
}

static void
cell_out(struct json_out *o, json_t *line)
{
	const json_t *results = json_object_get(line, "results");

	json_out_key_str(o, "stdout", text_of(line, "stdout"));
	json_out_key_str(o, "stderr", text_of(line, "stderr"));
	json_out_key(o, "results");
	json_out_array_begin(o);
	for (size_t i = 0; i < json_array_size(results); i++)
		if (json_is_object(json_array_get(results, i)))
			result_out(o, json_array_get(results, i));
	json_out_array_end(o);
}

static void
opened_answer(struct request *req, struct repl *repl)
{
	char sandbox[ID_TEXT];
	struct json_out *o = request_out(req);

	id_text(&repl->sandbox, ID_SANDBOX, sandbox);
	json_out_object_begin(o);
	json_out_key_str(o, "id", view_str(repl->name));
	json_out_key_str(o, "session_id", view_str(repl->name));
	json_out_key_str(o, "sandbox_id", view_str(sandbox));
	json_out_key_str(o, "language", view_str("python"));
	row_time(o, "created_at", repl->created_ms);
	json_out_object_end(o);
	request_json(req, 201);
}

/* What waits: the head may be out with blanks, so that clients do not give up. */
static void
early_end(struct request *req)
{
	json_out_object_end(&req->out);
	if (json_out_end(&req->out) < 0) {
		request_stream_abort(req);
		return;
	}
	request_stream_add(req, buf_view(&req->text));
	if (!request_gone(req))
		request_stream_end(req);
}

static const char timeout_text[] = "timeout: the cell passed its time and was interrupted";

static void
cell_answer(struct request *req, struct repl *repl, json_t *line)
{
	struct json_out *o = request_out(req);
	bool late = repl->interrupted;
	int64_t code = late ? 124 : json_integer_value(json_object_get(line, "exit"));
	struct view error = late ? view_str(timeout_text) : text_of(line, "error");

	json_out_object_begin(o);
	cell_out(o, line);
	json_out_key_int(o, "exit", code);
	json_out_key_int(o, "exit_code", code);
	json_out_key_int(o, "duration_ms", (int64_t)(clock_mono_ms() - repl->used_ms));
	if (late && !req->streaming) {
		request_refuse_with(req, ERROR_TIMEOUT, DENIAL_NONE, error);
		return;
	}
	if (error.n > 0)
		json_out_key_str(o, "error", error);
	if (req->streaming) {
		early_end(req);
	} else {
		json_out_object_end(o);
		request_json(req, 200);
	}
}

struct view
repl_code(const struct repl *repl)
{
	const struct body_repl_run *b = repl->waiting->fields;

	return b->code.v;
}

void
repl_answered(struct repl *repl, json_t *line)
{
	struct request *req = take_ptr(repl->waiting);

	if (req->fields != NULL && req->route->handler == on_repl_run)
		cell_answer(req, repl, line);
	else
		opened_answer(req, repl);
}

void
repl_lost(struct repl *repl, enum error error, struct view text)
{
	struct request *req = take_ptr(repl->waiting);

	if (!req->streaming) {
		request_refuse(req, error, 0, text);
		return;
	}
	json_out_object_begin(request_out(req));
	json_out_key_str(&req->out, "stdout", view_of(NULL, 0));
	json_out_key_str(&req->out, "stderr", text);
	json_out_key_int(&req->out, "exit", error == ERROR_TIMEOUT ? 124 : 1);
	json_out_key_int(&req->out, "exit_code", error == ERROR_TIMEOUT ? 124 : 1);
	json_out_key(&req->out, "results");
	json_out_array_begin(&req->out);
	json_out_array_end(&req->out);
	json_out_key_str(&req->out, "error", text);
	early_end(req);
}

/* ---- waiting ---- */

/* The caller left: the interpreter stays, its answer is dropped; one that was never told about is ended. */
static void
wait_gone(struct request *req)
{
	struct repl *repl = req->own;

	if (repl == NULL || repl->waiting != req)
		return;
	repl->waiting = NULL;
	if (req->route->handler == on_repl_open)
		repl_end(repl);
}

static void
open_tick(struct request *req)
{
	struct repl *repl = req->own;

	req->own = NULL;
	repl->waiting = NULL;
	repl_end(repl);
	request_refuse(
		req, ERROR_TIMEOUT, 0, view_str("timeout: the interpreter did not start in time"));
}

static const struct request_ops open_ops = {.tick = open_tick, .gone = wait_gone};

/* Each second: time passes for the cell and for the caller's patience. */
static void
run_tick(struct request *req)
{
	const struct body_repl_run *b = req->fields;
	struct repl *repl = req->own;
	uint64_t ran = clock_mono_ms() - repl->used_ms;
	uint64_t limit = b->timeout_ms.state == FIELD_SET ? (uint64_t)b->timeout_ms.v
							  : CELL_DEFAULT_MS;
	bool runs = repl->state == REPL_RUNNING;
	struct err err = {0};

	if (runs && ran > limit + INTERRUPT_MS) {
		repl_lost(repl, ERROR_TIMEOUT,
			view_str("timeout: the cell did not stop when it was interrupted; its "
				 "interpreter was ended"));
		repl_end(repl);
		return;
	}
	if (runs && ran >= limit && !repl->interrupted) {
		repl->interrupted = true;
		job_signal(repl->job, SIGNAL_INTERRUPT);
	}
	if (limit <= LIMIT_EARLY_MS + LIMIT_EARLY_MS / 4 || ran < LIMIT_EARLY_MS)
		return;
	if (!req->streaming && request_stream_begin(req, 200, "application/json", NULL, &err) < 0)
		return; /* HTTP/1.0: such a client waits */
	if (!request_gone(req) && ran / 1000 % 10 == 0)
		request_stream_add(req, view_str(" "));
}

static const struct request_ops run_ops = {.tick = run_tick, .gone = wait_gone};

/* ---- routes ---- */

static bool
is_python(const struct field_str *f)
{
	return f->state != FIELD_SET || view_is(f->v, "python") || view_is(f->v, "python3");
}

int
on_repl_open(struct request *req, struct err *err)
{
	const struct body_repl_open *b = req->fields;
	struct id sandbox;

	if (!is_python(&b->language))
		return refuse(err, BAD_REQUEST,
			"code contexts know only python; for others use repl or exec");
	if (request_id(req, 0, ID_SANDBOX, &sandbox, err) < 0 || repl_open(req, &sandbox, err) < 0)
		return err->code;
	req->ops = &open_ops;
	request_timer(req, OPEN_MS);
	return 0;
}

static const char no_context[] = "no such code context: it was closed, or its interpreter ended";

static int
find(struct request *req, struct repl **ret, struct err *err)
{
	struct id sandbox;

	if (request_id(req, 0, ID_SANDBOX, &sandbox, err) < 0)
		return err->code;
	*ret = repl_find(req, &sandbox, req->arg[1]);
	if (*ret == NULL)
		return refuse(err, NOT_FOUND, "%s", no_context);
	return 0;
}

/* There is no such context; whether the caller may know even that, the engine says. */
static void
on_run_unknown(void *owner, const struct answer *answer)
{
	struct request *req = owner;

	if (!request_refused(req, answer))
		request_refuse(req, ERROR_NOT_FOUND, 0, view_str(no_context));
}

static int
sandbox_ask(struct request *req, ask_fn *fn, struct err *err)
{
	struct msg_sandbox_get m = {.caller = req->caller};

	if (request_id(req, 0, ID_SANDBOX, &m.sandbox, err) < 0)
		return err->code;
	return REQUEST_ASK(req, fn, err, SANDBOX_GET, sandbox_get, m);
}

int
on_repl_run(struct request *req, struct err *err)
{
	const struct body_repl_run *b = req->fields;
	struct repl *repl;

	if (find(req, &repl, err) < 0)
		return err->code == -ERROR_NOT_FOUND ? sandbox_ask(req, on_run_unknown, err)
						     : err->code;
	if (repl->state != REPL_IDLE || repl->waiting != NULL)
		return refuse(err, CONFLICT, "the code context is running something else");
	if (repl_ask(repl, req, b->code.v, err) < 0)
		return err->code;
	req->own = repl;
	req->ops = &run_ops;
	request_timer(req, b->timeout_ms.state == FIELD_SET && b->timeout_ms.v < 2000 ? 100 : 1000);
	return 0;
}

int
on_repl_close(struct request *req, struct err *err)
{
	struct repl *repl;

	if (find(req, &repl, err) < 0)
		return err->code;
	if (repl->waiting != NULL)
		repl_lost(repl, ERROR_CONFLICT, view_str("the code context was closed"));
	repl_end(repl);
	request_nothing(req);
	return 0;
}

/* The caller may see the sandbox: its own contexts in it. */
static void
on_list_known(void *owner, const struct answer *answer)
{
	struct request *req = owner;
	struct json_out *o;

	if (request_refused(req, answer))
		return;
	o = request_out(req);
	json_out_array_begin(o);
	list_each (r, &req->api->repls, struct repl, link) {
		if (!id_eq(&r->sandbox, &((const struct msg_sandbox_row *)answer->m)->sandbox) ||
			repl_find(req, &r->sandbox, view_str(r->name)) != r)
			continue;
		json_out_object_begin(o);
		json_out_key_str(o, "id", view_str(r->name));
		json_out_key_str(o, "language", view_str("python"));
		row_time(o, "created_at", r->created_ms);
		json_out_object_end(o);
	}
	json_out_array_end(o);
	request_json(req, 200);
}

int
on_repl_list(struct request *req, struct err *err)
{
	return sandbox_ask(req, on_list_known, err);
}

static void
on_languages_known(void *owner, const struct answer *answer)
{
	if (!request_refused(owner, answer))
		request_answer(owner, 200, "application/json", view_str("[\"python\"]"));
}

int
on_repl_languages(struct request *req, struct err *err)
{
	return sandbox_ask(req, on_languages_known, err);
}

int
on_repl_once(struct request *req, struct err *err)
{
	const struct body_repl_once *b = req->fields;
	struct msg_job_run m = {.caller = req->caller,
		.kind = JOB_KIND_EXEC,
		.uid = 10001,
		.keep_bytes = LIMIT_OUTPUT_BYTES,
		.timeout_ms = b->timeout_seconds_ms.state == FIELD_SET
				      ? (uint64_t)b->timeout_seconds_ms.v
				      : LIMIT_EXEC_MAX_MS,
		.request_id = view_str(req->id)};
	const char *program = is_python(&b->language)          ? "python3"
			      : view_is(b->language.v, "bash") ? "bash"
			      : view_is(b->language.v, "sh")   ? "sh"
							       : NULL;
	auto_buf struct buf argv;

	if (request_id(req, 0, ID_SANDBOX, &m.sandbox, err) < 0)
		return err->code;
	if (program == NULL)
		return refuse(err, BAD_REQUEST,
			"language must be python, bash or sh; for others write a file and run it");
	buf_init(&argv, 163840);
	buf_add(&argv, program, strlen(program) + 1);
	buf_add(&argv, "-c", 3);
	buf_add_view(&argv, b->code.v);
	buf_add_byte(&argv, 0);
	m.argv = buf_view(&argv);
	return exec_begin(req, &m, strcmp(program, "python3") == 0 ? "python" : program, err);
}
