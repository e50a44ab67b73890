/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Routes and sockets for a gateway; see plumbing.h. Called by inside.c in the clone, and by sandbox.c for which socket is which. What the
 * kernel has after that is measured (measure.c) before anybody may use the sandbox.
 */
#include "supervisor/plumbing.h"

#include "lib/base/fd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <sys/socket.h>

/* The first interface of every network namespace. */
enum { LO = 1, BACKLOG = 256 };

/*
 * What the kernel holds for one connection of a program, each way, on the gateway's side: memory of the host, in no group's account. Without
 * a bound it grows to megabytes while one side does not read, and a sandbox with all its connections so takes what all TCP of the host has.
 */
enum { CONNECTION_BYTES = 131072 };

/* ---- routes ---- */

struct route {
	int family;
	uint8_t to[16];
	uint8_t bits; /* 0: everything */
};

static const struct route pool[] = {
	{AF_INET, {198, 18}, 15}, {AF_INET6, {0xfd, 0x00, 0x5e, 0xed}, 64}};
static const struct route all[] = {{AF_INET, {0}, 0}, {AF_INET6, {0}, 0}};

/*
 * An address of lo beside 127.0.0.1 and ::1: resolvers that are asked for what the host can use (AI_ADDRCONFIG) count no others, and
 * would ask nothing. Those that registries keep for hosts without an address (RFC 7600, RFC 9780); nothing outside has them.
 */
static const struct route dummy[] = {
	{AF_INET, {192, 0, 0, 8}, 32}, {AF_INET6, {0x01, 0, 0, 0, 0, 0, 0, 1, [15] = 1}, 128}};

struct request {
	struct nlmsghdr head;
	union {
		struct rtmsg route;
		struct ifaddrmsg address;
	};
	uint8_t attributes[64];
};

static void
attribute_add(struct request *q, unsigned short type, const void *p, size_t n)
{
	struct rtattr a = {.rta_len = (unsigned short)RTA_LENGTH(n), .rta_type = type};
	uint8_t *at = (uint8_t *)q + NLMSG_ALIGN(q->head.nlmsg_len);

	memcpy(at, &a, sizeof(a));
	memcpy(at + RTA_LENGTH(0), p, n);
	q->head.nlmsg_len = (uint32_t)(NLMSG_ALIGN(q->head.nlmsg_len) + RTA_LENGTH(n));
}

/* Sent, and the kernel's answer read. */
static int
request_send(int netlink, const struct request *q, const char *what, struct err *err)
{
	struct {
		struct nlmsghdr head;
		struct nlmsgerr error;
		uint8_t more[256];
	} answer;
	ssize_t n;

	if (send(netlink, q, q->head.nlmsg_len, 0) != (ssize_t)q->head.nlmsg_len)
		return err_errno(err, "%s", what);
	n = recv(netlink, &answer, sizeof(answer), 0);
	if (n < 0)
		return err_errno(err, "%s", what);
	if (n < (ssize_t)NLMSG_LENGTH(sizeof(answer.error)) ||
		answer.head.nlmsg_type != NLMSG_ERROR)
		return err_set(err, -EIO, "%s: the kernel answers something else", what);
	errno = -answer.error.error;
	return answer.error.error == 0 ? 0 : err_errno(err, "%s", what);
}

static size_t
address_bytes(const struct route *r)
{
	return r->family == AF_INET ? 4 : 16;
}

static int
address_add(int netlink, const struct route *a, struct err *err)
{
	struct request q = {
		.head = {.nlmsg_len = NLMSG_LENGTH(sizeof(q.address)),
			.nlmsg_type = RTM_NEWADDR,
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL},
		.address = {.ifa_family = (uint8_t)a->family,
			.ifa_prefixlen = a->bits,
			.ifa_scope = RT_SCOPE_HOST,
			.ifa_index = LO}};
	/* No route but the local one; no other host is asked whose it is. */
	const uint32_t alone = IFA_F_NOPREFIXROUTE | IFA_F_NODAD;

	attribute_add(&q, IFA_LOCAL, a->to, address_bytes(a));
	attribute_add(&q, IFA_ADDRESS, a->to, address_bytes(a));
	attribute_add(&q, IFA_FLAGS, &alone, sizeof(alone));
	return request_send(netlink, &q, "an address of lo", err);
}

static int
route_add(int netlink, const struct route *to, struct err *err)
{
	struct request q = {
		.head = {.nlmsg_len = NLMSG_LENGTH(sizeof(q.route)),
			.nlmsg_type = RTM_NEWROUTE,
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL},
		.route = {.rtm_family = (uint8_t)to->family,
			.rtm_dst_len = to->bits,
			.rtm_table = RT_TABLE_LOCAL,
			.rtm_protocol = RTPROT_STATIC,
			.rtm_scope = to->family == AF_INET ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE,
			.rtm_type = RTN_LOCAL}};
	const uint32_t lo = LO;

	if (to->bits != 0)
		attribute_add(&q, RTA_DST, to->to, address_bytes(to));
	attribute_add(&q, RTA_OIF, &lo, sizeof(lo));
	return request_send(netlink, &q, "a route to lo", err);
}

int
plumbing_routes(const struct plumbing *p, struct err *err)
{
	auto_fd int netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	const struct route *rows = p->capture ? all : pool;
	int r;

	if (netlink < 0)
		return err_errno(err, "a netlink socket");
	r = address_add(netlink, &dummy[0], err);
	if (r == 0)
		r = route_add(netlink, &rows[0], err);
	/* The kernel makes the route of an IPv6 address later, in a thread of its own: what is measured would depend on when. */
	if (r == 0 && p->ipv6)
		r = route_add(netlink, &dummy[1], err);
	if (r == 0 && p->ipv6)
		r = address_add(netlink, &dummy[1], err);
	if (r == 0 && p->ipv6)
		r = route_add(netlink, &rows[1], err);
	return r;
}

/* ---- sockets ---- */

static int
option_set(int fd, int level, int name, int value, struct err *err)
{
	return setsockopt(fd, level, name, &value, sizeof(value)) < 0
		       ? err_errno(err, "option %d of a socket for the gateway", name)
		       : 0;
}

/*
 * On every address of both families, or of IPv4 alone. An answer to a question has the address that was asked as its source, which the
 * kernel must tell with the question, and take with the answer though no interface has it.
 */
static int
family_set(int fd, bool ipv6, bool dns, struct err *err)
{
	int r = ipv6 ? option_set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0, err) : 0;

	if (r == 0 && dns)
		r = option_set(fd, IPPROTO_IP, IP_PKTINFO, 1, err);
	if (r == 0 && dns && ipv6)
		r = option_set(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1, err);
	if (r == 0 && dns && ipv6)
		r = option_set(fd, IPPROTO_IPV6, IPV6_FREEBIND, 1, err);
	return r;
}

/* Accepted sockets have it of theirs. */
static int
room_set(int fd, struct err *err)
{
	int r = option_set(fd, SOL_SOCKET, SO_RCVBUF, CONNECTION_BYTES, err);

	return r < 0 ? r : option_set(fd, SOL_SOCKET, SO_SNDBUF, CONNECTION_BYTES, err);
}

static int
socket_open(const struct plumbing_socket *s, bool ipv6, struct err *err)
{
	const bool dns = s->kind == SOCKET_KIND_DNS_UDP, proxy = s->kind == SOCKET_KIND_PROXY;
	struct sockaddr_in6 at6 = {.sin6_family = AF_INET6, .sin6_port = htons(s->port)};
	struct sockaddr_in at4 = {.sin_family = AF_INET,
		.sin_port = htons(s->port),
		.sin_addr.s_addr = htonl(proxy ? INADDR_LOOPBACK : INADDR_ANY)};
	const bool six = ipv6 && !proxy;
	auto_fd int fd = socket(six ? AF_INET6 : AF_INET,
		(dns ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int r;

	if (fd < 0)
		return err_errno(err, "a socket for the gateway");
	r = family_set(fd, six, dns, err);
	if (r == 0 && !dns)
		r = room_set(fd, err);
	if (r < 0)
		return r;
	r = six ? bind(fd, (struct sockaddr *)&at6, sizeof(at6))
		: bind(fd, (struct sockaddr *)&at4, sizeof(at4));
	if (r < 0 || (!dns && listen(fd, BACKLOG) < 0))
		return err_errno(err, "a socket for the gateway on port %u", s->port);
	return take_fd(&fd);
}

static const struct plumbing_socket first[] = {{SOCKET_KIND_DNS_UDP, GATEWAY_DNS_PORT},
	{SOCKET_KIND_DNS_TCP, GATEWAY_DNS_PORT}, {SOCKET_KIND_PROXY, GATEWAY_PROXY_PORT}};

size_t
plumbing_count(const struct plumbing *p)
{
	size_t n = ARRAY_LEN(first);

	if (!p->wanted)
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(p->ports) && p->ports[i] != 0; i++)
		n++;
	return n;
}

struct plumbing_socket
plumbing_socket(const struct plumbing *p, size_t i)
{
	must(i < plumbing_count(p));
	if (i < ARRAY_LEN(first))
		return first[i];
	return (struct plumbing_socket){SOCKET_KIND_PORT, p->ports[i - ARRAY_LEN(first)]};
}

int
plumbing_sockets(const struct plumbing *p, int ret[static PLUMBING_SOCKETS_MAX], struct err *err)
{
	size_t n = plumbing_count(p), made = 0;
	int r = 0;

	while (r >= 0 && made < n) {
		struct plumbing_socket s = plumbing_socket(p, made);

		r = socket_open(&s, p->ipv6, err);
		if (r >= 0)
			ret[made++] = r;
	}
	while (r < 0 && made > 0)
		(void)close(ret[--made]); /* nobody heard on it */
	return r < 0 ? r : 0;
}
