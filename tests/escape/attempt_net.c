/* SPDX-License-Identifier: Apache-2.0 */
/* Attempts of class `network`: ways out, and changes to the ways there are. See probe.h. */
#include "probe.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/if_packet.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- what is there ---- */

int
try_interfaces(const struct given *g, struct note *n)
{
	FILE *f = fopen("/proc/net/dev", "re");
	char line[512];
	unsigned seen = 0;

	(void)g;
	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		char name[64];

		if (sscanf(line, " %63[^:|]:", name) != 1 || strchr(line, ':') == NULL)
			continue;
		seen++;
		if (strcmp(name, "lo") != 0) {
			NOTE(n, "%s", name);
			return WORKED;
		}
	}
	return seen == 1 ? OWN : WORKED;
}

int
try_routes4(const struct given *g, struct note *n)
{
	FILE *f = fopen("/proc/net/route", "re");
	char line[512];
	unsigned lines = 0;

	(void)g;
	while (f != NULL && fgets(line, sizeof(line), f) != NULL)
		if (lines++ > 0)
			NOTE(n, "%.150s", line);
	return lines == 1 ? OWN : WORKED; /* the heading */
}

/* Those of lo itself end in " lo"; none may have a gateway or another interface. */
int
try_routes6(const struct given *g, struct note *n)
{
	FILE *f = fopen("/proc/net/ipv6_route", "re");
	char line[512];

	(void)g;
	if (f == NULL)
		return errno == ENOENT ? OWN : WORKED; /* a host without IPv6 */
	while (fgets(line, sizeof(line), f) != NULL) {
		char gateway[40], interface[32];

		if (sscanf(line, "%*s %*s %*s %*s %39s %*s %*s %*s %*s %31s", gateway, interface) !=
				2 ||
			strspn(gateway, "0") != 32 || strcmp(interface, "lo") != 0) {
			NOTE(n, "%.150s", line);
			return WORKED;
		}
	}
	return OWN;
}

/* ---- ways out ---- */

static int
reach4(const char *address, uint16_t port, int type)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0), on = 1;

	if (inet_pton(AF_INET, address, &a.sin_addr) != 1)
		return WORKED;
	(void)setsockopt(
		fd, SOL_SOCKET, SO_BROADCAST, &on, sizeof(on)); /* matters to broadcast only */
	if (type == SOCK_DGRAM)
		return sendto(fd, "x", 1, 0, (struct sockaddr *)&a, sizeof(a)) < 0 ? errno : WORKED;
	return connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0 ? errno : WORKED;
}

static int
reach6(const char *address, uint16_t port, uint32_t scope)
{
	struct sockaddr_in6 a = {
		.sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_scope_id = scope};
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return errno;
	if (inet_pton(AF_INET6, address, &a.sin6_addr) != 1)
		return WORKED;
	return connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0 ? errno : WORKED;
}

#define REACH(name, call)                                     \
	int try_##name(const struct given *g, struct note *n) \
	{                                                     \
		(void)g, (void)n;                             \
		return call;                                  \
	}

REACH(connect_private, reach4("10.0.0.1", 80, SOCK_STREAM))
REACH(connect_lan, reach4("192.168.1.1", 80, SOCK_STREAM))
REACH(connect_metadata, reach4("169.254.169.254", 80, SOCK_STREAM))
REACH(connect_dns, reach4("8.8.8.8", 53, SOCK_STREAM))
REACH(connect_fake, reach4("198.18.0.1", 443, SOCK_STREAM))
REACH(datagram_dns, reach4("8.8.8.8", 53, SOCK_DGRAM))
REACH(datagram_all, reach4("255.255.255.255", 67, SOCK_DGRAM))
REACH(datagram_group, reach4("224.0.0.251", 5353, SOCK_DGRAM))
REACH(connect6, reach6("2001:4860:4860::8888", 53, 0))
REACH(connect6_link, reach6("fe80::1", 80, 1))
REACH(connect6_mapped, reach6("::ffff:169.254.169.254", 80, 0))
REACH(api_port, reach4("127.0.0.1", g->api_port == 0 ? 7420 : g->api_port, SOCK_STREAM))

/* ---- kinds of sockets ---- */

static bool
family_given(int family)
{
	return family == AF_UNIX || family == AF_INET || family == AF_INET6 || family == AF_NETLINK;
}

int
try_families(const struct given *g, struct note *n)
{
	static const int types[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET};

	(void)g;
	for (int family = 0; family < 64; family++)
		for (size_t i = 0; i < 4 && !family_given(family); i++)
			if (socket(family, types[i], 0) >= 0 || errno != EAFNOSUPPORT) {
				NOTE(n, "family %d type %d: %s", family, types[i], strerror(errno));
				return WORKED;
			}
	return OWN;
}

ATTEMPT(vsock, socket(AF_VSOCK, SOCK_STREAM, 0))
ATTEMPT(packet, socket(AF_PACKET, SOCK_RAW, htons(3)))
ATTEMPT(alg, socket(AF_ALG, SOCK_SEQPACKET, 0))
ATTEMPT(raw4, socket(AF_INET, SOCK_RAW, IPPROTO_ICMP))
ATTEMPT(raw6, socket(AF_INET6, SOCK_RAW, IPPROTO_ICMPV6))
ATTEMPT(ping_socket, socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP))

int
try_netlink_kinds(const struct given *g, struct note *n)
{
	(void)g;
	if (socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE) < 0)
		NOTE(n, "ROUTE: %s", strerror(errno));
	for (int kind = 1; kind < 32; kind++)
		if (socket(AF_NETLINK, SOCK_RAW, kind) >= 0) {
			NOTE(n, "kind %d", kind);
			return WORKED;
		}
	return OWN;
}

int
try_other_protocols(const struct given *g, struct note *n)
{
	static const struct {
		int type, protocol;
	} others[] = {{SOCK_STREAM, 132}, {SOCK_SEQPACKET, 132}, {6, 33}, {SOCK_DGRAM, 136},
		{SOCK_STREAM, 262}, {SOCK_STREAM, 256}, {SOCK_RDM, 0}, {SOCK_SEQPACKET, 0}};

	(void)g;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		for (int family = AF_INET; family <= AF_INET6; family += AF_INET6 - AF_INET)
			if (socket(family, others[i].type, others[i].protocol) >= 0) {
				NOTE(n, "family %d type %d protocol %d", family, others[i].type,
					others[i].protocol);
				return WORKED;
			}
	return OWN;
}

int
try_pair_families(const struct given *g, struct note *n)
{
	int fds[2];

	(void)g;
	for (int family = 0; family < 64; family++)
		if (family != AF_UNIX &&
			(socketpair(family, SOCK_STREAM, 0, fds) >= 0 || errno != EAFNOSUPPORT)) {
			NOTE(n, "family %d: %s", family, strerror(errno));
			return WORKED;
		}
	return OWN;
}

/* ---- changes by netlink ---- */

struct request {
	struct nlmsghdr head;
	union {
		struct ifaddrmsg address;
		struct rtmsg route;
		struct ifinfomsg link;
		char room[128];
	} u;
};

static void
attribute(struct request *r, unsigned short type, const void *data, size_t n)
{
	struct rtattr *a = (struct rtattr *)(void *)((char *)r + NLMSG_ALIGN(r->head.nlmsg_len));

	a->rta_type = type;
	a->rta_len = (unsigned short)RTA_LENGTH(n);
	memcpy(RTA_DATA(a), data, n);
	r->head.nlmsg_len = (uint32_t)(NLMSG_ALIGN(r->head.nlmsg_len) + RTA_ALIGN(a->rta_len));
}

/* The kernel's answer: an errno, or WORKED. */
static int
netlink_ask(struct request *r)
{
	struct {
		struct nlmsghdr head;
		struct nlmsgerr err;
		char room[512];
	} answer = {0};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	r->head.nlmsg_flags |= NLM_F_REQUEST | NLM_F_ACK;
	if (fd < 0 || send(fd, r, r->head.nlmsg_len, 0) < 0 ||
		recv(fd, &answer, sizeof(answer), 0) < 0)
		return errno;
	return answer.head.nlmsg_type == NLMSG_ERROR ? -answer.err.error : EPROTO;
}

int
try_add_address(const struct given *g, struct note *n)
{
	struct request r = {.head = {.nlmsg_len = NLMSG_LENGTH(sizeof(r.u.address)),
				    .nlmsg_type = RTM_NEWADDR,
				    .nlmsg_flags = NLM_F_CREATE},
		.u.address = {.ifa_family = AF_INET, .ifa_prefixlen = 15, .ifa_index = 1}};
	const uint32_t address = htonl(0xc6120001); /* 198.18.0.1 */

	(void)g, (void)n;
	attribute(&r, IFA_LOCAL, &address, sizeof(address));
	return netlink_ask(&r);
}

int
try_add_route(const struct given *g, struct note *n)
{
	struct request r = {.head = {.nlmsg_len = NLMSG_LENGTH(sizeof(r.u.route)),
				    .nlmsg_type = RTM_NEWROUTE,
				    .nlmsg_flags = NLM_F_CREATE},
		.u.route = {.rtm_family = AF_INET,
			.rtm_table = RT_TABLE_MAIN,
			.rtm_protocol = RTPROT_STATIC,
			.rtm_scope = RT_SCOPE_LINK,
			.rtm_type = RTN_UNICAST}};
	const int lo = 1;

	(void)g, (void)n;
	attribute(&r, RTA_OIF, &lo, sizeof(lo));
	return netlink_ask(&r);
}

int
try_delete_route_J11(const struct given *g, struct note *n)
{
	struct request r = {
		.head = {.nlmsg_len = NLMSG_LENGTH(sizeof(r.u.route)), .nlmsg_type = RTM_DELROUTE},
		.u.route = {.rtm_family = AF_INET,
			.rtm_dst_len = 15,
			.rtm_table = RT_TABLE_LOCAL,
			.rtm_scope = RT_SCOPE_NOWHERE,
			.rtm_type = RTN_LOCAL}};
	const uint32_t pool = htonl(0xc6120000); /* 198.18.0.0 */

	(void)g, (void)n;
	attribute(&r, RTA_DST, &pool, sizeof(pool));
	return netlink_ask(&r);
}

int
try_port_start_J12(const struct given *g, struct note *n)
{
	int fd = open("/proc/sys/net/ipv4/ip_unprivileged_port_start", O_WRONLY | O_CLOEXEC);

	(void)g, (void)n;
	return fd < 0 || write(fd, "0", 1) != 1 ? errno : WORKED;
}

int
try_low_port_J14(const struct given *g, struct note *n)
{
	const struct sockaddr_in a = {.sin_family = AF_INET,
		.sin_port = htons(443),
		.sin_addr = {htonl(INADDR_LOOPBACK)}};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)g, (void)n;
	return bind(fd, (const struct sockaddr *)&a, sizeof(a)) < 0 ? errno : WORKED;
}

int
try_add_link(const struct given *g, struct note *n)
{
	struct request r = {.head = {.nlmsg_len = NLMSG_LENGTH(sizeof(r.u.link)),
				    .nlmsg_type = RTM_NEWLINK,
				    .nlmsg_flags = NLM_F_CREATE | NLM_F_EXCL}};
	/* IFLA_INFO_KIND "dummy" inside IFLA_LINKINFO */
	struct {
		struct rtattr a;
		char kind[8];
	} info = {{RTA_LENGTH(6), IFLA_INFO_KIND}, "dummy"};

	(void)g, (void)n;
	attribute(&r, IFLA_LINKINFO, &info, sizeof(info));
	return netlink_ask(&r);
}

int
try_link_down(const struct given *g, struct note *n)
{
	struct request r = {
		.head = {.nlmsg_len = NLMSG_LENGTH(sizeof(r.u.link)), .nlmsg_type = RTM_NEWLINK},
		.u.link = {.ifi_index = 1, .ifi_change = IFF_UP}};

	(void)g, (void)n;
	return netlink_ask(&r);
}

int
try_interface_address(const struct given *g, struct note *n)
{
	struct ifreq r = {.ifr_name = "lo:1"};
	const struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(0x0a000001)}};

	(void)g, (void)n;
	memcpy(&r.ifr_addr, &a, sizeof(a));
	return ioctl(socket(AF_INET, SOCK_DGRAM, 0), SIOCSIFADDR, &r) < 0 ? errno : WORKED;
}

/* ---- options that change what packets are ---- */

static int
option(int type, int level, int name, const void *value, socklen_t size)
{
	return setsockopt(socket(AF_INET, type, 0), level, name, value, size);
}

ATTEMPT(socket_mark, option(SOCK_DGRAM, SOL_SOCKET, SO_MARK, &(int){1}, sizeof(int)))
ATTEMPT(socket_transparent, option(SOCK_DGRAM, IPPROTO_IP, IP_TRANSPARENT, &(int){1}, sizeof(int)))

int
try_filter_rules(const struct given *g, struct note *n)
{
	/* struct ipt_replace of the table "filter" without rules; <linux/netfilter_ipv4/ip_tables.h> clashes with <net/if.h> */
	const char none[96] = "filter";
	enum { SET_REPLACE = 64 };

	(void)g, (void)n;
	if (option(SOCK_DGRAM, IPPROTO_IP, SET_REPLACE, none, sizeof(none)) < 0)
		return errno == EINVAL ? WORKED
				       : errno; /* EINVAL: it was read, so it was ours to change */
	return WORKED;
}
