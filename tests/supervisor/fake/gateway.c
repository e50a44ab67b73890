/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stands in for demilune-gateway: says on every edge to the engine what it was given, and passes on what dialer and broker say. Its sockets
 * answer with the address that was meant. With a policy named `deaf` it does not end when its edge does.
 */
#include "lib/base/attr.h"
#include "lib/ipc/datagram.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>

enum { ENGINE, DIALER, BROKER, SUPERVISOR, FIXED, SOCKETS = 32 };

static struct pollfd at[FIXED + SOCKETS];
static enum socket_kind kinds[FIXED + SOCKETS];
static nfds_t nat = FIXED;
static char text[2048];
static bool named, begun, deaf;

PRINTF(1, 2)
static void
note(const char *format, ...)
{
	size_t n = strlen(text);
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text + n, sizeof(text) - n, format, args);
	va_end(args);
}

static void
say(const char *what, size_t n)
{
	(void)send(at[ENGINE].fd, what, n, MSG_NOSIGNAL); /* the engine may be gone */
}

/* An address as text, IPv4 also where it is written as IPv6. */
static void
address(const struct sockaddr_storage *a, char *ret, size_t n)
{
	const struct sockaddr_in6 *six = (const void *)a;
	const struct sockaddr_in *four = (const void *)a;

	if (a->ss_family == AF_INET)
		(void)inet_ntop(AF_INET, &four->sin_addr, ret, (socklen_t)n);
	else if (IN6_IS_ADDR_V4MAPPED(&six->sin6_addr))
		(void)inet_ntop(AF_INET, &six->sin6_addr.s6_addr[12], ret, (socklen_t)n);
	else
		(void)inet_ntop(AF_INET6, &six->sin6_addr, ret, (socklen_t)n);
}

/* Is it what it is called: listening or not, on that port, not blocking, and unable to go to another namespace's? */
static bool
right(int fd, enum socket_kind kind, uint16_t port)
{
	struct sockaddr_storage own;
	socklen_t len = sizeof(own), optlen = sizeof(int);
	int listens = -1, type = -1;

	if (getsockname(fd, (struct sockaddr *)&own, &len) < 0 ||
		getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &optlen) < 0 ||
		getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &optlen) < 0)
		return false;
	return ntohs(((struct sockaddr_in *)&own)->sin_port) == port &&
	       (listens != 0) == (kind != SOCKET_KIND_DNS_UDP) &&
	       (type == SOCK_DGRAM) == (kind == SOCKET_KIND_DNS_UDP) &&
	       (fcntl(fd, F_GETFL) & O_NONBLOCK) != 0;
}

static void
on_listener(struct ipc_msg *m)
{
	static const char *const names[] = {[SOCKET_KIND_DNS_UDP] = "udp",
		[SOCKET_KIND_DNS_TCP] = "tcp",
		[SOCKET_KIND_PROXY] = "proxy",
		[SOCKET_KIND_PORT] = "port"};
	struct msg_listener is;
	struct err err;

	if (msg_listener_get(m->body, &is, &err) < 0 || nat == ARRAY_LEN(at))
		_exit(3);
	note(" %s%s:%u", right(m->fds[0], is.kind, is.port) ? "" : "wrong-", names[is.kind],
		is.port);
	kinds[nat] = is.kind;
	at[nat++] = (struct pollfd){.fd = ipc_msg_take(m, 0), .events = POLLIN};
}

static void
on_roots(struct ipc_msg *m)
{
	char content[32] = "";
	struct msg_roots is;
	struct err err;

	if (msg_roots_get(m->body, &is, &err) < 0 ||
		pread(m->fds[0], content, sizeof(content) - 1, 0) < 0)
		_exit(3);
	note(" roots%s%s=%s", is.name[0] == '\0' ? "" : "-", is.name, content);
}

static void
on_policy(struct ipc_msg *m)
{
	char content[256] = "";
	struct msg_gateway_policy is;
	struct err err;

	if (msg_gateway_policy_get(m->body, &is, &err) < 0 || named ||
		pread(m->fds[0], content, sizeof(content) - 1, 0) < 0 ||
		write(m->fds[0], "x", 1) == 1)
		_exit(3);
	note(" policy=%s", content);
	deaf = strncmp(content, "deaf", 4) == 0;
	named = true;
}

static void
on_begin(void)
{
	if (!named || begun)
		_exit(3);
	begun = true;
	say(text, strlen(text));
}

static void
edge_new(size_t i, struct ipc_msg *m)
{
	(void)close(at[i].fd); /* of a process that is gone */
	at[i].fd = ipc_msg_take(m, 0);
	if (i == ENGINE && begun)
		say(text, strlen(text));
}

static void
on_supervisor(void)
{
	static uint8_t room[4096];
	struct ipc_msg m;
	struct err err;

	if (ipc_read(FD_GATEWAY_SUPERVISOR, EDGE_SUPERVISOR_GATEWAY, ROOM_SUPERVISOR, room,
		    sizeof(room), &m, &err) < 0) {
		while (deaf)
			(void)pause();
		_exit(0);
	}
	if (m.type == MSG_LISTENER)
		on_listener(&m);
	else if (m.type == MSG_ROOTS)
		on_roots(&m);
	else if (m.type == MSG_GATEWAY_POLICY)
		on_policy(&m);
	else if (m.type == MSG_GATEWAY_BEGIN)
		on_begin();
	else
		edge_new(m.type == MSG_GATEWAY_ENGINE   ? ENGINE
			 : m.type == MSG_GATEWAY_DIALER ? DIALER
							: BROKER,
			&m);
	ipc_msg_done(&m);
}

static void
on_edge(size_t i)
{
	char said[256];
	ssize_t n = recv(at[i].fd, said, sizeof(said), 0);

	if (n > 0) {
		say(said, (size_t)n);
		return;
	}
	(void)close(at[i].fd); /* a new one will come */
	at[i].fd = -1;
}

static void
on_connection(int fd)
{
	struct sockaddr_storage own;
	socklen_t len = sizeof(own);
	int one = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
	char meant[64] = "";

	if (one < 0 || getsockname(one, (struct sockaddr *)&own, &len) < 0)
		return;
	address(&own, meant, sizeof(meant));
	(void)send(one, meant, strlen(meant), MSG_NOSIGNAL); /* it may be gone */
	(void)close(one);
}

/* The answer leaves with the address that the question went to, which is in its control message: sent back as it came. */
static void
on_question(int fd)
{
	char question[64], meant[64] = "", control[256];
	struct sockaddr_storage from, own = {.ss_family = AF_INET6};
	struct iovec iov = {question, sizeof(question)};
	struct msghdr msg = {.msg_name = &from,
		.msg_namelen = sizeof(from),
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control)};
	struct cmsghdr *c;

	if (recvmsg(fd, &msg, 0) < 0)
		return;
	for (c = CMSG_FIRSTHDR(&msg); c != NULL; c = CMSG_NXTHDR(&msg, c))
		if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
			struct in6_pktinfo info;

			memcpy(&info, CMSG_DATA(c), sizeof(info));
			((struct sockaddr_in6 *)&own)->sin6_addr = info.ipi6_addr;
			address(&own, meant, sizeof(meant));
			memmove(control, c, CMSG_LEN(sizeof(info)));
			msg.msg_controllen = CMSG_SPACE(sizeof(info));
			break;
		}
	if (c == NULL)
		return;
	iov = (struct iovec){meant, strlen(meant)};
	(void)sendmsg(fd, &msg, MSG_NOSIGNAL); /* it may be gone */
}

int
main(void)
{
	(void)signal(SIGPIPE, SIG_IGN);
	(void)snprintf(text, sizeof(text), "gateway uid=%u gid=%u", getuid(), getgid());
	for (size_t i = 0; i < FIXED; i++)
		at[i] = (struct pollfd){.fd = -1, .events = POLLIN};
	at[SUPERVISOR].fd = FD_GATEWAY_SUPERVISOR;
	for (;;) {
		if (poll(at, nat, -1) < 0)
			return 1;
		if (at[SUPERVISOR].revents != 0) {
			on_supervisor();
			continue;
		}
		for (size_t i = 0; i < FIXED; i++)
			if (at[i].revents != 0)
				on_edge(i);
		for (size_t i = FIXED; i < nat; i++)
			if (at[i].revents != 0 && kinds[i] == SOCKET_KIND_DNS_UDP)
				on_question(at[i].fd);
			else if (at[i].revents != 0)
				on_connection(at[i].fd);
	}
}
