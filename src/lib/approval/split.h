/* SPDX-License-Identifier: Apache-2.0 */
/* Cutting text at a byte: lines, words and lists of the approvers file and of a display. */
#pragma once

#include "lib/base/view.h"

/* Takes what stands before the next `c`, or all; false: nothing is left (rest->p is NULL). */
static inline bool
take_until(struct view *rest, uint8_t c, struct view *ret)
{
	const uint8_t *end;

	if (rest->p == NULL)
		return false;
	end = rest->n == 0 ? NULL : memchr(rest->p, c, rest->n);
	if (end == NULL) {
		*ret = *rest;
		*rest = view_of(NULL, 0);
	} else {
		*ret = view_of(rest->p, (size_t)(end - rest->p));
		*rest = view_skip(*rest, ret->n + 1);
	}
	return true;
}
