/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strict parsing; see parse.h. Called by api, relay and cli with bytes of strangers.
 *
 * measure() walks over the bytes before jansson does and counts depth and values. Up to
 * the first byte that jansson refuses, both agree on what is inside a string, so jansson
 * never recurses deeper and never allocates more than was counted. It also refuses NUL
 * bytes: jansson 2.14 loses one that stands behind a number or a word ("[1\0]" is [1]).
 */
#include "lib/json/parse.h"

#include <errno.h>
#include <sys/random.h>

_Static_assert(JANSSON_VERSION_HEX >= 0x020d00, "json_object_seed and error codes are used");

enum { DEPTH_CEILING = 1024 }; /* jansson itself stops at 2048 */

int
json_start(struct err *err)
{
	size_t seed = 0;

	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		return err_errno(err, "cannot get random bytes");
	/* Zero asks jansson to seed itself. */
	json_object_seed(seed | 1);
	return 0;
}

struct position {
	unsigned line, column;
};

static int
limit_refused(struct position at, const char *what, unsigned limit, struct err *err)
{
	return err_set(err, -E2BIG, "line %u, column %u: %s; at most %u are allowed", at.line,
		at.column, what, limit);
}

/* Columns are code points, as jansson counts them. */
static void
advance(struct position *at, uint8_t c)
{
	if (c == '\n') {
		at->line++;
		at->column = 0;
	} else if ((c & 0xc0) != 0x80) {
		at->column++;
	}
}

static int
measure(struct view text, unsigned max_depth, struct err *err)
{
	struct position at = {.line = 1};
	unsigned depth = 0, values = 1;
	bool string = false, escape = false;

	for (size_t i = 0; i < text.n; i++) {
		uint8_t c = text.p[i];

		advance(&at, c);
		if (c == 0)
			return err_set(err, -EINVAL, "line %u, column %u: a NUL byte; send text",
				at.line, at.column);
		if (string) {
			if (!escape && c == '"')
				string = false;
			escape = !escape && c == '\\';
			continue;
		}
		string = c == '"';
		if (c == '[' || c == '{')
			depth++;
		else if ((c == ']' || c == '}') && depth > 0)
			depth--;
		values += c == '[' || c == '{' || c == ',';
		if (depth > max_depth)
			return limit_refused(
				at, "objects and arrays are nested too deeply", max_depth, err);
		if (values > JSON_VALUES_MAX)
			return limit_refused(at, "too many values", JSON_VALUES_MAX, err);
	}
	return 0;
}

static const struct {
	enum json_error_code code;
	const char *says;
} sentences[] = {
	{json_error_invalid_utf8, "this is not valid UTF-8; send the text encoded as UTF-8"},
	{json_error_premature_end_of_input, "the JSON ends too early; send it whole"},
	{json_error_end_of_input_expected,
		"something stands behind the JSON; send one object only"},
	{json_error_null_character, "a string has a NUL (\\u0000); leave it out"},
	{json_error_null_byte_in_key, "a key has a NUL (\\u0000); leave it out"},
	{json_error_duplicate_key, "this key is there twice; keep one"},
	{json_error_numeric_overflow, "the number is too big; send big numbers as strings"},
};

/* jansson quotes what it stumbled over; only the part that it says itself is of use. */
static int
jansson_refused(const json_error_t *e, struct err *err)
{
	const char *near = strstr(e->text, " near ");
	int n = near == NULL ? (int)strlen(e->text) : (int)(near - e->text);

	if (json_error_code(e) == json_error_out_of_memory)
		return err_set(err, -ENOMEM, "no memory for the JSON; send it again later");
	for (size_t i = 0; i < ARRAY_LEN(sentences); i++)
		if (sentences[i].code == json_error_code(e))
			return err_set(err, -EINVAL, "line %d, column %d: %s", e->line, e->column,
				sentences[i].says);
	return err_set(err, -EINVAL,
		"line %d, column %d: this is not JSON (%.*s); send one object as in RFC 8259",
		e->line, e->column, n, e->text);
}

int
json_parse(struct view text, const struct json_limits *limits, json_t **ret, struct err *err)
{
	size_t flags = JSON_REJECT_DUPLICATES | (limits->nul_ok ? JSON_ALLOW_NUL : 0);
	json_error_t refused;
	json_t *j;

	must(limits->max_depth <= DEPTH_CEILING);
	if (text.n > limits->max_bytes)
		return err_set(err, -E2BIG, "the JSON has %zu bytes; at most %zu are allowed",
			text.n, limits->max_bytes);
	if (text.n == 0)
		return err_set(err, -EINVAL, "the JSON is empty; send one object");
	if (measure(text, limits->max_depth, err) < 0)
		return err->code;
	j = json_loadb((const char *)text.p, text.n, flags, &refused);
	if (j == NULL)
		return jansson_refused(&refused, err);
	*ret = j;
	return 0;
}
