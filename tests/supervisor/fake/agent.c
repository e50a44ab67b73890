/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stands in for demilune-agent: PID 1, static. Takes one line, does one thing, answers one line "number errno".
 * Commands act as the user of the sandbox in a child, unless they are about PID 1 itself or begin with "root-".
 */
#include "lib/base/attr.h"
#include "lib/base/num.h"
#include "proto_gen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

struct answer {
	long long n;
	int code;
};

static struct answer
fill(const char *path, uint64_t bytes)
{
	static char room[65536];
	struct answer a = {0};
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0)
		return (struct answer){0, errno};
	while ((uint64_t)a.n < bytes) {
		ssize_t r = write(fd, room, sizeof(room));

		if (r < 0)
			return (struct answer){a.n, errno};
		a.n += r;
	}
	return a;
}

static struct answer
inodes(const char *dir, uint64_t n)
{
	struct answer a = {0};

	for (; (uint64_t)a.n < n; a.n++) {
		char path[256];
		int fd;

		(void)snprintf(path, sizeof(path), "%s/%lld", dir, a.n);
		fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		if (fd < 0)
			return (struct answer){a.n, errno};
		(void)close(fd);
	}
	return a;
}

/* Children that sleep in a session of their own and ignore what can be ignored. */
static struct answer
forks(uint64_t n)
{
	struct answer a = {0};

	for (; (uint64_t)a.n < n; a.n++) {
		pid_t pid = fork();

		if (pid < 0)
			return (struct answer){a.n, errno};
		if (pid == 0) {
			(void)setsid();
			for (int i = 1; i < NSIG; i++)
				(void)signal(i, SIG_IGN);
			for (;;)
				(void)pause();
		}
	}
	return a;
}

/* The n-th attempt to make one of what the kernel counts per user; false: refused. */
static bool
take_one(const char *what)
{
	timer_t timer;

	if (strcmp(what, "inotify") == 0)
		return inotify_init1(IN_CLOEXEC) >= 0;
	return timer_create(CLOCK_MONOTONIC, NULL, &timer) == 0;
}

/* A child that takes n of them and keeps them as long as the sandbox lives. */
static struct answer
take(const char *what, uint64_t n)
{
	struct answer *a = mmap(
		NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int done[2];
	char byte;
	pid_t pid;

	if (a == MAP_FAILED || pipe2(done, O_CLOEXEC) < 0)
		return (struct answer){-2, errno};
	pid = fork();
	if (pid == 0) {
		(void)setsid();
		while ((uint64_t)a->n < n && take_one(what))
			a->n++;
		a->code = (uint64_t)a->n < n ? errno : 0;
		(void)close(done[1]);
		for (;;)
			(void)pause();
	}
	(void)close(done[1]);
	if (pid < 0 || read(done[0], &byte, 1) != 0)
		return (struct answer){-2, errno};
	return *a;
}

static struct answer
memory(uint64_t bytes)
{
	char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return (struct answer){0, errno};
	for (uint64_t i = 0; i < bytes; i += 4096)
		p[i] = 1;
	return (struct answer){(long long)bytes, 0};
}

/* Fills TCP connections to itself that nobody reads from; the bytes that the kernel took. */
static struct answer
sockets(uint64_t n)
{
	static char room[65536];
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), size = 4 << 20;
	struct answer a = {0};

	if (listener < 0 || bind(listener, (struct sockaddr *)&at, sizeof(at)) < 0 ||
		listen(listener, 16) < 0 || getsockname(listener, (struct sockaddr *)&at, &len) < 0)
		return (struct answer){-4, errno};
	for (uint64_t i = 0; i < n; i++) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		ssize_t sent;

		(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
		if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof(at)) < 0 ||
			accept4(listener, NULL, NULL, SOCK_CLOEXEC) < 0)
			return (struct answer){a.n, errno};
		while ((sent = send(fd, room, sizeof(room), MSG_DONTWAIT)) > 0)
			a.n += sent;
	}
	return a;
}

static struct answer
open_it(const char *path, uint64_t flags)
{
	int fd = open(path, (int)flags | O_CLOEXEC, 0600);

	return fd < 0 ? (struct answer){0, errno} : (struct answer){fd, 0};
}

static struct answer
stat_it(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return (struct answer){0, errno};
	return (struct answer){(long long)st.st_uid * 100000 + (st.st_mode & 07777), 0};
}

/* ---- the network ---- */

/* As a socket address; its length, 0 when it is none. */
static socklen_t
address_of(const char *text, uint64_t port, struct sockaddr_storage *ret)
{
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)ret;
	struct sockaddr_in *four = (struct sockaddr_in *)ret;

	*ret = (struct sockaddr_storage){0};
	if (inet_pton(AF_INET, text, &four->sin_addr) == 1) {
		four->sin_family = AF_INET;
		four->sin_port = htons((uint16_t)port);
		return sizeof(*four);
	}
	if (inet_pton(AF_INET6, text, &six->sin6_addr) != 1)
		return 0;
	six->sin6_family = AF_INET6;
	six->sin6_port = htons((uint16_t)port);
	six->sin6_scope_id = six->sin6_addr.s6_addr[0] == 0xff;
	return sizeof(*six);
}

/* A stream or datagrams to there: 1 when what answers says this address, within a second. */
static struct answer
reach(const char *to, uint64_t port, int type)
{
	const struct timeval second = {.tv_sec = 1};
	struct sockaddr_storage at;
	socklen_t len = address_of(to, port, &at);
	int fd = socket(at.ss_family, type | SOCK_CLOEXEC, 0);
	char said[128] = "";
	ssize_t n;

	if (len == 0 || fd < 0 ||
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof(second)) < 0)
		return (struct answer){-4, errno};
	if (connect(fd, (struct sockaddr *)&at, len) < 0 ||
		(type == SOCK_DGRAM && send(fd, "?", 1, 0) < 0))
		return (struct answer){0, errno};
	n = recv(fd, said, sizeof(said) - 1, 0);
	if (n < 0)
		return (struct answer){0, errno};
	(void)close(fd);
	return (struct answer){strcmp(said, to) == 0, 0};
}

static struct answer
bind_it(const char *to, uint64_t port)
{
	struct sockaddr_storage at;
	socklen_t len = address_of(to, port, &at);
	int fd = socket(at.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
	struct answer a = {0};

	if (len == 0 || fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
		setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one)) < 0)
		return (struct answer){-4, errno};
	if (bind(fd, (struct sockaddr *)&at, len) < 0 || listen(fd, 1) < 0)
		a.code = errno;
	(void)close(fd);
	return a;
}

/* Adds (n 0) the route to 10.0.0.0/8 or takes away (n 1) that to the pool; the kernel's answer. */
static struct answer
route(uint64_t n)
{
	struct {
		struct nlmsghdr head;
		struct rtmsg route;
		struct rtattr to_is;
		uint8_t to[4];
		struct rtattr lo_is;
		uint32_t lo;
	} q = {.head = {.nlmsg_len = sizeof(q),
		       .nlmsg_type = n == 0 ? RTM_NEWROUTE : RTM_DELROUTE,
		       .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | (n == 0 ? NLM_F_CREATE : 0)},
		.route = {.rtm_family = AF_INET,
			.rtm_dst_len = n == 0 ? 8 : 15,
			.rtm_table = RT_TABLE_LOCAL,
			.rtm_protocol = RTPROT_STATIC,
			.rtm_scope = RT_SCOPE_HOST,
			.rtm_type = RTN_LOCAL},
		.to_is = {RTA_LENGTH(4), RTA_DST},
		.to = {n == 0 ? 10 : 198, n == 0 ? 0 : 18},
		.lo_is = {RTA_LENGTH(4), RTA_OIF},
		.lo = 1};
	struct {
		struct nlmsghdr head;
		struct nlmsgerr error;
		uint8_t more[256];
	} answer = {0};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	if (fd < 0 || send(fd, &q, sizeof(q), 0) < 0 || recv(fd, &answer, sizeof(answer), 0) < 0)
		return (struct answer){-4, errno};
	(void)close(fd);
	return (struct answer){0, -answer.error.error};
}

static struct answer
do_it(const char *what, const char *path, uint64_t n)
{
	if (strcmp(what, "fill") == 0)
		return fill(path, n);
	if (strcmp(what, "inodes") == 0)
		return inodes(path, n);
	if (strcmp(what, "forks") == 0)
		return forks(n);
	if (strcmp(what, "take") == 0)
		return take(path, n);
	if (strcmp(what, "memory") == 0)
		return memory(n);
	if (strcmp(what, "sockets") == 0)
		return sockets(n);
	if (strcmp(what, "open") == 0)
		return open_it(path, n);
	if (strcmp(what, "stat") == 0)
		return stat_it(path);
	if (strcmp(what, "connect") == 0)
		return reach(path, n, SOCK_STREAM);
	if (strcmp(what, "ask") == 0)
		return reach(path, n, SOCK_DGRAM);
	if (strcmp(what, "bind") == 0)
		return bind_it(path, n);
	if (strcmp(what, "route") == 0)
		return route(n);
	if (strcmp(what, "pid") == 0)
		return (struct answer){getpid(), 0};
	return (struct answer){0, ENOSYS};
}

/* As the user, in a child; a child that is killed answers -1 and the signal. */
static struct answer
as_user(const char *what, const char *path, uint64_t n)
{
	struct answer *a = mmap(
		NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct answer copy;
	int status = 0;
	pid_t pid;

	if (a == MAP_FAILED)
		return (struct answer){-2, errno};
	pid = fork();
	if (pid == 0) {
		if (setgroups(0, NULL) < 0 || setresgid(10001, 10001, 10001) < 0 ||
			setresuid(10001, 10001, 10001) < 0)
			*a = (struct answer){-3, errno};
		else
			*a = do_it(what, path, n);
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return (struct answer){-2, errno};
	copy = WIFSIGNALED(status) ? (struct answer){-1, WTERMSIG(status)} : *a;
	(void)munmap(a, 4096);
	return copy;
}

int
main(void)
{
	char line[512], text[64];
	bool deaf = false;

	for (;;) {
		ssize_t n = read(FD_AGENT_CHANNEL, line, sizeof(line) - 1);
		char what[32] = "", path[256] = "";
		unsigned long long number = 0;
		struct answer a;
		int m;

		if (n <= 0) {
			while (deaf)
				(void)pause();
			return 0;
		}
		line[n] = '\0';
		(void)sscanf(line, "%31s %255s %llu", what, path, &number);
		if (strcmp(what, "exit") == 0)
			return 7;
		if (strcmp(what, "own-memory") == 0)
			(void)memory(number);
		if (strcmp(what, "no-death-signal") == 0)
			deaf = prctl(PR_SET_PDEATHSIG, 0) == 0;
		if (strcmp(what, "pid") == 0)
			a = do_it(what, path, number);
		else if (strncmp(what, "root-", 5) == 0)
			a = do_it(what + 5, path, number);
		else
			a = as_user(what, path, number);
		m = snprintf(text, sizeof(text), "%lld %d\n", a.n, a.code);
		if (write(FD_AGENT_CHANNEL, text, (size_t)m) != m)
			return 1;
	}
}
