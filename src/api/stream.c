/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands whose output goes out as it comes, as server-sent events (exec/stream, jobs/{id}/stream). Each stdout and
 * stderr event has the text, the byte offset it begins at (for reattaching) and, where it is not UTF-8, the
 * bytes. There is always an exit or an error event: a client reads a silent end as success.
 */
#include "collect.h"
#include "exec.h"
#include "job.h"
#include "lib/loop/loop.h"
#include "route.h"

struct stream {
	struct view stdin_text; /* borrowed from the request */
	struct {
		uint8_t p[4];
		size_t n;        /* bytes of a character that is not complete yet */
		uint64_t offset; /* of the first of them */
	} rest[OUTPUT_MAX];
	bool begun, paused;
};

static void
chunk_event(struct request *req, enum output output, uint64_t offset, struct view data)
{
	struct json_out *o = request_event_out(req);

	json_out_object_begin(o);
	json_out_key_str(o, "chunk", data);
	json_out_key_int(o, "offset", (int64_t)offset);
	if (!view_utf8(data))
		base64_out(o, "base64", data);
	json_out_object_end(o);
	request_event(req, output_text(output));
}

static void
rest_flush(struct request *req, enum output output)
{
	struct stream *s = req->own;
	size_t n = s->rest[output].n;

	s->rest[output].n = 0;
	if (n > 0)
		chunk_event(req, output, s->rest[output].offset, view_of(s->rest[output].p, n));
}

static void
on_out(struct job *job, enum output output, uint64_t offset, struct view data)
{
	struct request *req = job->owner;
	struct stream *s = req->own;
	size_t kept = s->rest[output].n;
	auto_buf struct buf joined;
	struct view whole;

	if (offset != s->rest[output].offset + kept) {
		rest_flush(req, output);
		kept = 0;
		if (request_gone(req))
			return;
	}
	buf_init(&joined, data.n + sizeof(s->rest[output].p));
	buf_add(&joined, s->rest[output].p, kept);
	buf_add_view(&joined, data);
	if (buf_check(&joined) < 0) {
		request_stream_abort(req);
		return;
	}
	offset -= kept;
	whole = utf8_whole(buf_view(&joined));
	s->rest[output].n = joined.n - whole.n;
	s->rest[output].offset = offset + whole.n;
	memcpy(s->rest[output].p, joined.p + whole.n, joined.n - whole.n);
	if (whole.n > 0)
		chunk_event(req, output, offset, whole);
	if (!request_gone(req) && request_backlog(req) > LIMIT_OUT_HIGH_BYTES) {
		s->paused = true;
		job_pause(job, true);
	}
}

static void
on_gap(struct job *job, enum output output, uint64_t from, uint64_t to)
{
	struct request *req = job->owner;
	struct json_out *o;

	rest_flush(req, output);
	if (request_gone(req))
		return;
	o = request_event_out(req);
	json_out_object_begin(o);
	json_out_key_str(o, "output", view_str(output_text(output)));
	json_out_key_int(o, "from", (int64_t)from);
	json_out_key_int(o, "to", (int64_t)to);
	json_out_object_end(o);
	request_event(req, "gap");
}

static void
error_event(struct request *req, const char *code, struct view text)
{
	struct json_out *o = request_event_out(req);

	json_out_object_begin(o);
	json_out_key_str(o, "error", text);
	json_out_key_str(o, "code", view_str(code));
	json_out_key_str(o, "request_id", view_str(req->id));
	json_out_object_end(o);
	request_event(req, "error");
	if (!request_gone(req))
		request_stream_end(req);
}

static void
exit_event(struct request *req, const struct msg_job_row *row)
{
	struct json_out *o = request_event_out(req);

	json_out_object_begin(o);
	exec_end_out(row, o);
	json_out_key_int(o, "stdout_seen", (int64_t)row->stdout_seen);
	json_out_key_int(o, "stderr_seen", (int64_t)row->stderr_seen);
	json_out_key_bool(o, "output_cut", req->job->out_cut);
	json_out_object_end(o);
	request_event(req, "exit");
	if (!request_gone(req))
		request_stream_end(req);
}

static bool
begin(struct request *req, const struct id *job)
{
	struct stream *s = req->own;
	struct err err = {0};

	if (s->begun)
		return true;
	if (request_events_begin(req, job, &err) < 0) {
		request_fail(req, &err);
		return false;
	}
	s->begun = true;
	if (request_gone(req))
		return false;
	request_timer(req, LIMIT_HEARTBEAT_MS);
	return true;
}

static void
on_opened(struct job *job)
{
	struct request *req = job->owner;
	struct stream *s = req->own;

	if (s->stdin_text.n > 0) {
		job_send(job, s->stdin_text);
		job_send_end(job);
	}
	(void)begin(req, &job->id); /* refused or gone: it has ended */
}

static void
on_done(struct job *job, const struct msg_job_row *row)
{
	struct request *req = job->owner;
	const char *lost = NULL;
	char text[160];

	if (!begin(req, &row->job))
		return;
	for (enum output o = OUTPUT_STDOUT; o < OUTPUT_MAX && !request_gone(req); o++)
		rest_flush(req, o);
	if (request_gone(req))
		return;
	if (exec_lost(row, &lost)) {
		error_event(req, error_info(ERROR_SANDBOX_ENDED)->code, view_str(lost));
	} else if (row->reason == JOB_REASON_TIMEOUT) {
		exec_timeout_text(row, text, sizeof(text));
		error_event(req, error_info(ERROR_TIMEOUT)->code, view_str(text));
	} else {
		exit_event(req, row);
	}
}

static void
on_refused(struct job *job, const struct answer *answer)
{
	struct request *req = job->owner;
	struct stream *s = req->own;
	const struct msg_refused *m = answer->m;
	const struct error_info *info = error_info(m->error);

	if (s->begun)
		error_event(req, info == NULL ? "internal" : info->code, m->text);
	else
		(void)request_refused(req, answer);
}

static const struct job_ops stream_job = {
	.opened = on_opened,
	.out = on_out,
	.gap = on_gap,
	.done = on_done,
	.refused = on_refused,
};

static void
stream_tick(struct request *req)
{
	if (request_backlog(req) == 0)
		request_heartbeat(req);
	if (!request_gone(req))
		request_check(req);
}

static void
stream_revoked(struct request *req, struct view text)
{
	job_revoked_free(take_ptr(req->job));
	error_event(req, error_info(ERROR_UNAUTHORIZED)->code, text);
}

static void
stream_drained(struct request *req)
{
	struct stream *s = req->own;

	if (!s->paused)
		return;
	s->paused = false;
	job_pause(req->job, false);
}

static void
stream_gone(struct request *req)
{
	loop_free_later(req->api->loop, req->own);
}

static const struct request_ops stream_ops = {.tick = stream_tick,
	.revoked = stream_revoked,
	.drained = stream_drained,
	.gone = stream_gone};

static struct stream *
stream_new(struct request *req, struct err *err)
{
	struct stream *s = calloc(1, sizeof(*s));

	if (s == NULL) {
		(void)refuse(err, INTERNAL, "no memory for a stream");
		return NULL;
	}
	req->own = s;
	req->ops = &stream_ops;
	return s;
}

int
on_exec_stream(struct request *req, struct err *err)
{
	const struct body_exec *b = req->fields;
	struct exec_words w;
	struct msg_job_run m;
	struct stream *s;
	int r;

	if (b->detach.v)
		return refuse(
			err, BAD_REQUEST, "detach goes with exec; then read jobs/{job}/stream");
	exec_words_init(&w);
	r = exec_message(req, &w, &m, err);
	if (r == 0 && (s = stream_new(req, err)) != NULL) {
		s->stdin_text = b->stdin.v;
		m.live = true;
		r = job_run(req->api, &m, &stream_job, req, &req->job, err);
	}
	exec_words_done(&w);
	return r < 0 ? r : err->code;
}

int
on_job_stream(struct request *req, struct err *err)
{
	struct msg_job_attach m = {.caller = req->caller};
	struct stream *s;

	if (request_id(req, 0, ID_SANDBOX, &m.sandbox, err) < 0 ||
		request_id(req, 1, ID_JOB, &m.job, err) < 0 ||
		request_number(req, "stdout_from", 0, INT64_MAX, &m.stdout_from, err) < 0 ||
		request_number(req, "stderr_from", 0, INT64_MAX, &m.stderr_from, err) < 0)
		return err->code;
	s = stream_new(req, err);
	if (s == NULL)
		return err->code;
	s->rest[OUTPUT_STDOUT].offset = m.stdout_from;
	s->rest[OUTPUT_STDERR].offset = m.stderr_from;
	return job_attach(req->api, &m, &stream_job, req, &req->job, err);
}
