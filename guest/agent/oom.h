/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is taken when the sandbox has no memory left. The kernel takes the process with the most memory of its own; memory that
 * no process maps (a memfd, files on tmpfs) counts for none, so that PID 1 was as good as any, and its end is the sandbox's.
 * So jobs have the highest oom_score_adj there is, and PID 1 keeps the one that the supervisor gave it.
 *
 * /proc is read-only inside and a child cannot be given another value from outside, but a child is born with its parent's: PID 1 has
 * the high one while it forks. The descriptor is of PID 1's own file: it can change nobody else's, and no child keeps it (launch.c
 * closes all above its own). Raising is always allowed, and lowering down to what was set last with CAP_SYS_RESOURCE, or to what was
 * the lowest so far: to the supervisor's value in either case. Between the two writes PID 1 is a job like the others, with less memory.
 */
#pragma once

#include "lib/base/attr.h"

#include <stddef.h>

struct oom {
	char own[16]; /* the supervisor's value, as text */
	size_t own_n;
};

/* At start: what PID 1 has. 0 or -errno. */
int oom_look(struct oom *oom) MUST_CHECK;

/* Around a fork, in PID 1. oom_raise: 0 or an errno, then nothing is to be forked. */
int oom_raise(const struct oom *oom) MUST_CHECK;
void oom_restore(const struct oom *oom);
