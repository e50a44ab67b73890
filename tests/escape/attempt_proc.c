/* SPDX-License-Identifier: Apache-2.0 */
/* Attempts of the classes `proc`, `inherit` and `cgroup`: what the kernel shows of itself and of others. See probe.h. */
#include "probe.h"
#include "walk.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#define READS(name, path)  ATTEMPT(name, open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC))
#define WRITES(name, path) ATTEMPT(name, open(path, O_WRONLY | O_CLOEXEC))

/* ---- files that speak of the host ---- */

WRITES(sysrq, "/proc/sysrq-trigger")
READS(kcore, "/proc/kcore")
READS(kallsyms, "/proc/kallsyms")
READS(keys, "/proc/keys")
READS(key_users, "/proc/key-users")
READS(timer_list, "/proc/timer_list")
READS(kmsg, "/proc/kmsg")
READS(modules, "/proc/modules")
READS(interrupts, "/proc/interrupts")
WRITES(core_pattern, "/proc/sys/kernel/core_pattern")
WRITES(modprobe_path, "/proc/sys/kernel/modprobe")
WRITES(binfmt, "/proc/sys/fs/binfmt_misc/register")
WRITES(uevent_helper, "/sys/kernel/uevent_helper")
READS(proc1_environ, "/proc/1/environ")
ATTEMPT(proc1_mem, open("/proc/1/mem", O_RDWR | O_CLOEXEC))
ATTEMPT(proc1_fds, open("/proc/1/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC))
WRITES(proc1_exe, "/proc/1/exe")
WRITES(proc1_oom, "/proc/1/oom_score_adj")
WRITES(self_oom, "/proc/self/oom_score_adj")
WRITES(uid_map, "/proc/self/uid_map")

int
try_proc_dirs(const struct given *g, struct note *n)
{
	static const char *const dirs[] = {"irq", "bus", "driver", "fs", "acpi", "scsi"};

	(void)g;
	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		char path[32];
		unsigned names = 0;
		DIR *dir;

		(void)snprintf(path, sizeof(path), "/proc/%s", dirs[i]);
		dir = opendir(path);
		while (dir != NULL && readdir(dir) != NULL)
			names++;
		if (dir != NULL)
			(void)closedir(dir);
		if (names > 2) {
			NOTE(n, "%s: %u names", path, names - 2);
			return WORKED;
		}
	}
	return OWN;
}

/* ---- everything that can be written ---- */

struct search {
	unsigned seen, found;
	char first[160];
};

/* Links of a process lead out of /proc; what they lead to is not judged here. */
static bool
look_writable(void *owner, const char *path, const struct stat *st)
{
	static const char *const out[] = {"fd", "map_files", "task", "cwd", "root", "exe", "ns"};
	struct search *s = owner;
	const char *name = strrchr(path, '/') + 1;
	int fd;

	for (size_t i = 0; i < sizeof(out) / sizeof(out[0]); i++)
		if (strcmp(name, out[i]) == 0)
			return false;
	if (!S_ISREG(st->st_mode))
		return S_ISDIR(st->st_mode);
	s->seen++;
	fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0) {
		(void)close(fd);
		if (s->found++ == 0)
			(void)snprintf(s->first, sizeof(s->first), "%s", path);
	}
	return false;
}

static int
writable_below(const char *path, struct note *n)
{
	struct search s = {0};

	walk(path, look_writable, &s);
	if (s.found == 0)
		NOTE(n, "%u files", s.seen);
	else
		NOTE(n, "%u, first %s", s.found, s.first);
	return s.found == 0 && s.seen > 0 ? OWN : WORKED;
}

int
try_proc_writable(const struct given *g, struct note *n)
{
	(void)g;
	return writable_below("/proc", n);
}

int
try_proc_sys_writable(const struct given *g, struct note *n)
{
	(void)g;
	return writable_below("/proc/sys", n);
}

/* ---- processes ---- */

static bool
is_number(const char *name)
{
	return name[0] != '\0' && name[strspn(name, "0123456789")] == '\0';
}

/* PID 1 and processes of other users are not to be seen. */
int
try_foreign_processes(const struct given *g, struct note *n)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	unsigned seen = 0;

	(void)g;
	while (dir != NULL && (entry = readdir(dir)) != NULL) {
		char path[300];
		struct stat st;

		if (!is_number(entry->d_name))
			continue;
		(void)snprintf(path, sizeof(path), "/proc/%s", entry->d_name);
		if (stat(path, &st) < 0)
			continue; /* it ended meanwhile */
		seen++;
		if (strcmp(entry->d_name, "1") == 0 || st.st_uid != getuid()) {
			NOTE(n, "%.150s of uid %u", path, st.st_uid);
			return WORKED;
		}
	}
	NOTE(n, "%u processes", seen);
	return seen > 0 ? OWN : WORKED;
}

/* ---- what an exec inherits ---- */

int
try_descriptors(const struct given *g, struct note *n)
{
	NOTE(n, "%s", g->inherited);
	return g->inherited[0] == '\0' ? OWN : WORKED;
}

int
try_descriptor_kinds(const struct given *g, struct note *n)
{
	(void)g;
	for (int fd = 0; fd < 3; fd++) {
		struct stat st;

		if (fstat(fd, &st) < 0 || S_ISDIR(st.st_mode) || S_ISSOCK(st.st_mode) ||
			S_ISBLK(st.st_mode)) {
			NOTE(n, "%d has mode %o", fd, st.st_mode);
			return WORKED;
		}
	}
	return OWN;
}

int
try_signals_reset(const struct given *g, struct note *n)
{
	FILE *f = fopen("/proc/self/status", "re");
	char line[256];
	unsigned seen = 0;

	(void)g;
	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		char name[16];
		unsigned long long mask;

		if (sscanf(line, "%15[A-Za-z]: %llx", name, &mask) != 2)
			continue;
		if (strcmp(name, "SigBlk") != 0 && strcmp(name, "SigIgn") != 0)
			continue;
		seen++;
		if (mask != 0) {
			NOTE(n, "%s %llx", name, mask);
			return WORKED;
		}
	}
	return seen == 2 ? OWN : WORKED;
}

/* ---- control groups ---- */

READS(cgroup_files, "/sys/fs/cgroup")
WRITES(release_agent, "/sys/fs/cgroup/memory/release_agent")

int
try_cgroup_mounts(const struct given *g, struct note *n)
{
	FILE *f = fopen("/proc/self/mounts", "re");
	char line[4096], type[64];
	unsigned seen = 0;

	(void)g;
	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		if (sscanf(line, "%*s %*s %63s", type) != 1)
			continue;
		seen++;
		if (strncmp(type, "cgroup", 6) == 0) {
			NOTE(n, "%.150s", line);
			return WORKED;
		}
	}
	return seen > 0 ? OWN : WORKED;
}

/* Each line ends in ":/": the group is the root of what the sandbox can see. Hierarchies that nobody limits are at / too. */
int
try_cgroup_paths(const struct given *g, struct note *n)
{
	FILE *f = fopen("/proc/self/cgroup", "re");
	char line[4096];
	unsigned seen = 0;

	(void)g;
	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		size_t len = strcspn(line, "\n");

		seen++;
		if (len < 2 || strncmp(line + len - 2, ":/", 2) != 0) {
			NOTE(n, "%.150s", line);
			return WORKED;
		}
	}
	NOTE(n, "%u hierarchies", seen);
	return seen > 0 ? OWN : WORKED;
}
