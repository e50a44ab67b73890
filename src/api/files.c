/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of a sandbox. Each operation is a job of the agent, who resolves the path below the sandbox's root as
 * its user; here the path is only checked for its form. Bytes are streamed both ways with back-pressure; a listing is
 * collected within LIMIT_ENTRIES.
 */
#include "conn.h"
#include "job.h"
#include "lib/base/num.h"
#include "lib/loop/loop.h"
#include "route.h"

#include <errno.h>

enum {
	PATH_BYTES_MAX = 4095,
	UID_AGENT = 10001,
	TIMEOUT_MS = 600000,
	MODE_FILE = 0644,
	MODE_DIRECTORY = 0755
};

struct file_op {
	const char *type;   /* of a body that is read */
	bool begun, paused; /* the answer's head is out; the relay waits for the peer */
	bool fed;           /* the body is complete */
	uint64_t bytes;     /* received */
	size_t entries;
	bool found, too_many;
};

static const struct {
	int number;
	enum error error;
	const char *text;
} faults[] = {
#define FAULT(number, error, text) {number, ERROR_##error, text},
#include "fault.def"
#undef FAULT
};

static bool
has_dots(struct view path)
{
	size_t from = 0;

	for (size_t i = 0; i <= path.n; i++) {
		if (i < path.n && path.p[i] != '/')
			continue;
		if (view_is(view_of(path.p + from, i - from), ".."))
			return true;
		from = i + 1;
	}
	return false;
}

static int
path_check(struct view path, struct err *err)
{
	if (path.n == 0)
		return refuse(err, BAD_REQUEST, "the query must have path=, an absolute path");
	if (path.n > PATH_BYTES_MAX)
		return refuse(err, BAD_REQUEST, "path may have at most %d bytes", PATH_BYTES_MAX);
	if (path.p[0] != '/' || has_dots(path) || view_has(path, 0))
		return refuse(err, BAD_REQUEST, "path must be absolute and without \"..\" parts");
	return 0;
}

static void
path_out(struct request *req, struct json_out *o)
{
	json_out_key_str(o, "path", request_param(req, "path"));
}

/* Answers that the operation failed; the row is of a job that did not end well. */
static void
fault_answer(struct request *req, const struct msg_job_row *row)
{
	const char *text = "the operation failed inside the sandbox";
	enum error error = ERROR_FILE;
	char sentence[256];

	if (row->reason == JOB_REASON_NOT_STARTED || row->reason == JOB_REASON_EXITED) {
		for (size_t i = 0; i < ARRAY_LEN(faults); i++)
			if (faults[i].number == row->code) {
				error = faults[i].error;
				text = faults[i].text;
			}
	} else if (row->reason == JOB_REASON_DISK) {
		error = ERROR_NO_SPACE;
		text = "the disk budget of the sandbox is used up";
	} else if (row->reason == JOB_REASON_TIMEOUT) {
		error = ERROR_TIMEOUT;
		text = "timeout: the file operation took too long and was ended";
	} else if (row->reason == JOB_REASON_AGENT_LOST ||
		   row->reason == JOB_REASON_SANDBOX_ENDED) {
		error = ERROR_SANDBOX_ENDED;
		text = "the sandbox ended during the operation";
	}
	(void)snprintf(sentence, sizeof(sentence), "%.*s%s: %s",
		(int)(request_param(req, "path").n > 100 ? 100 : request_param(req, "path").n),
		(const char *)request_param(req, "path").p,
		request_param(req, "path").n > 100 ? "..." : "", text);
	request_refuse(req, error, 0, view_str(sentence));
}

static bool
row_fine(const struct msg_job_row *row)
{
	return row->reason == JOB_REASON_EXITED && row->code == 0;
}

static void
op_refused(struct job *job, const struct answer *answer)
{
	(void)request_refused(job->owner, answer);
}

static void
op_gone(struct request *req)
{
	loop_free_later(req->api->loop, req->own);
}

static void
op_drained(struct request *req)
{
	struct file_op *op = req->own;

	if (!op->paused)
		return;
	op->paused = false;
	job_pause(req->job, false);
}

/* ---- reading a file or a tree ---- */

/* Sends the head and what was held back; false when the request has ended with it. */
static bool
read_begin(struct request *req)
{
	struct file_op *op = req->own;
	struct err err = {0};

	if (request_stream_begin(req, 200, op->type, NULL, &err) < 0) {
		request_fail(req, &err);
		return false;
	}
	op->begun = true;
	if (!request_gone(req) && req->text.n > 0)
		request_stream_add(req, buf_view(&req->text));
	return !request_gone(req);
}

static void
read_out(struct job *job, enum output output, uint64_t offset, struct view data)
{
	struct request *req = job->owner;
	struct file_op *op = req->own;

	if (output != OUTPUT_STDOUT)
		return;
	if (offset != op->bytes) { /* bytes are missing */
		job->out_cut = true;
		if (op->begun)
			request_stream_abort(req);
		return;
	}
	op->bytes += data.n;
	/* What is small is answered in one write, with its length. */
	if (!op->begun && req->text.n + data.n <= LIMIT_READ_BYTES) {
		buf_add_view(&req->text, data);
		return;
	}
	if (!op->begun && !read_begin(req))
		return;
	request_stream_add(req, data);
	if (!request_gone(req) && request_backlog(req) > LIMIT_OUT_HIGH_BYTES) {
		op->paused = true;
		job_pause(job, true);
	}
}

static void
read_done(struct job *job, const struct msg_job_row *row)
{
	struct request *req = job->owner;
	struct file_op *op = req->own;
	bool fine = row_fine(row) && !job->out_cut;

	if (op->begun && fine)
		request_stream_end(req);
	else if (op->begun)
		request_stream_abort(req);
	else if (fine)
		request_answer(req, 200, op->type, buf_view(&req->text));
	else
		fault_answer(req, row);
}

static const struct job_ops read_job = {.out = read_out, .done = read_done, .refused = op_refused};
static const struct request_ops read_ops = {.drained = op_drained, .gone = op_gone};

/* ---- listing ---- */

static void
entry_out(struct json_out *o, const struct msg_out_entry *m)
{
	char mode[8];

	(void)snprintf(mode, sizeof(mode), "%04o", m->mode & 07777);
	json_out_object_begin(o);
	json_out_key_str(o, "name", m->name);
	json_out_key_bool(o, "is_dir", m->kind == FILE_KIND_DIRECTORY);
	json_out_key_str(o, "kind", view_str(file_kind_text(m->kind)));
	json_out_key(o, "size");
	json_out_u64(o, m->size_bytes);
	json_out_key_str(o, "mode", view_str(mode));
	json_out_key_int(o, "mtime", m->mtime);
	json_out_object_end(o);
}

static void
list_entry(struct job *job, const struct msg_out_entry *m)
{
	struct request *req = job->owner;
	struct file_op *op = req->own;

	if (op->too_many || op->entries++ >= LIMIT_ENTRIES || !conn_fits(req->conn))
		op->too_many = true; /* more than a listing may have, or than can be held now */
	else
		entry_out(&req->out, m);
}

static void
list_done(struct job *job, const struct msg_job_row *row)
{
	struct request *req = job->owner;
	struct file_op *op = req->own;

	if (!row_fine(row)) {
		fault_answer(req, row);
	} else if (op->too_many) {
		request_refuse(req, ERROR_TOO_LARGE, 0,
			view_str("the directory has more entries than one answer may have; list it "
				 "with a command"));
	} else {
		json_out_array_end(&req->out);
		json_out_object_end(&req->out);
		request_json(req, 200);
	}
}

static const struct job_ops list_job = {
	.entry = list_entry, .done = list_done, .refused = op_refused};

static void
stat_entry(struct job *job, const struct msg_out_entry *m)
{
	struct request *req = job->owner;
	struct file_op *op = req->own;

	if (op->found)
		return;
	op->found = true;
	entry_out(request_out(req), m);
}

static void
stat_done(struct job *job, const struct msg_job_row *row)
{
	struct request *req = job->owner;
	struct file_op *op = req->own;

	if (row_fine(row) && op->found)
		request_json(req, 200);
	else
		fault_answer(req, row);
}

static const struct job_ops stat_job = {
	.entry = stat_entry, .done = stat_done, .refused = op_refused};

/* ---- changing ---- */

static void
change_done(struct job *job, const struct msg_job_row *row)
{
	struct request *req = job->owner;
	struct json_out *o;

	if (!row_fine(row)) {
		fault_answer(req, row);
		return;
	}
	if (row->kind == JOB_KIND_FILE_DELETE) {
		request_nothing(req);
		return;
	}
	o = request_out(req);
	json_out_object_begin(o);
	path_out(req, o);
	json_out_object_end(o);
	request_json(req, 201);
}

static const struct job_ops change_job = {.done = change_done, .refused = op_refused};
static const struct request_ops plain_ops = {.gone = op_gone};

/* ---- writing a file or a tree ---- */

static void
write_done(struct job *job, const struct msg_job_row *row)
{
	struct request *req = job->owner;
	struct file_op *op = req->own;
	struct json_out *o;

	if (!row_fine(row)) {
		fault_answer(req, row);
		return;
	}
	if (!op->fed) { /* a tree may end before its archive does */
		request_refuse(
			req, ERROR_FILE, 0, view_str("the archive ended before the body did"));
		return;
	}
	o = request_out(req);
	json_out_object_begin(o);
	path_out(req, o);
	json_out_key(o, "bytes");
	json_out_u64(o, op->bytes);
	json_out_object_end(o);
	request_json(req, 200);
}

static void
write_opened(struct job *job)
{
	request_hold(job->owner, false);
}

static void
write_drained(struct job *job)
{
	request_hold(job->owner, false);
}

static const struct job_ops write_job = {.opened = write_opened,
	.drained = write_drained,
	.done = write_done,
	.refused = op_refused};

static void
write_feed(struct request *req, struct view piece)
{
	struct file_op *op = req->own;

	op->bytes += piece.n;
	job_send(req->job, piece);
	if (job_backlog(req->job) > LIMIT_FEED_HIGH_BYTES)
		request_hold(req, true);
}

static void
write_feed_end(struct request *req)
{
	struct file_op *op = req->own;

	op->fed = true;
	job_send_end(req->job);
}

/* A caller that leaves in the middle must not leave half a file: the job is ended, its temporary name goes with it. */
static void
write_gone(struct request *req)
{
	struct file_op *op = req->own;

	if (!op->fed)
		job_kill_free(take_ptr(req->job));
	op_gone(req);
}

static const struct request_ops write_ops = {
	.feed = write_feed, .feed_end = write_feed_end, .gone = write_gone};

/* ---- routes ---- */

static int
start(struct request *req, enum job_kind kind, uint32_t mode, const struct job_ops *job_ops,
	const struct request_ops *ops, struct err *err)
{
	struct msg_job_run m = {.caller = req->caller,
		.kind = kind,
		.uid = UID_AGENT,
		.mode = mode,
		.timeout_ms = TIMEOUT_MS,
		.path = request_param(req, "path"),
		.live = ops == &read_ops,
		.stdin_open = ops == &write_ops,
		.size_bytes = ops != &write_ops ? 0
			      : req->chunked    ? UINT64_MAX
						: req->length,
		.request_id = view_str(req->id)};
	struct file_op *op;

	if (m.path.n == 0 && (kind == JOB_KIND_FILE_LIST))
		m.path = view_str("/");
	if (request_id(req, 0, ID_SANDBOX, &m.sandbox, err) < 0 || path_check(m.path, err) < 0)
		return err->code;
	op = calloc(1, sizeof(*op));
	if (op == NULL)
		return refuse(err, INTERNAL, "no memory for a file operation");
	op->type = kind == JOB_KIND_TREE_DOWN ? "application/x-tar" : "application/octet-stream";
	req->own = op;
	req->ops = ops;
	return job_run(req->api, &m, job_ops, req, &req->job, err);
}

int
on_file_read(struct request *req, struct err *err)
{
	return start(req, JOB_KIND_FILE_READ, 0, &read_job, &read_ops, err);
}

int
on_tree_read(struct request *req, struct err *err)
{
	return start(req, JOB_KIND_TREE_DOWN, 0, &read_job, &read_ops, err);
}

int
on_file_write(struct request *req, struct err *err)
{
	uint32_t mode;

	if (request_mode(req, 0, &mode, err) < 0)
		return err->code;
	return start(req, JOB_KIND_FILE_WRITE, mode, &write_job, &write_ops, err);
}

int
on_tree_write(struct request *req, struct err *err)
{
	return start(req, JOB_KIND_TREE_UP, 0, &write_job, &write_ops, err);
}

int
on_file_list(struct request *req, struct err *err)
{
	struct view path = request_param(req, "path");
	struct json_out *o = request_out(req);

	json_out_object_begin(o);
	json_out_key_str(o, "path", path.n == 0 ? view_str("/") : path);
	json_out_key(o, "entries");
	json_out_array_begin(o);
	return start(req, JOB_KIND_FILE_LIST, 0, &list_job, &plain_ops, err);
}

int
on_file_stat(struct request *req, struct err *err)
{
	return start(req, JOB_KIND_FILE_STAT, 0, &stat_job, &plain_ops, err);
}

int
on_file_delete(struct request *req, struct err *err)
{
	if (view_is(request_param(req, "path"), "/"))
		return refuse(
			err, BAD_REQUEST, "the root cannot be removed; end the sandbox instead");
	return start(req, JOB_KIND_FILE_DELETE, 0, &change_job, &plain_ops, err);
}

int
on_file_mkdir(struct request *req, struct err *err)
{
	uint32_t mode;

	if (request_mode(req, 0, &mode, err) < 0)
		return err->code;
	return start(req, JOB_KIND_FILE_MKDIR, mode, &change_job, &plain_ops, err);
}
