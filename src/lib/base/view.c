/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of view.h that are too long to inline. */
#include "lib/base/view.h"

#include "lib/base/utf8.h"

bool
view_utf8(struct view v)
{
	while (v.n > 0) {
		uint32_t point;
		int len = utf8_next(v, &point);

		if (len < 0)
			return false;
		v = view_skip(v, (size_t)len);
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
