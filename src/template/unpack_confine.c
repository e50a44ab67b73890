/* SPDX-License-Identifier: Apache-2.0 */
/* The jail of demilune-unpack: one directory to make things in, one archive to read. */
#include "template/unpack.h"

#include "lib/jail/jail.h"
#include "unpack-syscalls.h"

int
unpack_confine(int top, struct err *err)
{
	/* No JAIL_READ: nothing that was written is ever read again. */
	const struct jail_path paths[] = {{top, JAIL_WRITE | JAIL_DIRS | JAIL_LINKS}};
	const struct jail_rlimit rlimits[] = {{RLIMIT_NOFILE, 16}};
	const struct jail jail = {
		.uid = UNPACK_UID,
		.gid = UNPACK_UID,
		.rlimits = rlimits,
		.rlimits_n = ARRAY_LEN(rlimits),
		.paths = paths,
		.paths_n = ARRAY_LEN(paths),
		.filter = unpack_syscalls,
		.filter_n = ARRAY_LEN(unpack_syscalls),
	};
	int r = jail_enter(&jail, err);

	return r < 0 ? r : jail_prove(&jail, err);
}
