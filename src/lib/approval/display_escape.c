/* SPDX-License-Identifier: Apache-2.0 */
/* What may stand on a person's screen as itself, and the visible form of all else; see display.h. */
#include "lib/approval/display_part.h"
#include "lib/base/utf8.h"

#include <errno.h>

enum { POINT_DIGITS_MAX = 6 };

/*
 * Not ASCII, yet a reader tells them from ASCII and from each other, and no terminal turns their order: accented Latin letters, kana,
 * ideographs, Hangul syllables. What looks like an ASCII sign or letter is left out (dotless i, long s, the bar and the signs of kana).
 */
static const struct {
	uint32_t first, last;
} shown[] = {
	{0x00c0, 0x00d6},
	{0x00d8, 0x00f6},
	{0x00f8, 0x0130},
	{0x0132, 0x0137},
	{0x0139, 0x0148},
	{0x014a, 0x017e},
	{0x3041, 0x3096},
	{0x30a1, 0x30cd},
	{0x30cf, 0x30fa},
	{0x4e01, 0x4e35},
	{0x4e37, 0x4e3e},
	{0x4e40, 0x4e58},
	{0x4e5a, 0x9fff},
	{0xac00, 0xd7a3},
};

static bool
is_shown(uint32_t point, bool wide)
{
	if (point < 0x80)
		return point >= ' ' && point < 0x7f;
	for (size_t i = 0; wide && i < ARRAY_LEN(shown); i++)
		if (point >= shown[i].first && point <= shown[i].last)
			return true;
	return false;
}

void
display_escape_as(struct view text, bool wide, bool json, struct buf *out)
{
	while (text.n != 0) {
		uint32_t point = text.p[0];
		int n = utf8_next(text, &point);
		bool last = (size_t)(n < 0 ? -n : n) == text.n;

		if (n < 0) { /* no text: each byte */
			buf_addf(out, "\\x%02x", text.p[0]);
			n = 1;
		} else if (point == '\\' && !json) {
			buf_add_str(out, "\\\\");
		} else if (!is_shown(point, wide) || (point == ' ' && last)) {
			buf_addf(out, "\\u{%x}", point);
		} else {
			buf_add(out, text.p, (size_t)n);
		}
		text = view_skip(text, (size_t)n);
	}
}

void
display_escape(struct view text, struct buf *out)
{
	display_escape_as(text, true, false, out);
}

static void
put_point(uint32_t p, struct buf *out)
{
	uint8_t b[4] = {(uint8_t)p};
	size_t n = p < 0x80 ? 1 : p < 0x800 ? 2 : p < 0x10000 ? 3 : 4;

	for (size_t i = n - 1; n > 1 && i > 0; i--, p >>= 6)
		b[i] = (uint8_t)(0x80 | (p & 0x3f));
	if (n > 1)
		b[0] = (uint8_t)((0xf00U >> n & 0xff) | p);
	buf_add(out, b, n);
}

/* "u{...}" at the front; how many bytes, or 0. That the form is the shortest is for the comparison with the text written again. */
static size_t
take_point(struct view v, uint32_t *ret)
{
	uint32_t point = 0;
	size_t i;

	if (!view_starts(v, "u{"))
		return 0;
	for (i = 2; i < v.n && i < 2 + POINT_DIGITS_MAX && v.p[i] != '}'; i++) {
		uint8_t c = v.p[i];

		if ((c < '0' || c > '9') && (c < 'a' || c > 'f'))
			return 0;
		point = point << 4 | (uint32_t)(c <= '9' ? c - '0' : c - 'a' + 10);
	}
	if (i == 2 || i == v.n || v.p[i] != '}' || point > 0x10ffff)
		return 0;
	*ret = point;
	return i + 1;
}

int
display_unescape(struct view text, bool json, struct buf *out)
{
	while (text.n != 0) {
		uint32_t point;
		size_t n = 0;

		if (text.p[0] != '\\') {
			buf_add_byte(out, text.p[0]);
			text = view_skip(text, 1);
			continue;
		}
		text = view_skip(text, 1);
		n = take_point(text, &point);
		if (n != 0) {
			put_point(point, out);
		} else if (json && text.n != 0) {
			buf_add_byte(out, '\\');
			buf_add_byte(out, text.p[0]);
			n = 1;
		} else if (view_starts(text, "\\")) {
			buf_add_byte(out, '\\');
			n = 1;
		} else {
			return -EINVAL;
		}
		text = view_skip(text, n);
	}
	return buf_check(out);
}
