/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration, from the compiler's mouth; part of start.h. The compiler is a short-lived confined process that
 * reads the file by descriptor; from it only typed messages are believed, and a range check of ours.
 */
#include "supervisor/start.h"

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "supervisor/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

struct compiling {
	const char *file;
	struct settings settings;
	bool got, ended;
	uint32_t faults;
};

static int
on_message(struct compiling *c, const struct ipc_msg *in, struct err *err)
{
	struct msg_config_settings settings;
	struct msg_config_fault fault;
	struct msg_config_end end;
	int r;

	if (in->type == MSG_CONFIG_FAULT) {
		r = msg_config_fault_get(in->body, &fault, err);
		if (r == 0)
			log_line("%s:%u:%u: %s", c->file, fault.line, fault.column, fault.text);
		return r;
	}
	if (in->type == MSG_CONFIG_SETTINGS) {
		if (c->got)
			return err_set(
				err, -EPROTO, "the configuration compiler told the settings twice");
		r = msg_config_settings_get(in->body, &settings, err);
		if (r == 0) {
			c->settings = settings.settings;
			c->got = true;
		}
		return r;
	}
	r = msg_config_end_get(in->body, &end, err);
	if (r == 0) {
		c->faults = end.faults;
		c->ended = true;
	}
	return r;
}

static int
listen_to(int fd, struct compiling *c, struct err *err)
{
	size_t n = ipc_room_bytes(EDGE_CONFIG_SUPERVISOR, ROOM_CONFIG);
	auto_free uint8_t *room = malloc(n);
	uint64_t until = clock_mono_ms() + LIMIT_CONFIG_MS;

	if (room == NULL)
		return err_set(err, -ENOMEM, "no memory");
	while (!c->ended) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		uint64_t now = clock_mono_ms();
		struct ipc_msg in;
		int r;

		if (now >= until)
			return err_set(err, -ETIMEDOUT,
				"the configuration compiler does not come to an end");
		(void)poll(&p, 1, (int)(until - now)); /* an interruption is another turn */
		r = ipc_read(fd, EDGE_CONFIG_SUPERVISOR, ROOM_CONFIG, room, n, &in, err);
		if (r == -EAGAIN)
			continue;
		if (r == -EPIPE)
			return err_set(
				err, r, "the configuration compiler ended before it was done");
		if (r == 0) {
			r = on_message(c, &in, err);
			ipc_msg_done(&in);
		}
		if (r < 0)
			return r;
	}
	return 0;
}

/* The compiler has checked all of it; these are the ones that could hurt the host. */
static int
settings_check(const struct settings *s, struct err *err)
{
	const uint32_t uids[] = {
		s->engine_uid, s->api_uid, s->relay_uid, s->broker_uid, s->dialer_uid};
	uint64_t end = (uint64_t)s->sandbox_uid_base +
		       (uint64_t)s->sandbox_uid_slots * LIMIT_UIDS_PER_SANDBOX;

	for (size_t i = 0; i < ARRAY_LEN(uids); i++) {
		if (uids[i] == 0 || uids[i] == UINT32_MAX ||
			(uids[i] >= s->sandbox_uid_base && uids[i] < end))
			return err_set(err, -EINVAL,
				"uid %u is root, nobody or one of the sandboxes'", uids[i]);
		for (size_t k = 0; k < i; k++)
			if (uids[k] == uids[i])
				return err_set(err, -EINVAL,
					"two processes of the daemon have the uid %u", uids[i]);
	}
	if (s->state_dir[0] != '/' || s->run_dir[0] != '/')
		return err_set(err, -EINVAL, "state_dir and run_dir are absolute paths");
	if (s->sandbox_uid_slots < s->max_sandboxes)
		return err_set(err, -EINVAL, "%u uid ranges are too few for %u sandboxes",
			s->sandbox_uid_slots, s->max_sandboxes);
	return 0;
}

int
start_config(struct supervisor *sv, const char *file, struct err *err)
{
	struct compiling c = {.file = file == NULL ? "defaults" : file};
	auto_fd int input = open(
		file == NULL ? "/dev/null" : file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	auto_fd int mine = -1, theirs = -1;
	int pair[2], pidfd = -1, r;
	pid_t pid;

	if (input < 0)
		return err_errno(err, "the configuration file %s", c.file);
	r = ipc_pair(pair, err);
	if (r < 0)
		return r;
	mine = pair[0];
	theirs = pair[1];
	const int fds[] = {[FD_CONFIG_INPUT - 3] = input, [FD_CONFIG_SUPERVISOR - 3] = theirs};
	const struct program_start start = {
		.path = sv->programs.path[PROGRAM_CONFIG], .fds = fds, .nfds = ARRAY_LEN(fds)};

	pid = program_start(&start, &pidfd, err);
	if (pid < 0)
		return (int)pid;
	(void)close(take_fd(&theirs)); /* so that its end is seen */
	r = listen_to(mine, &c, err);
	program_end(&pidfd);
	if (r < 0)
		return r;
	if (c.faults != 0 || !c.got)
		return err_set(
			err, -EINVAL, "the configuration %s has %u faults", c.file, c.faults);
	r = settings_check(&c.settings, err);
	if (r == 0)
		sv->settings = c.settings;
	return r;
}
