/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of actions; see acts.h. */
#include "acts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

static struct facts facts; /* of the sandbox, for a restart */

void
acts_open(struct acts *a)
{
	*a = (struct acts){.relay = -1};
	play_open(&a->p);
}

/* What is asked of the engine now comes after BROKER_READY, whichever socket it reads first. */
static void
broker_known(struct acts *a)
{
	a->brokers++;
	for (int i = 0; i < 500; i++) {
		(void)play_audit_of(&a->p, "host");
		if (play_events(&a->p, "broker.ready") == a->brokers)
			return;
		(void)usleep(10000);
	}
	fail_msg("the engine does not know its broker");
}

void
acts_start(struct acts *a)
{
	play_start(&a->p);
	play_broker(&a->p, false);
	broker_known(a);
	ASK(&a->p, SANDBOX_CREATE, sandbox_create,
		{.caller = as_root, .tenant = view_str("acme"), .template = view_str("python")});
	WANT(&a->p, a->p.supervisor, SPAWN, spawn, m);
	a->sandbox = m.sandbox;
	facts = play_facts(&a->p, &m.limits);
	a->relay = play_spawned(&a->p, &a->sandbox, &facts);
	SAY(a->relay, RELAY_READY, relay_ready, {.agent_version = 1});
	ANSWER(&a->p, SANDBOX_ROW, sandbox_row, row);
	a->task = row.task;
	id_text(&a->task, ID_TASK, a->task_text);
}

void
acts_close(struct acts *a)
{
	if (a->relay >= 0)
		(void)close(a->relay);
	play_close(&a->p);
}

void
acts_restart(struct acts *a)
{
	struct play *p = &a->p;
	int pair[2];
	struct err err;

	if (p->engine != 0)
		play_kill(p);
	(void)close(a->relay);
	play_launch(p);
	assert_int_equal(ipc_pair(pair, &err), 0);
	SAY_FD(p->supervisor, HELD, held, pair[1],
		{.sandbox = a->sandbox, .task = a->task, .facts = facts, .ttl_left_ms = 600000});
	(void)close(pair[1]);
	a->relay = pair[0];
	play_ready(p);
	SAY(a->relay, RELAY_JOBS_END, relay_jobs_end, {0});
	play_broker(p, false);
	broker_known(a);
}

void
acts_broker_again(struct acts *a)
{
	play_broker(&a->p, true);
	broker_known(a);
}

struct id
acts_grant(struct acts *a, const char *operation, const char *where, uint32_t uses)
{
	ASK(&a->p, GRANT_ISSUE, grant_issue,
		{.caller = as_root,
			.task = view_str(a->task_text),
			.operation = view_str(operation),
			.where = view_of(where, where == NULL ? 0 : strlen(where) + 1),
			.uses = uses,
			.ttl_ms = 600000});
	ANSWER(&a->p, GRANT_ROW, grant_row, row);
	assert_int_equal(row.uses, uses);
	assert_int_equal(row.used, 0);
	assert_true(view_is(row.issuer, "uid:0"));
	return row.grant;
}

void
acts_grant_row(struct acts *a, const struct id *grant, struct msg_grant_row *ret)
{
	bool found = false;

	ASK(&a->p, GRANT_LIST, grant_list, {.caller = as_root, .task = view_str(a->task_text)});
	for (;;) {
		struct msg_grant_row row;

		play_want_any(&a->p, a->p.api);
		if (a->p.in.type == MSG_END)
			break;
		assert_int_equal(a->p.in.type, MSG_GRANT_ROW);
		play_decoded(msg_grant_row_get(a->p.in.body, &row, &(struct err){0}), "GRANT_ROW");
		if (id_eq(&row.grant, grant)) {
			*ret = row;
			ret->where = ret->issuer = ret->operation = view_of(NULL, 0);
			found = true;
		}
	}
	assert_true(found);
}

void
acts_propose(struct acts *a, uint64_t tag, const char *canonical, bool read)
{
	SAY_TAG(a->relay, tag, PROPOSE, propose, -1,
		{.read = read, .proposal = view_str(canonical)});
}

void
acts_ask(struct acts *a, uint64_t tag, const char *operation, const char *arguments)
{
	char text[4096];

	assert_in_range(snprintf(text, sizeof(text),
				"{\"arguments\":%s,\"note\":\"please\",\"operation\":\"%s\"}",
				arguments, operation),
		1, sizeof(text) - 1);
	acts_propose(a, tag, text, false);
}

void
acts_denied(struct acts *a, uint64_t tag, enum denial denial)
{
	WANT(&a->p, a->relay, PROPOSED, proposed, m);
	assert_int_equal(a->p.in.tag, tag);
	if (m.denial != denial)
		fail_msg("%s is wanted, %s came: %.*s", denial_text(denial), denial_text(m.denial),
			VIEW_ARGS(m.text));
	assert_true(m.text.n > 20);
}

struct id
acts_proposed(struct acts *a, uint64_t tag, bool duplicate)
{
	WANT(&a->p, a->relay, PROPOSED, proposed, m);
	assert_int_equal(a->p.in.tag, tag);
	if (m.denial != DENIAL_NONE)
		fail_msg("%s: %.*s", denial_text(m.denial), VIEW_ARGS(m.text));
	assert_int_equal(m.duplicate, duplicate);
	assert_false(id_is_zero(&m.proposal));
	return m.proposal;
}

uint64_t
acts_verify(struct acts *a)
{
	WANT(&a->p, a->p.broker, VERIFY_ASK, verify_ask, m);
	assert_true(view_is(m.tenant, "acme"));
	assert_true(id_eq(&m.task, &a->task));
	return a->p.in.tag;
}

void
acts_verified(struct acts *a, uint64_t tag, enum denial denial, const char *text)
{
	SAY_TAG(a->p.broker, tag, VERIFIED, verified, -1,
		{.denial = denial,
			.text = view_str(denial == DENIAL_NONE ? "" : "it says otherwise"),
			.facts = view_str(text),
			.calls = 1,
			.bytes = 700});
}

struct id
acts_pending(struct acts *a, const char *order, unsigned cents)
{
	char arguments[128];
	uint64_t tag = ++a->p.tag;

	(void)snprintf(
		arguments, sizeof(arguments), "{\"cents\":%u,\"order_id\":\"%s\"}", cents, order);
	acts_ask(a, tag, "refund", arguments);
	acts_verified(a, acts_verify(a), DENIAL_NONE, FACTS_GOOD);
	return acts_proposed(a, tag, false);
}

void
acts_row(struct acts *a, const struct id *proposal, struct msg_proposal_row *ret)
{
	ASK(&a->p, PROPOSAL_GET, proposal_get, {.caller = as_root, .proposal = *proposal});
	ANSWER(&a->p, PROPOSAL_ROW, proposal_row, row);
	*ret = row; /* its views live until the next message */
}

enum proposal_state
acts_state(struct acts *a, const struct id *proposal)
{
	struct msg_proposal_row row;

	acts_row(a, proposal, &row);
	return row.state;
}

void
acts_decide(struct acts *a, const struct id *proposal, const char *person, bool approve)
{
	uint64_t now = clock_real_ms();
	struct decision_record d = {.approver = view_str(person),
		.reason = view_str("seen"),
		.approve = approve,
		.decided_ms = now,
		.dispatch_by_ms = approve ? now + 60000 : 0};
	struct msg_proposal_decide m = {.caller = as_root,
		.proposal = *proposal,
		.signature = view_str("signed"),
		.request_id = view_str("r1")};
	struct msg_proposal_row row;
	struct err err = {0};
	auto_buf struct buf b;

	buf_init(&b, DECISION_RECORD_MAX);
	acts_row(a, proposal, &row);
	memcpy(d.proposal, row.digest, 32);
	memcpy(m.shown, row.digest, 32);
	if (decision_record_write(&d, &b, &err) < 0)
		fail_msg("%s", err.text);
	m.decision = buf_view(&b);
	ASK(&a->p, PROPOSAL_DECIDE, proposal_decide, m);
}

uint64_t
acts_decision(struct acts *a)
{
	WANT(&a->p, a->p.broker, DECISION_ASK, decision_ask, m);
	assert_true(m.record.n > 100);
	assert_true(m.decision.n > 100);
	assert_true(view_is(m.signature, "signed"));
	return a->p.in.tag;
}

void
acts_decided(struct acts *a, uint64_t tag, enum denial denial, const char *person, uint32_t quorum)
{
	SAY_TAG(a->p.broker, tag, DECISION_IS, decision_is, -1,
		{.denial = denial,
			.text = view_str(denial == DENIAL_NONE ? "" : "it may not be"),
			.approver = view_str(person),
			.key = view_str("SHA256:abc"),
			.seen_ms = clock_real_ms(),
			.quorum = quorum});
}

uint64_t
acts_execute(struct acts *a)
{
	WANT(&a->p, a->p.broker, EXECUTE, execute, m);
	assert_true(m.record.n > 100);
	return a->p.in.tag;
}

void
acts_executed(struct acts *a, uint64_t tag, enum attempt attempt)
{
	struct msg_execute m;

	play_decoded(msg_execute_get(a->p.in.body, &m, &(struct err){0}), "EXECUTE");
	SAY_TAG(a->p.broker, tag, EXECUTED, executed, -1,
		{.execution = m.execution,
			.attempt = attempt,
			.status = 201,
			.sends = 1,
			.calls = 2,
			.bytes = 900,
			.spent_ms = clock_real_ms(),
			.ended_ms = clock_real_ms(),
			.text = view_str(""),
			.receipt = view_str("{\"reference\":\"re_1\"}")});
}

struct msg_budget_row
acts_budget(struct acts *a, bool of_tenant, enum counter counter, const char *operation)
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
