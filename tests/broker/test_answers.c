/* SPDX-License-Identifier: Apache-2.0 */
/* What a provider can answer, and what becomes of the execution: research/actions.md 3.7, G1 to G21, B8, H11. The provider's ledger counts. */
#include "play.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static struct play play;

static int
begin(void **state)
{
	(void)state;
	play_open(&play);
	play_start(&play);
	return 0;
}

static int
end(void **state)
{
	(void)state;
	play_close(&play);
	return 0;
}

/* One refund with this script; what must come of it. */
static struct msg_executed
refund(const char *script, enum attempt attempt, bool incident, unsigned effects, unsigned posts)
{
	unsigned effects_before = provider_effects(&play);
	unsigned posts_before = provider_requests(&play, "POST");
	struct msg_executed m;
	struct action a;

	provider_script(&play, script);
	action_refund(&play, &a);
	m = action_execute(&play, &a);
	action_is(&m, attempt, attempt == ATTEMPT_SUCCEEDED ? DENIAL_NONE : DENIAL_PROVIDER_ANSWER);
	if (m.incident != incident)
		fail_msg("%s: incident is %d: %.*s", script, m.incident, VIEW_ARGS(m.text));
	assert_int_equal(provider_effects(&play) - effects_before, effects);
	assert_int_equal(provider_requests(&play, "POST") - posts_before, posts);
	/* The ledger says the same. */
	struct msg_executed again = action_ask(&play, &a);

	assert_int_equal(again.attempt, attempt);
	assert_int_equal(again.incident, incident);
	action_done(&a);
	return m;
}

static void
G1_a_whole_answer_that_repeats_the_amount_is_success(void **state)
{
	struct msg_executed m = refund("", ATTEMPT_SUCCEEDED, false, 1, 1);

	(void)state;
	assert_int_equal(m.status, 201);
}

static void
G1_another_amount_is_an_incident(void **state)
{
	(void)state;
	refund("effect other_amount\n", ATTEMPT_UNKNOWN, true, 1, 1);
}

static void
G2_a_truncated_answer_is_unknown(void **state)
{
	(void)state;
	refund("effect truncated\n", ATTEMPT_UNKNOWN, false, 1, 1);
}

static void
G2_an_answer_that_cannot_be_read_is_unknown(void **state)
{
	(void)state;
	refund("effect garbage\n", ATTEMPT_UNKNOWN, false, 1, 1);
}

static void
G3_202_is_unknown_until_it_is_looked_up(void **state)
{
	(void)state;
	refund("effect executes_then 202\n", ATTEMPT_UNKNOWN, false, 1, 1);
}

static void
G4_a_definite_code_is_failed_and_not_retried(void **state)
{
	(void)state;
	refund("effect status 400\n", ATTEMPT_FAILED, false, 0, 1);
	/* 405 is not in the capability record: not definite. */
	refund("effect status 405\n", ATTEMPT_UNKNOWN, false, 0, 1);
}

static void
G6_409_is_unknown_and_not_sent_again(void **state)
{
	(void)state;
	refund("effect status 409\n", ATTEMPT_UNKNOWN, false, 0, 1);
}

static void
G7_422_for_a_key_is_an_incident(void **state)
{
	(void)state;
	refund("effect status 422\n", ATTEMPT_UNKNOWN, true, 0, 1);
}

static void
G8_425_is_sent_again_with_the_same_key(void **state)
{
	struct msg_executed m = refund("effect status 425\n", ATTEMPT_SUCCEEDED, false, 1, 2);

	(void)state;
	assert_int_equal(m.sends, 2);
}

static void
G9_429_waits_as_long_as_it_says(void **state)
{
	uint64_t from = clock_mono_ms();

	(void)state;
	refund("effect retry 2\n", ATTEMPT_SUCCEEDED, false, 1, 2);
	assert_true(clock_mono_ms() - from >= 2000);
}

static void
G9_429_is_sent_twice_more_and_then_failed(void **state)
{
	(void)state;
	refund("effect status 429\neffect status 429\neffect status 429\neffect status 429\n",
		ATTEMPT_FAILED, false, 0, 3);
}

static void
G9_a_wait_beyond_the_bound_is_not_waited_for(void **state)
{
	uint64_t from = clock_mono_ms();

	(void)state;
	refund("effect retry 60\n", ATTEMPT_FAILED, false, 0, 1);
	assert_true(clock_mono_ms() - from < 5000);
}

static void
G11_no_answer_in_time_is_unknown(void **state)
{
	(void)state;
	refund("effect executes_then_stalls 30\n", ATTEMPT_UNKNOWN, false, 1, 1);
}

static void
G13_without_a_capability_record_500_is_unknown(void **state)
{
	(void)state;
	refund("effect executes_then 500\n", ATTEMPT_UNKNOWN, false, 1, 1);
	refund("effect executes_then 503\n", ATTEMPT_UNKNOWN, false, 1, 1);
}

static void
G14_a_receipt_that_comes_twice_is_an_incident(void **state)
{
	(void)state;
	refund("", ATTEMPT_SUCCEEDED, false, 1, 1);
	refund("effect same_receipt\n", ATTEMPT_UNKNOWN, true, 1, 1);
	/* The ledger keeps it over a restart. */
	play_restart(&play);
	refund("effect same_receipt\n", ATTEMPT_UNKNOWN, true, 1, 1);
	refund("", ATTEMPT_SUCCEEDED, false, 1, 1);
}

static void
B8_a_redirection_is_not_followed(void **state)
{
	(void)state;
	refund("effect executes_then 303\n", ATTEMPT_UNKNOWN, false, 1, 1);
	refund("effect executes_then 307\n", ATTEMPT_UNKNOWN, false, 1, 1);
	assert_int_equal(provider_requests(&play, "GET /elsewhere"), 0);
	assert_int_equal(provider_requests(&play, "POST /elsewhere"), 0);
}

static void
H11_a_credential_that_comes_back_is_left_out(void **state)
{
	struct msg_executed m = refund("effect echo\n", ATTEMPT_SUCCEEDED, true, 1, 1);

	(void)state;
	assert_true(view_is(m.receipt, "{\"reference\":\"[redacted]\",\"status\":\"[redacted]\"}"));
	assert_false(play_leaked(&play, "CANARY"));
}

static void
an_answer_of_100_MiB_is_cut_and_unknown(void **state)
{
	(void)state;
	refund("effect huge\n", ATTEMPT_UNKNOWN, false, 1, 1);
}

static void
F9_a_connection_that_dies_is_not_tried_again(void **state)
{
	(void)state;
	refund("effect executes_then_drops\n", ATTEMPT_UNKNOWN, false, 1, 1);
	refund("effect drop\n", ATTEMPT_UNKNOWN, false, 0, 1);
}

/* ---- look-ups ---- */

static struct action
unknown(const char *script)
{
	struct msg_executed m;
	struct action a;

	provider_script(&play, script);
	action_refund(&play, &a);
	m = action_execute(&play, &a);
	action_is(&m, ATTEMPT_UNKNOWN, DENIAL_PROVIDER_ANSWER);
	return a;
}

static void
F4_a_lookup_finds_what_was_done(void **state)
{
	struct action a = unknown("effect executes_then_drops\n");
	struct msg_executed m = action_lookup(&play, &a);

	(void)state;
	action_is(&m, ATTEMPT_SUCCEEDED, DENIAL_NONE);
	assert_true(view_is(m.receipt, "{\"reference\":\"re_1\",\"status\":\"succeeded\"}"));
	assert_int_equal(m.calls, 1);
	/* And it is kept. */
	play_restart(&play);
	m = action_ask(&play, &a);
	action_is(&m, ATTEMPT_SUCCEEDED, DENIAL_NONE);
	assert_int_equal(provider_requests(&play, "POST"), 1);
	action_done(&a);
}

static void
lookup_is_refused(const struct action *a, const struct action *record, enum denial denial)
{
	struct msg_executed m;

	ASK(&play, LOOKUP_ASK, lookup_ask,
		{.execution = a->execution, .record = buf_view(&record->record)});
	WANT(&play, BROKER_REFUSED, broker_refused, no);
	assert_int_equal(no.denial, denial);
	m = action_ask(&play, a);
	action_is(&m, ATTEMPT_UNKNOWN, DENIAL_PROVIDER_ANSWER);
}

/* An engine that asks with the key of something else would make this one look as if it was not done. */
static void
a_lookup_by_another_record_proves_nothing(void **state)
{
	struct action a = unknown("effect executes_then_drops\n"), other;

	(void)state;
	action_refund(&play, &other);
	lookup_is_refused(&a, &other, DENIAL_DIGEST);
	assert_int_equal(provider_requests(&play, "GET /v1/executions"), 0);
	action_done(&other);
	action_done(&a);
}

/* Another provider under the same name does not know it either. */
static void
a_lookup_by_another_adapter_proves_nothing(void **state)
{
	struct action a = unknown("effect executes_then_drops\n");

	(void)state;
	play_kill(&play);
	play_edit(&play, "'path':['v1','executions']", "'path':['v2','executions']");
	play_start(&play);
	lookup_is_refused(&a, &a, DENIAL_ADAPTER_CHANGED);
	action_done(&a);
}

static void
G12_not_found_proves_nothing_before_its_time(void **state)
{
	struct action a = unknown("effect drop\n");
	struct msg_executed m = action_lookup(&play, &a);

	(void)state;
	action_is(&m, ATTEMPT_UNKNOWN, DENIAL_PROVIDER_ANSWER);
	assert_true(view_starts(m.text, "the provider does not know it; that proves nothing"));
	play_silence(&play, 700); /* consistency_ms is 500 */
	m = action_lookup(&play, &a);
	action_is(&m, ATTEMPT_FAILED, DENIAL_PROVIDER_ANSWER);
	assert_int_equal(provider_effects(&play), 0);
	assert_int_equal(provider_requests(&play, "POST"), 1);
	action_done(&a);
}

static void
G12_a_slow_lookup_stays_unknown(void **state)
{
	struct action a = unknown("effect executes_then_drops\nlookup empty\nlookup pending\n");
	struct msg_executed m = action_lookup(&play, &a);

	(void)state;
	action_is(&m, ATTEMPT_UNKNOWN, DENIAL_PROVIDER_ANSWER); /* not seen yet */
	m = action_lookup(&play, &a);
	action_is(&m, ATTEMPT_UNKNOWN, DENIAL_PROVIDER_ANSWER); /* pending */
	m = action_lookup(&play, &a);
	action_is(&m, ATTEMPT_SUCCEEDED, DENIAL_NONE);
	action_done(&a);
}

static void
G14_two_effects_with_one_key_are_an_incident(void **state)
{
	struct action a = unknown("effect executes_then_drops\nlookup twice\n");
	struct msg_executed m = action_lookup(&play, &a);

	(void)state;
	action_is(&m, ATTEMPT_UNKNOWN, DENIAL_PROVIDER_ANSWER);
	assert_true(m.incident);
	action_done(&a);
}

static void
a_lookup_says_that_it_failed(void **state)
{
	struct action a = unknown("effect drop\nlookup failed\n");
	struct msg_executed m = action_lookup(&play, &a);

	(void)state;
	action_is(&m, ATTEMPT_FAILED, DENIAL_PROVIDER_ANSWER);
	action_done(&a);
}

static void
a_lookup_that_is_not_answered_changes_nothing(void **state)
{
	struct action a = unknown("effect executes_then_drops\nlookup status 500\n");
	struct msg_executed m = action_lookup(&play, &a);

	(void)state;
	action_is(&m, ATTEMPT_UNKNOWN, DENIAL_PROVIDER_ANSWER);
	action_done(&a);
}

static int
begin_key_window(void **state)
{
	(void)state;
	play_open(&play);
	play_edit(&play, "'key_window_ms':86400000", "'key_window_ms':60000");
	play_start(&play);
	return 0;
}

static void
G18_a_key_that_may_be_forgotten_proves_nothing(void **state)
{
	struct action a = unknown("effect drop\n");
	struct msg_executed m;

	(void)state;
	play_silence(&play, 700);
	m = action_lookup(&play, &a);
	action_is(&m, ATTEMPT_UNKNOWN, DENIAL_PROVIDER_ANSWER);
	assert_true(view_starts(m.text, "the provider does not know it, but may have forgotten"));
	action_done(&a);
}

static int
begin_bare(void **state)
{
	(void)state;
	play_open(&play);
	play_edit(&play,
		"'capability':{'concurrent':[409],'definite':[400,404],"
		"'key':{'format':'raw','header':'Idempotency-Key'},'key_window_ms':86400000,"
		"'lookup':{'by':'key','consistency_ms':500,'failed':['failed'],'field':'status',"
		"'list':'data','path':['v1','executions'],'query':[{'name':'key','value':{'host':"
		"'key'}}],"
		"'succeeded':['succeeded']},'not_processed':[425,429]},",
		"");
	play_start(&play);
	return 0;
}

static void
G13_no_capability_one_attempt_then_a_person(void **state)
{
	struct action a = unknown("effect status 429\n");
	struct msg_executed m = action_lookup(&play, &a);

	(void)state;
	action_is(&m, ATTEMPT_UNKNOWN, DENIAL_PROVIDER_ANSWER);
	assert_true(view_starts(m.text, "the provider cannot be asked"));
	assert_int_equal(provider_requests(&play, "POST"), 1);
	assert_int_equal(provider_requests(&play, "GET /v1/executions"), 0);
	action_done(&a);
	refund("effect status 400\n", ATTEMPT_UNKNOWN, false, 0, 1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(G1_a_whole_answer_that_repeats_the_amount_is_success),
		TEST(G1_another_amount_is_an_incident),
		TEST(G2_a_truncated_answer_is_unknown),
		TEST(G2_an_answer_that_cannot_be_read_is_unknown),
		TEST(G3_202_is_unknown_until_it_is_looked_up),
		TEST(G4_a_definite_code_is_failed_and_not_retried),
		TEST(G6_409_is_unknown_and_not_sent_again),
		TEST(G7_422_for_a_key_is_an_incident),
		TEST(G8_425_is_sent_again_with_the_same_key),
		TEST(G9_429_waits_as_long_as_it_says),
		TEST(G9_429_is_sent_twice_more_and_then_failed),
		TEST(G9_a_wait_beyond_the_bound_is_not_waited_for),
		TEST(G11_no_answer_in_time_is_unknown),
		TEST(G13_without_a_capability_record_500_is_unknown),
		TEST(G14_a_receipt_that_comes_twice_is_an_incident),
		TEST(B8_a_redirection_is_not_followed),
		TEST(H11_a_credential_that_comes_back_is_left_out),
		TEST(an_answer_of_100_MiB_is_cut_and_unknown),
		TEST(F9_a_connection_that_dies_is_not_tried_again),
		TEST(F4_a_lookup_finds_what_was_done),
		TEST(a_lookup_by_another_record_proves_nothing),
		TEST(a_lookup_by_another_adapter_proves_nothing),
		TEST(G12_not_found_proves_nothing_before_its_time),
		TEST(G12_a_slow_lookup_stays_unknown),
		TEST(G14_two_effects_with_one_key_are_an_incident),
		TEST(a_lookup_says_that_it_failed),
		TEST(a_lookup_that_is_not_answered_changes_nothing),
		cmocka_unit_test_setup_teardown(
			G18_a_key_that_may_be_forgotten_proves_nothing, begin_key_window, end),
		cmocka_unit_test_setup_teardown(
			G13_no_capability_one_attempt_then_a_person, begin_bare, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
