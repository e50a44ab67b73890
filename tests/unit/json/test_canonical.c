/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lib/json/canonical: one value has one sequence of bytes, and what the profile has no form for is refused with its place. The rows
 * `conformance` are the kinds of document that suites of JSON parsers ask about; a row says that RFC 8259 allows it, and what becomes of it
 * here. Names with a letter and a number are the cases of the design.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/base/sha256.h"
#include "lib/canon/read.h"
#include "lib/json/canonical.h"
#include "lib/json/parse.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROOM = 300000 };

/* Parses and writes; 0 or the refusal. The bytes that came are canonical. */
static int
convert(struct view text, struct buf *out, struct err *err)
{
	static const struct json_limits limits = {.max_bytes = 1 << 20, .max_depth = 64};
	auto_json json_t *j = NULL;

	if (json_parse(text, &limits, &j, err) < 0)
		return err->code;
	if (canonical_json(j, "value", out, err) < 0) {
		assert_int_equal(out->n, 0);
		return err->code;
	}
	assert_int_equal(canon_check(buf_view(out), true, err), 0);
	return 0;
}

static void
is(const char *text, const char *want)
{
	auto_buf struct buf out = {.max = ROOM};
	struct err err = {0};

	if (convert(view_str(text), &out, &err) < 0)
		fail_msg("%s was refused: %s", text, err.text);
	if (!view_is(buf_view(&out), want))
		fail_msg("%s became %.*s", text, VIEW_ARGS(buf_view(&out)));
}

static void
refused(const char *text, int code, const char *says)
{
	auto_buf struct buf out = {.max = ROOM};
	struct err err = {0};

	if (convert(view_str(text), &out, &err) != code)
		fail_msg("%s: code %d, %s", text, err.code, err.text);
	if (strstr(err.text, says) == NULL)
		fail_msg("%s: it says: %s", text, err.text);
}

static void
A1_a_key_that_comes_twice_is_refused(void **state)
{
	(void)state;
	refused("{\"a\":1,\"a\":1}", -EINVAL, "this key is there twice");
	refused("{\"a\":1,\"\\u0061\":2}", -EINVAL, "this key is there twice");
	refused("{\"o\":[{\"cents\":1,\"b\":2,\"c\\u0065nts\":9}]}", -EINVAL,
		"this key is there twice");
	is("{\"a\":1,\"A\":2}", "{\"A\":2,\"a\":1}");
}

static void
A3_only_integers_are_numbers(void **state)
{
	static const char *const reals[] = {"42.00", "4.2e1", "0.42E2", "42e0", "42E0", "1e2",
		"1.5", "-0.0", "0e0", "1E-2", "0.1"};
	char text[64];

	(void)state;
	is("{\"cents\":42}", "{\"cents\":42}");
	for (size_t i = 0; i < ARRAY_LEN(reals); i++) {
		(void)snprintf(text, sizeof(text), "{\"cents\":%s}", reals[i]);
		refused(text, -EINVAL,
			"value.cents: a number with a fraction or an exponent is not allowed");
	}
}

static void
A4_integers_beyond_2_53_are_refused_and_as_strings_kept(void **state)
{
	(void)state;
	is("[9007199254740991]", "[9007199254740991]");
	is("[-9007199254740991]", "[-9007199254740991]");
	refused("[9007199254740992]", -EINVAL, "value[0]: the number is beyond 2^53 - 1");
	refused("[9007199254740993]", -EINVAL, "value[0]: the number is beyond 2^53 - 1");
	refused("[-9007199254740992]", -EINVAL, "value[0]: the number is beyond 2^53 - 1");
	refused("{\"id\":12345678901234567890}", -EINVAL, "send big numbers as strings");
	is("{\"id\":\"12345678901234567890\"}", "{\"id\":\"12345678901234567890\"}");
}

static void
A6_minus_zero_is_zero(void **state)
{
	(void)state;
	is("{\"a\":-0}", "{\"a\":0}");
	refused("{\"a\":-0.0}", -EINVAL, "fraction or an exponent");
}

static void
A7_order_of_keys_and_white_space_do_not_matter(void **state)
{
	static const char *const forms[] = {
		"{\"operation\":\"refund\",\"arguments\":{\"order_id\":\"48221\",\"cents\":4200}}",
		"{\"arguments\":{\"cents\":4200,\"order_id\":\"48221\"},\"operation\":\"refund\"}",
		(" {\r\n\t\"arguments\": {\"order_id\":\"4822\\u0031\", \"c\\u0065nts\": "
		 "4200},\n\"operation\" :\"refund\"}\n "),
	};
	uint8_t first[SHA256_BYTES], other[SHA256_BYTES];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
		auto_buf struct buf out = {.max = PROPOSAL_CANONICAL_MAX};
		struct err err = {0};

		if (canonical_proposal_parse(view_str(forms[i]), &out, &err) < 0)
			fail_msg("form %zu: %s", i, err.text);
		assert_true(view_is(buf_view(&out),
			"{\"arguments\":{\"cents\":4200,\"order_id\":\"48221\"},\"note\":\"\","
			"\"operation\":\"refund\"}"));
		sha256_of(buf_view(&out), i == 0 ? first : other);
		if (i > 0)
			assert_memory_equal(first, other, SHA256_BYTES);
	}
}

static void
A8_keys_are_ascii_so_their_order_is_plain(void **state)
{
	(void)state;
	is("{\"b\":1,\"a_\":2,\"a1\":3,\"aB\":4,\"aA\":5,\"a\":6,\"Z\":7}",
		"{\"Z\":7,\"a\":6,\"a1\":3,\"aA\":5,\"aB\":4,\"a_\":2,\"b\":1}");
	refused("{\"\\uE000\":1}", -EINVAL, "value: a key is not of A-Z");
	refused("{\"\\uD800\\uDC00\":1}", -EINVAL, "value: a key is not of A-Z");
	refused("{\"x\":{\"\":1}}", -EINVAL, "value.x: a key is not of A-Z");
	refused("[{\"1a\":1}]", -EINVAL, "value[0]: a key is not of A-Z");
	refused("{\"__proto__\":1}", -EINVAL, "value: a key is not of A-Z");
	refused("{\"a-b\":1}", -EINVAL, "value: a key is not of A-Z");
}

/* Not normalised and not asked: two forms are two values, and the schema refuses the second one as an identifier. */
static void
A9_forms_of_a_letter_stay_what_they_are(void **state)
{
	(void)state;
	is("[\"\xc3\xa9\"]", "[\"\xc3\xa9\"]");
	is("[\"e\xcc\x81\"]", "[\"e\xcc\x81\"]");
	is("[\"\\u00e9\"]", "[\"\xc3\xa9\"]");
}

/* n opening brackets, and if `closed` as many closing ones. */
static void
nested(struct buf *b, size_t n, bool closed)
{
	buf_clear(b);
	for (size_t i = 0; i < n; i++)
		buf_add_byte(b, '[');
	for (size_t i = 0; closed && i < n; i++)
		buf_add_byte(b, ']');
	assert_int_equal(buf_check(b), 0);
}

static void
A11_depth_is_bounded(void **state)
{
	auto_buf struct buf b = {.max = 1 << 20}, out = {.max = ROOM};
	struct err err = {0};

	(void)state;
	nested(&b, 16, true);
	assert_int_equal(convert(buf_view(&b), &out, &err), 0);
	assert_true(view_eq(buf_view(&b), buf_view(&out)));
	buf_clear(&out);
	nested(&b, 17, true);
	assert_int_equal(convert(buf_view(&b), &out, &err), -E2BIG);
	assert_non_null(strstr(err.text, "value[0][0][0]"));
	assert_non_null(strstr(err.text, ": more than 16 objects and arrays"));
	nested(&b, 500, true);
	assert_int_equal(convert(buf_view(&b), &out, &err), -E2BIG);
	nested(&b, 100000, false);
	assert_int_equal(convert(buf_view(&b), &out, &err), -E2BIG);
	assert_int_equal(canonical_proposal_parse(buf_view(&b), &out, &err), -E2BIG);
}

/* In a proposal one level is the proposal itself. */
static void
A11_depth_of_a_proposal_counts_from_its_outside(void **state)
{
	auto_buf struct buf b = {.max = 1 << 16}, out = {.max = PROPOSAL_CANONICAL_MAX},
			    text = {.max = 1 << 16};
	struct err err = {0};

	(void)state;
	for (size_t levels = 14; levels <= 15; levels++) {
		nested(&b, levels, true);
		buf_clear(&text);
		buf_addf(&text, "{\"operation\":\"o\",\"arguments\":{\"a\":%.*s}}",
			VIEW_ARGS(buf_view(&b)));
		assert_int_equal(canonical_proposal_parse(buf_view(&text), &out, &err),
			levels == 14 ? 0 : -E2BIG);
	}
}

static void
A12_absent_null_and_empty_are_three_values(void **state)
{
	(void)state;
	is("{}", "{}");
	is("{\"a\":null}", "{\"a\":null}");
	is("{\"a\":\"\"}", "{\"a\":\"\"}");
	is("{\"a\":[]}", "{\"a\":[]}");
	is("{\"a\":{}}", "{\"a\":{}}");
	is("{\"a\":false}", "{\"a\":false}");
}

static void
A14_nothing_may_stand_behind(void **state)
{
	(void)state;
	refused("{} {}", -EINVAL, "something stands behind the JSON");
	refused("{}[]", -EINVAL, "something stands behind the JSON");
	refused("{}\n1", -EINVAL, "something stands behind the JSON");
	refused("{},", -EINVAL, "something stands behind the JSON");
	refused("{}#", -EINVAL, "something stands behind the JSON");
	is("{} \r\n\t", "{}");
}

static void
strings_keep_every_character_that_the_profile_has(void **state)
{
	(void)state;
	is("[\"a\\/b\\u002F\"]", "[\"a/b/\"]");
	is("[\"\\u0022\\u005c\"]", "[\"\\\"\\\\\"]");
	is("[\"line\\nbreak\\ttab\"]", "[\"line\\nbreak\\ttab\"]");
	is("[\"\\u007f\\u0085\\u2028\\u202e\"]", "[\"\x7f\xc2\x85\xe2\x80\xa8\xe2\x80\xae\"]");
	is("[\"\\uD83D\\uDE02\"]", "[\"\xf0\x9f\x98\x82\"]");
	refused("[\"\\u0000\"]", -EINVAL, "a string has a NUL");
	refused("[\"\\u001b[31m\"]", -EINVAL, "value[0]: the control character U+001B");
	refused("[\"a\\r\\nb\"]", -EINVAL, "value[0]: the control character U+000D");
	refused("[\"\\b\"]", -EINVAL, "value[0]: the control character U+0008");
	refused("[\"\\uffff\"]", -EINVAL, "value[0]: U+FFFF is not a character");
	refused("[\"\\ufdd0\"]", -EINVAL, "value[0]: U+FDD0 is not a character");
	refused("[\"\xf4\x8f\xbf\xbf\"]", -EINVAL, "value[0]: U+10FFFF is not a character");
}

static void
a_refusal_names_the_place(void **state)
{
	char text[400], *at = text;

	(void)state;
	refused("{\"a\":{\"items\":[1,{\"cents\":1.5}]}}", -EINVAL,
		"value.a.items[1].cents: a number");
	refused("{\"a\":{\"b\":1},\"c\":[[],[1.5]]}", -EINVAL, "value.c[1][0]: a number");
	/* A long place loses its end, not the sentence. */
	at += sprintf(at, "{\"");
	for (int i = 0; i < 300; i++)
		*at++ = 'k';
	(void)sprintf(at, "\":1.5}");
	refused(text, -EINVAL, "kkkk: a number with a fraction or an exponent is not allowed");
}

static void
more_than_there_is_room_for_is_refused(void **state)
{
	auto_buf struct buf b = {.max = 1 << 20}, small = {.max = 20}, out = {.max = 1 << 20};
	struct err err = {0};

	(void)state;
	buf_add_str(&b, "[\"");
	for (int i = 0; i < 262144 - 4; i++)
		buf_add_byte(&b, 'x');
	buf_add_str(&b, "\"]");
	assert_int_equal(convert(buf_view(&b), &out, &err), 0);
	buf_clear(&b);
	buf_clear(&out);
	buf_add_str(&b, "[\"");
	for (int i = 0; i < 262144 - 3; i++)
		buf_add_byte(&b, 'x');
	buf_add_str(&b, "\"]");
	assert_int_equal(convert(buf_view(&b), &out, &err), -E2BIG);
	assert_int_equal(
		convert(view_str("[\"0123456789\",\"0123456789\"]"), &small, &err), -ENOBUFS);
}

static void
what_was_in_the_buffer_stays(void **state)
{
	auto_json json_t *good = json_pack("{s:i}", "a", 1),
			 *bad = json_pack("{s:i,s:f}", "a", 1, "b", 1.5);
	auto_buf struct buf out = {.max = 100};
	struct err err = {0};

	(void)state;
	buf_add_str(&out, "head");
	assert_int_equal(canonical_json(bad, "x", &out, &err), -EINVAL);
	assert_string_equal(err.text,
		"x.b: a number with a fraction or an exponent is not allowed; send an integer "
		"(money in its smallest unit)");
	assert_true(view_is(buf_view(&out), "head"));
	assert_int_equal(canonical_json(good, "x", &out, &err), 0);
	assert_true(view_is(buf_view(&out), "head{\"a\":1}"));
}

static void
proposal_is(const char *text, const char *want)
{
	auto_buf struct buf out = {.max = PROPOSAL_CANONICAL_MAX};
	struct err err = {0};

	if (canonical_proposal_parse(view_str(text), &out, &err) < 0)
		fail_msg("%s was refused: %s", text, err.text);
	if (!view_is(buf_view(&out), want))
		fail_msg("%s became %.*s", text, VIEW_ARGS(buf_view(&out)));
}

static void
proposal_refused(const char *text, const char *says)
{
	auto_buf struct buf out = {.max = PROPOSAL_CANONICAL_MAX};
	struct err err = {0};

	if (canonical_proposal_parse(view_str(text), &out, &err) != -EINVAL)
		fail_msg("%s: code %d %s", text, err.code, err.text);
	if (strstr(err.text, says) == NULL)
		fail_msg("%s: it says: %s", text, err.text);
	assert_int_equal(out.n, 0);
}

static void
a_proposal_has_three_fields(void **state)
{
	(void)state;
	proposal_is("{\"operation\":\"reply\",\"arguments\":{},\"note\":\"the customer\\nasked\"}",
		"{\"arguments\":{},\"note\":\"the customer\\nasked\",\"operation\":\"reply\"}");
	proposal_refused("{\"arguments\":{}}", "operation");
	proposal_refused("{\"operation\":\"reply\"}", "arguments");
	proposal_refused("{\"operation\":\"reply\",\"arguments\":null}", "arguments");
	proposal_refused("{\"operation\":\"reply\",\"arguments\":[]}", "arguments");
	proposal_refused("{\"operation\":\"reply\",\"arguments\":\"{}\"}", "arguments");
	proposal_refused("{\"operation\":\"reply\",\"arguments\":{},\"note\":null}", "note");
	proposal_refused("{\"operation\":\"reply\",\"arguments\":{},\"note\":\"\\u001b[2J\"}",
		"note: the control character U+001B");
	proposal_refused("{\"operation\":7,\"arguments\":{}}", "operation");
	proposal_refused("{\"operation\":\"Reply\",\"arguments\":{}}",
		"operation must be the name of an operation");
	proposal_refused("{\"operation\":\"../reply\",\"arguments\":{}}",
		"operation must be the name of an operation");
	proposal_refused("{\"operation\":\"1reply\",\"arguments\":{}}",
		"operation must be the name of an operation");
	proposal_refused("{\"operation\":\"\",\"arguments\":{}}", "operation");
	proposal_refused("[]", "must be a JSON object");
}

/* A2 at the outside of a proposal; inside the arguments the schema refuses it. */
static void
A2_another_field_of_a_proposal_is_refused(void **state)
{
	static const char *const names[] = {"approved", "approver", "tenant", "task", "digest",
		"capability", "__proto__", "idempotency_key", "Operation", "provenance"};
	char text[128];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		(void)snprintf(text, sizeof(text),
			"{\"operation\":\"refund\",\"arguments\":{},\"%s\":true}", names[i]);
		proposal_refused(text, names[i]);
	}
}

static void
sizes_of_a_proposal(void **state)
{
	auto_buf struct buf b = {.max = 1 << 17}, out = {.max = PROPOSAL_CANONICAL_MAX};
	struct err err = {0};

	(void)state;
	for (int more = 0; more <= 1; more++) {
		buf_clear(&b);
		buf_clear(&out);
		buf_add_str(&b, "{\"operation\":\"o\",\"arguments\":{},\"note\":\"");
		for (int i = 0; i < PROPOSAL_NOTE_MAX + more; i++)
			buf_add_byte(&b, 'n');
		buf_add_str(&b, "\"}");
		assert_int_equal(canonical_proposal_parse(buf_view(&b), &out, &err),
			more == 0 ? 0 : -EINVAL);
	}
	for (int more = 0; more <= 1; more++) {
		static const char head[] = "{\"operation\":\"o\",\"arguments\":{\"a\":\"";

		buf_clear(&b);
		buf_clear(&out);
		buf_add_str(&b, head);
		while (b.n < PROPOSAL_TEXT_MAX - 3 + (size_t)more)
			buf_add_byte(&b, 'a');
		buf_add_str(&b, "\"}}");
		assert_int_equal(
			canonical_proposal_parse(buf_view(&b), &out, &err), more == 0 ? 0 : -E2BIG);
	}
}

/* An escape is never longer in the canonical bytes than in the text, so the room of a message holds every text. */
static void
no_text_outgrows_the_room_of_a_message(void **state)
{
	auto_buf struct buf b = {.max = 1 << 17}, out = {.max = PROPOSAL_CANONICAL_MAX};
	struct err err = {0};

	(void)state;
	buf_add_str(&b, "{\"operation\":\"o\",\"arguments\":{\"a\":\"");
	while (b.n < PROPOSAL_TEXT_MAX - 5)
		buf_add_str(&b, b.n % 3 == 0 ? "\\n" : "\\\"");
	buf_add_str(&b, "\"}}");
	assert_int_equal(canonical_proposal_parse(buf_view(&b), &out, &err), 0);
}

enum verdict {
	KEPT,    /* has a canonical form */
	PURPOSE, /* JSON, and the profile refuses it on purpose */
	OTHER,   /* no JSON object or array, or free to a parser and refused by this one */
};

static const struct conformance {
	const char *name, *text;
	enum verdict verdict;
} conformance[] = {
	{"array with spaces", "[[] ]", KEPT},
	{"array with the empty string", "[\"\"]", KEPT},
	{"array empty", "[]", KEPT},
	{"array of mixed values", "[null, 1, \"1\", {}]", KEPT},
	{"array with newlines", "[1\n]", KEPT},
	{"array with many nulls", "[1,null,null,null,2]", KEPT},
	{"array with space behind", "[2] ", KEPT},
	{"literal null, false, true", "[null,false,true]", KEPT},
	{"integer", "[123]", KEPT},
	{"integer negative", "[-123]", KEPT},
	{"integer minus one", "[-1]", KEPT},
	{"integer minus zero", "[-0]", KEPT},
	{"integer zero", "[0]", KEPT},
	{"integer behind a space", "[ 4]", KEPT},
	{"object plain", "{\"asd\":\"sdf\", \"dfg\":\"fgh\"}", KEPT},
	{"object empty", "{}", KEPT},
	{"object with newlines", "{\n\"a\": \"b\"\n}", KEPT},
	{"string with an escaped quote", "[\"\\\"\"]", KEPT},
	{"string with an escaped backslash", "[\"\\\\\"]", KEPT},
	{"string with a comment inside", "[\"a/*b*/c/*d//e\"]", KEPT},
	{"string of two bytes", "[\"\\u0123\"]", KEPT},
	{"string of a surrogate pair", "[\"\\ud801\\udc37\"]", KEPT},
	{"string with U+007F", "[\"\x7f\"]", KEPT},
	{"string with U+2028", "[\"\xe2\x80\xa8\"]", KEPT},
	{"string with U+200B", "[\"\\u200B\"]", KEPT},
	{"string of four bytes", "[\"\xf0\x9b\xbf\xbf\"]", KEPT},
	{"string with a tab escape", "[\"\\u0009\"]", KEPT},
	{"string with an escaped solidus", "[\"\\/\"]", KEPT},
	{"string of Greek", "[\"\xcf\x80\"]", KEPT},
	{"string with a lone BOM character inside", "[\"\xef\xbb\xbf\"]", KEPT},

	{"real", "[123.456789]", PURPOSE},
	{"real of an exponent", "[1e3]", PURPOSE},
	{"real, capital E", "[1E22]", PURPOSE},
	{"real, capital E, negative exponent", "[1E-2]", PURPOSE},
	{"real, capital E, positive exponent", "[1E+2]", PURPOSE},
	{"real, fraction and exponent", "[123.456e78]", PURPOSE},
	{"real, zero exponent", "[0e1]", PURPOSE},
	{"real, zero e plus", "[0e+1]", PURPOSE},
	{"real near zero", "[-0.000000000000000000000000000000000000000000000000000000000001]",
		PURPOSE},
	{"object, key twice", "{\"a\":\"b\",\"a\":\"c\"}", PURPOSE},
	{"object, key twice and the same value", "{\"a\":\"b\",\"a\":\"b\"}", PURPOSE},
	{"object, empty key", "{\"\":0}", PURPOSE},
	{"object, key with NUL", "{\"foo\\u0000bar\": 42}", PURPOSE},
	{"object, key of Cyrillic", "{\"\\u041f\":1}", PURPOSE},
	{"object, key with a space", "{\"a b\":1}", PURPOSE},
	{"string with NUL", "[\"\\u0000\"]", PURPOSE},
	{"string with all short escapes", "[\"\\b\\f\\n\\r\\t\"]", PURPOSE},
	{"string with U+0012", "[\"\\u0012\"]", PURPOSE},
	{"string with U+FFFF", "[\"\\uFFFF\"]", PURPOSE},
	{"string with U+FDD0", "[\"\\uFDD0\"]", PURPOSE},
	{"string with U+1FFFE", "[\"\\uD83F\\uDFFE\"]", PURPOSE},
	{"string with U+10FFFE", "[\"\\uDBFF\\uDFFE\"]", PURPOSE},
	{"lonely number", "42", PURPOSE},
	{"lonely string", "\"asd\"", PURPOSE},
	{"lonely true", "true", PURPOSE},
	{"lonely null", "null", PURPOSE},

	{"free: integer too big", "[100000000000000000000]", OTHER},
	{"free: integer too small", "[-123123123123123123123123123123]", OTHER},
	{"free: huge exponent", "[0.4e00669999999999999999999999999999999999969999999]", OTHER},
	{"free: real overflow", "[123123e100000]", OTHER},
	{"free: real underflow", "[123e-10000000]", OTHER},
	{"free: high surrogate alone", "[\"\\uDADA\"]", OTHER},
	{"free: low surrogate alone", "[\"\\uDFAA\"]", OTHER},
	{"free: surrogates the wrong way", "[\"\\uDd1e\\uD834\"]", OTHER},
	{"free: half a pair, then text", "[\"\\uD800abc\"]", OTHER},
	{"free: invalid UTF-8", "[\"\xff\"]", OTHER},
	{"free: overlong", "[\"\xc0\xaf\"]", OTHER},
	{"free: surrogate in UTF-8", "[\"\xed\xa0\x80\"]", OTHER},
	{"free: beyond Unicode", "[\"\xf4\xbf\xbf\xbf\"]", OTHER},
	{"free: truncated UTF-8", "[\"\xe0\xff\"]", OTHER},
	{"free: byte order mark before", "\xef\xbb\xbf{}", OTHER},

	{"no: comma after the last", "[1,]", OTHER},
	{"no: comma before the first", "[,1]", OTHER},
	{"no: two commas", "[1,,2]", OTHER},
	{"no: colon in an array", "[\"a\": 1]", OTHER},
	{"no: missing comma", "[1 true]", OTHER},
	{"no: unclosed array", "[1", OTHER},
	{"no: closed twice", "[1]]", OTHER},
	{"no: wrong bracket", "[1}", OTHER},
	{"no: only a bracket", "[", OTHER},
	{"no: nul", "[nul]", OTHER},
	{"no: True", "[True]", OTHER},
	{"no: NaN", "[NaN]", OTHER},
	{"no: Infinity", "[Infinity]", OTHER},
	{"no: minus Infinity", "[-Infinity]", OTHER},
	{"no: plus one", "[+1]", OTHER},
	{"no: leading zeros", "[012]", OTHER},
	{"no: minus and leading zero", "[-012]", OTHER},
	{"no: hexadecimal", "[0x1]", OTHER},
	{"no: fraction without digits", "[2.]", OTHER},
	{"no: digits before the point missing", "[.5]", OTHER},
	{"no: exponent without digits", "[1e]", OTHER},
	{"no: exponent of two signs", "[1e+-2]", OTHER},
	{"no: minus alone", "[-]", OTHER},
	{"no: two minus", "[--1]", OTHER},
	{"no: space in a number", "[1 000]", OTHER},
	{"no: full-width digit", "[\xef\xbc\x91]", OTHER},
	{"no: number and letters", "[1a]", OTHER},
	{"no: key without quotes", "{a: 1}", OTHER},
	{"no: key in single quotes", "{'a': 1}", OTHER},
	{"no: number as key", "{1: 1}", OTHER},
	{"no: key without value", "{\"a\"}", OTHER},
	{"no: value missing", "{\"a\":}", OTHER},
	{"no: two colons", "{\"a\"::1}", OTHER},
	{"no: comma in place of a colon", "{\"a\",1}", OTHER},
	{"no: comma after the last pair", "{\"a\":1,}", OTHER},
	{"no: comment behind", "{\"a\":1}/**/", OTHER},
	{"no: comment of a line", "{\"a\":1}//", OTHER},
	{"no: comment inside", "{\"a\":/*x*/1}", OTHER},
	{"no: object unclosed", "{\"a\":1", OTHER},
	{"no: bare word behind", "{\"a\":\"b\"} x", OTHER},
	{"no: string unclosed", "[\"a]", OTHER},
	{"no: single quotes", "['a']", OTHER},
	{"no: escape of x", "[\"\\x00\"]", OTHER},
	{"no: escape of a", "[\"\\a\"]", OTHER},
	{"no: escape of a digit", "[\"\\0\"]", OTHER},
	{"no: escape at the end", "[\"\\\"]", OTHER},
	{"no: short u escape", "[\"\\u00A\"]", OTHER},
	{"no: u escape of letters", "[\"\\uqqqq\"]", OTHER},
	{"no: capital U escape", "[\"\\U0041\"]", OTHER},
	{"no: tab unescaped", "[\"\t\"]", OTHER},
	{"no: newline unescaped", "[\"a\nb\"]", OTHER},
	{"no: bare text", "abc", OTHER},
	{"no: empty", "", OTHER},
	{"no: space only", " ", OTHER},
	{"no: form feed as space", "[\f]", OTHER},
	{"no: U+00A0 as space", "[\xc2\xa0]", OTHER},
	{"no: U+2060 as space", "[\xe2\x81\xa0]", OTHER},
	{"no: angle brackets", "<.>", OTHER},
	{"no: two values", "[][]", OTHER},
	{"no: value before the object", "2{}", OTHER},
};

static void
conformance_rows(void **state)
{
	size_t kept = 0, purpose = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(conformance); i++) {
		const struct conformance *c = &conformance[i];
		auto_buf struct buf out = {.max = ROOM}, again = {.max = ROOM};
		struct err err = {0};
		int rc = convert(view_str(c->text), &out, &err);

		if ((rc == 0) != (c->verdict == KEPT))
			fail_msg("%s: %d %s", c->name, rc, rc < 0 ? err.text : "accepted");
		kept += c->verdict == KEPT;
		purpose += c->verdict == PURPOSE;
		if (rc < 0)
			continue;
		/* Canonical bytes are their own canonical form. */
		assert_int_equal(convert(buf_view(&out), &again, &err), 0);
		assert_true(view_eq(buf_view(&out), buf_view(&again)));
	}
	assert_true(kept >= 25 && purpose >= 25);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(A1_a_key_that_comes_twice_is_refused),
		cmocka_unit_test(A2_another_field_of_a_proposal_is_refused),
		cmocka_unit_test(A3_only_integers_are_numbers),
		cmocka_unit_test(A4_integers_beyond_2_53_are_refused_and_as_strings_kept),
		cmocka_unit_test(A6_minus_zero_is_zero),
		cmocka_unit_test(A7_order_of_keys_and_white_space_do_not_matter),
		cmocka_unit_test(A8_keys_are_ascii_so_their_order_is_plain),
		cmocka_unit_test(A9_forms_of_a_letter_stay_what_they_are),
		cmocka_unit_test(A11_depth_is_bounded),
		cmocka_unit_test(A11_depth_of_a_proposal_counts_from_its_outside),
		cmocka_unit_test(A12_absent_null_and_empty_are_three_values),
		cmocka_unit_test(A14_nothing_may_stand_behind),
		cmocka_unit_test(strings_keep_every_character_that_the_profile_has),
		cmocka_unit_test(a_refusal_names_the_place),
		cmocka_unit_test(more_than_there_is_room_for_is_refused),
		cmocka_unit_test(what_was_in_the_buffer_stays),
		cmocka_unit_test(a_proposal_has_three_fields),
		cmocka_unit_test(sizes_of_a_proposal),
		cmocka_unit_test(no_text_outgrows_the_room_of_a_message),
		cmocka_unit_test(conformance_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
