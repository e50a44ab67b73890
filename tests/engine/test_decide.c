/* SPDX-License-Identifier: Apache-2.0 */
/* What people sign: which bytes, in which state, in time; of two who race one is late. Nothing leaves but after the last needed approval. */
#include "acts.h"

#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

static struct acts acts;

static int
setup(void **state)
{
	acts_open(&acts);
	acts_start(&acts);
	(void)acts_grant(&acts, "refund", NULL, 20);
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

static void
conflict(struct acts *a, const char *says)
{
	ANSWER(&a->p, REFUSED, refused, m);
	assert_int_equal(m.error, ERROR_CONFLICT);
	if (!has(m.text, says))
		fail_msg("\"%s\" is wanted: %.*s", says, VIEW_ARGS(m.text));
}

static void
denied(struct acts *a, enum denial denial)
{
	ANSWER(&a->p, REFUSED, refused, m);
	assert_int_equal(
		m.error, denial == DENIAL_BROKER_UNAVAILABLE ? ERROR_UNAVAILABLE : ERROR_DENIED);
	if (m.denial != denial)
		fail_msg("%s is wanted, %s came", denial_text(denial), denial_text(m.denial));
}

static void
answered(struct acts *a, enum proposal_state state)
{
	ANSWER(&a->p, PROPOSAL_ROW, proposal_row, row);
	if (row.state != state)
		fail_msg("%s is wanted, it is %s", proposal_state_text(state),
			proposal_state_text(row.state));
}

static void
silence(struct acts *a)
{
	play_want_silence(&a->p, a->p.broker, 60);
}

static void
test_approved(void **state)
{
	struct acts *a = *state;
	struct id id = acts_pending(a, "48221", 4200);
	struct view decisions, decision, signature;
	uint64_t tag;

	acts_decide(a, &id, "anna", true);
	{
		WANT(&a->p, a->p.broker, DECISION_ASK, decision_ask, m);
		assert_true(id_eq(&m.proposal, &id));
		tag = a->p.in.tag;
	}
	play_want_silence(&a->p, a->p.api, 50); /* nothing is known yet */
	acts_decided(a, tag, DENIAL_NONE, "anna", 1);
	tag = acts_execute(a);
	{
		struct msg_execute m;
		uint8_t digest[32];
		struct msg_proposal_row row;

		play_decoded(msg_execute_get(a->p.in.body, &m, &(struct err){0}), "EXECUTE");
		decisions = m.approvals;
		assert_int_equal(approvals_take(&decisions, &decision, &signature), 1);
		assert_true(view_is(signature, "signed"));
		assert_int_equal(approvals_take(&decisions, &decision, &signature), 0);
		proposal_digest(m.record, digest);
		acts_executed(a, tag, ATTEMPT_SUCCEEDED);
		answered(a, PROPOSAL_STATE_SUCCEEDED);
		acts_row(a, &id, &row);
		assert_memory_equal(row.digest, digest, 32);
		assert_false(id_is_zero(&row.execution));
		assert_true(row.decisions.n > 0);
	}
	(void)play_audit(&a->p, &a->task);
	assert_int_equal(play_events(&a->p, "decision.asked"), 1);
	assert_int_equal(play_events(&a->p, "decision.accepted"), 1);
	assert_true(play_record(&a->p, "decision.accepted", "\"approver\":\"anna\""));
	assert_true(play_record(&a->p, "decision.accepted", "\"request_id\":\"r1\""));
}

/* The digest that was shown comes with the decision. */
static void
D2_what_was_shown_must_be_what_stands(void **state)
{
	struct acts *a = *state;
	struct id id = acts_pending(a, "48221", 4200), other = acts_pending(a, "48222", 1);
	struct msg_proposal_row row;
	struct msg_proposal_decide m = {.caller = as_root, .proposal = id};

	acts_row(a, &other, &row);
	memcpy(m.shown, row.digest, 32);
	ASK(&a->p, PROPOSAL_DECIDE, proposal_decide, m);
	conflict(a, "look at it again");
	memset(m.shown, 0, 32);
	ASK(&a->p, PROPOSAL_DECIDE, proposal_decide, m);
	conflict(a, "look at it again");
	silence(a);
	assert_int_equal(acts_state(a, &id), PROPOSAL_STATE_PENDING);
}

/* Another amount is another proposal; the signature over the first says nothing about it. */
static void
D1_a_decision_about_other_bytes_is_denied(void **state)
{
	struct acts *a = *state;
	struct id first = acts_pending(a, "48221", 4200), second = acts_pending(a, "48221", 4201);
	struct msg_proposal_row row;
	struct decision_record d = {.approver = view_str("anna"),
		.reason = view_str("seen"),
		.approve = true,
		.decided_ms = clock_real_ms(),
		.dispatch_by_ms = clock_real_ms() + 1000};
	struct msg_proposal_decide m = {
		.caller = as_root, .proposal = second, .signature = view_str("signed")};
	struct buf b;

	buf_init(&b, DECISION_RECORD_MAX);
	acts_row(a, &first, &row);
	memcpy(d.proposal, row.digest, 32);
	assert_int_equal(decision_record_write(&d, &b, &(struct err){0}), 0);
	acts_row(a, &second, &row);
	memcpy(m.shown, row.digest, 32);
	m.decision = buf_view(&b);
	ASK(&a->p, PROPOSAL_DECIDE, proposal_decide, m);
	denied(a, DENIAL_DIGEST);
	m.decision = view_str("{\"approve\":true}");
	ASK(&a->p, PROPOSAL_DECIDE, proposal_decide, m);
	denied(a, DENIAL_RECORD_MALFORMED);
	silence(a);
	assert_int_equal(acts_state(a, &second), PROPOSAL_STATE_PENDING);
	(void)play_audit(&a->p, &a->task);
	assert_int_equal(play_events(&a->p, "decision.refused"), 2);
	buf_done(&b);
}

static void
D3_two_approvers_race_and_one_transition_is_made(void **state)
{
	struct acts *a = *state;
	struct id id = acts_pending(a, "48221", 4200);
	uint64_t first, second;

	acts_decide(a, &id, "anna", true);
	first = acts_decision(a);
	acts_decide(a, &id, "bert", true);
	second = acts_decision(a);
	acts_decided(a, first, DENIAL_NONE, "anna", 1);
	(void)acts_execute(a);
	acts_decided(a, second, DENIAL_NONE, "bert", 1);
	conflict(a, "already decided by anna");
	silence(a); /* one EXECUTE */
	(void)play_audit(&a->p, &a->task);
	assert_int_equal(play_events(&a->p, "decision.accepted"), 1);
	assert_int_equal(play_events(&a->p, "decision.refused"), 1);
}

static void
D4_a_rejection_that_is_first_wins(void **state)
{
	struct acts *a = *state;
	struct id id = acts_pending(a, "48221", 4200);
	uint64_t yes, no;

	acts_decide(a, &id, "anna", true);
	yes = acts_decision(a);
	acts_decide(a, &id, "bert", false);
	no = acts_decision(a);
	acts_decided(a, no, DENIAL_NONE, "bert", 1);
	answered(a, PROPOSAL_STATE_REJECTED);
	a->p.tag = a->p.tag -
		   2; /* the answer to the approval: asked before its look and the rejection */
	acts_decided(a, yes, DENIAL_NONE, "anna", 1);
	conflict(a, "already decided by bert");
	silence(a);
	a->p.tag += 10;
	assert_int_equal(acts_state(a, &id), PROPOSAL_STATE_REJECTED);
}

static void
D4_a_revocation_beats_an_approval_that_is_not_dispatched(void **state)
{
	struct acts *a = *state;
	struct id id = acts_pending(a, "48221", 4200);
	char name[ID_TEXT];
	uint64_t yes, tag;

	acts_decide(a, &id, "anna", true);
	tag = a->p.tag;
	yes = acts_decision(a);
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
	acts_decided(a, yes, DENIAL_NONE, "anna", 1);
	a->p.tag = tag;
	conflict(a, "revoked");
	silence(a);
}

/* The broker knows who may; the engine tells its denial and keeps the proposal as it is. */
static void
D6_what_the_broker_denies_changes_nothing(void **state)
{
	static const enum denial denials[] = {DENIAL_APPROVER_OWN, DENIAL_SIGNATURE,
		DENIAL_APPROVER_UNKNOWN, DENIAL_APPROVER_MAY_NOT, DENIAL_APPROVER_AMOUNT};
	struct acts *a = *state;
	struct id id = acts_pending(a, "48221", 4200);

	for (size_t i = 0; i < ARRAY_LEN(denials); i++) {
		acts_decide(a, &id, "anna", true);
		acts_decided(a, acts_decision(a), denials[i], "anna", 1);
		denied(a, denials[i]);
		assert_int_equal(acts_state(a, &id), PROPOSAL_STATE_PENDING);
	}
	silence(a);
	(void)play_audit(&a->p, &a->task);
	assert_int_equal(play_events(&a->p, "decision.refused"), ARRAY_LEN(denials));
	assert_true(play_recorded("\"denial\":\"approver_own\""));
}

static void
test_quorum(void **state)
{
	struct acts *a = *state;
	struct id id;
	uint64_t tag;

	acts_ask(a, 1, "refund", "{\"cents\":100001,\"order_id\":\"48221\"}");
	acts_verified(a, acts_verify(a), DENIAL_NONE,
		"{\"order__paid_cents\":200000,\"order__status\":\"paid\",\"order__tenant\":"
		"\"acme\"}");
	id = acts_proposed(a, 1, false);
	acts_decide(a, &id, "anna", true);
	acts_decided(a, acts_decision(a), DENIAL_NONE, "anna", 1); /* the row says two */
	answered(a, PROPOSAL_STATE_PENDING);
	acts_decide(a, &id, "anna", true); /* the same person does not count twice */
	acts_decided(a, acts_decision(a), DENIAL_NONE, "anna", 2);
	conflict(a, "anna has decided");
	assert_int_equal(acts_state(a, &id), PROPOSAL_STATE_PENDING);
	silence(a);
	acts_restart(a); /* what anna said is on disk */
	acts_decide(a, &id, "bert", true);
	acts_decided(a, acts_decision(a), DENIAL_NONE, "bert", 2);
	tag = acts_execute(a);
	{
		struct msg_execute m;
		struct view left, decision, signature;

		play_decoded(msg_execute_get(a->p.in.body, &m, &(struct err){0}), "EXECUTE");
		left = m.approvals;
		assert_int_equal(approvals_take(&left, &decision, &signature), 1);
		assert_true(has(decision, "\"approver\":\"anna\""));
		assert_int_equal(approvals_take(&left, &decision, &signature), 1);
		assert_true(has(decision, "\"approver\":\"bert\""));
		assert_int_equal(approvals_take(&left, &decision, &signature), 0);
	}
	acts_executed(a, tag, ATTEMPT_SUCCEEDED);
	answered(a, PROPOSAL_STATE_SUCCEEDED);
}

/* The larger number holds: a broker that asks for more people than the row has. */
static void
test_the_brokers_quorum_holds_too(void **state)
{
	struct acts *a = *state;
	struct id id = acts_pending(a, "48221", 4200);

	acts_decide(a, &id, "anna", true);
	acts_decided(a, acts_decision(a), DENIAL_NONE, "anna", 2);
	answered(a, PROPOSAL_STATE_PENDING);
	silence(a);
	acts_decide(a, &id, "bert", false); /* and one no is a no */
	acts_decided(a, acts_decision(a), DENIAL_NONE, "bert", 2);
	answered(a, PROPOSAL_STATE_REJECTED);
	silence(a);
}

static void
D8_looking_decides_nothing(void **state)
{
	struct acts *a = *state;
	struct id id = acts_pending(a, "48221", 4200);

	for (int i = 0; i < 5; i++)
		assert_int_equal(acts_state(a, &id), PROPOSAL_STATE_PENDING);
	silence(a);
}

static void
test_broker_lost(void **state)
{
	struct acts *a = *state;
	struct id id = acts_pending(a, "48221", 4200);

	acts_decide(a, &id, "anna", true);
	(void)acts_decision(a);
	play_broker_lost(&a->p);
	denied(a, DENIAL_BROKER_UNAVAILABLE);
	assert_int_equal(acts_state(a, &id), PROPOSAL_STATE_PENDING);
	acts_decide(a, &id, "anna", true);
	denied(a, DENIAL_BROKER_UNAVAILABLE);
	acts_broker_again(a);
	acts_decide(a, &id, "anna", true);
	acts_decided(a, acts_decision(a), DENIAL_NONE, "anna", 1);
	acts_executed(a, acts_execute(a), ATTEMPT_SUCCEEDED);
	answered(a, PROPOSAL_STATE_SUCCEEDED);
}

static void
test_only_so_many_decisions_wait(void **state)
{
	struct acts *a = *state;
	struct id id = acts_pending(a, "48221", 4200);

	for (int i = 0; i < 8; i++) {
		acts_decide(a, &id, "anna", true);
		(void)acts_decision(a);
	}
	acts_decide(a, &id, "anna", true);
	play_refused(&a->p, ERROR_UNAVAILABLE);
	silence(a);
}

static void
test_restart_while_deciding(void **state)
{
	struct acts *a = *state;
	struct id id = acts_pending(a, "48221", 4200);

	acts_decide(a, &id, "anna", true);
	(void)acts_decision(a);
	acts_restart(a);
	assert_int_equal(acts_state(a, &id), PROPOSAL_STATE_PENDING);
	acts_decide(a, &id, "anna", true);
	acts_decided(a, acts_decision(a), DENIAL_NONE, "anna", 1);
	acts_executed(a, acts_execute(a), ATTEMPT_SUCCEEDED);
	answered(a, PROPOSAL_STATE_SUCCEEDED);
}

/* ---- time ---- */

static void
change(struct acts *a, const char *sql)
{
	sqlite3 *database;
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/engine/engine.db", a->p.dir);
	assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
	assert_int_equal(sqlite3_exec(database, sql, NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_close(database), SQLITE_OK);
}

static void
C6_what_nobody_decided_in_time_expires(void **state)
{
	struct acts *a = *state;
	struct id id = acts_pending(a, "48221", 4200), again;
	struct msg_proposal_row row;
	char sql[128];

	play_kill(&a->p);
	(void)snprintf(sql, sizeof(sql), "UPDATE proposal SET decide_by_ms = %llu",
		(unsigned long long)clock_real_ms() + 1500);
	change(a, sql);
	acts_restart(a);
	for (int i = 0; acts_state(a, &id) == PROPOSAL_STATE_PENDING; i++) {
		assert_true(i < 100);
		(void)usleep(50000);
	}
	acts_row(a, &id, &row);
	assert_int_equal(row.state, PROPOSAL_STATE_EXPIRED);
	assert_int_equal(row.denial, DENIAL_DECIDE_EXPIRED);
	acts_decide(a, &id, "anna", true);
	conflict(a, "expired");
	silence(a);
	again = acts_pending(a, "48221", 4200); /* it may be asked again, and is another one */
	assert_false(id_eq(&id, &again));
	(void)play_audit(&a->p, &a->task);
	assert_int_equal(play_events(&a->p, "proposal.expired"), 1);
}

/* The operation is not what it was: nobody is asked about it any more. */
static void
A16_an_operation_that_changed_supersedes_its_proposals(void **state)
{
	static const struct {
		const char *from, *to;
		enum denial denial;
	} changes[] = {{"\"max\":500000", "\"max\":500001", DENIAL_SCHEMA_CHANGED},
		{"provider.test", "provider2.test", DENIAL_ADAPTER_CHANGED},
		{"\"quorum\":1", "\"quorum\":2", DENIAL_POLICY_CHANGED},
		{"\"name\":\"refund\"", "\"name\":\"rebate\"", DENIAL_OPERATION_UNKNOWN}};
	struct acts *a = *state;

	for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
		struct id id = acts_pending(a, "48221", 4200);
		struct msg_proposal_row row;

		play_catalogue(&a->p, changes[i].from, changes[i].to);
		acts_restart(a);
		acts_row(a, &id, &row);
		assert_int_equal(row.state, PROPOSAL_STATE_SUPERSEDED);
		assert_int_equal(row.denial, changes[i].denial);
		acts_decide(a, &id, "anna", true);
		conflict(a, "superseded");
		play_catalogue(&a->p, "", "");
		acts_restart(a);
	}
}

/* Another credential, account or limit is another operation: what was granted for the old one holds no more. */
static void
D18_a_grant_is_for_the_operation_as_it_was(void **state)
{
	struct acts *a = *state;

	play_catalogue(&a->p, "\"secret\":\"shop-key\"", "\"secret\":\"other-key\"");
	acts_restart(a);
	acts_ask(a, 1, "refund", "{\"cents\":1,\"order_id\":\"1\"}");
	{
		WANT(&a->p, a->relay, PROPOSED, proposed, m);
		assert_int_equal(m.denial, DENIAL_NO_GRANT);
		assert_non_null(
			memmem(m.text.p, m.text.n, "refund changed", strlen("refund changed")));
	}
	(void)acts_grant(a, "refund", NULL, 1);
	(void)acts_pending(a, "1", 1);
}

/* An argument that the operation compares with a fact by ==, and that held, is what the system of record says. */
static void
test_provenance_of_what_was_compared(void **state)
{
	struct acts *a = *state;
	struct msg_proposal_row row;
	struct id id;

	play_catalogue(&a->p, "\"op\":\"ge\"", "\"op\":\"eq\"");
	acts_restart(a);
	(void)acts_grant(a, "refund", NULL, 1);
	id = acts_pending(a, "48221", 9000);
	acts_row(a, &id, &row);
	assert_true(
		has(row.record, "\"provenance\":{\"cents\":\"verified\",\"order_id\":\"sandbox\","
				"\"reason\":\"default\"}"));
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_approved),
		T(D1_a_decision_about_other_bytes_is_denied),
		T(D2_what_was_shown_must_be_what_stands),
		T(D3_two_approvers_race_and_one_transition_is_made),
		T(D4_a_rejection_that_is_first_wins),
		T(D4_a_revocation_beats_an_approval_that_is_not_dispatched),
		T(D6_what_the_broker_denies_changes_nothing),
		T(D8_looking_decides_nothing),
		T(test_quorum),
		T(test_the_brokers_quorum_holds_too),
		T(test_broker_lost),
		T(test_only_so_many_decisions_wait),
		T(test_restart_while_deciding),
		T(C6_what_nobody_decided_in_time_expires),
		T(A16_an_operation_that_changed_supersedes_its_proposals),
		T(D18_a_grant_is_for_the_operation_as_it_was),
		T(test_provenance_of_what_was_compared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
