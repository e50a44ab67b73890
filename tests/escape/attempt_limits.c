/* SPDX-License-Identifier: Apache-2.0 */
/* Attempts of class `limits`: using up what there is. The probe itself must outlive them. See probe.h. */
#include "probe.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCK = 1 << 20, MOUNTS_MAX = 64, SLACK_PIDS = 16 };

/* ---- limits of a process ---- */

static int
raise_limit(__rlimit_resource_t what)
{
	struct rlimit l;

	if (getrlimit(what, &l) < 0)
		return WORKED;
	if (l.rlim_max == RLIM_INFINITY)
		return WORKED; /* none to raise */
	l.rlim_max++;
	return setrlimit(what, &l) < 0 ? errno : WORKED;
}

int
try_raise_files(const struct given *g, struct note *n)
{
	(void)g, (void)n;
	return raise_limit(RLIMIT_NOFILE);
}

int
try_raise_core(const struct given *g, struct note *n)
{
	(void)g, (void)n;
	return raise_limit(RLIMIT_CORE);
}

int
try_use_files(const struct given *g, struct note *n)
{
	unsigned opened = 0;

	while (opened < 1U << 20 && open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0)
		opened++;
	NOTE(n, "%u opened", opened);
	return opened <= g->open_files ? errno : WORKED;
}

/* ---- processes ---- */

int
try_use_processes(const struct given *g, struct note *n)
{
	unsigned started = 0;
	int code = WORKED;

	while (started < 2 * g->pids + 100) {
		pid_t pid = fork();

		if (pid < 0) {
			code = errno;
			break;
		}
		if (pid == 0) {
			(void)pause();
			_exit(0);
		}
		started++;
	}
	NOTE(n, "%u started of %u", started, g->pids);
	(void)signal(SIGTERM, SIG_IGN);
	(void)kill(0, SIGTERM); /* our own group: the row's */
	while (wait(NULL) > 0)
		;
	return started <= g->pids && started + SLACK_PIDS >= g->pids ? code : WORKED;
}

static void *
thread_main(void *arg)
{
	(void)arg;
	(void)pause();
	return NULL;
}

int
try_use_threads(const struct given *g, struct note *n)
{
	unsigned started = 0;
	pthread_attr_t a;
	pthread_t t;
	int code = WORKED;

	(void)pthread_attr_init(&a);
	(void)pthread_attr_setstacksize(&a, 65536);
	while (started < 2 * g->pids + 100 &&
		(code = pthread_create(&t, &a, thread_main, NULL)) == 0)
		started++;
	NOTE(n, "%u started of %u", started, g->pids);
	return started <= g->pids && started + SLACK_PIDS >= g->pids ? code : WORKED;
}

/* ---- memory ---- */

/* The hog must be killed, not told no, before it has twice the limit. */
static int
hog_judge(pid_t pid, struct note *n)
{
	int status;

	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return WORKED;
	NOTE(n, "wait status %#x", (unsigned)status);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL ? OWN : WORKED;
}

int
try_use_memory(const struct given *g, struct note *n)
{
	pid_t pid = fork();

	if (pid == 0) {
		for (uint64_t used = 0; used < 2 * g->memory_bytes; used += BLOCK) {
			char *p = mmap(NULL, BLOCK, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

			if (p == MAP_FAILED)
				_exit(2);
			memset(p, 1, BLOCK);
		}
		_exit(0);
	}
	return hog_judge(pid, n);
}

/* With as little memory of its own as can be: the kernel finds nobody here who is larger than PID 1. */
int
hog_run(void)
{
	static char block[BLOCK]; /* never written: the page of zeros, which counts for nobody */
	int fd = memfd_create("hog", MFD_CLOEXEC);

	while (write(fd, block, BLOCK) == BLOCK)
		;
	return 1;
}

/* Memory that is nobody's when the kernel counts. What the hog has of its own sets it apart from its parents. */
int
try_use_memory_file(const struct given *g, struct note *n)
{
	pid_t pid = fork();

	if (pid == 0) {
		static char block[8 * BLOCK];
		int fd = memfd_create("hog", MFD_CLOEXEC);

		memset(block, 1, sizeof(block));
		for (uint64_t used = 0; used < 2 * g->memory_bytes; used += BLOCK)
			if (write(fd, block, BLOCK) != BLOCK)
				_exit(2);
		_exit(0);
	}
	return hog_judge(pid, n);
}

/* ---- writable places ---- */

struct places {
	char at[MOUNTS_MAX][128];
	size_t n;
};

/* Every mount that this user can make a file in. */
static void
places_find(struct places *ret)
{
	FILE *f = fopen("/proc/self/mounts", "re");
	char line[4096];

	while (f != NULL && ret->n < MOUNTS_MAX && fgets(line, sizeof(line), f) != NULL) {
		char path[256];
		int fd;

		if (sscanf(line, "%*s %127s", ret->at[ret->n]) != 1)
			continue;
		(void)snprintf(path, sizeof(path), "%s/probe-place", ret->at[ret->n]);
		fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		if (fd < 0)
			continue;
		(void)close(fd);
		(void)unlink(path);
		ret->n++;
	}
	if (f != NULL)
		(void)fclose(f);
}

/* Fills one place with one file; the errno that stopped it. */
static int
fill_bytes(const char *at, uint64_t ceiling, uint64_t *ret_used)
{
	static char block[65536];
	char path[256];
	uint64_t used = 0;
	int fd, code = WORKED;

	(void)snprintf(path, sizeof(path), "%s/probe-fill", at);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	memset(block, 1, sizeof(block));
	while (used <= ceiling) {
		ssize_t size = write(fd, block, sizeof(block));

		if (size < 0) {
			code = errno;
			break;
		}
		used += (uint64_t)size;
	}
	(void)close(fd);
	(void)unlink(path);
	*ret_used = used;
	return code;
}

int
try_use_bytes(const struct given *g, struct note *n)
{
	struct places p = {0};
	uint64_t most = 0;

	places_find(&p);
	for (size_t i = 0; i < p.n; i++) {
		uint64_t used = 0;
		int code = fill_bytes(p.at[i], g->disk_bytes, &used);

		if (code != ENOSPC) {
			NOTE(n, "%s took %llu bytes: %s", p.at[i], (unsigned long long)used,
				code == WORKED ? "no limit" : strerrorname_np(code));
			return WORKED;
		}
		most = used > most ? used : most;
	}
	NOTE(n, "%zu places, at most %llu bytes", p.n, (unsigned long long)most);
	/* Half of the budget must be there, or something else stopped it. */
	return p.n > 0 && most <= g->disk_bytes && most >= g->disk_bytes / 2 ? OWN : WORKED;
}

static int
fill_inodes(const char *at, unsigned ceiling, unsigned *ret_made)
{
	unsigned made;
	int code = WORKED;

	for (made = 0; made <= ceiling; made++) {
		char path[256];
		int fd;

		(void)snprintf(path, sizeof(path), "%s/probe-inode-%u", at, made);
		fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		if (fd < 0) {
			code = errno;
			break;
		}
		(void)close(fd);
	}
	for (unsigned i = 0; i < made; i++) {
		char path[256];

		(void)snprintf(path, sizeof(path), "%s/probe-inode-%u", at, i);
		(void)unlink(path);
	}
	*ret_made = made;
	return code;
}

int
try_use_inodes(const struct given *g, struct note *n)
{
	struct places p = {0};
	unsigned most = 0;

	places_find(&p);
	for (size_t i = 0; i < p.n; i++) {
		unsigned made = 0;
		int code = fill_inodes(p.at[i], g->inodes, &made);

		if (code != ENOSPC) {
			NOTE(n, "%s took %u files: %s", p.at[i], made,
				code == WORKED ? "no limit" : strerrorname_np(code));
			return WORKED;
		}
		most = made > most ? made : most;
	}
	NOTE(n, "%zu places, at most %u files", p.n, most);
	return p.n > 0 && most >= g->inodes / 2 ? OWN : WORKED;
}

int
try_use_terminals(const struct given *g, struct note *n)
{
	unsigned opened = 0;
	int code = WORKED;

	(void)g;
	for (; opened < 4096; opened++)
		if (posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC) < 0) {
			code = errno;
			break;
		}
	NOTE(n, "%u opened", opened);
	return opened > 0 && opened < 1000 ? code : WORKED;
}
