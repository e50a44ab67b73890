/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stands in for demilune-agent: PID 1, static. Takes one line, does one thing, answers one line "number errno".
 * Commands act as the user of the sandbox in a child, unless they are about PID 1 itself.
 */
#include "lib/base/attr.h"
#include "lib/base/num.h"
#include "proto_gen.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
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
		a = strcmp(what, "pid") == 0 ? do_it(what, path, number)
					     : as_user(what, path, number);
		m = snprintf(text, sizeof(text), "%lld %d\n", a.n, a.code);
		if (write(FD_AGENT_CHANNEL, text, (size_t)m) != m)
			return 1;
	}
}
