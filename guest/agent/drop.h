/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Giving up privileges in a child of PID 1. Raw system calls only: it also runs between vfork and execve,
 * where no library state may be touched.
 *
 * Uids inside: 0 and 10001 run programs, without a capability. REAPER_UID runs no program of the guest
 * ever, so nothing in the sandbox may signal or trace a reaper (kill(2) asks for the same uid or CAP_KILL,
 * which no program has).
 */
#pragma once

#include "lib/base/attr.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	REAPER_UID = 65533,
};

struct drop {
	uint64_t bounding; /* capabilities that PID 1 may still give to its children */
	uint64_t permitted;
	bool groups; /* PID 1 has supplementary groups */
};

/* What this process has. 0 or -errno. */
int drop_look(struct drop *ret) MUST_CHECK;

/* To uid and gid `uid` without any capability, for good, and proves it. 0 or -errno. */
int drop_all(const struct drop *d, uid_t uid) MUST_CHECK;

/*
 * To REAPER_UID, keeping what it takes to make the command's process. The file-system uid alone is that of
 * the job: /proc shows its processes then. 0 or -errno.
 */
int drop_to_reaper(const struct drop *d, uid_t uid) MUST_CHECK;

/* The reaper made the command: keeps CAP_KILL alone. 0 or -errno. */
int drop_to_kill(void) MUST_CHECK;
