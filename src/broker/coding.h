/* SPDX-License-Identifier: Apache-2.0 */
/* The codings in which a secret is looked for in an answer. Pure: writes what a secret looks like in one of them. */
#pragma once

#include "lib/base/view.h"

/* How many there are; `which` runs from 0. */
enum { CODINGS = 17, CODING_GROWTH = 6 };

/*
 * The text by which the secret is found in this coding, into room for CODING_GROWTH * n + 8 bytes. For base 64 it is the part that does not
 * depend on what stands before and behind. Returns its length; 0: nothing to look for (the same as another, or too short).
 */
size_t coding_write(unsigned which, struct view secret, uint8_t *room);
