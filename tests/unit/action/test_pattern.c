/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns: what matches, what is no pattern, and that no pattern is slow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/action/pattern.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

static const struct {
	const char *pattern, *text;
	int match;
} matches[] = {
	{"a", "a", 1},
	{"a", "", 0},
	{"a", "aa", 0},
	{"a", "ba", 0},
	{"abc", "abc", 1},
	{"abc", "ab", 0},
	{"ab?c", "ac", 1},
	{"ab?c", "abc", 1},
	{"ab?c", "abbc", 0},
	{"a*", "", 1},
	{"a*", "aaaa", 1},
	{"a*", "aab", 0},
	{"a+", "", 0},
	{"a+", "aaa", 1},
	{"a*a", "aaa", 1},
	{"a*a", "", 0},
	{"a?a?aa", "aa", 1},
	{"a?a?aa", "aaaa", 1},
	{"a?a?aa", "aaaaa", 0},
	{"[0-9]{1,12}", "48221", 1},
	{"[0-9]{1,12}", "", 0},
	{"[0-9]{1,12}", "1234567890123", 0},
	{"[0-9]{1,12}", "4a", 0},
	{"[0-9]{3}", "123", 1},
	{"[0-9]{3}", "12", 0},
	{"[0-9]{3}", "1234", 0},
	{"[0-9]{2,}", "1", 0},
	{"[0-9]{2,}", "123456", 1},
	{"x{0,2}", "", 1},
	{"x{0,2}", "xx", 1},
	{"x{0,2}", "xxx", 0},
	{"[a-z0-9._+\\-]+@[a-z0-9.\\-]+", "anna@example.test", 1},
	{"[a-z0-9._+\\-]+@[a-z0-9.\\-]+", "anna.example.test", 0},
	{"[a-z0-9._+\\-]+@[a-z0-9.\\-]+", "a@b@c", 0},
	{"a\\.b", "a.b", 1},
	{"a\\.b", "axb", 0},
	{"[.]", ".", 1},
	{"[.]", "x", 0},
	{"[\\]\\[\\\\^-_]", "]", -1},
	{"[\\]\\[\\\\\\^]+", "]^[\\", 1},
	{"a-b", "a-b", 1},
	{"[\u00e0-\u00ff]+", "\u00e9\u00e8", 1},
	{"[\u00e0-\u00ff]+", "e", 0},
	{"\u20ac", "\u20ac", 1},
	{"[a-z]", "\u0430", 0}, /* Cyrillic */
	{"[a-z]*", "\xff", 0},
	{"[a-z]*", "ab\xe2\x82", 0},
	{"[a-z]*", "a\nb", 0},
	{"a", "a\n", 0},
	/* no patterns */
	{"", "", -1},
	{"(a)", "a", -1},
	{"a|b", "a", -1},
	{"^a$", "a", -1},
	{"a$", "a", -1},
	{".", "a", -1},
	{".*", "a", -1},
	{"*a", "a", -1},
	{"a**", "a", -1},
	{"a+?", "a", -1},
	{"a{", "a", -1},
	{"a}", "a", -1},
	{"a{}", "a", -1},
	{"a{,3}", "a", -1},
	{"a{3,1}", "a", -1},
	{"a{0}", "a", -1},
	{"a{0,0}", "a", -1},
	{"a{257}", "a", -1},
	{"a{01}", "a", -1},
	{"a{1,2", "a", -1},
	{"a{1;2}", "a", -1},
	{"a{99999999999999999999}", "a", -1},
	{"a{256}b{256}c", "a", -1},
	{"[]", "a", -1},
	{"[a", "a", -1},
	{"[", "a", -1},
	{"]", "a", -1},
	{"[^a]", "b", -1},
	{"[z-a]", "b", -1},
	{"[a-]", "b", -1},
	{"[-a]", "b", -1},
	{"[a-\u00ff]", "b", -1}, /* half ASCII */
	{"[[a]", "b", -1},
	{"\\d", "1", -1},
	{"\\", "1", -1},
	{"[\\w]", "1", -1},
	{"a\n", "a", -1},
	{"a\x7f", "a", -1},
	{"\xc3", "a", -1},
};

static void
the_whole_text_matches_or_not(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(matches); i++) {
		struct err err = {0};
		int e = pattern_match(
			view_str(matches[i].pattern), view_str(matches[i].text), &err);

		if ((e < 0 ? -1 : e) != matches[i].match)
			fail_msg("row %zu: %s on %s: %d %s", i, matches[i].pattern, matches[i].text,
				e, err.text);
		e = pattern_check(view_str(matches[i].pattern), &err);
		assert_int_equal(e, matches[i].match < 0 ? -EINVAL : 0);
	}
}

static void
limits_are_limits(void **state)
{
	char text[PATTERN_TEXT_MAX + 2], pattern[PATTERN_BYTES_MAX + 2];
	struct err err;

	(void)state;
	memset(text, 'a', sizeof(text));
	assert_int_equal(pattern_match(view_str("a*"), view_of(text, PATTERN_TEXT_MAX), &err), 1);
	assert_int_equal(
		pattern_match(view_str("a*"), view_of(text, PATTERN_TEXT_MAX + 1), &err), 0);
	memset(pattern, 'a', sizeof(pattern));
	assert_int_equal(pattern_check(view_of(pattern, 49), &err), -EINVAL); /* classes */
	assert_int_equal(pattern_check(view_of(pattern, 48), &err), 0);
	memset(pattern, 'b', sizeof(pattern));
	pattern[0] = '[';
	pattern[PATTERN_BYTES_MAX] = ']';
	assert_int_equal(pattern_check(view_of(pattern, PATTERN_BYTES_MAX + 1), &err), -EINVAL);
	pattern[150] = ']';
	assert_int_equal(pattern_check(view_of(pattern, 151), &err), 0);
	pattern[200] = ']';
	pattern[150] = 'b';
	assert_int_equal(pattern_check(view_of(pattern, 201), &err), -EINVAL); /* ranges */
}

/* What takes a backtracking matcher 2^40 steps. */
static void
no_pattern_is_slow(void **state)
{
	char text[PATTERN_TEXT_MAX];
	struct timespec a, b;
	struct err err;

	(void)state;
	memset(text, 'a', sizeof(text));
	clock_gettime(CLOCK_MONOTONIC, &a);
	assert_int_equal(pattern_match(view_str("a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b"),
				 view_of(text, sizeof(text)), &err),
		0);
	assert_int_equal(pattern_match(view_str("a{0,256}a{0,255}b"), view_of(text, 500), &err), 0);
	clock_gettime(CLOCK_MONOTONIC, &b);
	assert_true(b.tv_sec - a.tv_sec < 2);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_whole_text_matches_or_not),
		cmocka_unit_test(limits_are_limits),
		cmocka_unit_test(no_pattern_is_slow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
