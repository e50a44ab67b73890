/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a program to its end inside its own pid and mount namespace. When this process dies,
 * by whatever signal, the kernel ends the whole namespace with it: no half-finished package
 * installation goes on, and no mount that the program made is ever seen outside.
 */
#pragma once

#include "lib/base/buf.h"
#include "lib/base/err.h"

enum { CHILD_FIRST_FD = 3 };

struct child {
	const char *const *argv; /* argv[0] is an absolute path */
	const char *const *envp;
	const char *root; /* NULL, or the directory it sees as "/" */
	bool network;     /* false: an empty network namespace */
	const int *fds; /* borrowed: descriptors that it gets as CHILD_FIRST_FD and up; no others */
	size_t n_fds;
	struct buf *out; /* NULL: lines that start with "I: " become progress */
	bool errors_too; /* with `out`: standard error goes there too */
};

/*
 * 0 when it exits with 0. With `out`, standard output goes there whole (an error when it does
 * not fit) and standard error passes through, unless `errors_too`. Without, both are read for
 * progress, and on failure the last of it is printed to standard error.
 */
int child_run(const struct child *c, struct err *err) MUST_CHECK;
