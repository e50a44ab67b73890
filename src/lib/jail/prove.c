/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The proofs of the backend `kernel`: what jail.h promises, asked from the kernel and not
 * from what was meant to be set. Every finding that differs is an error; the caller exits.
 */
#include "lib/jail/jail.h"

#include "lib/jail/caps.h"
#include "lib/jail/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

static int
unproven(struct err *err, const char *what)
{
	return err_set(err, -EPERM, "the jail did not take: %s", what);
}

/* An attempt that must fail with this errno; any other answer is no proof. */
static bool
refused(long result, int with)
{
	return result == -1 && errno == with;
}

/* "/" is the one name that is always there; what no rule covers is refused with EACCES. */
static int
prove_landlock(const struct jail *j, struct err *err)
{
	auto_fd int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (!refused(root, EACCES))
		return unproven(err, "\"/\" can be listed (Landlock)");
	for (size_t i = 0; i < j->paths_n; i++) {
		auto_fd int fd = openat(j->paths[i].fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if ((j->paths[i].access & JAIL_READ) != 0 && fd < 0)
			return err_errno(
				err, "the jail closes a directory that it should leave open");
		if ((j->paths[i].access & JAIL_READ) == 0 && fd >= 0)
			return unproven(err, "a directory can be listed that should not be");
	}
	return 0;
}

/* A port that is not listed is refused before the kernel looks who listens there. */
static int
prove_ports(const struct jail *j, struct err *err)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	auto_fd int fd = -1;
	uint16_t port = 1;

	if (j->ports_n == 0 || syscall(SYS_landlock_create_ruleset, NULL, 0, LL_CREATE_VERSION) < 4)
		return 0;
	for (size_t i = 0; i < j->ports_n; i++)
		if (j->ports[i] == port) {
			port++;
			i = SIZE_MAX; /* from the first again */
		}
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return err_errno(err, "a socket for the proof");
	at.sin_port = htons(port);
	if (!refused(connect(fd, (struct sockaddr *)&at, sizeof(at)), EACCES))
		return unproven(err, "a port that is not listed can be connected to (Landlock)");
	return 0;
}

int
jail_prove_drop(const struct jail *j, struct err *err)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {{.effective = 1, .permitted = 1}}; /* CAP_CHOWN */
	gid_t groups[1] = {0};
	int rc;

	if (j->keep == 0) {
		if (!refused(setresuid(0, 0, 0), EPERM) || !refused(setuid(0), EPERM))
			return unproven(err, "uid 0 can be regained");
		if (!refused(setresgid(0, 0, 0), EPERM))
			return unproven(err, "gid 0 can be regained");
		if (!refused(setgroups(1, groups), EPERM))
			return unproven(err, "groups can be regained");
		if (!refused(syscall(SYS_capset, &head, data), EPERM))
			return unproven(err, "a capability can be raised");
	}
	if (j->mounts)
		return 0;
	rc = prove_landlock(j, err);
	return rc != 0 ? rc : prove_ports(j, err);
}

static int
prove_ids(const struct jail *j, struct err *err)
{
	uid_t r, e, s;
	gid_t rg, eg, sg;

	if (getresuid(&r, &e, &s) != 0 || getresgid(&rg, &eg, &sg) != 0)
		return err_errno(err, "cannot read the ids");
	if (r != j->uid || e != j->uid || s != j->uid)
		return unproven(err, "uid");
	if (rg != j->gid || eg != j->gid || sg != j->gid)
		return unproven(err, "gid");
	if (j->keep == 0 && getgroups(0, NULL) != 0)
		return unproven(err, "supplementary groups are left");
	return 0;
}

static int
prove_caps(uint64_t keep, struct err *err)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct d[2] = {0};

	if (syscall(SYS_capget, &head, d) != 0)
		return err_errno(err, "cannot read the capabilities");
	for (int i = 0; i < 2; i++) {
		uint32_t want = (uint32_t)(keep >> 32 * i);

		if (d[i].permitted != want || d[i].effective != want || d[i].inheritable != 0)
			return unproven(err, "capability sets");
	}
	for (int cap = 0; cap < CAPS_END; cap++) {
		int bound = prctl(PR_CAPBSET_READ, cap, 0, 0, 0);

		if (bound < 0 && cap > 0)
			return 0; /* the kernel knows no more */
		if (bound != (int)(keep >> cap & 1))
			return unproven(err, "bounding set");
		if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, cap, 0, 0) != 0)
			return unproven(err, "ambient set");
	}
	return 0;
}

/* getrlimit(3) is prlimit64(2), which can change limits and so is not in the base list. */
/* See jail_rlimits_set(): 1 is as good as 0, and better against a pipe. */
static int
prove_no_dumps(struct err *err)
{
	struct rlimit l;

	if (syscall(SYS_getrlimit, RLIMIT_CORE, &l) != 0 || l.rlim_max > 1)
		return unproven(err, "core dumps");
	return 0;
}

static int
prove_rlimit(int resource, rlim_t value, struct err *err)
{
	struct rlimit l;

	if (syscall(SYS_getrlimit, resource, &l) != 0)
		return err_errno(err, "cannot read resource limit %d", resource);
	if (l.rlim_cur != value || l.rlim_max != value)
		return unproven(err, "resource limits");
	return 0;
}

int
jail_prove(const struct jail *j, struct err *err)
{
	int rc;

	if (j->filter == NULL || j->filter_n == 0)
		return unproven(err, "no syscall filter is listed");
	/* The filter first: without it the calls below prove too little to go on. */
	if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != SECCOMP_MODE_FILTER)
		return unproven(err, "no syscall filter");
	/* Not only one that the process inherited: the last instruction is the mark (gen/def.h). */
	if (!refused(syscall(SYS_nfsservctl, j->filter[j->filter_n - 1].k, 0, 0), EL3HLT))
		return unproven(err, "the syscall filter is not the one listed");
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
		return unproven(err, "no_new_privs");
	if (prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 0)
		return unproven(err, "dumpable");
	if ((rc = prove_ids(j, err)) != 0 || (rc = prove_caps(j->keep, err)) != 0 ||
		(rc = prove_no_dumps(err)) != 0)
		return rc;
	if (j->keep == 0 && prctl(PR_GET_SECUREBITS, 0, 0, 0, 0) != SECUREBITS)
		return unproven(err, "securebits");
	for (size_t i = 0; i < j->rlimits_n; i++)
		if ((rc = prove_rlimit(j->rlimits[i].resource, j->rlimits[i].value, err)) != 0)
			return rc;
	return 0;
}
