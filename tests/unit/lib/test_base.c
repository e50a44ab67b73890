/* SPDX-License-Identifier: Apache-2.0 */
/* lib/base: errors, views, buffers, numbers, identifiers, digests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/hex.h"
#include "lib/base/id.h"
#include "lib/base/name.h"
#include "lib/base/num.h"
#include "lib/base/sha256.h"
#include "lib/base/view.h"

#include <errno.h>
#include <time.h>

static void
err_is_printable_and_bounded(void **state)
{
	struct err err = {0};
	char big[1024];

	(void)state;
	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	assert_int_equal(err_set(&err, -EINVAL, "a\nb\x1b[31m %s", big), -EINVAL);
	assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
	for (const char *s = err.text; *s != '\0'; s++)
		assert_true(*s >= 0x20 && *s <= 0x7e);
	(void)err_set(&err, -EINVAL, "inner");
	assert_int_equal(err_context(&err, "outer"), -EINVAL);
	assert_string_equal(err.text, "outer: inner");
}

static void
utf8_is_strict(void **state)
{
	static const struct {
		const char *bytes;
		bool ok;
	} cases[] = {
		{"", true},
		{"abc", true},
		{"\xc3\xa4", true},
		{"\xe2\x82\xac", true},
		{"\xf0\x9f\x98\x80", true},
		{"\xf4\x8f\xbf\xbf", true},
		{"\xc0\x80", false},         /* overlong NUL */
		{"\xc1\xbf", false},         /* overlong */
		{"\xe0\x9f\xbf", false},     /* overlong */
		{"\xed\xa0\x80", false},     /* surrogate */
		{"\xf4\x90\x80\x80", false}, /* past U+10FFFF */
		{"\xf0\x8f\xbf\xbf", false}, /* overlong */
		{"\x80", false},
		{"\xc3", false},
		{"\xe2\x82", false},
		{"\xff", false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_int_equal(view_utf8(view_str(cases[i].bytes)), cases[i].ok);
}

static void
buf_keeps_its_ceiling(void **state)
{
	auto_buf struct buf b;

	(void)state;
	buf_init(&b, 100);
	for (int i = 0; i < 10; i++)
		buf_add(&b, "0123456789", 10);
	assert_int_equal(buf_check(&b), 0);
	buf_add_byte(&b, 'x');
	assert_int_equal(buf_check(&b), -ENOBUFS);
	assert_int_equal(b.n, 100);
	buf_clear(&b);
	buf_addf(&b, "%s-%d", "n", 7);
	assert_true(view_is(buf_view(&b), "n-7"));
	buf_drop(&b, 2);
	assert_true(view_is(buf_view(&b), "7"));
}

static void
buf_formats_long_text(void **state)
{
	auto_buf struct buf b;
	char big[2000];

	(void)state;
	memset(big, 'y', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	buf_init(&b, 4096);
	buf_addf(&b, "[%s]", big);
	assert_int_equal(buf_check(&b), 0);
	assert_int_equal(b.n, sizeof(big) - 1 + 2);
	assert_int_equal(b.p[b.n - 1], ']');
}

static void
numbers_are_strict(void **state)
{
	static const char *const bad[] = {"", "+1", "-1", " 1", "1 ", "01", "0x1", "1_0", "1e3",
		"18446744073709551616", "99999999999999999999999"};
	uint64_t u = 5;
	int64_t s = 5;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_true(num_u64(view_str(bad[i]), UINT64_MAX, &u) < 0);
	assert_int_equal(u, 5);
	assert_int_equal(num_u64(view_str("18446744073709551615"), UINT64_MAX, &u), 0);
	assert_true(u == UINT64_MAX);
	assert_int_equal(num_u64(view_str("11"), 10, &u), -ERANGE);
	assert_int_equal(num_i64(view_str("-9223372036854775808"), &s), 0);
	assert_true(s == INT64_MIN);
	assert_int_equal(num_i64(view_str("-9223372036854775809"), &s), -ERANGE);
	assert_int_equal(num_i64(view_str("9223372036854775807"), &s), 0);
	assert_true(s == INT64_MAX);
	assert_int_equal(num_i64(view_str("--1"), &s), -EINVAL);
}

static void
ids_round_trip(void **state)
{
	(void)state;
	for (int i = 0; i < 1000; i++) {
		char text[ID_TEXT];
		struct id a, b;

		id_new(&a);
		id_text(&a, ID_SANDBOX, text);
		assert_int_equal(strlen(text), 3 + ID_DIGITS);
		assert_int_equal(id_parse(view_str(text), ID_SANDBOX, &b), 0);
		assert_true(id_eq(&a, &b));
		assert_int_equal(id_parse(view_str(text), ID_TASK, &b), -EINVAL);
		text[5] = 'u'; /* not in the alphabet */
		assert_int_equal(id_parse(view_str(text), ID_SANDBOX, &b), -EINVAL);
	}
}

static void
digests_and_hex(void **state)
{
	uint8_t digest[SHA256_BYTES], back[SHA256_BYTES];
	char text[SHA256_TEXT];

	(void)state;
	sha256_of(view_str("abc"), digest);
	hex_encode(digest, sizeof(digest), text);
	/* FIPS 180-4 example */
	assert_string_equal(
		text, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	assert_int_equal(hex_decode(view_str(text), back, sizeof(back)), 0);
	assert_memory_equal(digest, back, sizeof(back));
	text[0] = 'B';
	assert_int_equal(hex_decode(view_str(text), back, sizeof(back)), -EINVAL);
}

static void
time_as_text(void **state)
{
	char text[CLOCK_TEXT];

	(void)state;
	clock_text(951782400123, text);
	assert_string_equal(text, "2000-02-29T00:00:00.123Z");
	/* Every day until 2400 as the C library has it. */
	for (time_t day = 0; day < 430 * 366; day++) {
		time_t at = day * 86400 + day % 86400;
		char want[CLOCK_TEXT];
		struct tm tm;

		clock_text((uint64_t)at * 1000 + 7, text);
		assert_non_null(gmtime_r(&at, &tm));
		assert_int_equal(strftime(want, sizeof(want), "%Y-%m-%dT%H:%M:%S.007Z", &tm), 24);
		assert_string_equal(text, want);
	}
}

static void
names(void **state)
{
	(void)state;
	assert_true(name_ok(view_str("acme")));
	assert_true(name_ok(view_str("ubuntu-24.04")));
	assert_false(name_ok(view_str("")));
	assert_false(name_ok(view_str(".hidden")));
	assert_false(name_ok(view_str("a/b")));
	assert_false(name_ok(view_str("Acme")));
	assert_false(name_ok(view_of("a\0b", 3)));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(err_is_printable_and_bounded),
		cmocka_unit_test(utf8_is_strict),
		cmocka_unit_test(buf_keeps_its_ceiling),
		cmocka_unit_test(buf_formats_long_text),
		cmocka_unit_test(numbers_are_strict),
		cmocka_unit_test(ids_round_trip),
		cmocka_unit_test(digests_and_hex),
		cmocka_unit_test(time_as_text),
		cmocka_unit_test(names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
