/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Marks of a sandbox, by which the kernel is asked afterwards what is still there. A mark holds nothing. Of one that
 * ended before it had a mark there is nothing to ask: no guest was ever in it.
 *
 * Namespaces: since Linux 6.18 each has a file handle with an id that is never used again; opening the handle of one
 * that nobody holds any more fails with ESTALE. An older kernel has no such handle: there processes that are in it are
 * looked for in /proc, as far as we may look.
 *
 * The volume: inotify tells when the file system of a watched directory ends, which is when nobody mounts it or has a
 * file of it open any more. A device number would not do: the kernel gives it to the next file system at once.
 */
#pragma once

#include "lib/base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { MARKS_NAMESPACES = 5, MARK_HANDLE_BYTES = 32 };

struct marks {
	struct {
		bool taken;
		uint32_t bytes; /* of the handle; 0: this kernel gives none */
		int type;
		uint8_t handle[MARK_HANDLE_BYTES];
		uint64_t dev, inode;
	} ns[MARKS_NAMESPACES];
	int volume; /* of the watch, from 1 on; 0: none, or its end was heard */
};

/* The watch for all volumes; owned by the caller. */
int marks_open(struct err *err) MUST_CHECK;

/* Of a process that is alive and has all its namespaces. */
int marks_namespaces(struct marks *m, pid_t pid, struct err *err) MUST_CHECK;
int marks_volume(struct marks *m, int watch, int volume, struct err *err) MUST_CHECK;

/* How many of the namespaces somebody holds. What was once gone is not asked about again. */
unsigned marks_namespaces_left(struct marks *m);

/* The mark of a volume whose end was not asked for yet, or 0. */
int marks_volume_ended(int watch);
