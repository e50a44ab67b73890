/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions: as text of a grant and as part of an operation; what is not there or of another type never holds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/action/condition.h"
#include "tests/unit/action/parsed.h"

#include <errno.h>
#include <stdio.h>

#define ARGUMENTS "{\"cents\":4200,\"order_id\":\"48221\",\"reason\":\"late\"}"
#define FACTS(cents, status, tenant)                                                              \
	"{\"order__paid_cents\":" cents ",\"order__status\":" status ",\"order__tenant\":" tenant \
	"}"
#define GOOD FACTS("4200", "\"paid\"", "\"acme\"")

static struct parsed refund;

static int
setup(void **state)
{
	(void)state;
	parse(&refund, "refund", NULL, NULL);
	return refund.code;
}

static int
teardown(void **state)
{
	(void)state;
	parsed_done(&refund);
	return 0;
}

static struct condition_world
world(const char *facts)
{
	return (struct condition_world){
		.op = &refund.op,
		.arguments = view_str(ARGUMENTS),
		.facts = view_str(facts),
		.tenant = view_str("acme"),
		.task = view_str("tk_0000000000000000"),
	};
}

static const struct {
	const char *facts;
	int code;
	const char *why;
} facts[] = {
	{GOOD, 0, ""},
	{FACTS("4201", "\"shipped\"", "\"acme\""), 0, ""},
	{FACTS("4199", "\"paid\"", "\"acme\""), -EPERM,
		"order.paid_cents >= cents does not hold: it is 4199, and cents is 4200"},
	{FACTS("4200", "\"paid\"", "\"other\""), -EPERM,
		"order.tenant == @tenant does not hold: it is other, and @tenant is acme"},
	{FACTS("4200", "\"paid\"", "\"acme \""), -EPERM, "order.tenant"},
	{FACTS("4200", "\"paid\"", "\"ACME\""), -EPERM, "order.tenant"},
	{FACTS("4200", "\"refunded\"", "\"acme\""), -EPERM, "it is refunded"},
	{FACTS("4200", "\"\"", "\"acme\""), -EPERM, "order.status"},
	{FACTS("4200", "true", "\"acme\""), -EPERM, "order.status"},
	{FACTS("\"4200\"", "\"paid\"", "\"acme\""), -EPERM, "order.paid_cents"},
	{FACTS("true", "\"paid\"", "\"acme\""), -EPERM, "order.paid_cents"},
	{FACTS("4200", "\"paid\"", "1"), -EPERM, "order.tenant"},
	{"{}", -EPERM, "order.tenant == @tenant does not hold: it is not there"},
	{"", -EPERM, "it is not there"},
	{"{\"order__paid_cents\":4200,\"order__tenant\":\"acme\"}", -EPERM, "it is not there"},
	{"{\"order__tenant\":\"acme\",\"order__paid_cents\":4200}", -EINVAL, ""},
	{"{\"order__tenant\":\"acme\"", -EINVAL, ""},
	{"[]", -EINVAL, ""},
	{FACTS("4200", "\"paid\"", "\"\u202eacme\""), -EPERM, "it is ???acme"},
};

static void
the_operation_s_own_conditions(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(facts); i++) {
		struct condition_world w = world(facts[i].facts);
		struct err err = {0};
		int e = conditions_hold(&w, &err);

		if (e != facts[i].code || strstr(err.text, facts[i].why) == NULL)
			fail_msg("row %zu: %d %s", i, e, err.text);
	}
}

static void
without_a_tenant_nothing_is_the_tenant_s(void **state)
{
	struct condition_world w = world(FACTS("4200", "\"paid\"", "\"\""));
	struct err err;

	(void)state;
	w.tenant = view_str("");
	assert_int_equal(conditions_hold(&w, &err), -EPERM);
}

static void
an_operation_without_conditions_has_none(void **state)
{
	struct condition_world w = world(GOOD);
	auto_parsed struct parsed p;
	struct err err;

	(void)state;
	parse(&p, "reply", NULL, NULL);
	w.op = &p.op;
	assert_int_equal(conditions_hold(&w, &err), 0);
}

/* 1: holds over GOOD; 0: does not; -1: makes no sense for refund. */
static const struct {
	const char *text;
	int holds;
	const char *why;
} texts[] = {
	{"order.tenant == @tenant", 1, ""},
	{"order.tenant=@tenant", 1, ""},
	{"order.tenant = @tenant", 1, ""},
	{"  order.tenant   ==@tenant  ", 1, ""},
	{"order.tenant != @tenant", 0, "order.tenant"},
	{"order.tenant == @task", 0, ""},
	{"order.tenant == acme", 1, ""},
	{"order.tenant == \"acme\"", 1, ""},
	{"order.tenant == \"ac me\"", 0, ""},
	{"order.tenant == other", 0, "order.tenant == other does not hold: it is acme"},
	{"order.tenant != other", 1, ""},
	{"order.tenant in [acme, other]", 1, ""},
	{"order.tenant in [ \"acme\" ]", 1, ""},
	{"order.tenant in[acme]", 1, ""},
	{"order.tenant in [a,b]", 0, "it is acme"},
	{"order.paid_cents >= 4200", 1, ""},
	{"order.paid_cents > 4200", 0, ""},
	{"order.paid_cents <= 4200", 1, ""},
	{"order.paid_cents < 4200", 0, ""},
	{"order.paid_cents == 4200", 1, ""},
	{"order.paid_cents == \"4200\"", 0, ""},
	{"order.paid_cents != \"4200\"", 0, ""}, /* another type is not unequal */
	{"order.paid_cents >= cents", 1, ""},
	{"order.paid_cents in [1, 4200]", 1, ""},
	{"cents <= 5000", 1, ""},
	{"cents <= 4199", 0, "cents <= 4199 does not hold: it is 4200"},
	{"cents > -1", 1, ""},
	{"order_id == \"48221\"", 1, ""},
	{"order_id in [\"1\",\"48221\"]", 1, ""},
	{"reason == late", 1, ""},
	{"reason == \"reason\"", 0, ""},
	{"reason == reason", 1, ""},
	{"memo == hello", 0, "it is not there"},
	{"memo != hello", 0, "it is not there"},
	/* no sense */
	{"", -1, "1 to 256 bytes"},
	{" ", -1, "begins with"},
	{"order.tenant", -1, "is expected"},
	{"order.tenant ==", -1, "a value is expected"},
	{"order.tenant == @tenant extra", -1, "behind the condition"},
	{"order.tenant == @tenant || 1 == 1", -1, "behind the condition"},
	{"order.tenant == @owner", -1, "@tenant and @task"},
	{"order.tenant == @", -1, "@tenant and @task"},
	{"order.tenant == order.status", -1, "a fact stands on the left"},
	{"order.zone == x", -1, "neither a fact nor a parameter"},
	{"@tenant == x", -1, "begins with"},
	{"1 == 1", -1, "neither a fact nor a parameter"},
	{"order.tenant === x", -1, "a value is expected"},
	{"order.tenant => x", -1, "a value is expected"},
	{"order.tenant like x", -1, "is expected"},
	{"order.tenant inx", -1, "is expected"},
	{"order.tenant in x", -1, "[a, b]"},
	{"order.tenant in []", -1, "a value is expected"},
	{"order.tenant in [a b]", -1, "with , between"},
	{"order.tenant in [a,]", -1, "a value is expected"},
	{"order.tenant in [a", -1, "[a, b]"},
	{"order.tenant in [a]]", -1, "behind the condition"},
	{"order.tenant == [a]", -1, "a value is expected"},
	{"order.tenant == \"a", -1, "quoted text ends"},
	{"order.tenant == \"a\\\"", -1, "quoted text"},
	{"order.tenant == a\nb", -1, "one line"},
	{"order.tenant == \"a\x1b\"", -1, "one line"},
	{"order.tenant > a", -1, "only integers"},
	{"reason <= 5", -1, "different types"},
	{"cents == x", -1, "different types"},
	{"cents == @tenant", -1, "different types"},
	{"cents == \"4200\"", -1, "different types"},
	{"cents in [a]", -1, "another type"},
	{"cents == 1.5", -1, "different types"},
	{"cents == 01", -1, "different types"},
};

static void
a_grant_s_conditions_as_text(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct condition_world w = world(GOOD);
		struct err err = {0};
		int e = condition_check(&refund.op, view_str(texts[i].text), &err);

		if ((e < 0) != (texts[i].holds < 0) ||
			(e < 0 && strstr(err.text, texts[i].why) == NULL))
			fail_msg("row %zu, %s: %d %s", i, texts[i].text, e, err.text);
		e = conditions_hold_text(
			&w, view_of(texts[i].text, strlen(texts[i].text) + 1), &err);
		if (e != (texts[i].holds < 0           ? -EINVAL
				 : texts[i].holds == 1 ? 0
						       : -EPERM) ||
			(e < 0 && strstr(err.text, texts[i].why) == NULL))
			fail_msg("row %zu, %s: %d %s", i, texts[i].text, e, err.text);
	}
}

static void
all_of_them_hold_or_it_does_not(void **state)
{
	static const char both[] = "order.tenant == @tenant\0cents <= 5000";
	static const char second[] = "order.tenant == @tenant\0cents <= 5";
	struct condition_world w = world(GOOD);
	struct err err;

	(void)state;
	assert_int_equal(conditions_hold_text(&w, view_of(NULL, 0), &err), 0);
	assert_int_equal(conditions_hold_text(&w, view_of(both, sizeof(both)), &err), 0);
	assert_int_equal(conditions_hold_text(&w, view_of(second, sizeof(second)), &err), -EPERM);
	assert_int_equal(conditions_hold_text(&w, view_of(both, sizeof(both) - 1), &err), -EINVAL);
	assert_int_equal(conditions_hold_text(&w, view_of("\0", 1), &err), -EINVAL);
}

/* What a hostile program may hear: which, and nothing behind it. */
static void
a_failed_one_is_named_without_its_values(void **state)
{
	struct condition_world w = world(FACTS("4201", "\"paid\"", "\"x does not hold\""));
	struct err err;
	struct view name;

	(void)state;
	assert_int_equal(conditions_hold(&w, &err), -EPERM);
	name = condition_failed(view_str(err.text));
	assert_true(view_is(name, "order.tenant == @tenant does not hold"));
	assert_int_equal(condition_failed(view_str("the provider answered 503")).n, 0);
	assert_int_equal(condition_failed(view_of(NULL, 0)).n, 0);
}

static void
counts_are_bounded(void **state)
{
	auto_buf struct buf many = {.max = 65536}, list = {.max = 65536};
	struct condition_world w = world(GOOD);
	struct err err;

	(void)state;
	for (size_t i = 0; i < CONDITIONS_MAX; i++)
		buf_add(&many, "cents > 1", 10);
	assert_int_equal(conditions_hold_text(&w, buf_view(&many), &err), 0);
	buf_add(&many, "cents > 1", 10);
	assert_int_equal(conditions_hold_text(&w, buf_view(&many), &err), -EINVAL);
	buf_add_str(&list, "cents in [1");
	for (size_t i = 1; i < 32; i++)
		buf_add_str(&list, ",1");
	buf_add_str(&list, "]");
	assert_int_equal(condition_check(&refund.op, buf_view(&list), &err), 0);
	list.n--;
	buf_add_str(&list, ",1]");
	assert_int_equal(condition_check(&refund.op, buf_view(&list), &err), -EINVAL);
}

static void
every_change_of_a_byte_is_refused_or_told(void **state)
{
	char text[] = "order.status in [paid, \"shipped\"]";
	struct condition_world w = world(GOOD);

	(void)state;
	for (size_t at = 0; at < sizeof(text); at++) {
		char kept = text[at];

		for (unsigned c = 0; c < 256; c++) {
			struct err err = {0};
			int e;

			text[at] = (char)c;
			e = conditions_hold_text(&w, view_of(text, sizeof(text)), &err);
			assert_true(e == 0 || e == -EPERM || e == -EINVAL);
			assert_int_equal(err.code, e);
		}
		text[at] = kept;
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_operation_s_own_conditions),
		cmocka_unit_test(without_a_tenant_nothing_is_the_tenant_s),
		cmocka_unit_test(an_operation_without_conditions_has_none),
		cmocka_unit_test(a_grant_s_conditions_as_text),
		cmocka_unit_test(all_of_them_hold_or_it_does_not),
		cmocka_unit_test(a_failed_one_is_named_without_its_values),
		cmocka_unit_test(counts_are_bounded),
		cmocka_unit_test(every_change_of_a_byte_is_refused_or_told),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
