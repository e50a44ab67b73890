/* SPDX-License-Identifier: Apache-2.0 */
/* Proposals beyond the single one: caps, budgets, duplicates, a broker that goes away, an engine that starts again. */
#include "acts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define REFUND "{\"cents\":4200,\"order_id\":\"48221\"}"

static struct acts acts;

static int
setup_open(void **state)
{
	acts_open(&acts);
	*state = &acts;
	return 0;
}

static int
setup(void **state)
{
	(void)setup_open(state);
	acts_start(&acts);
	return 0;
}

static int
teardown(void **state)
{
	acts_close(*state);
	return 0;
}

/* ---- caps and budgets ---- */

static void
D12_only_so_many_wait_for_a_person(void **state)
{
	struct acts *a = *state;

	a->p.settings.actions.pending_max = 3;
	acts_start(a);
	(void)acts_grant(a, "refund", NULL, 50);
	(void)acts_pending(a, "1", 1);
	(void)acts_pending(a, "2", 1);
	acts_ask(a, 700, "refund", "{\"cents\":1,\"order_id\":\"3\"}");
	uint64_t verify = acts_verify(a); /* it counts while it is checked */
	acts_ask(a, 701, "refund", "{\"cents\":1,\"order_id\":\"4\"}");
	acts_denied(a, 701, DENIAL_PENDING_CAP);
	acts_verified(a, verify, DENIAL_VERIFY_FAILED, FACTS_GOOD);
	acts_denied(a, 700, DENIAL_VERIFY_FAILED);
	(void)acts_pending(a, "5", 1); /* there is room again */
}

/* A hundred at once for the last five: the row refuses, whoever comes first. */
static void
H13_a_hundred_that_race_pass_no_budget(void **state)
{
	struct acts *a = *state;
	unsigned asked = 0, denied = 0, pending = 0;
	uint64_t tags[100];
	struct msg_budget_row row;

	a->p.settings.actions.pending_max = 1000;
	a->p.settings.actions.task.broker_calls = 5;
	acts_start(a);
	(void)acts_grant(a, "refund", NULL, 1000);
	for (unsigned i = 0; i < 100; i++) {
		char text[256];

		(void)snprintf(text, sizeof(text),
			"{\"arguments\":{\"cents\":1,\"order_id\":\"%u\"},\"note\":\"\","
			"\"operation\":\"refund\"}",
			i);
		ASK(&a->p, PROPOSAL_CREATE, proposal_create,
			{.caller = as_root,
				.task = view_str(a->task_text),
				.proposal = view_str(text)});
	}
	for (; asked < 5; asked++)
		tags[asked] = acts_verify(a);
	for (; denied < 95; denied++) {
		struct msg_refused m;

		play_want(&a->p, a->p.api, MSG_REFUSED);
		play_decoded(msg_refused_get(a->p.in.body, &m, &(struct err){0}), "REFUSED");
		assert_int_equal(m.error, ERROR_DENIED);
		assert_int_equal(m.denial, DENIAL_BUDGET);
	}
	play_want_silence(&a->p, a->p.broker, 50);
	row = acts_budget(a, false, COUNTER_BROKER_CALLS, "");
	assert_int_equal(row.reserved, 5);
	assert_int_equal(row.used, 0);
	for (unsigned i = 0; i < 5; i++)
		acts_verified(a, tags[i], DENIAL_NONE, FACTS_GOOD);
	for (; pending < 5; pending++) {
		struct msg_proposal_row p;

		play_want(&a->p, a->p.api, MSG_PROPOSAL_ROW);
		play_decoded(msg_proposal_row_get(a->p.in.body, &p, &(struct err){0}), "ROW");
		assert_int_equal(p.state, PROPOSAL_STATE_PENDING);
	}
	row = acts_budget(a, false, COUNTER_BROKER_CALLS, "");
	assert_int_equal(row.reserved, 0);
	assert_int_equal(row.used, 5);
	assert_int_equal(row.limit, 5);
	row = acts_budget(a, true, COUNTER_BROKER_BYTES, "");
	assert_int_equal(row.reserved, 0);
	assert_int_equal(row.used, 5 * 700);
	row = acts_budget(a, false, COUNTER_PROPOSALS, "");
	assert_int_equal(row.used, 100);
}

static void
create(struct acts *a, const char *task, unsigned order)
{
	char text[256];

	(void)snprintf(text, sizeof(text),
		"{\"arguments\":{\"cents\":1,\"order_id\":\"%u\"},\"note\":\"\",\"operation\":"
		"\"refund\"}",
		order);
	ASK(&a->p, PROPOSAL_CREATE, proposal_create,
		{.caller = as_root, .task = view_str(task), .proposal = view_str(text)});
}

static void
no_room(struct acts *a)
{
	ANSWER(&a->p, REFUSED, refused, m);
	assert_int_equal(m.denial, DENIAL_BROKER_UNAVAILABLE);
}

/* A tenant that proposes much leaves room at the broker for the others, and all leave room for what was approved. */
static void
test_room_at_the_broker(void **state)
{
	struct acts *a = *state;
	const char *tenants[] = {"other", "third"};
	char task[ID_TEXT];

	(void)acts_grant(a, "refund", NULL, 100);
	for (unsigned i = 0; i < 16; i++) {
		create(a, a->task_text, i);
		play_want(&a->p, a->p.broker, MSG_VERIFY_ASK);
	}
	create(a, a->task_text, 16);
	no_room(a);
	for (unsigned t = 0; t < 2; t++) {
		struct id id = play_task(&a->p, tenants[t]);

		id_text(&id, ID_TASK, task);
		ASK(&a->p, GRANT_ISSUE, grant_issue,
			{.caller = as_root,
				.task = view_str(task),
				.operation = view_str("refund"),
				.uses = 100,
				.ttl_ms = 60000});
		play_want(&a->p, a->p.api, MSG_GRANT_ROW);
		for (unsigned i = 0; t == 0 && i < 16; i++) {
			create(a, task, i);
			play_want(&a->p, a->p.broker, MSG_VERIFY_ASK);
		}
	}
	create(a, task, 0); /* the third tenant has none there, but all together have 32 */
	no_room(a);
}

/* Whatever becomes of them, they are counted; a sandbox that goes on asking writes no record more. */
static void
test_budget_of_proposals(void **state)
{
	struct acts *a = *state;

	a->p.settings.actions.task.proposals = 3;
	acts_start(a);
	for (uint64_t i = 0; i < 3; i++) {
		acts_ask(a, i, "refund", REFUND);
		acts_denied(a, i, DENIAL_NO_GRANT);
	}
	(void)acts_grant(a, "refund", NULL, 5);
	for (uint64_t i = 3; i < 20; i++) {
		acts_ask(a, i, "refund", REFUND);
		acts_denied(a, i, DENIAL_BUDGET);
	}
	assert_int_equal(acts_budget(a, false, COUNTER_PROPOSALS, "").used, 3);
	assert_int_equal(acts_budget(a, true, COUNTER_PROPOSALS, "").used, 3);
	(void)play_audit(&a->p, &a->task);
	assert_int_equal(play_events(&a->p, "proposal.denied"), 4);
}

static void
test_too_many_open_end_the_relay(void **state)
{
	struct acts *a = *state;

	(void)acts_grant(a, "refund", NULL, 50);
	for (unsigned i = 0; i < 8; i++) {
		char text[64];

		(void)snprintf(text, sizeof(text), "{\"cents\":1,\"order_id\":\"%u\"}", i);
		acts_ask(a, i, "refund", text);
		(void)acts_verify(a);
	}
	acts_ask(a, 9, "refund", "{\"cents\":1,\"order_id\":\"99\"}");
	play_want_closed(&a->p, a->relay);
	WANT(&a->p, a->p.supervisor, KILL, kill, m);
	assert_int_equal(m.reason, SANDBOX_REASON_PROTOCOL);
}

/* ---- duplicates ---- */

static void
G19_the_same_again_is_the_earlier_one(void **state)
{
	struct acts *a = *state;
	struct id grant = acts_grant(a, "refund", NULL, 1), first, again;
	struct msg_grant_row g;

	acts_ask(a, 1, "refund", REFUND);
	uint64_t verify = acts_verify(a);
	acts_ask(a, 2, "refund", REFUND); /* while it is checked */
	again = acts_proposed(a, 2, true);
	acts_verified(a, verify, DENIAL_NONE, FACTS_GOOD);
	first = acts_proposed(a, 1, false);
	assert_true(id_eq(&first, &again));
	acts_ask(a, 3, "refund", REFUND); /* its grant is used up, and yet it is found */
	again = acts_proposed(a, 3, true);
	assert_true(id_eq(&first, &again));
	play_want_silence(&a->p, a->p.broker, 50);
	acts_grant_row(a, &grant, &g);
	assert_int_equal(g.used, 1);
	ASK(&a->p, PROPOSAL_CREATE, proposal_create,
		{.caller = as_root,
			.task = view_str(a->task_text),
			.proposal = view_str(
				"{\"arguments\":" REFUND
				",\"note\":\"other words\",\"operation\":\"refund\"}")});
	ANSWER(&a->p, PROPOSAL_ROW, proposal_row, row);
	assert_true(row.duplicate);
	assert_true(id_eq(&row.proposal, &first));
	(void)play_audit(&a->p, &a->task);
	assert_int_equal(play_events(&a->p, "proposal.duplicate"), 3);
	assert_int_equal(play_events(&a->p, "proposal.proposed"), 1);
}

/* What came to nothing may be asked again; another task's is another one. */
static void
test_not_the_same(void **state)
{
	struct acts *a = *state;
	struct id first, second;

	(void)acts_grant(a, "refund", NULL, 5);
	acts_ask(a, 1, "refund", REFUND);
	acts_verified(a, acts_verify(a), DENIAL_VERIFY_FAILED, "{}");
	acts_denied(a, 1, DENIAL_VERIFY_FAILED);
	first = acts_pending(a, "48221", 4200);
	acts_decide(a, &first, "anna", false);
	acts_decided(a, acts_decision(a), DENIAL_NONE, "anna", 1);
	{
		ANSWER(&a->p, PROPOSAL_ROW, proposal_row, row);
		assert_int_equal(row.state, PROPOSAL_STATE_REJECTED);
	}
	second = acts_pending(a, "48221", 4200);
	assert_false(id_eq(&first, &second));
}

/* ---- the broker goes away ---- */

static void
H7_without_the_broker_everything_is_denied(void **state)
{
	struct acts *a = *state;
	struct msg_proposal_row row;
	struct msg_budget_row calls;

	(void)acts_grant(a, "refund", NULL, 9);
	acts_ask(a, 1, "refund", REFUND);
	(void)acts_verify(a);
	play_broker_lost(&a->p); /* in the middle */
	{
		WANT(&a->p, a->relay, PROPOSED, proposed, m);
		assert_int_equal(m.denial, DENIAL_BROKER_UNAVAILABLE);
		struct id id = m.proposal;
		acts_row(a, &id, &row);
		assert_int_equal(row.state, PROPOSAL_STATE_DENIED);
	}
	calls = acts_budget(a, false, COUNTER_BROKER_CALLS, "");
	assert_int_equal(calls.reserved, 0);
	assert_int_equal(calls.used, 1); /* it may have been made */
	acts_ask(a, 2, "refund", REFUND);
	acts_denied(a, 2, DENIAL_BROKER_UNAVAILABLE);
	acts_broker_again(a);
	(void)acts_pending(a, "48221", 4200);
	(void)play_audit_of(&a->p, "host");
	assert_int_equal(play_events(&a->p, "broker.ready"), 2);
	assert_int_equal(play_events(&a->p, "broker.lost"), 1);
}

/* An answer to nothing, and an answer of another kind, are a broken broker; who waits is told. */
static void
test_a_broker_that_breaks_the_protocol_is_lost(void **state)
{
	struct acts *a = *state;
	uint64_t tag;

	(void)acts_grant(a, "refund", NULL, 9);
	acts_ask(a, 1, "refund", REFUND);
	tag = acts_verify(a);
	SAY_TAG(a->p.broker, tag, READ_DONE, read_done, -1, {.answer = view_str("{}")});
	acts_denied(a, 1, DENIAL_BROKER_UNAVAILABLE);
	play_want_closed(&a->p, a->p.broker);
	(void)close(a->p.broker);
	acts_broker_again(a);
	acts_verified(a, 99, DENIAL_NONE, FACTS_GOOD);
	play_want_closed(&a->p, a->p.broker);
	(void)close(a->p.broker);
	acts_broker_again(a);
	(void)acts_pending(a, "48221", 4200);
}

/* ---- the engine starts again ---- */

static void
test_restart(void **state)
{
	struct acts *a = *state;
	struct id pending, checked, rejected;
	struct msg_proposal_row row;
	uint8_t digest[32];

	(void)acts_grant(a, "refund", NULL, 9);
	pending = acts_pending(a, "1", 1);
	acts_row(a, &pending, &row);
	memcpy(digest, row.digest, 32);
	rejected = acts_pending(a, "2", 1);
	acts_decide(a, &rejected, "anna", false);
	acts_decided(a, acts_decision(a), DENIAL_NONE, "anna", 1);
	play_want(&a->p, a->p.api, MSG_PROPOSAL_ROW);
	acts_ask(a, 1, "refund", REFUND);
	{
		WANT(&a->p, a->p.broker, VERIFY_ASK, verify_ask, v);
		checked = v.proposal;
	}
	acts_restart(a);
	acts_row(a, &pending, &row);
	assert_int_equal(row.state, PROPOSAL_STATE_PENDING);
	assert_memory_equal(row.digest, digest, 32);
	proposal_digest(row.record, digest);
	assert_memory_equal(row.digest, digest, 32);
	assert_int_equal(acts_state(a, &rejected), PROPOSAL_STATE_REJECTED);
	acts_row(a, &checked, &row);
	assert_int_equal(row.state, PROPOSAL_STATE_DENIED);
	assert_int_equal(row.denial, DENIAL_BROKER_UNAVAILABLE);
	assert_int_equal(acts_budget(a, false, COUNTER_BROKER_CALLS, "").reserved, 0);
	assert_int_equal(acts_budget(a, false, COUNTER_BROKER_CALLS, "").used, 3);
	(void)acts_pending(a, "48221", 4200); /* it may be asked again */
	(void)play_audit(&a->p, &a->task);
}

/* A host that stops takes nothing new; what waits is kept by the rows, and nothing is left in memory. */
static void
test_stopping(void **state)
{
	struct acts *a = *state;
	struct play *p = &a->p;
	struct id id;

	(void)acts_grant(a, "refund", NULL, 9);
	id = acts_pending(a, "1", 1);
	acts_ask(a, 1, "refund", REFUND); /* is with the broker until the end */
	(void)acts_verify(a);
	acts_decide(a, &id, "anna", true); /* so is this */
	(void)acts_decision(a);
	SAY(p->supervisor, STOPPING, stopping, {0});
	for (bool ready = true; ready;) {
		ASK(p, HEALTH, health, {0});
		ANSWER(p, HEALTH_ROW, health_row, health);
		ready = health.ready;
	}
	acts_ask(a, 2, "refund", "{\"cents\":1,\"order_id\":\"7\"}");
	acts_denied(a, 2, DENIAL_BROKER_UNAVAILABLE);
	acts_decide(a, &id, "bert", true);
	play_refused(p, ERROR_UNAVAILABLE);
	play_gone(p, &a->sandbox, SANDBOX_REASON_HOST_STOPPED);
	WANT(p, p->supervisor, STOPPED, stopped, stopped);
	(void)shutdown(p->supervisor, SHUT_RDWR);
	assert_int_equal(play_wait(p), 0);
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define O(name) cmocka_unit_test_setup_teardown(name, setup_open, teardown)
	const struct CMUnitTest tests[] = {
		O(D12_only_so_many_wait_for_a_person),
		O(H13_a_hundred_that_race_pass_no_budget),
		T(test_room_at_the_broker),
		O(test_budget_of_proposals),
		T(test_too_many_open_end_the_relay),
		T(G19_the_same_again_is_the_earlier_one),
		T(test_not_the_same),
		T(H7_without_the_broker_everything_is_denied),
		T(test_a_broker_that_breaks_the_protocol_is_lost),
		T(test_restart),
		T(test_stopping),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
