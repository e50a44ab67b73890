/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of view.h that are too long to inline. */
#include "lib/base/view.h"

/* Length of the well-formed sequence at p, or 0 (table 3-7 of the Unicode standard). */
static size_t
utf8_sequence(const uint8_t *p, size_t n)
{
	uint8_t c = p[0], low = 0x80, high = 0xbf;
	size_t len;

	if (c < 0x80)
		return 1;
	if (c < 0xc2 || c > 0xf4)
		return 0;
	len = c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
	if (n < len)
		return 0;
	if (c == 0xe0)
		low = 0xa0;
	else if (c == 0xed)
		high = 0x9f;
	else if (c == 0xf0)
		low = 0x90;
	else if (c == 0xf4)
		high = 0x8f;
	if (p[1] < low || p[1] > high)
		return 0;
	for (size_t i = 2; i < len; i++)
		if (p[i] < 0x80 || p[i] > 0xbf)
			return 0;
	return len;
}

bool
view_utf8(struct view v)
{
	while (v.n > 0) {
		size_t len = utf8_sequence(v.p, v.n);

		if (len == 0)
			return false;
		v = view_skip(v, len);
	}
	return true;
}

static uint8_t
ascii_lower(uint8_t c)
{
	return c >= 'A' && c <= 'Z' ? (uint8_t)(c + ('a' - 'A')) : c;
}

bool
view_eq_nocase(struct view a, struct view b)
{
	if (a.n != b.n)
		return false;
	for (size_t i = 0; i < a.n; i++)
		if (ascii_lower(a.p[i]) != ascii_lower(b.p[i]))
			return false;
	return true;
}
