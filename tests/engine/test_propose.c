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

/* Nothing is read before a reply: what its grant says about the arguments is the engine's to test. */
static void
test_grant_conditions_without_a_read(void **state)
{
	struct acts *a = *state;

	(void)acts_grant(a, "reply", "recipient == \"anna@example.org\"", 5);
	acts_ask(a, 1, "reply",
		"{\"body\":\"b\",\"recipient\":\"bert@example.org\",\"subject\":\"s\"}");
	acts_denied(a, 1, DENIAL_GRANT_CONDITION);
	acts_ask(a, 2, "reply",
		"{\"body\":\"b\",\"recipient\":\"anna@example.org\",\"subject\":\"s\"}");
	(void)acts_proposed(a, 2, false);
	play_want_silence(&a->p, a->p.broker, 50);
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
	static const char *const pairs[] = {"cents", "cents\0", "\0ticket\0", "\0\0", "cents\0db",
		"cents\0db\0order_id", "cents\0DB\0", "cents\0human \0"};
	static const size_t bytes[] = {6, 7, 8, 2, 8, 18, 9, 13};
	for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
		m.provenance = view_of(pairs[i], bytes[i]);
		ASK(&a->p, PROPOSAL_CREATE, proposal_create, m);
		play_refused(&a->p, ERROR_BAD_REQUEST);
	}
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

/* A token that another made answers for nobody but who has the first one. */
static void
D6_who_proposes_with_a_token_of_a_token_is_the_first(void **state)
{
	static const char *const prefixes[] = {"dml_child", "dml_grandchild"};
	struct acts *a = *state;
	struct caller c = play_token(&a->p, "acme", "", 8);
	struct proposal_record r;
	struct buf room;

	(void)acts_grant(a, "refund", NULL, 9);
	for (uint8_t i = 0; i < ARRAY_LEN(prefixes); i++) {
		struct msg_token_create m = {
			.caller = c, .label = view_str("mine"), .prefix = view_str(prefixes[i])};

		memset(m.token, 0x70 + i, sizeof(m.token));
		ASK(&a->p, TOKEN_CREATE, token_create, m);
		ANSWER(&a->p, TOKEN_ROW, token_row, row);
		memcpy(c.token, m.token, sizeof(m.token));
	}
	ASK(&a->p, PROPOSAL_CREATE, proposal_create,
		{.caller = c,
			.task = view_str(a->task_text),
			.proposal = view_str("{\"arguments\":" REFUND
					     ",\"note\":\"\",\"operation\":\"refund\"}")});
	acts_verified(a, acts_verify(a), DENIAL_NONE, FACTS_GOOD);
	ANSWER(&a->p, PROPOSAL_ROW, proposal_row, row);
	buf_init(&room, PROPOSAL_RECORD_MAX);
	assert_int_equal(proposal_record_read(row.record, &room, &r, &(struct err){0}), 0);
	assert_true(view_is(r.actor, "token:dml_grandchild"));
	assert_true(view_is(r.requester, "token:dml_8"));
	buf_done(&room);
}

/* The same for a task that such a token made: its sandbox asks in the name of the first. */
static void
D6_whose_task_a_token_of_a_token_made_is_the_first(void **state)
{
	struct acts *a = *state;
	struct caller c = play_token(&a->p, "acme", "", 8);
	struct msg_token_create m = {
		.caller = c, .label = view_str("mine"), .prefix = view_str("dml_child")};
	struct proposal_record r;
	struct buf room;
	char task[ID_TEXT];

	memset(m.token, 0x70, sizeof(m.token));
	ASK(&a->p, TOKEN_CREATE, token_create, m);
	ANSWER(&a->p, TOKEN_ROW, token_row, token);
	(void)token;
	memcpy(c.token, m.token, sizeof(m.token));
	ASK(&a->p, TASK_CREATE, task_create, {.caller = c, .template = view_str("python")});
	ANSWER(&a->p, TASK_ROW, task_row, made);
	id_text(&made.task, ID_TASK, task);
	a->task = made.task; /* acts_verify looks at it */
	ASK(&a->p, GRANT_ISSUE, grant_issue,
		{.caller = as_root,
			.task = view_str(task),
			.operation = view_str("refund"),
			.uses = 2,
			.ttl_ms = 600000});
	ANSWER(&a->p, GRANT_ROW, grant_row, grant);
	(void)grant;
	ASK(&a->p, PROPOSAL_CREATE, proposal_create,
		{.caller = as_root,
			.task = view_str(task),
			.proposal = view_str("{\"arguments\":" REFUND
					     ",\"note\":\"\",\"operation\":\"refund\"}")});
	acts_verified(a, acts_verify(a), DENIAL_NONE, FACTS_GOOD);
	ANSWER(&a->p, PROPOSAL_ROW, proposal_row, row);
	buf_init(&room, PROPOSAL_RECORD_MAX);
	assert_int_equal(proposal_record_read(row.record, &room, &r, &(struct err){0}), 0);
	assert_true(view_is(r.owner, "token:dml_8"));
	buf_done(&room);
}

static void
test_operations(void **state)
{
	static const char *const names[] = {"note", "order_status", "refund", "reply"};
	struct acts *a = *state;
	struct caller any = play_token(&a->p, "other", "", 9);

	ASK(&a->p, OPERATION_LIST, operation_list, {.caller = any});
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		ANSWER(&a->p, OPERATION_ROW, operation_row, row);
		assert_true(view_is(row.name, names[i]));
		assert_memory_equal(row.catalogue, a->p.catalogue.digest, 32);
	}
	{
		ANSWER(&a->p, END, end, end);
		assert_false(end.more);
	}
	ASK(&a->p, OPERATION_GET, operation_get, {.caller = any, .name = view_str("refund")});
	{
		const struct operation *op = catalogue_find(&a->p.catalogue, view_str("refund"));

		ANSWER(&a->p, OPERATION_ROW, operation_row, row);
		assert_true(view_eq(row.document, op->document));
		assert_memory_equal(row.operation, op->digest, 32);
		assert_int_equal(row.effect, EFFECT_IRREVERSIBLE);
	}
	ASK(&a->p, OPERATION_GET, operation_get, {.caller = any, .name = view_str("transfer")});
	play_refused(&a->p, ERROR_NOT_FOUND);
	ASK(&a->p, OPERATION_LIST, operation_list, {.caller = {.kind = CALLER_KIND_NONE}});
	play_refused(&a->p, ERROR_UNAUTHORIZED);
}

/* The ids of a page, newest first; how many. */
static unsigned
page(struct acts *a, const struct msg_proposal_list *m, struct id ret[static 8], bool *ret_more)
{
	unsigned n = 0;

	ASK(&a->p, PROPOSAL_LIST, proposal_list, *m);
	for (;;) {
		struct msg_proposal_row row;
		struct msg_end end;

		play_want_any(&a->p, a->p.api);
		if (a->p.in.type == MSG_END) {
			play_decoded(msg_end_get(a->p.in.body, &end, &(struct err){0}), "END");
			*ret_more = end.more;
			return n;
		}
		assert_int_equal(a->p.in.type, MSG_PROPOSAL_ROW);
		play_decoded(msg_proposal_row_get(a->p.in.body, &row, &(struct err){0}), "ROW");
		assert_true(n < 8);
		ret[n++] = row.proposal;
	}
}

static void
test_list(void **state)
{
	struct acts *a = *state;
	struct msg_proposal_list m = {.caller = as_root, .limit = 2};
	struct id made[3], got[8];
	bool more = false;
	char order[4];

	(void)acts_grant(a, "refund", NULL, 9);
	for (int i = 0; i < 3; i++) {
		(void)snprintf(order, sizeof(order), "%d", i);
		made[i] = acts_pending(a, order, 1);
	}
	assert_int_equal(page(a, &m, got, &more), 2);
	assert_true(more);
	assert_true(id_eq(&got[0], &made[2]) && id_eq(&got[1], &made[1]));
	m.after = got[1];
	assert_int_equal(page(a, &m, got, &more), 1);
	assert_false(more);
	assert_true(id_eq(&got[0], &made[0]));
	acts_decide(a, &made[1], "anna", false);
	acts_decided(a, acts_decision(a), DENIAL_NONE, "anna", 1);
	play_want(&a->p, a->p.api, MSG_PROPOSAL_ROW);
	m = (struct msg_proposal_list){
		.caller = as_root, .task = view_str(a->task_text), .open = true};
	assert_int_equal(page(a, &m, got, &more), 2);
	assert_true(id_eq(&got[0], &made[2]) && id_eq(&got[1], &made[0]));
	m.open = false;
	assert_int_equal(page(a, &m, got, &more), 3);
}

/* So many that can still be used, and no more. */
static void
test_grants_of_a_task(void **state)
{
	struct acts *a = *state;

	for (int i = 0; i < 64; i++)
		(void)acts_grant(a, "reply", NULL, 1);
	ASK(&a->p, GRANT_ISSUE, grant_issue,
		{.caller = as_root,
			.task = view_str(a->task_text),
			.operation = view_str("reply"),
			.uses = 1,
			.ttl_ms = 60000});
	play_refused(&a->p, ERROR_QUOTA);
	acts_ask(a, 1, "reply", "{\"body\":\"b\",\"recipient\":\"a@b.example\",\"subject\":\"s\"}");
	(void)acts_proposed(a, 1, false); /* one is used up */
	(void)acts_grant(a, "reply", NULL, 1);
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
	assert_int_equal(acts_budget(a, false, COUNTER_BROKER_BYTES, "").used, 300);
}

/* The sandbox is gone when the system of record answers, and when the person decides: the action is not its own any more. */
static void
test_the_sandbox_may_be_gone(void **state)
{
	struct acts *a = *state;
	struct id id;

	(void)acts_grant(a, "refund", NULL, 2);
	acts_ask(a, 1, "refund", REFUND);
	{
		WANT(&a->p, a->p.broker, VERIFY_ASK, verify_ask, m);
		id = m.proposal;
	}
	uint64_t tag = a->p.in.tag;
	play_gone(&a->p, &a->sandbox, SANDBOX_REASON_TTL);
	play_want_closed(&a->p, a->relay);
	acts_verified(a, tag, DENIAL_NONE, FACTS_GOOD);
	for (int i = 0; acts_state(a, &id) != PROPOSAL_STATE_PENDING; i++) {
		assert_true(i < 500);
		(void)usleep(10000);
	}
	acts_decide(a, &id, "anna", true);
	acts_decided(a, acts_decision(a), DENIAL_NONE, "anna", 1);
	acts_executed(a, acts_execute(a), ATTEMPT_SUCCEEDED);
	ANSWER(&a->p, PROPOSAL_ROW, proposal_row, row);
	assert_int_equal(row.state, PROPOSAL_STATE_SUCCEEDED);
}

static void
test_draft_of_host_code(void **state)
{
	struct acts *a = *state;

	(void)acts_grant(a, "note", NULL, 2);
	ASK(&a->p, PROPOSAL_CREATE, proposal_create,
		{.caller = as_root,
			.task = view_str(a->task_text),
			.proposal = view_str("{\"arguments\":{\"text\":\"hello\"},\"note\":\"\","
					     "\"operation\":\"note\"}")});
	acts_executed(a, acts_execute(a), ATTEMPT_SUCCEEDED);
	ANSWER(&a->p, PROPOSAL_ROW, proposal_row, row);
	assert_int_equal(row.state, PROPOSAL_STATE_SUCCEEDED);
	assert_int_equal(row.quorum, 0);
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
		T(test_verify_denies),
		T(test_grant_conditions_without_a_read),
		T(test_the_brokers_word_is_not_enough),
		T(test_host_code),
		T(D6_who_proposes_with_a_token_of_a_token_is_the_first),
		T(D6_whose_task_a_token_of_a_token_made_is_the_first),
		T(test_operations),
		T(test_list),
		T(test_grants_of_a_task),
		T(test_other_tenants),
		T(test_read),
		T(test_the_sandbox_may_be_gone),
		T(test_draft_of_host_code),
		T(test_draft),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
