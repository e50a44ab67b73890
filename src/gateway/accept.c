/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listening sockets of the sandbox's network namespace; see accept.h. Which sandbox it is, is no question: this process has no other's
 * sockets. The address that a program dialled says the name, or nothing, and then it hears nothing.
 */
#include "accept.h"

#include "conn.h"
#include "dns_serve.h"
#include "limits.h"
#include "names.h"
#include "verdict.h"

#include "lib/base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

struct listener {
	struct link link;
	struct gateway *g; /* borrowed */
	int fd;            /* owned */
	enum socket_kind kind;
	uint16_t port;
	ev_io readable;
	ev_timer again; /* it rests until then */
};

struct address
address_of(int family, const void *bytes)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	struct address a = {.family = family};

	if (family == AF_INET6 && memcmp(bytes, mapped, sizeof(mapped)) == 0) {
		a.family = AF_INET;
		memcpy(a.b, (const uint8_t *)bytes + sizeof(mapped), 4);
	} else {
		memcpy(a.b, bytes, family == AF_INET ? 4 : 16);
	}
	return a;
}

/* What was dialled. */
static int
address_dialled(int fd, struct address *ret)
{
	union {
		struct sockaddr any;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} at;
	socklen_t n = sizeof(at);

	if (getsockname(fd, &at.any, &n) < 0)
		return -errno;
	if (at.any.sa_family == AF_INET)
		*ret = address_of(AF_INET, &at.in.sin_addr);
	else if (at.any.sa_family == AF_INET6)
		*ret = address_of(AF_INET6, &at.in6.sin6_addr);
	else
		return -EAFNOSUPPORT;
	return 0;
}

/* A reset, so that nobody takes it for an answer. */
static void
hang_up(int fd)
{
	const struct linger now = {.l_onoff = 1};

	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	(void)close(fd);
}

static void
connection_new(struct listener *l, int fd)
{
	struct gateway *g = l->g;
	struct meant to = {.port = l->port};
	struct address a;

	if (address_dialled(fd, &a) < 0) {
		hang_up(fd);
		return;
	}
	if (l->kind == SOCKET_KIND_DNS_TCP) {
		if (dns_is_asked_here(g, &a))
			dns_tcp_new(g, fd);
		else
			hang_up(fd);
		return;
	}
	address_text(&a, to.address);
	to.proxy = l->kind == SOCKET_KIND_PROXY;
	if (!to.proxy)
		to.name = names_find(g->names, &a);
	if (!to.proxy && to.name.n == 0) {
		const struct verdict_of v = {.verdict = VERDICT_REFUSED,
			.reason = EGRESS_REASON_RAW_ADDRESS,
			.scheme = EGRESS_SCHEME_NONE,
			.rule = EGRESS_NO_RULE,
			.port = to.port,
			.address = view_str(to.address)};

		hang_up(fd);
		verdict_tell(g, &v);
		return;
	}
	conn_new(g, fd, &to);
}

/* Held again as soon as there is one. */
static void
reserve_keep(struct gateway *g)
{
	if (g->reserve < 0)
		g->reserve = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
}

/*
 * No descriptor is left, so the one that was kept for this takes the connection off the queue: otherwise it would be told of again and
 * again. False: not even that works, and the socket rests.
 */
static bool
shed(struct gateway *g, int listening)
{
	int fd;

	fd_close_kept(&g->reserve);
	fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0)
		hang_up(fd);
	reserve_keep(g);
	return fd >= 0;
}

static void
on_listener(struct ev_loop *loop, ev_io *w, int events)
{
	struct listener *l = container_of(w, struct listener, readable);
	struct gateway *g = l->g;

	(void)events;
	if (l->kind == SOCKET_KIND_DNS_UDP) {
		dns_udp_ready(g, l->fd);
		return;
	}
	for (size_t i = 0; i < LIMIT_ACCEPTS; i++) {
		int fd;

		if (l->kind != SOCKET_KIND_DNS_TCP && g->nconns >= LIMIT_CONNECTIONS) {
			listeners_pause(g, true);
			return;
		}
		fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd >= 0) {
			reserve_keep(g);
			connection_new(l, fd);
		} else if (errno == EAGAIN) {
			return;
		} else if (errno != ECONNABORTED && errno != EINTR &&
			   ((errno != EMFILE && errno != ENFILE) || !shed(g, l->fd))) {
			ev_io_stop(loop, &l->readable);
			ev_timer_again(loop, &l->again);
			return;
		}
	}
}

static void
on_again(struct ev_loop *loop, ev_timer *w, int events)
{
	struct listener *l = container_of(w, struct listener, again);

	(void)events;
	ev_timer_stop(loop, w);
	reserve_keep(l->g);
	ev_io_start(loop, &l->readable); /* at the cap it stops by itself */
}

int
listener_add(struct gateway *g, int fd, enum socket_kind kind, uint16_t port, struct err *err)
{
	auto_fd int owned = fd;
	struct listener *l;

	if (g->nlisteners >= LIMIT_LISTENERS)
		return err_set(err, -EPROTO, "more than %zu sockets", g->nlisteners);
	if (fd_set_nonblock(fd, err) < 0 || fd_set_cloexec(fd, true, err) < 0)
		return err->code;
	l = calloc(1, sizeof(*l));
	if (l == NULL)
		return err_set(err, -ENOMEM, "no memory");
	l->g = g;
	l->fd = take_fd(&owned);
	l->kind = kind;
	l->port = port;
	ev_io_init(&l->readable, on_listener, l->fd, EV_READ);
	ev_init(&l->again, on_again);
	l->again.repeat = (double)LIMIT_REST_MS / 1000;
	list_append(&g->listeners, &l->link);
	g->nlisteners++;
	return 0;
}

void
listeners_begin(struct gateway *g)
{
	g->reserve = -1;
	reserve_keep(g);
	list_each (l, &g->listeners, struct listener, link)
		ev_io_start(g->loop, &l->readable);
}

/* Questions of DNS go on: they hold nothing. */
void
listeners_pause(struct gateway *g, bool paused)
{
	list_each (l, &g->listeners, struct listener, link) {
		if (l->kind != SOCKET_KIND_PROXY && l->kind != SOCKET_KIND_PORT)
			continue;
		ev_timer_stop(g->loop, &l->again);
		if (paused)
			ev_io_stop(g->loop, &l->readable);
		else
			ev_io_start(g->loop, &l->readable);
	}
}

void
listeners_end(struct gateway *g)
{
	dns_end(g);
	list_each (l, &g->listeners, struct listener, link) {
		ev_io_stop(g->loop, &l->readable);
		ev_timer_stop(g->loop, &l->again);
		list_remove(&l->link);
		fd_close_kept(&l->fd);
		free(l);
	}
	g->nlisteners = 0;
	fd_close_kept(&g->reserve);
}
