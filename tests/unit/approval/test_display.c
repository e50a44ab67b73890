/* SPDX-License-Identifier: Apache-2.0 */
/* lib/approval/display: all of the record is shown, nothing in it can act on a terminal or look like something else, and it reads back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/approval/display.h"
#include "lib/base/hex.h"
#include "lib/base/utf8.h"
#include "lib/canon/read.h"
#include "lib/canon/write.h"
#include "proposals.h"

#include <errno.h>

static struct operation
refund(void)
{
	struct operation op = {.name = view_str("refund"),
		.has_amount = true,
		.amount_argument = view_str("cents"),
		.currency = view_str("EUR"),
		.exponent = 2};

	assert_int_equal(hex_decode(view_str(PROPOSAL_SCHEMA), op.schema, sizeof(op.schema)), 0);
	return op;
}

static const char whole[] =
	"operation: refund\n"
	"amount: 42.00 EUR (4200)\n"
	"effect: irreversible\n"
	"method: POST\n"
	"url: https://pay.example/v1/refunds\n"
	"argument cents: 4200 (from sandbox)\n"
	"argument order_id: \"48221\" (from sandbox)\n"
	"argument reason: \"damaged\" (default)\n"
	"fact order.paid_cents: 4200 (verified)\n"
	"fact order.tenant: \"acme\" (verified)\n"
	"account: acme-pay\n"
	"environment: production\n"
	"tenant: acme\n"
	"requester: sandbox:sb_0123456789abcdef\n"
	"actor: sandbox:sb_0123456789abcdef\n"
	"owner of task: uid:1000\n"
	"task: tk_0123456789abcdef\n"
	"proposed: 2026-11-29T16:13:04.000Z (1795968784000)\n"
	"decide before: 2026-11-29T16:23:04.000Z (1795969384000)\n"
	"dispatch within: 300000 ms\n"
	"people needed: 1\n"
	"roles: [\"support\"]\n"
	"grant holds for: [\"order.tenant == @tenant\"]\n"
	"content type: application/json\n"
	"body: {\"amount\":4200,\"reason\":\"damaged\"}\n"
	"executions: 1\n"
	"proposal: pr_0123456789abcdef\n"
	"grant: gr_0123456789abcdef\n"
	"idempotency key: dml-0123456789012345678901234567890123456789\n"
	"epoch: 1\n"
	"schema: " PROPOSAL_SCHEMA "\n"
	"adapter: " PROPOSAL_ADAPTER "\n"
	"policy: " PROPOSAL_POLICY "\n"
	"catalogue: dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd\n"
	"record version: 1\n";

/* Renders a record with one key of another value. */
static int
render_with(const char *key, const char *value, struct buf *out, struct err *err)
{
	const struct instead other = {key, value};
	auto_buf struct buf record = {.max = 65536};
	struct operation op = refund();

	proposal_put(&record, &other, key == NULL ? 0 : 1);
	return display_render(buf_view(&record), &op, out, err);
}

static void
a_whole_display(void **state)
{
	auto_buf struct buf out = {.max = DISPLAY_BYTES_MAX}, back = {.max = 65536},
			    record = {.max = 65536};
	struct operation op = refund();
	struct err err;

	(void)state;
	assert_int_equal(render_with(NULL, NULL, &out, &err), 0);
	buf_add_byte(&out, 0);
	assert_string_equal((const char *)out.p, whole);
	proposal_put(&record, NULL, 0);
	assert_int_equal(display_parse(view_str(whole), &op, &back, &err), 0);
	assert_true(view_eq(buf_view(&record), buf_view(&back)));
}

static void
shows(const char *key, const char *value, const char *line)
{
	auto_buf struct buf out = {.max = DISPLAY_BYTES_MAX};
	struct err err;

	if (render_with(key, value, &out, &err) < 0)
		fail_msg("%s=%s: %s", key, value, err.text);
	if (memmem(out.p, out.n, line, strlen(line)) == NULL)
		fail_msg("%s is not shown as %s but\n%.*s", value, line, (int)out.n,
			(const char *)out.p);
}

#define REASON(text) "{\"cents\":4200,\"order_id\":\"48221\",\"reason\":\"" text "\"}"

static void
E1_bidi_zero_width_and_tags_are_visible(void **state)
{
	(void)state;
	shows("arguments",
		REASON("a\xe2\x80\xae"
		       "b"),
		"argument reason: \"a\\u{202e}b\" (default)\n");
	shows("arguments",
		REASON("a\xe2\x81\xa6"
		       "b"),
		"\"a\\u{2066}b\"");
	shows("arguments",
		REASON("a\xe2\x80\x8b"
		       "b"),
		"\"a\\u{200b}b\"");
	shows("arguments", REASON("a\xf3\xa0\x81\x81"), "\"a\\u{e0041}\"");
	shows("arguments", REASON("a\xcc\x81"), "\"a\\u{301}\"");     /* a combining mark */
	shows("arguments", REASON("\xd0\xb0nna"), "\"\\u{430}nna\""); /* Cyrillic a */
	shows("arguments", REASON("\xef\xbc\x91"), "\"\\u{ff11}\"");  /* a full-width 1 */
	shows("arguments", REASON("\xd7\x90\xd7\x91"),
		"\"\\u{5d0}\\u{5d1}\""); /* runs from right to left */
	shows("arguments", REASON("gr\xc3\xbc\xc3\x9f"), "\"gr\xc3\xbc\xc3\x9f\"");
	shows("arguments", REASON("\xe6\x97\xa5\xe6\x9c\xac"), "\"\xe6\x97\xa5\xe6\x9c\xac\"");
	/* What the host says of itself is ASCII. */
	shows("provider_account", "\"gr\xc3\xbcn\"", "account: gr\\u{fc}n\n");
	shows("tenant",
		"\"\xd0\xb0"
		"cme\"",
		"tenant: \\u{430}cme\n");
	shows("request.url", "\"https://pay.ex\xd0\xb0mple/\"",
		"url: https://pay.ex\\u{430}mple/\n");
	shows("tenant", "\"acme \"", "tenant: acme\\u{20}\n");
}

static void
E6_terminal_sequences_are_visible(void **state)
{
	(void)state;
	shows("arguments", REASON("\\u001b[2J"), "argument reason: \"\\u001b[2J\" (default)\n");
	shows("arguments", REASON("\x7f"), "\"\\u{7f}\"");
	shows("arguments",
		REASON("\xc2\x9b"
		       "2J"),
		"\"\\u{9b}2J\"");
	shows("request.body", "\"a\\u001b[1A\\nurl: https://evil\"",
		"body: a\\u{1b}[1A\\u{a}url: https://evil\n");
	shows("request.body", "\"\\r\\b\\u0000\"", "body: \\u{d}\\u{8}\\u{0}\n");
	shows("tenant", "\"a\\u001b]0;x\\u0007\"", "tenant: a\\u{1b}]0;x\\u{7}\n");
}

/* What looks like an escape of ours is not one. */
static void
escapes_cannot_be_forged(void **state)
{
	(void)state;
	shows("request.body", "\"\\\\u{1b}\"", "body: \\\\u{1b}\n");
	shows("arguments", REASON("\\\\u{1b}"), "\"\\\\u{1b}\"");
	shows("arguments", REASON("x\\\" (from human, default)"),
		"argument reason: \"x\\\" (from human, default)\" (default)\n");
}

static void
E3_a_long_body_is_shown_to_its_end(void **state)
{
	auto_buf struct buf out = {.max = DISPLAY_BYTES_MAX}, body = {.max = 65536};
	struct err err;

	(void)state;
	buf_add_byte(&body, '"');
	for (unsigned i = 0; body.n < 48000; i++)
		buf_addf(&body, "word %u ", i);
	buf_add_str(&body, "the end\"");
	buf_add_byte(&body, 0);
	assert_int_equal(render_with("request.body", (const char *)body.p, &out, &err), 0);
	assert_non_null(memmem(out.p, out.n, body.p + 1, body.n - 3));
	assert_non_null(memmem(out.p, out.n, "the end\nexecutions: 1\n", 22));
}

static void
E8_amounts_are_minor_units_with_their_currency(void **state)
{
	static const struct {
		uint32_t exponent;
		const char *cents, *line;
	} rows[] = {{2, "4200", "amount: 42.00 EUR (4200)\n"},
		{0, "4200", "amount: 4200 EUR (4200)\n"}, {3, "4200", "amount: 4.200 EUR (4200)\n"},
		{2, "5", "amount: 0.05 EUR (5)\n"}, {2, "0", "amount: 0.00 EUR (0)\n"},
		{2, "-150", "amount: -1.50 EUR (-150)\n"},
		{2, "9007199254740991", "amount: 90071992547409.91 EUR (9007199254740991)\n"}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		auto_buf struct buf out = {.max = DISPLAY_BYTES_MAX}, record = {.max = 65536},
				    arguments = {.max = 256};
		struct operation op = refund();
		struct instead other = {"arguments", NULL};
		struct err err;

		op.exponent = rows[i].exponent;
		buf_addf(&arguments, "{\"cents\":%s,\"order_id\":\"1\",\"reason\":\"x\"}",
			rows[i].cents);
		buf_add_byte(&arguments, 0);
		other.value = (const char *)arguments.p;
		proposal_put(&record, &other, 1);
		assert_int_equal(display_render(buf_view(&record), &op, &out, &err), 0);
		if (memmem(out.p, out.n, rows[i].line, strlen(rows[i].line)) == NULL)
			fail_msg("%.*s", (int)out.n, (const char *)out.p);
	}
}

static void
D17_account_and_environment_are_shown(void **state)
{
	(void)state;
	shows("environment", "\"staging\"", "environment: staging\n");
	shows("provider_account", "\"other\"", "account: other\n");
}

static void
what_cannot_be_shown_is_refused(void **state)
{
	static const struct instead bad[] = {
		{"action", NULL},
		{"provenance", NULL},
		{"defaulted", NULL},
		{"v", NULL},
		{"request.body", NULL},
		{"facts", "[]"},
		{"arguments", "[]"},
		{"arguments", "{\"order_id\":\"1\"}"},
		{"arguments", "{\"cents\":\"4200\"}"},
		{"epoch", "\"1\""},
		{"issued_ms", "253402300800000"},
		{"issued_ms", "-1"},
		{"tenant", "1"},
		{"tenant", "null"},
		{"v", "1,\"w\":2"},
		{"request.url", "\"x\",\"z\":1"},
		{"provenance", "{\"cents\":\"sandbox\",\"order_id\":\"sandbox\",\"other\":"
			       "\"db\"}"}, /* of no argument */
		{"provenance", "{\"cents\":\"from me\",\"order_id\":\"sandbox\"}"},
		{"provenance", "{\"cents\":1,\"order_id\":\"sandbox\"}"},
		{"provenance", "{\"cents\":\"\",\"order_id\":\"sandbox\"}"},
		{"defaulted", "[\"reason\",\"cents\"]"},
		{"defaulted", "[\"nothing\"]"},
		{"defaulted", "[1]"},
		{"schema", "\"" PROPOSAL_POLICY "\""},
		{"action", "\"reply\""},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		auto_buf struct buf out = {.max = DISPLAY_BYTES_MAX};
		struct err err;

		if (render_with(bad[i].key, bad[i].value, &out, &err) != -EINVAL)
			fail_msg("%s: %s was shown", bad[i].key, bad[i].value);
		assert_int_equal(out.n, 0);
	}
}

/* Any line dropped, doubled, moved or changed by a bit gives no record, or it gives another. */
static void
E7_every_line_counts(void **state)
{
	struct operation op = refund();
	struct view rest = view_str(whole);
	char text[sizeof(whole)];
	struct err err;

	(void)state;
	while (rest.n != 0) {
		const uint8_t *end = memchr(rest.p, '\n', rest.n);
		size_t n = (size_t)(end - rest.p) + 1;
		auto_buf struct buf less = {.max = 65536}, twice = {.max = 65536},
				    out = {.max = 65536};

		buf_add(&less, whole, (size_t)((const char *)rest.p - whole));
		buf_add_view(&twice, buf_view(&less));
		buf_add(&twice, rest.p, n);
		buf_add_view(&less, view_skip(rest, n));
		buf_add_view(&twice, rest);
		if (display_parse(buf_view(&less), &op, &out, &err) == 0) {
			/* Only a whole argument or fact can be left out: then it is another record. */
			auto_buf struct buf record = {.max = 65536};

			proposal_put(&record, NULL, 0);
			assert_false(view_eq(buf_view(&record), buf_view(&out)));
			assert_true(view_starts(rest, "argument ") || view_starts(rest, "fact "));
		}
		assert_int_equal(display_parse(buf_view(&twice), &op, &out, &err), -EINVAL);
		rest = view_skip(rest, n);
	}
	memcpy(text, whole, sizeof(whole));
	for (size_t bit = 0; bit < strlen(whole) * 8; bit++) {
		auto_buf struct buf out = {.max = 65536}, record = {.max = 65536};

		text[bit / 8] = (char)(text[bit / 8] ^ (1 << bit % 8));
		proposal_put(&record, NULL, 0);
		if (display_parse(view_of(text, strlen(whole)), &op, &out, &err) == 0 &&
			view_eq(buf_view(&out), buf_view(&record)))
			fail_msg("bit %zu", bit);
		text[bit / 8] = (char)(text[bit / 8] ^ (1 << bit % 8));
	}
}

/* xorshift: the same every time. */
static uint32_t
next(uint32_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 17;
	*seed ^= *seed << 5;
	return *seed;
}

static void
any_text(uint32_t *seed, struct buf *out)
{
	static const char *const pieces[] = {"a", "Z", "0", " ", "\\", "\"", "\n", "\t", "\x1b",
		"\x01", "\x7f", ": ", " (from x)", " (default)", "\\u{41}", "\xc2\x85", "\xc3\xa9",
		"\xe2\x80\xae", "\xe2\x80\x8d", "\xf0\x9f\x98\x80", "\xd0\xb0", "\xe6\x97\xa5",
		"\xf3\xa0\x81\x81", "(", ")", "{", "}", ",", "argument x: 1\n", "\xef\xbb\xbf"};

	for (uint32_t n = next(seed) % 8; n > 0; n--)
		buf_add_str(out, pieces[next(seed) % ARRAY_LEN(pieces)]);
}

static void
put_any(struct canon_writer *w, uint32_t *seed, unsigned depth)
{
	auto_buf struct buf text = {.max = 4096};
	uint32_t kind = next(seed) % (depth < 4 ? 6 : 4);

	any_text(seed, &text);
	if (kind == 0)
		canon_int(w, (int64_t)(next(seed) % 100000) - 50000);
	else if (kind == 1)
		canon_bool(w, next(seed) % 2 == 0);
	else if (kind < 4)
		canon_text(w, buf_view(&text));
	if (kind == 4) {
		canon_array_begin(w);
		for (uint32_t n = next(seed) % 3; n > 0; n--)
			put_any(w, seed, depth + 1);
		canon_array_end(w);
	} else if (kind == 5) {
		canon_object_begin(w);
		for (char key[2] = "a"; key[0] < 'd'; key[0]++) {
			canon_key(w, view_str(key));
			put_any(w, seed, depth + 1);
		}
		canon_object_end(w);
	}
}

/* Canonical bytes of anything, NUL behind. */
static void
any_value(uint32_t *seed, struct buf *out, bool object)
{
	struct canon_writer w;
	struct err err;

	canon_begin(&w, out);
	if (object) {
		canon_object_begin(&w);
		canon_key(&w, view_str("cents"));
		canon_int(&w, next(seed));
		for (char key[] = "d___x"; key[0] < (char)('d' + next(seed) % 5); key[0]++) {
			canon_key(&w, view_str(key));
			put_any(&w, seed, 0);
		}
		canon_object_end(&w);
	} else {
		auto_buf struct buf text = {.max = 4096};

		any_text(seed, &text);
		canon_text(&w, buf_view(&text));
	}
	assert_int_equal(canon_end(&w, &err), 0);
	buf_add_byte(out, 0);
}

static void
check_printable(struct view v)
{
	while (v.n != 0) {
		uint32_t point = 0;
		int n = utf8_next(v, &point);

		assert_true(n > 0);
		assert_true(point == '\n' || (point >= ' ' && point < 0x7f) ||
			    (point >= 0xc0 && point < 0x17f) ||
			    (point >= 0x3041 && point < 0x9fff + 1) ||
			    (point >= 0xac00 && point <= 0xd7a3));
		v = view_skip(v, (size_t)n);
	}
}

/* Property: whatever can be shown reads back to its bytes, and its text is printable. */
static void
E7_any_record_reads_back_to_its_bytes(void **state)
{
	uint32_t seed = 48221;

	(void)state;
	for (unsigned i = 0; i < 6000; i++) {
		struct buf values[5] = {{.max = 65536}, {.max = 65536}, {.max = 65536},
			{.max = 65536}, {.max = 65536}};
		auto_buf struct buf record = {.max = 65536}, out = {.max = DISPLAY_BYTES_MAX},
				    back = {.max = 65536};
		struct instead others[7] = {{"arguments", NULL}, {"facts", NULL},
			{"request.body", NULL}, {"request.url", NULL}, {"tenant", NULL},
			{"defaulted", "[]"}, {"provenance", "{}"}};
		struct operation op = refund();
		struct err err;

		for (size_t j = 0; j < 5; j++) {
			any_value(&seed, &values[j], j < 2);
			others[j].value = (const char *)values[j].p;
		}
		if (i % 2 == 1) {
			others[5].value = "[\"cents\"]";
			others[6].value = "{\"cents\":\"ticket\"}";
		}
		proposal_put(&record, others, ARRAY_LEN(others));
		if (display_render(buf_view(&record), &op, &out, &err) < 0)
			fail_msg("%.*s: %s", (int)record.n, (const char *)record.p, err.text);
		check_printable(buf_view(&out));
		assert_int_equal(display_parse(buf_view(&out), &op, &back, &err), 0);
		assert_true(view_eq(buf_view(&record), buf_view(&back)));
		for (size_t j = 0; j < 5; j++)
			buf_done(&values[j]);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_whole_display),
		cmocka_unit_test(E1_bidi_zero_width_and_tags_are_visible),
		cmocka_unit_test(E6_terminal_sequences_are_visible),
		cmocka_unit_test(escapes_cannot_be_forged),
		cmocka_unit_test(E3_a_long_body_is_shown_to_its_end),
		cmocka_unit_test(E8_amounts_are_minor_units_with_their_currency),
		cmocka_unit_test(D17_account_and_environment_are_shown),
		cmocka_unit_test(what_cannot_be_shown_is_refused),
		cmocka_unit_test(E7_every_line_counts),
		cmocka_unit_test(E7_any_record_reads_back_to_its_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
