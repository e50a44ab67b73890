/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paths of request targets: the strict judge that the gateway applies before it compares a path
 * with a rule (rows F of the egress tables), and splitting and decoding for the routes of the
 * api.
 *
 * The judge exists because the server behind may read the path differently from us. So nothing is
 * normalised; a path that two readers could understand in two ways is refused.
 */
#pragma once

#include "lib/base/view.h"
#include "lib/http/reason.h"

enum {
	HTTP_PATH_ENCODED_SLASH = 1, /* %2F and %5C are fine */
	HTTP_PATH_SEMICOLON = 2,     /* ';' is fine */
	HTTP_PATH_PERCENT = 4, /* %25 is fine (a server that decodes twice sees another path) */
	HTTP_PATH_EMPTY = 8,   /* "//" is fine */
};

/*
 * The path alone, without query. Refused: not starting with '/', raw bytes outside of RFC 3986,
 * malformed escapes, dot segments in any spelling, empty segments (but a last one), escapes of
 * controls or of bytes that are not UTF-8 together, and what the flags above do not allow.
 */
enum http_reason http_path_judge(struct view path, unsigned flags) MUST_CHECK;

/* Whether path is prefix itself or below it: "/v1" and "/v1/" have "/v1/x" below, not "/v1evil". */
bool http_path_under(struct view path, const char *prefix);

/* Takes the next segment off, still encoded; rest begins with '/', and so does what is left, or it is empty. */
struct view http_path_next(struct view *rest);

/*
 * The segments between the slashes, still encoded, borrowed from path; "/" has none. Empty
 * segments, and thus a slash at the end, are refused, and so are more than max.
 */
enum http_reason http_path_split(
	struct view path, struct view *ret, size_t max, size_t *ret_n) MUST_CHECK;

enum {
	HTTP_DECODE_PLUS = 1, /* '+' is a blank: queries and forms */
	HTTP_DECODE_NUL = 2,  /* %00 is fine: contents of files, never names */
};

/*
 * Percent-decoding into the caller's memory, which must have room for text.n bytes. '%' and two hex
 * digits only; the result is UTF-8 and, unless allowed, without NUL. ret may be text.p itself.
 * False: refused.
 */
bool http_percent_decode(struct view text, unsigned flags, uint8_t *ret, size_t *ret_n) MUST_CHECK;
