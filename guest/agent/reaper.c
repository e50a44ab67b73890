/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parent of one command, a child subreaper: whatever the command's descendants do (setsid, double
 * fork), an orphan among them becomes the reaper's child. It waits for the command, reports its end to
 * PID 1 and goes; descendants that live on fall to PID 1 then.
 *
 * Why it is a uid of its own with CAP_KILL, and not the job's uid without any: a reaper of the job's uid is
 * killed by `kill -9 $PPID`, and its descendants outlive their timeout. No program in the sandbox ever
 * runs as REAPER_UID or has CAP_KILL, so none can signal, stop or trace it, and CAP_KILL without another
 * right, in a user namespace that owns nothing, reaches nothing but the sandbox's own processes. It reads
 * no byte that the guest wrote.
 *
 * Why killing does not depend on a walk of /proc, which undumpable processes would blind: see end_all().
 */
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

enum { WALK_DEPTH = 64 }; /* a descriptor per level */

struct reaper {
	pid_t command;
	bool ended;
	int status;
	struct rusage usage;
};

void
note_send(const struct note *n)
{
	ssize_t r;

	do
		r = send(CHILD_CONTROL_FD, n, sizeof(*n), MSG_NOSIGNAL);
	while (r < 0 && errno == EINTR);
	if (r < 0)
		_exit(1);
}

NORETURN static void
report_not_started(int code)
{
	const struct note n = {.kind = NOTE_ENDED, .end = JOB_END_NOT_STARTED, .code = code};

	note_send(&n);
	_exit(0);
}

static uint64_t
micros(const struct timeval *t)
{
	return (uint64_t)t->tv_sec * 1000000u + (uint64_t)t->tv_usec;
}

NORETURN static void
report_ended(const struct reaper *r)
{
	bool exited = WIFEXITED(r->status);
	const struct note n = {.kind = NOTE_ENDED,
		.end = exited ? JOB_END_EXITED : JOB_END_SIGNALLED,
		.code = exited ? WEXITSTATUS(r->status) : WTERMSIG(r->status),
		.cpu_us = micros(&r->usage.ru_utime) + micros(&r->usage.ru_stime),
		.memory_peak_bytes = (uint64_t)r->usage.ru_maxrss * 1024u};

	note_send(&n);
	_exit(0);
}

/* The process and nothing of the reaper's: vfork shares memory until it has executed. */
static pid_t
spawn(const struct command *c, volatile int *ret_fault)
{
	pid_t pid = vfork();

	if (pid == 0)
		command_become(c, ret_fault);
	return pid;
}

/* Reaps all that is dead. False when there is no child left at all. */
static bool
reap(struct reaper *r)
{
	for (;;) {
		struct rusage usage;
		int status;
		pid_t pid = wait4(-1, &status, WNOHANG, &usage);

		if (pid < 0 && errno == EINTR)
			continue;
		if (pid <= 0)
			return pid == 0;
		if (pid == r->command) {
			r->ended = true;
			r->status = status;
			r->usage = usage;
		}
	}
}

/* The parent of a process as /proc tells it; 0 when it cannot be seen. */
static pid_t
parent_of(pid_t pid)
{
	char path[48], text[512], *end;
	auto_fd int fd = -1;
	ssize_t n;
	pid_t parent = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	end = strrchr(text, ')'); /* behind the name, which is the guest's text: ") S PARENT ..." */
	for (char *p = end == NULL ? text : end + 4; *p >= '0' && *p <= '9'; p++)
		parent = parent * 10 + (*p - '0');
	return parent;
}

static void end_tree(pid_t pid, int pidfd, unsigned depth);

/* A child of `pid`, by its number in a list that may be old by now. */
static void
end_below(pid_t pid, int pidfd, pid_t child, unsigned depth)
{
	auto_fd int fd = (int)syscall(SYS_pidfd_open, child, 0);

	/*
	 * The number may be another's by now. It is the child if its parent is `pid`, and `pid` is still who it
	 * was if its pidfd can be signalled afterwards; fd itself never comes to mean another process.
	 */
	if (fd >= 0 && parent_of(child) == pid &&
		syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0) == 0)
		end_tree(child, fd, depth + 1);
}

/* Calls fn for each number of a list of children; false when there is no list. */
static bool
each_child(const char *path, void (*fn)(void *, pid_t), void *arg)
{
	auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[512];
	pid_t pid = 0;
	ssize_t n;

	if (fd < 0)
		return false;
	while ((n = read(fd, text, sizeof(text))) > 0)
		for (ssize_t i = 0; i < n; i++) {
			if (text[i] >= '0' && text[i] <= '9') {
				pid = pid * 10 + (text[i] - '0');
				continue;
			}
			if (pid > 0)
				fn(arg, pid);
			pid = 0;
		}
	return n == 0;
}

struct node {
	pid_t pid;
	int pidfd;
	unsigned depth;
};

static void
on_grandchild(void *arg, pid_t child)
{
	const struct node *n = arg;

	end_below(n->pid, n->pidfd, child, n->depth);
}

/* Stops on the way down, so that nothing is made behind our back, kills on the way up. */
static void
end_tree(pid_t pid, int pidfd, unsigned depth)
{
	struct node n = {.pid = pid, .pidfd = pidfd, .depth = depth};
	char path[64];

	(void)syscall(SYS_pidfd_send_signal, pidfd, SIGSTOP, NULL,
		0); /* it may be dead: then it is nothing */
	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	if (depth < WALK_DEPTH)
		(void)each_child(path, on_grandchild, &n);
	(void)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
}

static void
on_child(void *arg, pid_t pid)
{
	siginfo_t info = {.si_pid = 0};
	bool *alive = arg;
	auto_fd int fd = -1;

	/* WNOWAIT: a dead child stays, keeps its number, and counts against the limit of processes. */
	if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid)
		return;
	*alive = true;
	fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (fd >= 0)
		end_tree(pid, fd, 0);
	(void)kill(pid, SIGKILL); /* our own child, not reaped: the number cannot be another's */
}

/*
 * Ends all descendants. In each round every living child gets SIGKILL; what a child leaves behind becomes
 * the reaper's child and is met in the next round, so that a tree of depth d takes d rounds however its
 * members hide. Nobody outruns it: a chain of processes that fork and exit leaves one zombie with the
 * reaper per link, zombies are not reaped while anything lives, and so the chain stops at the sandbox's
 * limit of processes at the latest. A round that finds only dead children means that nothing lives below,
 * because the dead have no children; ECHILD from the final reaping proves it.
 *
 * A round costs a turn of the scheduler per level, which is long among hundreds of runnable processes. So a
 * round also takes what /proc shows further down (end_tree): most of a tree at once. That is speed only;
 * what is not seen there is met later.
 */
static void
end_all(struct reaper *r)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	sigset_t child;

	(void)sigemptyset(&child);
	(void)sigaddset(&child, SIGCHLD);
	for (unsigned quiet = 0; quiet < 2;) {
		bool alive = false;

		if (!each_child("/proc/thread-self/children", on_child, &alive)) {
			/*
			 * No descriptor or no /proc: everything in the sandbox but PID 1 and this process is
			 * ended, other commands too, rather than let a descendant live.
			 */
			(void)kill(-1, SIGKILL);
		}
		/* A list that changes under the reader can miss one: two without any are believed. */
		quiet = alive ? 0 : quiet + 1;
		if (quiet == 2 && reap(r))
			quiet = 0;
		if (quiet > 0)
			continue;
		/* Blocked, so kept: a death since the last round ends the wait at once. */
		(void)sigtimedwait(&child, NULL, &pause);
	}
}

/* One order of PID 1. */
static void
obey(struct reaper *r)
{
	struct order o;
	ssize_t n = recv(CHILD_CONTROL_FD, &o, sizeof(o), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n != sizeof(o))
		_exit(1); /* PID 1 is gone, and the sandbox with it */
	if (o.signal == 0)
		end_all(r);
	else
		(void)kill(-r->command, o.signal); /* its group, which may be empty by now */
}

void
reaper_main(const struct job *j)
{
	struct reaper r = {.command = 0};
	struct pollfd control = {.fd = CHILD_CONTROL_FD, .events = POLLIN};
	struct command c = {.job = j};
	volatile int fault = 0;
	sigset_t none;
	int code;

	(void)sigemptyset(&none);
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		report_not_started(errno);
	code = command_make(j, &c);
	if (code != 0)
		report_not_started(code);
	code = drop_to_reaper(&j->agent->drop, j->start.uid);
	if (code < 0)
		report_not_started(-code);
	r.command = spawn(&c, &fault);
	if (r.command < 0)
		report_not_started(errno);
	if (fault != 0)
		report_not_started(fault);
	code = drop_to_kill();
	(void)close_range(0, 2, 0); /* the command's, not ours */
	if (code < 0) {
		end_all(&r);
		report_not_started(-code);
	}
	for (;;) {
		(void)reap(&r);
		if (r.ended)
			report_ended(&r);
		/* SIGCHLD is blocked but for here; its handler does nothing but end the wait. */
		if (ppoll(&control, 1, NULL, &none) > 0)
			obey(&r);
	}
}
