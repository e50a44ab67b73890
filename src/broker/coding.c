/* SPDX-License-Identifier: Apache-2.0 */
/* See coding.h. */
#include "broker/coding.h"

#include "lib/base/attr.h"

static const char lower_hex[] = "0123456789abcdef", upper_hex[] = "0123456789ABCDEF";
static const char standard[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char url_safe[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static size_t
as_it_is(struct view s, uint8_t *room, unsigned flags)
{
	(void)flags;
	memcpy(room, s.p, s.n);
	return s.n;
}

/* flags: the offset 0..2, and 4 for the alphabet of URLs. Only whole characters that are the secret's alone. */
static size_t
base64(struct view s, uint8_t *room, unsigned flags)
{
	const char *digits = (flags & 4) != 0 ? url_safe : standard;
	size_t before = flags & 3, n = 0, first = (before * 8 + 5) / 6;
	size_t last = (before + s.n) * 8 / 6;

	for (size_t c = first; c < last; c++) {
		unsigned bits = 0;

		for (size_t bit = c * 6; bit < c * 6 + 6; bit++) {
			size_t in = bit - before * 8;

			bits = bits << 1 | ((unsigned)s.p[in / 8] >> (7 - in % 8) & 1U);
		}
		room[n++] = (uint8_t)digits[bits];
	}
	return n;
}

/* flags: 1 upper case. */
static size_t
hexadecimal(struct view s, uint8_t *room, unsigned flags)
{
	const char *digits = (flags & 1) != 0 ? upper_hex : lower_hex;

	for (size_t i = 0; i < s.n; i++) {
		room[2 * i] = (uint8_t)digits[s.p[i] >> 4];
		room[2 * i + 1] = (uint8_t)digits[s.p[i] & 15];
	}
	return 2 * s.n;
}

static bool
alphanumeric(uint8_t c)
{
	uint8_t lower = c | 0x20;

	return (lower >= 'a' && lower <= 'z') || (c >= '0' && c <= '9');
}

enum { PERCENT_UPPER = 1, PERCENT_PLUS = 2, PERCENT_COMPONENT = 4 };

/* COMPONENT: leaves what encodeURIComponent leaves; else only the unreserved characters of RFC 3986. PLUS: a blank is a plus. */
static size_t
percent(struct view s, uint8_t *room, unsigned flags)
{
	const char *digits = (flags & PERCENT_UPPER) != 0 ? upper_hex : lower_hex;
	const char *left = (flags & PERCENT_COMPONENT) != 0 ? "-._~!*'()" : "-._~";
	size_t n = 0;

	for (size_t i = 0; i < s.n; i++) {
		uint8_t c = s.p[i];

		if (alphanumeric(c) || (c != 0 && strchr(left, c) != NULL)) {
			room[n++] = c;
		} else if (c == ' ' && (flags & PERCENT_PLUS) != 0) {
			room[n++] = '+';
		} else {
			room[n++] = '%';
			room[n++] = (uint8_t)digits[c >> 4];
			room[n++] = (uint8_t)digits[c & 15];
		}
	}
	return n;
}

enum { ESCAPE_SLASH = 1, ESCAPE_ASCII = 2 };

/* As a string of JSON; SLASH: "/" escaped too, ASCII: what HTML is afraid of as \u00xx. */
static size_t
escaped(struct view s, uint8_t *room, unsigned flags)
{
	size_t n = 0;

	for (size_t i = 0; i < s.n; i++) {
		uint8_t c = s.p[i];
		bool code = c < 0x20 ||
			    ((flags & ESCAPE_ASCII) != 0 && c != 0 && strchr("<>&'", c) != NULL);

		if (code) {
			memcpy(room + n, "\\u00", 4);
			room[n + 4] = (uint8_t)lower_hex[c >> 4];
			room[n + 5] = (uint8_t)lower_hex[c & 15];
			n += 6;
			continue;
		}
		if (c == '"' || c == '\\' || (c == '/' && (flags & ESCAPE_SLASH) != 0))
			room[n++] = '\\';
		room[n++] = c;
	}
	return n;
}

static const struct {
	size_t (*write)(struct view, uint8_t *, unsigned);
	unsigned flags;
} codings[CODINGS] = {
	{as_it_is, 0},
	{base64, 0},
	{base64, 1},
	{base64, 2},
	{base64, 4},
	{base64, 5},
	{base64, 6},
	{hexadecimal, 0},
	{hexadecimal, 1},
	{percent, 0},
	{percent, PERCENT_UPPER},
	{percent, PERCENT_UPPER | PERCENT_PLUS},
	{percent, PERCENT_UPPER | PERCENT_COMPONENT},
	{percent, PERCENT_COMPONENT},
	{escaped, 0},
	{escaped, ESCAPE_SLASH},
	{escaped, ESCAPE_ASCII},
};

size_t
coding_write(unsigned which, struct view secret, uint8_t *room)
{
	size_t n = codings[which].write(secret, room, codings[which].flags);

	/* Written without a change: the first of the table looks for it. */
	return which != 0 && view_eq(view_of(room, n), secret) ? 0 : n;
}
