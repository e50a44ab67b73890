/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lib/canon: one form for one value. The table of refusals has a row for each way to
 * write something differently; the property tests make documents at random (fixed seed)
 * and try each change of a single byte.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/base/hex.h"
#include "lib/base/utf8.h"
#include "lib/canon/read.h"
#include "lib/canon/sequence.h"
#include "lib/canon/write.h"

#include <errno.h>
#include <stdio.h>

/* Writes what it reads; the two must then be the same bytes. */
static int
rewrite(struct view in, bool controls, struct buf *out, struct err *err)
{
	auto_buf struct buf text = {.max = CANON_BYTES_MAX};
	struct canon_token t = {.type = CANON_NULL};
	struct canon_reader r;
	struct canon_writer w;

	canon_reader_init(&r, in, controls);
	canon_begin(&w, out);
	while (canon_next(&r, &t, err) == 0) {
		switch (t.type) {
		case CANON_OBJECT_BEGIN:
			canon_object_begin(&w);
			break;
		case CANON_OBJECT_END:
			canon_object_end(&w);
			break;
		case CANON_ARRAY_BEGIN:
			canon_array_begin(&w);
			break;
		case CANON_ARRAY_END:
			canon_array_end(&w);
			break;
		case CANON_KEY:
			canon_key(&w, t.raw);
			break;
		case CANON_STR:
			buf_clear(&text);
			canon_token_text(&t, &text);
			if (t.controls)
				canon_text(&w, buf_view(&text));
			else
				canon_str(&w, buf_view(&text));
			break;
		case CANON_INT:
			canon_int(&w, t.i);
			break;
		case CANON_BOOL:
			canon_bool(&w, t.b);
			break;
		case CANON_NULL:
			canon_null(&w);
			break;
		case CANON_END:
			return canon_end(&w, err);
		}
	}
	return err->code;
}

static void
assert_same(struct view in, bool controls)
{
	auto_buf struct buf out = {.max = CANON_BYTES_MAX};
	struct err err = {0};

	if (rewrite(in, controls, &out, &err) < 0)
		fail_msg("%.*s: %s", VIEW_ARGS(in), err.text);
	if (!view_eq(in, buf_view(&out)))
		fail_msg("%.*s was written as %.*s", VIEW_ARGS(in), VIEW_ARGS(buf_view(&out)));
}

static void
canonical_documents_survive(void **state)
{
	static const char *const docs[] = {
		"{}",
		"[]",
		"\"\"",
		"0",
		"-1",
		"true",
		"false",
		"null",
		"9007199254740991",
		"-9007199254740991",
		"10",
		"[1,2,3]",
		"[[],{},\"\"]",
		"{\"A\":1,\"Z\":2,\"a\":3,\"a0\":4,\"aB\":5,\"a_\":6,\"aa\":7}",
		"\"a\\\"b\\\\c/d\x7f\"",
		"\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\xe2\x80\xa8\"",
		"\"\xef\xbf\xbd\"", /* U+FFFD is a character */
		"[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]",
		"{\"a\":{\"b\":{\"c\":[null,true,false]}}}",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(docs); i++) {
		assert_same(view_str(docs[i]), false);
		assert_same(view_str(docs[i]), true);
	}
	assert_same(
		view_str("\"\\b\\t\\n\\f\\r\\u0000\\u0001\\u0007\\u000b\\u000e\\u001f\""), true);
}

static void
other_forms_are_refused(void **state)
{
	static const struct {
		const char *doc;
		int code;
	} cases[] = {
		{"", -EINVAL},
		{" {}", -EINVAL},
		{"{} ", -EINVAL},
		{"{}\n", -EINVAL},
		{"{ }", -EINVAL},
		{"[ ]", -EINVAL},
		{"[1, 2]", -EINVAL},
		{"[1 ,2]", -EINVAL},
		{"{\"a\" :1}", -EINVAL},
		{"{\"a\": 1}", -EINVAL},
		{"\xef\xbb\xbf{}", -EINVAL},
		{"{}{}", -EINVAL},
		{"1 2", -EINVAL},
		{"[]]", -EINVAL},
		{"nulll", -EINVAL},
		/* keys */
		{"{\"b\":1,\"a\":2}", -EINVAL},
		{"{\"a\":1,\"a\":2}", -EINVAL},
		{"{\"aa\":1,\"a\":2}", -EINVAL},
		{"{\"a\":1,\"Z\":2}", -EINVAL},
		{"{\"\":1}", -EINVAL},
		{"{\"1a\":1}", -EINVAL},
		{"{\"_a\":1}", -EINVAL},
		{"{\"a-b\":1}", -EINVAL},
		{"{\"a.b\":1}", -EINVAL},
		{"{\"a b\":1}", -EINVAL},
		{"{\"\xc3\xa4\":1}", -EINVAL},
		{"{\"\\u0061\":1}", -EINVAL},
		{"{\"a\\\"\":1}", -EINVAL},
		{"{\"a\\\\\":1}", -EINVAL},
		{"{\"a\\n\":1}", -EINVAL},
		{"{a:1}", -EINVAL},
		{"{1:1}", -EINVAL},
		{"{'a':1}", -EINVAL},
		{"{\"a[\":1}", -EINVAL},
		{"{\"a@\":1}", -EINVAL},
		{"{\"a`\":1}", -EINVAL},
		{"{\"a{\":1}", -EINVAL},
		{"{\"a/\":1}", -EINVAL},
		{"{\"a:\":1}", -EINVAL},
		/* shape */
		{"{", -EINVAL},
		{"[", -EINVAL},
		{"}", -EINVAL},
		{"]", -EINVAL},
		{"{]", -EINVAL},
		{"[}", -EINVAL},
		{"[1}", -EINVAL},
		{"{\"a\":1]", -EINVAL},
		{"[,]", -EINVAL},
		{"[1,]", -EINVAL},
		{"[,1]", -EINVAL},
		{"[1,,2]", -EINVAL},
		{"[1 2]", -EINVAL},
		{"{,}", -EINVAL},
		{"{\"a\"}", -EINVAL},
		{"{\"a\":}", -EINVAL},
		{"{\"a\":1,}", -EINVAL},
		{"{\"a\",1}", -EINVAL},
		{"{\"a\"::1}", -EINVAL},
		{"{:1}", -EINVAL},
		{"{\"a\":1 \"b\":2}", -EINVAL},
		{"{\"a\":1\"b\":2}", -EINVAL},
		{"[1", -EINVAL},
		{"{\"a\"", -EINVAL},
		{"{\"a\":", -EINVAL},
		{"{\"a\":1", -EINVAL},
		{"{\"a\":1,", -EINVAL},
		{"[[]", -EINVAL},
		{",", -EINVAL},
		{":", -EINVAL},
		/* words */
		{"True", -EINVAL},
		{"tru", -EINVAL},
		{"nul", -EINVAL},
		{"NULL", -EINVAL},
		{"falsey", -EINVAL},
		{"NaN", -EINVAL},
		{"Infinity", -EINVAL},
		{"undefined", -EINVAL},
		/* numbers */
		{"01", -EINVAL},
		{"00", -EINVAL},
		{"-0", -EINVAL},
		{"-01", -EINVAL},
		{"+1", -EINVAL},
		{"-", -EINVAL},
		{"--1", -EINVAL},
		{"1.0", -EINVAL},
		{"1.", -EINVAL},
		{".5", -EINVAL},
		{"1e3", -EINVAL},
		{"1E3", -EINVAL},
		{"1e+3", -EINVAL},
		{"0x10", -EINVAL},
		{"1_000", -EINVAL},
		{"[1-2]", -EINVAL},
		{"9007199254740992", -ERANGE},
		{"-9007199254740992", -ERANGE},
		{"9223372036854775807", -ERANGE},
		{"9223372036854775808", -ERANGE},
		{"-9223372036854775808", -ERANGE},
		{"-9223372036854775809", -ERANGE},
		{"18446744073709551616", -ERANGE},
		{"99999999999999999999999999999999", -ERANGE},
		/* strings */
		{"\"", -EINVAL},
		{"\"a", -EINVAL},
		{"\"\\", -EINVAL},
		{"\"\\\"", -EINVAL},
		{"'a'", -EINVAL},
		{"\"\\/\"", -EINVAL},
		{"\"\\a\"", -EINVAL},
		{"\"\\x41\"", -EINVAL},
		{"\"\\u\"", -EINVAL},
		{"\"\\u0041\"", -EINVAL},
		{"\"\\u00e4\"", -EINVAL},
		{"\"\\u007f\"", -EINVAL},
		{"\"\\u0022\"", -EINVAL},
		{"\"\\u005c\"", -EINVAL},
		{"\"\\u2028\"", -EINVAL},
		{"\"\\ud83d\\ude00\"", -EINVAL},
		{"\"\\ud800\"", -EINVAL},
		{"\"\\u0020\"", -EINVAL},
		{"\"\\U0001\"", -EINVAL},
		{"\"\\u001\"", -EINVAL},
		{"\"\\u00\"", -EINVAL},
		{"\"\\u000A\"", -EINVAL},
		{"\"\\u000a\"", -EINVAL},
		{"\"\\u0008\"", -EINVAL},
		{"\"\\u0009\"", -EINVAL},
		{"\"\\u000c\"", -EINVAL},
		{"\"\\u000d\"", -EINVAL},
		{"\"\\u001F\"", -EINVAL},
		{"\"\\u000E\"", -EINVAL},
		{"\"\\u000g\"", -EINVAL},
		{"\"\\u100f\"", -EINVAL},
		{"\"\n\"", -EINVAL},
		{"\"\t\"", -EINVAL},
		{"\"\x01\"", -EINVAL},
		{"\"\x1f\"", -EINVAL},
		{"\"\x80\"", -EILSEQ},
		{"\"\xc0\x80\"", -EILSEQ},
		{"\"\xed\xa0\x80\"", -EILSEQ},
		{"\"\xf4\x90\x80\x80\"", -EILSEQ},
		{"\"\xe2\x82\"", -EILSEQ},
		{"\"\xff\"", -EILSEQ},
		{"\"\xc3", -EILSEQ},
		{"\"\xef\xb7\x90\"", -EILSEQ},
		{"\"\xef\xb7\xaf\"", -EILSEQ},
		{"\"\xef\xbf\xbe\"", -EILSEQ},
		{"\"\xef\xbf\xbf\"", -EILSEQ},
		{"\"\xf0\x9f\xbf\xbe\"", -EILSEQ},
		{"\"\xf4\x8f\xbf\xbf\"", -EILSEQ},
		{"[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]", -E2BIG},
		{"/**/1", -EINVAL},
		{"1//", -EINVAL},
		{"#", -EINVAL},
	};
	struct err err = {0};

	(void)state;
	/* With controls allowed: nothing of this may depend on that. */
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		int e = canon_check(view_str(cases[i].doc), true, &err);

		if (e != cases[i].code)
			fail_msg("case %zu %s: %d, %s", i, cases[i].doc, e, e < 0 ? err.text : "");
		assert_int_equal(canon_check(view_str(cases[i].doc), false, &err), cases[i].code);
	}
}

static void
a_nul_byte_is_refused_anywhere(void **state)
{
	static const char doc[] = "{\"a\":[1,true,\"x\"]}";
	struct err err = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(doc); i++) {
		uint8_t with[sizeof(doc)] = {0};

		memcpy(with, doc, i);
		memcpy(with + i + 1, doc + i, sizeof(doc) - 1 - i);
		assert_int_equal(canon_check(view_of(with, sizeof(with)), true, &err), -EINVAL);
	}
}

static void
controls_need_permission(void **state)
{
	static const char short_form[0x20] = {
		['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};

	(void)state;
	for (int c = 0; c < 0x20; c++) {
		auto_buf struct buf out = {.max = 100};
		char want[16];
		uint8_t byte = (uint8_t)c;
		struct canon_writer w;
		struct err err = {0};

		if (short_form[c] != 0)
			(void)snprintf(want, sizeof(want), "\"\\%c\"", short_form[c]);
		else
			(void)snprintf(want, sizeof(want), "\"\\u%04x\"", (unsigned)c);
		canon_begin(&w, &out);
		canon_str(&w, view_of(&byte, 1));
		assert_int_equal(canon_end(&w, &err), -EINVAL);
		assert_int_equal(out.n, 0);
		canon_begin(&w, &out);
		canon_text(&w, view_of(&byte, 1));
		assert_int_equal(canon_end(&w, &err), 0);
		assert_true(view_is(buf_view(&out), want));
		assert_int_equal(canon_check(view_str(want), false, &err), -EINVAL);
		assert_int_equal(canon_check(view_str(want), true, &err), 0);
	}
}

static void
the_writer_refuses_data(void **state)
{
	static const char *const bad[] = {"\x80", "a\xc3", "\xed\xa0\x80", "\xf4\x90\x80\x80",
		"\xef\xbf\xbf", "\xef\xb7\x90", "\xff"};
	auto_buf struct buf out = {.max = 1 << 20};
	struct canon_writer w;
	struct err err = {0};

	(void)state;
	buf_add_str(&out, "before");
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		canon_begin(&w, &out);
		canon_text(&w, view_str(bad[i]));
		assert_int_equal(canon_end(&w, &err), -EILSEQ);
	}
	canon_begin(&w, &out);
	canon_array_begin(&w);
	canon_u64(&w, (uint64_t)CANON_INT_MAX);
	canon_int(&w, -CANON_INT_MAX);
	canon_array_end(&w);
	assert_int_equal(canon_end(&w, &err), 0);
	assert_true(view_is(buf_view(&out), "before[9007199254740991,-9007199254740991]"));
	out.n = 6;
	static const int64_t ints[] = {CANON_INT_MAX + 1, -CANON_INT_MAX - 1, INT64_MAX, INT64_MIN};
	for (size_t i = 0; i < ARRAY_LEN(ints); i++) {
		canon_begin(&w, &out);
		canon_int(&w, ints[i]);
		assert_int_equal(canon_end(&w, &err), -ERANGE);
	}
	static const uint64_t uints[] = {
		(uint64_t)CANON_INT_MAX + 1, UINT64_MAX, UINT64_C(1) << 63};
	for (size_t i = 0; i < ARRAY_LEN(uints); i++) {
		canon_begin(&w, &out);
		canon_u64(&w, uints[i]);
		assert_int_equal(canon_end(&w, &err), -ERANGE);
	}
	/* A refusal in the middle: the rest keeps its shape and nothing of it is kept. */
	canon_begin(&w, &out);
	canon_object_begin(&w);
	canon_key(&w, view_str("a"));
	canon_str(&w, view_str("\xff"));
	canon_key(&w, view_str("b"));
	canon_array_begin(&w);
	canon_null(&w);
	canon_array_end(&w);
	canon_object_end(&w);
	assert_int_equal(canon_end(&w, &err), -EILSEQ);
	assert_string_equal(err.text, "this cannot be recorded: a string is not valid UTF-8");
	assert_true(view_is(buf_view(&out), "before"));
}

static void
hex_is_lower_case(void **state)
{
	auto_buf struct buf out = {.max = 100};
	struct canon_writer w;
	struct err err = {0};

	(void)state;
	canon_begin(&w, &out);
	canon_bytes_hex(&w, view_of("\x00\x01\xab\xff", 4));
	assert_int_equal(canon_end(&w, &err), 0);
	assert_true(view_is(buf_view(&out), "\"0001abff\""));
}

static int
write_nested(unsigned depth, struct buf *out, struct err *err)
{
	struct canon_writer w;

	canon_begin(&w, out);
	for (unsigned i = 0; i < depth; i++) {
		if (i % 2 == 0) {
			canon_object_begin(&w);
			canon_key(&w, view_str("k"));
		} else {
			canon_array_begin(&w);
		}
	}
	canon_int(&w, 1);
	for (unsigned i = depth; i-- > 0;) {
		if (i % 2 == 0)
			canon_object_end(&w);
		else
			canon_array_end(&w);
	}
	return canon_end(&w, err);
}

static void
depth_ends_at_16(void **state)
{
	auto_buf struct buf out = {.max = 1000};
	struct err err = {0};

	(void)state;
	assert_int_equal(write_nested(16, &out, &err), 0);
	assert_same(buf_view(&out), false);
	buf_clear(&out);
	assert_int_equal(write_nested(17, &out, &err), -E2BIG);
	assert_int_equal(write_nested(40, &out, &err), -E2BIG);
	assert_int_equal(out.n, 0);
}

static int
write_long(size_t n, struct buf *out, struct err *err)
{
	auto_free char *x = malloc(n + 1);
	struct canon_writer w;

	assert_non_null(x);
	memset(x, 'x', n);
	canon_begin(&w, out);
	canon_str(&w, view_of(x, n));
	return canon_end(&w, err);
}

static void
size_ends_at_256_kib(void **state)
{
	auto_buf struct buf out = {.max = 1 << 20}, small = {.max = 10};
	struct err err = {0};

	(void)state;
	assert_int_equal(write_long(CANON_BYTES_MAX - 2, &out, &err), 0);
	assert_int_equal(out.n, CANON_BYTES_MAX);
	assert_int_equal(canon_check(buf_view(&out), false, &err), 0);
	/* The reader's own limit: the same document with one byte more is refused as too big. */
	out.p[out.n - 1] = 'x';
	buf_add_byte(&out, '"');
	assert_int_equal(canon_check(buf_view(&out), false, &err), -E2BIG);
	buf_clear(&out);
	buf_add_str(&out, "before"); /* does not count */
	assert_int_equal(write_long(CANON_BYTES_MAX - 2, &out, &err), 0);
	out.n = 0;
	assert_int_equal(write_long(CANON_BYTES_MAX - 1, &out, &err), -E2BIG);
	assert_int_equal(out.n, 0);
	assert_int_equal(write_long(9, &small, &err), -ENOBUFS);
	assert_int_equal(small.n, 0);
}

static void
a_refusal_is_final(void **state)
{
	struct canon_reader r;
	struct canon_token t = {.type = CANON_END};
	struct err err = {0}, again = {0};

	(void)state;
	canon_reader_init(&r, view_str("[ 1]"), false);
	assert_int_equal(canon_next(&r, &t, &err), 0);
	assert_int_equal(canon_next(&r, &t, &err), -EINVAL);
	assert_int_equal(t.type, CANON_ARRAY_BEGIN); /* untouched */
	assert_int_equal(canon_next(&r, &t, &again), -EINVAL);
	assert_string_equal(err.text, again.text);
	assert_string_equal(err.text, "not canonical JSON at byte 1: a value is expected");
}

static void
readers_by_schema(void **state)
{
	static const char doc[] = "{\"a\":1,\"b\":{\"c\":[1,{}]},\"d\":\"x\\\"y\"}";
	auto_buf struct buf text = {.max = 100};
	struct canon_reader r;
	struct canon_token t;
	struct err err = {0};

	(void)state;
	canon_reader_init(&r, view_str(doc), false);
	assert_int_equal(canon_want(&r, CANON_OBJECT_BEGIN, &t, &err), 0);
	assert_int_equal(canon_want_key(&r, "a", &err), 0);
	assert_int_equal(canon_want(&r, CANON_INT, &t, &err), 0);
	assert_int_equal(t.i, 1);
	assert_int_equal(canon_want_key(&r, "b", &err), 0);
	assert_int_equal(canon_skip(&r, &err), 0);
	assert_int_equal(canon_want_key(&r, "d", &err), 0);
	assert_int_equal(canon_want(&r, CANON_STR, &t, &err), 0);
	assert_true(t.escaped && !t.controls);
	canon_token_text(&t, &text);
	assert_true(view_is(buf_view(&text), "x\"y"));
	assert_int_equal(canon_want(&r, CANON_OBJECT_END, &t, &err), 0);
	assert_int_equal(canon_want(&r, CANON_END, &t, &err), 0);

	canon_reader_init(&r, view_str(doc), false);
	assert_int_equal(canon_want(&r, CANON_ARRAY_BEGIN, &t, &err), -EINVAL);
	assert_int_equal(canon_next(&r, &t, &err), -EINVAL);

	canon_reader_init(&r, view_str(doc), false);
	assert_int_equal(canon_want(&r, CANON_OBJECT_BEGIN, &t, &err), 0);
	assert_int_equal(canon_want_key(&r, "b", &err), -EINVAL);
	assert_string_equal(err.text, "\"b\" is expected, \"a\" is there");
	assert_int_equal(canon_next(&r, &t, &err), -EINVAL);
}

static void
skip_wants_a_value(void **state)
{
	static const struct {
		const char *doc;
		int tokens; /* to read before */
	} cases[] = {{"{\"a\":1}", 1}, {"[]", 1}, {"{}", 1}, {"1", 1}};
	struct err err = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct canon_reader r;
		struct canon_token t;

		canon_reader_init(&r, view_str(cases[i].doc), false);
		for (int n = 0; n < cases[i].tokens; n++)
			assert_int_equal(canon_next(&r, &t, &err), 0);
		assert_int_equal(canon_skip(&r, &err), -EINVAL);
		assert_int_equal(canon_next(&r, &t, &err), -EINVAL);
	}
}

/* xorshift64*: the same documents in every run. */
static uint64_t
draw(uint64_t *seed, uint64_t below)
{
	*seed ^= *seed >> 12;
	*seed ^= *seed << 25;
	*seed ^= *seed >> 27;
	return (*seed * UINT64_C(2685821657736338717) >> 16) % below;
}

static void
random_string(struct canon_writer *w, uint64_t *seed)
{
	static const char *const parts[] = {"a", "\"", "\\", "/", "{", "}", "\xc3\xa4",
		"\xf0\x9f\x98\x80", "\xe2\x80\xa8", "\x7f", "u00", ","};
	static const char *const controls[] = {"\n", "\x01", "\x1f", "\t"};
	auto_buf struct buf b = {.max = 1000};
	bool text = draw(seed, 3) == 0;

	for (uint64_t n = draw(seed, 6); n > 0; n--) {
		buf_add_str(&b, parts[draw(seed, ARRAY_LEN(parts))]);
		if (text)
			buf_add_str(&b, controls[draw(seed, ARRAY_LEN(controls))]);
	}
	if (text)
		canon_text(w, buf_view(&b));
	else
		canon_str(w, buf_view(&b));
}

static void
random_value(struct canon_writer *w, uint64_t *seed, unsigned depth)
{
	static const char *const keys[] = {"A", "Ab", "B", "a", "a1", "a_b", "aa", "b", "z"};

	switch (draw(seed, depth == 0 ? 5 : 7)) {
	case 0:
		canon_int(w, (int64_t)draw(seed, (uint64_t)CANON_INT_MAX) - (CANON_INT_MAX / 2));
		break;
	case 1:
		canon_u64(w, draw(seed, 12));
		break;
	case 2:
		canon_bool(w, draw(seed, 2) == 0);
		break;
	case 3:
		canon_null(w);
		break;
	case 4:
		random_string(w, seed);
		break;
	case 5:
		canon_object_begin(w);
		for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
			if (draw(seed, 3) != 0)
				continue;
			canon_key(w, view_str(keys[i]));
			random_value(w, seed, depth - 1);
		}
		canon_object_end(w);
		break;
	default:
		canon_array_begin(w);
		for (uint64_t n = draw(seed, 4); n > 0; n--)
			random_value(w, seed, depth - 1);
		canon_array_end(w);
		break;
	}
}

static void
random_document(struct buf *out, uint64_t *seed)
{
	struct canon_writer w;
	struct err err = {0};

	buf_clear(out);
	canon_begin(&w, out);
	canon_object_begin(&w);
	canon_key(&w, view_str("v"));
	random_value(&w, seed, (unsigned)draw(seed, 6));
	canon_object_end(&w);
	assert_int_equal(canon_end(&w, &err), 0);
}

static void
random_documents_round_trip(void **state)
{
	auto_buf struct buf doc = {.max = CANON_BYTES_MAX};
	uint64_t seed = 0x5eed;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		random_document(&doc, &seed);
		assert_same(buf_view(&doc), true);
	}
}

/* A changed document is refused, or it is itself the one form of some other value. */
static unsigned
check_changed(struct view doc)
{
	auto_buf struct buf out = {.max = CANON_BYTES_MAX};
	struct err err = {0};

	if (rewrite(doc, true, &out, &err) < 0)
		return 0;
	if (!view_eq(doc, buf_view(&out)))
		fail_msg("%.*s was accepted, and is %.*s", VIEW_ARGS(doc),
			VIEW_ARGS(buf_view(&out)));
	return 1;
}

static void
each_changed_byte_is_seen(void **state)
{
	auto_buf struct buf doc = {.max = CANON_BYTES_MAX};
	uint64_t seed = 0xc0ffee;
	unsigned accepted = 0, tried = 0;

	(void)state;
	for (int i = 0; i < 60; i++) {
		random_document(&doc, &seed);
		for (size_t at = 0; at < doc.n && at < 300; at++) {
			uint8_t old = doc.p[at];

			for (unsigned c = 0; c < 256; c++) {
				doc.p[at] = (uint8_t)c;
				accepted += check_changed(buf_view(&doc));
				tried++;
			}
			doc.p[at] = old;
			/* and each cut */
			if (canon_check(view_of(doc.p, at), true, &(struct err){0}) == 0)
				fail_msg("a cut document was accepted: %.*s", (int)at,
					(char *)doc.p);
		}
	}
	assert_true(accepted > 0 && accepted < tried / 2);
}

static void
utf8_one_at_a_time(void **state)
{
	static const struct {
		const char *bytes;
		int len;
		uint32_t point;
	} cases[] = {
		{"a", 1, 'a'},
		{"\xc2\x80", 2, 0x80},
		{"\xdf\xbf", 2, 0x7ff},
		{"\xe0\xa0\x80", 3, 0x800},
		{"\xed\x9f\xbf", 3, 0xd7ff},
		{"\xee\x80\x80", 3, 0xe000},
		{"\xef\xbf\xbf", 3, 0xffff},
		{"\xf0\x90\x80\x80", 4, 0x10000},
		{"\xf4\x8f\xbf\xbf", 4, 0x10ffff},
		{"\x80", -1, 0},
		{"\xc1\x81", -1, 0},
		{"\xc3", -1, 0},
		{"\xc3(", -1, 0},
		{"\xe2\x82", -2, 0},
		{"\xe2\x82(", -2, 0},
		{"\xe2(", -1, 0},
		{"\xed\xa0\x80", -1, 0},
		{"\xe0\x80\x80", -1, 0},
		{"\xf0\x9f\x98", -3, 0},
		{"\xf0\x80\x80\x80", -1, 0},
		{"\xf4\x90\x80\x80", -1, 0},
		{"\xf5\x80\x80\x80", -1, 0},
		{"\xff", -1, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint32_t point = 0;

		assert_int_equal(utf8_next(view_str(cases[i].bytes), &point), cases[i].len);
		assert_int_equal(point, cases[i].point);
	}
	/* 66 of them */
	unsigned n = 0;
	for (uint32_t p = 0; p <= 0x10ffff; p++)
		n += utf8_noncharacter(p);
	assert_int_equal(n, 66);
}

/* Documents behind their lengths: as they were put, and nothing else. */
static void
sequences(void **state)
{
	static const char *const bad[] = {
		"0000000061", "ffffffff61", "0000000261", "0000000461616161"};
	auto_buf struct buf b = {.max = 64};
	struct err err = {0};
	struct view rest, one;

	(void)state;
	canon_sequence_add(&b, view_str("a"));
	canon_sequence_add(&b, view_str("bcd"));
	assert_int_equal(buf_check(&b), 0);
	rest = buf_view(&b);
	assert_int_equal(canon_sequence_next(&rest, "list", 3, &one, &err), 1);
	assert_true(view_is(one, "a"));
	assert_int_equal(canon_sequence_next(&rest, "list", 3, &one, &err), 1);
	assert_true(view_is(one, "bcd"));
	assert_int_equal(canon_sequence_next(&rest, "list", 3, &one, &err), 0);
	for (size_t n = 6; n < b.n; n++) {
		rest = view_of(b.p + 5, n - 5);
		assert_int_equal(canon_sequence_next(&rest, "list", 3, &one, &err), -EINVAL);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		uint8_t bytes[16];

		assert_int_equal(hex_decode(view_str(bad[i]), bytes, strlen(bad[i]) / 2), 0);
		rest = view_of(bytes, strlen(bad[i]) / 2);
		assert_int_equal(canon_sequence_next(&rest, "list", 3, &one, &err), -EINVAL);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(utf8_one_at_a_time),
		cmocka_unit_test(canonical_documents_survive),
		cmocka_unit_test(other_forms_are_refused),
		cmocka_unit_test(a_nul_byte_is_refused_anywhere),
		cmocka_unit_test(controls_need_permission),
		cmocka_unit_test(the_writer_refuses_data),
		cmocka_unit_test(hex_is_lower_case),
		cmocka_unit_test(depth_ends_at_16),
		cmocka_unit_test(size_ends_at_256_kib),
		cmocka_unit_test(a_refusal_is_final),
		cmocka_unit_test(readers_by_schema),
		cmocka_unit_test(skip_wants_a_value),
		cmocka_unit_test(random_documents_round_trip),
		cmocka_unit_test(each_changed_byte_is_seen),
		cmocka_unit_test(sequences),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
