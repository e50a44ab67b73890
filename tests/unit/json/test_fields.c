/* SPDX-License-Identifier: Apache-2.0 */
/* lib/json/fields: what a table accepts, and the sentence for each thing that it refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/base/name.h"
#include "lib/json/fields.h"
#include "lib/json/parse.h"

#include <errno.h>

struct body {
	struct field_str tenant;
	struct field_str input;
	struct field_int ttl;
	struct field_int offset;
	struct field_bool pause;
	struct field_json env;
	struct field_json argv;
	struct field_json metadata;
};

static bool
env_key_ok(struct view v)
{
	return !view_has(v, '=');
}

static const struct field rows[] = {
	FIELD_STR("tenant", struct body, tenant, .required = true, .min = 1, .max = 63,
		.check = name_ok, .check_says = "lower-case letters, digits, '.', '_' and '-'"),
	FIELD_STR("input", struct body, input, .max = 8, .nul_ok = true),
	FIELD_INT("ttl_seconds", struct body, ttl, .nullable = true, .min = 1, .max = 86400),
	FIELD_INT("offset", struct body, offset, .min = INT64_MIN, .max = INT64_MAX),
	FIELD_BOOL("pause", struct body, pause, ),
	FIELD_STR_MAP("env", struct body, env, .max = 10, .max_entries = 2, .max_key_bytes = 5,
		.key_check = env_key_ok, .key_says = "a name without '='"),
	FIELD_STR_LIST("argv", struct body, argv, .nullable = true, .min = 1, .max = 10,
		.min_entries = 1, .max_entries = 3),
	FIELD_OBJECT("metadata", struct body, metadata, .nullable = true),
};

static const struct json_limits limits = {.max_bytes = 4096, .max_depth = 8, .nul_ok = true};

static json_t *
parse(const char *text)
{
	json_t *j = NULL;
	struct err err = {0};

	if (json_parse(view_str(text), &limits, &j, &err) < 0)
		fail_msg("%s: %s", text, err.text);
	return j;
}

static int
read_body(const json_t *j, unsigned flags, struct body *b, struct err *err)
{
	return fields_read(j, "", rows, ARRAY_LEN(rows), flags, b, err);
}

static void
everything_is_read(void **state)
{
	auto_json json_t *j = parse("{\"tenant\":\"acme\",\"input\":\"a\\u0000b\",\"ttl_seconds\":"
				    "86400,\"offset\":-9,\"pause\":true,"
				    "\"env\":{\"A\":\"1\",\"B\":\"\"},\"argv\":[\"ls\",\"-l\"],"
				    "\"metadata\":{\"x\":{\"y\":[]}}}");
	struct body b = {0};
	struct err err = {0};

	(void)state;
	assert_int_equal(read_body(j, 0, &b, &err), 0);
	assert_int_equal(b.tenant.state, FIELD_SET);
	assert_true(view_is(b.tenant.v, "acme"));
	assert_true(view_eq(b.input.v, view_of("a\0b", 3)));
	assert_int_equal(b.ttl.v, 86400);
	assert_int_equal(b.offset.v, -9);
	assert_true(b.pause.v);
	assert_int_equal(json_object_size(b.env.v), 2);
	assert_true(view_is(field_view(json_array_get(b.argv.v, 1)), "-l"));
	assert_true(json_is_object(b.metadata.v));
	assert_int_equal(b.metadata.state, FIELD_SET);
}

static void
absent_and_null_keep_the_default(void **state)
{
	auto_json json_t *j = parse("{\"tenant\":\"acme\",\"ttl_seconds\":null,\"argv\":null}");
	struct body b = {.ttl.v = 300, .offset.v = 7, .offset.state = FIELD_SET};
	struct err err = {0};

	(void)state;
	assert_int_equal(read_body(j, 0, &b, &err), 0);
	assert_int_equal(b.ttl.state, FIELD_NULL);
	assert_int_equal(b.ttl.v, 300);
	assert_int_equal(b.offset.state, FIELD_ABSENT);
	assert_int_equal(b.offset.v, 7);
	assert_int_equal(b.argv.state, FIELD_NULL);
	assert_null(b.argv.v);
	assert_int_equal(b.pause.state, FIELD_ABSENT);
}

#define T "\"tenant\":\"acme\","

static void
refused_with_a_sentence(void **state)
{
	static const struct {
		const char *text;
		const char *says;
	} cases[] = {
		{"[]", "the body must be a JSON object"},
		{"{}", "tenant is missing; give a string of 1 to 63 bytes"},
		{"{\"tenant\":null}", "tenant must not be null; give a string of 1 to 63 bytes"},
		{"{\"tenant\":1}", "tenant must be a string of 1 to 63 bytes"},
		{"{\"tenant\":[\"acme\"]}", "tenant must be a string of 1 to 63 bytes"},
		{"{\"tenant\":\"\"}", "tenant must be a string of 1 to 63 bytes, not 0"},
		{"{\"tenant\":"
		 "\"a234567890123456789012345678901234567890123456789012345678901234\"}",
			"tenant must be a string of 1 to 63 bytes, not 64"},
		{"{\"tenant\":\"a\\u0000\"}", "tenant must not contain NUL"},
		{"{\"tenant\":\"Acme\"}",
			"tenant must be lower-case letters, digits, '.', '_' and '-'"},
		{"{" T "\"input\":\"123456789\"}", "input must be a string of 0 to 8 bytes, not 9"},
		{"{" T "\"input\":null}",
			"input must not be null; give a string of 0 to 8 bytes or leave it out"},
		{"{" T "\"ttl_seconds\":0}", "ttl_seconds must be a whole number from 1 to 86400"},
		{"{" T "\"ttl_seconds\":-0}", "ttl_seconds must be a whole number from 1 to 86400"},
		{"{" T "\"ttl_seconds\":-1}", "ttl_seconds must be a whole number from 1 to 86400"},
		{"{" T "\"ttl_seconds\":86401}",
			"ttl_seconds must be a whole number from 1 to 86400"},
		{"{" T "\"ttl_seconds\":9223372036854775807}",
			"ttl_seconds must be a whole number from 1 to 86400"},
		{"{" T "\"ttl_seconds\":1.0}",
			"ttl_seconds must be a whole number from 1 to 86400, "
			"written without a point or exponent"},
		{"{" T "\"ttl_seconds\":1e3}",
			"ttl_seconds must be a whole number from 1 to 86400, "
			"written without a point or exponent"},
		{"{" T "\"ttl_seconds\":1e18}",
			"ttl_seconds must be a whole number from 1 to 86400, "
			"written without a point or exponent"},
		{"{" T "\"ttl_seconds\":\"60\"}",
			"ttl_seconds must be a whole number from 1 to 86400"},
		{"{" T "\"ttl_seconds\":\"NaN\"}",
			"ttl_seconds must be a whole number from 1 to 86400"},
		{"{" T "\"ttl_seconds\":true}",
			"ttl_seconds must be a whole number from 1 to 86400"},
		{"{" T "\"ttl_seconds\":[]}", "ttl_seconds must be a whole number from 1 to 86400"},
		{"{" T "\"pause\":1}", "pause must be true or false"},
		{"{" T "\"pause\":\"true\"}", "pause must be true or false"},
		{"{" T "\"pause\":null}",
			"pause must not be null; give true or false or leave it out"},
		{"{" T "\"env\":[]}", "env must be an object of 0 to 2 strings"},
		{"{" T "\"env\":{\"a\":\"\",\"b\":\"\",\"c\":\"\"}}",
			"env must be an object of 0 to 2 strings"},
		{"{" T "\"env\":{\"A\":1}}", "env.A must be a string of 0 to 10 bytes"},
		{"{" T "\"env\":{\"A\":null}}", "env.A must be a string of 0 to 10 bytes"},
		{"{" T "\"env\":{\"A\":\"12345678901\"}}",
			"env.A must be a string of 0 to 10 bytes, not 11"},
		{"{" T "\"env\":{\"A\":\"\\u0000\"}}", "env.A must not contain NUL"},
		{"{" T "\"env\":{\"\":\"\"}}", "env must have keys of 1 to 5 bytes, not 0"},
		{"{" T "\"env\":{\"ABCDEF\":\"\"}}", "env must have keys of 1 to 5 bytes, not 6"},
		{"{" T "\"env\":{\"A=B\":\"\"}}",
			"env has the key \"A=B\", which must be a name without '='"},
		{"{" T "\"env\":{\"\\u001b[m\":1}}", "env.?[m must be a string of 0 to 10 bytes"},
		{"{" T "\"argv\":{}}", "argv must be an array of 1 to 3 strings"},
		{"{" T "\"argv\":\"ls\"}", "argv must be an array of 1 to 3 strings"},
		{"{" T "\"argv\":[]}", "argv must be an array of 1 to 3 strings"},
		{"{" T "\"argv\":[\"a\",\"b\",\"c\",\"d\"]}",
			"argv must be an array of 1 to 3 strings"},
		{"{" T "\"argv\":[\"a\",2]}", "argv[1] must be a string of 1 to 10 bytes"},
		{"{" T "\"argv\":[\"a\",\"\"]}",
			"argv[1] must be a string of 1 to 10 bytes, not 0"},
		{"{" T "\"argv\":[\"a\\u0000\"]}", "argv[0] must not contain NUL"},
		{"{" T "\"argv\":[[\"a\"]]}", "argv[0] must be a string of 1 to 10 bytes"},
		{"{" T "\"metadata\":[]}", "metadata must be an object"},
		{"{" T "\"metadata\":\"{}\"}", "metadata must be an object"},
		{"{" T "\"tll_seconds\":5}",
			"tll_seconds is not known here; leave it out (known: "
			"ttl_seconds, tenant, offset, pause, env, input, argv, metadata)"},
		{"{" T "\"Tenant\":\"x\"}",
			"Tenant is not known here; leave it out (known: "
			"tenant, input, env, offset, metadata, pause, argv, ttl_seconds)"},
		{"{\"\":1}", " is not known here; leave it out (known: env, argv, input, pause, "
			     "tenant, offset, metadata, ttl_seconds)"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_json json_t *j = parse(cases[i].text);
		struct body b, before;
		struct err err = {0};

		memset(&b, 0x5a, sizeof(b));
		memcpy(&before, &b, sizeof(b));
		if (read_body(j, 0, &b, &err) != -EINVAL)
			fail_msg("%s was not refused", cases[i].text);
		assert_string_equal(err.text, cases[i].says);
		assert_memory_equal(&b, &before, sizeof(b));
	}
}

static void
limits_are_inclusive(void **state)
{
	static const char *const texts[] = {
		"{" T "\"ttl_seconds\":1}",
		"{" T "\"ttl_seconds\":86400}",
		"{" T "\"input\":\"\"}",
		"{" T "\"input\":\"12345678\"}",
		"{" T "\"env\":{}}",
		"{" T "\"argv\":[\"1234567890\"]}",
		"{" T "\"argv\":[\"a\",\"b\",\"c\"]}",
		"{" T "\"env\":{\"ABCDE\":\"1234567890\"}}",
		"{" T "\"offset\":9223372036854775807}",
		"{" T "\"offset\":-9223372036854775808}",
		"{" T "\"metadata\":{}}",
		"{" T "\"metadata\":null}",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		auto_json json_t *j = parse(texts[i]);
		struct body b = {0};
		struct err err = {0};

		if (read_body(j, 0, &b, &err) < 0)
			fail_msg("%s: %s", texts[i], err.text);
	}
}

static void
unknown_fields_can_be_ignored(void **state)
{
	auto_json json_t *j = parse("{" T "\"later\":{\"a\":1}}"),
			 *bad = parse("{" T "\"x\":1,\"pause\":2}");
	struct body b = {0};
	struct err err = {0};

	(void)state;
	assert_int_equal(read_body(j, FIELDS_IGNORE_UNKNOWN, &b, &err), 0);
	assert_true(view_is(b.tenant.v, "acme"));
	assert_int_equal(read_body(bad, FIELDS_IGNORE_UNKNOWN, &b, &err), -EINVAL);
	assert_string_equal(err.text, "pause must be true or false");
}

static void
nested_objects_have_a_path(void **state)
{
	auto_json json_t *j = parse("{\"pause\":3}"), *list = parse("[]"),
			 *other = parse("{\"q\":3}");
	static const struct field inner[] = {
		FIELD_BOOL("pause", struct body, pause, .required = true)};
	struct body b = {0};
	struct err err = {0};

	(void)state;
	assert_int_equal(fields_read(j, "files[2].", inner, 1, 0, &b, &err), -EINVAL);
	assert_string_equal(err.text, "files[2].pause must be true or false");
	assert_int_equal(fields_read(list, "files[2].", inner, 1, 0, &b, &err), -EINVAL);
	assert_string_equal(err.text, "files[2] must be a JSON object");
	assert_int_equal(fields_read(other, "files[2].", inner, 1, 0, &b, &err), -EINVAL);
	assert_string_equal(err.text, "files[2].q is not known here; leave it out (known: pause)");
}

/* A long list tells the names that are close and says that there are more. */
static void
closest_first(void **state)
{
	static const char *const names[] = {"template", "tenant", "task", "ttl_seconds",
		"idle_limit_seconds", "persistent", "metadata", "limits", "from_snapshot",
		"timeout_seconds", "output_limit"};
	auto_json json_t *odd = parse("{\"time_out_seconds\":1}"),
			 *good = parse("{\"limits\":1,\"output_limit\":2}");
	struct err err = {0};

	(void)state;
	assert_int_equal(fields_known(good, "", names, ARRAY_LEN(names), &err), 0);
	assert_int_equal(fields_known(odd, "x.", names, ARRAY_LEN(names), &err), -EINVAL);
	assert_non_null(strstr(err.text,
		"x.time_out_seconds is not known here; leave it out (known: timeout_seconds, "));
	assert_non_null(strstr(err.text, ", ...)"));
	/* None but the only one that does not fit. */
	static const char *const huge[] = {
		"kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk"
		"kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk"};
	assert_int_equal(fields_known(odd, "", huge, 1, &err), -EINVAL);
	assert_string_equal(
		err.text, "time_out_seconds is not known here; leave it out (known: ...)");
}

static void
long_names_are_cut(void **state)
{
	char text[3000], key[2001];
	struct body b = {0};
	struct err err = {0};

	(void)state;
	memset(key, 'k', sizeof(key) - 1);
	key[sizeof(key) - 1] = '\0';
	(void)snprintf(text, sizeof(text), "{\"%s\":1}", key);
	auto_json json_t *j = parse(text);
	assert_int_equal(read_body(j, 0, &b, &err), -EINVAL);
	assert_non_null(strstr(err.text, "kkkk is not known here; leave it out"));
	assert_true(strlen(err.text) < 200);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_is_read),
		cmocka_unit_test(absent_and_null_keep_the_default),
		cmocka_unit_test(refused_with_a_sentence),
		cmocka_unit_test(limits_are_inclusive),
		cmocka_unit_test(unknown_fields_can_be_ignored),
		cmocka_unit_test(nested_objects_have_a_path),
		cmocka_unit_test(closest_first),
		cmocka_unit_test(long_names_are_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
