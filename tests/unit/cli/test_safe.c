/* SPDX-License-Identifier: Apache-2.0 */
/* cli/safe and cli/table: nothing of a stranger reaches a terminal as more than visible text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/safe.h"
#include "cli/table.h"
#include "lib/base/utf8.h"

#include <locale.h>

static void
shows_as(struct view in, size_t max, const char *want)
{
	auto_buf struct buf b;

	buf_init(&b, 4096);
	safe_add(&b, in, max);
	assert_int_equal(buf_check(&b), 0);
	if (!view_is(buf_view(&b), want))
		fail_msg("shown as %.*s, not %s", (int)b.n, (const char *)b.p, want);
}

static void
known(void **state)
{
	(void)state;
	shows_as(view_str("plain text, caf\xc3\xa9 \xe4\xb8\xad"), 0,
		"plain text, caf\xc3\xa9 \xe4\xb8\xad");
	shows_as(view_str("a\nb\tc\rd"), 0, "a\\nb\\tc\\rd");
	shows_as(view_str("\033[31mred\033]0;title\007"), 0, "\\x1b[31mred\\x1b]0;title\\x07");
	shows_as(view_of("a\0b", 3), 0, "a\\x00b");
	shows_as(view_str("\x7f\xc2\x9b"
			  "31m"),
		0, "\\x7f\\x9b31m");
	shows_as(view_str("\xe2\x80\xae"
			  "cod.exe"),
		0, "\\u{202e}cod.exe");
	shows_as(view_str("a\xe2\x80\x8b"
			  "b\xef\xbb\xbf"),
		0, "a\\u{200b}b\\u{feff}");
	shows_as(view_str("\xf3\xa0\x81\x81"), 0, "\\u{e0041}"); /* a tag character */
	shows_as(view_str("\xff\xc3"), 0, "\\xff\\xc3");
	shows_as(view_of(NULL, 0), 0, "");
}

static void
cut(void **state)
{
	(void)state;
	shows_as(view_str("abcdefgh"), 8, "abcdefgh");
	shows_as(view_str("abcdefghi"), 8, "abcde...");
	shows_as(view_str("abcd\033\033\033"), 8, "abcd...");
	shows_as(view_str("\033\033\033\033"), 8, "\\x1b...");
	shows_as(view_str("\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"), 4, "\xc3\xa9...");
}

/* Every code point and every pair of bytes: the result is printable in any place, and never empty. */
static void
exhaustive(void **state)
{
	auto_buf struct buf b;

	(void)state;
	buf_init(&b, 64);
	for (uint32_t p = 0; p <= 0x10ffff; p++) {
		uint8_t in[4];
		size_t n = p < 0x80 ? 1 : p < 0x800 ? 2 : p < 0x10000 ? 3 : 4;
		uint32_t point = 0;

		in[0] = (uint8_t)(n == 1 ? p : (0xf00u >> n & 0xff) | p >> (6 * (n - 1)));
		for (size_t i = 1; i < n; i++)
			in[i] = (uint8_t)(0x80 | (p >> (6 * (n - 1 - i)) & 63));
		buf_clear(&b);
		safe_add(&b, view_of(in, n), 0);
		assert_true(b.n > 0 && view_utf8(buf_view(&b)));
		assert_true(b.p[0] >= 0x20 && b.p[0] != 0x7f);
		if (b.n == n && memcmp(b.p, in, n) == 0) { /* passed as it is */
			assert_int_equal(utf8_next(buf_view(&b), &point), (int)n);
			assert_false(point < 0x20 || (point >= 0x7f && point < 0xa0));
			assert_false((point >= 0x200b && point <= 0x200f) ||
				     (point >= 0x2028 && point <= 0x202e));
			assert_false(point >= 0x2066 && point <= 0x2069);
		}
	}
	for (unsigned pair = 0; pair < 65536; pair++) {
		const uint8_t in[] = {(uint8_t)(pair >> 8), (uint8_t)pair};

		buf_clear(&b);
		safe_add(&b, view_of(in, 2), 0);
		for (size_t i = 0; i < b.n; i++)
			assert_true(b.p[i] >= 0x20 && b.p[i] != 0x7f);
		assert_true(view_utf8(buf_view(&b)));
	}
}

static char *
printed(const struct table *t, size_t *ret_n)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, ret_n);
	struct err err = {0};

	assert_non_null(out);
	assert_int_equal(table_print(t, out, &err), 0);
	assert_int_equal(fclose(out), 0);
	return text;
}

static void
tables(void **state)
{
	static const struct table_column columns[] = {
		{"NAME", false, 10}, {"N", true, 0}, {"LAST", false, 0}};
	char *text auto_free = NULL;
	auto_table struct table t;
	size_t n;

	(void)state;
	table_init(&t, columns, ARRAY_LEN(columns));
	table_cell(&t, view_str("caf\xc3\xa9"));
	table_cellf(&t, "%d", 7);
	table_tone(&t, TONE_BAD, view_str("x\033[2Jy"));
	table_cell(&t, view_str("a name that is too long"));
	table_bytes(&t, 1536);
	table_cell(&t, view_str(""));
	text = printed(&t, &n);
	assert_string_equal(text, "NAME              N  LAST\n"
				  "caf\xc3\xa9              7  x\\x1b[2Jy\n"
				  "a name ...  1.5 KiB  \n");
}

static void
empty_table(void **state)
{
	static const struct table_column columns[] = {{"A", false, 0}, {"B", true, 0}};
	char *text auto_free = NULL;
	auto_table struct table t;
	size_t n;

	(void)state;
	table_init(&t, columns, ARRAY_LEN(columns));
	text = printed(&t, &n);
	assert_string_equal(text, "A  B\n");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known),
		cmocka_unit_test(cut),
		cmocka_unit_test(exhaustive),
		cmocka_unit_test(tables),
		cmocka_unit_test(empty_table),
	};

	(void)setlocale(LC_CTYPE, "C.UTF-8");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
