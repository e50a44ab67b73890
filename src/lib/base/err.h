/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors. A function that can fail takes `struct err *err` as its last parameter and
 * returns 0 or a negative code; the same code and one sentence stand in *err. The
 * sentence is for a person: what was refused and, where it helps, what to do. Outputs
 * are untouched on failure. Nothing here allocates, so that ENOMEM can be told too.
 *
 * Codes are negative errno values or a row of proto/errors.def (see lib/ipc).
 */
#pragma once

#include "lib/base/attr.h"

#include <stddef.h>

struct err {
	int code;       /* negative errno, or -ERROR_* of proto/errors.def */
	char text[224]; /* one sentence, NUL-terminated, printable */
};

/* Fills *err and returns `code`, which is negative: return err_set(err, -EINVAL, "..."); */
int err_set(struct err *err, int code, const char *fmt, ...) PRINTF(3, 4);

/* As err_set with -errno; the text of errno is appended. */
int err_errno(struct err *err, const char *fmt, ...) PRINTF(2, 3);

/* Puts "what: " in front of the sentence that is there; returns err->code. */
int err_context(struct err *err, const char *fmt, ...) PRINTF(2, 3);
