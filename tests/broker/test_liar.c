/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An engine that was taken over: it replays, invents and alters, with people who sign what they are shown and without. Nothing may be sent
 * that nobody approved in exactly these bytes, twice, too late or to somebody else; the provider's requests count.
 */
#include "play.h"

#include "lib/approval/sshsig.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

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

static void
nothing_was_sent(void)
{
	assert_int_equal(provider_requests(&play, "POST"), 0);
	assert_int_equal(provider_effects(&play), 0);
}

static void
denied(const struct action *a, enum denial denial)
{
	struct msg_executed m = action_execute(&play, a);

	action_is(&m, ATTEMPT_DENIED, denial);
}

/* ---- altered before a person saw it: they sign what they are shown, the broker knows better ---- */

static void
edit_body(struct proposal_record *r, void *arg)
{
	(void)arg;
	r->body = view_str("{\"amount\":420000,\"currency\":\"EUR\",\"reason\":\"other\"}");
}

static void
edit_url(struct proposal_record *r, void *arg)
{
	(void)arg;
	r->url = view_str("http://evil.test/v1/orders/48221/refunds");
}

static void
edit_method(struct proposal_record *r, void *arg)
{
	(void)arg;
	r->method = view_str("PUT");
}

static void
edit_schema(struct proposal_record *r, void *arg)
{
	(void)arg;
	r->schema[3] ^= 1;
}

static void
edit_effect(struct proposal_record *r, void *arg)
{
	(void)arg;
	r->effect = EFFECT_DRAFT;
}

static void
edit_adapter(struct proposal_record *r, void *arg)
{
	(void)arg;
	r->adapter[31] ^= 1;
}

static void
edit_policy(struct proposal_record *r, void *arg)
{
	(void)arg;
	r->policy[0] ^= 1;
}

static void
edit_account(struct proposal_record *r, void *arg)
{
	(void)arg;
	r->provider_account = view_str("acct_2");
}

static void
edit_environment(struct proposal_record *r, void *arg)
{
	(void)arg;
	r->environment = view_str("staging");
}

static void
edit_decide_by(struct proposal_record *r, void *arg)
{
	(void)arg;
	r->decide_by_ms++;
}

static void
edit_dispatch_within(struct proposal_record *r, void *arg)
{
	(void)arg;
	r->dispatch_within_ms++;
}

static void
edit_quorum(struct proposal_record *r, void *arg)
{
	(void)arg;
	r->quorum = 0;
}

static void
edit_epoch(struct proposal_record *r, void *arg)
{
	(void)arg;
	r->epoch = 7;
}

static void
edit_future(struct proposal_record *r, void *arg)
{
	(void)arg;
	r->issued_ms += 60000;
	r->decide_by_ms += 60000;
}

static void
edit_key(struct proposal_record *r, void *arg)
{
	(void)arg;
	r->idempotency_key = view_str("dml-0123456789abcdef0123456789abcdef01234567");
}

static void
edit_action(struct proposal_record *r, void *arg)
{
	(void)arg;
	r->action = view_str("wire_transfer");
}

static void
edit_requester(struct proposal_record *r, void *arg)
{
	(void)arg;
	r->requester = view_str("uid:1001");
}

static void
edit_facts(struct proposal_record *r, void *arg)
{
	(void)arg;
	r->facts = view_str("{\"order__paid_cents\":990000,\"order__status\":\"paid\","
			    "\"order__tenant\":\"acme\"}");
}

static void
edit_verified(struct proposal_record *r, void *arg)
{
	(void)arg;
	r->provenance = view_str("{\"cents\":\"verified\"}");
}

static void
edit_default(struct proposal_record *r, void *arg)
{
	(void)arg;
	r->provenance = view_str("{\"cents\":\"default\"}");
}

/* at: 1 the decision is refused too, 0 only the execution. */
static const struct {
	const char *name;
	void (*edit)(struct proposal_record *r, void *arg);
	enum denial denial;
	bool decide;
} alterations[] = {
	{"the body", edit_body, DENIAL_REQUEST_DIFFERENT, true},
	{"the url", edit_url, DENIAL_REQUEST_DIFFERENT, true},
	{"the method", edit_method, DENIAL_REQUEST_DIFFERENT, true},
	{"A16 the schema", edit_schema, DENIAL_SCHEMA_CHANGED, true},
	{"the effect", edit_effect, DENIAL_SCHEMA_CHANGED, true},
	{"A16 the adapter", edit_adapter, DENIAL_ADAPTER_CHANGED, true},
	{"D16 the policy", edit_policy, DENIAL_POLICY_CHANGED, true},
	{"D17 the account", edit_account, DENIAL_ADAPTER_CHANGED, true},
	{"D17 the environment", edit_environment, DENIAL_ADAPTER_CHANGED, true},
	{"decide_by", edit_decide_by, DENIAL_POLICY_CHANGED, true},
	{"dispatch_within", edit_dispatch_within, DENIAL_POLICY_CHANGED, true},
	{"the quorum", edit_quorum, DENIAL_POLICY_CHANGED, true},
	{"the epoch", edit_epoch, DENIAL_EPOCH, true},
	{"C4 the future", edit_future, DENIAL_CLOCK, true},
	{"D6 the requester", edit_requester, DENIAL_APPROVER_OWN, true},
	{"a label that the operation does not give", edit_verified, DENIAL_ARGUMENTS, true},
	{"a default that is none", edit_default, DENIAL_ARGUMENTS, true},
	{"G17 the key", edit_key, DENIAL_KEY_CONFLICT, false},
	{"facts that nobody read", edit_facts, DENIAL_VERIFY_FAILED, false},
};

static void
A16_D16_D17_what_the_own_catalogue_does_not_say_is_not_sent(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(alterations); i++) {
		uint64_t now = clock_real_ms();
		struct action a;

		action_make_edited(&play, &a, "refund", PLAY_REFUND,
			(struct action_edit){.edit = alterations[i].edit});
		if (alterations[i].edit == edit_schema) {
			/* Nobody can be shown an operation of another schema. */
			denied(&a, DENIAL_SCHEMA_CHANGED);
			action_done(&a);
			continue;
		}
		action_sign(&play, &a, 0, true, now, now + 60000);
		if (alterations[i].decide) {
			enum denial said = action_decide(&play, &a);

			if (said != alterations[i].denial)
				fail_msg("%s: %s", alterations[i].name, denial_text(said));
		}
		denied(&a, alterations[i].denial);
		action_done(&a);
	}
	nothing_was_sent();
}

static void
an_operation_that_is_not_there_is_not_sent(void **state)
{
	struct action a;

	(void)state;
	action_make_edited(
		&play, &a, "refund", PLAY_REFUND, (struct action_edit){.edit = edit_action});
	denied(&a, DENIAL_OPERATION_UNKNOWN);
	nothing_was_sent();
	action_done(&a);
}

/* ---- altered after a person signed it ---- */

static void
each_byte_is_denied(struct action *a, struct buf *part)
{
	for (size_t i = 0; i < part->n; i++) {
		struct msg_executed m;

		part->p[i] ^= 1;
		id_new(&a->execution);
		m = action_execute(&play, a);
		if (m.attempt != ATTEMPT_DENIED)
			fail_msg("byte %zu: %s", i, attempt_text(m.attempt));
		part->p[i] ^= 1;
	}
	nothing_was_sent();
}

static void
every_changed_byte_of_a_record_is_another_record(void **state)
{
	struct action a;

	(void)state;
	action_refund(&play, &a);
	each_byte_is_denied(&a, &a.record);
	struct msg_executed m = action_execute(&play, &a);

	action_is(&m, ATTEMPT_SUCCEEDED, DENIAL_NONE);
	action_done(&a);
}

static void
every_changed_byte_of_an_approval_is_none(void **state)
{
	struct action a;

	(void)state;
	action_refund(&play, &a);
	each_byte_is_denied(&a, &a.approvals);
	action_done(&a);
}

static void
the_approval_of_one_thing_is_none_of_another(void **state)
{
	struct action a, b;

	(void)state;
	action_refund(&play, &a);
	action_make(&play, &b, "refund", "{\"cents\":8400,\"order_id\":\"48221\"}");
	buf_add_view(&b.approvals, buf_view(&a.approvals));
	denied(&b, DENIAL_DIGEST);
	/* Nor a record under another proposal's name. */
	a.proposal = b.proposal;
	denied(&a, DENIAL_RECORD_MALFORMED);
	nothing_was_sent();
	action_done(&a);
	action_done(&b);
}

/* ---- invented ---- */

static void
without_people_nothing_is_sent(void **state)
{
	uint64_t now = clock_real_ms();
	struct action a;

	(void)state;
	action_make(&play, &a, "refund", PLAY_REFUND);
	denied(&a, DENIAL_QUORUM);
	/* Somebody who may not. */
	action_sign(&play, &a, 2, true, now, now + 60000);
	denied(&a, DENIAL_APPROVER_MAY_NOT);
	buf_clear(&a.approvals);
	/* A rejection. */
	action_sign(&play, &a, 0, false, now, 0);
	denied(&a, DENIAL_RECORD_MALFORMED);
	action_done(&a);
	nothing_was_sent();
}

static void
above_a_tier_two_different_people_must_sign(void **state)
{
	static const char much[] = "{\"cents\":100001,\"order_id\":\"48221\"}";
	uint64_t now = clock_real_ms();
	struct msg_executed m;
	struct action a;

	(void)state;
	play.paid_cents = 900000;
	play_write(play.provider_dir, "orders.json",
		"{\"48221\":{\"tenant\":\"acme\",\"paid_cents\":900000,\"status\":\"paid\"}}");
	action_make(&play, &a, "refund", much);
	action_sign(&play, &a, 0, true, now, now + 60000);
	denied(&a, DENIAL_QUORUM);
	action_sign(&play, &a, 0, true, now + 1, now + 60000);
	denied(&a, DENIAL_QUORUM);
	nothing_was_sent();
	action_sign(&play, &a, 1, true, now, now + 60000);
	id_new(&a.execution);
	m = action_execute(&play, &a);
	action_is(&m, ATTEMPT_SUCCEEDED, DENIAL_NONE);
	action_done(&a);
	/* And above the limit of one of them. */
	action_make(&play, &a, "refund", "{\"cents\":200001,\"order_id\":\"48221\"}");
	action_sign(&play, &a, 0, true, now, now + 60000);
	action_sign(&play, &a, 1, true, now, now + 60000);
	denied(&a, DENIAL_APPROVER_AMOUNT);
	assert_int_equal(provider_effects(&play), 1);
	action_done(&a);
}

static void
a_release_that_nobody_signed_is_none(void **state)
{
	auto_buf struct buf record = {.max = 4096}, signature = {.max = 4096};
	struct release_record r = {.approver = view_str("ben"),
		.note = view_str("says the engine"),
		.scope = view_str("host"),
		.decided_ms = clock_real_ms()};
	struct err err;

	(void)state;
	assert_int_equal(release_record_write(&r, &record, &err), 0);
	play_sign(&play, 0, buf_view(&record), &signature);
	ASK(&play, RELEASE_ASK, release_ask,
		{.release = buf_view(&record), .signature = buf_view(&signature)});
	WANT(&play, DECISION_IS, decision_is, m);
	assert_int_equal(m.denial, DENIAL_APPROVER_UNKNOWN); /* anna's key in ben's name */
	signature.p[signature.n - 1] ^= 1;
	ASK(&play, RELEASE_ASK, release_ask,
		{.release = buf_view(&record), .signature = buf_view(&signature)});
	play_want(&play, MSG_DECISION_IS);
}

/* ---- replayed, and times ---- */

static void
G16_the_same_key_never_carries_two_records(void **state)
{
	struct msg_executed m;
	struct action a, b;

	(void)state;
	action_refund(&play, &a);
	m = action_execute(&play, &a);
	action_is(&m, ATTEMPT_SUCCEEDED, DENIAL_NONE);
	play_restart(&play);
	id_new(&a.execution);
	denied(&a, DENIAL_SPENT);
	/* Another record in the name of the same proposal, signed too. */
	play.again = &a.proposal;
	action_make(&play, &b, "refund", "{\"cents\":4201,\"order_id\":\"48221\"}");
	play.again = NULL;
	action_approve(&play, &b, 0);
	denied(&b, DENIAL_SPENT);
	/* And under the execution that was. */
	b.execution = a.execution;
	denied(&b, DENIAL_SPENT);
	assert_int_equal(provider_requests(&play, "POST"), 1);
	action_done(&a);
	action_done(&b);
}

static void
G16_an_execution_never_carries_another_record(void **state)
{
	struct msg_executed m;
	struct action a, b;

	(void)state;
	action_refund(&play, &a);
	m = action_execute(&play, &a);
	action_is(&m, ATTEMPT_SUCCEEDED, DENIAL_NONE);
	action_refund(&play, &b);
	b.execution = a.execution;
	denied(&b, DENIAL_KEY_CONFLICT);
	assert_int_equal(provider_requests(&play, "POST"), 1);
	action_done(&a);
	action_done(&b);
}

static void
C2_what_waited_past_its_time_is_not_sent(void **state)
{
	uint64_t now = clock_real_ms();
	struct msg_executed m;
	struct action a;

	(void)state;
	action_make(&play, &a, "refund", PLAY_REFUND);
	action_sign(&play, &a, 0, true, now, now + 700);
	assert_int_equal(action_decide(&play, &a), DENIAL_NONE);
	play.dials = DIALER_HOLDS;
	action_send(&play, &a);
	play_until_dialled(&play, 1);
	play_dial_now(&play);
	play_until_dialled(&play, 2); /* all checks held */
	play_silence(&play, 800);
	play.dials = DIALER_CONNECTS;
	play_dial_now(&play);
	m = action_executed(&play);
	action_is(&m, ATTEMPT_DENIED, DENIAL_DISPATCH_EXPIRED);
	nothing_was_sent();
	action_done(&a);
}

/* Half-open: sent at every millisecond around its end, it is never sent at or after it. */
static void
C1_at_its_millisecond_it_is_expired(void **state)
{
	(void)state;
	for (int early = 14; early >= -2; early -= 2) {
		uint64_t now = clock_real_ms(), by = now + 40;
		struct msg_executed m;
		struct action a;

		action_make(&play, &a, "refund", "{\"cents\":1,\"order_id\":\"48221\"}");
		action_sign(&play, &a, 0, true, now, by);
		while ((int64_t)(by - clock_real_ms()) > early)
			;
		m = action_execute(&play, &a);
		if (m.attempt == ATTEMPT_SUCCEEDED)
			assert_true(m.spent_ms < by);
		else
			action_is(&m, ATTEMPT_DENIED, DENIAL_DISPATCH_EXPIRED);
		if (early < 0)
			assert_int_equal(m.attempt, ATTEMPT_DENIED);
		action_done(&a);
	}
}

static void
C3_a_decision_counts_from_when_the_broker_saw_it(void **state)
{
	uint64_t now = clock_real_ms(), decide_by = now + 600;
	struct msg_executed m;
	struct action a, b;

	(void)state;
	play.decide_by_ms = decide_by; /* shorter than the policy: an engine may */
	action_make(&play, &a, "refund", PLAY_REFUND);
	action_make(&play, &b, "refund", PLAY_REFUND);
	action_sign(&play, &a, 0, true, now, now + 60000);
	action_sign(&play, &b, 0, true, now, now + 60000);
	assert_int_equal(action_decide(&play, &a), DENIAL_NONE);
	play_silence(&play, 700);
	/* One was seen in time, and can be sent after a restart too; the other one is shown too late, whatever date it has. */
	play_restart(&play);
	assert_int_equal(action_decide(&play, &b), DENIAL_DECIDE_EXPIRED);
	denied(&b, DENIAL_DECIDE_EXPIRED);
	m = action_execute(&play, &a);
	action_is(&m, ATTEMPT_SUCCEEDED, DENIAL_NONE);
	assert_int_equal(provider_effects(&play), 1);
	action_done(&a);
	action_done(&b);
}

static void
C4_a_decision_of_another_time_is_none(void **state)
{
	uint64_t now = clock_real_ms();
	struct action a;

	(void)state;
	action_make(&play, &a, "refund", PLAY_REFUND);
	action_sign(&play, &a, 0, true, now + 60000, now + 120000);
	assert_int_equal(action_decide(&play, &a), DENIAL_CLOCK);
	denied(&a, DENIAL_CLOCK);
	buf_clear(&a.approvals);
	action_sign(&play, &a, 0, true, now - 400000, now + 100000);
	denied(&a, DENIAL_CLOCK);
	buf_clear(&a.approvals);
	action_sign(&play, &a, 0, true, now, now + 300001);
	denied(&a, DENIAL_CLOCK);
	nothing_was_sent();
	action_done(&a);
}

/* ---- the file of approvers ---- */

static void
loaded(bool good)
{
	WANT(&play, APPROVERS_LOADED, approvers_loaded, m);
	assert_int_equal(m.fault.n == 0, good);
	assert_int_equal(m.people, good ? 3 : 0);
}

/* The file is looked at before the answer, and the engine is told first. */
static void
denied_when_loaded(const struct action *a, bool good, enum denial denial)
{
	action_send(&play, a);
	loaded(good);
	struct msg_executed m = action_executed(&play);

	action_is(&m, ATTEMPT_DENIED, denial);
}

static void
edit_long_ago(struct proposal_record *r, void *arg)
{
	(void)arg;
	r->issued_ms -= 600000 + 300000 + 1000;
	r->decide_by_ms = r->issued_ms + 600000;
}

/* Nobody signs a draft, so nothing but the record's own times keeps an engine from sending one of last year. */
static void
C1_a_draft_of_long_ago_is_not_sent(void **state)
{
	struct action a;

	(void)state;
	action_make_edited(&play, &a, "note", "{\"text\":\"hello\"}",
		(struct action_edit){.edit = edit_long_ago});
	denied(&a, DENIAL_DISPATCH_EXPIRED);
	action_done(&a);
	nothing_was_sent();
}

static void
who_is_taken_off_the_file_approves_nothing_any_more(void **state)
{
	struct action a;

	(void)state;
	action_refund(&play, &a);
	play_approvers(&play, (const char *const[]){"may=reply", NULL, NULL});
	denied_when_loaded(&a, true, DENIAL_APPROVER_MAY_NOT);
	nothing_was_sent();
	action_done(&a);
}

static void
a_file_that_cannot_be_trusted_is_no_file(void **state)
{
	struct action a;

	(void)state;
	action_refund(&play, &a);
	/* Others may write it. */
	assert_int_equal(fchmodat(play.trust, "approvers", 0664, 0), 0);
	denied_when_loaded(&a, false, DENIAL_APPROVERS_UNREADABLE);
	assert_int_equal(fchmodat(play.trust, "approvers", 0644, 0), 0);
	loaded(true);
	/* Not root's. */
	assert_int_equal(fchownat(play.trust, "approvers", 1000, 0, 0), 0);
	denied_when_loaded(&a, false, DENIAL_APPROVERS_UNREADABLE);
	/* One bad line. */
	play_write(play.trust, "approvers.new", "anna may=* ssh-ed25519 AAAA\n");
	assert_int_equal(renameat(play.trust, "approvers.new", play.trust, "approvers"), 0);
	denied_when_loaded(&a, false, DENIAL_APPROVERS_UNREADABLE);
	/* A link, a directory, nothing. */
	assert_int_equal(unlinkat(play.trust, "approvers", 0), 0);
	assert_int_equal(symlinkat("elsewhere", play.trust, "approvers"), 0);
	denied_when_loaded(&a, false, DENIAL_APPROVERS_UNREADABLE);
	assert_int_equal(unlinkat(play.trust, "approvers", 0), 0);
	denied_when_loaded(&a, false, DENIAL_APPROVERS_UNREADABLE);
	nothing_was_sent();
	play_approvers(&play, NULL);
	loaded(true);
	struct msg_executed m = action_execute(&play, &a);

	action_is(&m, ATTEMPT_SUCCEEDED, DENIAL_NONE);
	action_done(&a);
}

/* ---- the edge itself ---- */

static void
an_engine_that_breaks_the_table_is_lost_and_the_broker_is_not(void **state)
{
	uint8_t garbage[64] = {0xff};
	struct msg_executed m;
	struct action a;

	(void)state;
	action_refund(&play, &a);
	assert_int_equal(write(play.engine, garbage, sizeof(garbage)), sizeof(garbage));
	play_engine_again(&play);
	m = action_execute(&play, &a);
	action_is(&m, ATTEMPT_SUCCEEDED, DENIAL_NONE);
	action_done(&a);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(A16_D16_D17_what_the_own_catalogue_does_not_say_is_not_sent),
		TEST(an_operation_that_is_not_there_is_not_sent),
		TEST(every_changed_byte_of_a_record_is_another_record),
		TEST(every_changed_byte_of_an_approval_is_none),
		TEST(the_approval_of_one_thing_is_none_of_another),
		TEST(without_people_nothing_is_sent),
		TEST(above_a_tier_two_different_people_must_sign),
		TEST(a_release_that_nobody_signed_is_none),
		TEST(G16_the_same_key_never_carries_two_records),
		TEST(G16_an_execution_never_carries_another_record),
		TEST(C2_what_waited_past_its_time_is_not_sent),
		TEST(C1_at_its_millisecond_it_is_expired),
		TEST(C1_a_draft_of_long_ago_is_not_sent),
		TEST(C3_a_decision_counts_from_when_the_broker_saw_it),
		TEST(C4_a_decision_of_another_time_is_none),
		TEST(who_is_taken_off_the_file_approves_nothing_any_more),
		TEST(a_file_that_cannot_be_trusted_is_no_file),
		TEST(an_engine_that_breaks_the_table_is_lost_and_the_broker_is_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
