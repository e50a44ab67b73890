/* SPDX-License-Identifier: Apache-2.0 */
/* Base 64; see base64.h. */
#include "lib/base/base64.h"

#include <errno.h>

/* 0 to 63, or -1. */
static int
digit(uint8_t c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Four characters to 1..3 bytes; 0 when they are none. `last`: padding may stand here. */
static size_t
decode_four(const uint8_t *p, bool last, uint8_t ret[static 3])
{
	size_t n = last && p[3] == '=' ? (p[2] == '=' ? 1 : 2) : 3;
	uint32_t bits = 0;

	for (size_t i = 0; i < 4; i++) {
		int d = i <= n ? digit(p[i]) : 0;

		if (d < 0)
			return 0;
		bits = bits << 6 | (uint32_t)d;
	}
	/* What is left of the last digit must be zero: one text for one value. */
	if ((bits & ((UINT32_C(1) << (24 - 8 * n)) - 1)) != 0)
		return 0;
	ret[0] = (uint8_t)(bits >> 16);
	ret[1] = (uint8_t)(bits >> 8);
	ret[2] = (uint8_t)bits;
	return n;
}

int
base64_decode(struct view text, struct buf *out)
{
	size_t before = out->n;

	if (text.n % 4 != 0)
		return -EINVAL;
	for (size_t i = 0; i < text.n; i += 4) {
		uint8_t bytes[3];
		size_t n = decode_four(text.p + i, i + 4 == text.n, bytes);

		if (n == 0) {
			out->n = before;
			return -EINVAL;
		}
		buf_add(out, bytes, n);
	}
	return buf_check(out);
}

void
base64_encode(struct view bytes, struct buf *out)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < bytes.n; i += 3) {
		size_t left = bytes.n - i;
		uint32_t bits = (uint32_t)bytes.p[i] << 16 |
				(left > 1 ? (uint32_t)bytes.p[i + 1] << 8 : 0) |
				(left > 2 ? bytes.p[i + 2] : 0);
		char four[4] = {digits[bits >> 18], digits[bits >> 12 & 63],
			left > 1 ? digits[bits >> 6 & 63] : '=',
			left > 2 ? digits[bits & 63] : '='};

		buf_add(out, four, sizeof(four));
	}
}
