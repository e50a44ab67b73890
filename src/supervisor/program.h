/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The other programs of Demilune: where they are and how they are started: own uid, empty environment, only the
 * descriptors that proto/fds.def lists, SIGKILL when the supervisor dies.
 */
#pragma once

#include "lib/base/err.h"

#include <sys/types.h>

enum program {
#define PROGRAM(NAME, file, folder) PROGRAM_##NAME,
#include "supervisor/programs.def"
#undef PROGRAM
	PROGRAM_MAX
};

struct programs {
	char *path[PROGRAM_MAX]; /* owned */
};

/*
 * Looks for each in `libexec`, or if that is NULL in the directory of our own executable and then, as in a build tree,
 * in its neighbours. Fails naming the one that is missing.
 */
int programs_find(struct programs *p, const char *libexec, struct err *err) MUST_CHECK;
void programs_done(struct programs *p);

struct program_start {
	const char *path;
	const char *argument; /* NULL, or the only one */
	uint32_t uid;         /* and gid; 0: stays root with all that we have */
	const int *fds;       /* for numbers 3 and up; borrowed */
	size_t nfds;
};

/* Its pid, with a pidfd owned by the caller; negative when it could not even be forked. */
pid_t program_start(const struct program_start *s, int *ret_pidfd, struct err *err) MUST_CHECK;

/* Ends and waits for a child of ours; closes the pidfd. */
void program_end(int *pidfd);
