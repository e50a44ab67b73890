/* SPDX-License-Identifier: Apache-2.0 */
/* A hostile answer: what is kept of it is what was allowed, within its bounds, canonical and without the secret. */
#include "broker/answer.h"

#include "lib/canon/read.h"
#include "lib/json/parse.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static bool
has_secret(void *owner, struct view text)
{
	(void)owner;
	return memmem(text.p, text.n, "s3cr3t", 6) != NULL || view_is(text, "424242");
}

static const struct answer_judge judge = {.leaks = has_secret};

static const struct answer_field fields[] = {
	{{(const uint8_t *)"order.total", 11}, {(const uint8_t *)"data.0.total", 12}},
	{{(const uint8_t *)"id", 2}, {(const uint8_t *)"id", 2}},
	{{(const uint8_t *)"ok", 2}, {(const uint8_t *)"ok", 2}},
};

/* What is kept of this JSON. */
static void
kept_is(const char *json, const char *want)
{
	auto_buf struct buf out = {.max = 65536};
	auto_json json_t *root = NULL;
	struct err err = {0};
	bool redacted = false;

	if (answer_parse(view_str(json), &root, &err) < 0 ||
		answer_keep(root, fields, ARRAY_LEN(fields), &judge, 8192, &out, &redacted, &err) <
			0)
		fail_msg("%s: %s", json, err.text);
	if (!view_is(buf_view(&out), want))
		fail_msg("%s gives %.*s", json, VIEW_ARGS(buf_view(&out)));
	assert_int_equal(canon_check(buf_view(&out), false, &err), 0);
	assert_int_equal(redacted, strstr(want, ANSWER_REDACTED) != NULL);
}

static void
only_allowed_fields_of_allowed_kinds_are_kept(void **state)
{
	(void)state;
	kept_is("{\"id\":\"re_1\",\"other\":\"x\",\"ok\":true,\"data\":[{\"total\":42}]}",
		"{\"id\":\"re_1\",\"ok\":true,\"order__total\":42}");
	kept_is("{}", "{}");
	kept_is("[]", "{}");
	kept_is("{\"id\":null,\"ok\":{},\"data\":[{\"total\":[1]}]}", "{}");
	kept_is("{\"id\":1.5,\"ok\":1e3}", "{}");
	kept_is("{\"id\":-0}", "{\"id\":0}");
	kept_is("{\"id\":9007199254740991}", "{\"id\":9007199254740991}");
	kept_is("{\"id\":9007199254740992}", "{}");
	kept_is("{\"id\":-9007199254740992}", "{}");
	kept_is("{\"data\":{\"0\":{\"total\":7}}}", "{\"order__total\":7}");
	kept_is("{\"data\":[]}", "{}");
	kept_is("{\"id\":\"a\\\"b\\\\c\"}", "{\"id\":\"a\\\"b\\\\c\"}");
	kept_is("{\"id\":\"line\\nfeed\"}", "{}"); /* H3: no control characters */
	kept_is("{\"id\":\"\\u0001\"}", "{}");
	kept_is("{\"id\":\"\\uffff\"}", "{}");
	kept_is("{\"id\":\"\xc3\xa9\"}", "{\"id\":\"\xc3\xa9\"}");
}

static void
a_value_with_the_secret_is_marked(void **state)
{
	(void)state;
	kept_is("{\"id\":\"xs3cr3tx\",\"ok\":false}", "{\"id\":\"[redacted]\",\"ok\":false}");
	kept_is("{\"id\":424242}", "{\"id\":\"[redacted]\"}");
}

static void
a_long_string_is_as_if_it_were_not_there(void **state)
{
	char json[1100];

	(void)state;
	(void)snprintf(json, sizeof(json), "{\"id\":\"%01024d\"}", 0);
	auto_buf struct buf out = {.max = 65536};
	auto_json json_t *root = NULL;
	struct err err = {0};
	bool redacted = false;

	assert_int_equal(answer_parse(view_str(json), &root, &err), 0);
	assert_int_equal(answer_keep(root, fields, 3, &judge, 8192, &out, &redacted, &err), 0);
	assert_int_equal(out.n, 1024 + 9);
	(void)snprintf(json, sizeof(json), "{\"id\":\"%01025d\"}", 0);
	kept_is(json, "{}");
}

static void
more_than_the_bound_is_refused(void **state)
{
	auto_buf struct buf out = {.max = 65536};
	auto_json json_t *root = NULL;
	struct err err = {0};
	bool redacted = false;

	(void)state;
	assert_int_equal(answer_parse(view_str("{\"id\":\"0123456789\"}"), &root, &err), 0);
	assert_int_equal(answer_keep(root, fields, 3, &judge, 19, &out, &redacted, &err), 0);
	buf_clear(&out);
	assert_int_equal(answer_keep(root, fields, 3, &judge, 18, &out, &redacted, &err), -E2BIG);
	assert_int_equal(out.n, 0);
}

static void
what_is_not_strict_json_is_refused(void **state)
{
	static const char *const bad[] = {"", " ", "x", "{", "{\"id\":1}x", "{\"id\":1,\"id\":2}",
		"{\"a\":1,\"\\u0061\":2}", "\xef\xbb\xbf{}", "{\"id\":\"\xff\"}",
		"{\"id\":\"\\ud800\"}", "{\"id\":\"\\u0000\"}", "{\"id\":01}", "{\"id\":1,}",
		"{'id':1}", "\"text\"", "1", "null", "{\"id\":NaN}", "{} {}"};
	auto_buf struct buf deep = {.max = 100000};
	struct err err;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		json_t *root = NULL;

		if (answer_parse(view_str(bad[i]), &root, &err) == 0)
			fail_msg("%s", bad[i]);
	}
	for (unsigned i = 0; i < 33; i++)
		buf_add_byte(&deep, '[');
	for (unsigned i = 0; i < 33; i++)
		buf_add_byte(&deep, ']');
	json_t *root = NULL;

	assert_int_equal(answer_parse(buf_view(&deep), &root, &err), -E2BIG);
	assert_int_equal(answer_parse(view_of(deep.p + 1, 64), &root, &err), 0);
	json_decref(root);
}

static bool
same(const char *json, const char *canonical)
{
	auto_buf struct buf b = {.max = 4096};
	auto_json json_t *root = NULL;
	struct err err;

	buf_addf(&b, "[%s]", json);
	assert_int_equal(answer_parse(buf_view(&b), &root, &err), 0);
	return answer_same(json_array_get(root, 0), view_str(canonical));
}

static void
G1_an_echo_is_the_same_value_of_the_same_kind(void **state)
{
	(void)state;
	assert_true(same("42", "42"));
	assert_true(same("\"a\\u0062\"", "\"ab\""));
	assert_true(same("true", "true"));
	assert_true(same("\"\xc3\xa9\"", "\"\xc3\xa9\""));
	assert_false(same("42", "43"));
	assert_false(same("42.0", "42"));
	assert_false(same("\"42\"", "42"));
	assert_false(same("42", "\"42\""));
	assert_false(same("true", "false"));
	assert_false(same("true", "1"));
	assert_false(same("null", "0"));
	assert_false(same("\"ab \"", "\"ab\""));
	assert_false(same("\"AB\"", "\"ab\""));
	assert_false(same("[1]", "1"));
	assert_false(same("{}", "{}"));
	assert_false(same("1", ""));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_allowed_fields_of_allowed_kinds_are_kept),
		cmocka_unit_test(a_value_with_the_secret_is_marked),
		cmocka_unit_test(a_long_string_is_as_if_it_were_not_there),
		cmocka_unit_test(more_than_the_bound_is_refused),
		cmocka_unit_test(what_is_not_strict_json_is_refused),
		cmocka_unit_test(G1_an_echo_is_the_same_value_of_the_same_kind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
