/* SPDX-License-Identifier: Apache-2.0 */
/* Life of a job in PID 1; see job.h. Nothing here may fail for want of memory but by telling the relay. */
#include "job.h"

#include "lib/base/clock.h"

#include <errno.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <termios.h>

enum job_event {
#define STATE(name)
#define EVENT(name) EVENT_##name,
#define STEP(state, event, next)
#include "job.fsm"
#undef STATE
#undef EVENT
#undef STEP
};

static const struct {
	enum job_state state;
	enum job_event event;
	enum job_state next;
} steps[] = {
#define STATE(name)
#define EVENT(name)
#define STEP(s, e, n) {JOB_##s, EVENT_##e, JOB_##n},
#include "job.fsm"
#undef STATE
#undef EVENT
#undef STEP
};

static void
job_step(struct job *j, enum job_event event)
{
	for (size_t i = 0; i < ARRAY_LEN(steps); i++)
		if (steps[i].state == j->state && steps[i].event == event) {
			j->state = steps[i].next;
			return;
		}
	must(false);
}

struct job *
job_find(const struct agent *a, uint32_t stream)
{
	list_each (j, (struct link *)(uintptr_t)&a->jobs, struct job, link)
		if (j->stream == stream)
			return j;
	return NULL;
}

void
job_free(struct job *j)
{
	free(j->path);
	free(j->spec);
	buf_done(&j->in_pending);
	free(j);
}

static bool
listing(const struct job *j)
{
	return j->start.kind == JOB_KIND_FILE_LIST || j->start.kind == JOB_KIND_FILE_STAT;
}

static void
put_ended(struct channel_out *out, uint32_t stream, const struct note *n, bool by_timeout,
	bool holders)
{
	CHANNEL_PUT(out, stream, ENDED, ended,
		{.end = (enum job_end)n->end,
			.code = n->code,
			.killed_by_timeout = by_timeout,
			.holders = holders,
			.cpu_us = n->cpu_us,
			.memory_peak_bytes = n->memory_peak_bytes});
}

/* An output that others still hold is read to nowhere, so that they do not die of SIGPIPE. */
static void
to_sink(struct agent *a, int fd)
{
	struct watch *w = &a->sinks[a->next_sink];

	a->next_sink = (a->next_sink + 1) % AGENT_SINKS;
	watch_close(&a->watches, w); /* the oldest, when all are in use */
	*w = (struct watch){.kind = WATCH_SINK, .fd = fd};
	if (!watch_for(&a->watches, w, EPOLLIN))
		watch_close(&a->watches, w);
}

/* Tells the relay and lets go of everything. */
static void
job_end(struct job *j)
{
	struct agent *a = j->agent;
	bool holders = j->out.w.fd >= 0 || j->err.w.fd >= 0;

	must(j->state == JOB_ENDED);
	/* A terminal is hung up, as when a person closes it. */
	if (j->out.w.fd >= 0 && !j->start.pty)
		to_sink(a, watch_take(&a->watches, &j->out.w));
	if (j->err.w.fd >= 0)
		to_sink(a, watch_take(&a->watches, &j->err.w));
	watch_close(&a->watches, &j->out.w);
	watch_close(&a->watches, &j->in);
	watch_close(&a->watches, &j->report);
	put_ended(&a->out, j->stream, &j->note, j->killed_by_timeout, holders);
	list_remove(&j->link);
	list_append(&a->dead, &j->link);
	a->njobs--;
}

static void
job_fail(struct job *j, int code)
{
	j->note = (struct note){.end = JOB_END_NOT_STARTED, .code = code};
	job_step(j, EVENT_FAILED);
	job_end(j);
}

static void
launch_if_complete(struct job *j)
{
	int code;

	if (j->spec_n < (size_t)j->start.argv_bytes + j->start.env_bytes)
		return;
	code = launch(j);
	if (code != 0) {
		job_fail(j, code);
		return;
	}
	job_step(j, EVENT_LAUNCHED);
	free(take_ptr(j->spec)); /* the child has its copy */
	if (j->start.timeout_ms > 0)
		j->deadline_ms = clock_mono_ms() + j->start.timeout_ms;
}

static void
refuse(struct agent *a, uint32_t stream, int code)
{
	const struct note n = {.end = JOB_END_NOT_STARTED, .code = code};

	put_ended(&a->out, stream, &n, false, false);
}

static void
watch_init(struct watch *w, enum watch_kind kind, struct job *j)
{
	*w = (struct watch){.kind = kind, .fd = -1, .job = j};
}

void
job_start(struct agent *a, uint32_t stream, const struct frame_start *m)
{
	auto_free struct job *j = calloc(1, sizeof(*j));
	auto_free char *path = malloc(m->path.n + 1);
	size_t spec = (size_t)m->argv_bytes + m->env_bytes;
	auto_free uint8_t *room = malloc(spec > 0 ? spec : 1);

	if (a->njobs >= AGENT_JOBS) {
		refuse(a, stream, EAGAIN);
		return;
	}
	if (j == NULL || path == NULL || room == NULL) {
		refuse(a, stream, ENOMEM);
		return;
	}
	memcpy(path, m->path.p, m->path.n);
	path[m->path.n] = '\0';
	j->agent = a;
	j->stream = stream;
	j->start = *m;
	j->start.path = view_of(path, m->path.n);
	j->path = take_ptr(path);
	j->spec = take_ptr(room);
	watch_init(&j->report, WATCH_REPORT, j);
	watch_init(&j->out.w, WATCH_STDOUT, j);
	watch_init(&j->err.w, WATCH_STDERR, j);
	watch_init(&j->in, WATCH_STDIN, j);
	j->out.frame = FRAME_STDOUT;
	j->err.frame = FRAME_STDERR;
	j->out.credit = j->err.credit = CHANNEL_CREDIT;
	buf_init(&j->in_pending, CHANNEL_CREDIT);
	list_append(&a->jobs, &j->link);
	a->njobs++;
	launch_if_complete(take_ptr(j));
}

void
job_spec(struct job *j, struct view data)
{
	must(data.n <= (size_t)j->start.argv_bytes + j->start.env_bytes - j->spec_n);
	memcpy(j->spec + j->spec_n, data.p, data.n);
	j->spec_n += data.n;
	launch_if_complete(j);
}

/* The relay may send so many bytes more. */
static void
stdin_took(struct job *j, size_t n)
{
	j->in_taken += (uint32_t)n;
	if (j->in_taken < AGENT_CREDIT_STEP_BYTES)
		return;
	CHANNEL_PUT(&j->agent->out, j->stream, CREDIT, credit,
		{.output = OUTPUT_STDOUT, .bytes = j->in_taken});
	j->in_taken = 0;
}

/* Nobody reads it any more, or all was said. */
static void
stdin_close(struct job *j)
{
	size_t left = j->in_pending.n;

	watch_close(&j->agent->watches, &j->in);
	buf_done(&j->in_pending);
	if (left > 0 && !j->in_end)
		stdin_took(j, left);
}

static void
stdin_write(struct job *j)
{
	while (j->in.fd >= 0 && j->in_pending.n > 0) {
		ssize_t r = write(j->in.fd, j->in_pending.p, j->in_pending.n);

		if (r < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (r < 0) {
			stdin_close(j);
			return;
		}
		buf_drop(&j->in_pending, (size_t)r);
		if (!j->in_end)
			stdin_took(j, (size_t)r);
	}
	if (j->in_end && j->in_pending.n == 0)
		stdin_close(j);
}

void
job_stdin(struct job *j, struct view data)
{
	if (j->in_end || j->in.fd < 0) {
		if (!j->in_end)
			stdin_took(j, data.n);
		return;
	}
	buf_add_view(&j->in_pending, data);
	if (buf_check(&j->in_pending) < 0) {
		/* No memory (the relay keeps to its credit): the program sees the end of its input. */
		stdin_close(j);
		return;
	}
	stdin_write(j);
}

void
job_stdin_end(struct job *j)
{
	static const uint8_t end_of_transmission = 4; /* what a terminal takes for the end */

	if (j->in_end)
		return;
	if (j->start.pty)
		buf_add(&j->in_pending, &end_of_transmission, 1);
	j->in_end = true;
	stdin_write(j);
}

static void
order(struct job *j, int signal)
{
	const struct order o = {.signal = signal};

	/* A child that is gone or has its socket full of orders is about to end anyway. */
	if (j->report.fd >= 0)
		(void)send(j->report.fd, &o, sizeof(o), MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* The command with all its descendants, or the file operation, shall end. */
static void
job_cancel(struct job *j)
{
	if (j->state == JOB_COLLECTING) {
		job_fail(j, ECANCELED);
		return;
	}
	if (j->state != JOB_RUNNING)
		return;
	order(j, 0);
	if (j->start.kind != JOB_KIND_EXEC && j->kill_ms == 0)
		j->kill_ms = clock_mono_ms() + AGENT_FILE_CANCEL_MS;
}

void
job_signal(struct job *j, uint32_t signal)
{
	if (signal == 0)
		job_cancel(j);
	else if (j->state == JOB_RUNNING && j->start.kind == JOB_KIND_EXEC)
		order(j, (int)signal);
}

void
job_resize(struct job *j, uint16_t rows, uint16_t columns)
{
	const struct winsize size = {.ws_row = rows, .ws_col = columns};

	if (j->start.pty && j->out.w.fd >= 0)
		(void)ioctl(j->out.w.fd, TIOCSWINSZ, &size); /* fails on a hung-up terminal only */
}

void
job_credit(struct job *j, enum output output, uint32_t bytes)
{
	if (output == OUTPUT_STDOUT)
		j->out.credit += bytes;
	else
		j->err.credit += bytes;
}

static bool
may_read(const struct job *j, const struct outlet *o)
{
	return o->w.fd >= 0 && o->credit > 0 &&
	       channel_out_left(&j->agent->out) < AGENT_BACKLOG_BYTES;
}

static void
output_read(struct job *j, struct outlet *o)
{
	struct agent *a = j->agent;

	for (int i = 0; i < AGENT_READS_PER_TURN && may_read(j, o); i++) {
		size_t n = o->credit < CHANNEL_DATA_MAX ? (size_t)o->credit : CHANNEL_DATA_MAX;
		uint8_t *room = channel_data_room(&a->out, n);
		ssize_t r;

		if (room == NULL)
			return; /* no memory now; the bytes stay where they are */
		r = read(o->w.fd, room, n);
		if (r < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (r <= 0) {
			watch_close(&a->watches, &o->w); /* end; a terminal says EIO */
			return;
		}
		channel_data_commit(&a->out, o->frame, j->stream, (size_t)r);
		o->credit -= (uint64_t)r;
		j->quiet_ms = clock_mono_ms() + AGENT_QUIET_MS;
	}
}

static void
finish_if_drained(struct job *j)
{
	if (j->state == JOB_DRAINING && j->out.w.fd < 0 && j->err.w.fd < 0) {
		job_step(j, EVENT_DRAINED);
		job_end(j);
	}
}

/* The command ended: what it wrote before is in the pipes. */
static void
job_drain(struct job *j, enum job_event event)
{
	uint64_t now = clock_mono_ms();

	job_step(j, event);
	j->quiet_ms = now + AGENT_QUIET_MS;
	j->drain_ms = now + AGENT_DRAIN_MS;
	watch_close(&j->agent->watches, &j->report);
	output_read(j, &j->out);
	output_read(j, &j->err);
	finish_if_drained(j);
}

static bool
put_entry(struct job *j, const struct note *n)
{
	const struct frame_entry e = {.name = view_of(n->name, n->name_bytes),
		.kind = (enum file_kind)n->file_kind,
		.mode = n->mode,
		.size_bytes = n->size_bytes,
		.mtime = n->mtime};
	struct buf b;
	bool good;

	if (!listing(j) || n->file_kind >= FILE_KIND_MAX)
		return false;
	buf_init(&b, FRAME_BODY_MAX);
	frame_entry_put(&b, &e);
	good = buf_check(&b) == 0;
	if (good) {
		channel_put(&j->agent->out, FRAME_ENTRY, j->stream, buf_view(&b));
		j->out.credit -= b.n;
	}
	buf_done(&b);
	return good;
}

/* The most that one ENTRY takes from the credit of stdout. */
static bool
may_take_note(const struct job *j)
{
	return !listing(j) || (j->out.credit >= frame_info[FRAME_ENTRY].body_max &&
				      channel_out_left(&j->agent->out) < AGENT_BACKLOG_BYTES);
}

static void
report_read(struct job *j)
{
	while (j->state == JOB_RUNNING && may_take_note(j)) {
		struct note n;
		ssize_t r = recv(j->report.fd, &n, sizeof(n), MSG_DONTWAIT);

		if (r < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		/* The child ended with an order unread: told once, in front of what it said. */
		if (r < 0 && errno == ECONNRESET)
			continue;
		if (r == sizeof(n) && n.kind == NOTE_ENTRY && put_entry(j, &n))
			continue;
		if (r == sizeof(n) && n.kind == NOTE_ENDED && n.end < JOB_END_MAX) {
			j->note = n;
			job_drain(j, EVENT_REPORTED);
			return;
		}
		/* Killed (no memory, or cancelled for too long), or talking nonsense. */
		j->note = (struct note){.end = JOB_END_SIGNALLED, .code = SIGKILL};
		j->agent->purge |= j->start.kind == JOB_KIND_EXEC;
		if (j->pid > 0)
			(void)kill(j->pid,
				SIGKILL); /* it is our child and not reaped: the number is its own */
		job_drain(j, EVENT_LOST);
	}
}

void
job_ready(struct job *j, struct watch *w)
{
	switch (w->kind) {
	case WATCH_REPORT:
		report_read(j);
		break;
	case WATCH_STDIN:
		stdin_write(j);
		break;
	case WATCH_STDOUT:
		output_read(j, &j->out);
		finish_if_drained(j);
		break;
	case WATCH_STDERR:
		output_read(j, &j->err);
		finish_if_drained(j);
		break;
	case WATCH_CHANNEL:
	case WATCH_SINK:
	case WATCH_LISTENER:
	case WATCH_ASKER:
		must(false);
	}
}

void
job_due(struct job *j, uint64_t now_ms)
{
	if (j->state == JOB_RUNNING && j->deadline_ms != 0 && now_ms >= j->deadline_ms) {
		j->deadline_ms = 0;
		j->killed_by_timeout = true;
		job_cancel(j);
	}
	if (j->state == JOB_RUNNING && j->kill_ms != 0 && now_ms >= j->kill_ms && j->pid > 0) {
		(void)kill(j->pid, SIGKILL); /* as above; its end is told by the control socket */
		j->kill_ms = now_ms + AGENT_FILE_CANCEL_MS;
	}
	if (j->state != JOB_DRAINING)
		return;
	/* Output that waits for the relay is not silent. */
	if ((j->out.w.fd >= 0 && !may_read(j, &j->out)) ||
		(j->err.w.fd >= 0 && !may_read(j, &j->err))) {
		j->quiet_ms = now_ms + AGENT_QUIET_MS;
		j->drain_ms = now_ms + AGENT_DRAIN_MS;
	} else if (now_ms >= j->quiet_ms || now_ms >= j->drain_ms) {
		job_step(j, EVENT_DRAINED);
		job_end(j);
	}
}

static uint64_t
earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

uint64_t
job_next_due_ms(const struct job *j)
{
	uint64_t due = UINT64_MAX;

	if (j->state == JOB_RUNNING && j->deadline_ms != 0)
		due = j->deadline_ms;
	if (j->state == JOB_RUNNING && j->kill_ms != 0)
		due = earlier(due, j->kill_ms);
	if (j->state == JOB_DRAINING)
		due = earlier(due, earlier(j->quiet_ms, j->drain_ms));
	return due;
}

void
job_settle(struct job *j)
{
	const struct watches *ws = &j->agent->watches;
	bool ok;

	if (j->state != JOB_RUNNING && j->state != JOB_DRAINING)
		return;
	ok = watch_for(ws, &j->report, may_take_note(j) ? EPOLLIN : 0) &&
	     watch_for(ws, &j->out.w, may_read(j, &j->out) ? EPOLLIN : 0) &&
	     watch_for(ws, &j->err.w, may_read(j, &j->err) ? EPOLLIN : 0) &&
	     watch_for(ws, &j->in, j->in_pending.n > 0 ? EPOLLOUT : 0);
	(void)ok; /* the kernel has no memory now: settled again at the next turn, at the latest in a second */
}
