/* SPDX-License-Identifier: Apache-2.0 */
/* Stored inputs; see input.h. */
#include "engine/input.h"

#include "engine/job.h"
#include "engine/limits.h"
#include "engine/task.h"
#include "engine/template.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/hex.h"
#include "lib/base/log.h"
#include "lib/base/sha256.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TEMPORARY_NAME = 32 };

/* One that is being written by the api, then copied by us. */
struct upload {
	struct link link;
	struct reply to; /* the tag names the upload */
	struct principal who;
	struct id task;
	char tenant[TENANT_BYTES];
	char path[4097];
	uint32_t mode;
	uint64_t size;        /* as announced, then as found */
	uint64_t deadline_ms; /* monotonic */
	int fd;               /* owned: reads what the api writes; its name is removed already */
	int copy;             /* owned: ours; -1 until INPUT_CLOSE */
	char copy_name[TEMPORARY_NAME];
	uint64_t done; /* bytes copied */
	struct sha256 hash;
};

static void
temporary_name(char *ret)
{
	char text[ID_TEXT];
	struct id id;

	id_new(&id);
	id_text(&id, "tmp_", text);
	(void)snprintf(ret, TEMPORARY_NAME, "%s", text);
}

/* The bytes under this digest go when no input of an open task has them. */
static int
drop_unneeded(struct engine *e, const uint8_t content[static 32], struct err *err)
{
	auto_query struct query q = query_of(e->store, Q_INPUT_NEEDED);
	char name[SHA256_TEXT];
	int r;

	arg_digest(&q, content);
	r = query_one(&q, err);
	if (r < 0 || col_u64(&q) != 0)
		return r;
	hex_encode(content, 32, name);
	if (unlinkat(e->inputs_fd, name, 0) < 0 && errno != ENOENT)
		return err_errno(err, "remove the bytes of an input");
	return 0;
}

/* Not worth failing a request for: the sweep at the next start does it again. */
static void
drop(struct engine *e, const uint8_t content[static 32])
{
	struct err err;

	if (drop_unneeded(e, content, &err) < 0)
		log_line("bytes of an input that nobody needs stay: %s", err.text);
}

static int
sweep(struct engine *e, const char *name, struct err *err)
{
	uint8_t content[32];

	if (hex_decode(view_str(name), content, 32) == 0)
		return drop_unneeded(e, content, err);
	if (strncmp(name, "tmp_", 4) == 0 && unlinkat(e->inputs_fd, name, 0) < 0)
		return err_errno(err, "remove a half-made input");
	return 0;
}

int
inputs_open(struct engine *e, struct err *err)
{
	DIR *dir;
	int copy, r = 0;

	if (mkdirat(e->engine_fd, "inputs", 0700) < 0 && errno != EEXIST)
		return err_errno(err, "make inputs/");
	e->inputs_fd = openat(
		e->engine_fd, "inputs", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	copy = e->inputs_fd < 0 ? -1
				: openat(e->inputs_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = copy < 0 ? NULL : fdopendir(copy);
	if (dir == NULL)
		return err_errno(err, "open inputs/");
	for (struct dirent *d = readdir(dir); d != NULL && r == 0; d = readdir(dir))
		r = sweep(e, d->d_name, err);
	(void)closedir(dir); /* it was only read */
	return r;
}

void
inputs_forget(struct engine *e, const struct id *task)
{
	auto_query struct query q = query_of(e->store, Q_INPUT_LIST);
	struct err err;
	int r;

	arg_id(&q, task);
	for (r = query_next(&q, &err); r > 0; r = query_next(&q, &err)) {
		uint8_t content[32];

		(void)col_u64(&q); /* seq */
		(void)col_view(&q);
		(void)col_u64(&q); /* mode */
		(void)col_u64(&q);
		col_digest(&q, content);
		drop(e, content);
	}
	if (r < 0)
		log_line("bytes of the inputs of a closed task stay: %s", err.text);
}

static void
upload_free(struct engine *e, struct upload *u)
{
	list_remove(&u->link);
	e->uploads_n--;
	if (u->copy >= 0) {
		(void)unlinkat(e->inputs_fd, u->copy_name,
			0);           /* gone if it was renamed: then nothing is to do */
		(void)close(u->copy); /* a failed write was noticed by fsync */
	}
	if (u->fd >= 0)
		(void)close(u->fd); /* temporary */
	free(u);
}

void
uploads_drop(struct engine *e)
{
	list_each (u, &e->uploads, struct upload, link)
		upload_free(e, u);
	ev_timer_stop(e->loop, &e->slice);
}

void
uploads_tick(struct engine *e, uint64_t now_ms)
{
	struct err err;

	(void)REFUSE(&err, BAD_REQUEST, "the input did not come in time and was given up");
	list_each (u, &e->uploads, struct upload, link)
		if (now_ms >= u->deadline_ms) {
			answer_refused(e, u->to, &err);
			upload_free(e, u);
		}
}

/* ---- open ---- */

/* Absolute, names a file, no empty part, no "." and no "..". */
static bool
path_ok(struct view path)
{
	size_t start = 1;

	if (path.n < 2 || path.n > 4096 || path.p[0] != '/')
		return false;
	for (size_t i = 1; i <= path.n; i++) {
		struct view part;

		if (i < path.n && path.p[i] != '/')
			continue;
		part = view_of(path.p + start, i - start);
		if (part.n == 0 || view_is(part, ".") || view_is(part, ".."))
			return false;
		start = i + 1;
	}
	return true;
}

static bool
is_below(struct view path, struct view place)
{
	return path.n > place.n && path.p[place.n] == '/' && memcmp(path.p, place.p, place.n) == 0;
}

/* A sandbox can write below the places of its template only; an input elsewhere would stop its creation. */
static int
check_place(struct engine *e, const struct task *t, struct view path, struct err *err)
{
	struct template *template;
	struct view left;
	int r = path_ok(path) ? template_find(e, view_str(t->template), &template, err)
			      : REFUSE(err, BAD_REQUEST,
					"the path of an input must be absolute and name a file, "
					"without . and ..");

	if (r < 0)
		return r;
	for (left = buf_view(&template->places); left.n > 0;) {
		struct view place = view_str((const char *)left.p);

		if (is_below(path, place))
			return 0;
		left = view_skip(left, place.n + 1);
	}
	return REFUSE(err, BAD_REQUEST,
		"an input must lie below one of the places of the template (%.100s, ...)",
		template->places.n > 0 ? (const char *)template->places.p : "it has none");
}

/* A file cannot be where another input needs a directory. */
static int
check_beside(struct engine *e, const struct id *task, struct view path, struct err *err)
{
	auto_query struct query q = query_of(e->store, Q_INPUT_LIST);
	int r;

	arg_id(&q, task);
	for (r = query_next(&q, err); r > 0; r = query_next(&q, err)) {
		struct view other;

		(void)col_u64(&q); /* seq */
		other = col_view(&q);
		if (is_below(path, other) || is_below(other, path))
			return REFUSE(err, CONFLICT,
				"a stored input is a file where this one needs a directory, or the "
				"other way round; take that one back first");
	}
	return r;
}

/* Bytes and number of the task's inputs without this path, those under way included. */
static int
check_room(
	struct engine *e, const struct id *task, struct view path, uint64_t size, struct err *err)
{
	uint64_t bytes, n, max = e->settings.task_max_input_bytes;
	auto_query struct query q = query_of(e->store, Q_INPUT_SUM);
	int r;

	arg_id(&q, task);
	arg_view(&q, path);
	r = query_one(&q, err);
	if (r < 0)
		return r;
	bytes = col_u64(&q);
	n = col_u64(&q);
	list_each (u, &e->uploads, struct upload, link)
		if (id_eq(&u->task, task)) {
			bytes += u->size;
			n++;
		}
	if (n >= LIMIT_INPUTS_PER_TASK)
		return REFUSE(err, QUOTA, "a task has at most %u inputs",
			(unsigned)LIMIT_INPUTS_PER_TASK);
	if (size > max || bytes > max - size)
		return REFUSE(err, TOO_LARGE,
			"the inputs of a task may have %" PRIu64 " bytes together", max);
	return 0;
}

/* A file without a name: *ret_read is ours, *ret_write the api's, which cannot read with it. */
static int
unnamed_file(struct engine *e, int *ret_read, int *ret_write, struct err *err)
{
	char name[TEMPORARY_NAME];

	temporary_name(name);
	auto_fd int write_end = openat(
		e->inputs_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (write_end < 0)
		return err_errno(err, "make a file for an input");
	auto_fd int read_end = openat(e->inputs_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (unlinkat(e->inputs_fd, name, 0) < 0 || read_end < 0)
		return err_errno(err, "make a file for an input");
	*ret_read = take_fd(&read_end);
	*ret_write = take_fd(&write_end);
	return 0;
}

/* One tenant leaves slots to the others. */
static int
check_slots(struct engine *e, const char *tenant, struct err *err)
{
	unsigned own = 0;

	list_each (u, &e->uploads, struct upload, link)
		own += strcmp(u->tenant, tenant) == 0;
	if (e->uploads_n < LIMIT_UPLOADS && own < LIMIT_UPLOADS_PER_TENANT)
		return 0;
	return REFUSE(err, RATE, "too many inputs are being stored; try again in a moment");
}

static int
upload_new(struct engine *e, const struct principal *p, const struct task *t,
	const struct msg_input_open *m, struct reply to, int *ret_write, struct err *err)
{
	struct upload *u = calloc(1, sizeof(*u));
	int r = u == NULL ? err_set(err, -ENOMEM, "no memory for an input")
			  : unnamed_file(e, &u->fd, ret_write, err);

	if (r < 0) {
		free(u);
		return r;
	}
	u->copy = -1;
	u->to = to;
	u->who = *p;
	u->task = m->task;
	memcpy(u->tenant, t->tenant, sizeof(u->tenant));
	memcpy(u->path, m->path.p, m->path.n);
	u->mode = m->mode;
	u->size = m->size_bytes;
	u->deadline_ms = clock_mono_ms() + LIMIT_UPLOAD_MS;
	list_append(&e->uploads, &u->link);
	e->uploads_n++;
	if (!ev_is_active(&e->tick))
		ev_timer_again(e->loop, &e->tick);
	return 0;
}

int
on_input_open(struct engine *e, struct reply to, const struct msg_input_open *m, struct err *err)
{
	auto_task struct task t;
	struct principal p;
	auto_fd int fd = -1;
	int r;

	task_init(&t, e);
	r = caller_find(e, &m->caller, &p, err);
	if (r == 0)
		r = task_find(&t, &p, &m->task, err);
	if (r == 0)
		r = task_check_open(&t, err);
	if (r == 0)
		r = check_place(e, &t, m->path, err);
	if (r == 0)
		r = check_beside(e, &m->task, m->path, err);
	if (r == 0 && m->mode > 0777)
		r = REFUSE(err, BAD_REQUEST, "mode: at most 0777");
	if (r == 0)
		r = check_slots(e, t.tenant, err);
	if (r == 0)
		r = check_room(e, &m->task, m->path, m->size_bytes, err);
	if (r == 0)
		r = upload_new(e, &p, &t, m, to, &fd, err);
	if (r < 0)
		return r;
	if (reply_alive(e, to))
		IPC_SEND_FD(e->api, to.tag, INPUT_FILE, input_file, fd, {0});
	return 0;
}

/* ---- close ---- */

static void
put_input(struct canon_writer *w, const void *arg)
{
	const struct upload *u = arg;
	uint8_t digest[32];
	struct sha256 hash = u->hash;

	sha256_end(&hash, digest);
	put_digest(w, "content", digest);
	put_u64(w, "mode", u->mode);
	put_path(w, "path", view_str(u->path));
	put_u64(w, "size_bytes", u->size);
}

static int
insert(struct engine *e, const struct upload *u, const uint8_t content[static 32], struct err *err)
{
	auto_query struct query q = query_of(e->store, Q_INPUT_PUT);

	arg_id(&q, &u->task);
	arg_text(&q, u->path);
	arg_u64(&q, u->mode);
	arg_u64(&q, u->size);
	arg_digest(&q, content);
	arg_u64(&q, clock_real_ms());
	return query_run(&q, err);
}

/* The file is on disk under its name before the row says that it is. */
static int
keep(struct engine *e, struct upload *u, const uint8_t content[static 32], struct err *err)
{
	char name[SHA256_TEXT];

	hex_encode(content, 32, name);
	if (fchmod(u->copy, 0400) < 0 || fsync(u->copy) < 0 ||
		renameat(e->inputs_fd, u->copy_name, e->inputs_fd, name) < 0 ||
		fsync(e->inputs_fd) < 0)
		return err_errno(err, "store an input");
	return 0;
}

static int
record(struct engine *e, struct upload *u, const struct task *t, const uint8_t content[static 32],
	struct err *err)
{
	const struct audit_event ev = {.event = "input.store",
		.tenant = t->tenant,
		.task = &t->id,
		.who = &u->who,
		.data = put_input,
		.arg = u};
	auto_tx struct tx tx = {0};
	int r = tx_begin(&tx, e->store, err);

	if (r == 0)
		r = insert(e, u, content, err);
	if (r == 0)
		r = audit_append(e, &ev, err);
	r = audit_refuse(r, "a path", err);
	return r == 0 ? tx_commit(&tx, err) : r;
}

/* What the path had until now; all zero when it had nothing. */
static int
before(struct engine *e, const struct id *task, struct view path, uint8_t ret[static 32],
	struct err *err)
{
	auto_query struct query q = query_of(e->store, Q_INPUT_CONTENT);
	int r;

	arg_id(&q, task);
	arg_view(&q, path);
	r = query_next(&q, err);
	if (r > 0)
		col_digest(&q, ret);
	return r < 0 ? r : 0;
}

/* All bytes are copied. */
static int
finish(struct engine *e, struct upload *u, struct err *err)
{
	auto_task struct task t;
	struct sha256 hash = u->hash;
	uint8_t content[32], old[32] = {0};
	int r;

	task_init(&t, e);
	sha256_end(&hash, content);
	r = task_load(&t, &u->task, err);
	if (r == 0)
		r = task_check_open(&t, err);
	if (r == 0)
		r = check_beside(e, &u->task, view_str(u->path), err); /* stored meanwhile */
	if (r == 0)
		r = before(e, &u->task, view_str(u->path), old, err);
	if (r < 0)
		return r;
	r = keep(e, u, content, err);
	if (r == 0)
		r = record(e, u, &t, content, err);
	if (r < 0) {
		drop(e, content);
		return r;
	}
	if (!digest_is_zero(old))
		drop(e, old);
	store_sync(e->store);
	struct msg_input_row row = {
		.path = view_str(u->path), .mode = u->mode, .size_bytes = u->size};
	memcpy(row.content, content, 32);
	REPLY(e, u->to, INPUT_ROW, input_row, row);
	return 0;
}

/* The next bytes; 1 when there are more. */
static int
copy_slice(struct upload *u, struct err *err)
{
	static uint8_t room[65536];
	uint64_t end = u->done + LIMIT_SLICE_BYTES;

	while (u->done < u->size && u->done < end) {
		uint64_t left = u->size - u->done;
		ssize_t n = pread(u->fd, room, left < sizeof(room) ? (size_t)left : sizeof(room),
			(off_t)u->done);

		if (n < 0)
			return err_errno(err, "read an input");
		if (n == 0)
			return REFUSE(
				err, BAD_REQUEST, "the input became shorter while it was stored");
		sha256_add(&u->hash, room, (size_t)n);
		if (fd_write_all(u->copy, room, (size_t)n, err) < 0)
			return err->code;
		u->done += (uint64_t)n;
	}
	return u->done < u->size;
}

void
uploads_slice(struct engine *e)
{
	bool more = false;

	list_each (u, &e->uploads, struct upload, link) {
		struct err err;
		int r;

		if (u->copy < 0)
			continue;
		r = copy_slice(u, &err);
		if (r == 0)
			r = finish(e, u, &err);
		if (r > 0) {
			more = true;
			continue;
		}
		if (r < 0)
			answer_refused(e, u->to, &err);
		upload_free(e, u);
	}
	if (!more)
		ev_timer_stop(e->loop, &e->slice);
}

static struct upload *
find(struct engine *e, struct reply to)
{
	list_each (u, &e->uploads, struct upload, link)
		if (u->to.tag == to.tag && u->to.generation == to.generation && u->copy < 0)
			return u;
	return NULL;
}

static int
begin_copy(struct engine *e, struct upload *u, struct err *err)
{
	struct stat st;

	if (fstat(u->fd, &st) < 0)
		return err_errno(err, "look at an input");
	if (st.st_size < 0 || (uint64_t)st.st_size != u->size)
		return REFUSE(err, BAD_REQUEST,
			"the input has %lld bytes, %" PRIu64 " were announced",
			(long long)st.st_size, u->size);
	temporary_name(u->copy_name);
	u->copy = openat(e->inputs_fd, u->copy_name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (u->copy < 0)
		return err_errno(err, "store an input");
	sha256_init(&u->hash);
	ev_timer_again(e->loop, &e->slice);
	return 0;
}

int
on_input_close(struct engine *e, struct reply to, const struct msg_input_close *m, struct err *err)
{
	struct upload *u = find(e, to);
	int r;

	if (u == NULL)
		return REFUSE(err, BAD_REQUEST, "no input is being stored with this request");
	if (!m->complete)
		r = REFUSE(err, BAD_REQUEST, "the input was given up by its sender");
	else
		r = begin_copy(e, u, err);
	if (r < 0)
		upload_free(e, u);
	return r;
}

/* ---- delete ---- */

static void
put_deleted(struct canon_writer *w, const void *arg)
{
	put_path(w, "path", *(const struct view *)arg);
}

static int
record_delete(struct engine *e, const struct task *t, const struct principal *p,
	const struct msg_input_delete *m, struct err *err)
{
	const struct audit_event ev = {.event = "input.delete",
		.tenant = t->tenant,
		.task = &t->id,
		.who = p,
		.request_id = m->request_id,
		.data = put_deleted,
		.arg = &m->path};
	auto_tx struct tx tx = {0};
	int r = tx_begin(&tx, e->store, err);

	if (r < 0)
		return r;
	{
		auto_query struct query q = query_of(e->store, Q_INPUT_DELETE);

		arg_id(&q, &t->id);
		arg_view(&q, m->path);
		r = query_run(&q, err);
	}
	if (r == 0)
		r = audit_append(e, &ev, err);
	return r == 0 ? tx_commit(&tx, err) : r;
}

int
on_input_delete(
	struct engine *e, struct reply to, const struct msg_input_delete *m, struct err *err)
{
	auto_task struct task t;
	struct principal p;
	uint8_t old[32] = {0};
	int r;

	task_init(&t, e);
	r = caller_find(e, &m->caller, &p, err);
	if (r == 0)
		r = task_find(&t, &p, &m->task, err);
	if (r == 0 && t.closed_ms != 0)
		r = REFUSE(err, CONFLICT, "the task is closed; the bytes of its inputs are gone");
	if (r == 0)
		r = before(e, &m->task, m->path, old, err);
	if (r == 0 && digest_is_zero(old))
		r = REFUSE(err, NOT_FOUND, "the task has no such input");
	if (r == 0)
		r = record_delete(e, &t, &p, m, err);
	if (r < 0)
		return r;
	drop(e, old);
	store_sync(e->store);
	REPLY(e, to, DONE, done, {0});
	return 0;
}

/* ---- list and feed ---- */

int
on_input_list(struct engine *e, struct reply to, const struct msg_input_list *m, struct err *err)
{
	auto_task struct task t;
	struct principal p;
	int r;

	task_init(&t, e);
	r = caller_find(e, &m->caller, &p, err);
	if (r == 0)
		r = task_find(&t, &p, &m->task, err);
	if (r < 0)
		return r;
	auto_query struct query q = query_of(e->store, Q_INPUT_LIST);
	arg_id(&q, &m->task);
	for (r = query_next(&q, err); r > 0; r = query_next(&q, err)) {
		struct msg_input_row row = {0};

		(void)col_u64(&q);
		row.path = col_view(&q);
		row.mode = (uint32_t)col_u64(&q);
		row.size_bytes = col_u64(&q);
		col_digest(&q, row.content);
		REPLY(e, to, INPUT_ROW, input_row, row);
	}
	if (r == 0)
		REPLY(e, to, END, end, {.more = false});
	return r;
}

int
input_feed_next(struct sandbox *s, struct err *err)
{
	struct engine *e = s->engine;
	char name[SHA256_TEXT], path[4097];
	uint8_t content[32];
	uint64_t seq, size;
	uint32_t mode;
	int r;

	{
		auto_query struct query q = query_of(e->store, Q_INPUT_NEXT);

		arg_id(&q, &s->task);
		arg_u64(&q, s->input_seq);
		r = query_next(&q, err);
		if (r <= 0)
			return r;
		seq = col_u64(&q);
		col_text(&q, path, sizeof(path));
		mode = (uint32_t)col_u64(&q);
		size = col_u64(&q);
		col_digest(&q, content);
	}
	hex_encode(content, 32, name);
	auto_fd int fd = openat(e->inputs_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return err_errno(err, "open a stored input");
	s->input_seq = seq;
	s->deadline_ms = clock_mono_ms() + LIMIT_STEP_MS;
	r = job_feed_input(s, view_str(path), mode, size, content, fd, err);
	return r < 0 ? r : 1;
}
