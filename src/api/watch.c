/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What existing clients call logs and events. A container has no console: its log is the list of commands that
 * ended, one line each. Events are the audit records of its task that name it.
 */
#include "conn.h"
#include "exec.h"
#include "lib/base/clock.h"
#include "lib/json/parse.h"
#include "lib/loop/loop.h"
#include "route.h"
#include "rows.h"

enum { TAIL_MAX = 1000 };

struct watch {
	struct id after; /* the last job that was shown: nothing before it is asked for again */
	struct id sandbox, task;
	bool follow, asked, more, held; /* held: a job that still runs comes first next time */
	bool over; /* the sandbox had ended before the last page was asked for */
	struct buf lines;
	unsigned ticks;
	uint64_t tail, after_number;
	size_t nrecords;
	struct buf *record; /* owned array of `tail` buffers, used as a ring */
};

static void
watch_gone(struct request *req)
{
	struct watch *w = req->own;

	buf_done(&w->lines);
	for (uint64_t i = 0; w->record != NULL && i < w->tail; i++)
		buf_done(&w->record[i]);
	free(take_ptr(w->record));
	loop_free_later(req->api->loop, w);
}

static struct watch *
watch_new(struct request *req, const struct request_ops *ops, struct err *err)
{
	struct watch *w = calloc(1, sizeof(*w));

	if (w == NULL) {
		(void)refuse(err, INTERNAL, "no memory for a log");
		return NULL;
	}
	buf_init(&w->lines, LIMIT_ANSWER_BYTES / 2);
	req->own = w;
	req->ops = ops;
	return w;
}

/* ---- logs ---- */

static bool
sandbox_ended(const struct msg_sandbox_row *m)
{
	return m->state == SANDBOX_STATE_GONE || m->state == SANDBOX_STATE_FAILED;
}

static int logs_ask(struct request *req, struct err *err);

static void
line_add(struct buf *b, const struct msg_job_row *m)
{
	char when[CLOCK_TEXT], id[ID_TEXT];

	clock_text(m->ended_ms, when);
	id_text(&m->job, ID_JOB, id);
	buf_addf(b, "%s %s %s %d ", when, id, job_reason_text(m->reason), exec_code(m));
	for (size_t i = 0; i < m->text.n; i++) {
		uint8_t c = m->text.p[i];

		buf_add_byte(b, c < 0x20 || c == 0x7f ? ' ' : c); /* one command, one line */
	}
	buf_add_byte(b, '\n');
}

static void
line_event(struct request *req, struct view line)
{
	struct json_out *o = request_event_out(req);

	json_out_object_begin(o);
	json_out_key_str(o, "line", line);
	json_out_object_end(o);
	request_event(req, "line");
}

static void
logs_row(struct request *req, const struct msg_job_row *m)
{
	struct watch *w = req->own;

	if (m->reason == JOB_REASON_RUNNING)
		w->held = true;
	if (w->held)
		return; /* lines come in order: what follows waits for it */
	w->after = m->job;
	if (m->kind != JOB_KIND_EXEC)
		return;
	line_add(&w->lines, m);
	if (!w->follow)
		return;
	line_event(req, buf_view(&w->lines));
	if (!request_gone(req))
		buf_clear(&w->lines);
}

static void
on_logs_page(void *owner, const struct answer *answer)
{
	struct request *req = owner;
	struct watch *w = req->own;
	struct err err = {0};

	if (request_gone(req))
		return;
	if (answer->type == MSG_JOB_ROW) {
		logs_row(req, answer->m);
		return;
	}
	w->asked = false;
	if (answer->type == MSG_REFUSED && w->follow) {
		request_stream_end(req); /* the sandbox is gone: the log ends */
		return;
	}
	if (request_refused(req, answer))
		return;
	req->held = w->lines.cap;
	if (!w->follow && !conn_fits(req->conn)) {
		request_refuse_full(req);
		return;
	}
	w->more = ((const struct msg_end *)answer->m)->more && !w->held;
	w->held = false;
	if (w->follow && w->over && !w->more)
		request_stream_end(req);
	if (w->follow)
		return; /* the timer asks again */
	if (w->more && logs_ask(req, &err) < 0)
		request_fail(req, &err);
	else if (!w->more && buf_check(&w->lines) < 0)
		request_refuse(req, ERROR_TOO_LARGE, 0,
			view_str("the log is too large; read the jobs in pages"));
	else if (!w->more)
		request_answer(req, 200, "text/plain; charset=utf-8", buf_view(&w->lines));
}

static int
logs_ask(struct request *req, struct err *err)
{
	struct watch *w = req->own;

	w->asked = true;
	return REQUEST_ASK(req, on_logs_page, err, JOB_LIST, job_list,
		{.caller = req->caller,
			.sandbox = w->sandbox,
			.after = w->after,
			.limit = LIMIT_PAGE});
}

/* Whether the sandbox still lives is asked before its jobs are: an end then comes after all of them. */
static void
on_follow_found(void *owner, const struct answer *answer)
{
	struct request *req = owner;
	struct watch *w = req->own;
	struct err err = {0};

	if (request_gone(req))
		return;
	if (answer->type == MSG_REFUSED) {
		request_stream_end(req);
		return;
	}
	w->over = sandbox_ended(answer->m);
	if (logs_ask(req, &err) < 0)
		w->asked = false; /* no engine at the moment */
}

static int
follow_ask(struct request *req, struct err *err)
{
	struct watch *w = req->own;

	return REQUEST_ASK(req, on_follow_found, err, SANDBOX_GET, sandbox_get,
		{.caller = req->caller, .sandbox = w->sandbox});
}

static void
logs_tick(struct request *req)
{
	struct watch *w = req->own;
	struct err err = {0};

	if (++w->ticks % (LIMIT_HEARTBEAT_MS / LIMIT_FOLLOW_MS) == 0)
		request_heartbeat(req);
	if (request_gone(req) || w->asked || request_backlog(req) != 0)
		return;
	w->asked = true;
	if (follow_ask(req, &err) < 0)
		w->asked = false; /* no engine at the moment */
}

static const struct request_ops logs_ops = {.tick = logs_tick, .gone = watch_gone};

/* The sandbox exists: a stream may begin. */
static void
on_logs_found(void *owner, const struct answer *answer)
{
	struct request *req = owner;
	struct watch *w = req->own;
	const struct msg_sandbox_row *m = answer->m;
	struct err err = {0};

	if (request_refused(req, answer))
		return;
	if (sandbox_ended(m)) {
		request_refuse(req, ERROR_NOT_FOUND, 0,
			view_str("the sandbox ended; its record is in the audit of its task"));
		return;
	}
	if (w->follow && request_events_begin(req, NULL, &err) == 0) {
		if (request_gone(req))
			return;
		request_timer(req, LIMIT_FOLLOW_MS);
	}
	if (err.code < 0 || logs_ask(req, &err) < 0)
		request_fail(req, &err);
}

int
on_logs(struct request *req, struct err *err)
{
	struct watch *w = watch_new(req, &logs_ops, err);

	if (w == NULL || request_id(req, 0, ID_SANDBOX, &w->sandbox, err) < 0)
		return err->code;
	w->follow = request_flag(req, "follow");
	return REQUEST_ASK(req, on_logs_found, err, SANDBOX_GET, sandbox_get,
		{.caller = req->caller, .sandbox = w->sandbox});
}

/* ---- events ---- */

static int events_ask(struct request *req, struct err *err);

static struct view
text_of(const json_t *record, const char *key)
{
	const json_t *v = json_object_get(record, key);

	return v == NULL || !json_is_string(v)
		       ? view_of(NULL, 0)
		       : view_of(json_string_value(v), json_string_length(v));
}

/* Whether a record names the sandbox; keeps the last `tail` of them. */
static void
events_row(struct request *req, const struct msg_audit_row *m)
{
	static const struct json_limits limits = {
		.max_bytes = 16384, .max_depth = 16, .nul_ok = true};
	struct watch *w = req->own;
	auto_json json_t *record = NULL;
	struct err err = {0};
	char id[ID_TEXT];

	w->after_number = m->number;
	req->held = (w->nrecords < w->tail ? w->nrecords : w->tail) * 4096;
	id_text(&w->sandbox, ID_SANDBOX, id);
	if (json_parse(m->record, &limits, &record, &err) < 0 ||
		!view_is(text_of(record, "sandbox"), id))
		return;
	buf_clear(&w->record[w->nrecords % w->tail]);
	buf_add_view(&w->record[w->nrecords % w->tail], m->record);
	w->nrecords++;
}

static struct view
event_type(const json_t *record)
{
	static const struct {
		const char *event, *when, *type;
	} names[] = {
#define EVENT(event, when, type) {event, when, type},
#include "event.def"
#undef EVENT
	};
	struct view event = text_of(record, "event");
	const json_t *data = json_object_get(record, "data");

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (view_is(event, names[i].event) &&
			(names[i].when == NULL ||
				json_is_true(json_object_get(data, names[i].when))))
			return view_str(names[i].type);
	return event;
}

static void
event_out(struct json_out *o, struct view text)
{
	static const struct json_limits limits = {
		.max_bytes = 16384, .max_depth = 16, .nul_ok = true};
	auto_json json_t *record = NULL;
	struct err err = {0};

	if (json_parse(text, &limits, &record, &err) < 0)
		return; /* no memory: it was parsed before */
	json_out_object_begin(o);
	row_time(o, "time", (uint64_t)json_integer_value(json_object_get(record, "ts_ms")));
	json_out_key_str(o, "sandbox_id", text_of(record, "sandbox"));
	json_out_key_str(o, "type", event_type(record));
	json_out_key(o, "payload");
	json_out_raw(o, text);
	json_out_object_end(o);
}

static void
events_answer(struct request *req)
{
	struct watch *w = req->own;
	struct json_out *o = request_out(req);
	size_t first = w->nrecords > w->tail ? w->nrecords - w->tail : 0;

	json_out_object_begin(o);
	json_out_key(o, "events");
	json_out_array_begin(o);
	for (size_t i = first; i < w->nrecords; i++)
		event_out(o, buf_view(&w->record[i % w->tail]));
	json_out_array_end(o);
	json_out_object_end(o);
	request_json(req, 200);
}

static void
on_event(void *owner, const struct answer *answer)
{
	struct request *req = owner;
	struct err err = {0};

	if (answer->type == MSG_AUDIT_ROW)
		events_row(req, answer->m);
	else if (request_refused(req, answer))
		return;
	else if (!((const struct msg_end *)answer->m)->more)
		events_answer(req);
	else if (!conn_fits(req->conn))
		request_refuse_full(req);
	else if (events_ask(req, &err) < 0)
		request_fail(req, &err);
}

static int
events_ask(struct request *req, struct err *err)
{
	struct watch *w = req->own;
	char task[ID_TEXT];

	id_text(&w->task, ID_TASK, task);
	return REQUEST_ASK(req, on_event, err, AUDIT_READ, audit_read,
		{.caller = req->caller,
			.name = view_str(task),
			.after = w->after_number,
			.limit = LIMIT_PAGE});
}

static void
on_events_found(void *owner, const struct answer *answer)
{
	struct request *req = owner;
	struct watch *w = req->own;
	struct err err = {0};

	if (request_refused(req, answer))
		return;
	w->task = ((const struct msg_sandbox_row *)answer->m)->task;
	if (events_ask(req, &err) < 0)
		request_fail(req, &err);
}

static const struct request_ops events_ops = {.gone = watch_gone};

int
on_events(struct request *req, struct err *err)
{
	struct watch *w = watch_new(req, &events_ops, err);
	uint64_t tail;

	if (w == NULL || request_id(req, 0, ID_SANDBOX, &w->sandbox, err) < 0 ||
		request_number(req, "tail", 50, TAIL_MAX, &tail, err) < 0)
		return err->code;
	w->record = calloc(tail + 1, sizeof(*w->record));
	if (w->record == NULL)
		return refuse(err, INTERNAL, "no memory for events");
	w->tail = tail == 0 ? 1 : tail;
	for (uint64_t i = 0; i < w->tail; i++)
		buf_init(&w->record[i], 16384);
	return REQUEST_ASK(req, on_events_found, err, SANDBOX_GET, sandbox_get,
		{.caller = req->caller, .sandbox = w->sandbox});
}
