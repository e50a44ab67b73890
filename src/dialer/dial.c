/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One request; see dial.h. The order is: own table, name servers, class of every candidate, connect, compare. No packet leaves
 * before the table holds the name, and none to an address before all of the answer is public.
 */
#include "dial.h"

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/ipc/reach_bounds.h"
#include "lib/loop/loop.h"
#include "limits.h"
#include "resolve.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>

struct dialing {
	struct link link;
	struct asker *asker;   /* borrowed */
	struct dialer *dialer; /* borrowed */
	uint64_t tag;
	struct origin to; /* as its table has it; the table may go */
	uint64_t until_ms;
	ev_timer late;
	struct resolve *resolve; /* owned; NULL: not now */
	struct address candidate[DNS_ADDRESSES_MAX];
	size_t n, at;
	int fd; /* owned; -1 */
	ev_io writable;
	ev_timer share; /* of this candidate */
	char last[160]; /* what the last candidate came to */
	bool slow;      /* one did not answer */
};

static void candidate_try(struct dialing *d);

/* ---- the end ---- */

static void
socket_close(struct dialing *d)
{
	ev_io_stop(d->dialer->loop, &d->writable);
	ev_timer_stop(d->dialer->loop, &d->share);
	if (d->fd >= 0)
		(void)close(take_fd(&d->fd)); /* nothing was written through it by us */
}

static void
dial_free(struct dialing *d)
{
	socket_close(d);
	ev_timer_stop(d->dialer->loop, &d->late);
	if (d->resolve != NULL)
		resolve_cancel(take_ptr(d->resolve));
	list_remove(&d->link);
	d->asker->ndials--;
	d->dialer->nreaches -= d->asker->gateway;
	loop_free_later(d->dialer->loop, d);
}

/* What a gateway is refused is on record with the engine; here it could fill the log. */
static void
dial_fail(struct dialing *d, enum dial reason, const char *text)
{
	if (!d->asker->gateway)
		log_line("no connection to %s port %u: %s", d->to.host, d->to.port, text);
	d->asker->failed(d->asker, d->tag, reason, text);
	dial_free(d);
}

void
dials_forget(struct asker *a)
{
	list_each (dial, &a->dials, struct dialing, link)
		dial_free(dial);
}

/* ---- a connection ---- */

static void
candidate_failed(struct dialing *d, const char *why)
{
	char text[ADDRESS_TEXT];

	address_text(&d->candidate[d->at], text);
	(void)snprintf(d->last, sizeof(d->last), "%s: %s", text, why);
	socket_close(d);
	d->at++;
	if (d->at < d->n)
		candidate_try(d);
	else
		dial_fail(d, d->slow ? DIAL_TIMEOUT : DIAL_UNREACHABLE, d->last);
}

/* The far end is the one that was judged, or nothing is handed over. */
static void
connected(struct dialing *d)
{
	char text[ADDRESS_TEXT];
	struct sockaddr_storage at = {0};
	socklen_t len = sizeof(at);
	struct address far;
	uint16_t port;
	const int one = 1;

	if (getpeername(d->fd, (struct sockaddr *)&at, &len) < 0 ||
		!address_of_sock(&at, &far, &port) || !address_eq(&far, &d->candidate[d->at]) ||
		port != d->to.port) {
		candidate_failed(d, "the far end is another one");
		return;
	}
	if (setsockopt(d->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) < 0) {
		candidate_failed(d, "the socket takes no option");
		return;
	}
	address_text(&far, text);
	d->asker->connected(d->asker, d->tag, text, d->fd);
	dial_free(d);
}

static void
on_writable(struct ev_loop *loop, ev_io *w, int events)
{
	struct dialing *d = container_of(w, struct dialing, writable);
	socklen_t len = sizeof(int);
	int code = 0;

	(void)loop, (void)events;
	if (getsockopt(d->fd, SOL_SOCKET, SO_ERROR, &code, &len) < 0)
		code = errno;
	if (code != 0)
		candidate_failed(d, strerrordesc_np(code));
	else
		connected(d);
}

static void
on_share(struct ev_loop *loop, ev_timer *w, int events)
{
	struct dialing *d = container_of(w, struct dialing, share);

	(void)loop, (void)events;
	d->slow = true;
	candidate_failed(d, "it does not answer in time");
}

/* What is left of the time, shared among the candidates that are left. */
static double
share_of(const struct dialing *d)
{
	uint64_t now = clock_mono_ms(), left = d->until_ms > now ? d->until_ms - now : 1;
	uint64_t share = left / (d->n - d->at);

	if (share < LIMIT_SHARE_MIN_MS)
		share = LIMIT_SHARE_MIN_MS;
	return (double)share / 1000;
}

/*
 * What the kernel holds of a connection while one side does not read, each way. Before connect(), which tells the far end the window. Without
 * a bound it grows to megabytes, in no group's account, and one sandbox takes what all TCP of the host has.
 */
static int
room_set(int fd)
{
	const int bytes = (int)LIMIT_CONNECTION_BYTES;

	return setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes)) < 0
		       ? -1
		       : setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
}

static void
candidate_try(struct dialing *d)
{
	struct sockaddr_storage at;
	socklen_t len = address_sock(&d->candidate[d->at], d->to.port, &at);

	d->fd = socket(d->candidate[d->at].family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (d->fd < 0 || room_set(d->fd) < 0 ||
		(connect(d->fd, (struct sockaddr *)&at, len) < 0 && errno != EINPROGRESS)) {
		candidate_failed(d, strerrordesc_np(errno));
		return;
	}
	ev_io_set(&d->writable, d->fd, EV_WRITE);
	ev_io_start(d->dialer->loop, &d->writable);
	ev_timer_set(&d->share, share_of(d), 0.0);
	ev_timer_start(d->dialer->loop, &d->share);
}

/* ---- a name ---- */

/*
 * All or nothing: whoever answers with one address of ours among public ones has no good reason. The sentence is about the first that is not
 * public; the reason tells whether there were others.
 */
static bool
candidates_judge(struct dialing *d, const struct address *a, size_t n)
{
	struct err err = {0};
	size_t denied = 0;

	for (size_t i = 0; i < n; i++) {
		struct err more = {0};

		if (class_check(&a[i], &d->dialer->own, denied == 0 ? &err : &more) < 0)
			denied++;
		d->candidate[i] = a[i];
	}
	d->n = n;
	if (denied > 0)
		dial_fail(d, denied == n ? DIAL_ADDRESS : DIAL_MIXED, err.text);
	return denied == 0;
}

static void
on_resolved(void *owner, enum dial reason, const struct address *a, size_t n, const char *text)
{
	struct dialing *d = owner;

	d->resolve = NULL; /* it has freed itself */
	if (reason != DIAL_CONNECTED)
		dial_fail(d, reason, text);
	else if (candidates_judge(d, a, n))
		candidate_try(d);
}

static void
on_late(struct ev_loop *loop, ev_timer *w, int events)
{
	struct dialing *d = container_of(w, struct dialing, late);

	(void)loop, (void)events;
	dial_fail(d, DIAL_TIMEOUT,
		d->resolve != NULL ? "no name server answers in time"
				   : "no connection in the time that was given");
}

static void
dial_start(struct dialing *d)
{
	const struct origin *o = &d->to;

	if (!o->literal) {
		d->resolve = resolve_new(
			d->dialer->loop, &d->dialer->servers, o->host, on_resolved, d);
		if (d->resolve == NULL)
			dial_fail(d, DIAL_BUSY, "there is no memory");
		return;
	}
	if (o->exact) { /* the host's owner named this very address */
		d->candidate[0] = o->address;
		d->n = 1;
		candidate_try(d);
	} else if (candidates_judge(d, &o->address, 1)) {
		candidate_try(d);
	}
}

/*
 * The broker has its own share. Of the gateways' each has its own bound, and beyond half of the whole only those begin more that have few: so
 * those that take all that they can leave something to the others.
 */
static bool
has_room(const struct asker *a)
{
	const struct dialer *d = a->dialer;

	if (!a->gateway)
		return a->ndials < LIMIT_DIALS;
	if (a->ndials >= REACH_LIVE_MAX || d->nreaches >= LIMIT_REACHES)
		return false;
	return d->nreaches < LIMIT_REACHES / 2 || a->ndials < LIMIT_REACH_SHARE;
}

void
asker_init(struct asker *a, struct dialer *d, bool gateway)
{
	*a = (struct asker){.dialer = d, .gateway = gateway};
	list_init(&a->dials);
}

void
dial_begin(struct asker *a, uint64_t tag, const struct origin *to, uint32_t timeout_ms)
{
	uint64_t wait = timeout_ms < LIMIT_TIMEOUT_MAX_MS ? timeout_ms : LIMIT_TIMEOUT_MAX_MS;
	struct dialing *d = has_room(a) ? calloc(1, sizeof(*d)) : NULL;

	if (d == NULL) {
		a->failed(a, tag, DIAL_BUSY, "too many connections are on their way");
		return;
	}
	d->asker = a;
	d->dialer = a->dialer;
	d->tag = tag;
	d->to = *to;
	d->fd = -1;
	d->until_ms = clock_mono_ms() + wait;
	list_append(&a->dials, &d->link);
	a->ndials++;
	a->dialer->nreaches += a->gateway;
	ev_init(&d->writable, on_writable);
	ev_init(&d->share, on_share);
	ev_timer_init(&d->late, on_late, (double)wait / 1000, 0.0);
	ev_timer_start(a->dialer->loop, &d->late);
	dial_start(d);
}
