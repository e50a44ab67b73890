/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of an action; see carry.h. */
#include "carry.h"
#include "trace.h"

#include "tests/actions/sample.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

enum { MINUTE_MS = 60000 };

void
carry_done(struct carry *a)
{
	buf_done(&a->approvals);
}

static unsigned
readies(struct play *p)
{
	(void)play_audit_of(p, "host");
	return play_events(p, "broker.ready");
}

/* The engine has read it: what is asked now finds it there. */
static void
ready(struct play *p, unsigned before)
{
	for (unsigned i = 0; readies(p) == before; i++)
		if (i == 1000)
			fail_msg("the broker is not taken");
}

void
carry_start(struct play *p, struct carry *a)
{
	unsigned before = readies(p);

	*a = (struct carry){0};
	buf_init(&a->approvals, 41000);
	play_broker(p, false);
	ready(p, before);
	a->task = play_task(p, "acme");
}

void
carry_start_task(struct play *p, struct carry *a)
{
	a->task = play_task(p, "acme");
}

static const char *
task_text(const struct carry *a)
{
	static char text[ID_TEXT];

	id_text(&a->task, ID_TASK, text);
	return text;
}

void
carry_grant(struct play *p, struct carry *a, const char *operation, uint32_t uses)
{
	ASK(p, GRANT_ISSUE, grant_issue,
		{.caller = as_root,
			.task = view_str(task_text(a)),
			.operation = view_str(operation),
			.uses = uses,
			.ttl_ms = 60 * MINUTE_MS});
	ANSWER(p, GRANT_ROW, grant_row, row);
	a->grant = row.grant;
}

static void
create(struct play *p, const struct carry *a, const char *json)
{
	ASK(p, PROPOSAL_CREATE, proposal_create,
		{.caller = as_root, .task = view_str(task_text(a)), .proposal = view_str(json)});
}

static void
pending(struct play *p, struct carry *a)
{
	ANSWER(p, PROPOSAL_ROW, proposal_row, row);
	if (row.state != PROPOSAL_STATE_PENDING)
		fail_msg("it is %s: %.*s", proposal_state_text(row.state), VIEW_ARGS(row.text));
	a->proposal = row.proposal;
	memcpy(a->digest, row.digest, 32);
	assert_in_range(row.record.n, 1, sizeof(a->record));
	memcpy(a->record, row.record.p, row.record.n);
	a->record_n = row.record.n;
}

void
carry_reply(struct play *p, struct carry *a, unsigned n)
{
	char json[256];

	(void)snprintf(json, sizeof(json),
		"{\"arguments\":{\"body\":\"number %u\",\"recipient\":\"a@b.example\","
		"\"subject\":\"hello\"},\"note\":\"\",\"operation\":\"reply\"}",
		n);
	create(p, a, json);
	pending(p, a);
}

void
carry_refund(struct play *p, struct carry *a, int64_t cents)
{
	char json[256];

	(void)snprintf(json, sizeof(json),
		"{\"arguments\":{\"cents\":%lld,\"order_id\":\"48221\"},\"note\":\"\","
		"\"operation\":\"refund\"}",
		(long long)cents);
	create(p, a, json);
	WANT(p, p->broker, VERIFY_ASK, verify_ask, m);
	SAY_TAG(p->broker, p->in.tag, VERIFIED, verified, -1,
		{.facts = view_str("{\"order__paid_cents\":500000,\"order__status\":\"paid\","
				   "\"order__tenant\":\"acme\"}"),
			.calls = 1,
			.bytes = 200});
	pending(p, a);
}

void
carry_ask(struct play *p, struct carry *a, const char *approver, uint64_t dispatch_by_ms)
{
	struct decision_record d = {.approver = view_str(approver),
		.reason = view_str("it is right"),
		.approve = true,
		.decided_ms = clock_real_ms(),
		.dispatch_by_ms = dispatch_by_ms};
	auto_buf struct buf bytes;
	struct msg_proposal_decide m = {
		.caller = as_root, .proposal = a->proposal, .signature = view_str("signed")};
	struct err err;

	buf_init(&bytes, DECISION_RECORD_MAX);
	memcpy(d.proposal, a->digest, 32);
	if (decision_record_write(&d, &bytes, &err) < 0)
		fail_msg("%s", err.text);
	memcpy(m.shown, a->digest, 32);
	m.decision = buf_view(&bytes);
	ASK(p, PROPOSAL_DECIDE, proposal_decide, m);
	a->tag = p->tag;
	WANT(p, p->broker, DECISION_ASK, decision_ask, asked);
	assert_true(id_eq(&asked.proposal, &a->proposal));
	assert_true(view_eq(asked.record, view_of(a->record, a->record_n)));
}

void
carry_yes(struct play *p, const char *approver)
{
	SAY_TAG(p->broker, p->in.tag, DECISION_IS, decision_is, -1,
		{.approver = view_str(approver),
			.key = view_str("SHA256:key"),
			.seen_ms = clock_real_ms(),
			.quorum = 1});
}

void
carry_approve(struct play *p, struct carry *a, const char *approver)
{
	carry_ask(p, a, approver, clock_real_ms() + 5 * MINUTE_MS);
	carry_yes(p, approver);
}

void
carry_approved(struct play *p, struct carry *a, const char *approver)
{
	struct trace t;

	carry_ask(p, a, approver, clock_real_ms() + 5 * MINUTE_MS);
	(void)usleep(100000); /* syncs of groups are over */
	trace_begin(&t, p->engine, TRACE_SECOND);
	carry_yes(p, approver);
	for (int i = 0; i < 1000 && !trace_killed(&t); i++)
		(void)usleep(5000);
	assert_true(trace_killed(&t));
	trace_end(&t);
	trace_free(&t);
	play_kill(p);
	play_start(p);
	assert_int_equal(carry_state(p, a), PROPOSAL_STATE_APPROVED);
}

void
carry_execute(struct play *p, struct carry *a)
{
	WANT(p, p->broker, EXECUTE, execute, m);
	a->execute_tag = p->in.tag;
	assert_true(id_eq(&m.proposal, &a->proposal));
	assert_true(view_eq(m.record, view_of(a->record, a->record_n)));
	assert_true(m.approvals.n > 0);
	a->execution = m.execution;
	buf_clear(&a->approvals);
	buf_add_view(&a->approvals, m.approvals);
}

void
carry_executed(struct play *p, const struct carry *a, enum attempt attempt)
{
	bool sent = attempt == ATTEMPT_SUCCEEDED || attempt == ATTEMPT_FAILED ||
		    attempt == ATTEMPT_UNKNOWN;
	bool done = attempt == ATTEMPT_SUCCEEDED;

	SAY_TAG(p->broker, a->execute_tag, EXECUTED, executed, -1,
		{.execution = a->execution,
			.attempt = attempt,
			.denial = attempt == ATTEMPT_DENIED ? DENIAL_SIGNATURE : DENIAL_NONE,
			.status = done ? 201 : 0,
			.sends = sent,
			.calls = sent,
			.bytes = sent ? 300 : 0,
			.spent_ms = sent ? clock_real_ms() : 0,
			.ended_ms = clock_real_ms(),
			.first_byte_us = sent ? 700 : 0,
			.text = view_str(done ? "the provider took it" : "it is not done"),
			.receipt = view_str(done ? "{\"reference\":\"re_1\"}" : "{}")});
}

void
carry_decided(struct play *p, const struct carry *a, enum proposal_state state)
{
	WANT(p, p->api, PROPOSAL_ROW, proposal_row, row);
	assert_int_equal(p->in.tag, a->tag);
	assert_true(id_eq(&row.proposal, &a->proposal));
	if (row.state != state)
		fail_msg("it is %s: %.*s", proposal_state_text(row.state), VIEW_ARGS(row.text));
}

void
carry_dispatch(struct play *p, struct carry *a, unsigned n)
{
	carry_reply(p, a, n);
	carry_approve(p, a, "anna");
	carry_execute(p, a);
}

enum proposal_state
carry_state(struct play *p, const struct carry *a)
{
	ASK(p, PROPOSAL_GET, proposal_get, {.caller = as_root, .proposal = a->proposal});
	ANSWER(p, PROPOSAL_ROW, proposal_row, row);
	return row.state;
}

struct msg_execution_row
carry_row(struct play *p, const struct carry *a)
{
	ASK(p, EXECUTION_GET, execution_get, {.caller = as_root, .execution = a->execution});
	ANSWER(p, EXECUTION_ROW, execution_row, row);
	return row;
}

void
carry_budget(struct play *p, const struct carry *a, enum counter counter, bool of_tenant,
	uint64_t *ret_reserved, uint64_t *ret_used)
{
	struct err err;
	bool found = false;

	ASK(p, BUDGET_LIST, budget_list, {.caller = as_root, .task = view_str(task_text(a))});
	for (;;) {
		struct msg_budget_row row;

		play_want_any(p, p->api);
		if (p->in.type == MSG_END)
			break;
		assert_int_equal(p->in.type, MSG_BUDGET_ROW);
		play_decoded(msg_budget_row_get(p->in.body, &row, &err), "BUDGET_ROW");
		if (row.counter != counter || row.of_tenant != of_tenant ||
			(counter != COUNTER_MONEY && row.operation.n != 0))
			continue;
		*ret_reserved = row.reserved;
		*ret_used = row.used;
		found = true;
	}
	if (!found)
		*ret_reserved = *ret_used = 0;
}

void
carry_edge(struct play *p, const struct msg_broker_ready *m)
{
	int pair[2];
	struct err err;

	if (p->broker >= 0)
		play_broker_lost(p);
	assert_int_equal(ipc_pair(pair, &err), 0);
	SAY_FD(p->supervisor, BROKER_EDGE, broker_edge, pair[1], {0});
	(void)close(pair[1]);
	p->broker = pair[0];
	if (m->checkpoint_size == 0 || memcmp(m->checkpoint_root, p->head_root, 32) != 0)
		play_head_forget(p);
	SAY(p->broker, BROKER_READY, broker_ready, *m);
}

void
carry_broker(struct play *p, const struct msg_broker_ready *m)
{
	unsigned before = readies(p);

	carry_edge(p, m);
	ready(p, before);
}

bool
carry_pending(int fd)
{
	struct pollfd w = {.fd = fd, .events = POLLIN};

	return poll(&w, 1, 10) == 1;
}

void
carry_restart(struct play *p, bool broker)
{
	play_kill(p);
	play_start(p);
	if (broker) {
		unsigned before = readies(p);

		play_broker(p, false);
		ready(p, before);
	}
}
