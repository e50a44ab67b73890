/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UTF-8, one code point at a time (RFC 3629, table 3-7 of the Unicode standard): for
 * code that must escape, refuse or replace single characters.
 */
#pragma once

#include "lib/base/view.h"

/*
 * The code point at the front of v, which is not empty. Its length 1..4 with *ret_point
 * set, or minus the length 1..3 of the malformed bytes that one U+FFFD stands for (the
 * maximal subpart of definition D93b), with *ret_point untouched.
 */
int utf8_next(struct view v, uint32_t *ret_point);

/* U+FDD0..U+FDEF and the last two code points of each plane. */
static inline bool
utf8_noncharacter(uint32_t point)
{
	return (point >= 0xfdd0 && point <= 0xfdef) || (point & 0xfffe) == 0xfffe;
}
