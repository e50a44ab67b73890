/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The catalogue and its documents: what the compiler writes is read, and nothing else is. Digests say which part of an operation changed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/canon/profile.h"
#include "tests/unit/action/parsed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>

static const char *const names[] = {"note", "order_status", "refund", "reply"};

enum { ALL_SEALS = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };

static void
the_sample_is_read(void **state)
{
	auto_fd int fd = sample_catalogue_fd(8080);
	const struct operation *refund, *status;
	struct catalogue c = {0};
	struct err err = {0};

	(void)state;
	if (catalogue_read(fd, &c, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(c.n, SAMPLE_OPERATIONS);
	refund = catalogue_find(&c, view_str("refund"));
	assert_non_null(refund);
	assert_int_equal(refund->effect, EFFECT_IRREVERSIBLE);
	assert_true(refund->has_amount);
	assert_true(view_is(refund->amount_argument, "cents"));
	assert_true(view_is(refund->currency, "EUR"));
	assert_int_equal(refund->exponent, 2);
	assert_int_equal(refund->version, 1);
	assert_int_equal(refund->decide_within_ms, 600000);
	assert_int_equal(refund->dispatch_within_ms, 300000);
	assert_int_equal(refund->task_amount, 200000);
	assert_int_equal(refund->task_uses, 5);
	assert_int_equal(refund->tenant_day_amount, 1000000);
	assert_int_equal(refund->tenant_day_uses, 50);
	assert_true(view_is(refund->provider.host, "provider.test"));
	assert_int_equal(refund->provider.port, 8080);
	assert_false(refund->provider.tls);
	assert_true(view_is(refund->provider.credential_prefix, "Bearer "));
	assert_true(view_is(refund->provider.credential_secret, "shop-key"));
	assert_true(refund->provider.capability.key);
	assert_int_equal(refund->provider.capability.lookup, LOOKUP_KEY);
	assert_int_equal(refund->provider.capability.consistency_ms, 500);
	assert_true(codes_have(&refund->success, 201));
	assert_false(codes_have(&refund->success, 202));
	assert_true(codes_have(&refund->pending, 202));
	status = catalogue_find(&c, view_str("order_status"));
	assert_non_null(status);
	assert_false(status->provider.capability.key);
	assert_int_equal(status->provider.capability.lookup, LOOKUP_NONE);
	assert_int_equal(status->base.quorum, 0);
	assert_null(catalogue_find(&c, view_str("refunds")));
	assert_null(catalogue_find(&c, view_str("")));
	catalogue_done(&c);
	assert_null(c.bytes);
}

static void
an_amount_chooses_its_tier(void **state)
{
	auto_parsed struct parsed p;

	(void)state;
	parse(&p, "refund", NULL, NULL);
	assert_int_equal(p.code, 0);
	assert_int_equal(operation_tier(&p.op, 0)->quorum, 1);
	assert_int_equal(operation_tier(&p.op, 100000)->quorum, 1);
	assert_int_equal(operation_tier(&p.op, 100001)->quorum, 2);
	assert_int_equal(operation_tier(&p.op, 100001)->nroles, 1);
	assert_true(view_is(operation_tier(&p.op, CANON_INT_MAX)->role[0], "lead"));
}

static void
refused_fd(struct view bytes, int seals, const char *why)
{
	auto_fd int fd = sample_fd(bytes, seals);
	struct catalogue c = {.n = 77};
	struct err err = {0};

	assert_true(catalogue_read(fd, &c, &err) < 0);
	assert_non_null(strstr(err.text, why));
	assert_int_equal(c.n, 77);
}

static void
every_seal_is_needed(void **state)
{
	static const int seals[] = {F_SEAL_WRITE, F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_SEAL};
	auto_buf struct buf all = {.max = CATALOGUE_BYTES_MAX}, one = {.max = 65536};
	auto_fd int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct catalogue c;
	struct err err;

	(void)state;
	sample_document("refund", 1, &one);
	catalogue_put(&all, buf_view(&one));
	for (size_t i = 0; i < ARRAY_LEN(seals); i++)
		refused_fd(buf_view(&all), ALL_SEALS & ~seals[i], "not a sealed memory file");
	assert_true(catalogue_read(null, &c, &err) < 0);
	assert_true(catalogue_read(-1, &c, &err) < 0);
	auto_fd int fd = sample_fd(buf_view(&all), ALL_SEALS);

	assert_int_equal(catalogue_read(fd, &c, &err), 0);
	catalogue_done(&c);
}

static void
the_list_is_whole_and_in_order(void **state)
{
	auto_buf struct buf a = {.max = 65536}, b = {.max = 65536},
			    all = {.max = CATALOGUE_BYTES_MAX};

	(void)state;
	sample_document("note", 1, &a);
	sample_document("refund", 1, &b);
	catalogue_put(&all, buf_view(&b));
	catalogue_put(&all, buf_view(&a));
	refused_fd(buf_view(&all), ALL_SEALS, "twice or out of order");
	buf_clear(&all);
	catalogue_put(&all, buf_view(&a));
	catalogue_put(&all, buf_view(&a));
	refused_fd(buf_view(&all), ALL_SEALS, "twice or out of order");
	buf_clear(&all);
	catalogue_put(&all, buf_view(&a));
	for (size_t cut = 1; cut < all.n; cut += 7)
		refused_fd(view_of(all.p, all.n - cut), ALL_SEALS, "cut off");
	buf_add(&all, "\0\0\0\0", 4);
	refused_fd(buf_view(&all), ALL_SEALS, "cut off");
	buf_clear(&all);
	for (size_t i = 0; i <= OPERATIONS_MAX; i++)
		catalogue_put(&all, view_str("{}"));
	refused_fd(buf_view(&all), ALL_SEALS, "more than 256 operations");
}

static void
an_empty_catalogue_has_no_operation(void **state)
{
	auto_fd int fd = sample_fd(view_str(""), ALL_SEALS);
	struct catalogue c;
	struct err err;

	(void)state;
	assert_int_equal(catalogue_read(fd, &c, &err), 0);
	assert_int_equal(c.n, 0);
	assert_null(catalogue_find(&c, view_str("refund")));
	catalogue_done(&c);
}

/* In each object of each document, at any depth. */
static void
A2_an_unknown_field_is_refused_at_any_depth(void **state)
{
	unsigned tried = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		auto_buf struct buf all = {.max = 65536};

		sample_document(names[i], 1, &all);
		for (size_t at = 0; at < all.n; at++) {
			auto_buf struct buf with = {.max = 65536};
			struct operation op;
			struct err err;

			if (all.p[at] != '{' || all.p[at + 1] != '"')
				continue; /* the braces of patterns */
			buf_add(&with, all.p, at + 1);
			buf_add_str(&with, "\"Proto\":1,");
			buf_add(&with, all.p + at + 1, all.n - at - 1);
			assert_int_equal(operation_read(buf_view(&with), &op, &err), -EINVAL);
			assert_non_null(strstr(err.text, "Proto"));
			tried++;
		}
	}
	assert_true(tried > 80);
}

static void
no_change_of_a_byte_is_unseen(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		auto_buf struct buf all = {.max = 65536};
		struct operation was, is;
		struct err err;

		sample_document(names[i], 1, &all);
		assert_int_equal(operation_read(buf_view(&all), &was, &err), 0);
		for (size_t at = 0; at < all.n; at++) {
			static const uint8_t other[] = {'"', '{', '}', '0', '9', 'a', ',', 0, 0x80};
			uint8_t kept = all.p[at];

			for (size_t k = 0; k < ARRAY_LEN(other); k++) {
				if (other[k] == kept)
					continue;
				all.p[at] = other[k];
				if (operation_read(buf_view(&all), &is, &err) == 0)
					assert_memory_not_equal(is.digest, was.digest, 32);
			}
			all.p[at] = kept;
		}
	}
}

static void
A16_each_part_has_its_digest(void **state)
{
	static const struct {
		const char *from, *to;
		bool schema, adapter, policy;
	} changes[] = {
		{"'version':1", "'version':2", true, false, false},
		{"'max':500000", "'max':500001", true, false, false},
		{"'exponent':2", "'exponent':0", true, false, false},
		{"'reason','type'", "'season','type'", false, false, false}, /* refused */
		{"'default':'other'", "'default':'late'", true, false, false},
		{"'quorum':2", "'quorum':3", false, false, true},
		{"'task_uses':5", "'task_uses':6", false, false, true},
		{"acct_1", "acct_2", false, true, false},
		{"'port':8080", "'port':8081", false, true, false},
		{"'environment':'test'", "'environment':'live'", false, true, false},
		{"'op':'ge'", "'op':'gt'", false, true, false},
		{"'success':[200,201]", "'success':[200]", false, true, false},
		{"money of", "cash of", false, false, false},
	};
	auto_parsed struct parsed was;

	(void)state;
	parse(&was, "refund", NULL, NULL);
	for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
		auto_parsed struct parsed is;

		parse(&is, "refund", changes[i].from, changes[i].to);
		if (i == 3) {
			assert_int_equal(is.code, -EINVAL);
			continue;
		}
		assert_int_equal(is.code, 0);
		assert_int_equal(memcmp(was.op.schema, is.op.schema, 32) != 0, changes[i].schema);
		assert_int_equal(
			memcmp(was.op.adapter, is.op.adapter, 32) != 0, changes[i].adapter);
		assert_int_equal(memcmp(was.op.policy, is.op.policy, 32) != 0, changes[i].policy);
		assert_memory_not_equal(was.op.digest, is.op.digest, 32);
	}
}

/* The exact form of the digests, by hand. */
static void
the_policy_digest_is_what_0003_says(void **state)
{
	static const char text[] = "demilune-policy-v1\0{\"approval\":{\"decide_within_ms\":600000,"
				   "\"dispatch_within_ms\":300000,\"quorum\":0}}";
	auto_parsed struct parsed p;
	uint8_t want[SHA256_BYTES];

	(void)state;
	parse(&p, "note", NULL, NULL);
	sha256_of(view_of(text, sizeof(text) - 1), want);
	assert_memory_equal(p.op.policy, want, sizeof(want));
}

struct refusal {
	const char *name, *from, *to, *why;
};

static const struct refusal refusals[] = {
	/* the document */
	{"refund", "'version':1}", "'version':1} ", "behind the document"},
	{"refund", "{'amount':", " {'amount':", "canonical"},
	{"refund", "'version':1}", "'version':1}{}", "behind the document"},
	{"refund", "'version':1", "'version':0", "version must be"},
	{"refund", "'version':1", "'version':2147483648", "version must be"},
	{"refund", "'version':1", "'version':'1'", "must be an integer"},
	{"refund", ",'version':1", "", "\"version\" is missing"},
	{"refund", "'name':'refund'", "'name':'Refund'", "name is"},
	{"refund", "'name':'refund'", "'name':'re-fund'", "name is"},
	{"refund", "'name':'refund'", "'name':''", "name is"},
	{"refund", "'name':'refund'",
		"'name':'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'",
		"name is"},
	{"refund", "'irreversible'", "'harmless'", "effect is"},
	{"refund", "'describe':'Pay money of an order back'", "'describe':''", "describe"},
	{"refund", "Pay money", "Pay \\'money", "describe"},
	{"refund", "Pay money", "Pay\\nmoney", "describe"},
	/* a look-up that finds others */
	{"refund", ",'query':[{'name':'key','value':{'host':'key'}}],'succ", ",'succ", "names"},
	{"refund", "{'name':'key','value':{'host':'key'}}",
		"{'name':'key','value':{'host':'task'}}", "names"},
	{"refund", "{'name':'key','value':{'host':'key'}}",
		"{'name':'key','value':{'argument':'order_id'}}", "names"},
	/* amount */
	{"refund", "'argument':'cents','currency'", "'argument':'memo','currency'", "amount"},
	{"refund", "'argument':'cents','currency'", "'argument':'nothing','currency'", "amount"},
	{"refund", "'EUR','exp", "'eur','exp", "capital"},
	{"refund", "'EUR','exp", "'EURO','exp", "capital"},
	{"refund", "'exponent':2", "'exponent':4", "exponent"},
	{"refund", "'min':1,'name':'cents'", "'min':-1,'name':'cents'", "amount"},
	{"refund", "'name':'cents','type'", "'name':'cents','optional':true,'type'", "amount"},
	/* approval and budgets */
	{"refund", "'quorum':1", "'quorum':0", "quorum"},
	{"reply", "'quorum':1", "'quorum':0", "quorum"},
	{"note", "'quorum':0", "'quorum':6", "quorum"},
	{"note", "'quorum':0", "'quorum':0,'roles':['lead']", "without a quorum"},
	{"refund", "'quorum':2", "'quorum':0", "quorum"},
	{"refund", "'roles':['lead']", "'roles':[]", "at least one"},
	{"refund", "'roles':['lead']", "'roles':['lead','lead']", "roles"},
	{"refund", "'roles':['lead']", "'roles':['lead','boss']", "roles"},
	{"refund", "'roles':['lead']", "'roles':['Lead']", "roles"},
	{"refund", "{'above':100000", "{'above':5,'quorum':1},{'above':5", "ascend"},
	{"reply", "'quorum':1", "'quorum':1,'tiers':[{'above':5,'quorum':2}]", "need an amount"},
	{"refund", "'decide_within_ms':600000", "'decide_within_ms':999", "decide_within"},
	{"refund", "'decide_within_ms':600000", "'decide_within_ms':604800001", "decide_within"},
	{"refund", "'dispatch_within_ms':300000", "'dispatch_within_ms':86400001",
		"dispatch_within"},
	{"refund", "'task_uses':5", "'task_uses':0", "task_uses"},
	{"note", "'describe'", "'budgets':{},'describe'", "limits nothing"},
	{"note", "'describe'", "'budgets':{'task_amount':5},'describe'", "needs an amount"},
	/* request */
	{"refund", "'method':'POST'", "'method':'GET'", "method is"},
	{"refund", "'method':'POST'", "'method':'post'", "method is"},
	{"order_status", "'method':'GET'", "'method':'POST'", "method is"},
	{"order_status", "'encoding':'none'", "'encoding':'json'", "method is"},
	{"refund", "'encoding':'json'", "'encoding':'none'", "a body is there exactly"},
	{"refund", "'encoding':'json'", "'encoding':'xml'", "encoding is"},
	{"note", "'encoding':'json'", "'encoding':'form'", ""}, /* accepted: the last row */
	{"refund", "'pending':[202]", "'pending':[200]", "means two things"},
	{"refund", "'pending':[202]", "'pending':[404]", "means two things"},
	{"refund", "'pending':[202]", "'pending':[99]", "pending"},
	{"refund", "'pending':[202]", "'pending':[600]", "pending"},
	{"refund", "'success':[200,201]", "'success':[201,200]", "success"},
	{"refund", "'success':[200,201]", "'success':[200,200]", "success"},
	{"refund", "'success':[200,201]", "'success':[]", "at least one"},
	{"refund", "'path':['v1','orders',{'argument':'order_id'},'refunds']", "'path':[]",
		"at least one"},
	{"refund", "'path':['v1'", "'path':['..'", "a segment is"},
	{"refund", "'path':['v1'", "'path':['.'", "a segment is"},
	{"refund", "'path':['v1'", "'path':[''", "a segment is"},
	{"refund", "'path':['v1'", "'path':['v1/x'", "a segment is"},
	{"refund", "'path':['v1'", "'path':['%2e'", "a segment is"},
	{"refund", "'path':['v1'", "'path':['v1?x'", "a segment is"},
	{"refund", "{'argument':'order_id'},'refunds'", "{'argument':'memo'},'refunds'",
		"may be absent"},
	{"refund", "{'argument':'order_id'},'refunds'", "{'argument':'orders'},'refunds'",
		"not a parameter"},
	{"refund", "{'argument':'order_id'},'refunds'",
		"{'argument':'cents','host':'key'},'refunds'", "not two"},
	{"refund", "{'argument':'order_id'},'refunds'", "{},'refunds'", "a term is"},
	{"refund", "{'argument':'order_id'},'refunds'",
		"{'object':[{'name':'a','value':{'literal':1}}]},'refunds'", "cannot stand here"},
	{"refund", "{'argument':'order_id'},'refunds'", "{'host':'reference'},'refunds'",
		"no \"reference\" here"},
	{"refund", "{'argument':'order_id'},'refunds'", "{'host':'password'},'refunds'", "host is"},
	{"refund", "{'literal':'EUR'}", "{'literal':null}", "must be"},
	{"refund", "{'literal':'EUR'}", "{'literal':[1]}", "a literal is"},
	{"refund", "'name':'currency','value'", "'name':'amount','value'", "twice"},
	{"refund", "'name':'currency','value'", "'name':'','value'", "name of a member"},
	{"refund", "'field':'amount'", "'field':'a..b'", "well-formed"},
	{"refund", "'field':'amount'", "'field':'.a'", "well-formed"},
	{"refund", "'field':'amount'", "'field':'a b'", "well-formed"},
	{"refund", "{'argument':'cents','field'", "{'argument':'price','field'", "plain value"},
	{"refund", "'name':'reference'},{'field':'status','name':'status'}",
		"'name':'x'},{'field':'status','name':'x'}", "in the order"},
	/* provider */
	{"refund", "'host':'provider.test'", "'host':'Provider.test'", "host must"},
	{"refund", "'host':'provider.test'", "'host':'provider.test.'", "host must"},
	{"refund", "'host':'provider.test'", "'host':'127.1'", "host must"},
	{"refund", "'host':'provider.test'", "'host':'2130706433'", "host must"},
	{"refund", "'host':'provider.test'", "'host':'0x7f.1'", "host must"},
	{"refund", "'host':'provider.test'", "'host':'0x7f000001'", "host must"},
	{"refund", "'host':'provider.test'", "'host':'127.0x1'", "host must"},
	{"refund", "'host':'provider.test'", "'host':'::1'", "host must"},
	{"refund", "'host':'provider.test'", "'host':'127.0.0.1'", ""},
	{"refund", "'host':'provider.test'", "'host':'127.0.0.01'", "host must"},
	{"refund", "'host':'provider.test'", "'host':'user@provider.test'", "host must"},
	{"refund", "'host':'provider.test'", "'host':'provider.test:80'", "host must"},
	{"refund", "'host':'provider.test'", "'host':'-a.test'", "host must"},
	{"refund", "'host':'provider.test'", "'host':''", "host must"},
	{"refund", "'port':8080", "'port':0", "port"},
	{"refund", "'port':8080", "'port':65536", "port"},
	{"refund", "'timeout_ms':3000", "'timeout_ms':99", "timeout_ms"},
	{"refund", "'response_max':65536", "'response_max':1048577", "response_max"},
	{"refund", "'response_max':65536,", "'response_max':65536,'roots':'shop',", "need tls"},
	{"refund", "'header':'Authorization'", "'header':'Host'", "cannot carry"},
	{"refund", "'header':'Authorization'", "'header':'Content-Length'", "cannot carry"},
	{"refund", "'header':'Authorization'", "'header':'A: b'", "cannot carry"},
	{"refund", "'secret':'shop-key'", "'secret':'../shop'", "name of a file"},
	{"refund", "'secret':'shop-key'", "'secret':'.'", "name of a file"},
	{"refund", "acct_1", "acct 1", "account"},
	{"refund", "'name':'shop'", "'name':'Shop'", "provider: name"},
	/* capability */
	{"refund", "'format':'raw'", "'format':'base64'", "format is"},
	{"refund", "'header':'Idempotency-Key'", "'header':'Host'", "header"},
	{"refund", "'key':{'format':'raw','header':'Idempotency-Key'},", "", "needs key"},
	{"refund", "'key_window_ms':86400000", "'key_window_ms':1", "key_window_ms"},
	{"refund", "'by':'key'", "'by':'amount'", "by is"},
	{"refund", "'by':'key'", "'by':'reference'", ""}, /* accepted: refund keeps a reference */
	{"refund", "'field':'status','list'", "'field':'','list'", "dotted"},
	{"refund", "'succeeded':['succeeded']", "'succeeded':[1]", "succeeded"},
	{"refund", "'definite':[400,404]", "'definite':[400,409]", "means two things"},
	/* verify */
	{"refund", "'name':'order.tenant'}]", "'name':'order__tenant'}]", "well-formed"},
	{"refund", "'name':'order.tenant'}]", "'name':'order.Tenant'}]", "well-formed"},
	{"refund", "'name':'order.tenant'}]", "'name':'reason'}]", "a fact and a parameter"},
	{"refund", "'name':'order.tenant'}]", "'name':'order.zone'}]", "not a fact"},
	{"refund", "'op':'eq'", "'op':'like'", "op is"},
	{"refund", "'op':'eq'", "'op':'lt'", "only integers"},
	{"refund", "'op':'eq'", "'op':'in'", "a list stands"},
	{"refund", "{'host':'tenant'}},{", "{'host':'key'}},{", "tenant or task"},
	{"refund", "'left':{'fact':'order.tenant'}", "'left':{'literal':'a'}", "left side"},
	{"refund", "{'list':['paid','shipped']}", "{'literal':'paid'}", "a list stands"},
	{"refund", "{'list':['paid','shipped']}", "{'list':['paid',null]}", "strings, integers"},
};

static void
what_does_not_fit_is_refused_with_a_sentence(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(refusals); i++) {
		const struct refusal *r = &refusals[i];
		auto_parsed struct parsed p;

		parse(&p, r->name, r->from, r->to);
		if (r->why[0] == 0) {
			if (p.code != 0)
				fail_msg("row %zu: %s", i, p.err.text);
			continue;
		}
		if (p.code != -EINVAL || p.err.code != -EINVAL ||
			strstr(p.err.text, r->why) == NULL)
			fail_msg("row %zu, %s -> %s: %d %s", i, r->from, r->to, p.code, p.err.text);
	}
}

static void
what_is_irreversible_reads_first(void **state)
{
	auto_parsed struct parsed p;

	(void)state;
	parse(&p, "reply", "'effect':'external'", "'effect':'irreversible'");
	assert_int_equal(p.code, -EINVAL);
	assert_non_null(strstr(p.err.text, "needs verify"));
}

static void
a_document_has_a_ceiling(void **state)
{
	auto_buf struct buf big = {.max = 1 << 20};
	struct operation op;
	struct err err;

	(void)state;
	for (size_t i = 0; i <= OPERATION_BYTES_MAX; i++)
		buf_add_byte(&big, '[');
	assert_int_equal(operation_read(buf_view(&big), &op, &err), -EINVAL);
	assert_non_null(strstr(err.text, "more than 32768"));
	assert_int_equal(operation_read(view_of(big.p, 1000), &op, &err), -EINVAL);
	assert_int_equal(operation_read(view_str(""), &op, &err), -EINVAL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_sample_is_read),
		cmocka_unit_test(an_amount_chooses_its_tier),
		cmocka_unit_test(every_seal_is_needed),
		cmocka_unit_test(the_list_is_whole_and_in_order),
		cmocka_unit_test(an_empty_catalogue_has_no_operation),
		cmocka_unit_test(A2_an_unknown_field_is_refused_at_any_depth),
		cmocka_unit_test(no_change_of_a_byte_is_unseen),
		cmocka_unit_test(A16_each_part_has_its_digest),
		cmocka_unit_test(the_policy_digest_is_what_0003_says),
		cmocka_unit_test(what_does_not_fit_is_refused_with_a_sentence),
		cmocka_unit_test(what_is_irreversible_reads_first),
		cmocka_unit_test(a_document_has_a_ceiling),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
