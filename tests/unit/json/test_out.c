/* SPDX-License-Identifier: Apache-2.0 */
/* lib/json/out: bytes of answers, replacement of what is not UTF-8, and the ASCII mode. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/json/out.h"
#include "lib/json/parse.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

static void
an_answer(void **state)
{
	auto_buf struct buf b = {.max = 1000};
	struct json_out o;

	(void)state;
	json_out_init(&o, &b, false);
	json_out_object_begin(&o);
	json_out_key_str(&o, "id", view_str("sb_1"));
	json_out_key_int(&o, "min", INT64_MIN);
	json_out_key(&o, "max");
	json_out_u64(&o, UINT64_MAX);
	json_out_key_bool(&o, "ok", true);
	json_out_key(&o, "none");
	json_out_null(&o);
	json_out_key(&o, "ms");
	json_out_array_begin(&o);
	json_out_fixed3(&o, 12345);
	json_out_fixed3(&o, 0);
	json_out_fixed3(&o, 7);
	json_out_fixed3(&o, -7);
	json_out_fixed3(&o, -1500);
	json_out_fixed3(&o, INT64_MIN);
	json_out_array_end(&o);
	json_out_key(&o, "raw");
	json_out_raw(&o, view_str("{\"a\":[]}"));
	json_out_key(&o, "empty");
	json_out_object_begin(&o);
	json_out_object_end(&o);
	json_out_key(&o, "list");
	json_out_array_begin(&o);
	json_out_array_begin(&o);
	json_out_array_end(&o);
	(void)json_out_str(&o, view_of(NULL, 0));
	json_out_bool(&o, false);
	json_out_array_end(&o);
	json_out_object_end(&o);
	assert_int_equal(json_out_end(&o), 0);
	assert_false(o.replaced);
	assert_true(view_is(buf_view(&b),
		"{\"id\":\"sb_1\",\"min\":-9223372036854775808,\"max\":18446744073709551615,"
		"\"ok\":true,\"none\":null,\"ms\":[12.345,0.000,0.007,-0.007,-1.500,"
		"-9223372036854775.808],\"raw\":{\"a\":[]},\"empty\":{},\"list\":[[],\"\",false]"
		"}"));
}

static void
strings_in_both_modes(void **state)
{
	static const struct {
		struct view in;
		const char *utf8, *ascii;
		bool replaced;
	} cases[] = {
#define ROW(in, utf8, ascii, replaced) \
	{{(const uint8_t *)(in), sizeof(in) - 1}, utf8, ascii, replaced}
		ROW("", "", "", false),
		ROW("a/b<>&'", "a/b<>&'", "a/b<>&'", false),
		ROW("\"\\", "\\\"\\\\", "\\\"\\\\", false),
		ROW("\b\t\n\f\r", "\\b\\t\\n\\f\\r", "\\b\\t\\n\\f\\r", false),
		ROW("a\0b\x1f\x7f", "a\\u0000b\\u001f\x7f", "a\\u0000b\\u001f\\u007f", false),
		ROW("\xc3\xa4\xe2\x82\xac", "\xc3\xa4\xe2\x82\xac", "\\u00e4\\u20ac", false),
		ROW("\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80", "\\ud83d\\ude00", false),
		ROW("\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf", "\\udbff\\udfff", false),
		ROW("\xf0\x90\x80\x80", "\xf0\x90\x80\x80", "\\ud800\\udc00", false),
		ROW("\xe2\x80\xa8", "\xe2\x80\xa8", "\\u2028", false),
		ROW("\xef\xbf\xbd", "\xef\xbf\xbd", "\\ufffd", false),
		ROW("\xef\xbf\xbf", "\xef\xbf\xbf", "\\uffff", false),
		/* table 3-8 of the Unicode standard and its neighbours: one per maximal subpart */
		ROW("\xff", "\xef\xbf\xbd", "\\ufffd", true),
		ROW("a\x80", "a\xef\xbf\xbd", "a\\ufffd", true),
		ROW("\xc3", "\xef\xbf\xbd", "\\ufffd", true),
		ROW("\xe2\x82", "\xef\xbf\xbd", "\\ufffd", true),
		ROW("\xf0\x9f\x98", "\xef\xbf\xbd", "\\ufffd", true),
		ROW("\xf0\x9f\x98"
		    "A",
			"\xef\xbf\xbd"
			"A",
			"\\ufffdA", true),
		ROW("\xe2\x82\"", "\xef\xbf\xbd\\\"", "\\ufffd\\\"", true),
		ROW("\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd", "\\ufffd\\ufffd", true),
		ROW("\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd", "\\ufffd\\ufffd\\ufffd",
			true),
		ROW("\xf4\x90\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd",
			"\\ufffd\\ufffd\\ufffd\\ufffd", true),
		ROW("\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41",
			"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"
			"A",
			"\\ufffd\\ufffd\\ufffd\\ufffdA", true),
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases) * 2; i++) {
		bool ascii = i % 2 == 1;
		const char *want = ascii ? cases[i / 2].ascii : cases[i / 2].utf8;
		auto_buf struct buf b = {.max = 1000};
		struct json_out o;

		json_out_init(&o, &b, ascii);
		assert_int_equal(json_out_str(&o, cases[i / 2].in), cases[i / 2].replaced);
		assert_int_equal(json_out_end(&o), 0);
		assert_int_equal(o.replaced, cases[i / 2].replaced);
		if (b.n != strlen(want) + 2 || memcmp(b.p + 1, want, b.n - 2) != 0)
			fail_msg("case %zu: %.*s", i / 2, VIEW_ARGS(buf_view(&b)));
	}
}

static void
replacing_is_told_per_string_and_in_all(void **state)
{
	auto_buf struct buf b = {.max = 1000};
	struct json_out o;

	(void)state;
	json_out_init(&o, &b, false);
	json_out_object_begin(&o);
	assert_true(json_out_key_view(&o, view_str("\xff")));
	assert_false(json_out_str(&o, view_str("good")));
	assert_false(json_out_key_view(&o, view_str("k")));
	assert_true(json_out_str(&o, view_str("\xff")));
	json_out_object_end(&o);
	assert_int_equal(json_out_end(&o), 0);
	assert_true(o.replaced);
	assert_true(view_is(buf_view(&b), "{\"\xef\xbf\xbd\":\"good\",\"k\":\"\xef\xbf\xbd\"}"));
}

static void
a_full_buffer_is_told(void **state)
{
	auto_buf struct buf b = {.max = 8};
	struct json_out o;

	(void)state;
	json_out_init(&o, &b, false);
	json_out_array_begin(&o);
	(void)json_out_str(&o, view_str("123456789"));
	json_out_array_end(&o);
	assert_int_equal(json_out_end(&o), -ENOBUFS);
}

static void
write_string(struct buf *b, bool ascii, struct view v)
{
	struct json_out o;

	json_out_init(&o, b, ascii);
	json_out_array_begin(&o);
	(void)json_out_str(&o, v);
	json_out_array_end(&o);
	assert_int_equal(json_out_end(&o), 0);
}

/* Random bytes: what comes out parses, and both modes say the same. */
static void
any_bytes_give_json(void **state)
{
	static const uint8_t likely[] = {'"', '\\', 0, 0x80, 0xbf, 0xc3, 0xe2, 0x82, 0xf0, 0x9f,
		0xed, 0xa0, 0xf4, 0x7f, 'a', 0xff};
	const struct json_limits limits = {.max_bytes = 4096, .max_depth = 2, .nul_ok = true};
	uint64_t seed = 42;

	(void)state;
	for (int round = 0; round < 20000; round++) {
		auto_buf struct buf b0 = {.max = 4096}, b1 = {.max = 4096};
		auto_json json_t *j0 = NULL, *j1 = NULL;
		struct err err = {0};
		uint8_t in[12];

		for (size_t i = 0; i < sizeof(in); i++) {
			seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
			in[i] = likely[seed >> 40 & 15];
		}
		write_string(&b0, false, view_of(in, sizeof(in)));
		write_string(&b1, true, view_of(in, sizeof(in)));
		if (json_parse(buf_view(&b0), &limits, &j0, &err) < 0 ||
			json_parse(buf_view(&b1), &limits, &j1, &err) < 0)
			fail_msg("%.*s: %s", VIEW_ARGS(buf_view(&b1)), err.text);
		assert_true(json_equal(j0, j1));
		for (size_t i = 0; i < b1.n; i++)
			assert_true(b1.p[i] >= 0x20 && b1.p[i] < 0x7f);
	}
}

/* Runs it in a child; true when must() ended that. */
static bool
dies(void (*misuse)(struct json_out *w))
{
	pid_t pid = fork();
	int status = 0;

	assert_true(pid >= 0);
	if (pid == 0) {
		auto_buf struct buf out = {.max = 1000};
		struct json_out w;
		int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

		(void)dup2(null, STDERR_FILENO);
		json_out_init(&w, &out, false);
		misuse(&w);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

/* The result is no matter: misuse does not come back. */
static void
end(struct json_out *w)
{
	if (json_out_end(w) < 0)
		_exit(1);
}

static void
well_made(struct json_out *w)
{
	json_out_object_begin(w);
	json_out_key(w, "b");
	json_out_null(w);
	json_out_key(w, "a");
	json_out_null(w);
	json_out_object_end(w);
	end(w);
}

static void
a_key_in_an_array(struct json_out *w)
{
	json_out_array_begin(w);
	json_out_key(w, "a");
}

static void
two_keys_in_a_row(struct json_out *w)
{
	json_out_object_begin(w);
	json_out_key(w, "a");
	json_out_key(w, "b");
}

static void
no_key(struct json_out *w)
{
	json_out_object_begin(w);
	json_out_null(w);
}

static void
a_key_without_value(struct json_out *w)
{
	json_out_object_begin(w);
	json_out_key(w, "a");
	json_out_object_end(w);
}

static void
the_wrong_end(struct json_out *w)
{
	json_out_object_begin(w);
	json_out_array_end(w);
}

static void
an_end_too_many(struct json_out *w)
{
	json_out_array_begin(w);
	json_out_array_end(w);
	json_out_array_end(w);
}

static void
two_documents(struct json_out *w)
{
	json_out_null(w);
	json_out_null(w);
}

static void
not_ended(struct json_out *w)
{
	json_out_array_begin(w);
	end(w);
}

static void
nothing_written(struct json_out *w)
{
	end(w);
}

static void
a_literal_key_that_is_not_utf8(struct json_out *w)
{
	json_out_object_begin(w);
	json_out_key(w, "\xff");
}

static void
nothing_raw(struct json_out *w)
{
	json_out_raw(w, view_of(NULL, 0));
}

static void
too_deep(struct json_out *w)
{
	for (int i = 0; i <= JSON_OUT_DEPTH_MAX; i++)
		json_out_array_begin(w);
}

static void
misuse_is_a_bug_of_ours(void **state)
{
	void (*const misuses[])(struct json_out * w) = {a_key_in_an_array, two_keys_in_a_row,
		no_key, a_key_without_value, the_wrong_end, an_end_too_many, two_documents,
		not_ended, nothing_written, a_literal_key_that_is_not_utf8, nothing_raw, too_deep};

	(void)state;
	assert_false(dies(well_made));
	for (size_t i = 0; i < ARRAY_LEN(misuses); i++)
		if (!dies(misuses[i]))
			fail_msg("misuse %zu was let through", i);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_answer),
		cmocka_unit_test(strings_in_both_modes),
		cmocka_unit_test(replacing_is_told_per_string_and_in_all),
		cmocka_unit_test(a_full_buffer_is_told),
		cmocka_unit_test(any_bytes_give_json),
		cmocka_unit_test(misuse_is_a_bug_of_ours),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
