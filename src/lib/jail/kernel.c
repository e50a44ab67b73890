/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entering the jail: the backend of real processes. jail.h has the contract. Reads no
 * input. Order matters and is argued at jail_enter.
 *
 * capset and prctl are called raw instead of through libcap-ng: three calls, no state
 * shared with a library, and nothing but this file to read for whoever doubts it.
 */
#include "lib/jail/jail.h"

#include "lib/jail/caps.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

const char *
jail_backend(void)
{
	return "kernel";
}

int
jail_rlimits_set(const struct jail_rlimit *r, size_t n, struct err *err)
{
	const struct rlimit one = {1, 1};
	struct rlimit core;

	/*
	 * One byte, not none: a core_pattern that is a pipe starts its program on the host for a limit of 0, and
	 * for no dump at all at 1 (core(5); fs/coredump.c since Linux 2.6.32). Who was started with a
	 * hard limit of 0 gets the 1 where it may raise it; the supervisor starts as one who may, or refuses to start.
	 */
	if (getrlimit(RLIMIT_CORE, &core) != 0)
		return err_errno(err, "cannot read the limit of core dumps");
	if (core.rlim_max == 0 && setrlimit(RLIMIT_CORE, &one) == 0)
		core = one;
	core.rlim_cur = core.rlim_max = core.rlim_max > 1 ? 1 : core.rlim_max;
	if (setrlimit(RLIMIT_CORE, &core) != 0)
		return err_errno(err, "cannot forbid core dumps");
	for (size_t i = 0; i < n; i++) {
		struct rlimit l = {.rlim_cur = r[i].value, .rlim_max = r[i].value};

		if (setrlimit((__rlimit_resource_t)r[i].resource, &l) != 0)
			return err_errno(err, "cannot set resource limit %d to %llu", r[i].resource,
				(unsigned long long)r[i].value);
	}
	return 0;
}

/* Drops from the bounding set what is in it and not in mask; needs CAP_SETPCAP only then. */
static int
bounding_drop_to(uint64_t mask, struct err *err)
{
	for (int cap = 0; cap < CAPS_END; cap++) {
		int present = prctl(PR_CAPBSET_READ, cap, 0, 0, 0);

		if (present < 0)
			return cap == 0 ? err_errno(err, "cannot read the bounding set") : 0;
		if (present == 1 && (mask >> cap & 1) == 0 &&
			prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) != 0)
			return err_errno(
				err, "cannot drop capability %d from the bounding set", cap);
	}
	return 0;
}

static int
caps_set(uint64_t mask, struct err *err)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {
		{.effective = (uint32_t)mask, .permitted = (uint32_t)mask},
		{.effective = (uint32_t)(mask >> 32), .permitted = (uint32_t)(mask >> 32)},
	};

	if (syscall(SYS_capset, &head, data) != 0)
		return err_errno(err, "cannot reduce the capabilities");
	return 0;
}

int
jail_caps_drop_to(uint64_t mask, struct err *err)
{
	int rc;

	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0)
		return err_errno(err, "cannot clear the ambient capabilities");
	/* Bounding first: it needs CAP_SETPCAP, which the second step may take away. */
	if ((rc = bounding_drop_to(mask, err)) != 0)
		return rc;
	return caps_set(mask, err);
}

int
jail_ids_drop(uid_t uid, gid_t gid, struct err *err)
{
	int rc;

	if (uid == 0 || gid == 0 || uid == (uid_t)-1 || gid == (gid_t)-1)
		return err_set(
			err, -EINVAL, "uid and gid of a confined process are neither 0 nor -1");
	if (prctl(PR_SET_SECUREBITS, SECUREBITS, 0, 0, 0) != 0)
		return err_errno(err, "cannot lock the securebits");
	if ((rc = bounding_drop_to(0, err)) != 0)
		return rc;
	if (setgroups(0, NULL) != 0)
		return err_errno(err, "cannot drop the supplementary groups");
	if (setresgid(gid, gid, gid) != 0)
		return err_errno(err, "cannot become gid %u", gid);
	if (setresuid(uid, uid, uid) != 0)
		return err_errno(err, "cannot become uid %u", uid);
	return jail_caps_drop_to(0, err);
}

int
jail_privs_lock(struct err *err)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return err_errno(err, "cannot set no_new_privs");
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
		return err_errno(err, "cannot clear the dumpable flag");
	return 0;
}

int
jail_filter_load(const struct sock_filter *f, size_t n, struct err *err)
{
	struct sock_fprog prog = {.len = (unsigned short)n, .filter = NULL};

	if (f == NULL || n == 0 || n > BPF_MAXINSNS)
		return err_set(err, -EINVAL, "a jail has a syscall filter of 1 to %d instructions",
			BPF_MAXINSNS);
	/* The kernel only reads it; struct sock_fprog has no const. */
	memcpy(&prog.filter, &f, sizeof(f));
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) != 0)
		return err_errno(err,
			"cannot load the syscall filter (the kernel needs CONFIG_SECCOMP_FILTER)");
	return 0;
}

static int
jail_check(const struct jail *j, struct err *err)
{
	if (j->keep != 0 && (j->uid != 0 || j->gid != 0))
		return err_set(err, -EINVAL, "only a process that stays root keeps capabilities");
	if (j->keep == 0 && (j->uid == 0 || j->gid == 0 || j->mounts))
		return err_set(
			err, -EINVAL, "a jail without capabilities has its own uid and Landlock");
	if (j->mounts && (j->paths_n != 0 || j->ports_n != 0))
		return err_set(err, -EINVAL, "a process that mounts cannot have Landlock rules");
	if (j->filter == NULL || j->filter_n == 0)
		return err_set(err, -EINVAL, "a jail has a syscall filter");
	return 0;
}

/*
 * Limits while they can still be set; ids and capabilities while CAP_SETUID and
 * CAP_SETPCAP are there; dumpable after the ids, since a change of ids sets it again;
 * no_new_privs in front of Landlock and the filter, which ask for it; the proof by attempt
 * in front of the filter, which would kill it; the filter last.
 */
int
jail_enter(const struct jail *j, struct err *err)
{
	int rc;

	if ((rc = jail_check(j, err)) != 0 ||
		(rc = jail_rlimits_set(j->rlimits, j->rlimits_n, err)) != 0)
		return rc;
	rc = j->keep != 0 ? jail_caps_drop_to(j->keep, err) : jail_ids_drop(j->uid, j->gid, err);
	if (rc != 0 || (rc = jail_privs_lock(err)) != 0)
		return rc;
	if (!j->mounts &&
		(rc = jail_landlock_all(j->paths, j->paths_n, j->ports, j->ports_n, err)) != 0)
		return rc;
	if ((rc = jail_prove_drop(j, err)) != 0)
		return rc;
	return jail_filter_load(j->filter, j->filter_n, err);
}
