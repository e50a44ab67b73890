/* SPDX-License-Identifier: Apache-2.0 */
/* Paths; see path.h. */
#include "lib/http/path.h"

#include "lib/http/chars.h"
#include "lib/http/utf8.h"

bool
http_percent_decode(struct view text, unsigned flags, uint8_t *ret, size_t *ret_n)
{
	size_t n = 0;

	for (size_t i = 0; i < text.n; i++) {
		uint8_t c = text.p[i];

		if (c == '%') {
			if (text.n - i < 3 || !char_is(text.p[i + 1], CHAR_HEX) ||
				!char_is(text.p[i + 2], CHAR_HEX))
				return false;
			c = (uint8_t)(char_hex(text.p[i + 1]) << 4 | char_hex(text.p[i + 2]));
			i += 2;
		} else if (c == '+' && (flags & HTTP_DECODE_PLUS) != 0) {
			c = ' ';
		}
		if (c == '\0' && (flags & HTTP_DECODE_NUL) == 0)
			return false;
		ret[n++] = c;
	}
	if (!view_utf8(view_of(ret, n)))
		return false;
	*ret_n = n;
	return true;
}

struct view
http_path_next(struct view *rest)
{
	struct view text = view_skip(*rest, 1);
	const uint8_t *slash = text.n == 0 ? NULL : memchr(text.p, '/', text.n);
	struct view segment = slash == NULL ? text : view_of(text.p, (size_t)(slash - text.p));

	*rest = view_skip(text, segment.n);
	return segment;
}

/* One byte of a segment, raw or from an escape. */
static enum http_reason
byte_judge(uint8_t c, bool escaped, unsigned flags)
{
	if (!escaped && !char_is(c, CHAR_PATH))
		return HTTP_NO_PATH;
	if (c < 0x20 || c == 0x7f)
		return HTTP_NO_PATH;
	if ((c == '/' || c == '\\') && (flags & HTTP_PATH_ENCODED_SLASH) == 0)
		return HTTP_NO_PATH;
	if (c == '%' && (flags & HTTP_PATH_PERCENT) == 0)
		return HTTP_NO_PATH;
	return c == ';' && (flags & HTTP_PATH_SEMICOLON) == 0 ? HTTP_NO_PATH_PARAM : HTTP_FINE;
}

/* What is left of a segment after decoding, as far as dots are concerned: "..", "..;x", "../x". */
static bool
dots_only(const uint8_t *p, size_t n)
{
	size_t dots = 0;

	while (dots < n && p[dots] == '.')
		dots++;
	if (dots == 0 || dots > 2)
		return false;
	return dots == n || p[dots] == ';' || p[dots] == '/' || p[dots] == '\\';
}

static enum http_reason
segment_judge(struct view segment, unsigned flags)
{
	uint8_t start[4]; /* enough to see dots and the byte behind them */
	size_t n = 0, starts = 0;
	bool dot_after_slash = false;
	struct http_utf8 utf8 = {0};

	for (size_t i = 0; i < segment.n; i++, n++) {
		uint8_t c = segment.p[i];
		bool escaped = c == '%';
		enum http_reason no;

		if (escaped) {
			if (segment.n - i < 3 || !char_is(segment.p[i + 1], CHAR_HEX) ||
				!char_is(segment.p[i + 2], CHAR_HEX))
				return HTTP_NO_PATH;
			c = (uint8_t)(char_hex(segment.p[i + 1]) << 4 | char_hex(segment.p[i + 2]));
			i += 2;
		}
		no = byte_judge(c, escaped, flags);
		if (no != HTTP_FINE)
			return no;
		if (!http_utf8_byte(&utf8, c))
			return HTTP_NO_PATH;
		if (starts < sizeof(start))
			start[starts++] = c;
		/* An allowed encoded slash begins a segment for some readers. */
		if (c == '/' || c == '\\') {
			dot_after_slash = dot_after_slash || dots_only(start, starts);
			starts = 0;
		}
	}
	if (utf8.n > 0 || dot_after_slash || dots_only(start, starts))
		return HTTP_NO_PATH;
	return HTTP_FINE;
}

enum http_reason
http_path_judge(struct view path, unsigned flags)
{
	if (path.n == 0 || path.p[0] != '/')
		return HTTP_NO_PATH;
	while (path.n > 0) {
		struct view segment = http_path_next(&path);
		enum http_reason no;

		if (segment.n == 0 && path.n > 0 && (flags & HTTP_PATH_EMPTY) == 0)
			return HTTP_NO_PATH;
		no = segment_judge(segment, flags);
		if (no != HTTP_FINE)
			return no;
	}
	return HTTP_FINE;
}

bool
http_path_under(struct view path, const char *prefix)
{
	size_t n = strlen(prefix);

	if (!view_starts(path, prefix))
		return false;
	return path.n == n || (n > 0 && prefix[n - 1] == '/') || path.p[n] == '/';
}

enum http_reason
http_path_split(struct view path, struct view *ret, size_t max, size_t *ret_n)
{
	size_t n = 0;

	if (path.n == 0 || path.p[0] != '/')
		return HTTP_NO_PATH;
	while (path.n > 1 || n > 0) {
		struct view segment;

		if (path.n == 0)
			break;
		segment = http_path_next(&path);
		if (segment.n == 0 || n == max)
			return HTTP_NO_PATH;
		ret[n++] = segment;
	}
	*ret_n = n;
	return HTTP_FINE;
}
