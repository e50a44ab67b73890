/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks and their stored inputs. */
#include "body.h"
#include "lib/base/fd.h"
#include "lib/loop/loop.h"
#include "route.h"
#include "rows.h"

enum { LABELS_MAX = 16384, LABEL_MAX = 512, NAME_MAX_HERE = 256, PATH_BYTES_MAX = 4095 };

static void
on_made(void *owner, const struct answer *answer)
{
	struct request *req = owner;

	if (request_refused(req, answer))
		return;
	row_task(request_out(req), answer->m);
	request_json(req, 201);
}

static void
on_row(void *owner, const struct answer *answer)
{
	struct request *req = owner;

	if (request_refused(req, answer))
		return;
	row_task(request_out(req), answer->m);
	request_json(req, 200);
}

int
on_task_create(struct request *req, struct err *err)
{
	const struct body_task_create *b = req->fields;
	struct msg_task_create m = {.caller = req->caller,
		.tenant = b->tenant.v,
		.template = b->template.v,
		.ttl_ms = (uint64_t)b->ttl_seconds_ms.v,
		.idle_ms = (uint64_t)b->idle_limit_seconds_ms.v,
		.policy = b->policy.v,
		.request_id = view_str(req->id)};
	auto_buf struct buf labels;

	buf_init(&labels, LABELS_MAX);
	body_map(&b->labels, false, &labels);
	if (buf_check(&labels) < 0)
		return refuse(err, TOO_LARGE, "labels may have at most %d bytes", LABELS_MAX);
	m.labels = buf_view(&labels);
	memcpy(m.idempotency_key, req->key, sizeof(req->key));
	memcpy(m.idempotency_body, req->body_digest, sizeof(req->body_digest));
	body_limits(&b->limits_in, &m.limits);
	return REQUEST_ASK(req, on_made, err, TASK_CREATE, task_create, m);
}

static void
on_list(void *owner, const struct answer *answer)
{
	struct request *req = owner;

	if (answer->type == MSG_TASK_ROW)
		row_task(&req->out, answer->m);
	else if (!request_refused(req, answer))
		row_page_end(req, ((const struct msg_end *)answer->m)->more);
}

int
on_task_list(struct request *req, struct err *err)
{
	struct msg_task_list m = {.caller = req->caller};
	auto_buf struct buf label;
	uint64_t limit;

	buf_init(&label, LABEL_MAX);
	if (row_after(req, ID_TASK, &m.after, err) < 0 ||
		request_number(req, "limit", LIMIT_PAGE, LIMIT_PAGE, &limit, err) < 0 ||
		row_label(req, &label, err) < 0)
		return err->code;
	m.limit = (uint16_t)limit;
	m.label = buf_view(&label);
	row_page_begin(req);
	return REQUEST_ASK(req, on_list, err, TASK_LIST, task_list, m);
}

int
on_task_get(struct request *req, struct err *err)
{
	if (req->arg[0].n > NAME_MAX_HERE)
		return refuse(err, NOT_FOUND, "no such task: its name is too long");
	return REQUEST_ASK(
		req, on_row, err, TASK_GET, task_get, {.caller = req->caller, .name = req->arg[0]});
}

int
on_task_close(struct request *req, struct err *err)
{
	struct msg_task_close m = {.caller = req->caller};

	if (request_id(req, 0, ID_TASK, &m.task, err) < 0)
		return err->code;
	return REQUEST_ASK(req, on_row, err, TASK_CLOSE, task_close, m);
}

static void
on_resumed(void *owner, const struct answer *answer)
{
	struct request *req = owner;

	if (request_refused(req, answer))
		return;
	row_sandbox(request_out(req), answer->m);
	request_json(req, 201);
}

int
on_task_resume(struct request *req, struct err *err)
{
	struct msg_task_resume m = {.caller = req->caller, .request_id = view_str(req->id)};

	if (request_id(req, 0, ID_TASK, &m.task, err) < 0 ||
		request_unkeyed(
			req, "resume makes a sandbox each time; look at the task first", err) < 0)
		return err->code;
	return REQUEST_ASK(req, on_resumed, err, TASK_RESUME, task_resume, m);
}

/* ---- inputs ---- */

static void
input_out(struct json_out *o, const struct msg_input_row *m)
{
	char mode[8];

	(void)snprintf(mode, sizeof(mode), "%04o", m->mode & 07777);
	json_out_object_begin(o);
	json_out_key_str(o, "path", m->path);
	json_out_key_str(o, "mode", view_str(mode));
	json_out_key(o, "size");
	json_out_u64(o, m->size_bytes);
	row_digest(o, "content", m->content);
	json_out_object_end(o);
}

static void
on_inputs(void *owner, const struct answer *answer)
{
	struct request *req = owner;

	if (answer->type == MSG_INPUT_ROW)
		input_out(&req->out, answer->m);
	else if (!request_refused(req, answer))
		row_page_end(req, ((const struct msg_end *)answer->m)->more);
}

int
on_input_list(struct request *req, struct err *err)
{
	struct msg_input_list m = {.caller = req->caller};

	if (request_id(req, 0, ID_TASK, &m.task, err) < 0)
		return err->code;
	row_page_begin(req);
	return REQUEST_ASK(req, on_inputs, err, INPUT_LIST, input_list, m);
}

/* An input on its way: the engine made a file, the api fills it and says when it is complete. */
struct input {
	int fd;      /* owned; -1 before the engine made it */
	bool closed; /* INPUT_CLOSE was sent */
};

static void
input_close(struct request *req, bool complete)
{
	struct input *in = req->own;
	auto_buf struct buf body;

	if (in->closed || list_empty(&req->asks))
		return;
	in->closed = true;
	buf_init(&body, 64);
	msg_input_close_put(&body, &(struct msg_input_close){.complete = complete});
	ask_more(container_of(req->asks.next, struct ask, of_owner), MSG_INPUT_CLOSE, &body);
}

static void
on_input(void *owner, const struct answer *answer)
{
	struct request *req = owner;
	struct input *in = req->own;

	if (answer->type == MSG_INPUT_FILE) {
		if (in->fd < 0)
			in->fd = ipc_msg_take(answer->in, 0);
		request_hold(req, false);
		return;
	}
	in->closed = true;
	if (request_refused(req, answer))
		return;
	input_out(request_out(req), answer->m);
	request_json(req, 201);
}

static void
input_feed(struct request *req, struct view piece)
{
	struct input *in = req->own;
	struct err err = {0};

	if (fd_write_all(in->fd, piece.p, piece.n, &err) < 0)
		request_refuse(req, ERROR_NO_SPACE, 0,
			view_str("the input could not be stored: the host's disk is full"));
}

static void
input_feed_end(struct request *req)
{
	input_close(req, true);
}

static void
input_tick(struct request *req)
{
	(void)req; /* no timer is set */
}

/* Called before the questions are forgotten, so that an input that is cut off is given up. */
static void
input_gone(struct request *req)
{
	struct input *in = req->own;

	input_close(req, false);
	fd_cleanup(&in->fd);
	loop_free_later(req->api->loop, in);
}

static const struct request_ops input_ops = {
	.feed = input_feed, .feed_end = input_feed_end, .tick = input_tick, .gone = input_gone};

int
on_input_put(struct request *req, struct err *err)
{
	struct view path = request_param(req, "path");
	struct msg_input_open m = {.caller = req->caller, .path = path, .size_bytes = req->length};
	struct input *in;

	if (request_id(req, 0, ID_TASK, &m.task, err) < 0 ||
		request_mode(req, 0644, &m.mode, err) < 0)
		return err->code;
	if (path.n == 0 || path.n > PATH_BYTES_MAX || path.p[0] != '/')
		return refuse(err, BAD_REQUEST,
			"the query must have path=, an absolute path of at most %d bytes",
			PATH_BYTES_MAX);
	if (req->chunked)
		return refuse(err, BAD_REQUEST,
			"Content-Length is needed: the size of the input must be known");
	in = calloc(1, sizeof(*in));
	if (in == NULL)
		return refuse(err, INTERNAL, "no memory for an input");
	in->fd = -1;
	req->own = in;
	req->ops = &input_ops;
	return REQUEST_ASK(req, on_input, err, INPUT_OPEN, input_open, m);
}

static void
on_input_deleted(void *owner, const struct answer *answer)
{
	struct request *req = owner;

	if (!request_refused(req, answer))
		request_nothing(req);
}

int
on_input_delete(struct request *req, struct err *err)
{
	struct msg_input_delete m = {.caller = req->caller,
		.path = request_param(req, "path"),
		.request_id = view_str(req->id)};

	if (request_id(req, 0, ID_TASK, &m.task, err) < 0)
		return err->code;
	if (m.path.n == 0 || m.path.n > PATH_BYTES_MAX)
		return refuse(
			err, BAD_REQUEST, "the query must have path=, as the input was stored");
	return REQUEST_ASK(req, on_input_deleted, err, INPUT_DELETE, input_delete, m);
}
