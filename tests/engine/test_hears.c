/* SPDX-License-Identifier: Apache-2.0 */
/* What a sandbox hears of a denial, and what a proposal that came to nothing costs its grant. A played broker tells facts; the relay must not. */
#include "acts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define REFUND "{\"cents\":4200,\"order_id\":\"48221\"}"
#define STRANGE \
	"{\"order__paid_cents\":9000,\"order__status\":\"paid\",\"order__tenant\":\"globex\"}"
#define POOR "{\"order__paid_cents\":4199,\"order__status\":\"paid\",\"order__tenant\":\"acme\"}"

static struct acts acts;

static int
setup(void **state)
{
	acts_open(&acts);
	acts_start(&acts);
	*state = &acts;
	return 0;
}

static int
teardown(void **state)
{
	acts_close(*state);
	return 0;
}

static bool
has(struct view v, const char *text)
{
	return memmem(v.p, v.n, text, strlen(text)) != NULL;
}

/* The answer at the relay: this denial, and this said of it, but no value. */
static struct id
hears(struct acts *a, uint64_t tag, enum denial denial, const char *says)
{
	static const char *const values[] = {"globex", "4199", "503", "it is", "have it"};

	WANT(&a->p, a->relay, PROPOSED, proposed, m);
	assert_int_equal(a->p.in.tag, tag);
	assert_int_equal(m.denial, denial);
	if (!has(m.text, says))
		fail_msg("\"%s\" is wanted: %.*s", says, VIEW_ARGS(m.text));
	for (size_t i = 0; i < ARRAY_LEN(values); i++)
		if (has(m.text, values[i]))
			fail_msg("a value is told: %.*s", VIEW_ARGS(m.text));
	return m.proposal;
}

static void
broker_says(struct acts *a, enum denial denial, const char *text)
{
	SAY_TAG(a->p.broker, acts_verify(a), VERIFIED, verified, -1,
		{.denial = denial, .text = view_str(text), .facts = view_str("{}"), .calls = 1});
}

static void
test_which_condition_failed_without_its_values(void **state)
{
	static const struct {
		enum denial denial;
		const char *text, *says;
	} rows[] = {
		{DENIAL_VERIFY_FAILED,
			"order.tenant == @tenant does not hold: it is globex, and @tenant is acme",
			"order.tenant == @tenant does not hold. Nothing"},
		{DENIAL_GRANT_CONDITION,
			"order.tenant == acme does not hold: it is globex does not hold: no",
			"order.tenant == acme does not hold. Nothing"},
		{DENIAL_VERIFY_FAILED, "the system of record does not have it",
			"the system of record says otherwise. Nothing"},
		{DENIAL_VERIFY_UNAVAILABLE, "the system of record answered 503", ". Nothing"},
		{DENIAL_DIAL_REFUSED, "connection refused after 503 ms", ". Nothing"},
	};
	struct acts *a = *state;
	struct msg_proposal_row row;

	(void)acts_grant(a, "refund", NULL, 1);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct id id;

		acts_ask(a, i, "refund", REFUND);
		broker_says(a, rows[i].denial, rows[i].text);
		id = hears(a, i, rows[i].denial, rows[i].says);
		acts_row(a, &id, &row);
		assert_true(has(row.text, rows[i].text)); /* people see all of it */
	}
}

/* The engine's own test of the facts that it was told: the same. */
static void
test_nor_from_the_engines_own_test(void **state)
{
	struct acts *a = *state;

	(void)acts_grant(a, "refund", "order.status == paid", 1);
	acts_ask(a, 1, "refund", REFUND);
	acts_verified(a, acts_verify(a), DENIAL_NONE, STRANGE);
	(void)hears(a, 1, DENIAL_VERIFY_FAILED, "order.tenant == @tenant does not hold. Nothing");
	acts_ask(a, 2, "refund", REFUND);
	acts_verified(a, acts_verify(a), DENIAL_NONE, POOR);
	(void)hears(a, 2, DENIAL_VERIFY_FAILED, "order.paid_cents >= cents does not hold. Nothing");
}

static void
test_nor_from_a_read(void **state)
{
	struct acts *a = *state;

	(void)acts_grant(a, "order_status", NULL, 1);
	acts_propose(a, 1,
		"{\"arguments\":{\"order_id\":\"48221\"},\"note\":\"\",\"operation\":\"order_"
		"status\"}",
		true);
	{
		WANT(&a->p, a->p.broker, READ_ASK, read_ask, m);
		SAY_TAG(a->p.broker, a->p.in.tag, READ_DONE, read_done, -1,
			{.denial = DENIAL_VERIFY_FAILED,
				.answer = view_str("{}"),
				.text = view_str("order.tenant == @tenant does not hold: it is "
						 "globex, and @tenant is acme")});
	}
	(void)hears(a, 1, DENIAL_VERIFY_FAILED, "order.tenant == @tenant does not hold. Nothing");
}

/* ---- the use of a grant ---- */

static void
used(struct acts *a, const struct id *grant, uint32_t want)
{
	struct msg_grant_row g;

	acts_grant_row(a, grant, &g);
	assert_int_equal(g.used, want);
}

/* Ten forged ones, and the grant for one is still there for the good one. */
static void
test_a_denied_proposal_gives_its_use_back(void **state)
{
	struct acts *a = *state;
	struct id grant = acts_grant(a, "refund", NULL, 1);

	for (uint64_t i = 100; i < 110; i++) {
		acts_ask(a, i, "refund", REFUND);
		acts_verified(a, acts_verify(a), DENIAL_NONE, STRANGE);
		acts_denied(a, i, DENIAL_VERIFY_FAILED);
		used(a, &grant, 0);
	}
	(void)acts_pending(a, "48221", 4200);
	used(a, &grant, 1);
	acts_ask(a, 200, "refund", "{\"cents\":1,\"order_id\":\"48221\"}");
	acts_denied(a, 200, DENIAL_NO_GRANT);
}

static void
test_a_rejected_one_too(void **state)
{
	struct acts *a = *state;
	struct id grant = acts_grant(a, "refund", NULL, 1), id = acts_pending(a, "48221", 4200);

	acts_decide(a, &id, "anna", false);
	acts_decided(a, acts_decision(a), DENIAL_NONE, "anna", 1);
	{
		ANSWER(&a->p, PROPOSAL_ROW, proposal_row, row);
		assert_int_equal(row.state, PROPOSAL_STATE_REJECTED);
	}
	used(a, &grant, 0);
}

static void
test_and_one_that_was_revoked(void **state)
{
	struct acts *a = *state;
	struct id grant = acts_grant(a, "refund", NULL, 1), id = acts_pending(a, "48221", 4200);
	char name[ID_TEXT];

	id_text(&id, ID_PROPOSAL, name);
	ASK(&a->p, AUTHORITY_REVOKE, authority_revoke,
		{.caller = as_root,
			.kind = AUTHORITY_PROPOSAL,
			.name = view_str(name),
			.reason = view_str("wrong order"),
			.request_id = view_str("r2")});
	{
		WANT(&a->p, a->p.broker, REVOKE, revoke, m);
		assert_true(id_eq(&m.proposal, &id));
		SAY_TAG(a->p.broker, a->p.in.tag, REVOKED, revoked, -1, {.spent = false});
	}
	{
		ANSWER(&a->p, DONE, done, m);
		(void)m;
	}
	assert_int_equal(acts_state(a, &id), PROPOSAL_STATE_REVOKED);
	used(a, &grant, 0);
}

/* What was begun was used, whatever became of it. */
static void
test_but_not_one_that_was_begun(void **state)
{
	struct acts *a = *state;
	struct id grant = acts_grant(a, "refund", NULL, 1), id = acts_pending(a, "48221", 4200);

	acts_decide(a, &id, "anna", true);
	acts_decided(a, acts_decision(a), DENIAL_NONE, "anna", 1);
	acts_executed(a, acts_execute(a), ATTEMPT_FAILED);
	play_want_any(&a->p, a->p.api);
	assert_int_equal(acts_state(a, &id), PROPOSAL_STATE_FAILED);
	used(a, &grant, 1);
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_which_condition_failed_without_its_values),
		T(test_nor_from_the_engines_own_test),
		T(test_nor_from_a_read),
		T(test_a_denied_proposal_gives_its_use_back),
		T(test_a_rejected_one_too),
		T(test_and_one_that_was_revoked),
		T(test_but_not_one_that_was_begun),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
