/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The child of a job: a reaper for a command, or the process that does a file operation. Makes its pipes,
 * forks, and in the child lets go of everything that is PID 1's. Called by job.c.
 */
#include "job.h"

#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/fsuid.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <termios.h>

/* The child's ends, and ours until they are moved into the job. */
struct ends {
	int child_in, child_out, child_err, child_control;
	int in, out, err, control;
};

static const struct ends no_ends = {-1, -1, -1, -1, -1, -1, -1, -1};

static void
ends_close(struct ends *e)
{
	const int fds[] = {e->child_in, e->child_out, e->child_err, e->child_control, e->in, e->out,
		e->err, e->control};

	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		if (fds[i] >= 0)
			(void)close(fds[i]); /* pipes and sockets: nothing is lost */
}
#define auto_ends __attribute__((cleanup(ends_close)))

static int
nonblock(int fd)
{
	return fcntl(fd, F_SETFL, O_NONBLOCK) < 0 ? errno : 0;
}

/* Our end does not block, the child's does. */
static int
pipe_out(int *ret_ours, int *ret_child)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return errno;
	*ret_ours = fds[0];
	*ret_child = fds[1];
	return nonblock(fds[0]);
}

static int
pipe_in(int *ret_ours, int *ret_child)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return errno;
	*ret_ours = fds[1];
	*ret_child = fds[0];
	return nonblock(fds[1]);
}

/*
 * A terminal whose slave belongs to the job's uid: devpts takes the owner from the file-system uid of the
 * one who opens the master. /dev is the supervisor's, not the guest's.
 */
static int
open_terminal(const struct job *j, struct ends *e)
{
	const struct winsize size = {.ws_row = j->start.rows, .ws_col = j->start.columns};
	const int unlock = 0;
	int r;

	(void)setfsuid(j->start.uid); /* has no error; the owner is then 0 */
	(void)setfsgid(j->start.uid);
	e->out = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
	r = errno;
	(void)setfsuid(0);
	(void)setfsgid(0);
	if (e->out < 0)
		return r;
	if (ioctl(e->out, TIOCSPTLCK, &unlock) < 0 || ioctl(e->out, TIOCSWINSZ, &size) < 0)
		return errno;
	e->child_in = ioctl(e->out, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (e->child_in < 0)
		return errno;
	e->in = fcntl(e->out, F_DUPFD_CLOEXEC, 0);
	return e->in < 0 ? errno : 0;
}

static bool
wants_stdin(const struct job *j)
{
	return j->start.stdin_open || j->start.kind == JOB_KIND_FILE_WRITE ||
	       j->start.kind == JOB_KIND_TREE_UP;
}

static int
open_ends(const struct job *j, struct ends *e)
{
	bool exec = j->start.kind == JOB_KIND_EXEC;
	int control[2], r = 0;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) < 0)
		return errno;
	e->control = control[0];
	e->child_control = control[1];
	if (j->start.pty)
		return open_terminal(j, e);
	r = pipe_out(&e->out, &e->child_out);
	if (r == 0 && exec)
		r = pipe_out(&e->err, &e->child_err);
	if (r == 0 && wants_stdin(j))
		r = pipe_in(&e->in, &e->child_in);
	return r;
}

/* 0, 1, 2 are the job's, 3 its control socket; nothing else of PID 1 stays open. */
static int
arrange(const struct job *j, const struct ends *e)
{
	int out = j->start.pty ? e->child_in : e->child_out;
	int err = j->start.pty ? e->child_in : e->child_err;

	/* PID 1 holds 0 to 4, so that the ends are above them. Without stdin 0 stays /dev/null. */
	if (e->child_in >= 0 && dup2(e->child_in, 0) < 0)
		return errno;
	if (dup2(out, 1) < 0 || (err >= 0 && dup2(err, 2) < 0))
		return errno;
	if (dup3(e->child_control, CHILD_CONTROL_FD, O_CLOEXEC) < 0)
		return errno;
	return close_range(CHILD_CONTROL_FD + 1, ~0U, 0) < 0 ? errno : 0;
}

NORETURN static void
child(const struct job *j, const struct ends *e)
{
	int r = arrange(j, e);

	if (r != 0) {
		/* The control socket may not be in its place: PID 1 sees the end of it. */
		_exit(1);
	}
	if (j->start.kind == JOB_KIND_EXEC)
		reaper_main(j);
	file_main(j);
}

int
launch(struct job *j)
{
	auto_ends struct ends e = no_ends;
	int r = open_ends(j, &e);
	pid_t pid;

	if (r != 0)
		return r;
	r = oom_raise(&j->agent->oom);
	if (r != 0)
		return r;
	pid = fork();
	r = pid < 0 ? errno : 0;
	if (pid != 0)
		oom_restore(&j->agent->oom);
	if (r != 0)
		return r;
	if (pid == 0)
		child(j, &e);
	j->pid = pid;
	j->report.fd = take_fd(&e.control);
	j->out.w.fd = take_fd(&e.out);
	j->err.w.fd = take_fd(&e.err);
	j->in.fd = take_fd(&e.in);
	return 0;
}
