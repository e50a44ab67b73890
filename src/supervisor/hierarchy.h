/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a cgroup hierarchy is mounted and which group in it is ours, from the text of /proc/self/mountinfo
 * and /proc/self/cgroup. Pure: reads no file.
 */
#pragma once

#include "lib/base/err.h"
#include "lib/base/view.h"

/*
 * The directory of our own group in the hierarchy of a v1 controller, or in the v2 hierarchy when
 * `controller` is NULL. 0; -ENOENT when there is none; -ERANGE when the path does not fit.
 */
int hierarchy_find(struct view mountinfo, struct view groups, const char *controller, char *ret,
	size_t n) MUST_CHECK;
