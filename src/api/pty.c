/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A shell on a terminal over WebSocket (exec/pty and ssh). Binary messages are keystrokes; text messages are
 * {"resize":{"rows":n,"cols":n}} or {"stdin":"text"}; output comes as binary messages. The end is a close frame; an exit
 * text {"exit":n} goes only to clients that ask for it (?exit=1), because others print it.
 */
#include "exec.h"
#include "job.h"
#include "lib/http/ws.h"
#include "lib/json/parse.h"
#include "lib/loop/loop.h"
#include "route.h"

enum { MESSAGE_MAX = 65536, SIZE_MAX_CELLS = 1000 };

/* What the clients speak; the template's own TERM is for commands without a terminal. */
static const char terminal[] = "TERM=xterm-256color";
static const char shell[] = "command -v bash >/dev/null 2>&1 && exec bash -l; exec sh -l";

struct pty {
	struct ws ws;
	struct buf text; /* of a text message under way */
	bool open, paused, closed;
};

static void
send_frame(struct request *req, enum ws_opcode opcode, struct view data)
{
	auto_buf struct buf frame;

	buf_init(&frame, data.n + WS_HEAD_MAX);
	if (ws_frame_add(&frame, opcode, true, NULL, data) == 0)
		request_socket_send(req, buf_view(&frame));
	else
		request_socket_end(req);
}

static void
close_with(struct request *req, unsigned code, const char *text)
{
	struct pty *p = req->own;
	auto_buf struct buf frame;

	if (p->closed)
		return;
	p->closed = true;
	buf_init(&frame, 256);
	if (ws_close_add(&frame, NULL, code, view_str(text)) == 0)
		request_socket_send(req, buf_view(&frame));
	if (!request_gone(req))
		request_socket_end(req);
}

static bool
cells_ok(const json_t *v)
{
	return json_is_integer(v) && json_integer_value(v) > 0 &&
	       json_integer_value(v) <= SIZE_MAX_CELLS;
}

/* A text message; what it does not know is ignored, as existing servers do. */
static void
take_text(struct request *req, struct view text)
{
	static const struct json_limits limits = {
		.max_bytes = MESSAGE_MAX, .max_depth = 4, .nul_ok = true};
	auto_json json_t *json = NULL;
	const json_t *resize, *keys;
	struct err err = {0};

	if (json_parse(text, &limits, &json, &err) < 0) {
		close_with(req, WS_PROTOCOL, "text messages are JSON objects");
		return;
	}
	resize = json_object_get(json, "resize");
	keys = json_object_get(json, "stdin");
	if (cells_ok(json_object_get(resize, "rows")) && cells_ok(json_object_get(resize, "cols")))
		job_resize(req->job, (uint16_t)json_integer_value(json_object_get(resize, "rows")),
			(uint16_t)json_integer_value(json_object_get(resize, "cols")));
	if (json_is_string(keys))
		job_send(req->job, view_of(json_string_value(keys), json_string_length(keys)));
}

static void
take_data(struct request *req, const struct ws_event *e)
{
	struct pty *p = req->own;

	if (e->opcode == WS_BINARY) {
		job_send(req->job, e->data);
		return;
	}
	buf_add_view(&p->text, e->data);
	if (!e->end)
		return;
	take_text(req, buf_view(&p->text));
	buf_clear(&p->text);
}

static void
pty_socket(struct request *req, uint8_t *at, size_t n)
{
	struct pty *p = req->own;
	struct ws_event e;

	while (!p->closed && !request_gone(req)) {
		ws_next(&p->ws, &at, &n, &e);
		switch (e.kind) {
		case WS_EVENT_MORE:
			if (job_backlog(req->job) > LIMIT_FEED_HIGH_BYTES)
				request_hold(req, true);
			return;
		case WS_EVENT_DATA:
			take_data(req, &e);
			break;
		case WS_EVENT_PING:
			send_frame(req, WS_PONG, e.data);
			break;
		case WS_EVENT_PONG:
			break;
		case WS_EVENT_CLOSE:
			job_signal(req->job, 1 /* SIGHUP */);
			close_with(req, WS_NORMAL, "");
			return;
		case WS_EVENT_REFUSED:
			close_with(req, e.code, "the frame is malformed");
			return;
		}
	}
}

static void
on_opened(struct job *job)
{
	struct request *req = job->owner;
	struct pty *p = req->own;
	struct err err = {0};

	if (request_socket(req, &err) < 0) {
		request_fail(req, &err);
		return;
	}
	p->open = true;
	if (!request_gone(req))
		request_timer(req, LIMIT_HEARTBEAT_MS);
}

static void
on_out(struct job *job, enum output output, uint64_t offset, struct view data)
{
	struct request *req = job->owner;
	struct pty *p = req->own;

	(void)output, (void)offset;
	send_frame(req, WS_BINARY, data);
	if (!request_gone(req) && request_backlog(req) > LIMIT_OUT_HIGH_BYTES) {
		p->paused = true;
		job_pause(job, true);
	}
}

static void
on_drained(struct job *job)
{
	request_hold(job->owner, false);
}

static void
on_done(struct job *job, const struct msg_job_row *row)
{
	struct request *req = job->owner;
	struct pty *p = req->own;
	char text[64];

	if (!p->open) {
		request_refuse(
			req, ERROR_CONFLICT, 0, view_str("the shell ended before it was attached"));
		return;
	}
	if (request_flag(req, "exit")) {
		(void)snprintf(text, sizeof(text), "{\"exit\":%d}", exec_code(row));
		send_frame(req, WS_TEXT, view_str(text));
	}
	(void)snprintf(text, sizeof(text), "%s %d", job_reason_text(row->reason), exec_code(row));
	if (!request_gone(req))
		close_with(req, WS_NORMAL, text);
}

static void
on_refused(struct job *job, const struct answer *answer)
{
	struct request *req = job->owner;
	struct pty *p = req->own;

	if (p->open)
		close_with(req, WS_GOING_AWAY,
			"the engine was lost; the shell can be reattached as a job");
	else
		(void)request_refused(req, answer);
}

static const struct job_ops pty_job = {
	.opened = on_opened,
	.out = on_out,
	.drained = on_drained,
	.done = on_done,
	.refused = on_refused,
};

static void
pty_tick(struct request *req)
{
	send_frame(req, WS_PING, view_of(NULL, 0));
	if (!request_gone(req))
		request_check(req);
}

static void
pty_revoked(struct request *req, struct view text)
{
	(void)text;
	job_revoked_free(take_ptr(req->job));
	close_with(req, WS_POLICY, "the token was revoked or expired");
}

static void
pty_drained(struct request *req)
{
	struct pty *p = req->own;

	if (!p->paused)
		return;
	p->paused = false;
	job_pause(req->job, false);
}

static void
pty_gone(struct request *req)
{
	struct pty *p = req->own;

	buf_done(&p->text);
	loop_free_later(req->api->loop, p);
}

static const struct request_ops pty_ops = {.socket = pty_socket,
	.tick = pty_tick,
	.revoked = pty_revoked,
	.drained = pty_drained,
	.gone = pty_gone};

int
on_pty(struct request *req, struct err *err)
{
	struct msg_job_run m = {.caller = req->caller,
		.kind = JOB_KIND_EXEC,
		.shell = true,
		.pty = true,
		.stdin_open = true,
		.live = true,
		.uid = 10001,
		.timeout_ms = LIMIT_EXEC_MAX_MS,
		.keep_bytes = LIMIT_OUTPUT_BYTES,
		.argv = view_of(shell, sizeof(shell)),
		.env = view_of(terminal, sizeof(terminal)),
		.request_id = view_str(req->id)};
	uint64_t rows, columns;
	struct pty *p;

	if (request_id(req, 0, ID_SANDBOX, &m.sandbox, err) < 0 ||
		request_number(req, "rows", 24, SIZE_MAX_CELLS, &rows, err) < 0 ||
		request_number(req, "cols", 80, SIZE_MAX_CELLS, &columns, err) < 0)
		return err->code;
	if (req->socket_refusal != HTTP_FINE) {
		(void)refuse(err, BAD_REQUEST, "%s", http_reason_text(req->socket_refusal));
		request_refuse_status(req, http_reason_status(req->socket_refusal, HTTP_REQUEST),
			http_reason_code(req->socket_refusal), err);
		return 0;
	}
	m.rows = (uint16_t)rows;
	m.columns = (uint16_t)columns;
	p = calloc(1, sizeof(*p));
	if (p == NULL)
		return refuse(err, INTERNAL, "no memory for a terminal");
	ws_init(&p->ws, WS_SERVER, MESSAGE_MAX);
	buf_init(&p->text, MESSAGE_MAX);
	req->own = p;
	req->ops = &pty_ops;
	return job_run(req->api, &m, &pty_job, req, &req->job, err);
}
