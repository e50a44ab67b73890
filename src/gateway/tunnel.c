/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See tunnel.h. A way has bytes in one place at a time: a pipe (between two plain sockets) or memory. While it has any, nothing more is read for
 * it, so a slow side holds the other one back. An idle way holds neither.
 */
#include "tunnel.h"

#include "lib/base/attr.h"
#include "lib/loop/loop.h"

#include <errno.h>
#include <fcntl.h>

enum {
	PIECE = 65536,
	/* Of Linux' own 64 KiB only half is filled at a time by what comes in pages, which is slower than to copy. */
	PIPE = 262144,
	SPARES = 4, /* empty pipes that are kept */
};

struct pipe_ends {
	int read, write; /* -1: none */
};

struct way {
	struct tunnel *tunnel;
	enum tunnel_way which;
	struct stream *from, *to; /* borrowed from the tunnel */
	struct pipe_ends pipe;    /* owned; while in_pipe != 0 */
	size_t in_pipe;
	uint8_t *bytes; /* owned, or `piece` within one call; while at < n */
	size_t at, n;
	size_t asked; /* of what waits, was allowed */
	bool held, ended, shut, no_splice;
};

struct tunnel {
	struct ev_loop *loop;
	struct stream *program, *server; /* owned */
	const struct tunnel_events *events;
	void *owner;
	struct way way[2];
	ev_timer idle, life;
	double idle_s, moved_at;
	bool over;
};

/* Of this process, which has one loop: bytes on their way through one call, and pipes that are empty. */
static uint8_t piece[PIECE];
static struct pipe_ends spare[SPARES];
static size_t spares;

/* ---- pipes ---- */

static bool
pipe_get(struct pipe_ends *p)
{
	int fds[2];

	if (spares != 0) {
		*p = spare[--spares];
		return true;
	}
	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return false;
	/* Linux grants a user so many pages of pipes; beyond them one is as small as it comes. */
	(void)fcntl(fds[1], F_SETPIPE_SZ, PIPE);
	*p = (struct pipe_ends){.read = fds[0], .write = fds[1]};
	return true;
}

static void
pipe_drop(struct pipe_ends *p, bool empty)
{
	if (p->read < 0)
		return;
	if (empty && spares < SPARES) {
		spare[spares++] = *p;
	} else {
		(void)close(p->read); /* what is left in it is not to arrive */
		(void)close(p->write);
	}
	p->read = p->write = -1;
}

/* ---- the end ---- */

static void
way_done(struct way *w)
{
	pipe_drop(&w->pipe, w->in_pipe == 0);
	if (w->bytes != piece)
		free(w->bytes);
	w->bytes = NULL;
}

static void
release(struct tunnel *t, bool reset)
{
	t->over = true;
	ev_timer_stop(t->loop, &t->idle);
	ev_timer_stop(t->loop, &t->life);
	way_done(&t->way[TUNNEL_OUT]);
	way_done(&t->way[TUNNEL_IN]);
	stream_close(t->program, reset);
	stream_close(t->server, reset);
	loop_free_later(t->loop, t);
}

static void
end(struct tunnel *t, enum tunnel_end why, const char *text)
{
	if (t->over)
		return;
	release(t, why != TUNNEL_CLEAN);
	t->events->done(t->owner, why, text);
}

void
tunnel_abort(struct tunnel *t)
{
	must(!t->over);
	release(t, true);
}

/* ---- bytes ---- */

static size_t
waiting(const struct way *w)
{
	return w->in_pipe + (w->n - w->at);
}

/* What waits may go: true. Else the way stands still, or the tunnel is over. */
static bool
may_pass(struct way *w)
{
	struct tunnel *t = w->tunnel;

	if (w->asked == waiting(w))
		return true;
	switch (t->events->pass(t->owner, w->which, waiting(w) - w->asked)) {
	case TUNNEL_PASS:
		w->asked = waiting(w);
		w->held = false;
		return true;
	case TUNNEL_HOLD:
		w->held = true;
		return false;
	case TUNNEL_STOP:
		end(t, TUNNEL_STOPPED, "it may move no more");
		return false;
	}
	return false;
}

static bool
can_splice(const struct way *w)
{
	return !w->no_splice && stream_fd(w->from) >= 0 && stream_fd(w->to) >= 0;
}

/* As stream_read(), into the way's pipe. */
static ssize_t
take_by_pipe(struct way *w)
{
	ssize_t r;

	if (!pipe_get(&w->pipe)) {
		w->no_splice = true;
		return -EOPNOTSUPP;
	}
	r = splice(stream_fd(w->from), NULL, w->pipe.write, NULL, PIPE,
		SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	if (r > 0) {
		w->in_pipe = (size_t)r;
		return r;
	}
	r = r < 0 ? -errno : 0;
	pipe_drop(&w->pipe, true);
	if (r != -EINVAL)
		return r; /* an error of the socket is told once: asked again it would look like an end */
	w->no_splice = true;
	return -EOPNOTSUPP;
}

static ssize_t
take_by_copy(struct way *w)
{
	ssize_t r = stream_read(w->from, piece, sizeof(piece));

	if (r > 0) {
		w->bytes = piece;
		w->at = 0;
		w->n = (size_t)r;
	}
	return r;
}

/* What was read and could not be passed on at once. */
static void
keep(struct way *w)
{
	size_t n = w->n - w->at;
	uint8_t *own;

	if (w->bytes != piece)
		return;
	own = malloc(n);
	if (own == NULL) {
		end(w->tunnel, TUNNEL_CUT, "no memory");
		return;
	}
	memcpy(own, piece + w->at, n);
	w->bytes = own;
	w->at = 0;
	w->n = n;
}

/* Passes on what waits. 0: nothing waits; -EAGAIN: the other side is full; -1: the stream will say. */
static int
give(struct way *w)
{
	while (w->in_pipe != 0) {
		ssize_t r = splice(w->pipe.read, NULL, stream_fd(w->to), NULL, w->in_pipe,
			SPLICE_F_MOVE | SPLICE_F_NONBLOCK);

		if (r < 0)
			return errno == EAGAIN ? -EAGAIN : -ECONNRESET;
		w->in_pipe -= (size_t)r;
		w->asked -= (size_t)r;
	}
	while (w->at < w->n) {
		ssize_t r = stream_write(w->to, view_of(w->bytes + w->at, w->n - w->at));

		if (r < 0)
			return r == -EAGAIN ? -EAGAIN : -ECONNRESET;
		w->at += (size_t)r;
		w->asked -= (size_t)r;
	}
	way_done(w);
	w->at = w->n = 0;
	return 0;
}

static void
finish(struct way *w)
{
	struct tunnel *t = w->tunnel;

	if (!w->shut) {
		w->shut = true;
		stream_shut(w->to);
	}
	if (t->way[TUNNEL_OUT].shut && t->way[TUNNEL_IN].shut)
		end(t, TUNNEL_CLEAN, "both sides ended");
}

/* Passes on what waits, as far as it may. */
static void
push(struct way *w)
{
	struct tunnel *t = w->tunnel;
	int r;

	if (!may_pass(w))
		return;
	t->moved_at = ev_now(t->loop);
	r = give(w);
	if (r < 0 && r != -EAGAIN)
		end(t, TUNNEL_CUT, "the connection was cut off");
	else if (r == 0 && w->ended)
		finish(w);
}

static void
pull(struct way *w)
{
	ssize_t r = -EOPNOTSUPP;

	if (waiting(w) != 0 || w->ended)
		return;
	if (can_splice(w))
		r = take_by_pipe(w);
	if (r == -EOPNOTSUPP)
		r = take_by_copy(w);
	if (r == -EAGAIN)
		return;
	if (r < 0) {
		end(w->tunnel, TUNNEL_CUT, "the connection was cut off");
		return;
	}
	w->ended = r == 0;
	if (w->ended)
		finish(w);
	else
		push(w);
	if (!w->tunnel->over)
		keep(w);
}

static void
settle(struct tunnel *t)
{
	for (size_t i = 0; i < 2 && !t->over; i++) {
		struct way *w = &t->way[i];

		stream_want_read(w->from, !w->ended && waiting(w) == 0);
		if (!w->shut)
			stream_want_write(w->to, waiting(w) != 0 && !w->held);
	}
}

/* ---- events ---- */

static void
program_readable(void *owner)
{
	struct tunnel *t = owner;

	pull(&t->way[TUNNEL_OUT]);
	settle(t);
}

static void
server_readable(void *owner)
{
	struct tunnel *t = owner;

	pull(&t->way[TUNNEL_IN]);
	settle(t);
}

static void
program_writable(void *owner)
{
	struct tunnel *t = owner;

	push(&t->way[TUNNEL_IN]);
	settle(t);
}

static void
server_writable(void *owner)
{
	struct tunnel *t = owner;

	push(&t->way[TUNNEL_OUT]);
	settle(t);
}

static void
shaken(void *owner)
{
	(void)owner;
	must(false); /* streams of a tunnel are open */
}

static void
program_failed(void *owner, const struct err *why)
{
	end(owner, TUNNEL_CUT, why->text);
}

static void
server_failed(void *owner, const struct err *why)
{
	end(owner, TUNNEL_CUT, why->text);
}

static const struct stream_events of_program = {
	program_readable, program_writable, shaken, program_failed};
static const struct stream_events of_server = {
	server_readable, server_writable, shaken, server_failed};

static void
on_idle(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct tunnel *t = timer->data;
	double left = t->moved_at + t->idle_s - ev_now(loop);

	(void)events;
	if (left <= 0) {
		end(t, TUNNEL_IDLE, "nothing moved for too long");
		return;
	}
	ev_timer_set(timer, left, 0);
	ev_timer_start(loop, timer);
}

static void
on_life(struct ev_loop *loop, ev_timer *timer, int events)
{
	(void)loop, (void)events;
	end(timer->data, TUNNEL_LIFE, "it was open for too long");
}

static void
timer_begin(struct tunnel *t, ev_timer *timer, uint64_t ms)
{
	timer->data = t;
	if (ms == 0)
		return;
	ev_timer_set(timer, (double)ms / 1e3, 0);
	ev_timer_start(t->loop, timer);
}

static void
way_init(struct tunnel *t, enum tunnel_way which, struct stream *from, struct stream *to)
{
	t->way[which] = (struct way){.tunnel = t,
		.which = which,
		.from = from,
		.to = to,
		.pipe = {.read = -1, .write = -1}};
}

struct tunnel *
tunnel_new(struct ev_loop *loop, struct stream *program, struct stream *server,
	const struct tunnel_limits *limits, const struct tunnel_events *events, void *owner)
{
	struct tunnel *t = calloc(1, sizeof(*t));

	if (t == NULL) {
		stream_close(program, true);
		stream_close(server, true);
		return NULL;
	}
	t->loop = loop;
	t->program = program;
	t->server = server;
	t->events = events;
	t->owner = owner;
	t->idle_s = (double)limits->idle_ms / 1e3;
	t->moved_at = ev_now(loop);
	way_init(t, TUNNEL_OUT, program, server);
	way_init(t, TUNNEL_IN, server, program);
	ev_timer_init(&t->idle, on_idle, 0, 0);
	ev_timer_init(&t->life, on_life, 0, 0);
	timer_begin(t, &t->idle, limits->idle_ms);
	timer_begin(t, &t->life, limits->life_ms);
	stream_give(program, &of_program, t);
	stream_give(server, &of_server, t);
	settle(t);
	return t;
}

void
tunnel_go_on(struct tunnel *t)
{
	for (size_t i = 0; i < 2; i++)
		t->way[i].held = false;
	settle(t);
}
