/* SPDX-License-Identifier: Apache-2.0 */
/* Attempts of class `files`: files of the host, the image, devices, terminals. See probe.h. */
#include "probe.h"
#include "walk.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <linux/tiocl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <termios.h>
#include <unistd.h>

/* ---- the canary: a file of the host ---- */

static int
opens(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	return fd < 0 ? errno : close(fd);
}

ATTEMPT(canary_open, open(g->canary_path, O_RDONLY))

int
try_canary_proc1(const struct given *g, struct note *n)
{
	char path[PATH_MAX];

	(void)n;
	(void)snprintf(path, sizeof(path), "/proc/1/root%s", g->canary_path);
	return opens(path, O_RDONLY);
}

/* Through "from" itself and by climbing up from it. */
static bool
canary_from(const char *from, const char *canary, struct note *n)
{
	static const char *const ups[] = {
		"", "/..", "/../..", "/../../../../../../../../../../../.."};
	char path[PATH_MAX];

	for (size_t i = 0; i < sizeof(ups) / sizeof(ups[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s%s%s", from, ups[i], canary);
		if (opens(path, O_RDONLY) == WORKED) {
			NOTE(n, "%.190s", path);
			return true;
		}
	}
	return false;
}

int
try_canary_roots(const struct given *g, struct note *n)
{
	char from[64];
	unsigned tried = 0;

	for (int pid = 1; pid < 1000; pid++) {
		static const char *const links[] = {"root", "cwd"};

		for (size_t i = 0; i < 2; i++, tried++) {
			(void)snprintf(from, sizeof(from), "/proc/%d/%s", pid, links[i]);
			if (canary_from(from, g->canary_path, n))
				return WORKED;
		}
	}
	for (int fd = 0; fd < 1024; fd++, tried++) {
		(void)snprintf(from, sizeof(from), "/proc/self/fd/%d", fd);
		if (canary_from(from, g->canary_path, n))
			return WORKED;
	}
	NOTE(n, "%u starting points", tried);
	return OWN;
}

int
try_canary_dotdot(const struct given *g, struct note *n)
{
	static const char *const froms[] = {"", ".", "/home/agent", "/root", "/run", "/tmp",
		"/var/tmp", "/work", "/workspace", "/app", "/dev", "/dev/pts", "/dev/shm", "/proc",
		"/proc/self", "/proc/self/task", "/etc", "/usr/bin"};

	for (size_t i = 0; i < sizeof(froms) / sizeof(froms[0]); i++)
		if (canary_from(froms[i], g->canary_path, n))
			return WORKED;
	return OWN;
}

/* ---- the whole tree ---- */

struct search {
	const char *name;
	unsigned seen, found;
	char first[160];
};

static void
search_hit(struct search *s, const char *path)
{
	if (s->found++ == 0)
		(void)snprintf(s->first, sizeof(s->first), "%s", path);
}

static int
search_end(const struct search *s, struct note *n)
{
	if (s->found == 0)
		NOTE(n, "%u files", s->seen);
	else
		NOTE(n, "%u, first %s", s->found, s->first);
	return s->found == 0 && s->seen > 0 ? OWN : WORKED;
}

/* /proc has its own class; its links lead everywhere. */
static bool
enter(const char *path)
{
	return strcmp(path, "/proc") != 0;
}

static bool
look_name(void *owner, const char *path, const struct stat *st)
{
	struct search *s = owner;

	(void)st;
	s->seen++;
	if (strcmp(strrchr(path, '/') + 1, s->name) == 0)
		search_hit(s, path);
	return enter(path);
}

int
try_canary_walk(const struct given *g, struct note *n)
{
	struct search s = {.name = strrchr(g->canary_path, '/') + 1};

	walk("/", look_name, &s);
	return search_end(&s, n);
}

static bool
look_rights(void *owner, const char *path, const struct stat *st)
{
	struct search *s = owner;
	char value[64];

	s->seen++;
	if (S_ISREG(st->st_mode) &&
		((st->st_mode & (S_ISUID | S_ISGID)) != 0 ||
			lgetxattr(path, "security.capability", value, sizeof(value)) >= 0))
		search_hit(s, path);
	return enter(path);
}

int
try_setuid_files(const struct given *g, struct note *n)
{
	struct search s = {0};

	(void)g;
	walk("/", look_rights, &s);
	return search_end(&s, n);
}

static bool
device_known(dev_t dev)
{
	static const struct {
		unsigned major, minor;
	} known[] = {{1, 3}, {1, 5}, {1, 7}, {1, 8}, {1, 9}, {5, 0}, {5, 2}};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (dev == makedev(known[i].major, known[i].minor))
			return true;
	return major(dev) >= 136 && major(dev) <= 143; /* terminals of devpts */
}

static bool
look_device(void *owner, const char *path, const struct stat *st)
{
	struct search *s = owner;

	s->seen++;
	if (S_ISBLK(st->st_mode) || (S_ISCHR(st->st_mode) && !device_known(st->st_rdev)))
		search_hit(s, path);
	return enter(path);
}

int
try_device_files(const struct given *g, struct note *n)
{
	struct search s = {0};

	(void)g;
	walk("/", look_device, &s);
	return search_end(&s, n);
}

static bool
look_dev_name(void *owner, const char *path, const struct stat *st)
{
	static const char *const known[] = {"null", "zero", "full", "random", "urandom", "tty",
		"fd", "stdin", "stdout", "stderr", "ptmx", "pts", "shm", "pts/ptmx"};
	struct search *s = owner;
	const char *name = path + strlen("/dev/");

	(void)st;
	s->seen++;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(name, known[i]) == 0)
			return strcmp(name, "pts") == 0; /* /dev/shm is a writable place */
	search_hit(s, path);
	return true;
}

int
try_dev_names(const struct given *g, struct note *n)
{
	struct search s = {0};

	(void)g;
	walk("/dev", look_dev_name, &s);
	return search_end(&s, n);
}

static bool
look_any(void *owner, const char *path, const struct stat *st)
{
	struct search *s = owner;

	(void)st;
	search_hit(s, path);
	return false;
}

int
try_sys_files(const struct given *g, struct note *n)
{
	struct search s = {.seen = 1};

	(void)g;
	walk("/sys", look_any, &s);
	return search_end(&s, n);
}

/* ---- the image ---- */

/* Outside a sandbox the control test makes this file and removes it. */
ATTEMPT(root_create, open("/etc/demilune-probe", O_WRONLY | O_CREAT, 0600))
ATTEMPT(root_overwrite, open("/usr/bin/env", O_WRONLY))
ATTEMPT(root_unlink, unlink("/usr/bin/env"))
ATTEMPT(root_chmod, chmod("/usr/bin/env", 0777))
ATTEMPT(root_hostsfile, open("/etc/hosts", O_WRONLY | O_APPEND | O_CREAT, 0600))

/* ---- device nodes ---- */

#define NODE "/tmp/demilune-probe-node"

ATTEMPT(mknod_memory,
	syscall(SYS_mknod, NODE, S_IFCHR | 0666, makedev(1, 1)) < 0 ? -1 : unlink(NODE))
ATTEMPT(mknod_disk,
	syscall(SYS_mknod, NODE, S_IFBLK | 0666, makedev(254, 0)) < 0 ? -1 : unlink(NODE))
ATTEMPT(mknodat_kmsg,
	mknodat(AT_FDCWD, NODE, S_IFCHR | 0666, makedev(1, 11)) < 0 ? -1 : unlink(NODE))
ATTEMPT(mknod_whiteout, syscall(SYS_mknod, NODE, S_IFCHR | 0666, 0) < 0 ? -1 : unlink(NODE))

/* ---- terminals ---- */

/* The controlling terminal of the row's session, so that a refusal is not about owning none. */
static int
terminal(void)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY);
	char name[64];

	if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0 ||
		ptsname_r(master, name, sizeof(name)) != 0)
		return -1;
	return open(name, O_RDWR);
}

int
try_tty_inject(const struct given *g, struct note *n)
{
	int fd = terminal();

	(void)g;
	if (fd < 0) {
		NOTE(n, "no terminal to try it on");
		return WORKED;
	}
	return ioctl(fd, TIOCSTI, "x") < 0 ? errno : WORKED;
}

int
try_tty_linux(const struct given *g, struct note *n)
{
	char paste = TIOCL_PASTESEL;

	(void)g, (void)n;
	return ioctl(terminal(), TIOCLINUX, &paste) < 0 ? errno : WORKED;
}

int
try_tty_discipline(const struct given *g, struct note *n)
{
	int discipline = N_TTY;

	(void)g, (void)n;
	return ioctl(terminal(), TIOCSETD, &discipline) < 0 ? errno : WORKED;
}

ATTEMPT(tty_console, ioctl(terminal(), TIOCCONS))

/* ---- owners and attributes ---- */

static const char *
scratch(void)
{
	static const char path[] = "/tmp/demilune-probe-scratch";
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd >= 0)
		(void)close(fd);
	return path;
}

ATTEMPT(chown_other, chown(scratch(), 12345, (gid_t)-1))

int
try_file_capability(const struct given *g, struct note *n)
{
	/* Version 2, effective, CAP_NET_RAW permitted. */
	static const uint32_t value[] = {0x02000001, 1 << 13, 0, 0, 0};

	(void)g, (void)n;
	return setxattr(scratch(), "security.capability", value, sizeof(value), 0) < 0 ? errno
										       : WORKED;
}

ATTEMPT(trusted_attribute, setxattr(scratch(), "trusted.probe", "x", 1, 0))

int
try_mounts_flags(const struct given *g, struct note *n)
{
	FILE *f = fopen("/proc/self/mounts", "re");
	char line[4096];
	unsigned seen = 0;

	(void)g;
	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		char at[1024], options[1024];

		if (sscanf(line, "%*s %1023s %*s %1023s", at, options) != 2)
			continue;
		seen++;
		if (strstr(options, "nosuid") == NULL ||
			(strstr(options, "nodev") == NULL && strcmp(at, "/dev") != 0 &&
				strcmp(at, "/dev/pts") != 0)) {
			NOTE(n, "%.100s %.80s", at, options);
			return WORKED;
		}
	}
	NOTE(n, "%u mounts", seen);
	return seen > 0 ? OWN : WORKED;
}

/* ---- handles ---- */

union handle {
	struct file_handle h;
	char room[sizeof(struct file_handle) + MAX_HANDLE_SZ];
};

int
try_handle_name(const struct given *g, struct note *n)
{
	union handle u = {.h = {.handle_bytes = MAX_HANDLE_SZ}};
	int mount;

	(void)g, (void)n;
	return name_to_handle_at(AT_FDCWD, "/", &u.h, &mount, 0) < 0 ? errno : WORKED;
}

int
try_handle_open(const struct given *g, struct note *n)
{
	/* Inode 2 of an ext4 host: its root directory. */
	union handle u = {.h = {.handle_bytes = 8, .handle_type = 1}};
	const uint32_t root[2] = {2, 0};

	(void)g, (void)n;
	memcpy(u.h.f_handle, root, sizeof(root));
	return open_by_handle_at(open("/", O_RDONLY | O_CLOEXEC), &u.h, O_RDONLY) < 0 ? errno
										      : WORKED;
}
