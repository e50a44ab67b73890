/* SPDX-License-Identifier: Apache-2.0 */
/* The jail of the configuration compiler: memory and descriptors 3 and 4, nothing else. */
#include "config/confine.h"

#include "config-syscalls.h"
#include "lib/jail/jail.h"

#include <unistd.h>

/*
 * `demilune check` is run by anybody: who is not root cannot change who he is, and has nothing to
 * drop. The rest holds for both.
 */
static int
confine_as_caller(struct err *err)
{
	int r = jail_privs_lock(err);

	if (r == 0)
		r = jail_landlock_all(NULL, 0, NULL, 0, err);
	if (r == 0)
		r = jail_filter_load(config_syscalls, ARRAY_LEN(config_syscalls), err);
	return r;
}

int
confine(struct err *err)
{
	const struct jail jail = {
		.uid = CONFIG_UID,
		.gid = CONFIG_UID,
		.filter = config_syscalls,
		.filter_n = ARRAY_LEN(config_syscalls),
	};
	int r;

	if (geteuid() != 0)
		return confine_as_caller(err);
	r = jail_enter(&jail, err);
	return r < 0 ? r : jail_prove(&jail, err);
}
