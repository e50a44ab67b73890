/* SPDX-License-Identifier: Apache-2.0 */
/* The jail of the api: descriptors that it has or is given, and accepted connections. */
#include "confine.h"

#include "api-syscalls.h"
#include "lib/jail/jail.h"
#include "limits.h"

#include <unistd.h>

enum { DESCRIPTORS = 4 * LIMIT_CONNECTIONS };

int
confine(struct err *err)
{
	const struct jail_rlimit rlimits[] = {
		{RLIMIT_NOFILE, DESCRIPTORS}, {RLIMIT_AS, LIMIT_MEMORY_BYTES}};
	const struct jail jail = {
		.uid = getuid(),
		.gid = getgid(),
		.rlimits = rlimits,
		.rlimits_n = ARRAY_LEN(rlimits),
		.filter = api_syscalls,
		.filter_n = ARRAY_LEN(api_syscalls),
	};

	if (jail_enter(&jail, err) < 0)
		return err->code;
	return jail_prove(&jail, err);
}
