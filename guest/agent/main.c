/* SPDX-License-Identifier: Apache-2.0 */
/*
 * demilune-agent: PID 1 in the sandbox. Descriptor 3 leads to the relay. What confines it (namespaces,
 * seccomp, no_new_privs, capabilities) was applied by the supervisor before it was executed; nothing in the
 * sandbox depends on this program for its walls.
 */
#include "job.h"
#include "trust.h"

#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { EVENTS = 64, IDLE_MS = 1000, PURGE_MS = 5 };

static void
on_wakeup(int signal)
{
	(void)signal; /* ends a wait; what happened is asked of the kernel */
}

/* All dispositions to their default, so that no program inherits an ignored signal; then the two we need. */
static void
signals_reset(void)
{
	struct sigaction by_default = {.sa_handler = SIG_DFL}, wakeup = {.sa_handler = on_wakeup};
	sigset_t blocked;

	for (int s = 1; s <= SIGRTMAX; s++)
		(void)sigaction(s, &by_default,
			NULL); /* refused for KILL, STOP and libc's own, which have it */
	(void)sigaction(SIGCHLD, &wakeup, NULL);
	(void)sigaction(SIGPIPE, &wakeup, NULL);
	(void)sigemptyset(&blocked);
	(void)sigaddset(&blocked, SIGCHLD);
	must(sigprocmask(SIG_SETMASK, &blocked, NULL) == 0);
}

/* Whether the kernel lists children: without that a reaper cannot end its descendants alone. */
static int
children_listed(struct err *err)
{
	auto_fd int fd = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);

	return fd < 0 ? err_errno(err, "/proc/thread-self/children") : 0;
}

static int
agent_init(struct agent *a, struct err *err)
{
	int r;

	if (getpid() != 1)
		return err_set(
			err, -EPERM, "demilune-agent is PID 1 of a sandbox and nothing else");
	for (int fd = 0; fd <= FD_AGENT_OOM; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			return err_errno(err, "descriptor %d", fd);
	if (fd_set_cloexec(FD_AGENT_CHANNEL, true, err) < 0 ||
		fd_set_nonblock(FD_AGENT_CHANNEL, err) < 0 ||
		fd_set_cloexec(FD_AGENT_OOM, true, err) < 0 ||
		fd_close_from(FD_AGENT_OOM + 1, err) < 0)
		return err->code;
	signals_reset();
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_errno(err, "prctl");
	if (chdir("/") < 0)
		return err_errno(err, "chdir");
	r = drop_look(&a->drop);
	if (r < 0)
		return err_set(err, r, "capabilities cannot be read");
	r = oom_look(&a->oom);
	if (r < 0)
		return err_set(err, r, "descriptor %d is not our oom_score_adj", FD_AGENT_OOM);
	r = children_listed(err);
	if (r < 0)
		return r;
	a->watches.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (a->watches.epoll < 0)
		return err_errno(err, "epoll_create1");
	list_init(&a->jobs);
	list_init(&a->dead);
	for (size_t i = 0; i < AGENT_SINKS; i++)
		a->sinks[i].fd = -1;
	channel_in_init(&a->in, false);
	channel_out_init(&a->out, AGENT_OUT_MAX_BYTES);
	a->channel = (struct watch){.kind = WATCH_CHANNEL, .fd = FD_AGENT_CHANNEL};
	if (!watch_for(&a->watches, &a->channel, EPOLLIN))
		return err_errno(err, "epoll_ctl");
	propose_open(a);
	trust_open();
	return 0;
}

/* Jobs' children and orphans alike; a job's own result comes over its control socket, never from here. */
static void
reap(struct agent *a)
{
	pid_t pid;

	while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
		list_each (j, &a->jobs, struct job, link)
			if (j->pid == pid)
				j->pid = 0;
}

static bool
is_jobs_child(const struct agent *a, pid_t pid)
{
	list_each (j, (struct link *)(uintptr_t)&a->jobs, struct job, link)
		if (j->pid == pid)
			return true;
	return false;
}

/*
 * A reaper died (the kernel's choice when memory ran out), so its descendants are ours and look like any
 * background process: all orphans are ended, once around, rather than let one outlive its timeout.
 * PURGE_MS later again, until none is left.
 */
static void
purge(struct agent *a)
{
	auto_fd int fd = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
	char text[4096];
	bool any = fd < 0;
	pid_t pid = 0;
	ssize_t n;

	while (fd >= 0 && (n = read(fd, text, sizeof(text))) > 0)
		for (ssize_t i = 0; i < n; i++) {
			if (text[i] >= '0' && text[i] <= '9') {
				pid = pid * 10 + (text[i] - '0');
				continue;
			}
			if (pid > 0 && !is_jobs_child(a, pid)) {
				(void)kill(pid,
					SIGKILL); /* our child, and reap() did not run since the list */
				any = true;
			}
			pid = 0;
		}
	a->purge = any;
}

static void
sink(struct agent *a, struct watch *w)
{
	uint8_t nowhere[8192];

	for (int i = 0; i < AGENT_READS_PER_TURN; i++) {
		ssize_t r = read(w->fd, nowhere, sizeof(nowhere));

		if (r < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (r <= 0) {
			watch_close(&a->watches, w);
			return;
		}
	}
}

static void
channel_read(struct agent *a)
{
	struct err err = {0};
	int r = channel_in_fill(&a->in, a->channel.fd, &err);

	if (r == -EPIPE)
		_exit(AGENT_CLOSED);
	if (r == -ENOMEM || r == -EAGAIN)
		return;
	if (r < 0)
		log_exit(AGENT_BAD_FRAME, "%s", err.text);
	serve_frames(a);
}

static void
channel_write(struct agent *a)
{
	struct err err = {0};
	int r = channel_out_flush(&a->out, a->channel.fd, &err);

	if (buf_check(&a->out.b) < 0)
		log_exit(AGENT_BAD_FRAME, "no memory for what must be told to the relay");
	if (r == -EPIPE)
		_exit(AGENT_CLOSED);
	if (r < 0 && r != -EAGAIN)
		log_exit(AGENT_BAD_FRAME, "%s", err.text);
	(void)watch_for(&a->watches, &a->channel,
		r == -EAGAIN ? EPOLLIN | EPOLLOUT : EPOLLIN); /* in already: cannot fail */
}

static void
ready(struct agent *a, struct watch *w)
{
	if (w->fd < 0)
		return; /* closed by an earlier event of this turn */
	switch (w->kind) {
	case WATCH_CHANNEL:
		channel_read(a);
		break;
	case WATCH_SINK:
		sink(a, w);
		break;
	case WATCH_LISTENER:
		propose_accept(a, w);
		break;
	case WATCH_ASKER:
		asker_ready(a, w);
		break;
	case WATCH_REPORT:
	case WATCH_STDIN:
	case WATCH_STDOUT:
	case WATCH_STDERR:
		job_ready(w->job, w);
		break;
	}
}

static int
wait_ms(const struct agent *a)
{
	uint64_t now = clock_mono_ms(), due;

	if (a->purge)
		return PURGE_MS;
	due = propose_next_due_ms(a);
	list_each (j, (struct link *)(uintptr_t)&a->jobs, struct job, link) {
		uint64_t at = job_next_due_ms(j);

		due = at < due ? at : due;
	}
	if (due == UINT64_MAX && list_empty(&a->jobs))
		return -1;
	if (due <= now)
		return 0;
	return due - now < IDLE_MS ? (int)(due - now) : IDLE_MS;
}

/* What follows from the events of one turn. */
static void
turn_end(struct agent *a)
{
	uint64_t now = clock_mono_ms();

	list_each (j, &a->jobs, struct job, link)
		job_due(j, now);
	propose_due(a, now);
	channel_write(a);
	list_each (j, &a->jobs, struct job, link)
		job_settle(j);
	list_each (j, &a->dead, struct job, link) {
		list_remove(&j->link);
		job_free(j);
	}
	propose_sweep(a);
	reap(a);
	if (a->purge)
		purge(a);
}

int
main(void)
{
	static struct agent
		agent; /* zero at start; too large for a stack that must hold for ever */
	struct agent *a = &agent;
	struct err err = {0};
	sigset_t none;

	log_name("agent");
	(void)sigemptyset(&none);
	if (agent_init(a, &err) < 0)
		log_exit(AGENT_NO_START, "%s", err.text);
	CHANNEL_PUT(&a->out, 0, HELLO, hello, {.version = CHANNEL_VERSION});
	for (;;) {
		struct epoll_event events[EVENTS];
		int n;

		turn_end(a);
		n = epoll_pwait(a->watches.epoll, events, EVENTS, wait_ms(a), &none);
		for (int i = 0; i < n; i++)
			ready(a, events[i].data.ptr);
	}
}
