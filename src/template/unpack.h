/* SPDX-License-Identifier: Apache-2.0 */
/*
 * demilune-unpack: a stranger's archive into an empty directory. Its own program, started by
 * archive.c, because whoever parses a stranger's bytes must not be root. It is told nothing but
 * two descriptors; on success it says one number (files that were setuid or setgid), else one
 * sentence, on standard output.
 */
#pragma once

#include "lib/base/err.h"

#include <stdint.h>

enum {
	UNPACK_UID = 64105, /* fixed, user and group; nobody else may use it */
	UNPACK_ARCHIVE = 3, /* descriptor: a regular file */
	UNPACK_TOP = 4,     /* descriptor: an empty directory that belongs to UNPACK_UID */
};

/* Own uid, no capability, no file but below `top`, a short list of system calls; proven. */
int unpack_confine(int top, struct err *err) MUST_CHECK;

/*
 * Reads the archive twice: first whole, without writing, so that a broken or too large one
 * leaves nothing; then into `top`. No name stands twice, each directory stands in front of what
 * is in it, and no link is ever followed. Modes lose setuid and setgid.
 */
int unpack(int archive, int top, uint64_t *ret_stripped, struct err *err) MUST_CHECK;
