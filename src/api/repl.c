/* SPDX-License-Identifier: Apache-2.0 */
/* Open interpreters; see repl.h. The routes are in repl_serve.c. */
#include "repl.h"

#include "lib/base/clock.h"
#include "lib/base/hex.h"
#include "lib/json/parse.h"
#include "lib/loop/loop.h"
#include "local.h"
#include "text.h"

#include <sys/random.h>

enum { REAPER_S = 60, UID_AGENT = 10001 };

static void
repl_free(struct repl *repl)
{
	local_drop(repl->api, &repl->caller);
	list_remove(&repl->link);
	repl->api->nrepls--;
	ask_forget_all(&repl->asks);
	json_decref(repl->answer);
	buf_done(&repl->line);
	loop_free_later(repl->api->loop, repl);
}

void
repl_end(struct repl *repl)
{
	job_kill_free(take_ptr(repl->job));
	repl_free(repl);
}

/* It ended by itself, or can no longer be trusted to answer. */
static void
end_with(struct repl *repl, enum error error, const char *text)
{
	struct request *req = repl->waiting;

	job_kill_free(take_ptr(repl->job));
	if (req != NULL)
		repl_lost(repl, error, view_str(text));
	repl_free(repl);
}

/* ---- cells ---- */

/* The engine did not record. When it did not even answer, nobody knows what it has: the context cannot go on. */
static bool
cell_refused(struct repl *repl, const struct answer *answer, bool fatal)
{
	const struct msg_refused *m = answer->m;
	enum error error;

	if (answer->type != MSG_REFUSED)
		return false;
	error = error_info(m->error) == NULL ? ERROR_INTERNAL : (enum error)m->error;
	if (fatal || answer->in == NULL) {
		char text[600];

		(void)snprintf(text, sizeof(text), "%.*s", VIEW_ARGS(m->text));
		end_with(repl, error, text);
		return true;
	}
	repl->state = REPL_IDLE;
	if (repl->waiting != NULL)
		repl_lost(repl, error, m->text);
	return true;
}

static void
on_cell_ended(void *owner, const struct answer *answer)
{
	struct repl *repl = owner;
	auto_json json_t *line = NULL;

	if (cell_refused(repl, answer, true))
		return;
	repl->state = REPL_IDLE;
	line = take_ptr(repl->answer);
	if (repl->waiting != NULL && line != NULL)
		repl_answered(repl, line);
}

static void
cell_end(struct repl *repl, struct msg_cell_end *m)
{
	struct err err = {0};

	m->caller = repl->caller;
	m->sandbox = repl->sandbox;
	m->job = repl->job->id;
	repl->state = REPL_ENDING;
	if (ASK(repl->api, &repl->asks, on_cell_ended, repl, &err, CELL_END, cell_end, *m) < 0)
		end_with(repl, (enum error) - err.code, err.text);
}

static size_t
length(json_t *line, const char *key)
{
	return json_string_length(json_object_get(line, key));
}

/* The interpreter answered: recorded first, told then. */
static void
cell_ended(struct repl *repl, json_t *line)
{
	struct msg_cell_end m = {
		.reason = repl->interrupted ? JOB_REASON_TIMEOUT : JOB_REASON_EXITED,
		.code = (int32_t)json_integer_value(json_object_get(line, "exit")),
		.wall_us = 1000 * (clock_mono_ms() - repl->used_ms),
		.stdout_seen = length(line, "stdout"),
		.stderr_seen = length(line, "stderr")};

	repl->answer = json_incref(line);
	cell_end(repl, &m);
}

static void
cell_send(struct repl *repl)
{
	auto_buf struct buf line;
	struct json_out o;

	buf_init(&line, LIMIT_REPL_LINE_BYTES);
	json_out_init(&o, &line, true);
	json_out_object_begin(&o);
	json_out_key_int(&o, "id", (int64_t)++repl->cell);
	json_out_key_str(&o, "code", repl_code(repl));
	json_out_object_end(&o);
	buf_add_byte(&line, '\n');
	repl->state = REPL_RUNNING;
	repl->used_ms = clock_mono_ms();
	job_send(repl->job, buf_view(&line));
}

static void
on_cell_begun(void *owner, const struct answer *answer)
{
	struct repl *repl = owner;
	struct msg_cell_end never = {.reason = JOB_REASON_CANCELLED};

	if (cell_refused(repl, answer, false))
		return;
	if (repl->waiting != NULL)
		cell_send(repl);
	else
		cell_end(repl, &never); /* the caller left, and the code with it */
}

/* The same caller, at the connection of now: that of then may be one that this engine does not know. */
static void
caller_move(struct api *api, struct caller *to, const struct caller *from)
{
	local_hold(api, from);
	local_drop(api, to);
	*to = *from;
}

int
repl_ask(struct repl *repl, struct request *req, struct view code, struct err *err)
{
	must(repl->state == REPL_IDLE && repl->waiting == NULL);
	caller_move(repl->api, &repl->caller, &req->caller);
	caller_move(repl->api, &repl->job->caller, &req->caller);
	if (ASK(repl->api, &repl->asks, on_cell_begun, repl, err, CELL_BEGIN, cell_begin,
		    {.caller = repl->caller,
			    .sandbox = repl->sandbox,
			    .job = repl->job->id,
			    .code = code,
			    .request_id = view_str(req->id)}) < 0)
		return err->code;
	repl->state = REPL_BEGINNING;
	repl->used_ms = clock_mono_ms();
	repl->interrupted = false;
	repl->waiting = req;
	return 0;
}

/* ---- what comes out ---- */

static const char no_sense[] =
	"the interpreter answered with something else than it should, and was ended";

static void
take_line(struct repl *repl, struct view text)
{
	static const struct json_limits limits = {
		.max_bytes = LIMIT_REPL_LINE_BYTES, .max_depth = 8, .nul_ok = true};
	auto_json json_t *line = NULL;
	struct err err = {0};

	if (json_parse(text, &limits, &line, &err) < 0 || !json_is_object(line)) {
		end_with(repl, ERROR_FILE, no_sense);
		return;
	}
	switch (repl->state) {
	case REPL_OPENING:
		if (!json_is_true(json_object_get(line, "ready"))) {
			end_with(repl, ERROR_FILE, no_sense);
			return;
		}
		repl->state = REPL_IDLE;
		if (repl->waiting != NULL)
			repl_answered(repl, line);
		return;
	case REPL_RUNNING:
		if (json_integer_value(json_object_get(line, "id")) == (json_int_t)repl->cell)
			cell_ended(repl, line);
		return;
	case REPL_IDLE:
	case REPL_BEGINNING:
	case REPL_ENDING:
		return; /* nothing was asked: noise of the sandbox */
	}
}

static void
on_out(struct job *job, enum output output, uint64_t offset, struct view data)
{
	struct repl *repl = job->owner;
	const uint8_t *end;

	(void)offset;
	if (output != OUTPUT_STDOUT)
		return;
	buf_add_view(&repl->line, data);
	if (buf_check(&repl->line) < 0) {
		end_with(repl, ERROR_TOO_LARGE,
			"the answer of the interpreter is too large; it was ended");
		return;
	}
	while (repl->job == job && repl->line.n > 0 &&
		(end = memchr(repl->line.p, '\n', repl->line.n)) != NULL) {
		size_t n = (size_t)(end - repl->line.p);

		take_line(repl, view_of(repl->line.p, n));
		if (repl->job == job)
			buf_drop(&repl->line, n + 1);
	}
}

static void
on_done(struct job *job, const struct msg_job_row *row)
{
	struct repl *repl = job->owner;

	(void)row;
	/* With its job the engine recorded the end of the cell. */
	if (repl->waiting != NULL && repl->answer != NULL)
		repl_answered(repl, repl->answer);
	end_with(repl, ERROR_CONFLICT,
		repl->state != REPL_OPENING
			? "the interpreter ended"
			: "the interpreter could not be started: the template needs python3");
}

static void
on_refused(struct job *job, const struct answer *answer)
{
	struct repl *repl = job->owner;
	const struct msg_refused *m = answer->m;

	if (repl->waiting != NULL)
		repl_lost(repl,
			error_info(m->error) == NULL ? ERROR_INTERNAL : (enum error)m->error,
			m->text);
	job_free(take_ptr(repl->job));
	repl_free(repl);
}

static const struct job_ops repl_job = {.out = on_out, .done = on_done, .refused = on_refused};

static unsigned
count(const struct api *api, const struct id *sandbox)
{
	unsigned n = 0;

	list_each (r, &api->repls, struct repl, link)
		n += id_eq(&r->sandbox, sandbox) ? 1 : 0;
	return n;
}

static struct repl *
repl_new(struct request *req, const struct id *sandbox)
{
	struct repl *repl = calloc(1, sizeof(*repl));
	uint8_t b[8];

	if (repl == NULL)
		return NULL;
	must(getrandom(b, sizeof(b), 0) == (ssize_t)sizeof(b));
	hex_encode(b, sizeof(b), repl->name);
	repl->api = req->api;
	repl->sandbox = *sandbox;
	repl->caller = req->caller;
	local_hold(req->api, &repl->caller);
	repl->created_ms = clock_real_ms();
	repl->used_ms = clock_mono_ms();
	buf_init(&repl->line, LIMIT_REPL_LINE_BYTES);
	list_init(&repl->asks);
	list_append(&req->api->repls, &repl->link);
	req->api->nrepls++;
	return repl;
}

int
repl_open(struct request *req, const struct id *sandbox, struct err *err)
{
	struct msg_job_run m = {.caller = req->caller,
		.sandbox = *sandbox,
		.kind = JOB_KIND_EXEC,
		.stdin_open = true,
		.live = true,
		.uid = UID_AGENT,
		.timeout_ms = LIMIT_EXEC_MAX_MS,
		.keep_bytes = LIMIT_OUTPUT_BYTES,
		.request_id = view_str(req->id)};
	auto_buf struct buf argv;
	struct repl *repl;

	if (req->api->nrepls >= LIMIT_REPL_SESSIONS ||
		count(req->api, sandbox) >= LIMIT_REPL_SESSIONS_SANDBOX)
		return refuse(err, QUOTA,
			"too many open code contexts; close some (%d in a sandbox, %d in all)",
			LIMIT_REPL_SESSIONS_SANDBOX, LIMIT_REPL_SESSIONS);
	buf_init(&argv, 65536);
	buf_add(&argv, "python3\0-u\0-c", 14);
	buf_add(&argv, repl_driver, repl_driver_bytes);
	buf_add_byte(&argv, 0);
	repl = repl_new(req, sandbox);
	if (repl == NULL || buf_check(&argv) < 0)
		return refuse(err, INTERNAL, "no memory for a code context");
	m.argv = buf_view(&argv);
	if (job_run(req->api, &m, &repl_job, repl, &repl->job, err) < 0) {
		repl_free(repl);
		return err->code;
	}
	repl->waiting = req;
	req->own = repl;
	return 0;
}

struct repl *
repl_find(struct request *req, const struct id *sandbox, struct view name)
{
	list_each (r, &req->api->repls, struct repl, link)
		if (id_eq(&r->sandbox, sandbox) && local_same(req->api, &r->caller, &req->caller) &&
			view_is(name, r->name))
			return r;
	return NULL;
}

static void
on_reaper(struct ev_loop *loop, ev_timer *w, int events)
{
	struct api *api = container_of(w, struct api, repl_reaper);
	uint64_t now = clock_mono_ms();

	(void)loop, (void)events;
	list_each (r, &api->repls, struct repl, link)
		if (r->waiting == NULL && now - r->used_ms > LIMIT_REPL_IDLE_MS)
			repl_end(r);
}

void
repl_start(struct api *api)
{
	ev_timer_init(&api->repl_reaper, on_reaper, REAPER_S, REAPER_S);
	ev_timer_start(api->loop, &api->repl_reaper);
	ev_unref(api->loop);
}

void
repl_stop(struct api *api)
{
	list_each (r, &api->repls, struct repl, link)
		repl_end(r);
	ev_ref(api->loop);
	ev_timer_stop(api->loop, &api->repl_reaper);
}
