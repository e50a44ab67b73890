/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `demilune check CONFIG`, `demilune operation check FILE|DIR` and all that reads a policy from a file: the configuration compiler that the daemon
 * uses, run on a file or directory. It is a process of its own, so what it says is read as strictly as by the daemon.
 */
#include "cli/check.h"

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

#define OPERATIONS "operations"
#define POLICIES   "policies"

enum { CHECK_MS = 10000 };

/* What is checked, and what was found. */
struct check {
	const char *file;     /* as it was named */
	const char *argument; /* of the compiler; NULL: none */
	bool directory;
	bool quiet; /* faults are counted only */
	unsigned faults;
	uint32_t operations; /* compiled */
	int catalogue;       /* owned: the same in one memory file; -1: none came */
	int policies;        /* owned, as catalogue */
	FILE *out;           /* where faults are told; NULL: standard output */
	struct settings settings;
};

/* The compiler has a descriptor alone: the name of a policy is that of its file. NULL: a directory, or something else. */
static const char *
policy_file(const struct check *c)
{
	const char *slash = strrchr(c->file, '/');

	if (c->directory || c->argument == NULL || strcmp(c->argument, POLICIES) != 0)
		return NULL;
	return slash != NULL ? slash + 1 : c->file;
}

NORETURN static void
child(const struct check *c, const char *path, int input, int edge)
{
	const int fds[] = {input, edge};
	char *argv[] = {(char *)(uintptr_t)path, (char *)(uintptr_t)c->argument,
		(char *)(uintptr_t)policy_file(c), NULL};
	char *env[] = {NULL};
	struct err err = {0};

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || fd_arrange(fds, ARRAY_LEN(fds), 3, &err) < 0)
		_exit(126);
	(void)execve(path, argv, env);
	_exit(127);
}

static void
print_fault(const struct check *c, const struct msg_config_fault *m)
{
	bool inside = c->directory && m->file[0] != '\0';
	auto_buf struct buf safe;

	buf_init(&safe, 8192);
	if (inside) {
		buf_add_byte(&safe, '/');
		safe_add(&safe, view_str(m->file), 0);
	}
	buf_addf(&safe, ":%u:%u: ", m->line, m->column);
	safe_add(&safe, view_str(m->text), 0);
	(void)fprintf(c->out == NULL ? stdout : c->out, "%s%.*s\n", c->file, (int)safe.n,
		(const char *)safe.p);
}

/* 1: nothing follows; 0; negative. */
static int
take_message(struct check *c, struct ipc_msg *m, struct err *err)
{
	struct msg_config_settings settings;
	struct msg_config_catalogue catalogue;
	struct msg_config_policies policies;
	struct msg_config_policy policy;
	struct msg_config_fault fault;
	struct msg_config_end end;

	if (m->type == MSG_CONFIG_FAULT && msg_config_fault_get(m->body, &fault, err) == 0) {
		if (!c->quiet)
			print_fault(c, &fault);
		c->faults++;
		return 0;
	}
	if (m->type == MSG_CONFIG_SETTINGS &&
		msg_config_settings_get(m->body, &settings, err) == 0) {
		c->settings = settings.settings;
		return 0;
	}
	if (m->type == MSG_CONFIG_CATALOGUE &&
		msg_config_catalogue_get(m->body, &catalogue, err) == 0) {
		c->operations = catalogue.operations;
		if (c->catalogue < 0)
			c->catalogue = ipc_msg_take(m, 0);
		return 0;
	}
	if (m->type == MSG_CONFIG_POLICIES && c->policies < 0 &&
		msg_config_policies_get(m->body, &policies, err) == 0) {
		c->policies = ipc_msg_take(m, 0);
		return 0;
	}
	if (m->type == MSG_CONFIG_POLICY && msg_config_policy_get(m->body, &policy, err) == 0)
		return 0; /* the same again, one by one, for others */
	if (m->type == MSG_CONFIG_END && msg_config_end_get(m->body, &end, err) == 0) {
		if (end.faults > c->faults && !c->quiet)
			(void)fprintf(c->out == NULL ? stdout : c->out, "%s: %u more faults\n",
				c->file, end.faults - c->faults);
		c->faults = end.faults;
		return 1;
	}
	return err_set(err, -EBADMSG, "demilune-config says something that is not understood");
}

/* Until the end; faults are counted. */
static int
listen_to(int edge, struct check *c, struct err *err)
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
		r = take_message(c, &m, err);
		ipc_msg_done(&m);
		if (r != 0)
			return r < 0 ? r : 0;
	}
}

static int
open_input(struct check *c, int *ret, struct err *err)
{
	int input auto_fd = open(c->file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;

	if (input < 0 || fstat(input, &st) < 0)
		return err_errno(err, "%.120s", c->file);
	c->directory = S_ISDIR(st.st_mode);
	if (!S_ISREG(st.st_mode) && !c->quiet && (c->argument == NULL || !c->directory))
		return err_set(err, -EINVAL, "%.120s is not a file", c->file);
	*ret = take_fd(&input);
	return 0;
}

static int
check(struct check *c, struct err *err)
{
	char path[PROGRAM_PATH_MAX];
	int input auto_fd = -1, ours auto_fd = -1, theirs auto_fd = -1;
	int pair[2], status, r;
	pid_t pid;

	r = program_find(PROGRAM_CONFIG, path, err);
	if (r == 0)
		r = open_input(c, &input, err);
	if (r == 0)
		r = ipc_pair(pair, err);
	if (r < 0)
		return r;
	ours = pair[0];
	theirs = pair[1];
	pid = fork();
	if (pid < 0)
		return err_errno(err, "cannot start demilune-config");
	if (pid == 0)
		child(c, path, input, theirs);
	(void)close(take_fd(&theirs));
	r = listen_to(ours, c, err);
	if (r < 0)
		(void)kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return r;
}

int
check_settings(const char *file, struct settings *ret, struct err *err)
{
	struct check c = {.file = file == NULL ? "/dev/null" : file,
		.quiet = true,
		.catalogue = -1,
		.policies = -1};
	int r = check(&c, err);

	if (r == 0 && c.faults != 0)
		r = err_set(err, -EINVAL, "%.120s has faults; demilune check tells them", c.file);
	if (r == 0)
		*ret = c.settings;
	return r;
}

int
check_operations(const char *dir, struct catalogue *ret, unsigned *ret_faults, struct err *err)
{
	struct check c = {.file = dir,
		.argument = OPERATIONS,
		.quiet = true,
		.catalogue = -1,
		.policies = -1};
	int r = check(&c, err);
	int fd auto_fd = c.catalogue;

	*ret_faults = c.faults;
	if (r < 0 || c.faults > 0)
		return r;
	if (fd < 0)
		return err_set(err, -EBADMSG, "demilune-config compiled no catalogue");
	return catalogue_read(fd, ret, err);
}

int
check_policies(
	const char *file, FILE *out, struct policies *ret, unsigned *ret_faults, struct err *err)
{
	struct check c = {.file = file,
		.argument = POLICIES,
		.catalogue = -1,
		.policies = -1,
		.out = out,
		.quiet = out == NULL};
	int r = check(&c, err);
	int fd auto_fd = c.policies;

	if (r < 0)
		return r;
	*ret_faults = c.faults;
	if (c.faults > 0)
		return 0;
	if (fd < 0)
		return err_set(err, -EBADMSG, "demilune-config compiled no policy");
	r = policies_load(fd, ret, err);
	return r < 0 ? err_context(err, "what demilune-config compiled") : 0;
}

int
verb_check(struct cli *cli, struct err *err)
{
	struct check c = {.file = cli->args.rest[0], .catalogue = -1, .policies = -1};
	int r = check(&c, err);

	if (r < 0)
		return r;
	if (c.faults == 0)
		(void)printf("%s: no faults\n", c.file);
	r = answer_done(err);
	return r != 0 ? r : c.faults != 0;
}

int
verb_operation_check(struct cli *cli, struct err *err)
{
	struct check c = {
		.file = cli->args.rest[0], .argument = OPERATIONS, .catalogue = -1, .policies = -1};
	int r = check(&c, err);

	fd_cleanup(&c.catalogue); /* only its number of operations is told */
	if (r < 0)
		return r;
	if (c.faults == 0)
		(void)printf("%s: %u operation%s, no faults\n", c.file, c.operations,
			c.operations == 1 ? "" : "s");
	r = answer_done(err);
	return r != 0 ? r : c.faults != 0;
}
