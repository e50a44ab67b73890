/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executions of which nobody knows how they ended: looked up by themselves and on request, settled by a person, each as often as somebody
 * likes; and what a revocation does to one that is on its way.
 */
#include "carry.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

static unsigned lookups; /* recorded, of this test */

static int
setup(void **state)
{
	static struct play play;

	lookups = 0;
	play_open(&play);
	play_start(&play);
	*state = &play;
	return 0;
}

static int
teardown(void **state)
{
	play_close(*state);
	return 0;
}

#define BEGIN(p, a)                                          \
	struct play *p = *state;                             \
	__attribute__((cleanup(carry_done))) struct carry a; \
	carry_start(p, &a);                                  \
	carry_grant(p, &a, "reply", 50)

static void
unknown(struct play *p, struct carry *a, unsigned n)
{
	carry_dispatch(p, a, n);
	carry_executed(p, a, ATTEMPT_UNKNOWN);
	carry_decided(p, a, PROPOSAL_STATE_UNKNOWN);
}

static void
looked_up(struct play *p, struct carry *a)
{
	WANT(p, p->broker, LOOKUP_ASK, lookup_ask, m);
	assert_true(id_eq(&m.execution, &a->execution));
	assert_true(view_eq(m.record, view_of(a->record, a->record_n)));
	a->execute_tag = p->in.tag;
}

static void
ask(struct play *p, struct carry *a)
{
	ASK(p, RECONCILE, reconcile, {.caller = as_root, .execution = a->execution});
}

/* ---- looked up ---- */

/* G11: a time-out is looked up with its own key after 1 s, then 5; it never comes to another EXECUTE. G12: not found yet proves nothing. */
static void
test_G11_looked_up_by_itself(void **state)
{
	BEGIN(p, a);
	uint64_t from;

	unknown(p, &a, 1);
	from = clock_mono_ms();
	looked_up(p, &a);
	assert_in_range(clock_mono_ms() - from, 700, 3000);
	carry_executed(p, &a, ATTEMPT_UNKNOWN);
	from = clock_mono_ms();
	looked_up(p, &a);
	assert_in_range(clock_mono_ms() - from, 4500, 8000);
	carry_executed(p, &a, ATTEMPT_SUCCEEDED);
	while (carry_state(p, &a) == PROPOSAL_STATE_UNKNOWN)
		(void)usleep(2000);
	assert_int_equal(carry_row(p, &a).state, EXECUTION_STATE_SUCCEEDED);
	(void)play_audit(p, &a.task);
	assert_int_equal(play_events(p, "execution.unknown"), 1);
	assert_int_equal(play_events(p, "execution.lookup"), 1);
	assert_int_equal(play_events(p, "execution.succeeded"), 1);
	assert_int_equal(play_events(p, "execution.dispatching"), 1);
	play_want_silence(p, p->broker, 1200);
}

/* Somebody asks: at once, and whoever asks meanwhile waits for the same. Nothing is asked about one that ended. */
static void
test_on_request(void **state)
{
	BEGIN(p, a);

	unknown(p, &a, 1);
	ask(p, &a);
	looked_up(p, &a);
	ask(p, &a);
	play_want_silence(p, p->broker, 100);
	carry_executed(p, &a, ATTEMPT_FAILED);
	for (int i = 0; i < 2; i++) {
		WANT(p, p->api, EXECUTION_ROW, execution_row, row);
		assert_int_equal(row.state, EXECUTION_STATE_FAILED);
	}
	ask(p, &a);
	ANSWER(p, EXECUTION_ROW, execution_row, row);
	assert_int_equal(row.state, EXECUTION_STATE_FAILED);
	assert_int_equal(carry_state(p, &a), PROPOSAL_STATE_FAILED);
	play_want_silence(p, p->broker, 1200);
	/* It came to nothing: the same may be proposed again, and is another proposal. */
	struct id before = a.proposal;
	carry_reply(p, &a, 1);
	assert_false(id_eq(&before, &a.proposal));
}

/* F6: the engine is killed while it looks up: the next one looks up again, with the same question. */
static void
test_F6_killed_while_it_looks_up(void **state)
{
	BEGIN(p, a);

	unknown(p, &a, 1);
	ask(p, &a);
	looked_up(p, &a);
	carry_restart(p, true);
	looked_up(p, &a);
	carry_executed(p, &a, ATTEMPT_SUCCEEDED);
	while (carry_state(p, &a) == PROPOSAL_STATE_UNKNOWN)
		(void)usleep(2000);
	assert_int_equal(carry_state(p, &a), PROPOSAL_STATE_SUCCEEDED);
	(void)play_audit(p, &a.task);
	assert_int_equal(play_events(p, "execution.succeeded"), 1);
}

/* The broker dies meanwhile: whoever asked sees what is known, and it is looked up when it is there again. */
static void
test_broker_lost(void **state)
{
	struct msg_broker_ready m = {
		.epoch = 7, .audit_key = view_str("demilune.local/audit+00000000+AA")};
	BEGIN(p, a);

	memcpy(m.catalogue, p->catalogue.digest, 32);
	unknown(p, &a, 1);
	ask(p, &a);
	looked_up(p, &a);
	play_broker_lost(p);
	ANSWER(p, EXECUTION_ROW, execution_row, row);
	assert_int_equal(row.state, EXECUTION_STATE_UNKNOWN);
	ask(p, &a);
	ANSWER(p, REFUSED, refused, no);
	assert_int_equal(no.denial, DENIAL_BROKER_UNAVAILABLE);
	carry_broker(p, &m);
	looked_up(p, &a);
	carry_executed(p, &a, ATTEMPT_SUCCEEDED);
	while (carry_state(p, &a) == PROPOSAL_STATE_UNKNOWN)
		(void)usleep(2000);
}

/* ---- settled ---- */

/* Then there are five seconds in which nobody asks by itself. */
static void
looked_up_once(struct play *p, struct carry *a)
{
	looked_up(p, a);
	carry_executed(p, a, ATTEMPT_UNKNOWN);
	lookups++;
	do
		(void)play_audit(p, &a->task);
	while (play_events(p, "execution.lookup") < lookups);
}

static void
settle(struct play *p, struct carry *a, const struct id *execution, bool succeeded)
{
	char id[ID_TEXT];
	struct settlement_record r = {.approver = view_str("anna"),
		.note = view_str("I called the provider"),
		.succeeded = succeeded,
		.decided_ms = clock_real_ms()};
	auto_buf struct buf bytes;
	struct err err;

	buf_init(&bytes, DECISION_RECORD_MAX);
	id_text(execution, ID_EXECUTION, id);
	r.execution = view_str(id);
	assert_int_equal(settlement_record_write(&r, &bytes, &err), 0);
	ASK(p, RECONCILE, reconcile,
		{.caller = as_root,
			.execution = a->execution,
			.settlement = buf_view(&bytes),
			.signature = view_str("signed")});
}

static void
settle_asked(struct play *p, const struct carry *a, enum denial denial)
{
	WANT(p, p->broker, SETTLE_ASK, settle_ask, m);
	assert_true(id_eq(&m.execution, &a->execution));
	assert_true(view_is(m.signature, "signed"));
	SAY_TAG(p->broker, p->in.tag, DECISION_IS, decision_is, -1,
		{.denial = denial,
			.text = view_str(denial == DENIAL_NONE ? "" : "it belongs to no approver"),
			.approver = view_str("anna"),
			.key = view_str("SHA256:key"),
			.seen_ms = clock_real_ms()});
}

/* A person says what became of it. Said again it is the same, said otherwise a conflict; without a good signature nothing. */
static void
test_F6_settled(void **state)
{
	BEGIN(p, a);
	uint64_t reserved, used;

	for (unsigned done = 0; done < 2; done++) {
		unknown(p, &a, done);
		looked_up_once(p, &a);
		settle(p, &a, &(struct id){{1}}, true);
		ANSWER(p, REFUSED, refused, other);
		assert_int_equal(other.denial, DENIAL_DIGEST);
		settle(p, &a, &a.execution, true);
		settle_asked(p, &a, DENIAL_APPROVER_UNKNOWN);
		ANSWER(p, REFUSED, refused, stranger);
		assert_int_equal(stranger.denial, DENIAL_APPROVER_UNKNOWN);
		assert_int_equal(carry_row(p, &a).state, EXECUTION_STATE_UNKNOWN);
		settle(p, &a, &a.execution, done != 0);
		settle_asked(p, &a, DENIAL_NONE);
		ANSWER(p, EXECUTION_ROW, execution_row, row);
		assert_int_equal(row.state, EXECUTION_STATE_MANUAL);
		assert_int_equal(row.settled, done != 0 ? ATTEMPT_SUCCEEDED : ATTEMPT_FAILED);
		settle(p, &a, &a.execution, done != 0);
		ANSWER(p, EXECUTION_ROW, execution_row, again);
		assert_int_equal(again.state, EXECUTION_STATE_MANUAL);
		settle(p, &a, &a.execution, done == 0);
		play_refused(p, ERROR_CONFLICT);
		assert_int_equal(carry_state(p, &a), PROPOSAL_STATE_MANUAL);
	}
	carry_budget(p, &a, COUNTER_ATTEMPTS, false, &reserved, &used);
	assert_int_equal(reserved, 0);
	assert_int_equal(used, 2);
	(void)play_audit(p, &a.task);
	assert_int_equal(play_events(p, "execution.settled"), 2);
	assert_true(play_record(p, "execution.settled", "\"approver\":\"anna\""));
	play_want_silence(p, p->broker, 1500);
}

/* The ledger has a settlement that was not recorded here: whoever settles again gets what the ledger says. */
static void
test_F6_settled_and_not_recorded(void **state)
{
	BEGIN(p, a);

	unknown(p, &a, 1);
	looked_up_once(p, &a);
	settle(p, &a, &a.execution, true);
	settle_asked(p, &a, DENIAL_STATE);
	WANT(p, p->broker, EXECUTION_ASK, execution_ask, m);
	a.execute_tag = p->in.tag;
	carry_executed(p, &a, ATTEMPT_SUCCEEDED);
	ANSWER(p, EXECUTION_ROW, execution_row, row);
	assert_int_equal(row.state, EXECUTION_STATE_SUCCEEDED);
}

/* G12: it was spent, and the ledger does not have it any more: that is no proof that it was not sent, but an incident. */
/* Whoever looks everything up that is unknown leaves the broker room for what is to be carried out. */
static void
test_only_so_many_look_ups(void **state)
{
	BEGIN(p, a);
	static struct carry many[9];

	for (unsigned i = 0; i < 9; i++) {
		many[i] = (struct carry){.task = a.task, .grant = a.grant};
		buf_init(&many[i].approvals, 65536);
		unknown(p, &many[i], i);
		ask(p, &many[i]);
		if (i < 8)
			looked_up(p, &many[i]);
	}
	play_refused(p, ERROR_UNAVAILABLE);
	carry_dispatch(p, &a, 9);
	for (unsigned i = 0; i < 9; i++)
		carry_done(&many[i]);
}

static void
test_G12_the_ledger_forgot_what_was_spent(void **state)
{
	BEGIN(p, a);

	/* Spent, and the broker died before it knew of a byte: that it was spent is enough. */
	carry_dispatch(p, &a, 1);
	SAY_TAG(p->broker, a.execute_tag, EXECUTED, executed, -1,
		{.execution = a.execution,
			.attempt = ATTEMPT_UNKNOWN,
			.spent_ms = clock_real_ms(),
			.text = view_str("it is not known"),
			.receipt = view_str("{}")});
	carry_decided(p, &a, PROPOSAL_STATE_UNKNOWN);
	ask(p, &a);
	looked_up(p, &a);
	SAY_TAG(p->broker, p->in.tag, BROKER_REFUSED, broker_refused, -1,
		{.denial = DENIAL_STATE,
			.text = view_str("the ledger does not have this execution")});
	WANT(p, p->broker, EXECUTION_ASK, execution_ask, m);
	a.execute_tag = p->in.tag;
	carry_executed(p, &a, ATTEMPT_UNSEEN);
	ANSWER(p, EXECUTION_ROW, execution_row, row);
	assert_int_equal(row.state, EXECUTION_STATE_UNKNOWN);
	assert_true(row.incident);
}

static void
test_G12_the_ledger_forgot(void **state)
{
	BEGIN(p, a);

	unknown(p, &a, 1);
	ask(p, &a);
	looked_up(p, &a);
	SAY_TAG(p->broker, p->in.tag, BROKER_REFUSED, broker_refused, -1,
		{.denial = DENIAL_STATE,
			.text = view_str("the ledger does not have this execution")});
	WANT(p, p->broker, EXECUTION_ASK, execution_ask, m);
	a.execute_tag = p->in.tag;
	carry_executed(p, &a, ATTEMPT_UNSEEN);
	ANSWER(p, EXECUTION_ROW, execution_row, row);
	assert_int_equal(row.state, EXECUTION_STATE_UNKNOWN);
	assert_true(row.incident);
	(void)play_audit(p, &a.task);
	assert_int_equal(play_events(p, "incident"), 1);
}

/* Money: what a person says was not done is free again, what was done is used. */
static void
test_money(void **state)
{
	BEGIN(p, a);
	uint64_t reserved, used;

	carry_grant(p, &a, "refund", 10);
	for (unsigned done = 0; done < 2; done++) {
		carry_refund(p, &a, 40000 + done);
		carry_approve(p, &a, "anna");
		carry_execute(p, &a);
		carry_executed(p, &a, ATTEMPT_UNKNOWN);
		carry_decided(p, &a, PROPOSAL_STATE_UNKNOWN);
		looked_up_once(p, &a);
		settle(p, &a, &a.execution, done != 0);
		settle_asked(p, &a, DENIAL_NONE);
		ANSWER(p, EXECUTION_ROW, execution_row, row);
		carry_budget(p, &a, COUNTER_MONEY, false, &reserved, &used);
		assert_int_equal(reserved, 0);
		assert_int_equal(used, done != 0 ? 40001 : 0);
	}
}

/* ---- revocation ---- */

static void
take_back(struct play *p, enum authority kind, const char *prefix, const struct id *id)
{
	char name[ID_TEXT];

	id_text(id, prefix, name);
	ASK(p, AUTHORITY_REVOKE, authority_revoke,
		{.caller = as_root,
			.kind = kind,
			.name = view_str(name),
			.reason = view_str("a mistake")});
}

static void
revoked(struct play *p, const struct id *proposal, bool spent)
{
	WANT(p, p->broker, REVOKE, revoke, m);
	assert_true(id_eq(&m.proposal, proposal));
	SAY_TAG(p->broker, p->in.tag, REVOKED, revoked, -1, {.spent = spent});
}

/* F8: what is on its way cannot be recalled: that is said and recorded, and its end is recorded as any other. */
static void
test_F8_revoked_after_dispatch(void **state)
{
	BEGIN(p, a);

	carry_dispatch(p, &a, 1);
	take_back(p, AUTHORITY_PROPOSAL, ID_PROPOSAL, &a.proposal);
	revoked(p, &a.proposal, true);
	play_refused(p, ERROR_CONFLICT);
	carry_executed(p, &a, ATTEMPT_SUCCEEDED);
	carry_decided(p, &a, PROPOSAL_STATE_SUCCEEDED);
	(void)play_audit(p, &a.task);
	assert_int_equal(play_events(p, "proposal.revoke"), 1);
	assert_int_equal(play_events(p, "proposal.revoked_after_dispatch"), 1);
}

/* The broker had not come to it: it is never sent, and fails for that. */
static void
test_F8_revoked_in_time(void **state)
{
	BEGIN(p, a);

	carry_dispatch(p, &a, 1);
	take_back(p, AUTHORITY_PROPOSAL, ID_PROPOSAL, &a.proposal);
	revoked(p, &a.proposal, false);
	ANSWER(p, DONE, done, done);
	SAY_TAG(p->broker, a.execute_tag, EXECUTED, executed, -1,
		{.execution = a.execution,
			.attempt = ATTEMPT_DENIED,
			.denial = DENIAL_REVOKED,
			.text = view_str("it was revoked"),
			.receipt = view_str("{}")});
	carry_decided(p, &a, PROPOSAL_STATE_FAILED);
	assert_int_equal(carry_row(p, &a).denial, DENIAL_REVOKED);
	(void)play_audit(p, &a.task);
	assert_int_equal(play_events(p, "proposal.revoked_after_dispatch"), 0);
}

/* D4: the revocation commits while the broker looks at the approval: its yes comes too late. */
static void
test_D4_revoke_beats_an_approval_under_way(void **state)
{
	BEGIN(p, a);
	uint64_t tag;

	carry_reply(p, &a, 1);
	carry_ask(p, &a, "anna", clock_real_ms() + 60000);
	tag = p->in.tag;
	take_back(p, AUTHORITY_PROPOSAL, ID_PROPOSAL, &a.proposal);
	revoked(p, &a.proposal, false);
	ANSWER(p, DONE, done, done);
	p->in.tag = tag;
	carry_yes(p, "anna");
	WANT(p, p->api, REFUSED, refused, no);
	assert_int_equal(p->in.tag, a.tag);
	assert_int_equal(carry_state(p, &a), PROPOSAL_STATE_REVOKED);
	play_want_silence(p, p->broker, 200);
	/* Again it is the same. */
	take_back(p, AUTHORITY_PROPOSAL, ID_PROPOSAL, &a.proposal);
	ANSWER(p, DONE, done, again);
}

/* H8: the grant is taken back while its proposal waits: that is over too. D16: without it nothing more is proposed. */
static void
test_H8_a_grant_taken_back(void **state)
{
	BEGIN(p, a);
	struct id first;

	carry_reply(p, &a, 1);
	first = a.proposal;
	carry_reply(p, &a, 2);
	take_back(p, AUTHORITY_GRANT, ID_GRANT, &a.grant);
	ANSWER(p, DONE, done, done);
	revoked(p, &first, false);
	revoked(p, &a.proposal, false);
	assert_int_equal(carry_state(p, &a), PROPOSAL_STATE_REVOKED);
	a.proposal = first;
	assert_int_equal(carry_state(p, &a), PROPOSAL_STATE_REVOKED);
	/* What comes of another grant is not touched. */
	carry_grant(p, &a, "reply", 1);
	carry_reply(p, &a, 3);
	carry_approve(p, &a, "anna");
	carry_execute(p, &a);
	carry_executed(p, &a, ATTEMPT_SUCCEEDED);
	carry_decided(p, &a, PROPOSAL_STATE_SUCCEEDED);
	(void)play_audit(p, &a.task);
	assert_int_equal(play_events(p, "grant.revoke"), 1);
	assert_int_equal(play_events(p, "proposal.revoke"), 2);
}

/* All of a task. A reason that no record can hold is refused, and nothing is taken. */
static void
test_task_taken_back(void **state)
{
	BEGIN(p, a);
	char id[ID_TEXT];

	carry_grant(p, &a, "refund", 5);
	carry_reply(p, &a, 1);
	id_text(&a.task, ID_TASK, id);
	ASK(p, AUTHORITY_REVOKE, authority_revoke,
		{.caller = as_root,
			.kind = AUTHORITY_TASK,
			.name = view_str(id),
			.reason = view_str("\xef\xbf\xbf")});
	play_refused(p, ERROR_BAD_REQUEST);
	assert_int_equal(carry_state(p, &a), PROPOSAL_STATE_PENDING);
	take_back(p, AUTHORITY_TASK, ID_TASK, &a.task);
	ANSWER(p, DONE, done, done);
	revoked(p, &a.proposal, false);
	(void)play_audit(p, &a.task);
	assert_int_equal(play_events(p, "grant.revoke"), 2);
	assert_int_equal(play_events(p, "proposal.revoke"), 1);
	play_want_silence(p, p->broker, 100);
}

/* H7: without the broker it holds here at once, and the broker is told when it is there again, as often as it takes. */
static void
test_H7_revoked_without_the_broker(void **state)
{
	struct msg_broker_ready m = {
		.epoch = 7, .audit_key = view_str("demilune.local/audit+00000000+AA")};
	BEGIN(p, a);

	memcpy(m.catalogue, p->catalogue.digest, 32);
	carry_reply(p, &a, 1);
	play_broker_lost(p);
	take_back(p, AUTHORITY_PROPOSAL, ID_PROPOSAL, &a.proposal);
	ANSWER(p, DONE, done, done);
	assert_int_equal(carry_state(p, &a), PROPOSAL_STATE_REVOKED);
	carry_broker(p, &m);
	WANT(p, p->broker, REVOKE, revoke, first);
	carry_broker(p, &m); /* lost before it confirmed */
	WANT(p, p->broker, REVOKE, revoke, second);
	assert_true(id_eq(&second.proposal, &a.proposal));
	carry_restart(p, true);
	revoked(p, &a.proposal, false);
	play_want_silence(p, p->broker, 200);
	carry_restart(p, true);
	play_want_silence(p, p->broker, 300);
}

/* A broker whose ledger takes nothing: it holds here, and is told again until it is kept. */
static void
test_refused_word(void **state)
{
	BEGIN(p, a);

	carry_reply(p, &a, 1);
	take_back(p, AUTHORITY_PROPOSAL, ID_PROPOSAL, &a.proposal);
	WANT(p, p->broker, REVOKE, revoke, m);
	SAY_TAG(p->broker, p->in.tag, BROKER_REFUSED, broker_refused, -1,
		{.denial = DENIAL_AUDIT_UNAVAILABLE, .text = view_str("the ledger is full")});
	ANSWER(p, DONE, done, done);
	assert_int_equal(carry_state(p, &a), PROPOSAL_STATE_REVOKED);
	revoked(p, &a.proposal, false);
	play_want_silence(p, p->broker, 200);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(G11_looked_up_by_itself),
		TEST(on_request),
		TEST(F6_killed_while_it_looks_up),
		TEST(broker_lost),
		TEST(F6_settled),
		TEST(F6_settled_and_not_recorded),
		TEST(only_so_many_look_ups),
		TEST(G12_the_ledger_forgot),
		TEST(G12_the_ledger_forgot_what_was_spent),
		TEST(money),
		TEST(F8_revoked_after_dispatch),
		TEST(F8_revoked_in_time),
		TEST(D4_revoke_beats_an_approval_under_way),
		TEST(H8_a_grant_taken_back),
		TEST(task_taken_back),
		TEST(H7_revoked_without_the_broker),
		TEST(refused_word),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
