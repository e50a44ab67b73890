/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UTF-8 in pieces; see utf8.h. A sequence under way is padded with the smallest and with the
 * largest continuation bytes: since the legal second bytes form one range with one of the two at
 * its end, one of them is legal exactly when some continuation is.
 */
#include "lib/http/utf8.h"

bool
http_utf8_byte(struct http_utf8 *u, uint8_t c)
{
	uint8_t low[4], high[4];

	if (u->n == 0) {
		if (c < 0x80)
			return true;
		u->want = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
	}
	u->p[u->n++] = c;
	memset(low, 0x80, sizeof(low));
	memset(high, 0xbf, sizeof(high));
	memcpy(low, u->p, u->n);
	memcpy(high, u->p, u->n);
	if (!view_utf8(view_of(low, u->want)) && !view_utf8(view_of(high, u->want)))
		return false;
	if (u->n == u->want)
		u->n = 0;
	return true;
}
