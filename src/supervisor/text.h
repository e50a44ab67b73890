/* SPDX-License-Identifier: Apache-2.0 */
/* Walking through text of the kernel: lines, words, "key value" files. Pure, bounded, nothing is copied. */
#pragma once

#include "lib/base/attr.h"
#include "lib/base/err.h"
#include "lib/base/view.h"

/* Cuts the next line (without its newline) or word off the front of *rest; false at the end. */
bool text_line(struct view *rest, struct view *ret);
bool text_word(struct view *rest, struct view *ret);

/* The n-th word (from 0), or an empty view. */
struct view text_word_at(struct view line, size_t n);

/* True if `item` is one of the parts of a list separated by `separator`. */
bool text_list_has(struct view list, uint8_t separator, const char *item);

/* What stands behind "key" and blanks or tabs on the first line that starts with it; false: no such line. */
bool text_key(struct view text, const char *key, struct view *ret);

/* The whole file, at most n bytes (more is an error), below directory `dir`. */
int text_file(int dir, const char *path, char *room, size_t n, struct view *ret) MUST_CHECK;
