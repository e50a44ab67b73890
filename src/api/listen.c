/* SPDX-License-Identifier: Apache-2.0 */
/* The listening sockets; see listen.h. */
#include "listen.h"

#include "conn.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/base/num.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

enum { BACKLOG = 256, ACCEPTS_PER_TURN = 16 };

static bool
has_room(const struct api *api, bool local)
{
	if (api->nconns >= LIMIT_CONNECTIONS)
		return false;
	return local || api->nconns_tcp < LIMIT_CONNECTIONS_TCP;
}

/* Ends the connection that waited longest for its next request, if there is one of this kind. */
static bool
evict(struct api *api, bool local)
{
	list_each (c, &api->conns, struct conn, link) {
		if (c->state != CONN_HEAD || c->in.n > 0 || c->out_at < c->out.n ||
			(!local && c->local))
			continue;
		conn_close(c);
		return true;
	}
	return false;
}

static void
accepting(struct api *api, struct listener *l)
{
	if (!has_room(api, l->local))
		ev_io_stop(api->loop, &l->readable);
	else
		ev_io_start(api->loop, &l->readable);
}

void
listen_closed(struct api *api, bool local)
{
	must(api->nconns > 0);
	api->nconns--;
	if (!local)
		api->nconns_tcp--;
	accepting(api, &api->local);
	if (api->has_tcp)
		accepting(api, &api->tcp);
}

/* The uid of a local peer, from the kernel. */
static int
peer_uid(int fd, uint32_t *ret)
{
	struct ucred cred;
	socklen_t n = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &n) < 0)
		return -errno;
	*ret = cred.uid;
	return 0;
}

static void
on_accept(struct ev_loop *loop, ev_io *w, int events)
{
	struct listener *l = container_of(w, struct listener, readable);
	struct api *api = l->api;

	(void)loop, (void)events;
	for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
		auto_fd int fd = -1;
		uint32_t uid = 0;
		int one = 1;

		if (!has_room(api, l->local) && !evict(api, l->local)) {
			accepting(api, l);
			return;
		}
		fd = accept4(w->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0)
			return; /* none is waiting, or it left, or there is no descriptor: again at the next event */
		if (l->local && peer_uid(fd, &uid) < 0)
			continue; /* a caller that the kernel cannot name is none */
		if (!l->local && setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) < 0)
			continue; /* it is gone already */
		api->nconns++;
		api->nconns_tcp += l->local ? 0 : 1;
		conn_new(api, take_fd(&fd), l->local, uid);
	}
}

static int
address_parse(const char *text, struct sockaddr_in6 *v6, struct sockaddr_in *v4, bool *ret_v6)
{
	const char *colon = strrchr(text, ':');
	char host[64];
	uint64_t port;
	size_t n;

	if (colon == NULL || num_u64(view_str(colon + 1), 65535, &port) < 0)
		return -EINVAL;
	n = (size_t)(colon - text);
	*ret_v6 = n > 2 && text[0] == '[' && text[n - 1] == ']';
	if (*ret_v6)
		text++, n -= 2;
	if (n >= sizeof(host))
		return -EINVAL;
	memcpy(host, text, n);
	host[n] = 0;
	v6->sin6_family = AF_INET6;
	v4->sin_family = AF_INET;
	v6->sin6_port = v4->sin_port = htons((uint16_t)port);
	if (*ret_v6)
		return inet_pton(AF_INET6, host, &v6->sin6_addr) == 1 &&
				       IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr)
			       ? 0
			       : -EINVAL;
	return inet_pton(AF_INET, host, &v4->sin_addr) == 1 &&
			       ntohl(v4->sin_addr.s_addr) >> 24 == 127
		       ? 0
		       : -EINVAL;
}

int
listen_tcp_open(const char *address, int *ret_fd, struct err *err)
{
	struct sockaddr_in6 v6 = {0};
	struct sockaddr_in v4 = {0};
	bool is_v6;
	auto_fd int fd = -1;
	int one = 1;

	if (address_parse(address, &v6, &v4, &is_v6) < 0)
		return err_set(err, -EINVAL,
			"%s: want 127.x.y.z:PORT or [::1]:PORT; without TLS nothing else is "
			"listened on",
			address);
	fd = socket(is_v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0)
		return err_errno(err, "%s", address);
	if (bind(fd, is_v6 ? (struct sockaddr *)&v6 : (struct sockaddr *)&v4,
		    is_v6 ? sizeof(v6) : sizeof(v4)) < 0 ||
		listen(fd, BACKLOG) < 0)
		return err_errno(err, "cannot listen at %s (listen.tcp)", address);
	*ret_fd = take_fd(&fd);
	return 0;
}

static void
listener_start(struct api *api, struct listener *l, int fd, bool local)
{
	l->api = api;
	l->local = local;
	ev_io_init(&l->readable, on_accept, fd, EV_READ);
	ev_io_start(api->loop, &l->readable);
}

int
listen_start(struct api *api, int local_fd, int tcp_fd, struct err *err)
{
	if (fd_set_nonblock(local_fd, err) < 0)
		return err->code;
	listener_start(api, &api->local, local_fd, true);
	api->has_tcp = tcp_fd >= 0;
	if (api->has_tcp)
		listener_start(api, &api->tcp, tcp_fd, false);
	return 0;
}

void
listen_stop(struct api *api)
{
	ev_io_stop(api->loop, &api->local.readable);
	(void)close(api->local.readable.fd); /* the process ends */
	if (!api->has_tcp)
		return;
	api->has_tcp = false;
	ev_io_stop(api->loop, &api->tcp.readable);
	(void)close(api->tcp.readable.fd);
}
