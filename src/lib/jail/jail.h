/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a process confines itself and proves that it took. Called once by each process's
 * confine.c, single-threaded, before the first byte of input:
 *
 *     static const struct jail jail = {.uid = ..., .filter = relay_syscalls,
 *             .filter_n = ARRAY_LEN(relay_syscalls)};
 *     if (jail_enter(&jail, &err) != 0 || jail_prove(&jail, &err) != 0)
 *             fatal
 *
 * A step that cannot be applied (old kernel, missing right) is an error and the caller
 * must exit: half a jail is never a weaker jail. Nothing here is undone on failure.
 *
 * Two proofs, because the filter kills the calls that the first one makes:
 * jail_prove_drop (run by jail_enter in front of the filter) tries what must be refused:
 * becoming root, raising capabilities, opening "/"; jail_prove reads back every property
 * from the kernel and finds the filter by its mark (base-syscalls.def).
 *
 * A filter is inherited: the supervisor's own holds for every process and sandbox below it, so
 * it must deny by list (DEFAULT(ALLOW)) and never KILL what a child may call.
 *
 * Linux >= 5.13 (Landlock ABI 1); a newer kernel's file, TCP and scope rights are handled
 * when it has them. Works in static executables; uses no /proc and allocates nothing.
 * After jail_enter the process is not dumpable: its own /proc/self/fd is closed to it.
 */
#pragma once

#include "lib/base/attr.h"
#include "lib/base/err.h"

#include <linux/filter.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

/* Access below a directory. Nothing gives ioctl on devices, device nodes or exec but JAIL_EXEC. */
enum jail_access {
	JAIL_READ = 1,   /* read files, list directories */
	JAIL_WRITE = 2,  /* write, truncate, create, remove and rename regular files */
	JAIL_DIRS = 4,   /* create, remove and move directories */
	JAIL_SOCK = 8,   /* create and remove socket files */
	JAIL_EXEC = 16,  /* execute files */
	JAIL_LINKS = 32, /* create symbolic links */
};

struct jail_path {
	int fd;              /* borrowed: a directory (O_PATH will do) */
	unsigned int access; /* enum jail_access, at least one */
};

struct jail_rlimit {
	int resource; /* RLIMIT_* */
	rlim_t value; /* soft and hard; above the present hard limit is an error */
};

struct jail {
	uid_t uid;     /* never 0 but with `keep` */
	gid_t gid;     /* never 0 but with `keep` */
	uint64_t keep; /* capabilities to keep, a bit each: only for a process that stays uid 0 */
	bool mounts;   /* the process mounts, so no Landlock (which forbids it); only with `keep` */
	const struct jail_rlimit
		*rlimits; /* beside RLIMIT_CORE at most 1, no dumps, which is always set */
	size_t rlimits_n;
	const struct jail_path *paths; /* empty: no file can be opened at all */
	size_t paths_n;
	/* TCP ports that may be connected to where the kernel can tell (Landlock ABI 4, Linux 6.7); empty: none */
	const uint16_t *ports;
	size_t ports_n;
	const struct sock_filter *filter; /* generated; must INCLUDE("base-syscalls.def") */
	size_t filter_n;
};

/* "kernel", or "none" in sanitizer builds, where nothing below does anything. */
const char *jail_backend(void);

int jail_enter(const struct jail *j, struct err *err) MUST_CHECK;
int jail_prove(const struct jail *j, struct err *err) MUST_CHECK;

/*
 * The pieces of jail_enter, for a process that needs another order (the sandbox's first
 * process) and for tests.
 */

/* Core dumps off and the limits listed. */
int jail_rlimits_set(const struct jail_rlimit *r, size_t n, struct err *err) MUST_CHECK;

/* Capabilities: ambient none, inheritable none, bounding, permitted and effective `mask`. */
int jail_caps_drop_to(uint64_t mask, struct err *err) MUST_CHECK;

/* Groups, gid and uid, real, effective and saved; with locked securebits and an empty
   bounding set, and without any capability afterwards. */
int jail_ids_drop(uid_t uid, gid_t gid, struct err *err) MUST_CHECK;

/* no_new_privs and not dumpable. */
int jail_privs_lock(struct err *err) MUST_CHECK;

/* Handles all rights that the kernel knows, allows only the paths and ports. Needs no_new_privs. */
int jail_landlock_all(const struct jail_path *paths, size_t n, const uint16_t *ports,
	size_t ports_n, struct err *err) MUST_CHECK;

/* Needs no_new_privs. From here the filter holds, for all children too. */
int jail_filter_load(const struct sock_filter *f, size_t n, struct err *err) MUST_CHECK;

/* The proof that needs calls which the filter does not let through. */
int jail_prove_drop(const struct jail *j, struct err *err) MUST_CHECK;
