/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The jail of the relay, whose channel is hostile: no file by name, no socket made, no process, no other uid.
 * The uid is the one it was started with (proto/fds.def).
 */
#include "confine.h"

#include "lib/jail/jail.h"
#include "relay-syscalls.h"

#include <unistd.h>

int
confine(struct err *err)
{
	const struct jail jail = {
		.uid = getuid(),
		.gid = getgid(),
		.filter = relay_syscalls,
		.filter_n = ARRAY_LEN(relay_syscalls),
	};
	int r = jail_enter(&jail, err);

	return r < 0 ? r : jail_prove(&jail, err);
}
