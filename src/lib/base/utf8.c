/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding of UTF-8; see utf8.h. */
#include "lib/base/utf8.h"

#include "lib/base/attr.h"

int
utf8_next(struct view v, uint32_t *ret_point)
{
	must(v.n > 0);
	uint8_t c = v.p[0], low = 0x80, high = 0xbf;
	size_t len = c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
	uint32_t point;

	if (c < 0x80) {
		*ret_point = c;
		return 1;
	}
	if (c < 0xc2 || c > 0xf4)
		return -1;
	/* The second byte carries the limits against overlong forms, surrogates and > U+10FFFF. */
	if (c == 0xe0)
		low = 0xa0;
	else if (c == 0xed)
		high = 0x9f;
	else if (c == 0xf0)
		low = 0x90;
	else if (c == 0xf4)
		high = 0x8f;
	point = c & (0x7fu >> len);
	for (size_t i = 1; i < len; i++) {
		if (i >= v.n || v.p[i] < low || v.p[i] > high)
			return -(int)i;
		point = point << 6 | (v.p[i] & 0x3fu);
		low = 0x80;
		high = 0xbf;
	}
	*ret_point = point;
	return (int)len;
}
