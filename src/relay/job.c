/* SPDX-License-Identifier: Apache-2.0 */
/* Life of a job; see job.h. What the guest says is checked here against what it may say. */
#include "job.h"

#include "lib/base/clock.h"

#include <errno.h>
#include <sys/stat.h>

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

bool
job_runs(const struct job *j)
{
	return j->state == JOB_RUNNING || j->state == JOB_ENDING;
}

bool
job_lists(const struct job *j)
{
	return j->kind == JOB_KIND_FILE_LIST || j->kind == JOB_KIND_FILE_STAT;
}

/* Which kinds say what: content on stdout, stderr, and bytes taken from stdin. */
static bool
kind_reads(enum job_kind kind)
{
	return kind == JOB_KIND_EXEC || kind == JOB_KIND_FILE_READ || kind == JOB_KIND_TREE_DOWN;
}

static bool
kind_writes(enum job_kind kind)
{
	return kind == JOB_KIND_FILE_WRITE || kind == JOB_KIND_TREE_UP;
}

bool
job_lossless(const struct job *j)
{
	return (j->live || j->kind != JOB_KIND_EXEC) && j->state == JOB_RUNNING &&
	       (j->session != NULL || !j->attached);
}

struct job *
job_find(const struct relay *r, const struct id *id)
{
	list_each (j, (struct link *)(uintptr_t)&r->jobs, struct job, link)
		if (id_eq(&j->id, id))
			return j;
	return NULL;
}

struct job *
job_find_stream(const struct relay *r, uint32_t stream)
{
	list_each (j, (struct link *)(uintptr_t)&r->jobs, struct job, link)
		if (j->stream == stream && job_runs(j))
			return j;
	return NULL;
}

static void
job_free(struct job *j)
{
	struct relay *r = j->relay;

	if (j->state == JOB_RECORDED)
		r->ended--;
	session_close(j);
	ev_timer_stop(r->loop, &j->deadline);
	if (j->in.feed >= 0)
		(void)close(j->in.feed); /* read only */
	buf_done(&j->in.wait);
	buf_done(&j->entries);
	store_done(&j->out.store);
	store_done(&j->err.store);
	list_remove(&j->link);
	free(j);
}

void
job_tell_end(const struct job *j)
{
	if (j->relay->engine == NULL)
		return; /* told when there is one */
	IPC_SEND(j->relay->engine, 0, JOB_ENDED, job_ended, j->end);
}

/* The end, for the engine: the guest's claims beside what was seen here. */
static void
job_finish(struct job *j, const struct frame_ended *m)
{
	uint64_t now = clock_mono_us();

	ev_timer_stop(j->relay->loop, &j->deadline);
	job_step(j, EVENT_END);
	j->ended_ms = now / 1000;
	j->relay->live--;
	guest_watch(j->relay);
	j->in.end = j->in.end_sent = true;
	j->end = (struct msg_job_ended){.job = j->id,
		.end = m->end,
		.code = m->code,
		.timed_out = j->timed_out,
		.cancelled = j->cancelled,
		.holders = m->holders,
		.stdout_seen = job_lists(j) ? j->out.spent : j->out.store.seen,
		.stdout_kept = store_kept(&j->out.store),
		.stderr_seen = j->err.store.seen,
		.stderr_kept = store_kept(&j->err.store),
		.stdin_bytes = j->in.bytes,
		.wall_us = now - j->started_us,
		.cpu_us = m->cpu_us,
		.memory_peak_bytes = m->memory_peak_bytes};
	if (j->hashed && (j->kind != JOB_KIND_EXEC || j->in.bytes > 0))
		sha256_end(&j->hash, j->end.content);
	job_tell_end(j);
}

static void
deadline_in(struct job *j, uint64_t ms)
{
	ev_timer_stop(j->relay->loop, &j->deadline);
	ev_timer_set(&j->deadline, (double)ms / 1000.0, 0.0);
	ev_now_update(j->relay->loop);
	ev_timer_start(j->relay->loop, &j->deadline);
}

/* The longest timeout that is kept by a timer: a century. */
static const uint64_t timeout_max_ms = 3155760000000;

static void
on_deadline(struct ev_loop *loop, ev_timer *w, int events)
{
	struct job *j = container_of(w, struct job, deadline);
	struct err err = {0};

	(void)loop, (void)events;
	if (j->relay->frozen) {
		deadline_in(j, RELAY_GRACE_MS); /* nobody inside can act; looked at again */
		return;
	}
	if (j->state == JOB_RUNNING) {
		j->timed_out = true;
		job_stop(j);
		return;
	}
	(void)err_set(&err, -ETIMEDOUT,
		"the agent did not end a job within %u ms after it should have",
		(unsigned)RELAY_GRACE_MS);
	guest_lost(j->relay, EXIT_SILENT, &err);
}

void
job_stop(struct job *j)
{
	if (!job_runs(j))
		return;
	CHANNEL_PUT(&j->relay->out, j->stream, SIGNAL, signal, {.signal = 0});
	if (j->state == JOB_RUNNING)
		deadline_in(j, RELAY_GRACE_MS);
	job_step(j, EVENT_STOP);
	job_pump(j); /* nothing waits for a session any more */
}

void
jobs_thaw(struct relay *r)
{
	list_each (j, &r->jobs, struct job, link)
		if (j->state == JOB_ENDING)
			deadline_in(j, RELAY_GRACE_MS);
}

/* A job that never reached the agent. */
static void
refuse(struct job *j, int code)
{
	const struct frame_ended m = {.end = JOB_END_NOT_STARTED, .code = code};

	job_finish(j, &m);
}

static void
put_spec(struct channel_out *out, uint32_t stream, struct view v)
{
	for (; v.n > 0; v = view_skip(v, CHANNEL_DATA_MAX))
		channel_put_data(out, FRAME_SPEC, stream,
			view_of(v.p, v.n < CHANNEL_DATA_MAX ? v.n : CHANNEL_DATA_MAX));
}

static void
put_start(struct relay *r, const struct job *j, const struct msg_job_start *m)
{
	CHANNEL_PUT(&r->out, j->stream, START, start,
		{.kind = m->kind,
			.shell = m->shell,
			.pty = m->pty,
			.stdin_open = m->stdin_open,
			.rows = m->rows != 0 ? m->rows : 24,
			.columns = m->columns != 0 ? m->columns : 80,
			.uid = m->uid,
			.mode = m->mode,
			.timeout_ms = m->timeout_ms,
			.size_bytes = m->size_bytes,
			.argv_bytes = (uint32_t)m->argv.n,
			.env_bytes = (uint32_t)m->env.n,
			.path = m->path});
	put_spec(&r->out, j->stream, m->argv);
	put_spec(&r->out, j->stream, m->env);
}

static void
stream_init(struct stream *s, struct job *j, enum output output, uint64_t keep)
{
	bool lossless = job_lossless(j);
	size_t half = (size_t)keep / 2, tail = (size_t)keep - half;

	/* What a session has not taken yet is in the ring too: it holds at least the credit. */
	if (lossless && tail < CHANNEL_CREDIT)
		tail = CHANNEL_CREDIT;
	if (j->kind != JOB_KIND_EXEC)
		half = 0; /* content is not kept for later, only on its way */
	store_init(&s->store, &j->relay->budget, half, tail);
	s->output = output;
	s->given = CHANNEL_CREDIT;
}

static struct job *
job_new(struct relay *r, const struct msg_job_start *m)
{
	struct job *j = calloc(1, sizeof(*j));
	uint64_t keep = m->keep_bytes == 0 ? RELAY_KEEP_BYTES : m->keep_bytes;

	if (j == NULL)
		return NULL;
	j->relay = r;
	j->id = m->job;
	j->kind = m->kind;
	j->live = m->live;
	j->pty = m->pty;
	j->timeout_ms = m->timeout_ms < timeout_max_ms ? m->timeout_ms : timeout_max_ms;
	j->started_us = clock_mono_us();
	stream_init(&j->out, j, OUTPUT_STDOUT, keep);
	stream_init(&j->err, j, OUTPUT_STDERR, keep);
	buf_init(&j->entries, (size_t)2 * CHANNEL_CREDIT);
	buf_init(&j->in.wait, RELAY_INPUT_BYTES + CHANNEL_DATA_MAX);
	j->in.feed = -1;
	j->in.credit = CHANNEL_CREDIT;
	j->in.wanted = m->stdin_open || kind_writes(m->kind);
	/* Of a command its stdin: what a shell was told that way is a command too. */
	j->hashed = kind_writes(m->kind) || kind_reads(m->kind);
	if (j->hashed)
		sha256_init(&j->hash);
	ev_timer_init(&j->deadline, on_deadline, 0.0, 0.0);
	list_append(&r->jobs, &j->link);
	r->live++;
	return j;
}

int
job_start(struct relay *r, const struct msg_job_start *m, struct err *err)
{
	struct job *j;

	if (job_find(r, &m->job) != NULL)
		return err_set(err, -EPROTO, "JOB_START of a job that is there");
	if (m->kind != JOB_KIND_EXEC && (m->pty || m->shell || m->argv.n > 0 || m->env.n > 0))
		return err_set(err, -EPROTO, "JOB_START of a file job with a command");
	if (m->keep_bytes > RELAY_KEEP_MAX_BYTES)
		return err_set(err, -EPROTO, "JOB_START that wants more kept than may be");
	j = job_new(r, m);
	if (j == NULL)
		return err_set(err, -ENOMEM, "no memory for a job");
	if (r->live > RELAY_JOBS || r->last_stream == UINT32_MAX) {
		refuse(j, EAGAIN);
		return 0;
	}
	j->stream = ++r->last_stream;
	put_start(r, j, m);
	if (j->timeout_ms > 0)
		deadline_in(j, j->timeout_ms);
	guest_watch(r);
	guest_flush(r);
	return 0;
}

int
job_feed(struct job *j, int fd, struct err *err)
{
	auto_fd int owned = fd;
	struct stat st;

	if (!j->in.wanted || j->in.feed >= 0 || j->in.end || j->in.wait.n > 0 || j->in.bytes > 0)
		return err_set(err, -EPROTO, "JOB_FEED of a job that has its input");
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(err, -EPROTO, "JOB_FEED with what is no regular file");
	j->in.feed = take_fd(&owned);
	job_pump(j);
	return 0;
}

void
job_signal(struct job *j, uint32_t signal)
{
	if (!job_runs(j))
		return; /* it crossed the end */
	if (signal == 0) {
		j->cancelled = true;
		job_stop(j);
	} else {
		CHANNEL_PUT(&j->relay->out, j->stream, SIGNAL, signal, {.signal = signal});
		guest_flush(j->relay);
	}
}

void
job_recorded(struct job *j)
{
	if (job_runs(j))
		return;
	if (j->state == JOB_ENDED) {
		j->relay->ended++;
		if (!ev_is_active(&j->relay->sweep))
			ev_timer_again(j->relay->loop, &j->relay->sweep);
	}
	job_step(j, EVENT_RECORD);
	jobs_sweep(j->relay);
}

bool
jobs_forget_oldest(void *relay)
{
	struct relay *r = relay;

	list_each (j, &r->jobs, struct job, link)
		if (j->state == JOB_RECORDED && j->session == NULL) {
			job_free(j);
			return true;
		}
	return false;
}

void
jobs_sweep(struct relay *r)
{
	uint64_t now = clock_mono_ms();

	list_each (j, &r->jobs, struct job, link)
		if (j->state == JOB_RECORDED && j->session == NULL &&
			(r->ended > RELAY_ENDED_JOBS || now - j->ended_ms >= RELAY_ENDED_MS))
			job_free(j);
	if (r->ended == 0)
		ev_timer_stop(r->loop, &r->sweep);
}

static struct stream *
stream_of(struct job *j, enum output output)
{
	return output == OUTPUT_STDOUT ? &j->out : &j->err;
}

/* Bytes that the agent may still send on this stream. */
static int
spend(struct stream *s, size_t n, struct err *err)
{
	if (n > s->given - s->spent)
		return err_set(err, -EPROTO, "the agent sent more than it had credit for");
	s->spent += n;
	return 0;
}

int
job_output(struct job *j, enum output output, struct view data, struct err *err)
{
	struct stream *s = stream_of(j, output);
	int r;

	if (data.n == 0)
		return err_set(err, -EPROTO, "an empty data frame");
	if (!kind_reads(j->kind) ||
		(output == OUTPUT_STDERR && (j->kind != JOB_KIND_EXEC || j->pty)))
		return err_set(err, -EPROTO, "output of a job that has none");
	r = spend(s, data.n, err);
	if (r < 0)
		return r;
	if (j->hashed && j->kind != JOB_KIND_EXEC)
		sha256_add(&j->hash, data.p, data.n);
	store_add(&s->store, data);
	return 0;
}

/* A listing has names, the answer of a stat has none and comes once. */
static bool
entry_ok(const struct job *j, const struct frame_entry *m)
{
	if (j->kind == JOB_KIND_FILE_STAT)
		return m->name.n == 0 && !j->stat_done;
	return j->kind == JOB_KIND_FILE_LIST && m->name.n > 0 && !view_has(m->name, '/') &&
	       !view_has(m->name, '\0') && !view_is(m->name, ".") && !view_is(m->name, "..");
}

int
job_entry(struct job *j, struct view body, const struct frame_entry *m, struct err *err)
{
	const uint8_t length[2] = {(uint8_t)(body.n >> 8), (uint8_t)body.n};
	int r;

	if (!entry_ok(j, m) || m->mode > 07777 || m->size_bytes > INT64_MAX)
		return err_set(err, -EPROTO, "an ENTRY that cannot be");
	r = spend(&j->out, body.n, err);
	if (r < 0)
		return r;
	j->stat_done = true;
	if (!job_lossless(j) && j->session == NULL)
		return 0; /* nobody will read it */
	if (j->entries_at > 0) {
		buf_drop(&j->entries, j->entries_at);
		j->entries_at = 0;
	}
	buf_add(&j->entries, length, sizeof(length));
	buf_add_view(&j->entries, body);
	return buf_check(&j->entries) < 0 ? err_set(err, -ENOMEM, "no memory for a listing") : 0;
}

int
job_take_credit(struct job *j, const struct frame_credit *m, struct err *err)
{
	/* It gives back what it took, no more: the sum never passes where it began. */
	if (!j->in.wanted || m->output != OUTPUT_STDOUT || m->bytes == 0 ||
		m->bytes > CHANNEL_CREDIT - j->in.credit)
		return err_set(err, -EPROTO, "CREDIT for what was never sent");
	j->in.credit += m->bytes;
	return 0;
}

static bool
code_ok(const struct frame_ended *m)
{
	switch (m->end) {
	case JOB_END_EXITED:
		return m->code >= 0 && m->code <= 255;
	case JOB_END_SIGNALLED:
		return m->code >= 1 && m->code <= 64;
	case JOB_END_NOT_STARTED:
		return m->code >= 1 && m->code <= 4095;
	case JOB_END_MAX:
		break;
	}
	return false;
}

/* The agent's clock may run a little before ours, not more. */
static bool
timeout_ok(const struct job *j)
{
	uint64_t early = j->timeout_ms / 10 + RELAY_EARLY_MS,
		 ran_ms = (clock_mono_us() - j->started_us) / 1000;

	return j->timed_out || (j->timeout_ms > 0 && ran_ms + early >= j->timeout_ms);
}

int
job_ended(struct job *j, const struct frame_ended *m, struct err *err)
{
	if (!code_ok(m) || m->cpu_us > RELAY_CLAIM_MAX || m->memory_peak_bytes > RELAY_CLAIM_MAX)
		return err_set(err, -EPROTO, "ENDED with values that cannot be");
	if (m->killed_by_timeout && !timeout_ok(j))
		return err_set(err, -EPROTO, "ENDED by a timeout that was not due");
	if (j->kind == JOB_KIND_FILE_STAT && m->end == JOB_END_EXITED && m->code == 0 &&
		!j->stat_done)
		return err_set(err, -EPROTO, "ENDED of a stat without an answer");
	j->timed_out |= m->killed_by_timeout;
	job_finish(j, m);
	return 0;
}

static void
give_credit(struct job *j, struct stream *s)
{
	/* A listing is never dropped in part: without a reader it stands still until it is stopped. */
	bool waits = job_lossless(j) || job_lists(j);
	uint64_t target = (waits ? s->sent : s->spent) + CHANNEL_CREDIT;

	if (target <= s->given || target - s->given < CHANNEL_CREDIT / 4)
		return;
	CHANNEL_PUT(&j->relay->out, j->stream, CREDIT, credit,
		{.output = s->output, .bytes = (uint32_t)(target - s->given)});
	s->given = target;
}

void
job_pump(struct job *j)
{
	session_pump(j);
	if (!job_runs(j))
		return;
	give_credit(j, &j->out);
	if (j->kind == JOB_KIND_EXEC)
		give_credit(j, &j->err);
	input_pump(j);
	guest_flush(j->relay);
}
