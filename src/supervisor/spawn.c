/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the process that becomes PID 1 is cloned, told and heard; see spawn.h. What it does itself stands
 * in inside.c.
 */
#include "supervisor/spawn.h"

#include "supervisor/inside.h"

#include <errno.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>

static const char *const mask_paths[] = {
#define MASK(path, why) path,
#include "supervisor/masks.def"
#undef MASK
};

size_t
spawn_masks(const char **ret, size_t n)
{
	size_t found = 0;

	for (size_t i = 0; i < ARRAY_LEN(mask_paths) && found < n; i++) {
		char path[64];

		(void)snprintf(path, sizeof(path), "/proc/%s", mask_paths[i]);
		if (access(path, F_OK) == 0)
			ret[found++] = mask_paths[i];
	}
	return found;
}

bool
spawn_mounts_at(struct view path)
{
	static const char *const own[] = {"/", "/dev", "/dev/pts", "/dev/shm", "/proc"};

	for (size_t i = 0; i < ARRAY_LEN(own); i++)
		if (view_is(path, own[i]))
			return true;
	for (size_t i = 0; view_starts(path, "/proc/") && i < ARRAY_LEN(mask_paths); i++)
		if (view_is(view_skip(path, 6), mask_paths[i]))
			return true;
	return false;
}

pid_t
spawn_clone(const struct spawn_kit *kit, int *ret_sock, int *ret_pidfd, struct err *err)
{
	struct clone_args args = {.exit_signal = SIGCHLD};
	int pair[2], pidfd = -1;
	sigset_t all, before;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_errno(err, "socketpair");
	args.flags = (__u64)CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC |
		     CLONE_NEWUTS | CLONE_PIDFD;
	args.pidfd = (__u64)(uintptr_t)&pidfd;
	if (kit->cgroup >= 0) {
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = (__u64)kit->cgroup;
	}
	/* No handler of ours runs in the copy: it resets them first. */
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &before); /* cannot fail with these arguments */
	pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	if (pid == 0) {
		(void)close(pair[0]); /* the parent's */
		inside_main(kit, pair[1]);
	}
	(void)sigprocmask(SIG_SETMASK, &before, NULL); /* as above */
	(void)close(pair[1]);                          /* the child's */
	if (pid < 0) {
		int code = err_errno(err, "a process in new namespaces");

		(void)close(pair[0]); /* nobody is at the other end */
		return code;
	}
	*ret_sock = pair[0];
	*ret_pidfd = pidfd;
	return pid;
}

int
spawn_order_send(
	int sock, const struct spawn_order *order, const int fds[SPAWN_FDS], struct err *err)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(int) * SPAWN_FDS)];
	} control = {0};
	struct iovec iov = {.iov_base = (void *)(uintptr_t)order, .iov_len = sizeof(*order)};
	struct msghdr msg = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.room,
		.msg_controllen = sizeof(control.room)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int) * SPAWN_FDS);
	memcpy(CMSG_DATA(c), fds, sizeof(int) * SPAWN_FDS);
	if (sendmsg(sock, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)sizeof(*order))
		return err_errno(err, "an order to a spare process");
	return 0;
}

/* ---- reports ---- */

union sockets_room {
	struct cmsghdr align;
	char room[CMSG_SPACE(sizeof(int) * PLUMBING_SOCKETS_MAX)];
};

void
spawn_report_done(struct spawn_report *r)
{
	while (r->nsockets > 0)
		(void)close(r->sockets[--r->nsockets]); /* whoever was to have it has a copy */
}

int
spawn_report_send(int sock, const struct spawn_report *r, struct err *err)
{
	union sockets_room control = {0};
	struct iovec iov = {.iov_base = (void *)(uintptr_t)r, .iov_len = sizeof(*r)};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	const size_t bytes = sizeof(int) * r->nsockets;

	if (bytes > 0) {
		struct cmsghdr *c = (struct cmsghdr *)(void *)control.room;

		msg.msg_control = control.room;
		msg.msg_controllen = CMSG_SPACE(bytes);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(bytes);
		memcpy(CMSG_DATA(c), r->sockets, bytes);
	}
	if (sendmsg(sock, &msg, MSG_NOSIGNAL) != (ssize_t)sizeof(*r))
		return err_errno(err, "a report to the supervisor");
	return 0;
}

/* The descriptors that came, whatever the report says of them. */
static void
sockets_take(struct spawn_report *r, struct msghdr *msg)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(msg);

	r->nsockets = 0;
	if (c == NULL || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
		return;
	r->nsockets = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	memcpy(r->sockets, CMSG_DATA(c), r->nsockets * sizeof(int));
}

int
spawn_report_read(int sock, struct spawn_report *ret, struct err *err)
{
	union sockets_room control;
	struct iovec iov = {.iov_base = ret, .iov_len = sizeof(*ret)};
	struct msghdr msg = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.room,
		.msg_controllen = sizeof(control.room)};
	ssize_t n = recvmsg(sock, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (n == (ssize_t)sizeof(*ret)) {
		ret->err.text[sizeof(ret->err.text) - 1] = '\0';
		sockets_take(ret, &msg);
		return 0;
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return err_set(err, -EAGAIN, "nothing to read");
	return err_set(err, -EPIPE, "closed");
}
