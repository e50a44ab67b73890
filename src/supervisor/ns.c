/* SPDX-License-Identifier: Apache-2.0 */
/* Namespaces; see ns.h. */
#include "supervisor/ns.h"

#include "lib/base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* What the short-lived owner of a new namespace does until it is killed. Shares our memory: touches none. */
static NORETURN int
owner_main(void *arg)
{
	(void)arg;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* it is killed in a moment anyway */
	for (;;)
		(void)pause();
}

static int
map_write(pid_t pid, const char *file, uint32_t base, uint32_t count, struct err *err)
{
	char path[64], text[64];
	auto_fd int fd = -1;
	int n;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	n = snprintf(text, sizeof(text), "0 %u %u\n", base, count);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return err_errno(err, "%s", path);
	return fd_write_all(fd, text, (size_t)n, err);
}

/* Maps written, the descriptor of the namespace or negative. */
static int
user_of(pid_t pid, uint32_t base, uint32_t count, struct err *err)
{
	char path[64];
	int r = map_write(pid, "uid_map", base, count, err);
	int fd;

	if (r == 0)
		r = map_write(pid, "gid_map", base, count, err);
	if (r < 0)
		return r;
	(void)snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? err_errno(err, "%s", path) : fd;
}

/*
 * The kernel counts what the processes of a user namespace take (inotify instances, queued signals, locked memory) for the
 * owner of that namespace in our own: the owner is whoever has this effective uid when it is made. Were it root, one
 * sandbox could use up what root and all other sandboxes have.
 */
static pid_t
clone_as(uint32_t owner, void *stack, struct err *err)
{
	int death = 0;
	pid_t pid;

	(void)prctl(PR_GET_PDEATHSIG, &death); /* a change of ids clears it */
	if (seteuid(owner) < 0)
		return err_errno(err, "uid %u for a user namespace", owner);
	pid = clone(owner_main, stack, CLONE_NEWUSER | CLONE_VM | SIGCHLD, NULL);
	if (pid < 0)
		(void)err_errno(err, "a new user namespace");
	must(seteuid(0) == 0); /* our real uid is 0: it has no way to fail */
	(void)prctl(PR_SET_PDEATHSIG, death);
	return pid < 0 ? (pid_t)err->code : pid;
}

int
ns_user_make(uint32_t base, uint32_t count, struct err *err)
{
	/* The child shares our memory, so that nothing is copied; this is its stack. */
	static uint8_t stack[4096] __attribute__((aligned(16)));
	sigset_t all, before;
	pid_t pid;
	int fd;

	/* No handler of ours runs in the child, on a stack that is too small for it; it is born with this mask. */
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &before); /* cannot fail with these arguments */
	pid = clone_as(base, stack + sizeof(stack), err);
	(void)sigprocmask(SIG_SETMASK, &before, NULL); /* as above */
	if (pid < 0)
		return (int)pid;
	fd = user_of(pid, base, count, err);
	(void)kill(pid, SIGKILL); /* our own child that was not waited for: it exists */
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return fd;
}

static bool
same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static int
look_at(pid_t pid, const char *name, const struct stat *host_user, bool *ret_own, bool *ret_owner,
	struct err *err)
{
	char path[64];
	struct stat host, theirs, owner;
	auto_fd int fd = -1, user = -1;

	(void)snprintf(path, sizeof(path), "/proc/self/ns/%s", name);
	if (stat(path, &host) < 0)
		return err_errno(err, "%s", path);
	(void)snprintf(path, sizeof(path), "/proc/%d/ns/%s", pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &theirs) < 0)
		return err_errno(err, "%s", path);
	user = ioctl(fd, NS_GET_USERNS);
	*ret_own = !same(&host, &theirs);
	*ret_owner = user >= 0 && fstat(user, &owner) == 0 && same(&owner, host_user);
	return 0;
}

int
ns_user_owner(pid_t pid, uint32_t *ret, struct err *err)
{
	char path[64];
	auto_fd int fd = -1;
	uid_t uid;

	(void)snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || ioctl(fd, NS_GET_OWNER_UID, &uid) < 0)
		return err_errno(err, "the owner of %s", path);
	*ret = uid;
	return 0;
}

int
ns_look(pid_t pid, uint32_t *ret_own, uint32_t *ret_owner_host, struct err *err)
{
	static const struct {
		const char *name;
		enum ns_bit bit;
	} rows[] = {{"user", NS_USER}, {"mnt", NS_MNT}, {"pid", NS_PID}, {"net", NS_NET},
		{"ipc", NS_IPC}, {"uts", NS_UTS}, {"cgroup", NS_CGROUP}};
	uint32_t own = 0, owner_host = 0;
	struct stat host_user;

	if (stat("/proc/self/ns/user", &host_user) < 0)
		return err_errno(err, "/proc/self/ns/user");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		bool is_own, is_owner;
		int r = look_at(pid, rows[i].name, &host_user, &is_own, &is_owner, err);

		if (r < 0)
			return r;
		own |= is_own ? rows[i].bit : 0U;
		/* A user namespace has a parent, not an owner that could use it. */
		owner_host |= is_owner && rows[i].bit != NS_USER ? rows[i].bit : 0U;
	}
	*ret_own = own;
	*ret_owner_host = owner_host;
	return 0;
}

int
ns_lo_up(struct err *err)
{
	auto_fd int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request = {.ifr_name = "lo"};

	/* A Unix socket takes interface requests too, for the namespace of its maker. */
	if (fd < 0)
		return err_errno(err, "socket");
	request.ifr_flags = IFF_UP | IFF_RUNNING;
	return ioctl(fd, SIOCSIFFLAGS, &request) < 0 ? err_errno(err, "lo") : 0;
}
