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
 * Why killing needs no walk of /proc (which hidepid and undumpable processes would blind): see end_all().
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
#include <sys/wait.h>
#include <time.h>

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

/* Kills a child that is not dead yet; true when there was something to kill. */
static bool
kill_child(pid_t pid)
{
	siginfo_t info = {.si_pid = 0};

	/* WNOWAIT: a dead child stays, keeps its number, and counts against the limit of processes. */
	if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid)
		return false;
	(void)kill(pid, SIGKILL); /* our own child, not reaped: the number cannot be another's */
	return true;
}

/* Goes through the children that the kernel lists; *ret_alive when one had to be killed. False: no list. */
static bool
kill_children(bool *ret_alive)
{
	auto_fd int fd = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
	char text[4096];
	pid_t pid = 0;
	ssize_t n;

	*ret_alive = false;
	if (fd < 0)
		return false;
	while ((n = read(fd, text, sizeof(text))) > 0)
		for (ssize_t i = 0; i < n; i++) {
			if (text[i] >= '0' && text[i] <= '9') {
				pid = pid * 10 + (text[i] - '0');
				continue;
			}
			if (pid > 0 && kill_child(pid))
				*ret_alive = true;
			pid = 0;
		}
	return n == 0;
}

/*
 * Ends all descendants. In each round every living child gets SIGKILL; what a child leaves behind becomes
 * the reaper's child and is met in the next round, so that a tree of depth d takes d rounds however its
 * members hide. Nobody outruns it: a chain of processes that fork and exit leaves one zombie with the
 * reaper per link, zombies are not reaped while anything lives, and so the chain stops at the sandbox's
 * limit of processes at the latest. A round that finds only dead children means that nothing lives below,
 * because the dead have no children; ECHILD from the final reaping proves it.
 */
static void
end_all(struct reaper *r)
{
	const struct timespec pause = {.tv_nsec = 100000};

	for (;;) {
		bool alive;

		if (!kill_children(&alive)) {
			/*
			 * No descriptor or no /proc: everything in the sandbox but PID 1 and this process is ended,
			 * other commands too, rather than let a descendant live.
			 */
			(void)kill(-1, SIGKILL);
			alive = false;
		}
		if (!alive && !reap(r))
			return;
		(void)nanosleep(&pause, NULL);
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
	code = drop_to_reaper(&j->agent->drop);
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
