/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paths of the guest, resolved in a child that has the job's uid and no capability.
 *
 * RESOLVE_IN_ROOT below "/", not RESOLVE_BENEATH: the sandbox's root is its whole world, its absolute links
 * (/var/run -> /run) are meant and lead nowhere but into the same root, and BENEATH would refuse them.
 * Nothing is won by a link: the child has exactly the rights of the program that could have planted it, so
 * whatever a path leads to, that program could open itself. RESOLVE_NO_MAGICLINKS keeps out the links of
 * /proc that lead to open files and other roots; objects on procfs are refused altogether, because their
 * content is the kernel's and not the guest's. FIFOs, sockets and devices are refused: they can block or act.
 *
 * All return 0 (or a descriptor) or a negative errno.
 */
#pragma once

#include "lib/base/view.h"

#include "lib/base/attr.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/* Opens the guest's root. */
int file_root(void) MUST_CHECK;

/* openat2 as said above, close-on-exec. */
int file_open(int root, const char *path, int flags) MUST_CHECK;

/* As file_open, but for a regular file or a directory that is not on procfs; *ret_st is its state. */
int file_open_checked(int root, const char *path, int flags, struct stat *ret_st) MUST_CHECK;

/* The directory with all its parents, made where missing. A descriptor (O_PATH). */
int file_make_dir(int root, const char *path, mode_t mode, bool *ret_made) MUST_CHECK;

/* The directory in which the last part of the path is or would be, and that part, which is a name. */
int file_parent(int root, char *path, bool make, int *ret_dir, const char **ret_name) MUST_CHECK;

/* A regular file in the making: written under a name of its own, then renamed. */
struct file_new {
	int dir; /* borrowed */
	int fd;  /* owned; -1 = none */
	mode_t mode;
	char temporary[40];
};

/* Refuses to replace a directory, or what is neither file nor link; mode 0: that of the file replaced, or 0644. */
int file_new_open(struct file_new *f, int dir, const char *name, mode_t mode) MUST_CHECK;
int file_new_commit(struct file_new *f, const char *name) MUST_CHECK;
void file_new_abandon(struct file_new *f);

/* Writes all to descriptor fd. */
int file_put(int fd, const void *p, size_t n) MUST_CHECK;

/* Bytes of the job's stdin, 0 at its end; -ECANCELED when PID 1 gave an order meanwhile. */
ssize_t file_input(void *p, size_t n) MUST_CHECK;

/* file_ops.c and tree.c. */
struct job;
int tree_down(int root, char *path) MUST_CHECK;
int tree_up(int root, const char *path, uint64_t size_bytes) MUST_CHECK;
