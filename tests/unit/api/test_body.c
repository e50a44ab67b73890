/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies by table: the rules that lib/json/fields does not know, and how values reach messages. */
#include "body.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static int
read_text(enum body_name name, const char *text, void **ret, json_t **ret_json)
{
	struct err err = {0};

	*ret_json = json_loads(text, JSON_DECODE_ANY, NULL);
	assert_non_null(*ret_json);
	return body_read(name, *ret_json, ret, &err);
}

static void
verdicts(void **state)
{
	static const struct {
		enum body_name name;
		const char *text;
		int want;
	} cases[] = {
		{BODY_sandbox_create, "{}", 0},
		{BODY_sandbox_create, "{\"cpu\":null,\"memory_mb\":\"x\",\"disk_gb\":{}}", 0},
		{BODY_sandbox_create, "{\"volumes\":[],\"from_snapshot\":null}", 0},
		{BODY_sandbox_create, "{\"volumes\":{},\"from_snapshot\":\"\"}", 0},
		{BODY_sandbox_create, "{\"volumes\":[1]}", -ERROR_NOT_BUILT},
		{BODY_sandbox_create, "{\"volumes\":0}", -ERROR_NOT_BUILT},
		{BODY_sandbox_create, "{\"from_snapshot\":\"a\"}", -ERROR_NOT_BUILT},
		{BODY_sandbox_create, "{\"from_snapshot\":false}", -ERROR_NOT_BUILT},
		{BODY_sandbox_create, "{\"limits\":{}}", 0},
		{BODY_sandbox_create, "{\"limits\":null}", 0},
		{BODY_sandbox_create, "{\"limits\":{\"pids\":7}}", -ERROR_BAD_REQUEST},
		{BODY_sandbox_create, "{\"limits\":{\"pid\":8}}", -ERROR_BAD_REQUEST},
		{BODY_sandbox_create, "{\"limits\":[]}", -ERROR_BAD_REQUEST},
		{BODY_sandbox_create, "{\"limits\":{\"cpu\":null}}", -ERROR_BAD_REQUEST},
		{BODY_sandbox_create, "[]", -ERROR_BAD_REQUEST},
		{BODY_sandbox_create, "\"x\"", -ERROR_BAD_REQUEST},
		{BODY_sandbox_create, "{\"ttl_seconds_ms\":1}", -ERROR_BAD_REQUEST},
		{BODY_exec, "{\"timeout_seconds\":0.001}", 0},
		{BODY_exec, "{\"timeout_seconds\":86400}", 0},
		{BODY_exec, "{\"timeout_seconds\":86400.1}", -ERROR_BAD_REQUEST},
		{BODY_exec, "{\"timeout_seconds\":0.0009}", -ERROR_BAD_REQUEST},
		{BODY_exec, "{\"timeout_seconds\":-1}", -ERROR_BAD_REQUEST},
		{BODY_exec, "{\"timeout_seconds\":0}", -ERROR_BAD_REQUEST},
		{BODY_exec, "{\"timeout_seconds\":1e300}", -ERROR_BAD_REQUEST},
		{BODY_exec, "{\"timeout_seconds\":\"1\"}", -ERROR_BAD_REQUEST},
		{BODY_exec, "{\"timeout_seconds\":false}", -ERROR_BAD_REQUEST},
		{BODY_repl_run, "{}", -ERROR_BAD_REQUEST},
		{BODY_repl_run, "{\"code\":null}", -ERROR_BAD_REQUEST},
		{BODY_repl_run, "{\"code\":\"\"}", 0},
		{BODY_proposal_create, "{\"task\":\"t\",\"operation\":\"a\",\"arguments\":{}}", 0},
		{BODY_proposal_create,
			"{\"task\":\"t\",\"operation\":\"a\",\"arguments\":{\"x\":[{}]}}", 0},
		{BODY_proposal_create, "{\"task\":\"t\",\"operation\":\"a\"}", -ERROR_BAD_REQUEST},
		{BODY_proposal_create, "{\"task\":\"t\",\"operation\":\"a\",\"arguments\":null}",
			-ERROR_BAD_REQUEST},
		{BODY_proposal_create, "{\"task\":\"t\",\"operation\":\"a\",\"arguments\":[]}",
			-ERROR_BAD_REQUEST},
		{BODY_proposal_create, "{\"task\":\"t\",\"operation\":\"a\",\"arguments\":\"{}\"}",
			-ERROR_BAD_REQUEST},
		{BODY_proposal_create,
			"{\"task\":\"t\",\"operation\":\"a\",\"arguments\":{},\"digest\":\"\"}",
			-ERROR_BAD_REQUEST},
		{BODY_reconcile, "{}", 0},
		{BODY_reconcile, "{\"outcome\":\"succeeded\"}", -ERROR_BAD_REQUEST},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		void *body = NULL;
		json_t *json;
		int r = read_text(cases[i].name, cases[i].text, &body, &json);

		if (r != cases[i].want)
			fail_msg("%s: %d", cases[i].text, r);
		assert_int_equal(body != NULL, r == 0);
		free(body);
		json_decref(json);
	}
}

static void
not_a_number(void **state)
{
	json_t *json = json_object();
	struct err err = {0};
	void *body = NULL;

	(void)state;
	/* jansson refuses to hold it, as it does to parse it. */
	assert_null(json_real((double)NAN));
	(void)json_object_set_new(json, "timeout_seconds", json_real(1.5));
	assert_int_equal(body_read(BODY_exec, json, &body, &err), 0);
	assert_int_equal(((struct body_exec *)body)->timeout_seconds_ms.v, 1500);
	free(body);
	json_decref(json);
}

static void
blobs(void **state)
{
	json_t *json;
	void *body;
	const struct body_exec *b;
	auto_buf struct buf list, joined, apart;

	(void)state;
	assert_int_equal(
		read_text(BODY_exec, "{\"argv\":[\"a\",\"\",\"b c\"],\"env\":{\"K\":\"v=w\"}}",
			&body, &json),
		0);
	b = body;
	buf_init(&list, 64);
	buf_init(&joined, 64);
	buf_init(&apart, 64);
	body_list(&b->argv, &list);
	body_map(&b->env, true, &joined);
	body_map(&b->env, false, &apart);
	assert_true(view_eq(buf_view(&list), view_of("a\0\0b c", 7)));
	assert_true(view_eq(buf_view(&joined), view_of("K=v=w", 6)));
	assert_true(view_eq(buf_view(&apart), view_of("K\0v=w", 6)));
	free(body);
	json_decref(json);
}

static void
limits_units(void **state)
{
	struct limits limits;
	json_t *json;
	void *body;

	(void)state;
	assert_int_equal(
		read_text(BODY_sandbox_create,
			"{\"limits\":{\"memory_mb\":64,\"disk_mb\":2,\"pids\":19}}", &body, &json),
		0);
	body_limits(&((struct body_sandbox_create *)body)->limits_in, &limits);
	assert_int_equal(limits.memory_bytes, 64 << 20);
	assert_int_equal(limits.disk_bytes, 2 << 20);
	assert_int_equal(limits.pids, 19);
	assert_int_equal(limits.cpu_milli, 0);
	free(body);
	json_decref(json);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(verdicts),
		cmocka_unit_test(not_a_number),
		cmocka_unit_test(blobs),
		cmocka_unit_test(limits_units),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
