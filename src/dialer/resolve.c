/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to name servers; see resolve.h. Called by dial.c. Bytes from the network go to dns.c and nowhere else. */
#include "resolve.h"

#include "lib/loop/loop.h"
#include "limits.h"

#include <errno.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/socket.h>

enum { LEGS = 2, PREFIX = 2 /* length in front of a message by TCP */ };

struct leg {
	struct resolve *resolve;
	enum dns_type type;
	struct dns_question question;
	int fd; /* owned; -1 */
	ev_io io;
	ev_timer late;
	unsigned tries, strays;
	bool tcp, done;
	uint8_t out[PREFIX + DNS_QUERY_MAX];
	size_t out_n, out_at;
	uint8_t *in; /* owned: PREFIX + DNS_TCP_MAX, by TCP only */
	size_t in_n;
	struct dns_answer answer;
};

struct resolve {
	struct ev_loop *loop;          /* borrowed */
	const struct servers *servers; /* borrowed */
	char host[HOST_NAME_MAX_BYTES + 1];
	resolve_done_fn *done;
	void *owner; /* borrowed */
	struct leg leg[LEGS];
	ev_timer start;
};

static void leg_try(struct leg *l);

/* ---- the end ---- */

static void
leg_close(struct leg *l)
{
	ev_io_stop(l->resolve->loop, &l->io);
	ev_timer_stop(l->resolve->loop, &l->late);
	if (l->fd >= 0)
		(void)close(take_fd(&l->fd)); /* what it still brings is not wanted */
	free(take_ptr(l->in));
	l->in_n = l->out_at = 0;
}

void
resolve_cancel(struct resolve *r)
{
	ev_timer_stop(r->loop, &r->start);
	for (size_t i = 0; i < LEGS; i++)
		leg_close(&r->leg[i]);
	loop_free_later(r->loop, r);
}

static void
finish(struct resolve *r, enum dial reason, const struct address *a, size_t n, const char *text)
{
	resolve_cancel(r);
	r->done(r->owner, reason, a, n, text);
}

/* One kind has its answer. */
static void
leg_answered(struct leg *l)
{
	struct address all[DNS_ADDRESSES_MAX * LEGS];
	struct resolve *r = l->resolve;
	char text[HOST_NAME_MAX_BYTES + 64];
	size_t n = 0;

	l->done = true;
	leg_close(l);
	for (size_t i = 0; i < LEGS; i++) {
		if (!r->leg[i].done)
			return;
		memcpy(all + n, r->leg[i].answer.address,
			r->leg[i].answer.n * sizeof(struct address));
		n += r->leg[i].answer.n;
	}
	(void)snprintf(text, sizeof(text), "%s has %s", r->host,
		n == 0 ? "no address" : "more addresses than are looked at");
	if (n == 0 || n > DNS_ADDRESSES_MAX)
		finish(r, DIAL_NO_NAME, NULL, 0, text);
	else
		finish(r, DIAL_CONNECTED, all, n, "");
}

/* ---- one question to one server ---- */

static void
leg_fail(struct leg *l, const char *why)
{
	char text[HOST_NAME_MAX_BYTES + 256];

	(void)snprintf(text, sizeof(text), "%s: %s", l->resolve->host, why);
	finish(l->resolve, DIAL_NO_NAME, NULL, 0, text);
}

/* The next server, or the next round. */
static void
leg_next(struct leg *l, const char *why)
{
	leg_close(l);
	if (l->tries >= l->resolve->servers->n * LIMIT_ROUNDS)
		leg_fail(l, why);
	else
		leg_try(l);
}

/* A message for this leg. False: it was not, wait for another one. */
static bool
leg_message(struct leg *l, struct view message)
{
	struct err err = {0};
	int r = dns_answer_read(message, &l->question, &l->answer, &err);

	if (r == -ENOMSG && !l->tcp && ++l->strays < LIMIT_STRAYS)
		return false;
	if (r == -EPROTO) {
		leg_fail(l, err.text);
	} else if (r < 0) {
		leg_next(l, err.text);
	} else if (l->answer.truncated && l->tcp) {
		leg_fail(l, "the answer is cut, by TCP too");
	} else if (l->answer.truncated) {
		leg_close(l);
		l->tcp = true;
		l->tries--; /* the same server */
		leg_try(l);
	} else if (l->answer.no_name) {
		leg_fail(l, "there is no such name");
	} else {
		leg_answered(l);
	}
	return true;
}

static void
udp_readable(struct leg *l)
{
	uint8_t room[DNS_UDP_MAX + 1];

	for (;;) {
		ssize_t n = recv(l->fd, room, sizeof(room), 0);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n < 0) {
			leg_next(l, "the name server is not there");
			return;
		}
		if (n > DNS_UDP_MAX) {
			leg_fail(l, "the answer is too large");
			return;
		}
		if (leg_message(l, view_of(room, (size_t)n)))
			return;
	}
}

static void
tcp_readable(struct leg *l)
{
	for (;;) {
		size_t want = PREFIX;
		ssize_t n;

		if (l->in_n >= PREFIX)
			want = PREFIX + ((size_t)l->in[0] << 8 | l->in[1]);
		if (l->in_n >= PREFIX && l->in_n == want) {
			(void)leg_message(
				l, view_of(l->in + PREFIX, want - PREFIX)); /* it is the only one */
			return;
		}
		n = recv(l->fd, l->in + l->in_n, want - l->in_n, 0);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0) {
			leg_next(l, "the name server ends in the middle of its answer");
			return;
		}
		l->in_n += (size_t)n;
	}
}

static void
tcp_writable(struct leg *l)
{
	while (l->out_at < l->out_n) {
		ssize_t n = send(l->fd, l->out + l->out_at, l->out_n - l->out_at, MSG_NOSIGNAL);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n < 0) {
			leg_next(l, "the name server takes no question by TCP");
			return;
		}
		l->out_at += (size_t)n;
	}
	ev_io_stop(l->resolve->loop, &l->io);
	ev_io_set(&l->io, l->fd, EV_READ);
	ev_io_start(l->resolve->loop, &l->io);
}

static void
on_io(struct ev_loop *loop, ev_io *w, int events)
{
	struct leg *l = container_of(w, struct leg, io);

	(void)loop;
	if (!l->tcp)
		udp_readable(l);
	else if ((events & EV_WRITE) != 0)
		tcp_writable(l);
	else
		tcp_readable(l);
}

static void
on_late(struct ev_loop *loop, ev_timer *w, int events)
{
	(void)loop, (void)events;
	leg_next(container_of(w, struct leg, late), "no name server answers");
}

/* A question of its own for each try: another id, other cases, another port. 0, or a negative errno. */
static int
leg_ask(struct leg *l, const struct server *s)
{
	struct sockaddr_storage at;
	socklen_t len = address_sock(&s->address, s->port, &at);
	uint8_t noise[34];
	struct err err;
	int type = l->tcp ? SOCK_STREAM : SOCK_DGRAM;

	must(getrandom(noise, sizeof(noise), 0) == (ssize_t)sizeof(noise));
	if (dns_question_make(view_str(l->resolve->host), l->type, noise, &l->question, &err) < 0)
		return -EINVAL;
	l->out_n = PREFIX + dns_query_write(&l->question, l->out + PREFIX);
	l->out[0] = (uint8_t)((l->out_n - PREFIX) >> 8);
	l->out[1] = (uint8_t)(l->out_n - PREFIX);
	l->fd = socket(s->address.family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (l->fd < 0)
		return -errno;
	if (connect(l->fd, (struct sockaddr *)&at, len) < 0 && (!l->tcp || errno != EINPROGRESS))
		return -errno;
	if (!l->tcp && send(l->fd, l->out + PREFIX, l->out_n - PREFIX, MSG_NOSIGNAL) < 0)
		return -errno;
	if (l->tcp) {
		l->in = malloc(PREFIX + DNS_TCP_MAX);
		if (l->in == NULL)
			return -ENOMEM;
	}
	return 0;
}

static void
leg_try(struct leg *l)
{
	struct resolve *r = l->resolve;
	const struct server *s = &r->servers->row[l->tries % r->servers->n];

	l->tries++;
	l->strays = 0;
	if (leg_ask(l, s) < 0) {
		/* From the loop: a name server that cannot be asked must not end the caller's turn. */
		ev_timer_set(&l->late, 0.0, 0.0);
	} else {
		ev_io_set(&l->io, l->fd, l->tcp ? EV_WRITE : EV_READ);
		ev_io_start(r->loop, &l->io);
		ev_timer_set(&l->late, (double)LIMIT_TRY_MS / 1000, 0.0);
	}
	ev_timer_start(r->loop, &l->late);
}

static void
on_start(struct ev_loop *loop, ev_timer *w, int events)
{
	struct resolve *r = container_of(w, struct resolve, start);

	(void)loop, (void)events;
	if (r->servers->n == 0) {
		leg_fail(&r->leg[0], "no name server is known: see dialer.resolvers");
		return;
	}
	for (size_t i = 0; i < LEGS; i++)
		leg_try(&r->leg[i]);
}

struct resolve *
resolve_new(struct ev_loop *loop, const struct servers *servers, const char *host,
	resolve_done_fn *done, void *owner)
{
	static const enum dns_type types[LEGS] = {DNS_A, DNS_AAAA};
	struct resolve *r = calloc(1, sizeof(*r));

	if (r == NULL)
		return NULL;
	r->loop = loop;
	r->servers = servers;
	r->done = done;
	r->owner = owner;
	must((size_t)snprintf(r->host, sizeof(r->host), "%s", host) < sizeof(r->host));
	for (size_t i = 0; i < LEGS; i++) {
		r->leg[i].resolve = r;
		r->leg[i].type = types[i];
		r->leg[i].fd = -1;
		ev_init(&r->leg[i].io, on_io);
		ev_init(&r->leg[i].late, on_late);
	}
	ev_timer_init(&r->start, on_start, 0.0, 0.0);
	ev_timer_start(loop, &r->start);
	return r;
}
