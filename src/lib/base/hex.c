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

static int
digit_value(uint8_t c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

int
hex_decode(struct view text, uint8_t *ret, size_t n)
{
	if (text.n != 2 * n)
		return -EINVAL;
	for (size_t i = 0; i < text.n; i++)
		if (digit_value(text.p[i]) < 0)
			return -EINVAL;
	for (size_t i = 0; i < n; i++)
		ret[i] = (uint8_t)(digit_value(text.p[2 * i]) << 4 |
				   digit_value(text.p[2 * i + 1]));
	return 0;
}
