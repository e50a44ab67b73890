/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Targets, authorities, paths and parameters: rows A, B and F of the egress table, and what the
 * SDKs send.
 */
#include "lib/http/path.h"
#include "lib/http/query.h"
#include "lib/http/target.h"

#include "lib/base/attr.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <cmocka.h>

#define X32  "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
#define X63  X32 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
#define N253 X63 "." X63 "." X63 "." X32 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

struct row {
	const char *id;
	enum http_reason reason;
	const char *text;
	size_t n;
};

#define BAD(id, reason, text)                                \
	{                                                    \
		id, HTTP_NO_##reason, text, sizeof(text) - 1 \
	}
#define OK(id, text)                                  \
	{                                             \
		id, HTTP_FINE, text, sizeof(text) - 1 \
	}

static const struct row targets[] = {
	BAD("A1", URL, "http://plain.test@evil.test/"),
	BAD("A2", URL, "http://evil.test#@plain.test/"),
	BAD("A3", URL, "http://evil.test\\@plain.test/"),
	BAD("A4", URL, "http://plain.test\\.evil.test/"),
	BAD("A6", URL, "http:///evil.test/"),
	BAD("A6", URL, "http:/evil.test"),
	BAD("A6", URL, "http:evil.test"),
	OK("A7", "//evil.test/"),
	BAD("A8", URL, "http://plain.test:80@evil.test/"),
	BAD("A8", URL, "http://a:b@c:d@evil.test/"),
	BAD("A9", URL, "http://[::1]:80@plain.test/"),
	OK("A11", "http://evil.test?@plain.test/"),
	BAD("A12", HOST_SYNTAX, "http://ev%69l.test/"),
	BAD("A12", HOST_SYNTAX, "http://plain%2etest/"),
	BAD("A13", HOST_SYNTAX, "http://evil.test%00.plain.test/"),
	BAD("A13", HOST_SYNTAX, "http://evil.test\0.plain.test/"),
	BAD("A14", HOST_SYNTAX, "http://evil\t.test/"),
	BAD("A16", HOST_IDN, "http://ev\xc2\xadil.test/"),
	BAD("A17", HOST_IDN, "http://b\xc3\xbc\x63her.test/"),
	BAD("A24", PORT, "http://plain.test:/"),
	BAD("A26", HOST_SYNTAX, "http://[plain.test]/"),
	BAD("A28", SCHEME, "ftp://plain.test/"),
	BAD("A28", SCHEME, "gopher://plain.test/"),
	BAD("A28", SCHEME, "file:///etc/passwd"),
	BAD("A28", SCHEME, "ws://plain.test/"),
	BAD("A28", SCHEME, "data:text/plain,x"),
	BAD("A28", SCHEME, "javascript:x"),
	OK("A28", "HTTP://plain.test/"),
	BAD("A31", URL, "allowed.test:443"),
	BAD("A31", URL, "allowed.test"),
	BAD("A31", URL, "*"),
	BAD("A31", URL, ""),
	BAD("A31", URL, "?x"),
	BAD("A31", URL, "1http://x/"),
	BAD("F6", PATH, "/v1/#x"),
	BAD("F6", QUERY, "/v1/?x#y"),
	BAD("F6", PATH, "/v1/\xff"),
	BAD("F7", PATH, "/v1/%2"),
	BAD("F7", PATH, "/v1/%"),
	BAD("F7", QUERY, "/v1/?%"),
	OK("F11", "/v1/x?path=/v1/&x=https://evil.test"),
	OK("query", "/v1/x?a[b]={c|d}^`\\"),
};

static void
test_targets(void **state)
{
	struct http_target t;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(targets); i++) {
		enum http_reason no = http_target_parse(
			view_of(targets[i].text, targets[i].n), HTTP_GET, 0, &t);

		if (no != targets[i].reason)
			fail_msg("%s %s: %s", targets[i].id, targets[i].text, http_reason_name(no));
	}
	assert_int_equal(
		http_target_parse(view_str("http://evil.test?@plain.test/"), HTTP_GET, 0, &t),
		HTTP_FINE);
	assert_string_equal(t.authority.host, "evil.test");
	assert_true(view_is(t.path, "/") && view_is(t.query, "@plain.test/") && t.has_query);
	assert_int_equal(
		http_target_parse(view_str("https://A.Test:8443/x/?"), HTTP_GET, 0, &t), HTTP_FINE);
	assert_true(t.form == HTTP_FORM_ABSOLUTE && t.https && t.authority.port == 8443);
	assert_true(view_is(t.path, "/x/") && t.query.n == 0 && t.has_query);
	assert_int_equal(http_target_parse(view_str("*"), HTTP_OPTIONS, 0, &t), HTTP_FINE);
	assert_int_equal(t.form, HTTP_FORM_ASTERISK);
	assert_int_equal(http_target_parse(view_str("a.test:443"), HTTP_CONNECT, 0, &t), HTTP_FINE);
	assert_true(t.form == HTTP_FORM_AUTHORITY && t.authority.port == 443);
	assert_int_equal(
		http_target_parse(view_str("/x"), HTTP_CONNECT, 0, &t), HTTP_NO_HOST_SYNTAX);
}

static const struct row authorities[] = {
	OK("A18", "xn--bcher-kva.test"),
	BAD("A19", HOST_SYNTAX, "xn--"),
	BAD("A19", HOST_SYNTAX, "xn--.test"),
	OK("A19", "XN--bcher-kva.test"),
	OK("A21", "plain.test."),
	BAD("A22", HOST_SYNTAX, "plain.test.."),
	BAD("A22", HOST_SYNTAX, ".plain.test"),
	BAD("A22", HOST_SYNTAX, "a..b.test"),
	BAD("A22", HOST_SYNTAX, "."),
	BAD("A22", HOST_SYNTAX, ""),
	BAD("A23", HOST_SYNTAX, "-a.test"),
	BAD("A23", HOST_SYNTAX, "a-.test"),
	OK("A23", X63 ".test"),
	BAD("A23", HOST_SYNTAX, X63 "x.test"),
	OK("A23", N253),
	OK("A23", N253 "."),
	BAD("A23", HOST_SYNTAX, N253 "x"),
	BAD("A23", HOST_SYNTAX, "a_b.test"),
	BAD("A24", PORT, "plain.test:"),
	BAD("A24", PORT, "plain.test:080"),
	BAD("A24", PORT, "plain.test:0"),
	BAD("A24", PORT, "plain.test:65536"),
	BAD("A24", PORT, "plain.test:+80"),
	BAD("A24", PORT, "plain.test: 80"),
	BAD("A24", PORT, "plain.test:80:81"),
	BAD("A24", PORT, "plain.test:80 "),
	BAD("A24", PORT, "plain.test:8_0"),
	OK("A24", "plain.test:1"),
	OK("A24", "plain.test:65535"),
	BAD("A26", HOST_SYNTAX, "[plain.test]"),
	BAD("A26", HOST_SYNTAX, "[127.0.0.1]"),
	BAD("A26", HOST_SYNTAX, "[]"),
	BAD("A26", HOST_SYNTAX, "["),
	BAD("A26", IP_LITERAL, "[::1]x"),
	BAD("B1", IP_LITERAL, "127.0.0.1"),
	BAD("B1", IP_LITERAL, "169.254.169.254"),
	BAD("B1", IP_LITERAL, "10.0.0.1:80"),
	BAD("B2", HOST_SYNTAX, "2130706433"),
	BAD("B2", HOST_SYNTAX, "0x7f000001"),
	BAD("B2", HOST_SYNTAX, "017700000001"),
	BAD("B2", HOST_SYNTAX, "2852039166"),
	BAD("B2", HOST_SYNTAX, "0xA9FEA9FE"),
	BAD("B2", HOST_SYNTAX, "0xA9FEA9FE."),
	BAD("B3", HOST_SYNTAX, "127.1"),
	BAD("B3", HOST_SYNTAX, "127.0.1"),
	BAD("B3", HOST_SYNTAX, "0x7f.1"),
	BAD("B3", HOST_SYNTAX, "0177.0.0.1"),
	BAD("B3", HOST_SYNTAX, "0x7f.0.0.1"),
	BAD("B3", HOST_SYNTAX, "127.0.0.0x1"),
	BAD("B3", HOST_SYNTAX, "169.254.43518"),
	BAD("B3", HOST_SYNTAX, "1.2.3"),
	BAD("B3", HOST_SYNTAX, "0"),
	BAD("B3", HOST_SYNTAX, "00"),
	BAD("B3", HOST_SYNTAX, "0x"),
	BAD("B6", HOST_SYNTAX, "127.0.0.1."),
	BAD("B7", HOST_SYNTAX, "127.0.0.1 foo"),
	BAD("B7", HOST_SYNTAX, "127.0.0.1\t"),
	BAD("B7", HOST_SYNTAX, "127.0.0.1\n"),
	BAD("B7", HOST_SYNTAX, "127.0.0.1\0x"),
	BAD("B8", IP_LITERAL, "[::1]"),
	BAD("B8", IP_LITERAL, "[::]"),
	BAD("B8", IP_LITERAL, "0.0.0.0"),
	BAD("B9", IP_LITERAL, "[::ffff:127.0.0.1]"),
	BAD("B9", IP_LITERAL, "[::ffff:7f00:1]"),
	BAD("B9", IP_LITERAL, "[0:0:0:0:0:ffff:7f00:1]"),
	BAD("B11", IP_LITERAL, "[::ffff:0:127.0.0.1]"),
	BAD("B12", IP_LITERAL, "[64:ff9b::a9fe:a9fe]"),
	BAD("B13", IP_LITERAL, "[2002:a9fe:a9fe::1]"),
	BAD("B14", IP_LITERAL, "[2001:0:4136:e378:8000:63bf:5601:5601]"),
	BAD("B16", HOST_SYNTAX, "[fe80::1%eth0]"),
	BAD("B16", HOST_SYNTAX, "[fe80::1%25eth0]"),
	BAD("B16", HOST_SYNTAX, "::ffff:1.2.3.4%x.allowed.test"),
	BAD("B16", HOST_SYNTAX, "::1"),
	BAD("B17", IP_LITERAL, "[fec0::1]"),
};

static void
test_authorities(void **state)
{
	struct http_authority a, b;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(authorities); i++) {
		enum http_reason no = http_authority_parse(
			view_of(authorities[i].text, authorities[i].n), 0, &a);

		if (no != authorities[i].reason)
			fail_msg("%s %s: %s", authorities[i].id, authorities[i].text,
				http_reason_name(no));
	}
	assert_int_equal(http_authority_parse(view_str("PLAIN.test.:80"), 0, &a), HTTP_FINE);
	assert_string_equal(a.host, "plain.test");
	assert_int_equal(http_authority_parse(view_str("plain.test"), 0, &b), HTTP_FINE);
	assert_true(http_authority_eq(&a, &b, 80));
	assert_false(http_authority_eq(&a, &b, 443));
	assert_false(http_authority_eq(&a, &b, 0));
	assert_int_equal(http_authority_parse(view_str("plaim.test:80"), 0, &b), HTTP_FINE);
	assert_false(http_authority_eq(&a, &b, 80));
	assert_int_equal(http_authority_parse(view_str("a_b.test"), HTTP_AUTHORITY_UNDERSCORE, &a),
		HTTP_FINE);
	assert_int_equal(http_authority_parse(view_of("b\0.test", 7), 0, &a), HTTP_NO_HOST_SYNTAX);
}

/* B24: addresses where they are allowed, in the canonical form alone. */
static void
test_addresses(void **state)
{
	static const char *const good[] = {
		"1.1.1.1", "1.1.1.1:443", "[::1]", "[::1]:7420", "[2001:db8::1:0:0:1]"};
	static const char *const bad[] = {"[::ffff:7f00:1]", "[0:0:0:0:0:0:0:1]", "[::0001]",
		"[FE80::1]", "[::1%lo]", "01.1.1.1", "1.1.1.1."};
	struct http_authority a;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		assert_int_equal(
			http_authority_parse(view_str(good[i]), HTTP_AUTHORITY_IP, &a), HTTP_FINE);
	assert_true(a.kind == HTTP_HOST_IPV6 && a.port == 0);
	assert_string_equal(a.host, "2001:db8::1:0:0:1");
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_not_equal(
			http_authority_parse(view_str(bad[i]), HTTP_AUTHORITY_IP, &a), HTTP_FINE);
}

static const struct row paths[] = {
	OK("F", "/v1/"),
	OK("F", "/"),
	OK("F", "/v1/a-b_c.d~e!$&'()*+,=:@"),
	OK("F", "/v1/..."),
	OK("F", "/v1/.hidden"),
	OK("F", "/v1/a..b"),
	BAD("F1", PATH, "/v1/../admin"),
	BAD("F1", PATH, "/v1/./x"),
	BAD("F1", PATH, "/v1/.."),
	BAD("F1", PATH, "/v1/%2e%2e/admin"),
	BAD("F1", PATH, "/v1/%2E"),
	BAD("F1", PATH, "/v1/.%2e/"),
	BAD("F2", PATH, "/v1/%2fadmin"),
	BAD("F2", PATH, "/v1%2f..%2fadmin"),
	BAD("F2", PATH, "/v1/%5c"),
	BAD("F2", PATH, "/v1/\\x"),
	BAD("F3", PATH, "//v1/x"),
	BAD("F3", PATH, "/v1//x"),
	BAD("F3", PATH, "/v1//"),
	BAD("A7", PATH, "//evil.test/"),
	BAD("F4", PATH_PARAM, "/v1;x=1/../admin"),
	BAD("F4", PATH_PARAM, "/v1/a;b"),
	BAD("F4", PATH_PARAM, "/v1/a%3bb"),
	BAD("F6", PATH, "/v1/%00"),
	BAD("F6", PATH, "/v1/%0d%0a"),
	BAD("F6", PATH, "/v1/%7f"),
	BAD("F6", PATH, "/v1/\x01"),
	BAD("F6", PATH, "/v1/\0"),
	BAD("F6", PATH, "/v1/\xc3\xa4"),
	BAD("F6", PATH, "/v1/#"),
	BAD("F6", PATH, "/v1/?"),
	BAD("F7", PATH, "/v1/%zz"),
	BAD("F7", PATH, "/v1/%2"),
	BAD("F7", PATH, "/v1/%"),
	BAD("F7", PATH, "/v1/%u002e"),
	BAD("F7", PATH, "/v1/%252e%252e"),
	OK("F13", "/v1/%ef%bc%8f"),
	BAD("F13", PATH, "/v1/%c0%ae"),
	BAD("F13", PATH, "/v1/%ff"),
	BAD("F13", PATH, "/v1/%c3"),
	BAD("F13", PATH, "/v1/%c3/x"),
	BAD("F13", PATH, "/v1/%ed%a0%80"),
	BAD("F", PATH, "v1"),
	BAD("F", PATH, ""),
};

static void
test_paths(void **state)
{
	unsigned slash = HTTP_PATH_ENCODED_SLASH;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		enum http_reason no = http_path_judge(view_of(paths[i].text, paths[i].n), 0);

		if (no != paths[i].reason)
			fail_msg("%s %s: %s", paths[i].id, paths[i].text, http_reason_name(no));
	}
	assert_int_equal(http_reason_status(HTTP_NO_PATH_PARAM, HTTP_REQUEST), 403);
	assert_int_equal(http_path_judge(view_str("/v1/a%2fb"), slash), HTTP_FINE);
	assert_int_equal(http_path_judge(view_str("/v1/a%2f..%2fb"), slash), HTTP_NO_PATH);
	assert_int_equal(http_path_judge(view_str("/v1/%2e%2e%2fb"), slash), HTTP_NO_PATH);
	assert_int_equal(http_path_judge(view_str("/v1/b%5c.."), slash), HTTP_NO_PATH);
	assert_int_equal(http_path_judge(view_str("/v1/a;b"), HTTP_PATH_SEMICOLON), HTTP_FINE);
	assert_int_equal(
		http_path_judge(view_str("/v1/..;x/b"), HTTP_PATH_SEMICOLON), HTTP_NO_PATH);
	assert_int_equal(http_path_judge(view_str("/v1/%252e"), HTTP_PATH_PERCENT), HTTP_FINE);
	assert_int_equal(http_path_judge(view_str("/v1//x"), HTTP_PATH_EMPTY), HTTP_FINE);
	/* F8 */
	assert_true(http_path_under(view_str("/v1/x"), "/v1/") &&
		    http_path_under(view_str("/v1/"), "/v1/"));
	assert_true(http_path_under(view_str("/v1"), "/v1") &&
		    http_path_under(view_str("/v1/x"), "/v1"));
	assert_false(http_path_under(view_str("/v1"), "/v1/"));
	assert_false(http_path_under(view_str("/v1evil"), "/v1"));
	assert_false(http_path_under(view_str("/v1evil"), "/v1/"));
}

static void
test_split(void **state)
{
	struct view seg[4];
	size_t n;

	(void)state;
	assert_int_equal(
		http_path_split(view_str("/v1/sandboxes/sb%5f1/exec"), seg, 4, &n), HTTP_FINE);
	assert_int_equal(n, 4);
	assert_true(view_is(seg[2], "sb%5f1") && view_is(seg[3], "exec"));
	assert_int_equal(http_path_split(view_str("/"), seg, 4, &n), HTTP_FINE);
	assert_int_equal(n, 0);
	assert_int_equal(http_path_split(view_str("/a/b/c/d/e"), seg, 4, &n), HTTP_NO_PATH);
	assert_int_equal(http_path_split(view_str("/a//c"), seg, 4, &n), HTTP_NO_PATH);
	assert_int_equal(http_path_split(view_str("//"), seg, 4, &n), HTTP_NO_PATH);
	assert_int_equal(http_path_split(view_str("/a/"), seg, 4, &n), HTTP_NO_PATH);
	assert_int_equal(http_path_split(view_str("a"), seg, 4, &n), HTTP_NO_PATH);
}

struct query {
	const char *text;
	enum http_reason reason;
	const char *name, *value; /* of the first parameter */
	unsigned n;
};

static const struct query queries[] = {
	{"", HTTP_FINE, NULL, NULL, 0},
	{"path=%2Fa+b%2Bc&x=1", HTTP_FINE, "path", "/a b+c", 2},
	{"follow", HTTP_FINE, "follow", "", 1},
	{"a==", HTTP_FINE, "a", "=", 1},
	{"p=%C3%A4", HTTP_FINE, "p", "\xc3\xa4", 1},
	{"a+b=1", HTTP_FINE, "a b", "1", 1},
	{"a=1&a=1", HTTP_NO_QUERY_TWICE, NULL, NULL, 0},
	{"a=1&b=2&%61=3", HTTP_NO_QUERY_TWICE, NULL, NULL, 0},
	{"a=1&a", HTTP_NO_QUERY_TWICE, NULL, NULL, 0},
	{"a=1&", HTTP_NO_QUERY, NULL, NULL, 0},
	{"&a=1", HTTP_NO_QUERY, NULL, NULL, 0},
	{"a=1&&b=2", HTTP_NO_QUERY, NULL, NULL, 0},
	{"=1", HTTP_NO_QUERY, NULL, NULL, 0},
	{"a=%", HTTP_NO_QUERY, NULL, NULL, 0},
	{"a=%4", HTTP_NO_QUERY, NULL, NULL, 0},
	{"a=%g1", HTTP_NO_QUERY, NULL, NULL, 0},
	{"a=%1g", HTTP_NO_QUERY, NULL, NULL, 0},
	{"a=%00", HTTP_NO_QUERY, NULL, NULL, 0},
	{"a=%ff", HTTP_NO_QUERY, NULL, NULL, 0},
	{"a=%c0%ae", HTTP_NO_QUERY, NULL, NULL, 0},
	{"%ff=a", HTTP_NO_QUERY, NULL, NULL, 0},
};

static void
test_queries(void **state)
{
	static struct http_params params;
	uint8_t mem[256], out[8];
	char many[256];
	size_t n = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(queries); i++) {
		const struct query *q = &queries[i];
		enum http_reason no = http_query_parse(view_str(q->text), 0, mem, &params);

		if (no != q->reason || (no == HTTP_FINE && params.n != q->n))
			fail_msg("%s: %s", q->text, http_reason_name(no));
		if (no == HTTP_FINE && q->name != NULL)
			assert_true(view_is(http_param_find(&params, q->name)->value, q->value));
	}
	assert_null(http_param_find(&params, "none"));
	assert_int_equal(
		http_query_parse(view_str("a=%00"), HTTP_DECODE_NUL, mem, &params), HTTP_FINE);
	assert_int_equal(params.param[0].value.n, 1);
	assert_int_equal(
		http_query_parse(view_str("%00=a"), HTTP_DECODE_NUL, mem, &params), HTTP_NO_QUERY);
	for (unsigned extra = 0; extra < 2; extra++) {
		n = 0;
		for (unsigned i = 0; i < HTTP_PARAMS_MAX + extra; i++)
			n += (size_t)snprintf(
				many + n, sizeof(many) - n, "%sp%u", i > 0 ? "&" : "", i);
		assert_int_equal(http_query_parse(view_of(many, n), 0, mem, &params),
			extra == 0 ? HTTP_FINE : HTTP_NO_QUERY_LONG);
	}
	assert_true(http_percent_decode(view_str("a+b%20"), 0, out, &n));
	assert_true(view_is(view_of(out, n), "a+b "));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_targets),
		cmocka_unit_test(test_authorities),
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_split),
		cmocka_unit_test(test_queries),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
