/* SPDX-License-Identifier: Apache-2.0 */
/* Connections to servers; see upstream.h. Whatever comes on one that nobody has is the end of it. */
#include "upstream.h"

#include "lib/ipc/reach_bounds.h"
#include "lib/loop/loop.h"
#include "limits.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

struct upstream_ask {
	struct link link; /* of asks */
	struct gateway *g;
	uint64_t tag; /* of REACH; 0: not told yet */
	uint16_t rule, port;
	struct view name;    /* borrowed from who asks */
	struct upstream *up; /* owned: its handshake is under way */
	ev_timer late;
	upstream_done_fn *done;
	void *owner;
};

struct upstreams {
	struct gateway *g; /* borrowed */
	struct link idle;  /* of struct upstream, the one that waits longest first */
	size_t nidle;
	struct link asks; /* of struct upstream_ask, oldest first */
	size_t live;      /* REACHes without an answer: also of asks that were forgotten */
	uint64_t tag;
	ev_timer sweep;
};

/* ---- one connection ---- */

static void
up_free(struct upstream *up)
{
	if (up == NULL)
		return;
	if (up->stream != NULL)
		stream_close(up->stream, true);
	loop_free_later(up->g->loop, up);
}

static struct upstream *
up_new(const struct upstream_ask *a, int fd, const char *address,
	const struct stream_events *events, void *owner)
{
	struct upstream *up = calloc(1, sizeof(*up));
	int one = 1;

	if (up == NULL) {
		(void)close(fd); /* nothing was said on it */
		return NULL;
	}
	/* A slower connection is no reason to have none. */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	up->g = a->g;
	up->rule = a->rule;
	up->port = a->port;
	memcpy(up->name, a->name.p, a->name.n);
	memcpy(up->address, address, strnlen(address, sizeof(up->address) - 1));
	list_init(&up->link);
	up->stream = stream_new(a->g->loop, fd, events, owner);
	if (up->stream == NULL) {
		free(up);
		return NULL;
	}
	return up;
}

/* ---- the pool ---- */

static void
idle_end(struct upstream *up)
{
	list_remove(&up->link);
	up->g->upstreams->nidle--;
	up_free(up);
}

static void
on_idle(void *owner)
{
	idle_end(owner);
}

static void
on_idle_failed(void *owner, const struct err *why)
{
	(void)why;
	idle_end(owner);
}

static const struct stream_events idle_events = {on_idle, on_idle, on_idle, on_idle_failed};

static void
sweep_arm(struct upstreams *u)
{
	if (list_empty(&u->idle) || ev_is_active(&u->sweep))
		return;
	struct upstream *oldest = container_of(u->idle.next, struct upstream, link);
	ev_tstamp in = oldest->until - ev_now(u->g->loop);

	ev_timer_set(&u->sweep, in > 0 ? in : 0, 0);
	ev_timer_start(u->g->loop, &u->sweep);
}

static void
on_sweep(struct ev_loop *loop, ev_timer *w, int events)
{
	struct upstreams *u = container_of(w, struct upstreams, sweep);

	(void)events;
	while (!list_empty(&u->idle)) {
		struct upstream *oldest = container_of(u->idle.next, struct upstream, link);

		if (oldest->until > ev_now(loop))
			break;
		idle_end(oldest);
	}
	sweep_arm(u);
}

struct stream *
upstream_stream_take(struct upstream *up)
{
	struct stream *s = take_ptr(up->stream);

	up_free(up);
	return s;
}

void
upstream_put(struct gateway *g, struct upstream *up, bool reusable)
{
	struct upstreams *u = g->upstreams;

	if (!reusable) {
		up_free(up);
		return;
	}
	if (u->nidle >= LIMIT_POOL)
		idle_end(container_of(u->idle.next, struct upstream, link));
	stream_give(up->stream, &idle_events, up);
	up->until = ev_now(g->loop) + (double)LIMIT_POOL_MS / 1e3;
	stream_want_read(up->stream, true);
	list_append(&u->idle, &up->link);
	u->nidle++;
	sweep_arm(u);
}

/* The one that waited least: it is the least likely to be closed by its server. */
static struct upstream *
pool_take(struct upstreams *u, const struct upstream_ask *want)
{
	struct link *l = u->idle.prev, *before;

	for (; l != &u->idle; l = before) {
		struct upstream *up = container_of(l, struct upstream, link);

		before = l->prev;
		if (up->rule != want->rule || up->port != want->port ||
			!view_eq(view_str(up->name), want->name))
			continue;
		if (stream_stale(up->stream)) {
			idle_end(up);
			continue;
		}
		list_remove(&up->link);
		u->nidle--;
		up->used = true;
		return up;
	}
	return NULL;
}

/* ---- asking ---- */

static void
ask_free(struct upstream_ask *a)
{
	list_remove(&a->link);
	ev_timer_stop(a->g->loop, &a->late);
	up_free(a->up);
	loop_free_later(a->g->loop, a);
}

static void
ask_end(struct upstream_ask *a, enum egress_reason reason, struct upstream *up, const char *text)
{
	upstream_done_fn *done = a->done;
	void *owner = a->owner;

	ask_free(a);
	done(owner, reason, up, text);
}

void
upstream_forget(struct upstream_ask *a)
{
	if (a != NULL)
		ask_free(a);
}

static void
late_set(struct upstream_ask *a, uint64_t ms)
{
	ev_timer_stop(a->g->loop, &a->late);
	ev_timer_set(&a->late, (double)ms / 1e3, 0);
	ev_timer_start(a->g->loop, &a->late);
}

static void
on_ask_late(struct ev_loop *loop, ev_timer *w, int events)
{
	struct upstream_ask *a = container_of(w, struct upstream_ask, late);

	(void)loop, (void)events;
	if (a->up != NULL)
		ask_end(a, EGRESS_REASON_TLS_VERIFY, NULL,
			"the server did not finish the TLS handshake in time");
	else if (a->tag == 0)
		ask_end(a, EGRESS_REASON_UNREACHABLE, NULL,
			"what connects to servers is not there or busy");
	else
		ask_end(a, EGRESS_REASON_TIMEOUT, NULL, "no connection was made in time");
}

/* As many as may be on their way, oldest first. */
static void
reach(struct upstreams *u)
{
	if (u->g->dialer == NULL)
		return;
	list_each (a, &u->asks, struct upstream_ask, link) {
		struct msg_reach m = {
			.rule = a->rule, .port = a->port, .timeout_ms = LIMIT_CONNECT_MS};

		if (u->live >= REACH_LIVE_MAX)
			break;
		if (a->tag != 0)
			continue;
		memcpy(m.host, a->name.p, a->name.n);
		a->tag = ++u->tag;
		u->live++;
		late_set(a, LIMIT_CONNECT_MS + 1000); /* the dialer is late itself, by a bit */
		IPC_SEND(u->g->dialer, a->tag, REACH, reach, m);
	}
}

struct upstream_ask *
upstream_get(struct gateway *g, uint16_t rule, struct view name, uint16_t port, bool fresh,
	upstream_done_fn *done, void *owner)
{
	struct upstreams *u = g->upstreams;
	struct upstream_ask want = {.rule = rule, .port = port, .name = name};
	struct upstream *up;
	struct upstream_ask *a;

	if (g->over) {
		done(owner, EGRESS_REASON_CONTAINED, NULL, "the task was revoked");
		return NULL;
	}
	up = fresh ? NULL : pool_take(u, &want);
	if (up != NULL) {
		done(owner, EGRESS_REASON_NONE, up, NULL);
		return NULL;
	}
	must(name.n > 0 && name.n <= HOST_NAME_MAX_BYTES);
	a = calloc(1, sizeof(*a));
	if (a == NULL) {
		done(owner, EGRESS_REASON_UNREACHABLE, NULL, "no memory");
		return NULL;
	}
	*a = want;
	a->g = g;
	a->done = done;
	a->owner = owner;
	ev_init(&a->late, on_ask_late);
	list_append(&u->asks, &a->link);
	late_set(a, LIMIT_WAIT_MS);
	reach(u);
	return a;
}

static struct upstream_ask *
ask_find(struct upstreams *u, uint64_t tag)
{
	list_each (a, &u->asks, struct upstream_ask, link)
		if (a->tag == tag && a->up == NULL)
			return a;
	return NULL;
}

static void
on_up_shaken(void *owner)
{
	struct upstream_ask *a = owner;

	ask_end(a, EGRESS_REASON_NONE, take_ptr(a->up), NULL);
}

static void
on_up_failed(void *owner, const struct err *why)
{
	ask_end(owner, EGRESS_REASON_TLS_VERIFY, NULL, why->text);
}

static void
on_up_early(void *owner)
{
	(void)owner; /* a stream that shakes hands has nothing to read */
}

static const struct stream_events shaking = {on_up_early, on_up_early, on_up_shaken, on_up_failed};

static int
answered(struct upstreams *u, uint64_t tag, struct err *err)
{
	if (tag == 0 || tag > u->tag || u->live == 0)
		return err_set(err, -EPROTO, "an answer to a REACH that was not sent");
	u->live--;
	return 0;
}

int
upstream_reached(struct gateway *g, uint64_t tag, int fd, const char *address, struct err *err)
{
	struct upstreams *u = g->upstreams;
	auto_fd int owned = fd;
	struct upstream_ask *a;
	const struct rule *r;
	struct err why = {0};

	if (answered(u, tag, err) < 0)
		return err->code;
	a = ask_find(u, tag);
	reach(u);
	if (a == NULL)
		return 0; /* who asked is gone */
	r = &g->policy.rule[a->rule];
	a->up = up_new(a, take_fd(&owned), address, &shaking, a);
	if (a->up == NULL) {
		ask_end(a, EGRESS_REASON_UNREACHABLE, NULL, "no memory");
		return 0;
	}
	if (!r->tls) {
		ask_end(a, EGRESS_REASON_NONE, take_ptr(a->up), NULL);
		return 0;
	}
	late_set(a, LIMIT_SHAKE_MS);
	if (stream_connect_tls(a->up->stream, g->roots, a->name, r->roots, &why) < 0)
		ask_end(a, EGRESS_REASON_TLS_VERIFY, NULL, why.text);
	return 0;
}

int
upstream_failed(
	struct gateway *g, uint64_t tag, enum dial reason, const char *text, struct err *err)
{
	struct upstreams *u = g->upstreams;
	struct upstream_ask *a;

	if (answered(u, tag, err) < 0)
		return err->code;
	a = ask_find(u, tag);
	reach(u);
	if (a != NULL)
		ask_end(a,
			reason == DIAL_NOT_LISTED
				? EGRESS_REASON_NO_RULE
				: egress_reason_of_dial(reason, EGRESS_REASON_UNREACHABLE),
			NULL, text);
	return 0;
}

/* What the old dialer was asked is asked of the new one: nothing came of it. */
void
upstreams_dialer(struct gateway *g, bool there)
{
	struct upstreams *u = g->upstreams;

	if (there) {
		reach(u);
		return;
	}
	u->live = 0;
	list_each (a, &u->asks, struct upstream_ask, link) {
		if (a->up != NULL || a->tag == 0)
			continue;
		a->tag = 0;
		late_set(a, LIMIT_WAIT_MS);
	}
}

struct upstreams *
upstreams_new(struct gateway *g)
{
	struct upstreams *u = calloc(1, sizeof(*u));

	if (u == NULL)
		return NULL;
	u->g = g;
	list_init(&u->idle);
	list_init(&u->asks);
	ev_init(&u->sweep, on_sweep);
	return u;
}

void
upstreams_free(struct upstreams *u)
{
	if (u == NULL)
		return;
	ev_timer_stop(u->g->loop, &u->sweep);
	while (!list_empty(&u->asks))
		ask_free(container_of(u->asks.next, struct upstream_ask, link));
	while (!list_empty(&u->idle))
		idle_end(container_of(u->idle.next, struct upstream, link));
	free(u);
}
