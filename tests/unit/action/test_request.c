/* SPDX-License-Identifier: Apache-2.0 */
/* The exact request: the host builds it, a value is never more than a value. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/action/request.h"
#include "lib/base/id.h"
#include "tests/unit/action/parsed.h"

#include <errno.h>
#include <stdio.h>

#define KEY "dml-0123456789abcdef0123456789abcdef01234567"

static struct request_values
values(const char *arguments)
{
	return (struct request_values){
		.arguments = view_str(arguments),
		.tenant = view_str("acme"),
		.task = view_str("tk_0000000000000000"),
		.proposal = view_str("pr_0000000000000000"),
		.key = view_str(KEY),
	};
}

static void
made(const struct parsed *p, const char *arguments, const char *method, const char *url,
	const char *type, const char *body)
{
	struct request_values v = values(arguments);
	struct request r = {0};
	struct err err = {0};

	if (request_render(&p->op, &v, &r, &err) < 0)
		fail_msg("%s: %s", arguments, err.text);
	assert_string_equal(r.method, method);
	assert_string_equal(r.content_type, type);
	if (!view_is(buf_view(&r.url), url) || !view_is(buf_view(&r.body), body))
		fail_msg("%.*s %.*s", (int)r.url.n, (const char *)r.url.p, (int)r.body.n,
			(const char *)r.body.p);
	request_done(&r);
}

static void
not_made(const struct parsed *p, const char *arguments, const char *why)
{
	struct request_values v = values(arguments);
	struct request r = {.method = "KEPT"};
	struct err err = {0};
	int e = request_render(&p->op, &v, &r, &err);

	if (e != -EINVAL || strstr(err.text, why) == NULL)
		fail_msg("%s: %d %s", arguments, e, err.text);
	assert_string_equal(r.method, "KEPT");
	assert_null(r.url.p);
	assert_null(r.body.p);
}

static void
the_sample_s_requests(void **state)
{
	auto_parsed struct parsed refund, status, note, reply;

	(void)state;
	parse(&refund, "refund", NULL, NULL);
	parse(&status, "order_status", NULL, NULL);
	parse(&note, "note", NULL, NULL);
	parse(&reply, "reply", NULL, NULL);
	made(&refund, "{\"cents\":4200,\"order_id\":\"48221\",\"reason\":\"late\"}", "POST",
		"http://provider.test:8080/v1/orders/48221/refunds", "application/json",
		"{\"amount\":4200,\"currency\":\"EUR\",\"reason\":\"late\"}");
	made(&refund,
		"{\"cents\":1,\"memo\":\"a\\n\\\"b\",\"order_id\":\"48221\",\"reason\":\"late\"}",
		"POST", "http://provider.test:8080/v1/orders/48221/refunds", "application/json",
		"{\"amount\":1,\"currency\":\"EUR\",\"memo\":\"a\\n\\\"b\",\"reason\":\"late\"}");
	made(&status, "{\"order_id\":\"48221\"}", "GET",
		"http://provider.test:8080/v1/orders/48221", "", "");
	made(&note, "{\"text\":\"x\"}", "POST", "http://provider.test:8080/v1/tenants/acme/notes",
		"application/json", "{\"text\":\"x\"}");
	made(&reply, "{\"body\":\"x\",\"recipient\":\"a@b\",\"subject\":\"y\"}", "POST",
		"http://provider.test:8080/v1/messages", "application/json",
		"{\"to\":\"a@b\",\"subject\":\"y\",\"body\":\"x\"}");
}

static void
the_origin_is_written_in_one_way(void **state)
{
	static const struct {
		const char *origin, *url;
	} rows[] = {
		{"'port':443,'tls':true", "https://provider.test/v1/messages"},
		{"'port':80,'tls':true", "https://provider.test:80/v1/messages"},
		{"'port':80,'tls':false", "http://provider.test/v1/messages"},
		{"'port':443,'tls':false", "http://provider.test:443/v1/messages"},
		{"'port':65535,'tls':true", "https://provider.test:65535/v1/messages"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		auto_parsed struct parsed p;

		parse(&p, "reply", "'port':8080,'tls':false", rows[i].origin);
		assert_int_equal(p.code, 0);
		made(&p, "{\"body\":\"x\",\"recipient\":\"a@b\",\"subject\":\"y\"}", "POST",
			rows[i].url, "application/json",
			"{\"to\":\"a@b\",\"subject\":\"y\",\"body\":\"x\"}");
	}
}

/* A path segment and a query that take any text. */
static void
loose(struct parsed *p)
{
	parse(p, "order_status",
		"{'identifier':true,'max':12,'min':1,'name':'order_id','pattern':'[0-9]{1,12}',"
		"'type':'string'}",
		"{'name':'flag','optional':true,'type':'boolean'},"
		"{'max':9,'min':-9,'name':'n','optional':true,'type':'integer'},"
		"{'max':8000,'min':0,'multiline':true,'name':'order_id','type':'string'},"
		"{'max':8000,'min':0,'multiline':true,'name':'q','optional':true,'type':'string'}");
	assert_int_equal(p->code, 0);
}

static void
loose_with_query(struct parsed *p)
{
	auto_buf struct buf all = {.max = 65536}, from = {.max = 64};
	auto_parsed struct parsed first;
	const uint8_t *at;

	loose(&first);
	quoted("'receipt'", &from);
	at = memmem(first.document.p, first.document.n, from.p, from.n);
	must(at != NULL);
	buf_add(&all, first.document.p, (size_t)(at - first.document.p));
	quoted("'query':[{'name':'q x','value':{'argument':'q'}},"
	       "{'name':'n','value':{'argument':'n'}},{'name':'flag','value':{'argument':'flag'}},"
	       "{'name':'who','value':{'host':'tenant'}},{'name':'k','value':{'literal':'a&b=c'}}]"
	       ",",
		&all);
	buf_add_view(&all, view_skip(buf_view(&first.document), (size_t)(at - first.document.p)));
	*p = (struct parsed){.document = {.max = 65536}};
	buf_add_view(&p->document, buf_view(&all));
	p->code = operation_read(buf_view(&p->document), &p->op, &p->err);
	if (p->code != 0)
		fail_msg("%s", p->err.text);
}

static void
B1_a_value_is_never_another_host(void **state)
{
	static const struct {
		const char *value, *encoded;
	} rows[] = {
		{"user@host", "user%40host"},
		{"@evil.com", "%40evil.com"},
		{":8081", "%3A8081"},
		{"a?b=c", "a%3Fb%3Dc"},
		{"a#b", "a%23b"},
		{"a;b", "a%3Bb"},
		{"a b+c", "a%20b%2Bc"},
		{"\xc3\xa9", "%C3%A9"},
		{"\xf0\x9f\x98\x80", "%F0%9F%98%80"},
		{"~-._aZ09", "~-._aZ09"},
		{"[::1]", "%5B%3A%3A1%5D"},
		{"...", "..."},
		{"a..b", "a..b"},
		{"%00", "%2500"},
		{"<>'()*!$&,=", "%3C%3E%27%28%29%2A%21%24%26%2C%3D"},
	};
	auto_parsed struct parsed p;

	(void)state;
	loose(&p);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char arguments[128], url[128];

		(void)snprintf(
			arguments, sizeof(arguments), "{\"order_id\":\"%s\"}", rows[i].value);
		(void)snprintf(url, sizeof(url), "http://provider.test:8080/v1/orders/%s",
			rows[i].encoded);
		made(&p, arguments, "GET", url, "", "");
	}
	not_made(&p, "{\"order_id\":\"\\\\@evil.com\"}", "backslash");
}

static void
B2_a_value_is_never_another_path(void **state)
{
	static const char *const bad[] = {
		"", ".", "..", "../admin", "a/b", "/", "..\\\\admin", "a\\\\b"};
	auto_parsed struct parsed p;

	(void)state;
	loose(&p);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		char arguments[128];

		(void)snprintf(arguments, sizeof(arguments), "{\"order_id\":\"%s\"}", bad[i]);
		not_made(&p, arguments, "a part of the path");
	}
	made(&p, "{\"order_id\":\"%2e%2e\"}", "GET",
		"http://provider.test:8080/v1/orders/%252e%252e", "", "");
	made(&p, "{\"order_id\":\"%2f\"}", "GET", "http://provider.test:8080/v1/orders/%252f", "",
		"");
	not_made(&p, "{}", "a part of the path is absent");
}

static void
B7_no_line_end_reaches_the_address(void **state)
{
	static const char *const bad[] = {
		"a\\r\\nX: y", "a\\n", "\\t", "\\u0000", "\\u001b", "\x7f", "\xc2\x85"};
	auto_parsed struct parsed p;

	(void)state;
	loose_with_query(&p);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		char arguments[128];

		(void)snprintf(arguments, sizeof(arguments), "{\"order_id\":\"%s\"}", bad[i]);
		not_made(&p, arguments, "a part of the path");
		(void)snprintf(
			arguments, sizeof(arguments), "{\"order_id\":\"1\",\"q\":\"%s\"}", bad[i]);
		not_made(&p, arguments, "a value of the query has a control character");
	}
}

static void
the_query_is_encoded_and_in_order(void **state)
{
	auto_parsed struct parsed p;

	(void)state;
	loose_with_query(&p);
	made(&p, "{\"flag\":true,\"n\":-5,\"order_id\":\"1\",\"q\":\"a=1&b=../?#\"}", "GET",
		"http://provider.test:8080/v1/orders/1?q%20x=a%3D1%26b%3D..%2F%3F%23&n=-5&flag=true"
		"&who=acme&k=a%26b%3Dc",
		"", "");
	made(&p, "{\"order_id\":\"1\"}", "GET",
		"http://provider.test:8080/v1/orders/1?who=acme&k=a%26b%3Dc", "", "");
	made(&p, "{\"flag\":false,\"order_id\":\"1\",\"q\":\"\"}", "GET",
		"http://provider.test:8080/v1/orders/1?q%20x=&flag=false&who=acme&k=a%26b%3Dc", "",
		"");
}

static void
what_is_too_long_is_not_sent(void **state)
{
	auto_buf struct buf arguments = {.max = 65536};
	auto_parsed struct parsed p;

	(void)state;
	loose(&p);
	buf_add_str(&arguments, "{\"order_id\":\"");
	for (size_t i = 0; i < 1400; i++)
		buf_add_str(&arguments, "@");
	buf_add_str(&arguments, "\"}");
	buf_add_byte(&arguments, 0);
	not_made(&p, (const char *)arguments.p, "more than 4096 bytes");
	buf_clear(&arguments);
	buf_add_str(&arguments, "{\"order_id\":\"");
	for (size_t i = 0; i < 5000; i++)
		buf_add_str(&arguments, "a");
	buf_add_str(&arguments, "\"}");
	buf_add_byte(&arguments, 0);
	not_made(&p, (const char *)arguments.p, "too large");
}

static void
a_body_has_the_members_in_the_document_s_order(void **state)
{
	auto_parsed struct parsed p;

	(void)state;
	parse(&p, "refund", "{'object':[{'name':'amount','value':{'argument':'cents'}}",
		"{'object':[{'name':'z-1 "
		"\\'x','value':{'object':[{'name':'k','value':{'host':'key'}},"
		"{'name':'t','value':{'host':'task'}},{'name':'p','value':{'host':'proposal'}}]}},"
		"{'name':'list','value':{'array':[{'argument':'memo'},{'argument':'cents'},"
		"{'literal':true},{'literal':'q\\'q'},{'array':[{'argument':'memo'}]}]}},"
		"{'name':'amount','value':{'argument':'cents'}}");
	if (p.code != 0)
		fail_msg("%s", p.err.text);
	made(&p, "{\"cents\":7,\"order_id\":\"1\",\"reason\":\"late\"}", "POST",
		"http://provider.test:8080/v1/orders/1/refunds", "application/json",
		"{\"z-1 \\\"x\":{\"k\":\"" KEY "\",\"t\":\"tk_0000000000000000\","
		"\"p\":\"pr_0000000000000000\"},\"list\":[7,true,\"q\\\"q\",[]],\"amount\":7,"
		"\"currency\":\"EUR\",\"reason\":\"late\"}");
}

static void
a_form_is_encoded(void **state)
{
	auto_parsed struct parsed p;

	(void)state;
	parse(&p, "refund", "'encoding':'json'", "'encoding':'form'");
	assert_int_equal(p.code, 0);
	made(&p, "{\"cents\":7,\"memo\":\"a&b=c\\nd\",\"order_id\":\"1\",\"reason\":\"late\"}",
		"POST", "http://provider.test:8080/v1/orders/1/refunds",
		"application/x-www-form-urlencoded",
		"amount=7&currency=EUR&memo=a%26b%3Dc%0Ad&reason=late");
	parsed_done(&p);
	parse(&p, "refund", "{'literal':'EUR'}},{'name':'memo'",
		"{'array':[{'literal':'EUR'}]}},{'name':'memo'");
	assert_int_equal(p.code, 0);
	parsed_done(&p);
	parse(&p, "note",
		"{'object':[{'name':'text','value':{'argument':'text'}}]},'encoding':'json'",
		"{'array':[{'argument':'text'}]},'encoding':'form'");
	assert_int_equal(p.code, -EINVAL);
}

static void
verify_and_lookup_are_reads(void **state)
{
	struct request_values v = values(
		"{\"cents\":7,\"order_id\":\"48221\",\"reason\":\"late\"}");
	auto_parsed struct parsed p, status, by;
	struct lookup_rule rule;
	struct request r;
	struct err err;

	(void)state;
	parse(&p, "refund", NULL, NULL);
	assert_int_equal(request_render_verify(&p.op, &v, &r, &err), 0);
	assert_string_equal(r.method, "GET");
	assert_string_equal(r.content_type, "");
	assert_true(view_is(buf_view(&r.url), "http://provider.test:8080/v1/orders/48221"));
	assert_int_equal(r.body.n, 0);
	request_done(&r);
	assert_int_equal(request_render_lookup(&p.op, &v, &r, &err), 0);
	assert_string_equal(r.method, "GET");
	assert_true(view_is(buf_view(&r.url), "http://provider.test:8080/v1/executions?key=" KEY));
	request_done(&r);
	assert_true(request_lookup_rule(&p.op, &rule));
	assert_true(view_is(rule.list, "data"));
	assert_true(view_is(rule.field, "status"));
	assert_true(lookup_rule_has(rule.succeeded, view_str("succeeded")));
	assert_false(lookup_rule_has(rule.succeeded, view_str("failed")));
	assert_true(lookup_rule_has(rule.failed, view_str("failed")));
	assert_false(lookup_rule_has(view_of(NULL, 0), view_str("failed")));
	parse(&status, "order_status", NULL, NULL);
	assert_int_equal(request_render_verify(&status.op, &v, &r, &err), -EINVAL);
	assert_int_equal(request_render_lookup(&status.op, &v, &r, &err), -EINVAL);
	assert_false(request_lookup_rule(&status.op, &rule));
	parse(&by, "refund",
		"'by':'key','consistency_ms':500,'failed':['failed'],'field':'status','list':'data'"
		","
		"'path':['v1','executions'],'query':[{'name':'key','value':{'host':'key'}}]",
		"'by':'reference','consistency_ms':500,'field':'status','path':['v1',{'host':'"
		"reference'}]");
	assert_int_equal(by.code, 0);
	assert_int_equal(request_render_lookup(&by.op, &v, &r, &err), -EINVAL);
	v.reference = view_str("re_1/x");
	assert_int_equal(request_render_lookup(&by.op, &v, &r, &err), -EINVAL);
	v.reference = view_str("re_1");
	assert_int_equal(request_render_lookup(&by.op, &v, &r, &err), 0);
	assert_true(view_is(buf_view(&r.url), "http://provider.test:8080/v1/re_1"));
	request_done(&r);
}

static void
what_is_kept_of_an_answer(void **state)
{
	struct answer_field f[4];
	auto_parsed struct parsed p, reply;

	(void)state;
	parse(&p, "refund", NULL, NULL);
	parse(&reply, "reply", NULL, NULL);
	assert_int_equal(request_receipt_fields(&p.op, f, 4), 2);
	assert_true(view_is(f[0].name, "reference") && view_is(f[0].field, "id"));
	assert_true(view_is(f[1].name, "status") && view_is(f[1].field, "status"));
	assert_int_equal(request_receipt_fields(&p.op, f, 1), 1);
	assert_int_equal(request_fact_fields(&p.op, f, 4), 3);
	assert_true(view_is(f[2].name, "order.tenant") && view_is(f[2].field, "tenant"));
	assert_int_equal(request_echo_fields(&p.op, f, 4), 1);
	assert_true(view_is(f[0].name, "cents") && view_is(f[0].field, "amount"));
	assert_int_equal(request_fact_fields(&reply.op, f, 4), 0);
	assert_int_equal(request_echo_fields(&reply.op, f, 4), 0);
}

/* Tag, NUL, epoch, id, index: written out here by hand, so that no change of the derivation is unseen. */
static void
G17_the_key_is_made_of_what_cannot_rotate(void **state)
{
	static const uint8_t text[] = "demilune-key-v1\0\0\0\0\0\0\0\0\7"
				      "\1\2\3\4\5\6\7\10\11\12"
				      "\0\0\0\1";
	struct id id = {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}};
	char key[REQUEST_KEY_MAX + 1], other[REQUEST_KEY_MAX + 1], want[SHA256_TEXT];
	uint8_t digest[SHA256_BYTES];
	auto_parsed struct parsed a, b;

	(void)state;
	request_key(7, &id, 1, key);
	assert_int_equal(strlen(key), 44);
	sha256_of(view_of(text, sizeof(text) - 1), digest);
	for (size_t i = 0; i < SHA256_BYTES; i++)
		(void)snprintf(want + 2 * i, 3, "%02x", digest[i]);
	assert_memory_equal(key, "dml-", 4);
	assert_memory_equal(key + 4, want, 40);
	request_key(8, &id, 1, other);
	assert_string_not_equal(key, other);
	request_key(7, &id, 0, other);
	assert_string_not_equal(key, other);
	id.b[9]++;
	request_key(7, &id, 1, other);
	assert_string_not_equal(key, other);
	/* another credential is another adapter, and the same key */
	parse(&a, "refund", NULL, NULL);
	parse(&b, "refund", "'secret':'shop-key'", "'secret':'shop-key-2'");
	assert_memory_not_equal(a.op.adapter, b.op.adapter, SHA256_BYTES);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_sample_s_requests),
		cmocka_unit_test(the_origin_is_written_in_one_way),
		cmocka_unit_test(B1_a_value_is_never_another_host),
		cmocka_unit_test(B2_a_value_is_never_another_path),
		cmocka_unit_test(B7_no_line_end_reaches_the_address),
		cmocka_unit_test(the_query_is_encoded_and_in_order),
		cmocka_unit_test(what_is_too_long_is_not_sent),
		cmocka_unit_test(a_body_has_the_members_in_the_document_s_order),
		cmocka_unit_test(a_form_is_encoded),
		cmocka_unit_test(verify_and_lookup_are_reads),
		cmocka_unit_test(what_is_kept_of_an_answer),
		cmocka_unit_test(G17_the_key_is_made_of_what_cannot_rotate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
