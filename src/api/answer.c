/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers of a request; see request.h. Each leaves in one write with all its header fields; errors are always
 * JSON with a sentence, a stable code and the request's id.
 */
#include "conn.h"
#include "lib/http/sse.h"
#include "lib/http/write.h"
#include "lib/http/ws_hand.h"
#include "request.h"
#include "route.h"

#include <errno.h>

static const char type_json[] = "application/json";

static struct http_field
field(const char *name, const char *value)
{
	return (struct http_field){view_str(name), view_str(value)};
}

/* Fields that every answer has; returns how many. */
enum { FIELDS_COMMON = 3 };
static size_t
fields_common(const struct request *req, struct http_field *ret)
{
	ret[0] = field("X-Request-Id", req->id);
	ret[1] = field("Cache-Control", "no-store");
	ret[2] = field("X-Content-Type-Options", "nosniff");
	return FIELDS_COMMON;
}

/*
 * Head and body into c->out. A large body becomes c->out itself with the head put in front, so that it is in memory
 * once.
 */
static int
answer_put(struct request *req, const struct http_answer *a)
{
	enum { HEAD_BYTES = 8192 };
	struct conn *c = req->conn;
	struct http_answer head = *a;
	auto_buf struct buf b;

	if (a->body.p != req->text.p || a->body.n <= LIMIT_HELD_SMALL_BYTES || c->out.n > 0)
		return http_write_answer(&c->out, a);
	buf_init(&b, HEAD_BYTES);
	head.head_only = true;
	req->text.max += HEAD_BYTES;
	if (http_write_answer(&b, &head) < 0 || buf_room(&req->text, b.n) == NULL)
		return -ENOBUFS;
	memmove(req->text.p + b.n, req->text.p, req->text.n);
	memcpy(req->text.p, b.p, b.n);
	buf_grew(&req->text, b.n);
	buf_done(&c->out);
	c->out = req->text;
	c->out_at = 0;
	buf_init(&req->text, LIMIT_ANSWER_BYTES);
	return 0;
}

static void
answer_with(struct request *req, unsigned status, const char *type, struct view body,
	const struct http_field *more, size_t nmore)
{
	struct conn *c = req->conn;
	struct http_field f[FIELDS_COMMON + 3];
	size_t n = fields_common(req, f);

	if (c->state != CONN_WAIT)
		c->keep = false;
	for (size_t i = 0; i < nmore; i++)
		f[n++] = more[i];
	if (answer_put(req, &(struct http_answer){.status = status,
				    .type = type,
				    .body = body,
				    .close = !c->keep,
				    .field = f,
				    .fields = n}) < 0) {
		conn_close(
			c); /* no memory for it: the peer sees a cut connection rather than half an answer */
		return;
	}
	conn_answered(c);
}

struct json_out *
request_out(struct request *req)
{
	buf_clear(&req->text);
	json_out_init(&req->out, &req->text, false);
	return &req->out;
}

/*
 * Else it was refused. Not by a status that makes clients ask again by themselves: what was asked for was done, only its
 * answer cannot be held.
 */
static bool
answer_fits(struct request *req, size_t n)
{
	if (n <= LIMIT_HELD_SMALL_BYTES || conn_fits(req->conn))
		return true;
	buf_done(&req->text);
	request_refuse(req, ERROR_TOO_LARGE, 0,
		view_str("the answer cannot be held: too much waits to be read by this caller or "
			 "by all; it was done; read it in smaller pieces, or a command's output "
			 "by its job"));
	return false;
}

void
request_refuse_full(struct request *req)
{
	request_refuse(req, ERROR_UNAVAILABLE, 1000, view_str(request_full));
}

void
request_json(struct request *req, unsigned status)
{
	if (json_out_end(&req->out) < 0)
		request_refuse(req, ERROR_TOO_LARGE, 0,
			view_str("the answer would be too large; ask for less, in pages"));
	else if (answer_fits(req, req->text.n))
		answer_with(req, status, type_json, buf_view(&req->text), NULL, 0);
}

void
request_answer(struct request *req, unsigned status, const char *type, struct view body)
{
	if (answer_fits(req, body.n))
		answer_with(req, status, type, body, NULL, 0);
}

void
request_nothing(struct request *req)
{
	answer_with(req, 204, NULL, view_of(NULL, 0), NULL, 0);
}

/* "GET, POST" of the methods that the path has. */
static void
allow_text(unsigned allow, char *ret, size_t n)
{
	size_t at = 0;

	ret[0] = 0;
	for (unsigned m = 0; m < HTTP_METHODS; m++)
		if ((allow & 1U << m) != 0 && at < n)
			at += (size_t)snprintf(ret + at, n - at, "%s%s", at == 0 ? "" : ", ",
				http_method_name((enum http_method)m));
}

static void
refuse_send(struct request *req, unsigned status, uint32_t retry_after_ms)
{
	struct http_field more[2];
	char seconds[16], allow[64];
	size_t n = 0;

	if (retry_after_ms > 0) {
		(void)snprintf(seconds, sizeof(seconds), "%u", (retry_after_ms + 999) / 1000);
		more[n++] = field("Retry-After", seconds);
	}
	if (status == 401) {
		more[n++] = field("WWW-Authenticate", "Bearer");
	} else if (status == 405) {
		allow_text(req->allow, allow, sizeof(allow));
		more[n++] = field("Allow", allow);
	} else if (status == 426) {
		more[n++] = field("Sec-WebSocket-Version", "13");
	}
	answer_with(req, status, type_json, buf_view(&req->text), more, n);
}

/* A check that could not be made is mended or waited for. */
static bool
is_rule(enum denial denial)
{
	return denial != DENIAL_APPROVERS_UNREADABLE && denial != DENIAL_SECRET_MISSING &&
	       denial != DENIAL_VERIFY_UNAVAILABLE && denial != DENIAL_BROKER_UNAVAILABLE &&
	       denial != DENIAL_AUDIT_UNAVAILABLE;
}

/* The three members that every refusal has, and the check that failed; a denial also says that another way is no way. */
static void
refuse_members(struct request *req, unsigned status, const char *code, enum denial denial,
	struct view text)
{
	auto_buf struct buf sentence;

	buf_init(&sentence, 1024);
	buf_add_view(&sentence, text.n > 0 ? text : view_str("refused"));
	if (status == 403 && is_rule(denial))
		buf_add_str(&sentence, "; that is a rule here and no fault, so asking in another "
				       "way is refused too");
	json_out_key_str(&req->out, "error", buf_view(&sentence));
	json_out_key_str(&req->out, "code", view_str(code));
	json_out_key_str(&req->out, "request_id", view_str(req->id));
	if (denial != DENIAL_NONE)
		json_out_key_str(&req->out, "denial", view_str(denial_text(denial)));
}

static void
refuse_object(struct request *req, unsigned status, const char *code, enum denial denial,
	uint32_t retry_after_ms, struct view text)
{
	struct json_out *o = request_out(req);

	json_out_object_begin(o);
	refuse_members(req, status, code, denial, text);
	json_out_object_end(o);
	if (req->conn->state == CONN_STREAM)
		request_stream_abort(
			req); /* the status is out; a stream tells its own errors before this */
	else
		refuse_send(req, status, retry_after_ms);
}

void
request_refuse(struct request *req, enum error error, uint32_t retry_after_ms, struct view text)
{
	const struct error_info *info = error_info(error);

	must(info != NULL);
	refuse_object(req, (unsigned)info->status, info->code, DENIAL_NONE, retry_after_ms, text);
}

void
request_refuse_with(struct request *req, enum error error, enum denial denial, struct view text)
{
	const struct error_info *info = error_info(error);

	refuse_members(req, (unsigned)info->status, info->code, denial, text);
	json_out_object_end(&req->out);
	if (json_out_end(&req->out) < 0)
		request_refuse(req, error, 0, text);
	else
		refuse_send(req, (unsigned)info->status, 0);
}

void
request_refuse_status(struct request *req, unsigned status, const char *code, const struct err *err)
{
	refuse_object(req, status, code, DENIAL_NONE, 0, view_str(err->text));
}

void
request_fail(struct request *req, const struct err *err)
{
	request_refuse(req,
		error_info((unsigned)-err->code) == NULL ? ERROR_INTERNAL
							 : (enum error) - err->code,
		0, view_str(err->text));
}

bool
request_refused(struct request *req, const struct answer *answer)
{
	const struct msg_refused *m = answer->m;
	const struct error_info *info;

	if (answer->type != MSG_REFUSED)
		return false;
	info = error_info(m->error) == NULL ? error_info(ERROR_INTERNAL) : error_info(m->error);
	refuse_object(
		req, (unsigned)info->status, info->code, m->denial, m->retry_after_ms, m->text);
	return true;
}

int
request_stream_begin(struct request *req, unsigned status, const char *type,
	const struct http_field *more, struct err *err)
{
	struct conn *c = req->conn;
	struct http_field f[FIELDS_COMMON + 1];
	size_t n = fields_common(req, f);
	struct http_write w;

	if (!req->chunks_ok)
		return refuse(err, BAD_REQUEST, "an answer that is sent in pieces needs HTTP/1.1");
	if (more != NULL)
		f[n++] = *more;
	http_write_response(&w, &c->out, status);
	http_write_field(&w, "Content-Type", view_str(type));
	for (size_t i = 0; i < n; i++)
		http_write_field_view(&w, f[i].name, f[i].value);
	if (!c->keep)
		http_write_field(&w, "Connection", view_str("close"));
	http_write_chunked(&w);
	if (http_write_end(&w) < 0)
		return refuse(err, INTERNAL, "no memory for the answer");
	req->streaming = true;
	conn_step(c, CONN_ON_BEGIN);
	conn_flush(c);
	return 0;
}

void
request_stream_add(struct request *req, struct view piece)
{
	struct conn *c = req->conn;

	http_chunk_add(&c->out, piece);
	if (buf_check(&c->out) < 0)
		conn_close(
			c); /* a source that does not wait: never in practice, see OUT_HIGH_BYTES */
	else
		conn_flush(c);
}

void
request_stream_end(struct request *req)
{
	http_chunk_end(&req->conn->out);
	conn_answered(req->conn);
}

void
request_stream_abort(struct request *req)
{
	req->conn->keep = false;
	conn_answered(req->conn);
}

int
request_events_begin(struct request *req, const struct id *job, struct err *err)
{
	char text[ID_TEXT];
	struct http_field f;

	if (job == NULL)
		return request_stream_begin(
			req, 200, "text/event-stream; charset=utf-8", NULL, err);
	id_text(job, ID_JOB, text);
	f = field("X-Demilune-Job", text);
	return request_stream_begin(req, 200, "text/event-stream; charset=utf-8", &f, err);
}

struct json_out *
request_event_out(struct request *req)
{
	buf_clear(&req->text);
	json_out_init(&req->out, &req->text, true);
	return &req->out;
}

void
request_event(struct request *req, const char *name)
{
	auto_buf struct buf frame;

	buf_init(&frame, LIMIT_ANSWER_BYTES);
	if (json_out_end(&req->out) < 0 || sse_frame(&frame, name, buf_view(&req->text)) < 0)
		conn_close(req->conn); /* no memory for it; the peer sees that the stream is cut */
	else
		request_stream_add(req, buf_view(&frame));
}

void
request_heartbeat(struct request *req)
{
	request_stream_add(req, view_str(": hb\n\n"));
}

int
request_socket(struct request *req, struct err *err)
{
	struct conn *c = req->conn;

	must(req->accept_key[0] != 0);
	if (ws_hand_answer(&c->out, req->accept_key) < 0)
		return refuse(err, INTERNAL, "no memory for the answer");
	conn_step(c, CONN_ON_SWITCH);
	conn_flush(c);
	return 0;
}

void
request_socket_send(struct request *req, struct view frames)
{
	struct conn *c = req->conn;

	buf_add_view(&c->out, frames);
	if (buf_check(&c->out) < 0)
		conn_close(c);
	else
		conn_flush(c);
}

void
request_socket_end(struct request *req)
{
	conn_answered(req->conn);
}

void
request_timer(struct request *req, uint64_t ms)
{
	ev_timer_stop(req->api->loop, &req->timer);
	if (ms == 0)
		return;
	ev_timer_set(&req->timer, (double)ms / 1e3, (double)ms / 1e3);
	ev_timer_start(req->api->loop, &req->timer);
}

bool
request_gone(const struct request *req)
{
	return req->conn->fd < 0;
}

size_t
request_backlog(const struct request *req)
{
	return req->conn->out.n - req->conn->out_at;
}

void
request_hold(struct request *req, bool held)
{
	struct conn *c = req->conn;

	c->held = held;
	if (!held)
		conn_work(c);
}
