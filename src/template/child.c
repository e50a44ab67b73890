/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that build a template: mmdebstrap, apt-get, mkfs.erofs, commands of `finish`, demilune-unpack.
 *
 *   this process ── clone3(pid, mount[, net]) ──► init ── fork ──► program
 *
 * init dies with this process (PR_SET_PDEATHSIG), and all others of a pid namespace die
 * with its init. init is a copy of this process and does nothing but wait.
 */
#include "template/child.h"
#include "template/limits.h"
#include "template/progress.h"

#include "lib/base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { EXIT_SETUP = 120 };

/* Ends the process with a sentence; only in the children. */
NORETURN static void
child_fail(const char *what)
{
	dprintf(STDERR_FILENO, "E: %s: %s\n", what, strerrordesc_np(errno));
	_exit(EXIT_SETUP);
}

NORETURN static void
program_run(const struct child *c)
{
	struct err err;

	if (c->root != NULL) {
		if (chroot(c->root) < 0 || chdir("/") < 0)
			child_fail("chroot");
	} else if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0) {
		child_fail("mount /proc");
	}
	if (c->n_fds != 0 && fd_arrange(c->fds, c->n_fds, CHILD_FIRST_FD, &err) < 0)
		child_fail("descriptors");
	(void)execve(
		c->argv[0], (char *const *)(uintptr_t)c->argv, (char *const *)(uintptr_t)c->envp);
	child_fail(c->argv[0]);
}

/* PID 1 of the namespace. `parent` is readable (hung up) once the parent is gone. */
NORETURN static void
init_run(const struct child *c, int parent, int out, int errors)
{
	struct pollfd gone = {.fd = parent};
	int null, status;
	pid_t pid, got;

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		child_fail("prctl");
	if (poll(&gone, 1, 0) != 0) /* died before prctl could tell */
		_exit(EXIT_SETUP);
	null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 ||
		dup2(errors, STDERR_FILENO) < 0)
		child_fail("dup2");
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		child_fail("private mounts");
	umask(022);
	pid = fork();
	if (pid < 0)
		child_fail("fork");
	if (pid == 0)
		program_run(c);
	do
		got = wait(&status);
	while (got != pid && (got > 0 || errno == EINTR));
	if (got != pid)
		child_fail("wait");
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_SETUP + 1);
}

/* The last `max` bytes of what a program said. */
static void
tail_add(struct buf *tail, struct view v)
{
	size_t max = tail->max / 2;

	if (tail->n + v.n > tail->max)
		buf_drop(tail, tail->n > max ? tail->n - max : 0);
	if (v.n > max)
		v = view_skip(v, v.n - max);
	buf_add_view(tail, v);
}

static void
line_seen(struct view line)
{
	if (view_starts(line, "I: "))
		progress("  %.*s", VIEW_ARGS(view_skip(line, 3)));
}

/* Reads until all writers are gone. */
static int
output_follow(int fd, struct buf *tail, struct err *err)
{
	struct buf line auto_buf = {0};
	uint8_t chunk[4096];

	buf_init(&line, 2 * sizeof(chunk));
	for (;;) {
		ssize_t n = read(fd, chunk, sizeof(chunk));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_errno(err, "read");
		if (n == 0)
			return 0;
		tail_add(tail, view_of(chunk, (size_t)n));
		for (ssize_t i = 0; i < n; i++) {
			if (chunk[i] != '\n' && line.n < sizeof(chunk)) {
				buf_add_byte(&line, chunk[i]);
			} else {
				line_seen(buf_view(&line));
				buf_clear(&line);
			}
		}
	}
}

static int
output_collect(int fd, struct buf *out, struct err *err)
{
	for (;;) {
		uint8_t *room = buf_room(out, 4096);
		ssize_t n;

		if (room == NULL)
			return err_set(err, -EFBIG, "says more than %zu bytes", out->max);
		n = read(fd, room, 4096);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_errno(err, "read");
		if (n == 0)
			return 0;
		buf_grew(out, (size_t)n);
	}
}

static int
init_wait(pid_t pid, const char *what, struct err *err)
{
	int status;

	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return err_errno(err, "waitpid");
	}
	if (WIFSIGNALED(status))
		return err_set(err, -EIO, "%s was ended by signal %d", what, WTERMSIG(status));
	if (WEXITSTATUS(status) != 0)
		return err_set(err, -EIO, "%s failed with status %d", what, WEXITSTATUS(status));
	return 0;
}

int
child_run(const struct child *c, struct err *err)
{
	struct clone_args args = {
		.flags = CLONE_NEWPID | CLONE_NEWNS | (c->network ? 0 : CLONE_NEWNET),
		.exit_signal = SIGCHLD,
	};
	struct buf tail auto_buf = {0};
	int out[2], alive[2], r, ended;
	long pid;

	buf_init(&tail, LIMIT_FAILURE_BYTES);
	if (pipe2(out, O_CLOEXEC) < 0)
		return err_errno(err, "pipe");
	int out_r auto_fd = out[0], out_w auto_fd = out[1];
	if (pipe2(alive, O_CLOEXEC) < 0)
		return err_errno(err, "pipe");
	int alive_r auto_fd = alive[0], alive_w auto_fd = alive[1];

	(void)fflush(NULL);
	pid = syscall(SYS_clone3, &args, sizeof(args));
	if (pid < 0)
		return err_errno(err, "clone3 for %s (root is needed)", c->argv[0]);
	if (pid == 0) {
		(void)close(alive_w);
		init_run(c, alive_r, out_w,
			c->out != NULL && !c->errors_too ? STDERR_FILENO : out_w);
	}
	(void)close(take_fd(&out_w));
	r = c->out != NULL ? output_collect(out_r, c->out, err) : output_follow(out_r, &tail, err);
	(void)close(take_fd(&out_r)); /* a program that still writes gets SIGPIPE */
	ended = init_wait((pid_t)pid, c->argv[0], r < 0 ? &(struct err){0} : err);
	if (ended < 0 && tail.n != 0)
		(void)fprintf(stderr, "%.*s\n", VIEW_ARGS(buf_view(&tail)));
	return r < 0 ? r : ended;
}
