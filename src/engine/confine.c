/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The jail of the engine: files of the state directory, written only below engine/; descriptors that it was
 * given; no socket but a pair, no process. The uid is the one it was started with (proto/fds.def).
 */
#include "engine/confine.h"

#include "engine-syscalls.h"
#include "lib/jail/jail.h"

#include <unistd.h>

int
confine(int state_fd, int engine_fd, struct err *err)
{
	const struct jail_path paths[] = {
		{.fd = state_fd, .access = JAIL_READ},
		{.fd = engine_fd, .access = JAIL_READ | JAIL_WRITE | JAIL_DIRS},
	};
	const struct jail jail = {
		.uid = getuid(),
		.gid = getgid(),
		.paths = paths,
		.paths_n = ARRAY_LEN(paths),
		.filter = engine_syscalls,
		.filter_n = ARRAY_LEN(engine_syscalls),
	};
	int r = jail_enter(&jail, err);

	return r < 0 ? r : jail_prove(&jail, err);
}
