/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control groups: version 1, version 2, or a hybrid of both, found out at start by trying. All groups of a
 * run are below one parent "demilune-<tag>" in each hierarchy used; the parent lies below the supervisor's own group,
 * so that limits set around the supervisor hold for its sandboxes.
 *
 * Nothing here keeps descriptors per sandbox: a group is its name.
 */
#pragma once

#include "lib/base/err.h"
#include "lib/base/view.h"

#include <sys/types.h>

enum cgroup_duty {
#define DUTY(name, needed, v2, v1, prose) DUTY_##name,
#include "supervisor/cgroup.def"
#undef DUTY
	DUTY_MAX
};

enum cgroup_knob {
#define KNOB(name, duty, needed, v2, v1, prose) KNOB_##name,
#include "supervisor/cgroup.def"
#undef KNOB
	KNOB_MAX
};

enum { CGROUP_HIERARCHIES = DUTY_MAX, CGROUP_NAME = 32 };

/* Version 1: what sockets queue may be one part in so many of the memory limit, beside it. */
enum { CGROUP_SOCKET_SHARE = 8 };

enum cgroup_mode { CGROUP_AUTO, CGROUP_V1, CGROUP_V2 };

struct hierarchy {
	int version; /* 1 or 2 */
	int own;     /* owned: directory of the supervisor's own group */
	int parent;  /* owned: demilune-<tag> in it; -1 before cgroups_begin() */
};

struct cgroups {
	struct hierarchy h[CGROUP_HIERARCHIES];
	size_t n;
	size_t of[DUTY_MAX]; /* which hierarchy does this duty */
	char tag[CGROUP_NAME];
};

/* Fails where this host has swap and no limit of it was taken. `swaps` is /proc/swaps. Pure. */
int cgroup_swap_check(bool limited, struct view swaps, struct err *err) MUST_CHECK;

/* Finds the hierarchies; fails with a sentence when a needed duty has none. */
int cgroups_find(struct cgroups *c, enum cgroup_mode mode, struct err *err) MUST_CHECK;

/*
 * Makes the parents, with limits for all that will be below them, and proves with a group of its own that each needed
 * file can be used. The supervisor never promises more than these limits; they hold should it be wrong.
 */
int cgroups_begin(struct cgroups *c, const char *tag, uint64_t memory_bytes, uint32_t pids,
	struct err *err) MUST_CHECK;

/* Removes the parents (all groups must be gone) and closes. */
void cgroups_end(struct cgroups *c);

/* The path of the parent that cgroups_begin() makes in the i-th hierarchy, as /proc/self/mountinfo sees it. */
int cgroup_parent_path(const struct cgroups *c, size_t i, const char *tag, char *ret, size_t n,
	struct err *err) MUST_CHECK;

/*
 * Kills and removes what an earlier run left below such a path, and the parent itself. The number of groups that are
 * still there; a path that leads to no hierarchy now counts as one: not known is not zero.
 */
unsigned cgroup_parent_sweep(const char *path);

/* The version that does the memory limit. */
int cgroups_version(const struct cgroups *c);

/* A new group in every hierarchy. On failure nothing is left. */
int cgroup_make(const struct cgroups *c, const char *name, struct err *err) MUST_CHECK;

/* The number of hierarchies that still have it after trying to remove it. */
unsigned cgroup_remove(const struct cgroups *c, const char *name);

/* Directory of the group for CLONE_INTO_CGROUP, or -1 without v2; owned by the caller. */
int cgroup_open_v2(const struct cgroups *c, const char *name);

/* Files that the process writes "0" to, to enter its v1 groups; owned by the caller. */
int cgroup_open_entries(const struct cgroups *c, const char *name, int ret[CGROUP_HIERARCHIES],
	size_t *ret_n, struct err *err) MUST_CHECK;

/* Processes in it, over all hierarchies the largest number; where it is not known, more than there can be. */
unsigned cgroup_processes(const struct cgroups *c, const char *name);

/* SIGKILL to all in it, and to nobody else (members.h). */
void cgroup_kill(const struct cgroups *c, const char *name);

int cgroup_write(const struct cgroups *c, const char *name, enum cgroup_knob knob, const char *text,
	struct err *err) MUST_CHECK;

/* The file is one number; "max" is UINT64_MAX. */
int cgroup_read(
	const struct cgroups *c, const char *name, enum cgroup_knob knob, uint64_t *ret) MUST_CHECK;

/* The number after `key` on a line of its own. */
int cgroup_read_key(const struct cgroups *c, const char *name, enum cgroup_knob knob,
	const char *key, uint64_t *ret) MUST_CHECK;

/* Limits in the units of struct limits. */
int cgroup_limit(const struct cgroups *c, const char *name, uint64_t memory_bytes, uint32_t pids,
	uint32_t cpu_milli, struct err *err) MUST_CHECK;
/* The most that its sockets can queue: within the memory limit (v2), or beside it. */
int cgroup_socket_bytes(const struct cgroups *c, const char *name, uint64_t *ret) MUST_CHECK;
uint32_t cgroup_cpu_milli(const struct cgroups *c, const char *name);
uint64_t cgroup_cpu_us(const struct cgroups *c, const char *name);

int cgroup_freeze(
	const struct cgroups *c, const char *name, bool frozen, struct err *err) MUST_CHECK;
bool cgroup_is_frozen(const struct cgroups *c, const char *name);
