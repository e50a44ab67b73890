/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The backend `none`: a process that is not confined, for runs under sanitizers, which need
 * /proc, ptrace and calls that no filter allows. Chosen by the build (-Djail=none), never
 * at run time; `demilune doctor` and the start-up log show jail_backend().
 */
#include "lib/jail/jail.h"

const char *
jail_backend(void)
{
	return "none";
}

int
jail_enter(const struct jail *j UNUSED, struct err *err UNUSED)
{
	return 0;
}

int
jail_prove(const struct jail *j UNUSED, struct err *err UNUSED)
{
	return 0;
}

int
jail_rlimits_set(const struct jail_rlimit *r UNUSED, size_t n UNUSED, struct err *err UNUSED)
{
	return 0;
}

int
jail_caps_drop_to(uint64_t mask UNUSED, struct err *err UNUSED)
{
	return 0;
}

int
jail_ids_drop(uid_t uid UNUSED, gid_t gid UNUSED, struct err *err UNUSED)
{
	return 0;
}

int
jail_privs_lock(struct err *err UNUSED)
{
	return 0;
}

int
jail_landlock_all(const struct jail_path *paths UNUSED, size_t n UNUSED,
	const uint16_t *ports UNUSED, size_t ports_n UNUSED, struct err *err UNUSED)
{
	return 0;
}

int
jail_filter_load(const struct sock_filter *f UNUSED, size_t n UNUSED, struct err *err UNUSED)
{
	return 0;
}

int
jail_prove_drop(const struct jail *j UNUSED, struct err *err UNUSED)
{
	return 0;
}
