/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The channel to the guest agent. Every byte is hostile: the reader of lib/channel checks headers, the
 * generated decoders the fields, this table the order and the streams, job.c the rest. The first thing that
 * does not fit ends the sandbox: an agent that lies once is not asked again.
 */
#include "job.h"

#include "lib/base/log.h"

#include <errno.h>
#include <unistd.h>

typedef int on_frame_fn(struct relay *r, struct job *j, const struct frame *f, struct err *err);

static int
on_hello(struct relay *r, struct job *j, const struct frame *f, struct err *err)
{
	struct frame_hello m;
	int code = frame_hello_get(f->body, &m, err);

	(void)j;
	if (code < 0)
		return code;
	if (m.version != CHANNEL_VERSION)
		return err_set(err, -EPROTO, "an agent of version %u", m.version);
	ev_timer_stop(r->loop, &r->hello);
	r->state = RELAY_LIVE;
	r->agent_version = m.version;
	if (r->engine != NULL) {
		r->engine->state = RELAY_LIVE;
		IPC_SEND(r->engine, 0, RELAY_READY, relay_ready, {.agent_version = m.version});
	}
	return 0;
}

static int
on_stdout(struct relay *r, struct job *j, const struct frame *f, struct err *err)
{
	struct frame_stdout m;
	int code = frame_stdout_get(f->body, &m, err);

	(void)r;
	return code < 0 ? code : job_output(j, OUTPUT_STDOUT, m.data, err);
}

static int
on_stderr(struct relay *r, struct job *j, const struct frame *f, struct err *err)
{
	struct frame_stderr m;
	int code = frame_stderr_get(f->body, &m, err);

	(void)r;
	return code < 0 ? code : job_output(j, OUTPUT_STDERR, m.data, err);
}

static int
on_entry(struct relay *r, struct job *j, const struct frame *f, struct err *err)
{
	struct frame_entry m;
	int code = frame_entry_get(f->body, &m, err);

	(void)r;
	return code < 0 ? code : job_entry(j, f->body, &m, err);
}

static int
on_credit(struct relay *r, struct job *j, const struct frame *f, struct err *err)
{
	struct frame_credit m;
	int code = frame_credit_get(f->body, &m, err);

	(void)r;
	return code < 0 ? code : job_take_credit(j, &m, err);
}

static int
on_ended(struct relay *r, struct job *j, const struct frame *f, struct err *err)
{
	struct frame_ended m;
	int code = frame_ended_get(f->body, &m, err);

	(void)r;
	return code < 0 ? code : job_ended(j, &m, err);
}

static int
on_propose(struct relay *r, struct job *j, const struct frame *f, struct err *err)
{
	struct frame_propose m;
	int code = frame_propose_get(f->body, &m, err);

	(void)j;
	return code < 0 ? code : propose_ask(r, &m, err);
}

static int
on_pong(struct relay *r, struct job *j, const struct frame *f, struct err *err)
{
	struct frame_pong m;
	int code = frame_pong_get(f->body, &m, err);

	(void)j;
	if (code < 0)
		return code;
	if (!r->ping_open || m.value != r->ping_value)
		return err_set(err, -EPROTO, "PONG without PING");
	r->ping_open = false;
	return 0;
}

/* Which frame in which state of the relay, and whether it belongs to a job that runs. */
static const struct {
	on_frame_fn *handler; /* NULL: the agent does not send it */
	enum relay_state state;
	bool of_job;
} rows[FRAME_MAX] = {
	[FRAME_HELLO] = {on_hello, RELAY_WAITING, false},
	[FRAME_PROPOSE] = {on_propose, RELAY_LIVE, false},
	[FRAME_PONG] = {on_pong, RELAY_LIVE, false},
	[FRAME_STDOUT] = {on_stdout, RELAY_LIVE, true},
	[FRAME_STDERR] = {on_stderr, RELAY_LIVE, true},
	[FRAME_ENTRY] = {on_entry, RELAY_LIVE, true},
	[FRAME_CREDIT] = {on_credit, RELAY_LIVE, true},
	[FRAME_ENDED] = {on_ended, RELAY_LIVE, true},
};

static int
take_frame(struct relay *r, const struct frame *f, struct err *err)
{
	struct job *j = NULL;

	if (rows[f->type].handler == NULL || rows[f->type].state != r->state)
		return err_set(err, -EPROTO, "%s out of order", frame_info[f->type].name);
	if (rows[f->type].of_job) {
		j = job_find_stream(r, f->stream);
		if (j == NULL)
			return err_set(err, -EPROTO, "%s on stream %u, which is not open",
				frame_info[f->type].name, f->stream);
	} else if (f->stream != 0) {
		return err_set(
			err, -EPROTO, "%s on stream %u", frame_info[f->type].name, f->stream);
	}
	return rows[f->type].handler(r, j, f, err);
}

static int
take_frames(struct relay *r, struct err *err)
{
	struct frame f;
	int code;

	while ((code = channel_in_next(&r->in, &f, err)) > 0) {
		code = take_frame(r, &f, err);
		if (code < 0)
			return code;
	}
	return code;
}

static void
on_told(struct ev_loop *loop, ev_timer *w, int events)
{
	(void)w, (void)events;
	ev_break(loop, EVBREAK_ALL);
}

static void
on_engine_drained(struct ipc_peer *peer)
{
	ev_break(peer->loop, EVBREAK_ALL);
}

void
guest_lost(struct relay *r, enum relay_exit how, const struct err *why)
{
	struct msg_relay_lost m = {.code = why->code};

	if (r->state == RELAY_LOST)
		return;
	r->state = RELAY_LOST;
	r->exit = how;
	/* An agent that is gone: the engine knows whether that was to be. What it did wrong is told here too. */
	if (how == EXIT_PROTOCOL || (why->code != -EPIPE && why->code != -ECONNRESET))
		log_line("agent lost: %s", why->text);
	ev_io_stop(r->loop, &r->readable);
	ev_io_stop(r->loop, &r->writable);
	ev_timer_stop(r->loop, &r->hello);
	ev_timer_stop(r->loop, &r->ping);
	list_each (j, &r->jobs, struct job, link) {
		ev_timer_stop(r->loop, &j->deadline);
		session_close(j);
	}
	if (r->engine == NULL) {
		ev_break(r->loop, EVBREAK_ALL);
		return;
	}
	memcpy(m.text, why->text, sizeof(m.text));
	r->engine->state = RELAY_LOST;
	r->engine->on_drained = on_engine_drained;
	IPC_SEND(r->engine, 0, RELAY_LOST, relay_lost, m);
	if (r->engine->queued_bytes == 0) {
		ev_break(r->loop, EVBREAK_ALL);
		return;
	}
	ev_timer_init(&r->told, on_told, (double)RELAY_TOLD_MS / 1000.0, 0.0);
	ev_timer_start(r->loop, &r->told);
}

/* After the frames of a turn: what they made possible, once per job and not once per frame. */
static void
pump_all(struct relay *r)
{
	list_each (j, &r->jobs, struct job, link)
		if (r->state != RELAY_LOST && (job_runs(j) || j->session != NULL))
			job_pump(j);
}

static void
on_readable(struct ev_loop *loop, ev_io *w, int events)
{
	struct relay *r = container_of(w, struct relay, readable);
	struct err err = {0};
	int code = 0;

	(void)loop, (void)events;
	for (size_t i = 0; i < RELAY_READS_PER_TURN && code >= 0; i++) {
		code = channel_in_fill(&r->in, r->channel, &err);
		if (code >= 0)
			code = take_frames(r, &err);
	}
	if (code < 0 && code != -EAGAIN) {
		guest_lost(r, code == -EPIPE ? EXIT_SILENT : EXIT_PROTOCOL, &err);
		return;
	}
	pump_all(r);
}

static void
on_writable(struct ev_loop *loop, ev_io *w, int events)
{
	struct relay *r = container_of(w, struct relay, writable);

	(void)loop, (void)events;
	guest_flush(r);
	if (r->state != RELAY_LOST && channel_out_left(&r->out) < RELAY_BACKLOG_BYTES)
		pump_all(r);
}

void
guest_flush(struct relay *r)
{
	struct err err = {0};
	int code;

	if (r->state == RELAY_LOST)
		return;
	code = channel_out_flush(&r->out, r->channel, &err);
	if (buf_check(&r->out.b) < 0)
		code = err_set(&err, -ENOBUFS, "the agent does not read");
	if (code == -EAGAIN)
		ev_io_start(r->loop, &r->writable);
	else if (code == 0)
		ev_io_stop(r->loop, &r->writable);
	else
		guest_lost(r, EXIT_SILENT, &err);
}

static void
on_no_hello(struct ev_loop *loop, ev_timer *w, int events)
{
	struct relay *r = container_of(w, struct relay, hello);
	struct err err = {0};

	(void)loop, (void)events;
	(void)err_set(
		&err, -ETIMEDOUT, "the agent said nothing within %u ms", (unsigned)RELAY_HELLO_MS);
	guest_lost(r, EXIT_SILENT, &err);
}

static void
on_ping_due(struct ev_loop *loop, ev_timer *w, int events)
{
	struct relay *r = container_of(w, struct relay, ping);
	struct err err = {0};

	(void)loop, (void)events;
	if (r->frozen)
		return;
	if (r->ping_open) {
		(void)err_set(&err, -ETIMEDOUT, "the agent did not answer for %u ms",
			(unsigned)RELAY_PING_MS);
		guest_lost(r, EXIT_SILENT, &err);
		return;
	}
	r->ping_open = true;
	r->ping_value++;
	CHANNEL_PUT(&r->out, 0, PING, ping, {.value = r->ping_value});
	guest_flush(r);
}

void
guest_watch(struct relay *r)
{
	if (r->live == 0)
		ev_timer_stop(r->loop, &r->ping);
	else if (!ev_is_active(&r->ping))
		ev_timer_again(r->loop, &r->ping);
}

void
guest_start(struct relay *r)
{
	ev_io_init(&r->readable, on_readable, r->channel, EV_READ);
	ev_io_init(&r->writable, on_writable, r->channel, EV_WRITE);
	ev_timer_init(&r->hello, on_no_hello, (double)RELAY_HELLO_MS / 1000.0, 0.0);
	ev_init(&r->ping, on_ping_due);
	r->ping.repeat = (double)RELAY_PING_MS / 1000.0;
	ev_io_start(r->loop, &r->readable);
}

void
guest_due(struct relay *r)
{
	ev_timer_start(r->loop, &r->hello);
}
