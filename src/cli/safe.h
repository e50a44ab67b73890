/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text of a stranger on a person's terminal: nothing in it may move the cursor, change colours, set a
 * title, hide, or turn the order of what is read. Shown escaped are controls (C0, DEL, C1), line and
 * paragraph separators, bidirectional controls, zero-width characters, tags, and bytes that are not UTF-8.
 */
#pragma once

#include "lib/base/buf.h"

/* Appends at most `max` columns' worth of v; what does not fit shows as "...". 0: all of it. */
void safe_add(struct buf *out, struct view v, size_t max);

/* "demilune: " and one safe line on standard error; at most 1023 bytes of it. */
void safe_say(const char *fmt, ...) PRINTF(1, 2);

/* Columns that text made by safe_add takes. */
size_t safe_width(struct view v);
