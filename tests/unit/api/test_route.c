/* SPDX-License-Identifier: Apache-2.0 */
/* The router, and that the OpenAPI document has its routes and no other. */
#include "route.h"
#include "text.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static int
find(enum http_method method, const char *path, const struct route **ret, size_t *ret_nargs,
	unsigned *ret_allow)
{
	struct view segment[ROUTE_SEGMENTS], arg[REQUEST_ARGS];
	struct err err = {0};
	size_t n;

	if (http_path_split(view_str(path), segment, ROUTE_SEGMENTS, &n) != HTTP_FINE)
		return -ERROR_NOT_FOUND;
	return route_find(method, segment, n, ret, arg, ret_nargs, ret_allow, &err);
}

/* Each row is found by its own pattern and no row hides behind one before it. */
static void
every_row(void **state)
{
	(void)state;
	for (size_t i = 0; i < routes_n; i++) {
		const struct route *got = NULL;
		enum http_method method = routes[i].method == ROUTE_ANY
						  ? HTTP_GET
						  : (enum http_method)routes[i].method;
		size_t nargs;
		unsigned allow;

		assert_int_equal(find(method, routes[i].path, &got, &nargs, &allow), 0);
		assert_ptr_equal(got, &routes[i]);
	}
}

static void
refusals(void **state)
{
	static const struct {
		enum http_method method;
		const char *path;
		int want;
	} cases[] = {
		{HTTP_GET, "/", -ERROR_NOT_FOUND},
		{HTTP_GET, "/v1", -ERROR_NOT_FOUND},
		{HTTP_GET, "/v1/sandboxes/a/fs/dir/x", -ERROR_NOT_FOUND},
		{HTTP_GET, "/v1/sandboxe", -ERROR_NOT_FOUND},
		{HTTP_GET, "/v1/sandboxess", -ERROR_NOT_FOUND},
		{HTTP_GET, "/v1/sandbox%65s", -ERROR_NOT_FOUND},
		{HTTP_GET, "/v1%2fsandboxes", -ERROR_NOT_FOUND},
		{HTTP_GET, "/V1/sandboxes", -ERROR_NOT_FOUND},
		{HTTP_GET, "/v1/databasesx", -ERROR_NOT_FOUND},
		{HTTP_PUT, "/v1/sandboxes", -ERROR_NOT_ALLOWED},
		{HTTP_DELETE, "/healthz", -ERROR_NOT_ALLOWED},
		{HTTP_HEAD, "/healthz", -ERROR_NOT_ALLOWED},
		{HTTP_GET, "/v1/sandboxes/a/exec", -ERROR_NOT_ALLOWED},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct route *got = NULL;
		size_t nargs;
		unsigned allow;

		assert_int_equal(
			find(cases[i].method, cases[i].path, &got, &nargs, &allow), cases[i].want);
		assert_int_equal(allow == 0, cases[i].want == -ERROR_NOT_FOUND);
	}
}

static void
arguments(void **state)
{
	const struct route *got;
	size_t nargs;
	unsigned allow;

	(void)state;
	assert_int_equal(
		find(HTTP_GET, "/v1/sandboxes/a%2Fb/jobs/c/stream", &got, &nargs, &allow), 0);
	assert_int_equal(nargs, 2);
	assert_int_equal(find(HTTP_DELETE, "/v1/databases/a/b/c", &got, &nargs, &allow), 0);
	assert_int_equal(find(HTTP_GET, "/v1/templates/builds", &got, &nargs, &allow), 0);
	assert_int_equal(nargs, 0);
	assert_int_equal(find(HTTP_PUT, "/v1/sandboxes", &got, &nargs, &allow), -ERROR_NOT_ALLOWED);
	assert_int_equal(allow, 1U << HTTP_GET | 1U << HTTP_POST);
}

/* Everything but these needs a caller. */
static void
public_rows(void **state)
{
	static const char *const open[] = {"/healthz", "/readyz", "/version", "/openapi.json"};
	size_t n = 0;

	(void)state;
	for (size_t i = 0; i < routes_n; i++) {
		if (routes[i].scope != ROUTE_PUBLIC)
			continue;
		assert_true(n < ARRAY_LEN(open));
		assert_string_equal(routes[i].path, open[n++]);
	}
	assert_int_equal(n, ARRAY_LEN(open));
}

static const json_t *
operation(const json_t *paths, const char *path, const char *method)
{
	char shown[128];
	const char *rest = strstr(path, "{...}");

	(void)snprintf(shown, sizeof(shown), "%.*s%s",
		rest == NULL ? (int)strlen(path) : (int)(rest - path), path,
		rest == NULL ? "" : "{rest}");
	return json_object_get(json_object_get(paths, shown), method);
}

/* What an operation answers: at least one thing besides refusals, which are all the same object. */
static void
answers(const json_t *operation)
{
	json_t *all = json_object_get(operation, "responses"), *one, *refusal;
	const char *status;
	bool fine = false;

	json_object_foreach(all, status, one)
	{
		assert_non_null(json_object_get(one, "description"));
		fine = fine || strcmp(status, "default") != 0;
	}
	assert_true(fine);
	refusal = json_object_get(
		json_object_get(json_object_get(all, "default"), "content"), "application/json");
	assert_string_equal(
		json_string_value(json_object_get(json_object_get(refusal, "schema"), "$ref")),
		"#/components/schemas/error");
}

/* Puts the name behind each $ref below j into `used`; every one must be there. */
static void
references(json_t *j, const json_t *schemas, json_t *used)
{
	static const char head[] = "#/components/schemas/";
	const char *key, *to;
	json_t *value;
	size_t i;

	if (json_is_array(j))
		json_array_foreach(j, i, value) references(value, schemas, used);
	if (!json_is_object(j))
		return;
	to = json_string_value(json_object_get(j, "$ref"));
	if (to != NULL) {
		assert_int_equal(strncmp(to, head, sizeof(head) - 1), 0);
		assert_non_null(json_object_get(schemas, to + sizeof(head) - 1));
		assert_int_equal(json_object_set_new(used, to + sizeof(head) - 1, json_true()), 0);
	}
	json_object_foreach(j, key, value) references(value, schemas, used);
}

/* No reference goes nowhere, and no schema is there for nothing. */
static void
schemas_used(void **state)
{
	json_t *doc = json_loadb((const char *)openapi_json, openapi_json_bytes, 0, NULL),
	       *used = json_object(),
	       *schemas = json_object_get(json_object_get(doc, "components"), "schemas");

	(void)state;
	references(doc, schemas, used);
	assert_true(json_object_size(schemas) > 0);
	assert_int_equal(json_object_size(schemas), json_object_size(used));
	json_decref(used);
	json_decref(doc);
}

static void
documented(void **state)
{
	static const char *const lower[HTTP_METHODS] = {[HTTP_GET] = "get",
		[HTTP_POST] = "post",
		[HTTP_PUT] = "put",
		[HTTP_PATCH] = "patch",
		[HTTP_DELETE] = "delete"};
	json_t *doc = json_loadb(
		(const char *)openapi_json, openapi_json_bytes, JSON_REJECT_DUPLICATES, NULL);
	json_t *paths = json_object_get(doc, "paths"), *path;
	const char *name;
	size_t rows = 0, operations = 0;

	(void)state;
	assert_non_null(doc);
	for (size_t i = 0; i < routes_n; i++) {
		if (routes[i].method == ROUTE_ANY) {
			rows += 5;
			assert_non_null(operation(paths, routes[i].path, "patch"));
		} else {
			rows++;
			assert_non_null(operation(paths, routes[i].path, lower[routes[i].method]));
		}
	}
	json_object_foreach(paths, name, path)
	{
		const char *method;
		json_t *one;

		operations += json_object_size(path);
		json_object_foreach(path, method, one) answers(one);
	}
	assert_int_equal(operations, rows);
	json_decref(doc);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row),
		cmocka_unit_test(refusals),
		cmocka_unit_test(arguments),
		cmocka_unit_test(public_rows),
		cmocka_unit_test(documented),
		cmocka_unit_test(schemas_used),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
