/* SPDX-License-Identifier: Apache-2.0 */
/* Attempts of class `ipc`: reaching victims in another sandbox and on the host. See probe.h, victim.c. */
#include "probe.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

/* ---- System V and POSIX ---- */

ATTEMPT(sysv_memory, shmget((key_t)victim_key(g->mark), 0, 0))
ATTEMPT(sysv_queue, msgget((key_t)victim_key(g->mark), 0))
ATTEMPT(sysv_semaphore, semget((key_t)victim_key(g->mark), 0, 0))

int
try_sysv_list(const struct given *g, struct note *n)
{
	static const char *const lists[] = {"shm", "msg", "sem"};

	(void)g;
	for (size_t i = 0; i < 3; i++) {
		char path[32], line[256];
		unsigned lines = 0;
		FILE *f;

		(void)snprintf(path, sizeof(path), "/proc/sysvipc/%s", lists[i]);
		f = fopen(path, "re");
		while (f != NULL && fgets(line, sizeof(line), f) != NULL)
			lines++;
		if (lines != 1) { /* the heading */
			NOTE(n, "%s has %u lines", path, lines);
			return WORKED;
		}
	}
	return OWN;
}

int
try_posix_queue(const struct given *g, struct note *n)
{
	char name[64];

	(void)n;
	(void)snprintf(name, sizeof(name), "/%s", g->mark);
	return mq_open(name, O_RDONLY) < 0 ? errno : WORKED;
}

int
try_posix_memory(const struct given *g, struct note *n)
{
	char name[64];

	(void)n;
	(void)snprintf(name, sizeof(name), "/%s", g->mark);
	return shm_open(name, O_RDONLY, 0) < 0 ? errno : WORKED;
}

/* ---- Unix sockets ---- */

static int
unix_connect(const char *name, bool abstract, int type)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	socklen_t n = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + abstract + strlen(name));

	memcpy(a.sun_path + abstract, name, strnlen(name, sizeof(a.sun_path) - 1));
	return connect(socket(AF_UNIX, type | SOCK_CLOEXEC, 0), (struct sockaddr *)&a, n) < 0
		       ? errno
		       : WORKED;
}

int
try_abstract_socket(const struct given *g, struct note *n)
{
	(void)n;
	return unix_connect(g->mark, true, SOCK_STREAM);
}

int
try_abstract_datagram(const struct given *g, struct note *n)
{
	char name[64];

	(void)n;
	(void)snprintf(name, sizeof(name), "%s-datagram", g->mark);
	return unix_connect(name, true, SOCK_DGRAM);
}

int
try_host_socket(const struct given *g, struct note *n)
{
	(void)n;
	return unix_connect(g->socket_path, false, SOCK_STREAM);
}

/* The two on which PID 1 takes what programs ask for. */
static bool
of_pid_1(const char *name)
{
	return strcmp(name, "/run/demilune/propose") == 0 ||
	       strcmp(name, "/run/demilune/read") == 0;
}

/* The sandbox has made no other named socket: every name is foreign. */
int
try_unix_list(const struct given *g, struct note *n)
{
	FILE *f = fopen("/proc/net/unix", "re");
	char line[512];
	unsigned seen = 0;

	(void)g;
	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		char name[128];

		seen++;
		if (sscanf(line, "%*s %*s %*s %*s %*s %*s %*s %127s", name) == 1 &&
			strcmp(name, "Path") != 0 && !of_pid_1(name)) {
			NOTE(n, "%s", name);
			return WORKED;
		}
	}
	return seen > 0 ? OWN : WORKED;
}

/* ---- TCP ---- */

int
try_victim_tcp(const struct given *g, struct note *n)
{
	const struct sockaddr_in a = {
		AF_INET, htons(victim_port(g->mark)), {htonl(INADDR_LOOPBACK)}, {0}};

	(void)n;
	return connect(socket(AF_INET, SOCK_STREAM, 0), (const struct sockaddr *)&a, sizeof(a)) < 0
		       ? errno
		       : WORKED;
}

int
try_victim_tcp6(const struct given *g, struct note *n)
{
	const struct sockaddr_in6 a = {.sin6_family = AF_INET6,
		.sin6_port = htons(victim_port(g->mark)),
		.sin6_addr = IN6ADDR_LOOPBACK_INIT};
	int fd = socket(AF_INET6, SOCK_STREAM, 0);

	(void)n;
	if (fd < 0)
		return errno;
	return connect(fd, (const struct sockaddr *)&a, sizeof(a)) < 0 ? errno : WORKED;
}

/* ---- processes by name ---- */

int
try_victim_process(const struct given *g, struct note *n)
{
	unsigned seen = 0;

	(void)g;
	for (int pid = 1; pid < 100000; pid++) {
		char path[40], line[512] = "";
		ssize_t size;
		int fd;

		if (pid == getpid() || pid == getppid())
			continue; /* the mark stands in our own arguments */
		(void)snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		seen++;
		size = read(fd, line, sizeof(line) - 1);
		(void)close(fd);
		if (size > 0 && memmem(line, (size_t)size, "--victim", 8) != NULL) {
			NOTE(n, "process %d", pid);
			return WORKED;
		}
	}
	NOTE(n, "%u other processes", seen);
	return OWN;
}

/* ---- keyrings: part of no namespace ---- */

ATTEMPT(add_key, syscall(SYS_add_key, "user", "probe", "x", 1, KEY_SPEC_PROCESS_KEYRING))
ATTEMPT(keyctl_session, syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 1))
ATTEMPT(request_key, syscall(SYS_request_key, "user", "probe", NULL, 0))
