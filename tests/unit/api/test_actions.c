/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of actions as JSON, also those that an engine should not send, and the bytes that bodies carry. */
#include "actions.h"

#include "lib/json/parse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <jansson.h>

static const struct json_limits limits = {.max_bytes = 1 << 20, .max_depth = 16};

static json_t *
parsed(struct json_out *o, const struct buf *b)
{
	json_t *j = NULL;
	struct err err;

	assert_int_equal(json_out_end(o), 0);
	assert_int_equal(json_parse(buf_view(b), &limits, &j, &err), 0);
	return j;
}

static json_t *
proposal(struct view decisions)
{
	auto_buf struct buf b = {.max = 1 << 20};
	struct msg_proposal_row m = {.tenant = view_str("acme"),
		.operation = view_str("refund"),
		.note = view_str("\xff<b>\n\x1b[2J"),
		.decisions = decisions};
	struct json_out o;

	json_out_init(&o, &b, false);
	row_proposal(&o, &m);
	return parsed(&o, &b);
}

/* What is whole is told; behind the first length that goes beyond the end nothing is read. */
static void
decisions_that_break_off(void **state)
{
	static const struct {
		const char *bytes;
		size_t n, pairs;
	} cases[] = {{"", 0, 0}, {"\0", 1, 0}, {"\0\1", 2, 0}, {"\0\1a", 3, 0}, {"\0\1a\0", 4, 0},
		{"\0\1a\0\2b", 6, 0}, {"\0\1a\0\1b", 6, 1}, {"\0\0\0\0", 4, 1},
		{"\0\1a\0\1b\0\1c", 9, 1},
		{"\0\1a\0\1b\xff\xff"
		 "c",
			9, 1}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_t *j = proposal(view_of(cases[i].bytes, cases[i].n));

		if (json_array_size(json_object_get(j, "decisions")) != cases[i].pairs)
			fail_msg("case %zu", i);
		json_decref(j);
	}
}

static void
members_of_a_proposal(void **state)
{
	json_t *j = proposal(view_of("\0\1a\0\2bc", 7)),
	       *one = json_array_get(json_object_get(j, "decisions"), 0);

	(void)state;
	assert_string_equal(json_string_value(json_object_get(one, "decision")), "YQ==");
	assert_string_equal(json_string_value(json_object_get(one, "signature")), "YmM=");
	/* Neither a digest nor bytes that are not there, and no check that did not fail. */
	assert_null(json_object_get(j, "record"));
	assert_null(json_object_get(j, "digest"));
	assert_null(json_object_get(j, "denial"));
	assert_null(json_object_get(j, "execution"));
	assert_string_equal(
		json_string_value(json_object_get(j, "note")), "\xef\xbf\xbd<b>\n\x1b[2J");
	json_decref(j);
}

static void
empty_documents_are_objects(void **state)
{
	auto_buf struct buf b = {.max = 1 << 16};
	struct json_out o;
	json_t *j;

	(void)state;
	json_out_init(&o, &b, false);
	row_operation(&o, &(struct msg_operation_row){.name = view_str("a")});
	j = parsed(&o, &b);
	assert_true(json_is_object(json_object_get(j, "document")));
	json_decref(j);
	buf_clear(&b);
	json_out_init(&o, &b, false);
	row_execution(&o, &(struct msg_execution_row){.state = EXECUTION_STATE_UNKNOWN});
	j = parsed(&o, &b);
	assert_true(json_is_object(json_object_get(j, "receipt")));
	assert_null(json_object_get(j, "settled"));
	assert_null(json_object_get(j, "response"));
	json_decref(j);
}

static int
bytes_of(const char *text, size_t *ret_n)
{
	const struct field_str f = {.state = FIELD_SET, .v = view_str(text)};
	auto_buf struct buf b = {0};
	struct err err = {0};
	int r = signed_bytes(&f, "decision", &b, &err);

	if (r < 0)
		assert_non_null(strstr(err.text, "decision"));
	*ret_n = b.n;
	return r;
}

static void
base64_is_strict(void **state)
{
	static const char *const bad[] = {"", "A", "AA", "AAA",
		"A===", "====", "QR==", "QQ==QQ==", "QUJD\n", " QUJD", "QU-_", "QUJD=", "Q=JD"};
	char text[5469];
	size_t n;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (bytes_of(bad[i], &n) != -ERROR_BAD_REQUEST)
			fail_msg("\"%s\" was taken", bad[i]);
	assert_int_equal(bytes_of("QQ==", &n), 0);
	assert_int_equal(n, 1);
	/* 5464 digits are 4098 bytes; with two of padding 4096. */
	memset(text, 'A', sizeof(text) - 1);
	text[5464] = '\0';
	assert_int_equal(bytes_of(text, &n), -ERROR_TOO_LARGE);
	text[5462] = text[5463] = '=';
	assert_int_equal(bytes_of(text, &n), 0);
	assert_int_equal(n, SIGNED_BYTES_MAX);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decisions_that_break_off),
		cmocka_unit_test(members_of_a_proposal),
		cmocka_unit_test(empty_documents_are_objects),
		cmocka_unit_test(base64_is_strict),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
