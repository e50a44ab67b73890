/* SPDX-License-Identifier: Apache-2.0 */
/* Terminal-safe text; see safe.h. */
#include "cli/safe.h"

#include "lib/base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <wchar.h>

struct range {
	uint32_t first, last;
};

/* What is shown escaped although it is well-formed UTF-8. */
static const struct range hidden[] = {
	{0x0000, 0x001f},   /* C0 */
	{0x007f, 0x009f},   /* DEL, C1 */
	{0x00ad, 0x00ad},   /* soft hyphen */
	{0x061c, 0x061c},   /* Arabic letter mark */
	{0x115f, 0x1160},   /* Hangul fillers */
	{0x180e, 0x180e},   /* Mongolian vowel separator */
	{0x200b, 0x200f},   /* zero width, direction marks */
	{0x2028, 0x202e},   /* separators, embeddings, overrides */
	{0x2060, 0x206f},   /* word joiner, isolates, deprecated */
	{0x3164, 0x3164},   /* Hangul filler */
	{0xd800, 0xf8ff},   /* surrogates, private use */
	{0xfe00, 0xfe0f},   /* variation selectors */
	{0xfeff, 0xfeff},   /* byte order mark */
	{0xffa0, 0xffa0},   /* half-width Hangul filler */
	{0xfff0, 0xfffb},   /* specials, annotations */
	{0xe0000, 0xe0fff}, /* tags, more selectors */
	{0xf0000, 0x10ffff} /* private use */
};

static bool
is_hidden(uint32_t point)
{
	for (size_t i = 0; i < ARRAY_LEN(hidden); i++)
		if (point >= hidden[i].first && point <= hidden[i].last)
			return true;
	return utf8_noncharacter(point);
}

/* How one character, or some bytes that are none, is shown; returns how many bytes of v it is. */
static size_t
show_one(struct view v, struct buf *out)
{
	uint32_t point = 0;
	int n = utf8_next(v, &point);

	if (n < 0)
		for (int i = 0; i < -n; i++)
			buf_addf(out, "\\x%02x", v.p[i]);
	else if (point == '\n')
		buf_add_str(out, "\\n");
	else if (point == '\t')
		buf_add_str(out, "\\t");
	else if (point == '\r')
		buf_add_str(out, "\\r");
	else if (point < 0xa0 && is_hidden(point))
		buf_addf(out, "\\x%02x", point);
	else if (is_hidden(point))
		buf_addf(out, "\\u{%x}", point);
	else
		buf_add(out, v.p, (size_t)n);
	return (size_t)(n < 0 ? -n : n);
}

size_t
safe_width(struct view v)
{
	size_t width = 0;

	while (v.n != 0) {
		uint32_t point = 0;
		int n = utf8_next(v, &point);
		int w = n < 0 ? 1 : wcwidth((wchar_t)point);

		width += w < 0 ? 1 : (size_t)w;
		v = view_skip(v, (size_t)(n < 0 ? -n : n));
	}
	return width;
}

void
safe_add(struct buf *out, struct view v, size_t max)
{
	size_t width = 0, cut = out->n;

	while (v.n != 0) {
		size_t before = out->n;

		v = view_skip(v, show_one(v, out));
		width += safe_width(view_of(out->p + before, out->n - before));
		if (max != 0 && width > max) {
			out->n = cut;
			buf_add_str(out, "...");
			return;
		}
		if (max == 0 || width + 3 <= max)
			cut = out->n;
	}
}

void
safe_say(const char *fmt, ...)
{
	auto_buf struct buf safe;
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	buf_init(&safe, 8 * sizeof(text));
	safe_add(&safe, view_str(text), 0);
	(void)fprintf(stderr, "demilune: %.*s\n", VIEW_ARGS(buf_view(&safe)));
}
