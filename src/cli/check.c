/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `demilune check CONFIG`: the configuration compiler that the daemon uses, run on a file. It is a process of its
 * own, so what it says is read as strictly as by the daemon.
 */
#include "cli/answer.h"
#include "cli/program.h"
#include "cli/safe.h"
#include "cli/verbs.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/ipc/datagram.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { CHECK_MS = 10000 };

NORETURN static void
child(const char *path, int input, int edge)
{
	const int fds[] = {input, edge};
	char *argv[] = {(char *)(uintptr_t)path, NULL}, *env[] = {NULL};
	struct err err = {0};

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || fd_arrange(fds, ARRAY_LEN(fds), 3, &err) < 0)
		_exit(126);
	(void)execve(path, argv, env);
	_exit(127);
}

static void
print_fault(const char *file, const struct msg_config_fault *m)
{
	auto_buf struct buf safe;

	buf_init(&safe, 4096);
	safe_add(&safe, view_str(m->text), 0);
	(void)printf(
		"%s:%u:%u: %.*s\n", file, m->line, m->column, (int)safe.n, (const char *)safe.p);
}

/* 1: nothing follows; 0; negative. */
static int
take_message(const char *file, const struct ipc_msg *m, struct err *err)
{
	struct msg_config_settings settings;
	struct msg_config_fault fault;
	struct msg_config_end end;

	if (m->type == MSG_CONFIG_FAULT && msg_config_fault_get(m->body, &fault, err) == 0) {
		print_fault(file, &fault);
		return 0;
	}
	if (m->type == MSG_CONFIG_SETTINGS && msg_config_settings_get(m->body, &settings, err) == 0)
		return 0;
	if (m->type == MSG_CONFIG_END && msg_config_end_get(m->body, &end, err) == 0)
		return 1;
	return err_set(err, -EBADMSG, "demilune-config says something that is not understood");
}

/* Until the end; faults are counted. */
static int
listen_to(int edge, const char *file, unsigned *ret_faults, struct err *err)
{
	uint64_t deadline = clock_mono_ms() + CHECK_MS;
	size_t room_n = ipc_room_bytes(EDGE_CONFIG_SUPERVISOR, ROOM_CONFIG);
	uint8_t *room auto_free = malloc(room_n);

	if (room == NULL)
		return err_set(err, -ENOMEM, "no memory");
	for (;;) {
		struct pollfd wait = {.fd = edge, .events = POLLIN};
		uint64_t now = clock_mono_ms();
		struct ipc_msg m = {0};
		int r;

		if (now >= deadline || poll(&wait, 1, (int)(deadline - now)) == 0)
			return err_set(err, -ETIMEDOUT, "demilune-config does not answer");
		r = ipc_read(edge, EDGE_CONFIG_SUPERVISOR, ROOM_CONFIG, room, room_n, &m, err);
		if (r == -EAGAIN)
			continue;
		if (r < 0)
			return err_context(err, "demilune-config");
		*ret_faults += m.type == MSG_CONFIG_FAULT;
		r = take_message(file, &m, err);
		ipc_msg_done(&m);
		if (r != 0)
			return r < 0 ? r : 0;
	}
}

int
verb_check(struct cli *cli, struct err *err)
{
	const char *file = cli->args.rest[0];
	char path[PROGRAM_PATH_MAX];
	int input auto_fd = -1, ours auto_fd = -1, theirs auto_fd = -1;
	unsigned faults = 0;
	struct stat st;
	int pair[2], status, r;
	pid_t pid;

	r = program_find(PROGRAM_CONFIG, path, err);
	if (r < 0)
		return r;
	input = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (input < 0 || fstat(input, &st) < 0)
		return err_errno(err, "%.120s", file);
	if (!S_ISREG(st.st_mode))
		return err_set(err, -EINVAL, "%.120s is not a file", file);
	r = ipc_pair(pair, err);
	if (r < 0)
		return r;
	ours = pair[0];
	theirs = pair[1];
	pid = fork();
	if (pid < 0)
		return err_errno(err, "cannot start demilune-config");
	if (pid == 0)
		child(path, input, theirs);
	(void)close(take_fd(&theirs));
	r = listen_to(ours, file, &faults, err);
	if (r < 0)
		(void)kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (r < 0)
		return r;
	if (faults == 0)
		(void)printf("%s: no faults\n", file);
	r = answer_done(err);
	return r != 0 ? r : faults != 0;
}
