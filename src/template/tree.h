/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Directory trees by descriptor: copy with bounds, settle (owners, modes, no special
 * files), make directories and small files, remove. No call ever follows a symbolic link:
 * a tree may have been made by somebody hostile.
 */
#pragma once

#include "lib/base/err.h"
#include "lib/base/view.h"

#include <sys/types.h>

struct tree_count {
	uint64_t entries, bytes;
	uint64_t stripped; /* files that were setuid or setgid */
	uint64_t dropped;  /* entries left out on purpose */
};

/* Removes dir/name and all below, if it is there. */
int tree_remove(int dir, const char *name, struct err *err) MUST_CHECK;

/* Removes all that is inside of the directory `path` of the tree, if it is there. */
int tree_clear(int root, const char *path, struct tree_count *count, struct err *err) MUST_CHECK;

/*
 * Copies what is below `from` to the empty directory `to`: files, directories, symbolic
 * links, hard links as copies. A device, FIFO or socket is an error; /dev, /proc and /sys of
 * the top are left out. Modes lose setuid and setgid, owners become root.
 */
int tree_copy(int from, int to, struct tree_count *count, struct err *err) MUST_CHECK;

/* Everything below (and the root) to root:root, without setuid and setgid; refuses special files. */
int tree_settle(int root, struct tree_count *count, struct err *err) MUST_CHECK;

/* The absolute `path` and its parents as directories 0755. A link or file on the way is an error. */
int tree_mkdir(int root, const char *path, struct err *err) MUST_CHECK;

/* Replaces the file at absolute `path`; its directory is made if missing. */
int tree_write(
	int root, const char *path, struct view text, mode_t mode, struct err *err) MUST_CHECK;

/* Replaces what is at absolute `path` by a symbolic link to `target`. */
int tree_link(int root, const char *path, const char *target, struct err *err) MUST_CHECK;

/* Opens below root without following a link anywhere; -1 with errno. */
int tree_open(int root, const char *path, int flags);
