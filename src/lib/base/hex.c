/* SPDX-License-Identifier: Apache-2.0 */
/* Hexadecimal text; see hex.h. */
#include "lib/base/hex.h"

#include <errno.h>

static const char digits[] = "0123456789abcdef";

void
hex_encode(const uint8_t *p, size_t n, char *ret)
{
	for (size_t i = 0; i < n; i++) {
		*ret++ = digits[p[i] >> 4];
		*ret++ = digits[p[i] & 15];
	}
	*ret = '\0';
}

/* One more than a digit is worth; 0: it is none. */
static const uint8_t worth[256] = {['0'] = 1,
	['1'] = 2,
	['2'] = 3,
	['3'] = 4,
	['4'] = 5,
	['5'] = 6,
	['6'] = 7,
	['7'] = 8,
	['8'] = 9,
	['9'] = 10,
	['a'] = 11,
	['b'] = 12,
	['c'] = 13,
	['d'] = 14,
	['e'] = 15,
	['f'] = 16};

int
hex_decode(struct view text, uint8_t *ret, size_t n)
{
	if (text.n != 2 * n)
		return -EINVAL;
	for (size_t i = 0; i < text.n; i++)
		if (worth[text.p[i]] == 0)
			return -EINVAL;
	for (size_t i = 0; i < n; i++)
		ret[i] = (uint8_t)((worth[text.p[2 * i]] - 1) << 4 |
				   (worth[text.p[2 * i + 1]] - 1));
	return 0;
}
