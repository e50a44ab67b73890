/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lib/json/parse: what is refused, with which sentence, and what jansson makes of the
 * forms that parsers disagree about. These rows also notice another jansson.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/base/buf.h"
#include "lib/json/parse.h"

#include <errno.h>

static const struct json_limits limits = {.max_bytes = 1 << 20, .max_depth = 16};
static const struct json_limits with_nul = {.max_bytes = 1 << 20, .max_depth = 16, .nul_ok = true};

/* A literal with NUL bytes inside. */
#define BYTES(s)                                    \
	{                                           \
		(const uint8_t *)(s), sizeof(s) - 1 \
	}

static void
refused_with_a_sentence(void **state)
{
	static const struct {
		const char *text;
		const char *says;
	} cases[] = {
		{"", "the JSON is empty; send one object"},
		{"  ", "line 1, column 2: the JSON ends too early; send it whole"},
		{"{\"a\":", "line 1, column 5: the JSON ends too early; send it whole"},
		{"[1", "line 1, column 2: the JSON ends too early; send it whole"},
		{"\xef\xbb\xbf{}", "line 1, column 1: this is not JSON ('[' or '{' expected); "
				   "send one object as in RFC 8259"},
		{"1", "line 1, column 1: this is not JSON ('[' or '{' expected); send one object "
		      "as in "
		      "RFC 8259"},
		{"\"a\"", "line 1, column 3: this is not JSON ('[' or '{' expected); send one "
			  "object as in "
			  "RFC 8259"},
		{"{\n  \"\xc3\xa4\": \"x\", bad}",
			"line 2, column 15: this is not JSON (string or '}' "
			"expected); send one object as in RFC 8259"},
		{"{} x",
			"line 1, column 4: something stands behind the JSON; send one object only"},
		{"{}{}",
			"line 1, column 3: something stands behind the JSON; send one object only"},
		{"{\"a\":1,\"a\":2}", "line 1, column 10: this key is there twice; keep one"},
		{"{\"a\":1,\"\\u0061\":2}", "line 1, column 15: this key is there twice; keep one"},
		{"{\"x\":{\"a\":1,\"a\":1}}",
			"line 1, column 15: this key is there twice; keep one"},
		{"[\"\xff\"]", "line 1, column 2: this is not valid UTF-8; send the text encoded "
			       "as UTF-8"},
		{"[\"\xed\xa0\x80\"]", "line 1, column 2: this is not valid UTF-8; send the text "
				       "encoded as UTF-8"},
		{"[\"\xc0\x80\"]", "line 1, column 2: this is not valid UTF-8; send the text "
				   "encoded as UTF-8"},
		{"[\"\\u0000\"]", "line 1, column 9: a string has a NUL (\\u0000); leave it out"},
		{"{\"\\u0000\":1}", "line 1, column 9: a key has a NUL (\\u0000); leave it out"},
		{"[1e999]", "line 1, column 6: the number is too big; send big numbers as strings"},
		{"[-1e999]",
			"line 1, column 7: the number is too big; send big numbers as strings"},
		{"[9223372036854775808]",
			"line 1, column 20: the number is too big; send big numbers as strings"},
		{"[-9223372036854775809]",
			"line 1, column 21: the number is too big; send big numbers as strings"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_t *j = NULL;
		struct err err = {0};

		if (json_parse(view_str(cases[i].text), &limits, &j, &err) != -EINVAL)
			fail_msg("case %zu was not refused", i);
		assert_null(j);
		assert_string_equal(err.text, cases[i].says);
		assert_int_equal(err.code, -EINVAL);
	}
}

static void
refused_forms(void **state)
{
	static const struct view cases[] = {
		BYTES("[NaN]"),
		BYTES("[Infinity]"),
		BYTES("[-Infinity]"),
		BYTES("[nan]"),
		BYTES("[+1]"),
		BYTES("[01]"),
		BYTES("[1.]"),
		BYTES("[.5]"),
		BYTES("[-]"),
		BYTES("[1e]"),
		BYTES("[0x1]"),
		BYTES("[1 2]"),
		BYTES("[1,]"),
		BYTES("[,1]"),
		BYTES("{\"a\":1,}"),
		BYTES("{a:1}"),
		BYTES("{'a':1}"),
		BYTES("{\"a\" 1}"),
		BYTES("[truefalse]"),
		BYTES("[True]"),
		BYTES("[nul]"),
		BYTES("[\"\\ud800\"]"),
		BYTES("[\"\\udc00\"]"),
		BYTES("[\"\\ud800\\u0041\"]"),
		BYTES("[\"\\ud800\\ud800\"]"),
		BYTES("[\"\\udc00\\ud800\"]"),
		BYTES("[\"\\ud800x\"]"),
		BYTES("[\"\\x41\"]"),
		BYTES("[\"\\'\"]"),
		BYTES("[\"\\u12\"]"),
		BYTES("[\"\t\"]"),
		BYTES("[\"\n\"]"),
		BYTES("[\"\x01\"]"),
		BYTES("[\"a\0b\"]"),
		BYTES("{}\0"),
		BYTES("\0{}"),
		BYTES("[1\0]"), /* jansson alone loses these */
		BYTES("[true\0]"),
		BYTES("[1.5\0,2]"),
		BYTES("{\"a\":null\0}"),
		BYTES("[\f1]"),
		BYTES("[\v1]"),
		BYTES("[\xc2\xa0]"),
		BYTES("[1]//"),
		BYTES("[/**/1]"),
		BYTES("\xff\xfe[\0]\0"),
		BYTES("[\0]\0"),
		BYTES("]"),
		BYTES("}"),
		BYTES("[}"),
		BYTES("{]"),
		BYTES("[\"a"),
		BYTES("[\"a\\"),
		BYTES("[\"\\\""),
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_t *j = NULL;
		struct err err = {0};

		if (json_parse(cases[i], &limits, &j, &err) != -EINVAL)
			fail_msg("case %zu was not refused: %.*s", i, VIEW_ARGS(cases[i]));
		assert_null(j);
		/* NUL that is allowed as an escape is not allowed as a byte. */
		assert_int_equal(json_parse(cases[i], &with_nul, &j, &err), -EINVAL);
	}
}

static void
accepted_forms(void **state)
{
	static const struct {
		const char *text;
		const char *dump;
	} cases[] = {
		{"{}", "{}"},
		{" \t\r\n[ ] \n", "[]"},
		{"[-0]", "[0]"},
		{"[-0.0]", "[-0.0]"},
		{"[1e3]", "[1000.0]"},
		{"[1e-999]", "[0.0]"},
		{"[0e99999]", "[0.0]"},
		{"[9223372036854775807,-9223372036854775808]",
			"[9223372036854775807,-9223372036854775808]"},
		{"[\"\\ud83d\\ude00\"]", "[\"\xf0\x9f\x98\x80\"]"},
		{"[\"\\/\"]", "[\"/\"]"},
		{"[\"\xef\xbf\xbf\\uffff\"]", "[\"\xef\xbf\xbf\xef\xbf\xbf\"]"},
		{"{\"__proto__\":1,\"\":2}", "{\"__proto__\":1,\"\":2}"},
		{"{\"a\":{\"b\":1},\"b\":{\"b\":1}}", "{\"a\":{\"b\":1},\"b\":{\"b\":1}}"},
		{"[\"[[[[[[[[[[[[[[[[[[[[,,,\\\"[[\"]", "[\"[[[[[[[[[[[[[[[[[[[[,,,\\\"[[\"]"},
		{"[\"\\\\\",[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]",
			"[\"\\\\\",[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_json json_t *j = NULL;
		auto_free char *dump = NULL;
		struct err err = {0};

		if (json_parse(view_str(cases[i].text), &limits, &j, &err) < 0)
			fail_msg("case %zu: %s", i, err.text);
		dump = json_dumps(j, JSON_COMPACT);
		assert_string_equal(dump, cases[i].dump);
	}
}

static void
nul_when_allowed(void **state)
{
	auto_json json_t *j = NULL;
	struct err err = {0};

	(void)state;
	assert_int_equal(json_parse(view_str("[\"a\\u0000b\"]"), &with_nul, &j, &err), 0);
	assert_int_equal(json_string_length(json_array_get(j, 0)), 3);
	json_t *k = NULL;
	assert_int_equal(json_parse(view_str("{\"a\\u0000\":1}"), &with_nul, &k, &err), -EINVAL);
}

static int
parse_nested(unsigned depth, bool closed, const char *before, struct err *err)
{
	auto_buf struct buf b = {.max = 1 << 20};
	auto_json json_t *j = NULL;

	buf_add_str(&b, before);
	for (unsigned i = 0; i < depth; i++)
		buf_add_str(&b, i % 2 == 0 ? "[" : "{\"a\":");
	buf_add_str(&b, "1");
	for (unsigned i = depth; closed && i-- > 0;)
		buf_add_str(&b, i % 2 == 0 ? "]" : "}");
	return json_parse(buf_view(&b), &limits, &j, err);
}

static void
depth_is_limited(void **state)
{
	struct err err = {0};

	(void)state;
	assert_int_equal(parse_nested(16, true, "", &err), 0);
	assert_int_equal(parse_nested(17, true, "", &err), -E2BIG);
	assert_string_equal(err.text, "line 1, column 49: objects and arrays are nested too "
				      "deeply; at most 16 are allowed");
	assert_int_equal(parse_nested(100000, true, "", &err), -E2BIG);
	assert_int_equal(parse_nested(100000, false, "", &err), -E2BIG);
	assert_int_equal(parse_nested(17, true, "\n\n", &err), -E2BIG);
	assert_string_equal(err.text, "line 3, column 49: objects and arrays are nested too "
				      "deeply; at most 16 are allowed");
	/* What is inside a string is known with its escapes, or a bomb hides behind one. */
	assert_int_equal(parse_nested(15, true, "[\"\\\"\",", &err), -EINVAL);
	assert_int_equal(parse_nested(16, true, "[\"\\\"\",", &err), -E2BIG);
	assert_int_equal(parse_nested(16, true, "[\"\\\\\",", &err), -E2BIG);
	assert_int_equal(parse_nested(16, true, "[\"\\\\\\\"\",", &err), -E2BIG);
	/* Closing brackets too many do not make room for more. */
	assert_int_equal(parse_nested(17, true, "]]]]]]", &err), -E2BIG);
}

static void
size_and_values_are_limited(void **state)
{
	const struct json_limits five = {.max_bytes = 5, .max_depth = 2};
	auto_buf struct buf b = {.max = 1 << 20};
	json_t *j = NULL;
	struct err err = {0};

	(void)state;
	assert_int_equal(json_parse(view_str("[1234]"), &five, &j, &err), -E2BIG);
	assert_string_equal(err.text, "the JSON has 6 bytes; at most 5 are allowed");
	assert_int_equal(json_parse(view_str("[123]"), &five, &j, &err), 0);
	json_decref(j);
	j = NULL;
	buf_add_byte(&b, '[');
	for (unsigned i = 0; i < JSON_VALUES_MAX - 2; i++)
		buf_add_str(&b, "1,");
	size_t n = b.n;
	buf_add_str(&b, "1]");
	assert_int_equal(json_parse(buf_view(&b), &limits, &j, &err), 0);
	assert_int_equal(json_array_size(j), JSON_VALUES_MAX - 1);
	json_decref(j);
	j = NULL;
	b.n = n;
	buf_add_str(&b, "1,1]");
	assert_int_equal(json_parse(buf_view(&b), &limits, &j, &err), -E2BIG);
	assert_string_equal(
		err.text, "line 1, column 32767: too many values; at most 16384 are allowed");
	assert_null(j);
	buf_clear(&b);
	buf_add_byte(&b, '[');
	for (unsigned i = 0; i < JSON_VALUES_MAX; i++)
		buf_add_str(&b, "{},");
	buf_add_str(&b, "1]");
	assert_int_equal(json_parse(buf_view(&b), &limits, &j, &err), -E2BIG);
}

static void
errors_are_printable(void **state)
{
	json_t *j = NULL;
	struct err err = {0};

	(void)state;
	assert_int_equal(
		json_parse(view_str("{\"a\":\x1b[31m\xe2\x80\xae}"), &limits, &j, &err), -EINVAL);
	for (const char *s = err.text; *s != '\0'; s++)
		assert_true(*s >= 0x20 && *s <= 0x7e);
	assert_null(strstr(err.text, "[31m"));
}

static void
starts(void **state)
{
	struct err err = {0};

	(void)state;
	assert_int_equal(json_start(&err), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(starts),
		cmocka_unit_test(refused_with_a_sentence),
		cmocka_unit_test(refused_forms),
		cmocka_unit_test(accepted_forms),
		cmocka_unit_test(nul_when_allowed),
		cmocka_unit_test(depth_is_limited),
		cmocka_unit_test(size_and_values_are_limited),
		cmocka_unit_test(errors_are_printable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
