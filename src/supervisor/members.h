/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes of one control group, out of its file cgroup.procs, of any length. `path` is that file, below the
 * directory `dir`. Called by cgroup.c.
 */
#pragma once

#include "lib/base/attr.h"

#include <stdint.h>

/* Not known is not zero. */
enum { MEMBERS_UNKNOWN = INT32_MAX };

/* How many there are; none when there is no such group; MEMBERS_UNKNOWN when the file cannot be read to its end. */
unsigned members_count(int dir, const char *path);

/*
 * SIGKILL to each of them, and never to another process: a number is nobody's for long, so a process is held by a
 * descriptor first, and must be in the group after that. Who came meanwhile, or who cannot be held now, is left: callers
 * count afterwards, and try again.
 */
void members_kill(int dir, const char *path);
