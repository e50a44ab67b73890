/* SPDX-License-Identifier: Apache-2.0 */
/* From a request of a sandbox to a proposal that waits for a person: every check, by its case of the list, and what is left behind. */
#include "acts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
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

static struct msg_budget_row
budget(struct acts *a, bool of_tenant, enum counter counter, const char *operation)
{
	struct msg_budget_row found = {.limit = UINT64_MAX};

	ASK(&a->p, BUDGET_LIST, budget_list, {.caller = as_root, .task = view_str(a->task_text)});
	for (;;) {
		struct msg_budget_row row;

		play_want_any(&a->p, a->p.api);
		if (a->p.in.type == MSG_END)
			break;
		assert_int_equal(a->p.in.type, MSG_BUDGET_ROW);
		play_decoded(
			msg_budget_row_get(a->p.in.body, &row, &(struct err){0}), "BUDGET_ROW");
		if (row.of_tenant == of_tenant && row.counter == counter &&
			view_is(row.operation, operation)) {
			found = row;
			found.operation = found.unit = view_of(NULL, 0);
		}
	}
	return found;
}

/* ---- the way to pending ---- */

static void
test_pending(void **state)
{
	struct acts *a = *state;
	struct id grant = acts_grant(a, "refund", "order.tenant == @tenant", 2), id;
	struct msg_proposal_row row;
	struct proposal_record r;
	struct buf room;
	uint8_t digest[32];
	char text[64], id_of[ID_TEXT];
	uint64_t before = clock_real_ms();

	acts_ask(a, 71, "refund", REFUND);
	{
		WANT(&a->p, a->p.broker, VERIFY_ASK, verify_ask, v);
		/* A13: defaults stand in the arguments before anybody reads or signs them. */
		assert_true(view_is(v.arguments,
			"{\"cents\":4200,\"order_id\":\"48221\",\"reason\":\"other\"}"));
		assert_memory_equal(v.where.p, "order.tenant == @tenant", v.where.n);
		assert_memory_equal(v.operation,
			catalogue_find(&a->p.catalogue, view_str("refund"))->digest, 32);
		assert_true(view_is(v.tenant, "acme"));
		assert_true(id_eq(&v.task, &a->task));
		play_want_silence(&a->p, a->relay, 50); /* nothing is said before it is known */
		acts_verified(a, a->p.in.tag, DENIAL_NONE, FACTS_GOOD);
	}
	id = acts_proposed(a, 71, false);
	acts_row(a, &id, &row);
	assert_int_equal(row.state, PROPOSAL_STATE_PENDING);
	assert_true(view_is(row.note, "please"));
	assert_int_equal(row.quorum, 1);
	assert_true(id_eq(&row.task, &a->task));
	assert_true(row.decide_by_ms >= before + 600000);
	proposal_digest(row.record, digest);
	assert_memory_equal(digest, row.digest, 32);
	buf_init(&room, PROPOSAL_RECORD_MAX);
	assert_int_equal(proposal_record_read(row.record, &room, &r, &(struct err){0}), 0);
	(void)snprintf(text, sizeof(text), "sandbox:");
	id_text(&a->sandbox, ID_SANDBOX, text + 8);
	assert_true(view_is(r.actor, text));
	assert_true(view_is(r.owner, "uid:0"));
	assert_true(view_is(r.requester, "uid:0"));
	assert_true(view_is(r.tenant, "acme"));
	assert_true(view_is(r.task, a->task_text));
	id_text(&id, ID_PROPOSAL, id_of);
	assert_true(view_is(r.proposal, id_of));
	id_text(&grant, ID_GRANT, id_of);
	assert_true(view_is(r.capability, id_of));
	assert_true(view_is(r.action, "refund"));
	assert_true(view_is(r.facts, FACTS_GOOD));
	assert_true(view_is(r.provenance,
		"{\"cents\":\"sandbox\",\"order_id\":\"sandbox\",\"reason\":\"default\"}"));
	assert_memory_equal(r.defaulted.p, "reason", r.defaulted.n);
	assert_true(view_is(r.url, "http://provider.test:4080/v1/orders/48221/refunds"));
	assert_true(view_is(r.body, "{\"amount\":4200,\"currency\":\"EUR\",\"reason\":\"other\"}"));
	assert_int_equal(r.epoch, 7);
	assert_int_equal(r.quorum, 1);
	assert_int_equal(r.effect, EFFECT_IRREVERSIBLE);
	assert_int_equal(r.decide_by_ms, row.decide_by_ms);
	assert_memory_equal(r.catalogue, a->p.catalogue.digest, 32);
	assert_memory_equal(
		r.policy, catalogue_find(&a->p.catalogue, view_str("refund"))->policy, 32);
	assert_null(memmem(
		row.record.p, row.record.n, "please", 6)); /* the model's words are not signed */
	buf_done(&room);
	struct msg_grant_row g;
	acts_grant_row(a, &grant, &g);
	assert_int_equal(g.used, 1);
	(void)play_audit(&a->p, &a->task);
	assert_int_equal(play_events(&a->p, "grant.issued"), 1);
	assert_int_equal(play_events(&a->p, "proposal.proposed"), 1);
	assert_int_equal(play_events(&a->p, "proposal.pending"), 1);
	assert_true(play_record(&a->p, "proposal.proposed", text));
	assert_true(play_record(&a->p, "proposal.pending", "\"facts_digest\""));
}

/* The amount decides who must approve. */
static void
test_tiers(void **state)
{
	struct acts *a = *state;
	struct msg_proposal_row row;
	struct id id;

	(void)acts_grant(a, "refund", NULL, 5);
	acts_ask(a, 1, "refund", "{\"cents\":100001,\"order_id\":\"48221\"}");
	acts_verified(a, acts_verify(a), DENIAL_NONE,
		"{\"order__paid_cents\":200000,\"order__status\":\"paid\",\"order__tenant\":"
		"\"acme\"}");
	id = acts_proposed(a, 1, false);
	acts_row(a, &id, &row);
	assert_int_equal(row.quorum, 2);
	assert_non_null(memmem(row.record.p, row.record.n, "\"roles\":[\"lead\"]", 16));
	id = acts_pending(a, "48222", 4200);
	acts_row(a, &id, &row);
	assert_int_equal(row.quorum, 1);
	assert_non_null(memmem(row.record.p, row.record.n, "\"roles\":[]", 10));
}

/* ---- arguments ---- */

static void
refused(struct acts *a, const char *arguments)
{
	uint64_t tag = ++a->p.tag;

	acts_ask(a, tag, "refund", arguments);
	acts_denied(a, tag, DENIAL_ARGUMENTS);
}

static void
A2_unknown_fields_are_refused_at_every_place(void **state)
{
	struct acts *a = *state;

	(void)acts_grant(a, "refund", NULL, 5);
	refused(a, "{\"cents\":4200,\"order_id\":\"48221\",\"zzz\":1}");
	refused(a, "{\"approved\":true,\"cents\":4200,\"order_id\":\"48221\"}");
	acts_propose(a, 500,
		"{\"arguments\":" REFUND
		",\"note\":\"\",\"operation\":\"refund\",\"task\":\"tk_0000000000000000\"}",
		false);
	acts_denied(a, 500, DENIAL_RECORD_MALFORMED);
	acts_propose(a, 501,
		"{\"arguments\":" REFUND
		",\"note\":\"\",\"operation\":\"refund\",\"tenant\":\"other\"}",
		false);
	acts_denied(a, 501, DENIAL_RECORD_MALFORMED);
	play_want_silence(&a->p, a->p.broker, 50);
}

/* Who approves is not the proposer's to say. */
static void
D7_an_approver_in_the_payload_is_refused(void **state)
{
	struct acts *a = *state;

	(void)acts_grant(a, "refund", NULL, 5);
	refused(a, "{\"approver\":\"anna\",\"cents\":4200,\"order_id\":\"48221\"}");
	acts_propose(a, 500,
		"{\"approver\":\"anna\",\"arguments\":" REFUND
		",\"note\":\"\",\"operation\":\"refund\"}",
		false);
	acts_denied(a, 500, DENIAL_RECORD_MALFORMED);
}

/* One form: what the relay would have written. Another order, a blank, a second document are no proposal. */
static void
A7_only_the_canonical_bytes_are_read(void **state)
{
	static const char *const texts[] = {"{\"arguments\":{\"order_id\":\"48221\",\"cents\":4200}"
					    ",\"note\":\"\",\"operation\":\"refund\"}",
		"{\"operation\":\"refund\",\"arguments\":" REFUND ",\"note\":\"\"}",
		"{ \"arguments\":" REFUND ",\"note\":\"\",\"operation\":\"refund\"}",
		"{\"arguments\":" REFUND ",\"note\":\"\",\"operation\":\"refund\"}{}",
		"{\"arguments\":" REFUND ",\"arguments\":" REFUND
		",\"note\":\"\",\"operation\":\"refund\"}",
		"{\"arguments\":{\"cents\":42.0,\"order_id\":\"48221\"},\"note\":\"\","
		"\"operation\":\"refund\"}",
		"[]", "", "null"};
	struct acts *a = *state;

	(void)acts_grant(a, "refund", NULL, 5);
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		acts_propose(a, 100 + i, texts[i], false);
		acts_denied(a, 100 + i, DENIAL_RECORD_MALFORMED);
	}
	(void)play_audit(&a->p, &a->task);
	assert_int_equal(play_events(&a->p, "proposal.denied"), ARRAY_LEN(texts));
}

static void
A12_absent_null_and_empty_are_three_things(void **state)
{
	struct acts *a = *state;
	struct id absent, with;

	(void)acts_grant(a, "refund", NULL, 5);
	refused(a, "{\"cents\":4200,\"memo\":null,\"order_id\":\"48221\"}");
	refused(a, "{\"cents\":4200,\"memo\":\"\",\"order_id\":\"48221\"}");
	absent = acts_pending(a, "48221", 4200);
	acts_ask(a, 900, "refund", "{\"cents\":4200,\"memo\":\"x\",\"order_id\":\"48221\"}");
	acts_verified(a, acts_verify(a), DENIAL_NONE, FACTS_GOOD);
	with = acts_proposed(a, 900, false);
	assert_false(id_eq(&absent, &with));
}

/* A default that is written out is the same proposal as one that was put in. */
static void
A13_defaults_are_in_the_digest(void **state)
{
	struct acts *a = *state;
	struct id first, second;

	(void)acts_grant(a, "refund", NULL, 5);
	first = acts_pending(a, "48221", 4200);
	acts_ask(a, 901, "refund", "{\"cents\":4200,\"order_id\":\"48221\",\"reason\":\"other\"}");
	second = acts_proposed(a, 901, true);
	assert_true(id_eq(&first, &second));
}

/* ---- authority ---- */

static void
test_no_grant(void **state)
{
	struct acts *a = *state;
	struct id grant;

	acts_ask(a, 1, "refund", REFUND);
	acts_denied(a, 1, DENIAL_NO_GRANT);
	acts_ask(a, 2, "transfer", REFUND);
	acts_denied(a, 2, DENIAL_OPERATION_UNKNOWN);
	(void)acts_grant(a, "reply", NULL, 1); /* of another operation */
	acts_ask(a, 3, "refund", REFUND);
	acts_denied(a, 3, DENIAL_NO_GRANT);
	grant = acts_grant(a, "refund", NULL, 1);
	(void)acts_pending(a, "48221", 4200);
	acts_ask(a, 4, "refund", "{\"cents\":1,\"order_id\":\"48221\"}");
	acts_denied(a, 4, DENIAL_NO_GRANT); /* used up */
	struct msg_grant_row g;
	acts_grant_row(a, &grant, &g);
	assert_int_equal(g.used, 1);
	(void)play_audit(&a->p, &a->task);
	assert_int_equal(play_events(&a->p, "proposal.denied"), 4);
	assert_true(play_recorded("\"denial\":\"no_grant\""));
}

/* The oldest is used first; one whose time is over is none. */
static void
test_grant_times(void **state)
{
	struct acts *a = *state;
	struct msg_grant_row g;
	struct id old, young;

	ASK(&a->p, GRANT_ISSUE, grant_issue,
		{.caller = as_root,
			.task = view_str(a->task_text),
			.operation = view_str("refund"),
			.uses = 5,
			.ttl_ms = 1000});
	ANSWER(&a->p, GRANT_ROW, grant_row, row);
	old = row.grant;
	assert_int_equal(row.expires_ms, row.created_ms + 1000);
	young = acts_grant(a, "refund", NULL, 5);
	(void)acts_pending(a, "1", 1);
	(void)usleep(1100000);
	(void)acts_pending(a, "2", 1);
	acts_grant_row(a, &old, &g);
	assert_int_equal(g.used, 1);
	acts_grant_row(a, &young, &g);
	assert_int_equal(g.used, 1);
}

static void
test_grant_refused(void **state)
{
	struct acts *a = *state;
	struct caller other = play_token(&a->p, "other", "", 9);
	struct caller mine = play_token(&a->p, "acme", "", 8);
	struct msg_grant_issue m = {.caller = as_root,
		.task = view_str(a->task_text),
		.operation = view_str("refund"),
		.uses = 1,
		.ttl_ms = 60000};

#define TRY(change, error)                               \
	do {                                             \
		struct msg_grant_issue t = m;            \
		change;                                  \
		ASK(&a->p, GRANT_ISSUE, grant_issue, t); \
		play_refused(&a->p, error);              \
	} while (0)
	TRY(t.caller = other, ERROR_NOT_FOUND);
	TRY(t.uses = 0, ERROR_BAD_REQUEST);
	TRY(t.uses = 10001, ERROR_BAD_REQUEST);
	TRY(t.ttl_ms = 0, ERROR_BAD_REQUEST);
	TRY(t.ttl_ms = 86400001, ERROR_BAD_REQUEST);
	TRY(t.operation = view_str("transfer"), ERROR_NOT_FOUND);
	TRY(t.task = view_str("tk_0000000000000000"), ERROR_NOT_FOUND);
	TRY(t.where = view_of("", 1), ERROR_BAD_REQUEST);
	TRY(t.where = view_of("order.tenant == @tenant", 23), ERROR_BAD_REQUEST); /* no end */
	TRY(t.where = view_of("no.such.fact == 1", 18), ERROR_BAD_REQUEST);
	TRY(t.where = view_of("cents", 6), ERROR_BAD_REQUEST);
#undef TRY
	m.caller = mine;
	ASK(&a->p, GRANT_ISSUE, grant_issue, m);
	ANSWER(&a->p, GRANT_ROW, grant_row, row);
	assert_true(view_starts(row.issuer, "token:"));
	ASK(&a->p, GRANT_LIST, grant_list, {.caller = other, .task = view_str(a->task_text)});
	play_refused(&a->p, ERROR_NOT_FOUND);
}

static void
H12_a_closed_task_proposes_nothing(void **state)
{
	struct acts *a = *state;

	(void)acts_grant(a, "refund", NULL, 5);
	ASK(&a->p, TASK_CLOSE, task_close, {.caller = as_root, .task = a->task});
	ANSWER(&a->p, TASK_ROW, task_row, row);
	assert_int_equal(row.state, TASK_STATE_CLOSED);
	acts_ask(a, 1, "refund", REFUND);
	acts_denied(a, 1, DENIAL_TASK_STATE);
	play_want_silence(&a->p, a->p.broker, 50);
	ASK(&a->p, GRANT_ISSUE, grant_issue,
		{.caller = as_root,
			.task = view_str(a->task_text),
			.operation = view_str("refund"),
			.uses = 1,
			.ttl_ms = 60000});
	play_refused(&a->p, ERROR_CONFLICT);
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
	row = budget(a, false, COUNTER_BROKER_CALLS, "");
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
	row = budget(a, false, COUNTER_BROKER_CALLS, "");
	assert_int_equal(row.reserved, 0);
	assert_int_equal(row.used, 5);
	assert_int_equal(row.limit, 5);
	row = budget(a, true, COUNTER_BROKER_BYTES, "");
	assert_int_equal(row.reserved, 0);
	assert_int_equal(row.used, 5 * 700);
	row = budget(a, false, COUNTER_PROPOSALS, "");
	assert_int_equal(row.used, 100);
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
	assert_int_equal(budget(a, false, COUNTER_PROPOSALS, "").used, 3);
	assert_int_equal(budget(a, true, COUNTER_PROPOSALS, "").used, 3);
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

/* ---- what the system of record says ---- */

static void
test_verify_denies(void **state)
{
	struct acts *a = *state;
	struct msg_proposal_row row;

	(void)acts_grant(a, "refund", "order.tenant == @tenant", 9);
	acts_ask(a, 1, "refund", REFUND);
	acts_verified(a, acts_verify(a), DENIAL_VERIFY_FAILED,
		"{\"order__paid_cents\":1,\"order__status\":\"paid\",\"order__tenant\":\"acme\"}");
	{
		WANT(&a->p, a->relay, PROPOSED, proposed, m);
		assert_int_equal(m.denial, DENIAL_VERIFY_FAILED);
		assert_non_null(memmem(m.text.p, m.text.n, "another way", 11));
		struct id id = m.proposal;
		acts_row(a, &id, &row);
		assert_int_equal(row.state, PROPOSAL_STATE_DENIED);
		assert_int_equal(row.denial, DENIAL_VERIFY_FAILED);
		assert_int_equal(row.record.n, 0);
	}
	acts_ask(a, 2, "refund", REFUND);
	acts_verified(a, acts_verify(a), DENIAL_GRANT_CONDITION, "{}");
	acts_denied(a, 2, DENIAL_GRANT_CONDITION);
	(void)play_audit(&a->p, &a->task);
	assert_int_equal(play_events(&a->p, "proposal.denied"), 2);
	assert_int_equal(play_events(&a->p, "proposal.pending"), 0);
}

/* A broker that says yes to facts that say no: the engine's own check. */
static void
test_the_brokers_word_is_not_enough(void **state)
{
	static const char *const facts[] = {"{\"order__paid_cents\":9000,\"order__status\":"
					    "\"paid\",\"order__tenant\":\"other\"}",
		"{\"order__paid_cents\":4199,\"order__status\":\"paid\",\"order__tenant\":"
		"\"acme\"}",
		"{\"order__paid_cents\":9000,\"order__status\":\"open\",\"order__tenant\":"
		"\"acme\"}",
		"{\"order__paid_cents\":9000,\"order__tenant\":\"acme\"}", "{}"};
	struct acts *a = *state;

	(void)acts_grant(a, "refund", NULL, 9);
	for (size_t i = 0; i < ARRAY_LEN(facts); i++) {
		acts_ask(a, i, "refund", REFUND);
		acts_verified(a, acts_verify(a), DENIAL_NONE, facts[i]);
		acts_denied(a, i, DENIAL_VERIFY_FAILED);
	}
	acts_ask(a, 50, "refund", REFUND);
	acts_verified(a, acts_verify(a), DENIAL_NONE, "{\"b\":1,\"a\":2}"); /* not canonical */
	acts_denied(a, 50, DENIAL_VERIFY_UNAVAILABLE);
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
	calls = budget(a, false, COUNTER_BROKER_CALLS, "");
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
	assert_int_equal(budget(a, false, COUNTER_BROKER_CALLS, "").reserved, 0);
	assert_int_equal(budget(a, false, COUNTER_BROKER_CALLS, "").used, 3);
	(void)acts_pending(a, "48221", 4200); /* it may be asked again */
	(void)play_audit(&a->p, &a->task);
}

/* ---- host code ---- */

static void
test_host_code(void **state)
{
	struct acts *a = *state;
	struct caller mine = play_token(&a->p, "acme", "", 8);
	struct msg_proposal_create m = {.caller = mine,
		.task = view_str(a->task_text),
		.proposal = view_str(
			"{\"arguments\":" REFUND ",\"note\":\"\",\"operation\":\"refund\"}"),
		.provenance = view_of("cents\0ticket\0order_id\0db", 25)};
	struct proposal_record r;
	struct buf room;

	m.provenance.n = sizeof("cents\0ticket\0order_id\0db");
	(void)acts_grant(a, "refund", NULL, 9);
	ASK(&a->p, PROPOSAL_CREATE, proposal_create, m);
	acts_verified(a, acts_verify(a), DENIAL_NONE, FACTS_GOOD);
	ANSWER(&a->p, PROPOSAL_ROW, proposal_row, row);
	assert_int_equal(row.state, PROPOSAL_STATE_PENDING);
	buf_init(&room, PROPOSAL_RECORD_MAX);
	assert_int_equal(proposal_record_read(row.record, &room, &r, &(struct err){0}), 0);
	assert_true(view_is(r.actor, "token:dml_8"));
	assert_true(view_is(r.requester, "token:dml_8"));
	assert_true(view_is(r.owner, "uid:0"));
	assert_true(view_is(
		r.provenance, "{\"cents\":\"ticket\",\"order_id\":\"db\",\"reason\":\"default\"}"));
	buf_done(&room);
	/* Refusals: other labels, of other arguments, half a pair. */
	m.proposal = view_str("{\"arguments\":{\"cents\":1,\"order_id\":\"7\"},\"note\":\"\","
			      "\"operation\":\"refund\"}");
	m.provenance = view_of("cents\0verified", 15);
	ASK(&a->p, PROPOSAL_CREATE, proposal_create, m);
	play_refused(&a->p, ERROR_BAD_REQUEST);
	m.provenance = view_of("cents", 6);
	ASK(&a->p, PROPOSAL_CREATE, proposal_create, m);
	play_refused(&a->p, ERROR_BAD_REQUEST);
	m.provenance = view_of("approver\0human", 15);
	ASK(&a->p, PROPOSAL_CREATE, proposal_create, m);
	{
		ANSWER(&a->p, REFUSED, refused, no);
		assert_int_equal(no.denial, DENIAL_ARGUMENTS);
	}
	m.provenance = view_of(NULL, 0);
	ASK(&a->p, PROPOSAL_CREATE, proposal_create, m);
	acts_verified(a, acts_verify(a), DENIAL_VERIFY_FAILED, "{}");
	ANSWER(&a->p, PROPOSAL_ROW, proposal_row, denied);
	assert_int_equal(denied.state, PROPOSAL_STATE_DENIED);
	assert_int_equal(denied.denial, DENIAL_VERIFY_FAILED);
}

/* Another tenant's token sees nothing of all this and can do nothing with it. */
static void
test_other_tenants(void **state)
{
	struct acts *a = *state;
	struct caller other = play_token(&a->p, "other", "", 9);
	struct caller scoped = play_token(&a->p, "acme", "python", 10);
	struct id id;
	unsigned rows = 0;

	(void)acts_grant(a, "refund", NULL, 9);
	id = acts_pending(a, "48221", 4200);
	ASK(&a->p, PROPOSAL_GET, proposal_get, {.caller = other, .proposal = id});
	play_refused(&a->p, ERROR_NOT_FOUND);
	ASK(&a->p, PROPOSAL_LIST, proposal_list, {.caller = other});
	{
		ANSWER(&a->p, END, end, end);
		assert_false(end.more);
	}
	ASK(&a->p, PROPOSAL_LIST, proposal_list, {.caller = other, .task = view_str(a->task_text)});
	play_refused(&a->p, ERROR_NOT_FOUND);
	ASK(&a->p, PROPOSAL_LIST, proposal_list, {.caller = other, .after = id});
	play_refused(&a->p, ERROR_NOT_FOUND);
	ASK(&a->p, PROPOSAL_CREATE, proposal_create,
		{.caller = other,
			.task = view_str(a->task_text),
			.proposal = view_str("{\"arguments\":" REFUND
					     ",\"note\":\"\",\"operation\":\"refund\"}")});
	play_refused(&a->p, ERROR_NOT_FOUND);
	ASK(&a->p, PROPOSAL_DECIDE, proposal_decide, {.caller = other, .proposal = id});
	play_refused(&a->p, ERROR_NOT_FOUND);
	ASK(&a->p, BUDGET_LIST, budget_list, {.caller = other, .task = view_str(a->task_text)});
	play_refused(&a->p, ERROR_NOT_FOUND);
	ASK(&a->p, PROPOSAL_LIST, proposal_list, {.caller = scoped, .open = true});
	for (;; rows++) {
		play_want_any(&a->p, a->p.api);
		if (a->p.in.type == MSG_END)
			break;
	}
	assert_int_equal(rows, 1);
	play_want_silence(&a->p, a->p.broker, 50);
}

/* ---- reads and drafts ---- */

static void
test_read(void **state)
{
	struct acts *a = *state;
	struct id grant = acts_grant(a, "order_status", NULL, 2);
	struct msg_grant_row g;

	acts_propose(a, 1,
		"{\"arguments\":{\"order_id\":\"48221\"},\"note\":\"\",\"operation\":\"order_"
		"status\"}",
		true);
	{
		WANT(&a->p, a->p.broker, READ_ASK, read_ask, m);
		assert_true(view_is(m.name, "order_status"));
		assert_true(view_is(m.tenant, "acme"));
		SAY_TAG(a->p.broker, a->p.in.tag, READ_DONE, read_done, -1,
			{.status = 200,
				.answer = view_str("{\"paid_cents\":9000}"),
				.text = view_str(""),
				.calls = 1,
				.bytes = 300});
	}
	{
		WANT(&a->p, a->relay, PROPOSED, proposed, m);
		assert_int_equal(m.denial, DENIAL_NONE);
		assert_true(view_is(m.answer, "{\"paid_cents\":9000}"));
	}
	acts_propose(a, 2,
		"{\"arguments\":{\"order_id\":\"48221\"},\"note\":\"\",\"operation\":\"order_"
		"status\"}",
		true);
	{
		WANT(&a->p, a->p.broker, READ_ASK, read_ask, m);
		SAY_TAG(a->p.broker, a->p.in.tag, READ_DONE, read_done, -1,
			{.denial = DENIAL_VERIFY_UNAVAILABLE,
				.answer = view_str("{}"),
				.text = view_str("the provider did not answer")});
	}
	acts_denied(a, 2, DENIAL_VERIFY_UNAVAILABLE);
	acts_propose(a, 3,
		"{\"arguments\":{\"order_id\":\"48221\"},\"note\":\"\",\"operation\":\"order_"
		"status\"}",
		true);
	acts_denied(a, 3, DENIAL_NO_GRANT);
	acts_grant_row(a, &grant, &g);
	assert_int_equal(g.used, 2);
	/* A read is not proposed, and what is proposed is not read. */
	acts_ask(a, 4, "order_status", "{\"order_id\":\"48221\"}");
	acts_denied(a, 4, DENIAL_OPERATION_UNKNOWN);
	acts_propose(
		a, 5, "{\"arguments\":" REFUND ",\"note\":\"\",\"operation\":\"refund\"}", true);
	acts_denied(a, 5, DENIAL_OPERATION_UNKNOWN);
	(void)play_audit(&a->p, &a->task);
	assert_int_equal(play_events(&a->p, "read.asked"), 2);
	assert_int_equal(play_events(&a->p, "read.answered"), 1);
	assert_int_equal(play_events(&a->p, "read.denied"), 3);
	assert_false(play_recorded("paid_cents"));
	assert_int_equal(budget(a, false, COUNTER_BROKER_BYTES, "").used, 300);
}

/* Nobody must approve a draft: it goes at once, with no decision, and only a draft does. */
static void
test_draft(void **state)
{
	struct acts *a = *state;
	struct id id;
	uint64_t tag;

	(void)acts_grant(a, "note", NULL, 2);
	acts_ask(a, 1, "note", "{\"text\":\"hello\"}");
	id = acts_proposed(a, 1, false);
	tag = acts_execute(a);
	{
		struct msg_execute m;

		play_decoded(msg_execute_get(a->p.in.body, &m, &(struct err){0}), "EXECUTE");
		assert_true(id_eq(&m.proposal, &id));
		assert_int_equal(m.approvals.n, 0);
	}
	acts_executed(a, tag, ATTEMPT_SUCCEEDED);
	for (int i = 0; acts_state(a, &id) != PROPOSAL_STATE_SUCCEEDED; i++) {
		assert_true(i < 100);
		(void)usleep(10000);
	}
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define O(name) cmocka_unit_test_setup_teardown(name, setup_open, teardown)
	const struct CMUnitTest tests[] = {
		T(test_pending),
		T(test_tiers),
		T(A2_unknown_fields_are_refused_at_every_place),
		T(D7_an_approver_in_the_payload_is_refused),
		T(A7_only_the_canonical_bytes_are_read),
		T(A12_absent_null_and_empty_are_three_things),
		T(A13_defaults_are_in_the_digest),
		T(test_no_grant),
		T(test_grant_times),
		T(test_grant_refused),
		T(H12_a_closed_task_proposes_nothing),
		O(D12_only_so_many_wait_for_a_person),
		O(H13_a_hundred_that_race_pass_no_budget),
		O(test_budget_of_proposals),
		T(test_too_many_open_end_the_relay),
		T(G19_the_same_again_is_the_earlier_one),
		T(test_not_the_same),
		T(test_verify_denies),
		T(test_the_brokers_word_is_not_enough),
		T(H7_without_the_broker_everything_is_denied),
		T(test_a_broker_that_breaks_the_protocol_is_lost),
		T(test_restart),
		T(test_host_code),
		T(test_other_tenants),
		T(test_read),
		T(test_draft),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
