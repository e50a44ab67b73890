/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Policies of tasks and sandboxes, and their gateways: who may use which, what a sandbox is created with and keeps, when it is ready, what a lost
 * gateway means, what is on record before anything may move, and what people are shown of it.
 */
#include "gates.h"

#include "trace.h"

#include "lib/base/hex.h"

#include <poll.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- who may use which ---- */

static void
task_refused(struct play *p, const char *tenant, const char *policy, enum error error)
{
	ASK(p, TASK_CREATE, task_create,
		{.caller = as_root,
			.tenant = view_str(tenant),
			.template = view_str("python"),
			.policy = view_str(policy)});
	play_refused(p, error);
}

static void
test_a_policy_of_another_tenant_is_none(void **state)
{
	struct gates *g = *state;
	struct play *p = &g->p;
	struct caller zeta = play_token(p, "zeta", "", 1);

	task_refused(p, "zeta", "support", ERROR_NOT_FOUND);
	task_refused(p, "acme", "zeta_only", ERROR_NOT_FOUND);
	task_refused(p, "acme", "nothing", ERROR_NOT_FOUND);
	ASK(p, SANDBOX_CREATE, sandbox_create,
		{.caller = zeta, .template = view_str("python"), .policy = view_str("support")});
	play_refused(p, ERROR_NOT_FOUND);
	play_want_silence(p, p->supervisor, 20);
	(void)gates_task(g, "zeta", "zeta_only");
	(void)gates_task(g, "zeta", "open");
	/* What they see is what they may use. */
	ASK(p, POLICY_GET, policy_get, {.caller = zeta, .name = view_str("support")});
	play_refused(p, ERROR_NOT_FOUND);
	ASK(p, POLICY_LIST, policy_list, {.caller = zeta});
	ANSWER(p, POLICY_ROW, policy_row, first);
	assert_true(view_is(first.name, "open"));
	ANSWER(p, POLICY_ROW, policy_row, second);
	assert_true(view_is(second.name, "zeta_only"));
	ANSWER(p, END, end, end);
	/* Nor is there a way over the task of another. */
	char name[ID_TEXT];
	id_text(&g->task, ID_TASK, name);
	ASK(p, POLICY_GET, policy_get, {.caller = zeta, .task = view_str(name)});
	play_refused(p, ERROR_NOT_FOUND);
	ASK(p, NET_GET, net_get, {.caller = zeta, .task = view_str(name)});
	play_refused(p, ERROR_NOT_FOUND);
}

static void
test_defaults(void **state)
{
	struct gates *g = *state;
	struct play *p = &g->p;

	/* No default: none. */
	ASK(p, TASK_CREATE, task_create,
		{.caller = as_root, .tenant = view_str("acme"), .template = view_str("python")});
	ANSWER(p, TASK_ROW, task_row, bare);
	assert_int_equal(bare.policy.n, 0);
	play_kill(p);
	(void)snprintf(p->settings.default_policy, sizeof(p->settings.default_policy), "open");
	play_start(p);
	ASK(p, TASK_CREATE, task_create,
		{.caller = as_root, .tenant = view_str("acme"), .template = view_str("python")});
	ANSWER(p, TASK_ROW, task_row, open);
	assert_true(view_is(open.policy, "open"));
	(void)gates_task(g, "acme", "none");
	/* A sandbox without a task gets it too, and its captured addresses are those that the policy wants. */
	ASK(p, SANDBOX_CREATE, sandbox_create,
		{.caller = as_root, .tenant = view_str("acme"), .template = view_str("python")});
	WANT(p, p->supervisor, SPAWN, spawn, spawn);
	struct facts f = play_facts(p, &spawn.limits);
	f.captured = 51; /* it captures: 60 */
	int relay = play_spawned(p, &spawn.sandbox, &f);
	WANT(p, p->supervisor, KILL, kill, kill);
	assert_int_equal(kill.reason, SANDBOX_REASON_MEASURED_DIFFERENT);
	(void)close(relay);
}

static void
test_a_sandbox_has_its_tasks_policy(void **state)
{
	struct gates *g = *state;
	struct play *p = &g->p;
	struct id bare = gates_task(g, "acme", "none");

	ASK(p, SANDBOX_CREATE, sandbox_create,
		{.caller = as_root, .task = g->task, .policy = view_str("open")});
	play_refused(p, ERROR_CONFLICT);
	ASK(p, SANDBOX_CREATE, sandbox_create,
		{.caller = as_root, .task = g->task, .policy = view_str("none")});
	play_refused(p, ERROR_CONFLICT);
	ASK(p, SANDBOX_CREATE, sandbox_create,
		{.caller = as_root, .task = bare, .policy = view_str("support")});
	play_refused(p, ERROR_CONFLICT);
	play_want_silence(p, p->supervisor, 20);
	/* Naming the same is fine, and resuming gives it again. */
	ASK(p, SANDBOX_CREATE, sandbox_create,
		{.caller = as_root, .task = g->task, .policy = view_str("support")});
	WANT(p, p->supervisor, SPAWN, spawn, one);
	ASK(p, TASK_RESUME, task_resume, {.caller = as_root, .task = g->task});
	WANT(p, p->supervisor, SPAWN, spawn, two);
	assert_memory_equal(one.policy, two.policy, 32);
	ASK(p, SANDBOX_CREATE, sandbox_create, {.caller = as_root, .task = bare});
	WANT(p, p->supervisor, SPAWN, spawn, three);
	static const uint8_t zero[32];
	assert_memory_equal(three.policy, zero, 32);
	(void)play_audit(p, &g->task);
	assert_true(play_record(p, "task.create", "\"policy\":\"support\""));
	assert_true(play_record(p, "sandbox.create", "\"policy\":\"support\",\"policy_digest\":"));
}

/* ---- ready ---- */

/* The row of the creation comes after both are ready and the agent was told what to trust, whichever came first. */
static void
test_ready_when_both_are(void **state)
{
	struct gates *g = *state;
	struct play *p = &g->p;
	struct boxed b;

	boxed_begin(g, &g->task, &b);
	SAY(b.relay, RELAY_READY, relay_ready, {.agent_version = 1});
	play_want_silence(p, p->api, 50);
	play_want_silence(p, b.relay, 20);
	gateway_ready(&b);
	WANT(p, b.relay, RELAY_TRUST, relay_trust, first);
	ANSWER(p, SANDBOX_ROW, sandbox_row, row);
	boxed_begin(g, &g->task, &b);
	gateway_ready(&b);
	play_want_silence(p, p->api, 50);
	SAY(b.relay, RELAY_READY, relay_ready, {.agent_version = 1});
	WANT(p, b.relay, RELAY_TRUST, relay_trust, second);
	ANSWER(p, SANDBOX_ROW, sandbox_row, other);
	/* Nothing is intercepted: nothing to trust. */
	boxed_begin(g, &g->task, &b);
	SAY(b.gateway, GATEWAY_READY, gateway_ready, {0});
	SAY(b.relay, RELAY_READY, relay_ready, {.agent_version = 1});
	ANSWER(p, SANDBOX_ROW, sandbox_row, third);
	play_want_silence(p, b.relay, 20);
}

/* A policy of as many names as there can be: the authority's constraints have them all. */
static void
test_the_largest_that_can_be_trusted(void **state)
{
	static uint8_t text[24576]; /* GATEWAY_READY, RELAY_TRUST and TRUST take no more */
	struct gates *g = *state;
	struct play *p = &g->p;
	struct boxed b;

	memset(text, 'x', sizeof(text));
	boxed_begin(g, &g->task, &b);
	SAY(b.gateway, GATEWAY_READY, gateway_ready,
		{.certificate = view_of(text, sizeof(text)),
			.keystore = view_of(text, sizeof(text))});
	SAY(b.relay, RELAY_READY, relay_ready, {.agent_version = 1});
	WANT(p, b.relay, RELAY_TRUST, relay_trust, trust);
	assert_true(view_eq(trust.certificate, view_of(text, sizeof(text))));
	assert_true(view_eq(trust.keystore, view_of(text, sizeof(text))));
	ANSWER(p, SANDBOX_ROW, sandbox_row, row);
	assert_int_equal(row.state, SANDBOX_STATE_RUNNING);
}

/* The task's inputs and its first job come behind the trust. */
static void
test_trust_before_inputs_and_jobs(void **state)
{
	struct gates *g = *state;
	struct play *p = &g->p;
	struct msg_input_row input;
	struct boxed b;

	play_input(p, &g->task, "/workspace/a", "text", &input);
	boxed_begin(g, &g->task, &b);
	SAY(b.relay, RELAY_READY, relay_ready, {.agent_version = 1});
	play_want_silence(p, b.relay, 50);
	gateway_ready(&b);
	WANT(p, b.relay, RELAY_TRUST, relay_trust, trust);
	WANT(p, b.relay, JOB_START, job_start, start);
	assert_int_equal(start.kind, JOB_KIND_FILE_WRITE);
}

static void
test_a_lost_gateway_takes_its_sandbox_along(void **state)
{
	struct gates *g = *state;
	struct play *p = &g->p;
	struct boxed b;

	boxed_begin(g, &g->task, &b);
	gateway_close(g, &b);
	WANT(p, p->supervisor, KILL, kill, early);
	assert_int_equal(early.reason, SANDBOX_REASON_GATEWAY_LOST);
	play_gone(p, &b.sandbox, SANDBOX_REASON_GATEWAY_LOST);
	play_refused(p, ERROR_SPAWN);
	boxed_create(g, &g->task, &b);
	gateway_close(g, &b);
	WANT(p, p->supervisor, KILL, kill, late);
	assert_int_equal(late.reason, SANDBOX_REASON_GATEWAY_LOST);
	play_gone(p, &b.sandbox, SANDBOX_REASON_GATEWAY_LOST);
	play_want_closed(p, b.relay);
	ASK(p, SANDBOX_GET, sandbox_get, {.caller = as_root, .sandbox = b.sandbox});
	ANSWER(p, SANDBOX_ROW, sandbox_row, row);
	assert_int_equal(row.reason, SANDBOX_REASON_GATEWAY_LOST);
	/* A gateway that is seen to end before its sandbox's other end is told, is no fault of its own. */
	boxed_create(g, &g->task, &b);
	gateway_close(g, &b);
	WANT(p, p->supervisor, KILL, kill, ttl);
	play_gone(p, &b.sandbox, SANDBOX_REASON_TTL);
	play_want_closed(p, b.relay);
	ASK(p, SANDBOX_GET, sandbox_get, {.caller = as_root, .sandbox = b.sandbox});
	ANSWER(p, SANDBOX_ROW, sandbox_row, ended);
	assert_int_equal(ended.reason, SANDBOX_REASON_TTL);
}

/* ---- records ---- */

static void
test_a_verdict_is_on_record(void **state)
{
	struct gates *g = *state;
	struct play *p = &g->p;
	struct msg_verdict m = good_verdict();
	char digest[SHA256_TEXT];
	struct boxed b;

	boxed_create(g, &g->task, &b);
	assert_int_equal(verdict_say(g, &b, 1, &m), EGRESS_REASON_NONE);
	play_kill(p); /* it was answered, so it is there */
	gates_restart(g, &b, 1);
	(void)play_audit(p, &g->task);
	assert_int_equal(play_events(p, "egress.verdict"), 1);
	hex_encode(m.digest, 32, digest);
	assert_true(play_record(p, "egress.verdict", digest));
	assert_true(play_record(p, "egress.verdict", "{\"address\":\"203.0.113.7\",\"digest\":"));
	assert_true(play_record(p, "egress.verdict",
		"\"method\":\"GET\",\"name\":\"docs.example\",\"path\":\"/help/a%2Fb/"
		"c\",\"policy\":"));
	assert_true(play_record(p, "egress.verdict",
		"\"port\":443,\"query\":[\"lang\"],\"reason\":\"none\",\"rule\":1,\"scheme\":"
		"\"https\",\"verdict\":\"allowed\""));
	assert_true(play_record(p, "egress.verdict", "\"kind\":\"sandbox\""));
	/* The same again is one row, and flows are added to it. */
	assert_int_equal(verdict_say(g, &b, 2, &m), EGRESS_REASON_NONE);
	SAY(b.gateway, FLOW, flow,
		{.verdict = m.verdict,
			.scheme = m.scheme,
			.rule = m.rule,
			.port = m.port,
			.name = m.name,
			.count = 40,
			.bytes_out = 1000,
			.bytes_in = 2000000});
	m.reason = EGRESS_REASON_NO_RULE;
	m.verdict = VERDICT_REFUSED;
	m.rule = EGRESS_NO_RULE;
	m.name = view_str("intake.evil.tld");
	m.address = m.path = m.method = m.query = view_of(NULL, 0);
	memset(m.digest, 0, 32);
	assert_int_equal(verdict_say(g, &b, 3, &m), EGRESS_REASON_NONE);
	(void)play_audit(p, &g->task);
	assert_true(play_record(p, "egress.flow",
		"{\"bytes_in\":2000000,\"bytes_out\":1000,\"count\":40,\"name\":\"docs.example\""));
	struct msg_net_budget budget = {0};
	struct msg_net_row rows[4];
	size_t n = 4;
	gates_net(g, &g->task, &budget, rows, &n);
	assert_int_equal(n, 2);
	const struct msg_net_row *docs = &rows[rows[0].verdict == VERDICT_ALLOWED ? 0 : 1];
	assert_int_equal(docs->count, 42);
	assert_int_equal(docs->bytes_in, 2000000);
	assert_int_equal(docs->bytes_out, 1000);
	assert_int_equal(budget.limit.names, 40);
}

/* Killed before each write, sync and message: what was answered as kept is on record, whatever the moment. */
static void
test_killed_at_each_step_of_a_verdict(void **state)
{
	struct gates *g = *state;
	struct play *p = &g->p;
	struct msg_verdict m = good_verdict();
	bool killed = true;
	unsigned n = 1, kept = 0;

	for (; killed; n++) {
		struct boxed b;
		struct trace t;
		bool answered;

		g->task = gates_task(g, "acme", "support");
		boxed_create(g, &g->task, &b);
		(void)usleep(300000);
		trace_begin(&t, p->engine, n);
		SAY_TAG(b.gateway, 1, VERDICT, verdict, -1, m);
		answered = play_read(p, b.gateway);
		if (answered) {
			struct msg_verdict_kept is;

			play_decoded(msg_verdict_kept_get(p->in.body, &is, &(struct err){0}), "");
			assert_true(is.kept);
			(void)usleep(20000); /* the rest of that turn, if there were any */
		}
		killed = trace_killed(&t);
		trace_end(&t);
		trace_free(&t);
		gates_restart(g, &b, 1);
		(void)play_audit(p, &g->task);
		assert_true(!answered || play_events(p, "egress.verdict") == 1);
		kept += answered;
		boxed_end(g, &b, SANDBOX_REASON_KILLED);
	}
	assert_true(n > 3 && kept > 0);
}

static void
test_distinct_requests_for_replay(void **state)
{
	struct gates *g = *state;
	struct play *p = &g->p;
	struct caller acme = play_token(p, "acme", "", 1), zeta = play_token(p, "zeta", "", 2);
	struct msg_verdict m = good_verdict();
	struct boxed b;

	boxed_create(g, &g->task, &b);
	for (uint64_t i = 0; i < 6; i++) {
		m.path = view_str(i % 2 == 0 ? "/help/one" : "/help/two");
		assert_int_equal(verdict_say(g, &b, i, &m), EGRESS_REASON_NONE);
	}
	ASK(p, EGRESS_LIST, egress_list, {.caller = acme, .limit = 1});
	ANSWER(p, EGRESS_ROW, egress_row, one);
	assert_true(view_is(one.path, "/help/one") && view_is(one.policy, "support"));
	assert_true(view_is(one.name, "docs.example") && view_is(one.method, "GET"));
	assert_true(view_eq(one.query, view_of("lang", 5)) && view_is(one.tenant, "acme"));
	assert_int_equal(one.counted, 3);
	assert_true(id_eq(&one.task, &g->task));
	uint64_t first = one.row, last = one.last_ms;
	ANSWER(p, END, end, more);
	assert_true(more.more);
	ASK(p, EGRESS_LIST, egress_list, {.caller = acme, .after = first});
	ANSWER(p, EGRESS_ROW, egress_row, two);
	assert_true(view_is(two.path, "/help/two"));
	last = two.last_ms > last ? two.last_ms : last;
	ANSWER(p, END, end, no_more);
	assert_false(no_more.more);
	ASK(p, EGRESS_LIST, egress_list, {.caller = as_root, .since_ms = last + 1});
	ANSWER(p, END, end, none);
	ASK(p, EGRESS_LIST, egress_list, {.caller = zeta});
	ANSWER(p, END, end, others);
	ASK(p, EGRESS_LIST, egress_list,
		{.caller = as_root, .since_ms = UINT64_MAX, .after = UINT64_MAX});
	ANSWER(p, END, end, far);
}

static void
test_what_programs_choose_is_bounded(void **state)
{
	struct gates *g = *state;
	struct play *p = &g->p;
	struct msg_verdict m = good_verdict();
	struct msg_net_budget budget;
	struct msg_net_row rows[1];
	char name[64], path[64];
	size_t rows_n = 1, n = 0;
	struct boxed b;

	m.verdict = VERDICT_REFUSED;
	m.reason = EGRESS_REASON_NO_RULE;
	m.rule = EGRESS_NO_RULE;
	/* Twice the rows; the engine reads slower after the first thousand, so several sandboxes. */
	for (unsigned box = 0; box < 5; box++) {
		boxed_create(g, &g->task, &b);
		for (unsigned i = 0; i < 1000; i++) {
			unsigned k = box * 1000 + i;

			(void)snprintf(name, sizeof(name), "n%u.example", k);
			(void)snprintf(path, sizeof(path), "/p%u", k);
			m.name = view_str(name);
			m.path = view_str(path);
			SAY_TAG(b.gateway, k, VERDICT, verdict, -1, m);
			play_want(p, b.gateway, MSG_VERDICT_KEPT);
		}
	}
	gates_net(g, &g->task, &budget, rows, &rows_n);
	assert_int_equal(rows_n, 200); /* a page */
	assert_int_equal(rows[0].name.n, 0);
	assert_int_equal(rows[0].count, 3000);
	for (uint64_t after = 0;;) {
		bool end;

		ASK(p, EGRESS_LIST, egress_list, {.caller = as_root, .after = after});
		for (;;) {
			struct msg_egress_row row;

			play_want_any(p, p->api);
			if (p->in.type == MSG_END)
				break;
			play_decoded(msg_egress_row_get(p->in.body, &row, &(struct err){0}), "ROW");
			after = row.row;
			n++;
			/* 2000 whole ones, 2000 without a path, and the rest in one. */
			assert_int_equal(row.path.n != 0, n <= 2000);
			assert_int_equal(row.name.n != 0, n <= 4000);
			assert_int_equal(row.counted, n <= 4000 ? 1 : 1000);
		}
		struct msg_end m_end;
		play_decoded(msg_end_get(p->in.body, &m_end, &(struct err){0}), "END");
		end = !m_end.more;
		if (end)
			break;
	}
	assert_int_equal(n, 4001);
}

/* ---- restart ---- */

static void
test_it_goes_on_after_a_restart(void **state)
{
	struct gates *g = *state;
	struct play *p = &g->p;
	struct msg_verdict m = good_verdict();
	struct boxed b[2];

	boxed_create(g, &g->task, &b[0]);
	boxed_create(g, &g->task, &b[1]);
	/* The host has another revision of it now: the sandboxes keep theirs. */
	play_policy(p, NULL);
	play_policy(
		p, gates_support("{\"brokered\":1,\"bytes_in\":1,\"bytes_out\":1,\"connections\":1,"
				 "\"handshakes\":1,\"names\":1,\"requests\":1}"));
	gates_restart(g, b, 2);
	play_want_silence(p, b[0].relay, 20); /* what is to be trusted was told by the first */
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(verdict_say(g, &b[i], i, &m), EGRESS_REASON_NONE);
	assert_int_equal(allot(g, &b[0], &(struct egress){0}).total.names, 5);
	ASK(p, POLICY_GET, policy_get, {.caller = as_root, .name = view_str("support")});
	ANSWER(p, POLICY_ROW, policy_row, now);
	assert_true(now.current);
	assert_int_equal(now.sandboxes, 2);
	char name[ID_TEXT];
	id_text(&g->task, ID_TASK, name);
	ASK(p, POLICY_GET, policy_get, {.caller = as_root, .task = view_str(name)});
	ANSWER(p, POLICY_ROW, policy_row, pinned);
	assert_false(pinned.current);
	assert_true(view_is(pinned.document, gates_support(GATES_BUDGETS)));
	/* And without it in the files at all: old ones go on, there is no new one. */
	play_policy(p, NULL);
	gates_restart(g, b, 2);
	assert_int_equal(verdict_say(g, &b[0], 9, &m), EGRESS_REASON_NONE);
	ASK(p, SANDBOX_CREATE, sandbox_create, {.caller = as_root, .task = g->task});
	play_refused(p, ERROR_NOT_FOUND);
}

/* Held, but its gateway is not: it could not be judged any more. */
static void
test_held_without_a_gateway_ends(void **state)
{
	struct gates *g = *state;
	struct play *p = &g->p;
	struct boxed b;
	struct err err;
	int pair[2];

	boxed_create(g, &g->task, &b);
	play_kill(p);
	play_launch(p);
	assert_int_equal(ipc_pair(pair, &err), 0);
	SAY_FD(p->supervisor, HELD, held, pair[1],
		{.sandbox = b.sandbox, .task = g->task, .facts = b.facts, .ttl_left_ms = 60000});
	SAY(p->supervisor, HELD_END, held_end, {0});
	WANT(p, p->supervisor, KILL, kill, kill);
	assert_int_equal(kill.reason, SANDBOX_REASON_GATEWAY_LOST);
}

/* Of a sandbox that the engine does not want, its gateway's edge follows all the same. */
static void
test_the_edge_of_an_unwanted_one_is_nobodys(void **state)
{
	struct gates *g = *state;
	struct play *p = &g->p;
	struct id stranger;
	struct err err;
	int pair[2], gateway[2];

	play_kill(p);
	play_launch(p);
	id_new(&stranger);
	assert_int_equal(ipc_pair(pair, &err), 0);
	assert_int_equal(ipc_pair(gateway, &err), 0);
	SAY_FD(p->supervisor, HELD, held, pair[1], {.sandbox = stranger, .task = g->task});
	SAY_FD(p->supervisor, GATEWAY_EDGE, gateway_edge, gateway[1], {.sandbox = stranger});
	WANT(p, p->supervisor, KILL, kill, kill);
	(void)close(gateway[1]);
	assert_int_equal(poll(&(struct pollfd){.fd = gateway[0], .events = POLLIN}, 1, 5000), 1);
	assert_int_equal(read(gateway[0], &(char){0}, 1), 0); /* the engine keeps nothing of it */
	play_ready(p);
}

/* ---- authority ---- */

static void
nothing_leaves(struct gates *g, struct boxed *b)
{
	struct msg_verdict m = good_verdict();

	assert_int_equal(verdict_say(g, b, 5, &m), EGRESS_REASON_CONTAINED);
}

static void
test_a_revoked_task_reaches_nothing(void **state)
{
	struct gates *g = *state;
	struct play *p = &g->p;
	struct msg_verdict m = good_verdict();
	struct boxed b;
	char name[ID_TEXT];

	id_text(&g->task, ID_TASK, name);
	boxed_create(g, &g->task, &b);
	assert_int_equal(verdict_say(g, &b, 1, &m), EGRESS_REASON_NONE);
	ASK(p, AUTHORITY_REVOKE, authority_revoke,
		{.caller = as_root, .kind = AUTHORITY_TASK, .name = view_str(name)});
	play_want(p, p->api, MSG_DONE);
	play_want(p, b.gateway, MSG_EGRESS_END); /* what is open ends too */
	nothing_leaves(g, &b);
	(void)play_audit(p, &g->task);
	assert_int_equal(play_events(p, "egress.revoke"), 1);
	assert_int_equal(play_events(p, "egress.verdict"), 1);
	gates_restart(g, &b, 1);
	play_want(p, b.gateway, MSG_EGRESS_END); /* it may not have heard it */
	nothing_leaves(g, &b);
}

static void
test_a_contained_or_closed_task_reaches_nothing(void **state)
{
	struct gates *g = *state;
	struct play *p = &g->p;
	struct id other = gates_task(g, "acme", "support");
	struct boxed b, c;

	boxed_create(g, &g->task, &b);
	boxed_create(g, &other, &c);
	ASK(p, TASK_CLOSE, task_close, {.caller = as_root, .task = other});
	WANT(p, p->supervisor, KILL, kill, closed);
	nothing_leaves(g, &c);
	play_gone(p, &c.sandbox, SANDBOX_REASON_TASK_CLOSED);
	play_want(p, p->api, MSG_TASK_ROW);
	ASK(p, CONTAIN, contain, {.caller = as_root, .scope = view_str("tenant:acme")});
	WANT(p, p->supervisor, KILL, kill, kill);
	nothing_leaves(g, &b);
	(void)play_audit(p, &g->task);
	assert_int_equal(play_events(p, "egress.verdict"), 0);
}

/* Contained right before the engine died: its gateways may speak before anybody is ended. */
static void
test_contained_before_it_is_ended(void **state)
{
	struct gates *g = *state;
	struct play *p = &g->p;
	struct boxed b;
	char path[128];
	sqlite3 *db;

	boxed_create(g, &g->task, &b);
	play_kill(p);
	(void)snprintf(path, sizeof(path), "%s/engine/engine.db", p->dir);
	assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db,
				 "INSERT INTO containment (scope, reason, who, since_ms) VALUES "
				 "('host', 'test', 'uid:0', 1)",
				 NULL, NULL, NULL),
		SQLITE_OK);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
	gates_held(g, &b, 1);
	play_want(p, b.gateway, MSG_EGRESS_END);
	nothing_leaves(g, &b);
	SAY(p->supervisor, HELD_END, held_end, {0});
	WANT(p, p->supervisor, KILL, kill, kill);
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, gates_setup, gates_teardown)
	const struct CMUnitTest tests[] = {
		T(test_a_policy_of_another_tenant_is_none),
		T(test_defaults),
		T(test_a_sandbox_has_its_tasks_policy),
		T(test_ready_when_both_are),
		T(test_the_largest_that_can_be_trusted),
		T(test_trust_before_inputs_and_jobs),
		T(test_a_lost_gateway_takes_its_sandbox_along),
		T(test_a_verdict_is_on_record),
		T(test_killed_at_each_step_of_a_verdict),
		T(test_distinct_requests_for_replay),
		T(test_what_programs_choose_is_bounded),
		T(test_it_goes_on_after_a_restart),
		T(test_held_without_a_gateway_ends),
		T(test_the_edge_of_an_unwanted_one_is_nobodys),
		T(test_a_revoked_task_reaches_nothing),
		T(test_a_contained_or_closed_task_reaches_nothing),
		T(test_contained_before_it_is_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
