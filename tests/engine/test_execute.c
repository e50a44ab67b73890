/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From an approval to what became of it, with the played broker as the witness of what is sent: once, on disk before, with what
 * the person signed. Names begin with the case of the list of adversarial cases that they cover.
 */
#include "carry.h"

#include <poll.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

static int
setup(void **state)
{
	static struct play play;

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

/* ---- results ---- */

static void
test_once(void **state)
{
	BEGIN(p, a);
	struct view rest, decision, signature;
	uint64_t reserved, used;

	carry_dispatch(p, &a, 1);
	rest = buf_view(&a.approvals);
	assert_int_equal(approvals_take(&rest, &decision, &signature), 1);
	assert_true(view_is(signature, "signed"));
	assert_non_null(memmem(decision.p, decision.n, "\"approver\":\"anna\"", 17));
	assert_int_equal(approvals_take(&rest, &decision, &signature), 0);
	/* While it is with the broker: reserved, and nobody was answered. */
	play_want_silence(p, p->api, 100);
	carry_budget(p, &a, COUNTER_ATTEMPTS, false, &reserved, &used);
	assert_int_equal(reserved, 1);
	assert_int_equal(used, 0);
	assert_int_equal(carry_row(p, &a).state, EXECUTION_STATE_DISPATCHING);
	carry_executed(p, &a, ATTEMPT_SUCCEEDED);
	carry_decided(p, &a, PROPOSAL_STATE_SUCCEEDED);
	struct msg_execution_row row = carry_row(p, &a);
	assert_int_equal(row.state, EXECUTION_STATE_SUCCEEDED);
	assert_int_equal(row.status, 201);
	assert_int_equal(row.sends, 1);
	assert_true(view_is(row.receipt, "{\"reference\":\"re_1\"}"));
	assert_true(view_is(row.provider_account, "acct_1"));
	assert_int_equal(row.key.n, 44);
	carry_budget(p, &a, COUNTER_ATTEMPTS, false, &reserved, &used);
	assert_int_equal(reserved, 0);
	assert_int_equal(used, 1);
	carry_budget(p, &a, COUNTER_BROKER_CALLS, true, &reserved, &used);
	assert_int_equal(reserved, 0);
	assert_int_equal(used, 1);
	(void)play_audit(p, &a.task);
	assert_int_equal(play_events(p, "execution.dispatching"), 1);
	assert_true(play_record(p, "execution.dispatching", "\"approvals\":[\""));
	assert_int_equal(play_events(p, "execution.succeeded"), 1);
	play_want_silence(p, p->broker, 100);
}

/* Denied by the broker, and not sent: failed, with the denial; the reservation comes back. */
static void
test_denied(void **state)
{
	BEGIN(p, a);
	static const enum attempt attempts[] = {ATTEMPT_DENIED, ATTEMPT_NOT_SENT};

	for (unsigned i = 0; i < 2; i++) {
		uint64_t reserved, used;

		carry_dispatch(p, &a, i);
		carry_executed(p, &a, attempts[i]);
		carry_decided(p, &a, PROPOSAL_STATE_FAILED);
		struct msg_execution_row row = carry_row(p, &a);
		assert_int_equal(row.state, EXECUTION_STATE_FAILED);
		assert_int_equal(row.denial, i == 0 ? DENIAL_SIGNATURE : DENIAL_NONE);
		assert_int_equal(row.sends, 0);
		carry_budget(p, &a, COUNTER_ATTEMPTS, false, &reserved, &used);
		assert_int_equal(reserved + used, 0);
	}
	play_want_silence(p, p->broker, 100);
}

/* What is another tenant's does not exist, as the beginning of a page neither: else ids could be tried, and what is older be counted. */
static void
test_page_behind_a_strange_one(void **state)
{
	BEGIN(p, a);
	struct caller other = play_token(p, "other", "", 90), own = play_token(p, "acme", "", 91);

	carry_dispatch(p, &a, 1);
	carry_executed(p, &a, ATTEMPT_SUCCEEDED);
	carry_decided(p, &a, PROPOSAL_STATE_SUCCEEDED);
	ASK(p, EXECUTION_LIST, execution_list, {.caller = other, .after = a.execution});
	play_refused(p, ERROR_NOT_FOUND);
	ASK(p, PROPOSAL_LIST, proposal_list, {.caller = other, .after = a.proposal});
	play_refused(p, ERROR_NOT_FOUND);
	ASK(p, EXECUTION_LIST, execution_list, {.caller = own, .after = a.execution});
	ANSWER(p, END, end, end);
}

/* BROKER_REFUSED instead of EXECUTED: nothing was done, and why. */
static void
test_refused(void **state)
{
	BEGIN(p, a);

	carry_dispatch(p, &a, 1);
	SAY_TAG(p->broker, a.execute_tag, BROKER_REFUSED, broker_refused, -1,
		{.denial = DENIAL_AUDIT_UNAVAILABLE, .text = view_str("the ledger is full")});
	carry_decided(p, &a, PROPOSAL_STATE_FAILED);
	assert_int_equal(carry_row(p, &a).denial, DENIAL_AUDIT_UNAVAILABLE);
}

/* The answer contradicts what was asked for: it is said, recorded, and what to do stands in the text. */
static void
test_incident(void **state)
{
	BEGIN(p, a);
	char want[64], task[ID_TEXT];

	carry_dispatch(p, &a, 1);
	SAY_TAG(p->broker, a.execute_tag, EXECUTED, executed, -1,
		{.execution = a.execution,
			.attempt = ATTEMPT_SUCCEEDED,
			.incident = true,
			.status = 200,
			.sends = 1,
			.text = view_str("the provider answered another amount"),
			.receipt = view_str("{}")});
	carry_decided(p, &a, PROPOSAL_STATE_SUCCEEDED);
	struct msg_execution_row row = carry_row(p, &a);
	assert_true(row.incident);
	id_text(&a.task, ID_TASK, task);
	(void)snprintf(want, sizeof(want), "demilune contain %s", task);
	assert_non_null(memmem(row.text.p, row.text.n, want, strlen(want)));
	assert_non_null(memmem(row.text.p, row.text.n, "another amount", 14));
	(void)play_audit(p, &a.task);
	assert_true(play_record(p, "incident", want));
}

/* ---- once ---- */

static void
decide_once_more(struct play *p, const struct carry *a)
{
	struct decision_record d = {.approver = view_str("anna"),
		.reason = view_str("yes"),
		.approve = true,
		.decided_ms = clock_real_ms(),
		.dispatch_by_ms = clock_real_ms() + 60000};
	auto_buf struct buf bytes;
	struct msg_proposal_decide m = {
		.caller = as_root, .proposal = a->proposal, .signature = view_str("signed")};
	struct err err;

	buf_init(&bytes, DECISION_RECORD_MAX);
	memcpy(d.proposal, a->digest, 32);
	memcpy(m.shown, a->digest, 32);
	assert_int_equal(decision_record_write(&d, &bytes, &err), 0);
	m.decision = buf_view(&bytes);
	ASK(p, PROPOSAL_DECIDE, proposal_decide, m);
}

/* The broker says yes to whatever it is asked, and carries out what it gets. */
static unsigned
broker_turn(struct play *p, struct carry *a)
{
	struct msg_execute m;

	play_want_any(p, p->broker);
	if (p->in.type == MSG_DECISION_ASK) {
		carry_yes(p, "anna");
		return 0;
	}
	assert_int_equal(p->in.type, MSG_EXECUTE);
	play_decoded(msg_execute_get(p->in.body, &m, &(struct err){0}), "EXECUTE");
	a->execution = m.execution;
	a->execute_tag = p->in.tag;
	carry_executed(p, a, ATTEMPT_SUCCEEDED);
	return 1;
}

/* D3, 3.6: two hundred PROPOSAL_DECIDE of one approval at once, and the broker says yes to all: one EXECUTE. */
static void
test_D3_two_hundred_decisions_one_execute(void **state)
{
	BEGIN(p, a);
	enum { N = 200 };
	unsigned asked = 0, executes = 0, rows = 0, refused = 0;

	carry_reply(p, &a, 1);
	/* As many as the socket takes, then answers, and so on. */
	while (rows + refused < N) {
		struct pollfd w[] = {{.fd = p->api, .events = POLLIN | (asked < N ? POLLOUT : 0)},
			{.fd = p->broker, .events = POLLIN}};

		assert_true(poll(w, 2, 5000) > 0);
		if ((w[0].revents & POLLOUT) != 0) {
			decide_once_more(p, &a);
			asked++;
		} else if (w[1].revents != 0) {
			executes += broker_turn(p, &a);
		} else {
			play_want_any(p, p->api);
			rows += p->in.type == MSG_PROPOSAL_ROW;
			refused += p->in.type == MSG_REFUSED;
		}
	}
	assert_int_equal(executes, 1);
	assert_int_equal(rows, 1);
	play_want_silence(p, p->broker, 200);
	(void)play_audit(p, &a.task);
	assert_int_equal(play_events(p, "execution.dispatching"), 1);
	assert_int_equal(play_events(p, "decision.accepted"), 1);
}

/* G16, G19: the same arguments again are the same proposal; nothing is sent for them. */
static void
test_G16_the_same_again_is_the_earlier_one(void **state)
{
	BEGIN(p, a);
	struct id first;

	carry_dispatch(p, &a, 1);
	carry_executed(p, &a, ATTEMPT_SUCCEEDED);
	carry_decided(p, &a, PROPOSAL_STATE_SUCCEEDED);
	first = a.proposal;
	char task[ID_TEXT];
	id_text(&a.task, ID_TASK, task);
	ASK(p, PROPOSAL_CREATE, proposal_create,
		{.caller = as_root,
			.task = view_str(task),
			.proposal = view_str("{\"arguments\":{\"body\":\"number "
					     "1\",\"recipient\":\"a@b.example\","
					     "\"subject\":\"hello\"},\"note\":\"again\","
					     "\"operation\":\"reply\"}")});
	ANSWER(p, PROPOSAL_ROW, proposal_row, row);
	assert_true(row.duplicate);
	assert_true(id_eq(&row.proposal, &first));
	assert_int_equal(row.state, PROPOSAL_STATE_SUCCEEDED);
	play_want_silence(p, p->broker, 100);
}

/* Many at once, answered in another order: each answer is that of its own execution. */
static void
test_many(void **state)
{
	BEGIN(p, a);
	enum { N = 12 };
	static struct carry c[N];

	for (unsigned i = 0; i < N; i++) {
		c[i] = a;
		buf_init(&c[i].approvals, 41000);
		carry_dispatch(p, &c[i], i);
	}
	play_want_silence(p, p->api, 100);
	for (unsigned i = N; i-- > 0;) {
		carry_executed(p, &c[i], i % 2 == 0 ? ATTEMPT_SUCCEEDED : ATTEMPT_FAILED);
		carry_decided(
			p, &c[i], i % 2 == 0 ? PROPOSAL_STATE_SUCCEEDED : PROPOSAL_STATE_FAILED);
		carry_done(&c[i]);
	}
}

/* ---- time ---- */

/* C2: the answer of the broker comes after dispatch_by: the clock is read after the lock, so nothing is sent. C1: nor at its millisecond. */
static void
test_C2_approved_too_late_is_expired(void **state)
{
	BEGIN(p, a);

	carry_reply(p, &a, 1);
	carry_ask(p, &a, "anna", clock_real_ms() + 150);
	(void)usleep(200000);
	carry_yes(p, "anna");
	carry_decided(p, &a, PROPOSAL_STATE_EXPIRED);
	(void)play_audit(p, &a.task);
	assert_int_equal(play_events(p, "execution.dispatching"), 0);
	WANT(p, p->broker, REVOKE, revoke, m); /* and never will be */
	assert_true(id_eq(&m.proposal, &a.proposal));
	SAY_TAG(p->broker, p->in.tag, REVOKED, revoked, -1, {0});
	play_want_silence(p, p->broker, 100);
}

/* ---- budgets ---- */

/* F11: what is unknown keeps its reservation, so a third refund of a task with room for two is not begun. */
static void
test_F11_unknown_keeps_its_reservation(void **state)
{
	BEGIN(p, a);
	uint64_t reserved, used;

	carry_grant(p, &a, "refund", 10);
	carry_refund(p, &a, 90000);
	carry_approve(p, &a, "anna");
	carry_execute(p, &a);
	carry_executed(p, &a, ATTEMPT_UNKNOWN);
	carry_decided(p, &a, PROPOSAL_STATE_UNKNOWN);
	carry_budget(p, &a, COUNTER_MONEY, false, &reserved, &used);
	assert_int_equal(reserved, 90000);
	assert_int_equal(used, 0);
	carry_refund(p, &a, 95000);
	carry_approve(p, &a, "anna");
	carry_execute(p, &a);
	carry_executed(p, &a, ATTEMPT_SUCCEEDED);
	carry_decided(p, &a, PROPOSAL_STATE_SUCCEEDED);
	carry_budget(p, &a, COUNTER_MONEY, false, &reserved, &used);
	assert_int_equal(reserved, 90000);
	assert_int_equal(used, 95000);
	/* 200000 are there; this was proposed and approved, and finds the budget used up. */
	carry_refund(p, &a, 50000);
	carry_approve(p, &a, "anna");
	carry_decided(p, &a, PROPOSAL_STATE_DENIED);
	ASK(p, PROPOSAL_GET, proposal_get, {.caller = as_root, .proposal = a.proposal});
	ANSWER(p, PROPOSAL_ROW, proposal_row, row);
	assert_int_equal(row.denial, DENIAL_BUDGET);
	carry_budget(p, &a, COUNTER_MONEY, false, &reserved, &used);
	assert_int_equal(reserved, 90000);
	assert_int_equal(used, 95000);
}

/* ---- the task ---- */

/* H12: a closed task takes no proposal more; what it proposed before is still decided and carried out. */
static void
test_H12_a_closed_task(void **state)
{
	BEGIN(p, a);
	char task[ID_TEXT];

	carry_reply(p, &a, 1);
	ASK(p, TASK_CLOSE, task_close, {.caller = as_root, .task = a.task});
	ANSWER(p, TASK_ROW, task_row, closed);
	id_text(&a.task, ID_TASK, task);
	ASK(p, PROPOSAL_CREATE, proposal_create,
		{.caller = as_root,
			.task = view_str(task),
			.proposal = view_str(
				"{\"arguments\":{\"body\":\"late\",\"recipient\":\"a@b.example\","
				"\"subject\":\"hello\"},\"note\":\"\",\"operation\":\"reply\"}")});
	play_want_any(p, p->api);
	if (p->in.type == MSG_REFUSED) {
		struct msg_refused m;
		play_decoded(msg_refused_get(p->in.body, &m, &(struct err){0}), "REFUSED");
		assert_int_equal(m.error, ERROR_DENIED);
		assert_int_equal(m.denial, DENIAL_TASK_STATE);
	} else {
		struct msg_proposal_row m;
		assert_int_equal(p->in.type, MSG_PROPOSAL_ROW);
		play_decoded(msg_proposal_row_get(p->in.body, &m, &(struct err){0}), "ROW");
		assert_int_equal(m.state, PROPOSAL_STATE_DENIED);
		assert_int_equal(m.denial, DENIAL_TASK_STATE);
	}
	carry_approve(p, &a, "anna");
	carry_execute(p, &a);
	carry_executed(p, &a, ATTEMPT_SUCCEEDED);
	carry_decided(p, &a, PROPOSAL_STATE_SUCCEEDED);
}

/* ---- who waits ---- */

/* The provider takes long: the answer says dispatching, the result is there for whoever looks later. */
static void
test_slow(void **state)
{
	BEGIN(p, a);

	carry_dispatch(p, &a, 1);
	play_want_silence(p, p->api, 14000);
	carry_decided(p, &a, PROPOSAL_STATE_DISPATCHING);
	carry_executed(p, &a, ATTEMPT_SUCCEEDED);
	while (carry_state(p, &a) == PROPOSAL_STATE_DISPATCHING)
		(void)usleep(5000);
	assert_int_equal(carry_row(p, &a).state, EXECUTION_STATE_SUCCEEDED);
	play_want_silence(p, p->api, 100);
}

/* A broker that answers about something else is not believed: the execution is asked about again. */
static void
test_other(void **state)
{
	BEGIN(p, a);

	carry_dispatch(p, &a, 1);
	SAY_TAG(p->broker, a.execute_tag, EXECUTED, executed, -1,
		{.execution = {{9}}, .attempt = ATTEMPT_SUCCEEDED, .receipt = view_str("{}")});
	WANT(p, p->broker, EXECUTION_ASK, execution_ask, m);
	assert_true(id_eq(&m.execution, &a.execution));
	assert_true(id_eq(&m.proposal, &a.proposal));
	a.execute_tag = p->in.tag;
	carry_executed(p, &a, ATTEMPT_FAILED);
	carry_decided(p, &a, PROPOSAL_STATE_FAILED);
	assert_int_equal(carry_row(p, &a).denial, DENIAL_PROVIDER_ANSWER);
}

/* A list, by pages and by what is open. */
static void
test_list(void **state)
{
	BEGIN(p, a);
	struct id ids[3];
	struct caller other = play_token(p, "umbra", "", 7), own = play_token(p, "acme", "", 8);

	for (unsigned i = 0; i < 3; i++) {
		carry_dispatch(p, &a, i);
		carry_executed(p, &a, i == 1 ? ATTEMPT_UNKNOWN : ATTEMPT_SUCCEEDED);
		carry_decided(p, &a, i == 1 ? PROPOSAL_STATE_UNKNOWN : PROPOSAL_STATE_SUCCEEDED);
		ids[i] = a.execution;
	}
	ASK(p, EXECUTION_LIST, execution_list, {.caller = own, .limit = 2});
	for (unsigned i = 0; i < 2; i++) {
		ANSWER(p, EXECUTION_ROW, execution_row, row);
		assert_true(id_eq(&row.execution, &ids[2 - i]));
	}
	ANSWER(p, END, end, more);
	assert_true(more.more);
	ASK(p, EXECUTION_LIST, execution_list, {.caller = as_root, .after = ids[1], .limit = 2});
	ANSWER(p, EXECUTION_ROW, execution_row, last);
	assert_true(id_eq(&last.execution, &ids[0]));
	ANSWER(p, END, end, end);
	assert_false(end.more);
	ASK(p, EXECUTION_LIST, execution_list, {.caller = own, .open = true});
	ANSWER(p, EXECUTION_ROW, execution_row, open);
	assert_true(id_eq(&open.execution, &ids[1]));
	ANSWER(p, END, end, end_open);
	/* Nobody of another tenant. */
	ASK(p, EXECUTION_LIST, execution_list, {.caller = other});
	ANSWER(p, END, end, nothing);
	ASK(p, EXECUTION_GET, execution_get, {.caller = other, .execution = ids[0]});
	play_refused(p, ERROR_NOT_FOUND);
}

/* ---- pages ---- */

/* While the engine is not there. */
static void
change(struct play *p, const char *sql)
{
	char path[128];
	sqlite3 *db;

	(void)snprintf(path, sizeof(path), "%s/engine/engine.db", p->dir);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		fail_msg("%s", sqlite3_errmsg(db));
	(void)sqlite3_close(db);
}

/* What was begun has used its grant, however it ended: else a provider that refuses is asked without end. */
static void
test_failed_keeps_its_use(void **state)
{
	BEGIN(p, a);
	char text[ID_TEXT];

	carry_dispatch(p, &a, 1);
	carry_executed(p, &a, ATTEMPT_FAILED);
	carry_decided(p, &a, PROPOSAL_STATE_FAILED);
	id_text(&a.task, ID_TASK, text);
	ASK(p, GRANT_LIST, grant_list, {.caller = as_root, .task = view_str(text)});
	ANSWER(p, GRANT_ROW, grant_row, row);
	assert_int_equal(row.used, 1);
	ANSWER(p, END, end, end);
}

/* A page of grants: counted, and the last of it. */
static struct id
grants(struct play *p, unsigned *n, bool more)
{
	struct msg_grant_row row = {0};

	for (play_want_any(p, p->api); p->in.type == MSG_GRANT_ROW; play_want_any(p, p->api)) {
		play_decoded(msg_grant_row_get(p->in.body, &row, &(struct err){0}), "GRANT_ROW");
		(*n)++;
	}
	assert_int_equal(p->in.type, MSG_END);
	assert_int_equal(p->in.body.p[0], more);
	return row.grant;
}

/* What still gives something is not hidden behind grants that were issued after it and are over: the list goes on. */
static void
test_grants_in_pages(void **state)
{
	BEGIN(p, a);
	char text[ID_TEXT];
	struct id last;
	unsigned n = 0;

	play_kill(p);
	change(p, "WITH RECURSIVE n (v) AS (SELECT 1 UNION SELECT v + 1 FROM n WHERE v < 250) "
		  "INSERT INTO grant_ (id, task, tenant, operation, version, document, where_, "
		  "uses, created_ms, "
		  "expires_ms, revoked_ms, issuer) SELECT randomblob(10), task, tenant, operation, "
		  "version, "
		  "document, where_, uses, created_ms, expires_ms, 1, issuer FROM grant_, n");
	play_start(p);
	id_text(&a.task, ID_TASK, text);
	ASK(p, GRANT_LIST, grant_list, {.caller = as_root, .task = view_str(text)});
	last = grants(p, &n, true);
	assert_int_equal(n, 200);
	ASK(p, GRANT_LIST, grant_list, {.caller = as_root, .task = view_str(text), .after = last});
	last = grants(p, &n, false);
	assert_int_equal(n, 251);
	assert_true(id_eq(&last, &a.grant));
	ASK(p, GRANT_LIST, grant_list, {.caller = as_root, .task = view_str(text), .after = last});
	(void)grants(p, &n, false);
	assert_int_equal(n, 251);
	carry_start_task(p, &a); /* of another task it is not a place to go on */
	id_text(&a.task, ID_TASK, text);
	ASK(p, GRANT_LIST, grant_list, {.caller = as_root, .task = view_str(text), .after = last});
	play_refused(p, ERROR_NOT_FOUND);
}

/* What people signed is the larger part of a row: a page counts it, so that no list is more than the api's queue may hold. */
static void
test_page_counts_decisions(void **state)
{
	BEGIN(p, a);
	size_t bytes = 0;
	unsigned n = 0;

	for (unsigned i = 0; i < 32; i++) {
		if (i % 16 == 0) {
			carry_start_task(p, &a);
			carry_grant(p, &a, "reply", 50);
		}
		carry_reply(p, &a, i);
	}
	play_kill(p);
	/* Five decisions as long as they may be, of every one. */
	change(p, "INSERT INTO decision (proposal, approver, key, approve, decision, signature, "
		  "seen_ms) "
		  "SELECT id, 'p' || v, 'k', 1, zeroblob(4096), zeroblob(4096), 1 FROM proposal, "
		  "(SELECT 1 AS v UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 UNION SELECT 5)");
	play_start(p);
	ASK(p, PROPOSAL_LIST, proposal_list, {.caller = as_root});
	for (play_want_any(p, p->api); p->in.type == MSG_PROPOSAL_ROW;
		play_want_any(p, p->api), n++)
		bytes += p->in.body.n;
	assert_int_equal(p->in.type, MSG_END);
	assert_int_equal(p->in.body.p[0], 1); /* more */
	assert_true(bytes > 1048576 - 65536 && bytes < 1048576 + 65536);
	assert_true(n > 20 && n < 32);
}

/* ---- one tenant does not stop the others ---- */

enum { FLOOD = 16 }; /* LIMIT_EXECUTES_PER_TENANT */

static void
task_of(struct play *p, struct carry *a, const char *tenant)
{
	*a = (struct carry){0};
	buf_init(&a->approvals, 65536);
	a->task = play_task(p, tenant);
	carry_grant(p, a, "reply", 50);
}

/* A proposal of the task of `of`, approved; nobody of the test reads further. */
static void
approved_one(struct play *p, struct carry *a, const struct carry *of, unsigned n)
{
	*a = (struct carry){.task = of->task, .grant = of->grant};
	buf_init(&a->approvals, 65536);
	carry_reply(p, a, n);
	carry_approve(p, a, "anna");
}

/*
 * The broker takes a bounded number of things, and what it refuses is over. So one tenant whose provider does not answer has its
 * share and no more: what else it approved waits, another tenant's is sent, and each end begins the next.
 */
static void
test_slow_executions_of_one_tenant(void **state)
{
	BEGIN(p, a);
	static struct carry many[FLOOD + 1];
	static struct carry other, first;

	for (unsigned i = 0; i < FLOOD; i++) {
		approved_one(p, &many[i], &a, i);
		carry_execute(p, &many[i]);
	}
	approved_one(p, &many[FLOOD], &a, FLOOD);
	carry_decided(p, &many[FLOOD], PROPOSAL_STATE_APPROVED); /* the answer: it waits */
	play_want_silence(p, p->broker, 100);

	task_of(p, &other, "other");
	approved_one(p, &first, &other, 1);
	carry_execute(p, &first);
	carry_executed(p, &first, ATTEMPT_SUCCEEDED);
	carry_decided(p, &first, PROPOSAL_STATE_SUCCEEDED);

	carry_executed(p, &many[0], ATTEMPT_SUCCEEDED);
	carry_decided(p, &many[0], PROPOSAL_STATE_SUCCEEDED);
	carry_execute(p, &many[FLOOD]);
	carry_executed(p, &many[FLOOD], ATTEMPT_SUCCEEDED);
	for (unsigned i = 1; i < FLOOD; i++) {
		carry_executed(p, &many[i], ATTEMPT_SUCCEEDED);
		carry_decided(p, &many[i], PROPOSAL_STATE_SUCCEEDED);
	}
	assert_int_equal(carry_state(p, &many[FLOOD]), PROPOSAL_STATE_SUCCEEDED);
	for (unsigned i = 0; i <= FLOOD; i++)
		carry_done(&many[i]);
	carry_done(&first);
	carry_done(&other);
}

/* A tenant whose decisions fill the broker's ear leaves room for those of others. */
static void
test_decisions_of_one_tenant(void **state)
{
	BEGIN(p, a);
	struct carry other;

	carry_reply(p, &a, 1);
	for (int i = 0; i < 8; i++)
		carry_ask(p, &a, "anna", clock_real_ms() + 60000);
	task_of(p, &other, "other");
	carry_reply(p, &other, 1);
	carry_ask(p, &other, "bert", clock_real_ms() + 60000);
	carry_yes(p, "bert");
	carry_execute(p, &other);
	carry_executed(p, &other, ATTEMPT_SUCCEEDED);
	carry_decided(p, &other, PROPOSAL_STATE_SUCCEEDED);
	carry_done(&other);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(once),
		TEST(denied),
		TEST(page_behind_a_strange_one),
		TEST(page_counts_decisions),
		TEST(failed_keeps_its_use),
		TEST(grants_in_pages),
		TEST(slow_executions_of_one_tenant),
		TEST(decisions_of_one_tenant),
		TEST(refused),
		TEST(incident),
		TEST(D3_two_hundred_decisions_one_execute),
		TEST(G16_the_same_again_is_the_earlier_one),
		TEST(many),
		TEST(C2_approved_too_late_is_expired),
		TEST(F11_unknown_keeps_its_reservation),
		TEST(H12_a_closed_task),
		TEST(slow),
		TEST(other),
		TEST(list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
