/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The record of a task. Records are canonical JSON made by the engine and are passed on byte for byte, with
 * number and digests of the chain beside them, so that a reader can check it. Pages as JSON, or all as NDJSON, of
 * which the next page is asked for when the peer took the last.
 */
#include "job.h"
#include "lib/json/parse.h"
#include "lib/loop/loop.h"
#include "route.h"
#include "rows.h"

enum { TASK_NAME_MAX = 256 };

/* A ticket is resolved once, so that all pages are of one task, whoever labels another with it meanwhile. */
struct audit {
	char task[TASK_NAME_MAX + 1]; /* its id; "host" is the chain of the host */
	uint16_t limit;
	uint64_t after;
	bool more, asked, begun, lines;
};

static void
record_out(struct json_out *o, const struct msg_audit_row *m)
{
	json_out_object_begin(o);
	json_out_key(o, "number");
	json_out_u64(o, m->number);
	row_digest(o, "previous", m->previous);
	row_digest(o, "digest", m->record_digest);
	json_out_key(o, "leaf");
	json_out_u64(o, m->leaf);
	json_out_key(o, "record");
	json_out_raw(o, m->record);
	json_out_object_end(o);
}

static void
on_page(void *owner, const struct answer *answer)
{
	struct request *req = owner;
	struct audit *a = req->own;

	if (answer->type == MSG_AUDIT_ROW) {
		const struct msg_audit_row *m = answer->m;

		a->after = m->number;
		record_out(&req->out, m);
		return;
	}
	if (request_refused(req, answer))
		return;
	json_out_array_end(&req->out);
	json_out_key(&req->out, "next");
	json_out_u64(&req->out, a->after);
	json_out_key_bool(&req->out, "more", ((const struct msg_end *)answer->m)->more);
	json_out_object_end(&req->out);
	request_json(req, 200);
}

static int lines_ask(struct request *req, struct err *err);

static void
lines_next(struct request *req)
{
	struct audit *a = req->own;
	struct err err = {0};

	if (a->asked || request_backlog(req) > LIMIT_OUT_HIGH_BYTES)
		return;
	if (!a->more)
		request_stream_end(req);
	else if (lines_ask(req, &err) < 0)
		request_stream_abort(req);
}

static void
on_line(void *owner, const struct answer *answer)
{
	struct request *req = owner;
	struct audit *a = req->own;
	const struct msg_audit_row *row = answer->m;
	struct err err = {0};

	if (answer->type == MSG_REFUSED && a->begun) {
		request_stream_abort(req);
		return;
	}
	if (request_refused(req, answer))
		return;
	if (!a->begun) {
		const struct http_field task = {view_str("X-Demilune-Task"), view_str(a->task)};

		a->begun = true;
		if (request_stream_begin(req, 200, "application/x-ndjson", &task, &err) < 0) {
			request_fail(req, &err);
			return;
		}
	}
	if (request_gone(req))
		return;
	if (answer->type == MSG_AUDIT_ROW) {
		a->after = row->number;
		record_out(request_out(req), row);
		buf_add_byte(&req->text, '\n');
		request_stream_add(req, buf_view(&req->text));
		return;
	}
	a->asked = false;
	a->more = ((const struct msg_end *)answer->m)->more;
	lines_next(req);
}

static int
lines_ask(struct request *req, struct err *err)
{
	struct audit *a = req->own;

	a->asked = true;
	return REQUEST_ASK(req, on_line, err, AUDIT_READ, audit_read,
		{.caller = req->caller,
			.name = view_str(a->task),
			.after = a->after,
			.limit = LIMIT_PAGE});
}

static void
audit_gone(struct request *req)
{
	loop_free_later(req->api->loop, req->own);
}

static const struct request_ops audit_ops = {.drained = lines_next, .gone = audit_gone};

static int
audit_new(struct request *req, struct err *err)
{
	struct audit *a;
	uint64_t after;

	if (req->arg[0].n > TASK_NAME_MAX)
		return refuse(err, NOT_FOUND, "no such task: its name is too long");
	if (request_number(req, "after", 0, INT64_MAX, &after, err) < 0)
		return err->code;
	a = calloc(1, sizeof(*a));
	if (a == NULL)
		return refuse(err, INTERNAL, "no memory for a record");
	a->after = after;
	req->own = a;
	req->ops = &audit_ops;
	return 0;
}

static int
read_begin(struct request *req, struct err *err)
{
	struct audit *a = req->own;

	if (a->lines)
		return lines_ask(req, err);
	json_out_object_begin(request_out(req));
	json_out_key_str(&req->out, "task", view_str(a->task));
	json_out_key(&req->out, "records");
	json_out_array_begin(&req->out);
	return REQUEST_ASK(req, on_page, err, AUDIT_READ, audit_read,
		{.caller = req->caller,
			.name = view_str(a->task),
			.after = a->after,
			.limit = a->limit});
}

static void
on_found(void *owner, const struct answer *answer)
{
	struct request *req = owner;
	struct audit *a = req->own;
	struct err err = {0};

	if (request_refused(req, answer))
		return;
	id_text(&((const struct msg_task_row *)answer->m)->task, ID_TASK, a->task);
	if (read_begin(req, &err) < 0)
		request_fail(req, &err);
}

int
on_audit(struct request *req, struct err *err)
{
	struct view name = req->arg[0];
	uint64_t limit;
	struct audit *a;
	struct id task;

	if (audit_new(req, err) < 0 ||
		request_number(req, "limit", LIMIT_PAGE, LIMIT_PAGE, &limit, err) < 0)
		return err->code;
	a = req->own;
	a->limit = (uint16_t)limit;
	a->lines = req->ndjson || view_is(request_param(req, "format"), "ndjson");
	if (view_is(name, "host") || id_parse(name, ID_TASK, &task) == 0) {
		memcpy(a->task, name.p, name.n);
		return read_begin(req, err);
	}
	if (a->after > 0)
		return refuse(err, BAD_REQUEST,
			"after= goes with the id of a task, which the first page names: another "
			"task "
			"may have the ticket by now");
	return REQUEST_ASK(
		req, on_found, err, TASK_GET, task_get, {.caller = req->caller, .name = name});
}
