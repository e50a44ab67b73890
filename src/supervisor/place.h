/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writable places of a template: where subtrees of the sandbox's one tmpfs are mounted, and the
 * directories inside them that the image has and a program expects to find (a home inside /home).
 */
#pragma once

#include "lib/base/err.h"

#include <stdbool.h>
#include <stdint.h>

enum { PLACE_MAX = 16, PLACE_DIRS_MAX = 16, PLACE_BYTES = 64 };

struct place {
	char path[PLACE_BYTES]; /* absolute: "/home" */
};

struct places {
	uint32_t n, ndirs;
	struct place place[PLACE_MAX];
	struct place dir[PLACE_DIRS_MAX]; /* "/home/agent", each directly in a place */
};

/*
 * Takes the texts of TEMPLATE_PREPARE: absolute paths of plain names, none inside another, none that the supervisor
 * mounts itself; the list ends at the first empty one. `root` is the mounted image, which must have each of them.
 */
int places_read(const char (*texts)[PLACE_BYTES], size_t n, int root, struct places *ret,
	struct err *err) MUST_CHECK;

/* Everybody may write there, sticky, like /tmp. */
bool place_is_shared(const char *path);
