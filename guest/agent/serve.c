/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of frames: what the relay may send, and who takes it. The agent owes the relay nothing but to
 * be exact: a frame that breaks the table ends PID 1, and the kernel the sandbox.
 */
#include "job.h"

#include "trust.h"

#include "lib/base/log.h"

#include <signal.h>

#define BAD(...) log_exit(AGENT_BAD_FRAME, __VA_ARGS__)

/* Decodes or ends. */
#define FRAME_GET(f, name, ret)                                    \
	do {                                                       \
		struct err err_ = {0};                             \
		if (frame_##name##_get((f)->body, ret, &err_) < 0) \
			BAD("%s", err_.text);                      \
	} while (0)

typedef void on_frame_fn(struct agent *a, struct job *j, const struct frame *f);

static void
on_start(struct agent *a, struct job *j, const struct frame *f)
{
	struct frame_start m;

	(void)j;
	FRAME_GET(f, start, &m);
	if (f->stream <= a->last_stream)
		BAD("START of stream %u after %u", f->stream, a->last_stream);
	if (m.argv_bytes > AGENT_ARGV_BYTES || m.env_bytes > AGENT_ENV_BYTES ||
		(m.pty && m.kind != JOB_KIND_EXEC))
		BAD("START with bounds that nobody may ask for");
	a->last_stream = f->stream;
	job_start(a, f->stream, &m);
}

static void
on_spec(struct agent *a, struct job *j, const struct frame *f)
{
	struct frame_spec m;

	(void)a;
	FRAME_GET(f, spec, &m);
	if (j->state != JOB_COLLECTING ||
		m.data.n > (size_t)j->start.argv_bytes + j->start.env_bytes - j->spec_n)
		BAD("SPEC with more than was announced");
	job_spec(j, m.data);
}

static void
on_stdin(struct agent *a, struct job *j, const struct frame *f)
{
	struct frame_stdin m;

	(void)a;
	FRAME_GET(f, stdin, &m);
	job_stdin(j, m.data);
}

static void
on_stdin_end(struct agent *a, struct job *j, const struct frame *f)
{
	struct frame_stdin_end m;

	(void)a;
	FRAME_GET(f, stdin_end, &m);
	job_stdin_end(j);
}

static void
on_signal(struct agent *a, struct job *j, const struct frame *f)
{
	struct frame_signal m;

	(void)a;
	FRAME_GET(f, signal, &m);
	if (m.signal >= (uint32_t)SIGRTMAX)
		BAD("SIGNAL %u", m.signal);
	job_signal(j, m.signal);
}

static void
on_resize(struct agent *a, struct job *j, const struct frame *f)
{
	struct frame_resize m;

	(void)a;
	FRAME_GET(f, resize, &m);
	job_resize(j, m.rows, m.columns);
}

static void
on_credit(struct agent *a, struct job *j, const struct frame *f)
{
	struct frame_credit m;

	(void)a;
	FRAME_GET(f, credit, &m);
	job_credit(j, m.output, m.bytes);
}

static void
on_ping(struct agent *a, struct job *j, const struct frame *f)
{
	struct frame_ping m;

	(void)j;
	FRAME_GET(f, ping, &m);
	CHANNEL_PUT(&a->out, 0, PONG, pong, {.value = m.value});
}

static void
on_proposed(struct agent *a, struct job *j, const struct frame *f)
{
	struct frame_proposed m;

	(void)j;
	FRAME_GET(f, proposed, &m);
	if (!propose_answered(a, m.number, m.answer))
		BAD("PROPOSED for what nobody asked");
}

/* Once, before anything hostile runs. */
static void
on_trust(struct agent *a, struct job *j, const struct frame *f)
{
	struct frame_trust m;

	(void)j;
	FRAME_GET(f, trust, &m);
	if (a->last_stream != 0 || a->trusts || m.certificate.n == 0 || m.keystore.n == 0)
		BAD("TRUST that is late, or empty");
	trust_take(a, &m);
}

enum row_stream {
	STREAM_NONE, /* 0 */
	STREAM_NEW,
	STREAM_LIVE, /* of a job; frames for one that just ended crossed its ENDED and mean nothing */
};

static const struct {
	on_frame_fn *handler; /* NULL: the relay does not send it */
	enum row_stream stream;
} rows[FRAME_MAX] = {
	[FRAME_START] = {on_start, STREAM_NEW},
	[FRAME_SPEC] = {on_spec, STREAM_LIVE},
	[FRAME_STDIN] = {on_stdin, STREAM_LIVE},
	[FRAME_STDIN_END] = {on_stdin_end, STREAM_LIVE},
	[FRAME_SIGNAL] = {on_signal, STREAM_LIVE},
	[FRAME_RESIZE] = {on_resize, STREAM_LIVE},
	[FRAME_CREDIT] = {on_credit, STREAM_LIVE},
	[FRAME_PING] = {on_ping, STREAM_NONE},
	[FRAME_TRUST] = {on_trust, STREAM_NONE},
	[FRAME_PROPOSED] = {on_proposed, STREAM_NONE},
};

void
serve_frames(struct agent *a)
{
	for (;;) {
		struct frame f;
		struct err err = {0};
		struct job *j = NULL;
		int r = channel_in_next(&a->in, &f, &err);

		if (r < 0)
			BAD("%s", err.text);
		if (r == 0)
			return;
		if (rows[f.type].handler == NULL ||
			(f.stream == 0) != (rows[f.type].stream == STREAM_NONE))
			BAD("%s on stream %u", frame_info[f.type].name, f.stream);
		if (rows[f.type].stream == STREAM_LIVE) {
			j = job_find(a, f.stream);
			if (j == NULL && f.stream > a->last_stream)
				BAD("%s on a stream that never was", frame_info[f.type].name);
			if (j == NULL)
				continue;
		}
		rows[f.type].handler(a, j, &f);
	}
}
