/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mounts by descriptor (Linux 5.12: fsopen, open_tree, move_mount, mount_setattr). A mount that is
 * made here is attached to nothing until mount_attach(): no path of the host shows it. All
 * descriptors are close-on-exec and owned by the caller.
 */
#pragma once

#include "lib/base/err.h"

#include <sys/mount.h>

struct mount_option {
	const char *key;
	const char *value; /* NULL: a flag */
};

/* A new file system of this type with MOUNT_ATTR_* flags, or negative. */
int mount_new(const char *type, const struct mount_option *options, size_t n, unsigned attrs,
	struct err *err) MUST_CHECK;

/* A copy of the one mount at (dir, path); an empty path means `dir` itself. */
int mount_copy(int dir, const char *path, struct err *err) MUST_CHECK;

/* Puts a mount at (dir, path); empty path as above. Works for attached mounts too: moves them. */
int mount_attach(int mount, int dir, const char *path, struct err *err) MUST_CHECK;

/* Adds MOUNT_ATTR_* flags to this one mount; shows its owners through the user namespace if >= 0. */
int mount_change(int mount, unsigned attrs, int userns, struct err *err) MUST_CHECK;

/* This process's mounts no longer tell each other and the host of changes. `flag`: MS_PRIVATE or MS_SLAVE. */
int mount_propagation(unsigned long flag, struct err *err) MUST_CHECK;

/* The current directory, which is a mount, becomes "/"; all that was mounted before goes. */
int mount_pivot_here(struct err *err) MUST_CHECK;
