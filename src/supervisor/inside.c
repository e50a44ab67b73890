/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of the process that becomes PID 1 of a sandbox, from the clone to the exec of the agent; see spawn.h.
 * Called by spawn.c. It runs as the host's root inside the new namespaces until ids_enter(), and touches nothing
 * of a guest: images and volumes come as descriptors, names were checked by place.c.
 *
 * Order, and why:
 *   1. descriptors: all that the supervisor holds and this process does not need is closed first;
 *   2. control groups before the cgroup namespace, so that its root is the sandbox's own group;
 *   3. routes and sockets of a gateway, if it has one, while only this process is in the network namespace;
 *   4. mounts while it is still outside the user namespace: the sandbox owns none of them;
 *   5. pivot, and the host's tree is detached, before anything is given up;
 *   6. user namespace, ids, capabilities: from here it owns nothing;
 *   7. no_new_privs and the filter last: they hold for the agent and all that it starts.
 */
#include "supervisor/inside.h"

#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/jail/jail.h"
#include "proto_gen.h"
#include "sandbox-syscalls.h"
#include "supervisor/limits.h"
#include "supervisor/mount.h"
#include "supervisor/ns.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* Where the descriptors lie between the clone and the exec. */
enum { AT_NULL, AT_OUT, AT_LOG, AT_SOCK, AT_USERNS, AT_DEV, AT_AGENT, AT_STAGE, AT_ENTRIES };

/* Beside the descriptors with which the agent starts (fds.def); these two close at its exec. */
enum { NEXT_AGENT = FD_AGENT_OOM + 1, NEXT_SOCK };

#define CAP(name) (1ULL << CAP_##name)

/* All that the agent needs to run commands as other users of the sandbox and to end them. */
#define AGENT_CAPS (CAP(SETUID) | CAP(SETGID) | CAP(SETPCAP) | CAP(KILL))

static void
report(int sock, enum spawn_step step, const struct err *err)
{
	struct spawn_report r = {.step = step, .mono_us = clock_mono_us()};
	struct err lost;

	if (err != NULL)
		r.err = *err;
	/* When the supervisor is gone nobody listens, and this process is killed. */
	if (spawn_report_send(sock, &r, &lost) < 0)
		_exit(1);
}

/*
 * SIGKILL when the supervisor dies. The kernel forgets this when ids change, so it is said again after that; a
 * supervisor that died in between has closed the socket.
 */
static int
follow_supervisor(struct err *err)
{
	struct pollfd p = {.fd = AT_SOCK};

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return err_errno(err, "PR_SET_PDEATHSIG");
	if (poll(&p, 1, 0) < 0 || (p.revents & (POLLHUP | POLLERR)) != 0)
		return err_set(err, -EPIPE, "the supervisor is gone");
	return 0;
}

static void
signals_reset(void)
{
	sigset_t none;

	for (int i = 1; i < NSIG; i++)
		(void)signal(i, SIG_DFL); /* SIGKILL and SIGSTOP refuse, and have no handler */
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL); /* cannot fail with these arguments */
}

static int
descriptors_arrange(const struct spawn_kit *kit, int sock, struct err *err)
{
	auto_fd int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	auto_fd int stage = open(kit->stage, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int fds[AT_ENTRIES + CGROUP_HIERARCHIES] = {
		[AT_NULL] = null,
		[AT_OUT] = STDERR_FILENO,
		[AT_LOG] = STDERR_FILENO,
		[AT_SOCK] = sock,
		[AT_USERNS] = kit->userns,
		[AT_DEV] = kit->dev,
		[AT_AGENT] = kit->agent,
		[AT_STAGE] = stage,
	};
	int r;

	if (null < 0 || stage < 0)
		return err_errno(err, "/dev/null or %s", kit->stage);
	for (size_t i = 0; i < kit->nentries; i++)
		fds[AT_ENTRIES + i] = kit->entries[i];
	r = fd_arrange(fds, AT_ENTRIES + kit->nentries, 0, err);
	if (r < 0)
		return r;
	(void)take_fd(&null); /* closed by fd_arrange, which put copies in place */
	(void)take_fd(&stage);
	return 0;
}

/*
 * Enters the v1 groups. A process that writes "0" to `tasks` moves itself alone: unlike cgroup.procs this takes
 * no lock that waits for an RCU grace period (measured: 5 to 14 ms, docs/decisions/0002-container-speed.md).
 */
static int
cgroups_enter(const struct spawn_kit *kit, struct err *err)
{
	for (size_t i = 0; i < kit->nentries; i++) {
		if (write(AT_ENTRIES + (int)i, "0", 1) != 1)
			return err_errno(err, "entering control group %zu", i);
		(void)close(AT_ENTRIES + (int)i); /* written */
	}
	return unshare(CLONE_NEWCGROUP) < 0 ? err_errno(err, "a new cgroup namespace") : 0;
}

/* Its own alone; the agent raises it for the jobs that it forks (guest/agent/oom.h). */
static int
oom_score_set(struct err *err)
{
	char text[16];
	auto_fd int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	int n = snprintf(text, sizeof(text), "%d", (int)LIMIT_OOM_SCORE);

	if (fd < 0)
		return err_errno(err, "oom_score_adj");
	return fd_write_all(fd, text, (size_t)n, err);
}

/* ---- mounts ---- */

static int
mount_new_at(const char *type, const struct mount_option *options, size_t n, unsigned attrs,
	const char *at, struct err *err)
{
	auto_fd int fd = mount_new(type, options, n, attrs, err);

	return fd < 0 ? fd : mount_attach(fd, AT_STAGE, at, err);
}

static int
copy_to(const char *from, unsigned attrs, const char *to, struct err *err)
{
	auto_fd int fd = mount_copy(AT_STAGE, from, err);
	int r = fd < 0 ? fd : mount_change(fd, attrs, -1, err);

	return r < 0 ? r : mount_attach(fd, AT_STAGE, to, err);
}

/*
 * The sandbox's /proc, where nothing can be written; before that, *ret_oom: this process's own oom_score_adj. The writable
 * mount that it was opened on lies below the other one until the stage goes. It is not of the host's /proc: whoever gets hold of the
 * descriptor has a file of the sandbox and no number of the host.
 */
static int
proc_mount(int *ret_oom, struct err *err)
{
	const struct mount_option options[] = {{"hidepid", "invisible"}};
	const unsigned attrs = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
	int r = mount_new_at("proc", options, ARRAY_LEN(options), attrs, "proc", err);

	if (r < 0)
		return r;
	*ret_oom = openat(AT_STAGE, "proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
	if (*ret_oom < 0)
		return err_errno(err, "oom_score_adj");
	return copy_to("proc", MOUNT_ATTR_RDONLY, "proc", err);
}

/*
 * Covers what a sandbox should not read. A file is covered by a device node on a mount without devices: it can
 * not be opened; a directory by one that is empty.
 */
static int
masks_mount(const struct spawn_kit *kit, struct err *err)
{
	const unsigned attrs = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
			       MOUNT_ATTR_NOEXEC;

	for (size_t i = 0; i < kit->nmasks; i++) {
		char at[64];
		struct stat st;
		int r;

		(void)snprintf(at, sizeof(at), "proc/%s", kit->masks[i]);
		if (fstatat(AT_STAGE, at, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return err_errno(err, "%s", at);
		r = copy_to(S_ISDIR(st.st_mode) ? "dev/shm" : "dev/null", attrs, at, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* What every sandbox has, whatever its template: on the stage until the root is there. */
static int
common_mounts(const struct spawn_kit *kit, int *ret_oom, struct err *err)
{
	char ptys[16];
	const struct mount_option pts[] = {{"ptmxmode", "0666"}, {"mode", "0620"}, {"max", ptys}};
	int r;

	(void)snprintf(ptys, sizeof(ptys), "%u", kit->ptys);
	r = mount_propagation(MS_PRIVATE, err);
	if (r == 0)
		r = mount_attach(AT_DEV, AT_STAGE, "dev", err);
	if (r == 0)
		r = mount_new_at("devpts", pts, ARRAY_LEN(pts),
			MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, "dev/pts", err);
	if (r == 0)
		r = proc_mount(ret_oom, err);
	return r == 0 ? masks_mount(kit, err) : r;
}

/* A subtree of the volume, owned by `uid`, mounted at root's `to`. */
static int
place_mount(int volume, const char *name, const char *to, uint32_t uid, mode_t mode, int root,
	struct err *err)
{
	auto_fd int fd = -1;

	if (mkdirat(volume, name, mode) < 0 || fchmodat(volume, name, mode, 0) < 0 ||
		fchownat(volume, name, uid, uid, AT_SYMLINK_NOFOLLOW) < 0)
		return err_errno(err, "the place %s", to);
	fd = mount_copy(volume, name, err);
	return fd < 0 ? fd : mount_attach(fd, root, to, err);
}

/* Directories inside places, made in the volume. */
static int
place_dirs_make(const struct spawn_order *o, int root, uint32_t uid, struct err *err)
{
	for (size_t i = 0; i < o->places.ndirs; i++) {
		const char *path = o->places.dir[i].path + 1;

		if (mkdirat(root, path, 0755) < 0 ||
			fchownat(root, path, uid, uid, AT_SYMLINK_NOFOLLOW) < 0)
			return err_errno(err, "the directory %s", path);
	}
	return 0;
}

static int
places_mount(const struct spawn_order *o, int volume, int root, struct err *err)
{
	uint32_t uid = o->uid_base + (uint32_t)LIMIT_AGENT_UID;
	/* Attached first: before Linux 6.15 a subtree can be copied from an attached mount only. */
	int r = mount_attach(volume, AT_STAGE, "vol", err);

	for (size_t i = 0; r == 0 && i < o->places.n; i++) {
		const char *path = o->places.place[i].path;
		char name[16];

		(void)snprintf(name, sizeof(name), "%zu", i);
		r = place_mount(volume, name, path + 1, uid, place_is_shared(path) ? 01777 : 0755,
			root, err);
	}
	if (r == 0)
		r = place_mount(volume, "shm", "dev/shm", uid, 01777, root, err);
	return r == 0 ? place_dirs_make(o, root, uid, err) : r;
}

static int
root_mount(const struct spawn_order *o, const int fds[SPAWN_FDS], struct err *err)
{
	int root = fds[SPAWN_FD_ROOT];
	auto_fd int dev = -1, proc = -1;
	int r = mount_attach(root, AT_STAGE, "root", err);

	if (r < 0)
		return r;
	dev = openat(AT_STAGE, "dev", O_PATH | O_CLOEXEC);
	proc = openat(AT_STAGE, "proc", O_PATH | O_CLOEXEC);
	if (dev < 0 || proc < 0)
		return err_errno(err, "stage");
	r = mount_attach(dev, root, "dev", err);
	if (r == 0)
		r = mount_attach(proc, root, "proc", err);
	if (r == 0)
		r = places_mount(o, fds[SPAWN_FD_VOLUME], root, err);
	if (r < 0)
		return r;
	if (fchdir(root) < 0)
		return err_errno(err, "chdir to the new root");
	return mount_pivot_here(err);
}

/* ---- who it is ---- */

static int
limits_set(const struct spawn_order *o, struct err *err)
{
	/*
	 * Processes are counted by the control group, which tells of a refusal and comes first. The others have no control
	 * group: what the supervisor was started with would be what a sandbox may take.
	 */
	struct jail_rlimit limits[] = {{RLIMIT_NOFILE, o->open_files}, {RLIMIT_NPROC, o->pids},
		{RLIMIT_SIGPENDING, LIMIT_SIGNALS}, {RLIMIT_MEMLOCK, LIMIT_LOCKED_BYTES},
		{RLIMIT_MSGQUEUE, LIMIT_QUEUE_BYTES}};

	for (size_t i = 1; i < ARRAY_LEN(limits); i++) {
		struct rlimit have;

		if (getrlimit((__rlimit_resource_t)limits[i].resource, &have) < 0)
			return err_errno(err, "limit %d", limits[i].resource);
		if (have.rlim_max < limits[i].value)
			limits[i].value = have.rlim_max; /* nobody can raise it here */
	}
	return jail_rlimits_set(limits, ARRAY_LEN(limits), err);
}

static int
ids_enter(struct err *err)
{
	if (setns(AT_USERNS, CLONE_NEWUSER) < 0)
		return err_errno(err, "entering the user namespace");
	if (setgroups(0, NULL) < 0 || setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
		return err_errno(err, "becoming root of the sandbox");
	return 0;
}

/* Descriptors as the agent expects them; its own program closes at exec. */
static int
agent_descriptors(int channel, int oom, struct err *err)
{
	auto_fd int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	const int fds[] = {null, null, null, channel, oom, AT_AGENT, AT_SOCK};
	int r;

	if (null < 0)
		return err_errno(err, "/dev/null of the sandbox");
	r = fd_arrange(fds, ARRAY_LEN(fds), 0, err);
	if (r < 0)
		return r;
	(void)take_fd(&null); /* closed by fd_arrange */
	r = fd_set_cloexec(NEXT_AGENT, true, err);
	return r == 0 ? fd_set_cloexec(NEXT_SOCK, true, err) : r;
}

static int
confine(struct err *err)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_errno(err, "no_new_privs");
	return jail_filter_load(sandbox_syscalls, ARRAY_LEN(sandbox_syscalls), err);
}

static NORETURN void
fail(int sock, const struct err *err)
{
	report(sock, SPAWN_FAILED, err);
	_exit(1);
}

/* Nothing of a guest was touched yet, and no sandbox owns, or can reach, what they were made with. */
static int
plumb(const struct plumbing *p, struct spawn_report *ret, struct err *err)
{
	int r = p->wanted ? plumbing_routes(p, err) : 0;

	if (r == 0)
		r = plumbing_sockets(p, ret->sockets, err);
	if (r == 0)
		ret->nsockets = plumbing_count(p);
	return r;
}

/* With the sockets, which the supervisor passes on; told late, so that their new owner does not run instead of us. */
static int
mounted_report(struct spawn_report *r, struct err *err)
{
	int code;

	r->mono_us = clock_mono_us();
	code = spawn_report_send(AT_SOCK, r, err);
	spawn_report_done(r);
	return code;
}

static NORETURN void
become_agent(const struct spawn_order *o, const int fds[SPAWN_FDS], int oom)
{
	static const char *const argv[] = {"agent", NULL};
	static const char *const env[] = {NULL};
	struct spawn_report mounted = {.step = SPAWN_MOUNTED};
	struct err err = {0};

	if (sethostname(o->hostname, strlen(o->hostname)) < 0) {
		(void)err_errno(&err, "hostname");
		fail(AT_SOCK, &err);
	}
	if (plumb(&o->plumbing, &mounted, &err) < 0 || root_mount(o, fds, &err) < 0 ||
		mounted_report(&mounted, &err) < 0)
		fail(AT_SOCK, &err);
	if (limits_set(o, &err) < 0 || ids_enter(&err) < 0 ||
		jail_caps_drop_to(AGENT_CAPS, &err) < 0 || follow_supervisor(&err) < 0)
		fail(AT_SOCK, &err);
	report(AT_SOCK, SPAWN_STARTED, NULL);
	if (agent_descriptors(fds[SPAWN_FD_CHANNEL], oom, &err) < 0)
		_exit(1); /* the socket may have moved: its closing tells, since the process is gone */
	if (confine(&err) < 0)
		fail(NEXT_SOCK, &err);
	(void)execveat(NEXT_AGENT, "", (char *const *)(uintptr_t)argv,
		(char *const *)(uintptr_t)env, AT_EMPTY_PATH);
	(void)err_errno(&err, "executing the agent");
	fail(NEXT_SOCK, &err);
}

/* Blocks until the supervisor needs this process, or is gone. */
static int
order_wait(struct spawn_order *o, int fds[SPAWN_FDS], struct err *err)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(int) * SPAWN_FDS)];
	} control;
	struct iovec iov = {.iov_base = o, .iov_len = sizeof(*o)};
	struct msghdr msg = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.room,
		.msg_controllen = sizeof(control.room)};
	ssize_t n = recvmsg(AT_SOCK, &msg, MSG_CMSG_CLOEXEC);
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	if (n != (ssize_t)sizeof(*o) || c == NULL ||
		c->cmsg_len != CMSG_LEN(sizeof(int) * SPAWN_FDS))
		return err_set(err, -EPIPE, "no order came");
	memcpy(fds, CMSG_DATA(c), sizeof(int) * SPAWN_FDS);
	return 0;
}

void
inside_main(const struct spawn_kit *kit, int sock)
{
	static struct spawn_order order;
	struct err err = {0};
	int fds[SPAWN_FDS], oom = -1;

	signals_reset();
	if (descriptors_arrange(kit, sock, &err) < 0)
		_exit(1);
	if (follow_supervisor(&err) < 0 || oom_score_set(&err) < 0 ||
		cgroups_enter(kit, &err) < 0 || ns_lo_up(&err) < 0 ||
		common_mounts(kit, &oom, &err) < 0)
		fail(AT_SOCK, &err);
	report(AT_SOCK, SPAWN_READY, NULL);
	if (order_wait(&order, fds, &err) < 0)
		_exit(0);
	become_agent(&order, fds, oom);
}
