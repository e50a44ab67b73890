/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The budgets of a task, lent to its sandboxes: never more than there is, whoever asks at the same time, whoever crashes, whatever a gateway says that
 * it used.
 */
#include "gates.h"

#include "trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>

#include <cmocka.h>

static struct msg_net_budget
budget(struct gates *g)
{
	struct msg_net_budget b = {0};

	gates_net(g, &g->task, &b, NULL, NULL);
	assert_int_equal(b.limit.names, 40);
	return b;
}

/* The policy: names 40, connections 400, handshakes 200, requests 800, brokered 16, 8 MB out, 64 MB in. An eighth at a time. */
static void
test_slices(void **state)
{
	struct gates *g = *state;
	struct egress used = {0};
	struct msg_allotment m, again;
	struct boxed b;

	boxed_create(g, &g->task, &b);
	m = allot(g, &b, &used);
	assert_int_equal(m.total.names, 5);
	assert_int_equal(m.total.connections, 50);
	assert_int_equal(m.total.handshakes, 25);
	assert_int_equal(m.total.requests, 100);
	assert_int_equal(m.total.brokered, 2);
	assert_int_equal(m.total.bytes_out, 1000000);
	assert_int_equal(m.total.bytes_in, 8000000);
	assert_false(m.over);
	/* Asking again brings nothing; a half is gone: filled up. */
	again = allot(g, &b, &used);
	assert_memory_equal(&again.total, &m.total, sizeof(m.total));
	used.requests = 49;
	assert_int_equal(allot(g, &b, &used).total.requests, 100);
	used.requests = 50;
	used.names = 5;
	m = allot(g, &b, &used);
	assert_int_equal(m.total.requests, 150);
	assert_int_equal(m.total.names, 10);
	assert_int_equal(m.total.connections, 50);
	/* To the end and not beyond. */
	for (int i = 0; i < 20; i++) {
		used = m.total;
		m = allot(g, &b, &used);
	}
	assert_int_equal(m.total.names, 40);
	assert_int_equal(m.total.connections, 400);
	assert_int_equal(m.total.brokered, 16);
	assert_int_equal(m.total.bytes_in, 64000000);
	assert_true(m.over);
	struct msg_net_budget now = budget(g);
	assert_int_equal(now.used.requests, 800);
	assert_int_equal(now.lent.requests, 0);
}

static void
sum_is_within(struct gates *g)
{
	struct msg_net_budget b = budget(g);

	assert_true(b.used.names + b.lent.names <= b.limit.names);
	assert_true(b.used.connections + b.lent.connections <= b.limit.connections);
	assert_true(b.used.handshakes + b.lent.handshakes <= b.limit.handshakes);
	assert_true(b.used.requests + b.lent.requests <= b.limit.requests);
	assert_true(b.used.brokered + b.lent.brokered <= b.limit.brokered);
	assert_true(b.used.bytes_out + b.lent.bytes_out <= b.limit.bytes_out);
	assert_true(b.used.bytes_in + b.lent.bytes_in <= b.limit.bytes_in);
}

/* What one has, the other cannot get; what one gives back at its end, the other can. */
static void
test_two_sandboxes_share_it(void **state)
{
	struct gates *g = *state;
	struct msg_allotment a = {0}, b = {0};
	struct boxed box[2];

	boxed_create(g, &g->task, &box[0]);
	boxed_create(g, &g->task, &box[1]);
	for (int i = 0; i < 30; i++) {
		a = allot(g, &box[0], &a.total);
		b = allot(g, &box[1], &b.total);
		sum_is_within(g);
	}
	assert_int_equal(a.total.names + b.total.names, 40);
	assert_int_equal(a.total.requests + b.total.requests, 800);
	assert_int_equal(a.total.bytes_in + b.total.bytes_in, 64000000);
	assert_true(a.over && b.over);
	/* Two more that ask get nothing. */
	struct boxed late;
	boxed_create(g, &g->task, &late);
	struct msg_allotment none = allot(g, &late, &(struct egress){0});
	assert_int_equal(none.total.names, 0);
	assert_int_equal(none.total.bytes_out, 0);
	assert_true(none.over);
}

static void
test_an_end_gives_back_what_was_not_used(void **state)
{
	struct gates *g = *state;
	struct egress used = {.names = 2, .requests = 10, .bytes_out = 500};
	struct boxed b;

	boxed_create(g, &g->task, &b);
	(void)allot(g, &b, &(struct egress){0});
	(void)allot(g, &b, &used);
	boxed_end(g, &b, SANDBOX_REASON_KILLED);
	struct msg_net_budget now = budget(g);
	assert_memory_equal(&now.used, &used, sizeof(used));
	assert_memory_equal(&now.lent, &(struct egress){0}, sizeof(struct egress));
	/* What flows told and its last word did not, counts. */
	boxed_create(g, &g->task, &b);
	(void)allot(g, &b, &(struct egress){0});
	SAY(b.gateway, FLOW, flow,
		{.scheme = EGRESS_SCHEME_HTTPS,
			.rule = DOCS,
			.port = 443,
			.name = view_str("docs.example"),
			.count = 1,
			.bytes_out = 700,
			.bytes_in = 9});
	boxed_end(g, &b, SANDBOX_REASON_KILLED);
	now = budget(g);
	assert_int_equal(now.used.bytes_out, 1200);
	assert_int_equal(now.used.bytes_in, 9);
}

static void
test_a_lost_gateway_used_all_it_had(void **state)
{
	struct gates *g = *state;
	struct play *p = &g->p;
	struct boxed b;

	boxed_create(g, &g->task, &b);
	struct msg_allotment m = allot(g, &b, &(struct egress){0});
	gateway_close(g, &b);
	WANT(p, p->supervisor, KILL, kill, kill);
	play_gone(p, &b.sandbox, SANDBOX_REASON_GATEWAY_LOST);
	play_want_closed(p, b.relay);
	struct msg_net_budget now = budget(g);
	assert_memory_equal(&now.used, &m.total, sizeof(m.total));
	/* Nor does one give anything back that broke the protocol, whatever its sandbox ended of. */
	boxed_create(g, &g->task, &b);
	(void)allot(g, &b, &(struct egress){0});
	gateway_ready(&b);
	WANT(p, p->supervisor, KILL, kill, broke);
	play_gone(p, &b.sandbox, SANDBOX_REASON_TTL);
	play_want_closed(p, b.relay);
	now = budget(g);
	assert_int_equal(now.used.names, 2 * m.total.names);
}

/* Its last words may stand behind so many others that they never came: it could choose not to be counted. */
static void
test_one_that_was_not_read_to_the_end_used_all_it_had(void **state)
{
	struct gates *g = *state;
	struct msg_verdict v = good_verdict();
	struct boxed b;

	boxed_create(g, &g->task, &b);
	struct msg_allotment m = allot(g, &b, &(struct egress){0});
	for (uint64_t i = 0; i < 1024; i++)
		assert_int_equal(verdict_say(g, &b, i + 1, &v), EGRESS_REASON_NONE);
	for (uint64_t i = 0; i < 200; i++)
		SAY_TAG(b.gateway, 2000 + i, VERDICT, verdict, -1, v);
	play_want_silence(&g->p, g->p.api, 500); /* as many as may be were read */
	boxed_end(g, &b, SANDBOX_REASON_KILLED);
	struct msg_net_budget now = budget(g);
	assert_memory_equal(&now.used, &m.total, sizeof(m.total));
	assert_memory_equal(&now.lent, &(struct egress){0}, sizeof(struct egress));
}

/* The engine is killed and started again, with the gateways and without. */
static void
test_a_crash_gives_nothing_back(void **state)
{
	struct gates *g = *state;
	struct egress used = {.names = 1, .bytes_in = 77};
	struct msg_allotment m, again;
	struct boxed b[2];

	boxed_create(g, &g->task, &b[0]);
	boxed_create(g, &g->task, &b[1]);
	m = allot(g, &b[0], &(struct egress){0});
	(void)allot(g, &b[1], &(struct egress){0});
	gates_restart(g, b, 2);
	/* It goes on with what it has. */
	again = allot(g, &b[0], &used);
	assert_memory_equal(&again.total, &m.total, sizeof(m.total));
	struct msg_net_budget now = budget(g);
	assert_int_equal(now.used.names, 1);
	assert_int_equal(now.lent.names, 9);
	/* Killed right after the answer, and one of them is gone with the host's supervisor: all that it had. */
	used.names = 5;
	assert_int_equal(allot(g, &b[0], &used).total.names, 10);
	gates_restart(g, b, 1);
	now = budget(g);
	assert_int_equal(now.used.names, 5 + 5);
	assert_int_equal(now.lent.names, 5);
	boxed_end(g, &b[0], SANDBOX_REASON_KILLED);
	now = budget(g);
	assert_int_equal(now.used.names, 10);
	assert_int_equal(now.used.bytes_in, 77 + 8000000);
}

static void
is_lost(struct gates *g, struct boxed *b, const struct egress *used)
{
	struct play *p = &g->p;

	SAY(b->gateway, ALLOTMENT_ASK, allotment_ask, {.used = *used});
	WANT(p, p->supervisor, KILL, kill, kill);
	assert_int_equal(kill.reason, SANDBOX_REASON_GATEWAY_LOST);
	play_want_closed(p, b->gateway);
	gateway_close(g, b);
	play_gone(p, &b->sandbox, SANDBOX_REASON_GATEWAY_LOST);
	play_want_closed(p, b->relay);
}

/* What it used shrinks, or is more than it had: each budget by itself. */
static void
test_a_gateway_that_lies_is_lost(void **state)
{
	struct gates *g = *state;

#define LIE(budget)                                             \
	do {                                                    \
		struct egress used = {0};                       \
		struct boxed b;                                 \
                                                                \
		g->task = gates_task(g, "acme", "support");     \
		boxed_create(g, &g->task, &b);                  \
		used.budget = allot(g, &b, &used).total.budget; \
		used.budget++;                                  \
		is_lost(g, &b, &used);                          \
		boxed_create(g, &g->task, &b);                  \
		used.budget = UINT64_MAX;                       \
		is_lost(g, &b, &used);                          \
		boxed_create(g, &g->task, &b);                  \
		used.budget = 0;                                \
		(void)allot(g, &b, &used);                      \
		used.budget = 2;                                \
		(void)allot(g, &b, &used);                      \
		used.budget = 1;                                \
		is_lost(g, &b, &used);                          \
	} while (0)
	LIE(names);
	LIE(connections);
	LIE(handshakes);
	LIE(requests);
	LIE(brokered);
	LIE(bytes_out);
	LIE(bytes_in);
}

/* Killed right before each write, sync and message: what a gateway was told that it has, stands. */
static void
test_killed_at_each_step(void **state)
{
	struct gates *g = *state;
	unsigned n = 1;
	bool killed = true;

	while (killed) {
		struct msg_allotment told = {0};
		struct boxed b;
		struct trace t;
		bool answered;

		g->task = gates_task(g, "acme", "support");
		boxed_create(g, &g->task, &b);
		(void)usleep(300000);
		trace_begin(&t, g->p.engine, n++);
		SAY(b.gateway, ALLOTMENT_ASK, allotment_ask, {0});
		answered = play_read(&g->p, b.gateway);
		if (answered)
			play_decoded(msg_allotment_get(g->p.in.body, &told, &(struct err){0}), "");
		killed = trace_killed(&t);
		trace_end(&t);
		trace_free(&t);
		gates_restart(g, &b, 1);
		struct msg_net_budget now = budget(g);
		assert_true(!answered || now.lent.names == told.total.names);
		assert_true(now.lent.names == 0 || now.lent.names == 5);
		boxed_end(g, &b, SANDBOX_REASON_KILLED);
	}
	assert_true(n > 3);
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, gates_setup, gates_teardown)
	const struct CMUnitTest tests[] = {
		T(test_slices),
		T(test_two_sandboxes_share_it),
		T(test_an_end_gives_back_what_was_not_used),
		T(test_a_lost_gateway_used_all_it_had),
		T(test_one_that_was_not_read_to_the_end_used_all_it_had),
		T(test_a_crash_gives_nothing_back),
		T(test_a_gateway_that_lies_is_lost),
		T(test_killed_at_each_step),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
