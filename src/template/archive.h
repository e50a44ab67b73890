/* SPDX-License-Identifier: Apache-2.0 */
/* An archive as a directory tree, without reading a byte of it as root. */
#pragma once

#include "lib/base/err.h"

#include <stdint.h>

/*
 * Unpacks the regular file `archive` into the empty directory `top`, which belongs to another
 * user until tree_settle has gone over it. `name` is for sentences. *ret_stripped: files that
 * were setuid or setgid.
 */
int archive_unpack(
	int archive, const char *name, int top, uint64_t *ret_stripped, struct err *err) MUST_CHECK;
