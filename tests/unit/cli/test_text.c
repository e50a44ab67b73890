/* SPDX-License-Identifier: Apache-2.0 */
/* cli: base 64, lines, event streams and lines of an audit export; each cut at every byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/base/base64.h"
#include "cli/events.h"
#include "cli/export.h"
#include "cli/lines.h"

#include <errno.h>

static void
base64_good(void **state)
{
	static const struct {
		const char *text, *bytes;
	} rows[] = {{"", ""}, {"Zg==", "f"}, {"Zm8=", "fo"}, {"Zm9v", "foo"}, {"Zm9vYg==", "foob"},
		{"Zm9vYmE=", "fooba"}, {"Zm9vYmFy", "foobar"}, {"+/+/", "\xfb\xff\xbf"}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		auto_buf struct buf b;

		buf_init(&b, 100);
		assert_int_equal(base64_decode(view_str(rows[i].text), &b), 0);
		assert_true(view_is(buf_view(&b), rows[i].bytes));
	}
}

static void
base64_bad(void **state)
{
	static const char *const rows[] = {"Z", "Zg",
		"Zg=", "Zg===", "====", "Zh==", "Zm9=", "Zm8=Zm8=", "Z=8v", "Zm9v\n", " Zm9",
		"Zm-_", "Zm9vYg==Zm9v", "=m9v", "Zm\xc3\xa9"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		auto_buf struct buf b;

		buf_init(&b, 100);
		buf_add_str(&b, "kept");
		if (base64_decode(view_str(rows[i]), &b) != -EINVAL)
			fail_msg("%s was taken", rows[i]);
		assert_true(view_is(buf_view(&b), "kept"));
	}
}

static void
base64_every_value(void **state)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	(void)state;
	for (unsigned v = 0; v < 65536; v++) {
		const char text[] = {
			digits[v >> 10], digits[v >> 4 & 63], digits[v << 2 & 63], '='};
		const uint8_t want[] = {(uint8_t)(v >> 8), (uint8_t)v};
		auto_buf struct buf b;

		buf_init(&b, 100);
		assert_int_equal(base64_decode(view_of(text, 4), &b), 0);
		assert_true(view_eq(buf_view(&b), view_of(want, 2)));
	}
}

/* ---- lines ---- */

/* Feeds text in pieces of n bytes; the lines, each with a '|' behind it, or the error. */
static int
lines_of(struct view text, size_t n, size_t max, struct buf *ret)
{
	auto_lines struct lines l;
	struct err err = {0};

	lines_init(&l, max);
	while (text.n != 0) {
		struct view piece = view_of(text.p, text.n < n ? text.n : n), line;
		int r;

		text = view_skip(text, n);
		while ((r = lines_next(&l, &piece, &line, &err)) == 1) {
			buf_add_view(ret, line);
			buf_add_byte(ret, '|');
		}
		if (r < 0)
			return r;
	}
	return lines_end(&l, &err);
}

static void
lines(void **state)
{
	(void)state;
	for (size_t n = 1; n < 12; n++) {
		auto_buf struct buf b;

		buf_init(&b, 100);
		assert_int_equal(lines_of(view_str("one\n\ntwo\n"), n, 3, &b), 0);
		assert_true(view_is(buf_view(&b), "one||two|"));
		buf_clear(&b);
		assert_int_equal(lines_of(view_str("one\ntw"), n, 3, &b), -EBADMSG);
		buf_clear(&b);
		assert_int_equal(lines_of(view_str("four\n"), n, 3, &b), -EMSGSIZE);
		buf_clear(&b);
		assert_int_equal(lines_of(view_of(NULL, 0), n, 3, &b), 0);
		assert_int_equal(b.n, 0);
	}
}

/* ---- events ---- */

static int
events_of(struct view text, size_t n, struct buf *ret)
{
	auto_events struct events e;
	struct err err = {0};

	events_init(&e);
	while (text.n != 0) {
		struct view piece = view_of(text.p, text.n < n ? text.n : n);
		int r;

		text = view_skip(text, n);
		while ((r = events_next(&e, &piece, &err)) == 1) {
			buf_addf(ret, "%s=", e.name);
			buf_add_view(ret, buf_view(&e.data));
			buf_add_byte(ret, '|');
		}
		if (r < 0)
			return r;
	}
	return 0;
}

static void
events(void **state)
{
	static const char text[] = ": hello\n\n\n"
				   "event: stdout\ndata: {\"chunk\":\"a: b\"}\n\n"
				   ": hb\n\n"
				   "data: plain\n\n"
				   "event: x\n: between\ndata: \n\n"
				   "event: half\ndata: of it\n";

	(void)state;
	for (size_t n = 1; n <= sizeof(text); n++) {
		auto_buf struct buf b;

		buf_init(&b, 1000);
		assert_int_equal(events_of(view_str(text), n, &b), 0);
		assert_true(view_is(buf_view(&b), "stdout={\"chunk\":\"a: b\"}|=plain|x=|"));
	}
}

static void
events_bad(void **state)
{
	static const char *const rows[] = {"event: a\n\n", "event: a\nevent: b\ndata: x\n\n",
		"data: x\ndata: y\n\n", "data: x\nevent: a\n\n", "event: \ndata: x\n\n",
		"data:x\n\n", "data\n\n", "id: 1\n\n", "retry: 5\n\n", " data: x\n\n",
		"data: x\r\n\r\n", "data: a\rb\n\n", "Event: a\n\n",
		"event: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\ndata: x\n\n"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		for (size_t n = 1; n < 50; n++) {
			auto_buf struct buf b;

			buf_init(&b, 1000);
			if (events_of(view_str(rows[i]), n, &b) != -EBADMSG || b.n != 0)
				fail_msg("row %zu in pieces of %zu was taken", i, n);
		}
}

static void
events_large(void **state)
{
	auto_buf struct buf text, b;

	(void)state;
	buf_init(&text, 4 << 20);
	buf_init(&b, 4 << 20);
	buf_add_str(&text, "data: ");
	for (size_t i = 0; i < 1100000; i++)
		buf_add_byte(&text, 'x');
	assert_int_equal(events_of(buf_view(&text), 4096, &b), -EMSGSIZE);
}

/* ---- lines of an audit export ---- */

#define DIGEST "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define LINE(number, digest, record)                                                            \
	"{\"number\":" number ",\"previous\":\"sha256:" DIGEST "\",\"digest\":\"sha256:" digest \
	"\",\"leaf\":7,\"record\":" record "}"

static void
export_lines(void **state)
{
	static const char good[] = LINE("12", DIGEST, "{\"v\":1}");
	static const char *const bad[] = {"", "{}", LINE("-1", DIGEST, "{}"),
		LINE("01", DIGEST, "{}"), LINE("", DIGEST, "{}"), LINE("1.0", DIGEST, "{}"),
		LINE("99999999999999999999", DIGEST, "{}"), LINE("1", "0123", "{}"),
		LINE("1", "G123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", "{}"),
		LINE("1", "A123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", "{}"),
		LINE("1", DIGEST, "[]"), LINE("1", DIGEST, ""), LINE("1", DIGEST, "1"),
		" " LINE("1", DIGEST, "{}"), LINE("1", DIGEST, "{}") " ",
		LINE("1", DIGEST, "{}") "\r"};
	struct export_line l;
	struct err err = {0};

	(void)state;
	assert_int_equal(export_read(view_str(good), &l, &err), 0);
	assert_int_equal(l.number, 12);
	assert_int_equal(l.leaf, 7);
	assert_int_equal(l.previous[0], 0x01);
	assert_int_equal(l.digest[31], 0xef);
	assert_true(view_is(l.record, "{\"v\":1}"));
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (export_read(view_str(bad[i]), &l, &err) != -EBADMSG)
			fail_msg("%s was taken", bad[i]);
	for (size_t n = 0; n < sizeof(good) - 1; n++)
		assert_int_equal(export_read(view_of(good, n), &l, &err), -EBADMSG);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(base64_good),
		cmocka_unit_test(base64_bad),
		cmocka_unit_test(base64_every_value),
		cmocka_unit_test(lines),
		cmocka_unit_test(events),
		cmocka_unit_test(events_bad),
		cmocka_unit_test(events_large),
		cmocka_unit_test(export_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
