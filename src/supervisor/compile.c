/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration compiler's mouth; see compile.h. */
#include "supervisor/compile.h"

#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "supervisor/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>

static const struct {
	const char *argument;
	enum msg_type answer;
} kinds[] = {
	[COMPILE_SETTINGS] = {NULL, MSG_CONFIG_SETTINGS},
	[COMPILE_OPERATIONS] = {"operations", MSG_CONFIG_CATALOGUE},
	[COMPILE_POLICIES] = {"policies", MSG_CONFIG_POLICIES},
};

void
compile_init(struct compile *c)
{
	*c = (struct compile){
		.fd = -1, .pidfd = -1, .operations = -1, .origins = -1, .policies = REVISIONS_NONE};
}

int
compile_begin(struct compile *c, const struct programs *programs, const char *name,
	enum compile_kind kind, int input, struct err *err)
{
	auto_fd int theirs = -1;
	int pair[2], r;

	compile_init(c);
	c->name = name;
	c->kind = kind;
	c->until_ms = clock_mono_ms() + LIMIT_CONFIG_MS;
	c->room_bytes = ipc_room_bytes(EDGE_CONFIG_SUPERVISOR, ROOM_CONFIG);
	c->room = malloc(c->room_bytes);
	if (c->room == NULL)
		return err_set(err, -ENOMEM, "no memory");
	r = ipc_pair(pair, err);
	if (r < 0)
		return r;
	c->fd = pair[0];
	theirs = pair[1];
	const int fds[] = {[FD_CONFIG_INPUT - 3] = input, [FD_CONFIG_SUPERVISOR - 3] = theirs};
	const struct program_start start = {.path = programs->path[PROGRAM_CONFIG],
		.argument = kinds[kind].argument,
		.fds = fds,
		.nfds = ARRAY_LEN(fds)};
	pid_t pid = program_start(&start, &c->pidfd, err);

	return pid < 0 ? (int)pid : 0;
}

/* A memory file that nobody can change any more, of at most `max` bytes. What is in it, its readers look at. */
static int
sealed_check(int fd, const char *what, uint64_t max, struct err *err)
{
	const int seals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
	int have = fcntl(fd, F_GET_SEALS);
	struct stat st;

	if (have < 0 || (have & seals) != seals)
		return err_set(err, -EPROTO, "%s are no sealed memory file", what);
	if (fstat(fd, &st) < 0)
		return err_errno(err, "%s", what);
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size > max)
		return err_set(err, -EPROTO, "%s have %lld bytes, more than %llu", what,
			(long long)st.st_size, (unsigned long long)max);
	return 0;
}

static int
on_catalogue(struct compile *c, struct ipc_msg *in, struct err *err)
{
	int r = msg_config_catalogue_get(in->body, &c->catalogue, err);

	if (r == 0)
		r = sealed_check(in->fds[0], "the compiled operations", LIMIT_CATALOGUE_BYTES, err);
	if (r == 0)
		r = sealed_check(in->fds[1], "the compiled origins", LIMIT_ORIGINS_BYTES, err);
	if (r < 0)
		return r;
	c->operations = ipc_msg_take(in, 0);
	c->origins = ipc_msg_take(in, 1);
	return 0;
}

static int
on_policies(struct compile *c, struct ipc_msg *in, struct err *err)
{
	struct msg_config_policies m;
	int r = msg_config_policies_get(in->body, &m, err);

	if (r == 0 && m.policies > LIMIT_POLICIES)
		r = err_set(
			err, -EPROTO, "more than %d policies were compiled", (int)LIMIT_POLICIES);
	if (r == 0)
		r = sealed_check(in->fds[0], "the compiled policies", LIMIT_POLICIES_BYTES, err);
	if (r < 0)
		return r;
	c->npolicies = m.policies;
	c->policies.all = ipc_msg_take(in, 0);
	return 0;
}

static int
on_policy(struct compile *c, struct ipc_msg *in, struct err *err)
{
	struct msg_config_policy m;
	struct revision *made;
	int r = msg_config_policy_get(in->body, &m, err);

	if (r == 0)
		r = sealed_check(in->fds[0], "the compiled rules", LIMIT_POLICY_BYTES, err);
	if (r < 0)
		return r;
	made = revision_new(&m, ipc_msg_take(in, 0), err);
	if (made == NULL)
		return err->code;
	r = revisions_add(&c->policies, made, err);
	revision_unref(&made);
	return r;
}

static int
on_settings(struct compile *c, struct ipc_msg *in, struct err *err)
{
	struct msg_config_settings m;
	int r = msg_config_settings_get(in->body, &m, err);

	if (r == 0)
		c->settings = m.settings;
	return r;
}

/* Its first message that is no fault. */
static int
on_answer(struct compile *c, struct ipc_msg *in, struct err *err)
{
	c->told = true;
	switch (c->kind) {
	case COMPILE_SETTINGS:
		return on_settings(c, in, err);
	case COMPILE_OPERATIONS:
		return on_catalogue(c, in, err);
	case COMPILE_POLICIES:
		return on_policies(c, in, err);
	}
	return -EINVAL;
}

static void
fault_log(const struct compile *c, const struct msg_config_fault *f)
{
	bool slash = c->kind != COMPILE_SETTINGS && f->file[0] != '\0';

	log_line("%s%s%s:%u:%u: %s", c->name, slash ? "/" : "", slash ? f->file : "", f->line,
		f->column, f->text);
}

/* 1: it was all without a fault. */
static int
on_end(struct compile *c, const struct ipc_msg *in, struct err *err)
{
	struct msg_config_end end;
	int r = msg_config_end_get(in->body, &end, err);

	if (r < 0)
		return r;
	c->faults = end.faults;
	if (end.faults != 0 || !c->told)
		return err_set(err, -EINVAL, "the configuration %s has %u fault%s", c->name,
			end.faults, end.faults == 1 ? "" : "s");
	if (c->policies.n != c->npolicies)
		return err_set(err, -EPROTO, "%zu of %u policies were compiled", c->policies.n,
			c->npolicies);
	return 1;
}

static int
on_message(struct compile *c, struct ipc_msg *in, struct err *err)
{
	struct msg_config_fault fault;
	int r;

	if (in->type == MSG_CONFIG_FAULT) {
		r = msg_config_fault_get(in->body, &fault, err);
		if (r == 0)
			fault_log(c, &fault);
		return r;
	}
	if (in->type == MSG_CONFIG_END)
		return on_end(c, in, err);
	if (in->type == kinds[c->kind].answer && !c->told)
		return on_answer(c, in, err);
	if (in->type == MSG_CONFIG_POLICY && c->policies.n < c->npolicies)
		return on_policy(c, in, err);
	return err_set(err, -EPROTO, "the configuration compiler says %s out of turn",
		msg_info[in->type].name);
}

int
compile_step(struct compile *c, struct err *err)
{
	for (;;) {
		struct ipc_msg in;
		int r = ipc_read(c->fd, EDGE_CONFIG_SUPERVISOR, ROOM_CONFIG, c->room, c->room_bytes,
			&in, err);

		if (r == -EAGAIN)
			return 0;
		if (r == -EPIPE)
			return err_set(
				err, r, "the configuration compiler ended before it was done");
		if (r == 0) {
			r = on_message(c, &in, err);
			ipc_msg_done(&in);
		}
		if (r != 0)
			return r;
	}
}

int
compile_wait(struct compile *c, struct err *err)
{
	int r;

	while ((r = compile_step(c, err)) == 0) {
		struct pollfd p = {.fd = c->fd, .events = POLLIN};
		uint64_t now = clock_mono_ms();

		if (now >= c->until_ms)
			return err_set(err, -ETIMEDOUT,
				"the configuration compiler does not come to an end");
		(void)poll(&p, 1, (int)(c->until_ms - now)); /* an interruption is another turn */
	}
	return r < 0 ? r : 0;
}

void
compile_end(struct compile *c)
{
	program_end(&c->pidfd);
	fd_close_kept(&c->fd);
	fd_close_kept(&c->operations);
	fd_close_kept(&c->origins);
	revisions_done(&c->policies);
	free(take_ptr(c->room));
}
