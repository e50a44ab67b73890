/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The jail of the gateway, which parses all that hostile programs and servers say: whoever takes it over has connected sockets that the
 * dialer made for rules of one policy, and cannot make another one. The uid is the one it was started with (proto/fds.def), one per sandbox.
 */
#include "confine.h"

#include "gateway-syscalls.h"
#include "lib/jail/jail.h"
#include "limits.h"

#include <unistd.h>

int
confine(struct err *err)
{
	const struct jail_rlimit rlimits[] = {{RLIMIT_NOFILE, LIMIT_DESCRIPTORS}};
	const struct jail jail = {
		.uid = getuid(),
		.gid = getgid(),
		.rlimits = rlimits,
		.rlimits_n = ARRAY_LEN(rlimits),
		.filter = gateway_syscalls,
		.filter_n = ARRAY_LEN(gateway_syscalls),
	};
	int r = jail_enter(&jail, err);

	return r < 0 ? r : jail_prove(&jail, err);
}
