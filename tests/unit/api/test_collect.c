/* SPDX-License-Identifier: Apache-2.0 */
/* Output in bounded memory: whatever offsets and gaps a relay tells, memory is bounded and counts add up. */
#include "collect.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

/* {"o":text,...} without its braces, into a static buffer. */
static const char *
told(const struct collect *c, uint64_t seen)
{
	static char text[4096];
	auto_buf struct buf b;
	struct json_out o;

	buf_init(&b, sizeof(text) - 1);
	json_out_init(&o, &b, false);
	json_out_object_begin(&o);
	collect_out(c, "o", seen, &o);
	json_out_object_end(&o);
	assert_int_equal(json_out_end(&o), 0);
	memcpy(text, b.p, b.n);
	text[b.n] = 0;
	return text;
}

static void
add(struct collect *c, uint64_t offset, const char *text)
{
	collect_add(c, offset, view_str(text));
}

static void
whole(void **state)
{
	struct collect c;

	(void)state;
	collect_init(&c, 16);
	assert_string_equal(told(&c, 0),
		"{\"o\":\"\",\"o_bytes\":{\"seen\":0,\"kept\":0,\"dropped\":0,\"head\":0}}");
	add(&c, 0, "abcd");
	add(&c, 4, "efghijklmnop");
	assert_string_equal(told(&c, 16), "{\"o\":\"abcdefghijklmnop\",\"o_bytes\":{\"seen\":16,"
					  "\"kept\":16,\"dropped\":0,\"head\":8}}");
	add(&c, 16, "q");
	assert_string_equal(told(&c, 17),
		"{\"o\":\"abcdefgh\\n[... 1 bytes left out ...]\\njklmnopq\","
		"\"o_bytes\":{\"seen\":17,\"kept\":16,\"dropped\":1,\"head\":8}}");
	collect_done(&c);
}

static void
gap_told(void **state)
{
	struct collect c;

	(void)state;
	collect_init(&c, 8);
	add(&c, 0, "abcd");
	collect_gap(&c, 4, 100);
	add(&c, 100, "wxyz");
	assert_string_equal(told(&c, 104),
		"{\"o\":\"abcd\\n[... 96 bytes left out ...]\\nwxyz\","
		"\"o_bytes\":{\"seen\":104,\"kept\":8,\"dropped\":96,\"head\":4}}");
	collect_done(&c);
}

/* A gap inside of the tail: what came before it is dropped, so that the rest is one piece. */
static void
gap_in_tail(void **state)
{
	struct collect c;

	(void)state;
	collect_init(&c, 8);
	add(&c, 0, "abcdef");
	add(&c, 10, "z");
	assert_string_equal(told(&c, 11),
		"{\"o\":\"abcd\\n[... 6 bytes left out ...]\\nz\","
		"\"o_bytes\":{\"seen\":11,\"kept\":5,\"dropped\":6,\"head\":4}}");
	collect_done(&c);
}

static void
lies(void **state)
{
	struct collect c;

	(void)state;
	collect_init(&c, 8);
	add(&c, 0, "abc");
	add(&c, 0, "XYZ"); /* told already */
	add(&c, 1, "b");
	add(&c, UINT64_MAX - 1, "overflow");
	collect_gap(&c, 9, 2);
	assert_string_equal(told(&c, 3),
		"{\"o\":\"abc\",\"o_bytes\":{\"seen\":3,\"kept\":3,\"dropped\":0,\"head\":3}}");
	for (uint64_t i = 3; i < 100000; i++)
		add(&c, i, "x");
	assert_true(c.head.cap <= 64 && c.tail.n <= 8);
	collect_done(&c);
}

static void
bytes(void **state)
{
	struct collect c;

	(void)state;
	collect_init(&c, 64);
	add(&c, 0, "a\xff");
	assert_string_equal(told(&c, 2),
		"{\"o\":\"a\xef\xbf\xbd\",\"o_base64\":\"Yf8=\","
		"\"o_bytes\":{\"seen\":2,\"kept\":2,\"dropped\":0,\"head\":2}}");
	collect_done(&c);
	/* A character that was cut by the gap is no fault of the output. */
	collect_init(&c, 4);
	add(&c, 0,
		"a\xe2\x82\xac"
		"b\xe2\x82\xac"
		"c");
	assert_null(strstr(told(&c, 9), "base64"));
	collect_done(&c);
}

static void
whole_characters(void **state)
{
	static const struct {
		const char *text;
		size_t want;
	} cases[] = {{"", 0}, {"a", 1}, {"a\xc3", 1}, {"\xc3\xa9", 2}, {"\xe2\x82", 0},
		{"\xe2\x82\xac", 3}, {"a\xf0\x9f\x98", 1}, {"\xf0\x9f\x98\x80", 4},
		{"\x80\x80\x80\x80", 4}, {"\xff", 0}, {"a\xe2", 1}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_int_equal(utf8_whole(view_str(cases[i].text)).n, cases[i].want);
}

static void
base64(void **state)
{
	static const char *const cases[][2] = {{"", "\"\""}, {"f", "\"Zg==\""}, {"fo", "\"Zm8=\""},
		{"foo", "\"Zm9v\""}, {"foob", "\"Zm9vYg==\""}, {"foobar", "\"Zm9vYmFy\""},
		{"\xff\xfe\xfd", "\"//79\""}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_buf struct buf b;
		struct json_out o;

		buf_init(&b, 256);
		json_out_init(&o, &b, false);
		json_out_object_begin(&o);
		base64_out(&o, "x", view_str(cases[i][0]));
		json_out_object_end(&o);
		buf_add_byte(&b, 0);
		assert_memory_equal(b.p + 5, cases[i][1], strlen(cases[i][1]));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole),
		cmocka_unit_test(gap_told),
		cmocka_unit_test(gap_in_tail),
		cmocka_unit_test(lies),
		cmocka_unit_test(bytes),
		cmocka_unit_test(whole_characters),
		cmocka_unit_test(base64),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
