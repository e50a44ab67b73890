/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Brokered requests: a lease is given for a request that is on record, once, within the rule's uses and the budget; counted and on disk before the
 * broker hears of it, and told to the gateway when the broker has it. No broker, no authority: no lease.
 */
#include "gates.h"

#include "trace.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

static struct msg_verdict
carrier_verdict(uint16_t rule, uint8_t digest)
{
	struct msg_verdict m = {.verdict = VERDICT_ALLOWED,
		.scheme = EGRESS_SCHEME_HTTPS,
		.rule = rule,
		.port = 443,
		.name = view_str(rule == CARRIER ? "api.carrier.example" : "open.carrier.example"),
		.method = view_str("GET"),
		.path = view_str("/v1/track/1")};

	memset(m.digest, digest, sizeof(m.digest));
	return m;
}

static void
say_verdict(struct gates *g, struct boxed *b, uint16_t rule, uint8_t digest)
{
	struct msg_verdict m = carrier_verdict(rule, digest);

	assert_int_equal(verdict_say(g, b, 1, &m), EGRESS_REASON_NONE);
}

static void
ask(struct boxed *b, uint64_t tag, uint16_t rule, uint8_t digest)
{
	struct msg_lease_ask m = {.rule = rule};

	memset(m.digest, digest, sizeof(m.digest));
	SAY_TAG(b->gateway, tag, LEASE_ASK, lease_ask, -1, m);
}

/* LEASE_IS with this reason; the lease when it is NONE. */
static struct id
is(struct gates *g, struct boxed *b, uint64_t tag, enum egress_reason reason)
{
	struct play *p = &g->p;

	WANT(p, b->gateway, LEASE_IS, lease_is, m);
	assert_int_equal(p->in.tag, tag);
	assert_int_equal(m.reason, reason);
	assert_int_equal(id_is_zero(&m.lease), reason != EGRESS_REASON_NONE);
	return m.lease;
}

/* LEASE comes to the broker: its tag. */
static uint64_t
leased(struct gates *g, struct boxed *b, uint16_t rule, uint8_t digest, struct id *ret)
{
	struct play *p = &g->p;
	uint8_t want[32];

	WANT(p, p->broker, LEASE, lease, m);
	memset(want, digest, sizeof(want));
	assert_memory_equal(m.digest, want, 32);
	assert_true(id_eq(&m.sandbox, &b->sandbox));
	assert_int_equal(m.rule, rule);
	assert_int_equal(m.valid_ms, 30000);
	*ret = m.lease;
	return p->in.tag;
}

static void
done(struct gates *g, uint64_t tag)
{
	SAY_TAG(g->p.broker, tag, BROKER_DONE, broker_done, -1, {0});
}

/* The whole way. */
static void
lease(struct gates *g, struct boxed *b, uint16_t rule, uint8_t digest)
{
	struct id one, two;
	uint64_t tag;

	say_verdict(g, b, rule, digest);
	ask(b, digest, rule, digest);
	tag = leased(g, b, rule, digest, &one);
	play_want_silence(&g->p, b->gateway, 5); /* not before the broker has it */
	done(g, tag);
	two = is(g, b, digest, EGRESS_REASON_NONE);
	assert_true(id_eq(&one, &two));
}

static void
begin(struct gates *g, struct boxed *b)
{
	boxed_create(g, &g->task, b);
	(void)allot(g, b, &(struct egress){0});
}

static void
test_a_lease(void **state)
{
	struct gates *g = *state;
	struct boxed b;

	begin(g, &b);
	lease(g, &b, CARRIER, 1);
	(void)play_audit(&g->p, &g->task);
	assert_int_equal(play_events(&g->p, "egress.lease"), 1);
	assert_true(play_record(&g->p, "egress.lease", "\"lease\":\"le_"));
	assert_true(play_record(&g->p, "egress.lease",
		"\"digest\":\"0101010101010101010101010101010101010101010101010101010101010101\""));
}

/* For exactly the request that is on record, and once. */
static void
test_no_lease_without_a_record(void **state)
{
	struct gates *g = *state;
	struct msg_verdict m;
	struct boxed b;
	struct id id;

	begin(g, &b);
	ask(&b, 1, CARRIER, 1);
	(void)is(g, &b, 1, EGRESS_REASON_AUDIT);
	say_verdict(g, &b, CARRIER, 1);
	ask(&b, 2, CARRIER, 2); /* another request */
	(void)is(g, &b, 2, EGRESS_REASON_AUDIT);
	ask(&b, 3, CARRIER_OPEN, 1); /* another rule */
	(void)is(g, &b, 3, EGRESS_REASON_AUDIT);
	/* One that was refused, and one without a digest. */
	m = carrier_verdict(CARRIER, 4);
	m.verdict = VERDICT_REFUSED;
	m.reason = EGRESS_REASON_QUERY;
	assert_int_equal(verdict_say(g, &b, 1, &m), EGRESS_REASON_NONE);
	ask(&b, 4, CARRIER, 4);
	(void)is(g, &b, 4, EGRESS_REASON_AUDIT);
	say_verdict(g, &b, CARRIER, 0);
	ask(&b, 5, CARRIER, 0);
	(void)is(g, &b, 5, EGRESS_REASON_AUDIT);
	play_want_silence(&g->p, g->p.broker, 20);
	/* Once. */
	ask(&b, 6, CARRIER, 1);
	done(g, leased(g, &b, CARRIER, 1, &id));
	(void)is(g, &b, 6, EGRESS_REASON_NONE);
	ask(&b, 7, CARRIER, 1);
	(void)is(g, &b, 7, EGRESS_REASON_AUDIT);
	/* Another sandbox of the same task has no part in it. */
	struct boxed other;
	begin(g, &other);
	say_verdict(g, &b, CARRIER, 8);
	ask(&other, 8, CARRIER, 8);
	(void)is(g, &other, 8, EGRESS_REASON_AUDIT);
	(void)play_audit(&g->p, &g->task);
	assert_int_equal(play_events(&g->p, "egress.lease"), 1);
}

/* Three of the rule, over all sandboxes of the task, crashes and revisions. */
static void
test_uses_of_a_rule(void **state)
{
	struct gates *g = *state;
	struct play *p = &g->p;
	struct boxed b[2];

	begin(g, &b[0]);
	begin(g, &b[1]);
	lease(g, &b[0], CARRIER, 1);
	lease(g, &b[1], CARRIER, 2);
	gates_restart(g, b, 2);
	lease(g, &b[0], CARRIER, 3);
	say_verdict(g, &b[1], CARRIER, 4);
	ask(&b[1], 4, CARRIER, 4);
	(void)is(g, &b[1], 4, EGRESS_REASON_QUOTA);
	/* The other rule has no such number. */
	lease(g, &b[1], CARRIER_OPEN, 5);
	/* A new revision of the policy gives none back. */
	play_policy(p, NULL);
	play_policy(p,
		gates_support("{\"brokered\":99,\"bytes_in\":1,\"bytes_out\":1,\"connections\":1,"
			      "\"handshakes\":1,\"names\":1,\"requests\":1}"));
	gates_restart(g, b, 2);
	struct boxed later;
	begin(g, &later);
	say_verdict(g, &later, CARRIER, 6);
	ask(&later, 6, CARRIER, 6);
	(void)is(g, &later, 6, EGRESS_REASON_QUOTA);
	lease(g, &later, CARRIER_OPEN, 7);
	/* Another task has its own. */
	struct id task = g->task;
	g->task = gates_task(g, "acme", "support");
	begin(g, &later);
	lease(g, &later, CARRIER, 8);
	g->task = task;
}

/* No more than what was lent: 2, then as the gateway says that it used them. */
static void
test_leases_are_of_the_budget(void **state)
{
	struct gates *g = *state;
	struct msg_net_budget budget = {0};
	struct boxed b;

	boxed_create(g, &g->task, &b);
	say_verdict(g, &b, CARRIER_OPEN, 1);
	ask(&b, 1, CARRIER_OPEN, 1); /* nothing was lent yet */
	(void)is(g, &b, 1, EGRESS_REASON_QUOTA);
	(void)allot(g, &b, &(struct egress){0});
	lease(g, &b, CARRIER_OPEN, 2);
	lease(g, &b, CARRIER_OPEN, 3);
	say_verdict(g, &b, CARRIER_OPEN, 4);
	ask(&b, 4, CARRIER_OPEN, 4);
	(void)is(g, &b, 4, EGRESS_REASON_QUOTA);
	/* One that does not tell what it used gets no more, and at its end they count all the same. */
	(void)allot(g, &b, &(struct egress){0});
	say_verdict(g, &b, CARRIER_OPEN, 5);
	ask(&b, 5, CARRIER_OPEN, 5);
	(void)is(g, &b, 5, EGRESS_REASON_QUOTA);
	gates_net(g, &g->task, &budget, NULL, NULL);
	assert_int_equal(budget.used.brokered, 2);
	boxed_end(g, &b, SANDBOX_REASON_KILLED);
	gates_net(g, &g->task, &budget, NULL, NULL);
	assert_int_equal(budget.used.brokered, 2);
	assert_int_equal(budget.lent.brokered, 0);
}

static void
test_no_broker_no_lease(void **state)
{
	struct gates *g = *state;
	struct play *p = &g->p;
	struct boxed b;
	struct id id;

	begin(g, &b);
	play_broker_lost(p);
	for (int i = 0; i < 500; i++) {
		(void)play_audit_of(p, "host");
		if (play_events(p, "broker.lost") == 1)
			break;
		(void)usleep(10000);
	}
	say_verdict(g, &b, CARRIER_OPEN, 1);
	ask(&b, 1, CARRIER_OPEN, 1);
	(void)is(g, &b, 1, EGRESS_REASON_BROKER);
	/* Nothing was taken, and the request may be asked for again. */
	gates_broker(g, true);
	ask(&b, 2, CARRIER_OPEN, 1);
	(void)leased(g, &b, CARRIER_OPEN, 1, &id);
	/* Lost with it: what it did is not known, and nothing is given back. */
	play_broker_lost(p);
	(void)is(g, &b, 2, EGRESS_REASON_BROKER);
	gates_broker(g, true);
	say_verdict(g, &b, CARRIER_OPEN, 3);
	ask(&b, 3, CARRIER_OPEN, 3);
	uint64_t tag = leased(g, &b, CARRIER_OPEN, 3, &id);
	SAY_TAG(p->broker, tag, BROKER_REFUSED, broker_refused, -1,
		{.denial = DENIAL_CONTAINED, .text = view_str("no")});
	(void)is(g, &b, 3, EGRESS_REASON_BROKER);
	say_verdict(g, &b, CARRIER_OPEN, 4);
	ask(&b, 4, CARRIER_OPEN, 4);
	(void)is(g, &b, 4, EGRESS_REASON_QUOTA); /* both of the slice are used */
}

/* Sixteen are with the broker at most; a gateway that is gone is told nothing. */
static void
test_so_many_at_once(void **state)
{
	struct gates *g = *state;
	struct play *p = &g->p;
	struct egress used = {0};
	uint64_t tags[17];
	struct boxed b;
	struct id id;

	play_kill(p);
	play_policy(p, NULL);
	play_policy(p,
		gates_support("{\"brokered\":800,\"bytes_in\":1,\"bytes_out\":1,\"connections\":1,"
			      "\"handshakes\":1,\"names\":1,\"requests\":1}"));
	gates_restart(g, NULL, 0);
	boxed_create(g, &g->task, &b);
	assert_int_equal(allot(g, &b, &used).total.brokered, 100);
	for (uint8_t i = 1; i <= 16; i++) {
		say_verdict(g, &b, CARRIER_OPEN, i);
		ask(&b, i, CARRIER_OPEN, i);
		tags[i] = leased(g, &b, CARRIER_OPEN, i, &id);
	}
	say_verdict(g, &b, CARRIER_OPEN, 99);
	ask(&b, 99, CARRIER_OPEN, 99);
	(void)is(g, &b, 99, EGRESS_REASON_BROKER);
	done(g, tags[9]);
	(void)is(g, &b, 9, EGRESS_REASON_NONE);
	ask(&b, 98, CARRIER_OPEN, 99);
	tags[9] = leased(g, &b, CARRIER_OPEN, 99, &id);
	boxed_end(g, &b, SANDBOX_REASON_KILLED);
	for (uint8_t i = 1; i <= 16; i++)
		done(g, tags[i]);
	boxed_create(g, &g->task, &b);
}

static void
test_authority_that_ends_meanwhile(void **state)
{
	struct gates *g = *state;
	struct play *p = &g->p;
	struct boxed b;
	struct id id;
	char name[ID_TEXT];
	uint64_t tag;

	id_text(&g->task, ID_TASK, name);
	begin(g, &b);
	say_verdict(g, &b, CARRIER_OPEN, 1);
	say_verdict(g, &b, CARRIER_OPEN, 2);
	ask(&b, 1, CARRIER_OPEN, 1);
	tag = leased(g, &b, CARRIER_OPEN, 1, &id);
	ASK(p, AUTHORITY_REVOKE, authority_revoke,
		{.caller = as_root, .kind = AUTHORITY_TASK, .name = view_str(name)});
	play_want(p, p->api, MSG_DONE);
	play_want(p, b.gateway, MSG_EGRESS_END);
	done(g, tag);
	(void)is(g, &b, 1, EGRESS_REASON_CONTAINED);
	ask(&b, 2, CARRIER_OPEN, 2);
	(void)is(g, &b, 2, EGRESS_REASON_CONTAINED);
	play_want_silence(p, p->broker, 20);
}

/* The record and the count are on disk before the broker is asked. */
static void
test_on_disk_before_the_broker(void **state)
{
	struct gates *g = *state;
	struct boxed b;
	struct trace t;
	struct id id;
	unsigned broker = 0;

	begin(g, &b);
	say_verdict(g, &b, CARRIER, 1);
	(void)usleep(300000);
	trace_begin(&t, g->p.engine, 0);
	ask(&b, 1, CARRIER, 1);
	(void)leased(g, &b, CARRIER, 1, &id);
	trace_end(&t);
	while (broker < trace_count(&t) && trace_at(&t, broker) != TRACE_BROKER)
		broker++;
	assert_true(broker > 1 && broker < trace_count(&t));
	assert_int_equal(trace_at(&t, broker - 1), TRACE_SYNC);
	assert_int_equal(trace_at(&t, broker - 2), TRACE_WRITE);
	trace_free(&t);
}

/* Killed before each step: what the broker heard of is on record and counted. */
static void
test_killed_at_each_step(void **state)
{
	struct gates *g = *state;
	struct play *p = &g->p;
	bool killed = true;
	unsigned n = 1;

	for (; killed; n++) {
		bool heard = false;
		struct trace t;
		struct boxed b;

		g->task = gates_task(g, "acme", "support");
		begin(g, &b);
		say_verdict(g, &b, CARRIER, 1);
		(void)usleep(300000);
		trace_begin(&t, p->engine, n);
		ask(&b, 1, CARRIER, 1);
		for (int i = 0; i < 400 && !heard && !trace_killed(&t); i++)
			if (poll(&(struct pollfd){.fd = p->broker, .events = POLLIN}, 1, 5) == 1 &&
				play_read(p, p->broker))
				heard = p->in.type == MSG_LEASE;
		killed = trace_killed(&t);
		trace_end(&t);
		trace_free(&t);
		gates_restart(g, &b, 1);
		(void)play_audit(p, &g->task);
		unsigned recorded = play_events(p, "egress.lease");
		assert_true(!heard || recorded == 1);
		/* The uses that are left are those that were not recorded. */
		for (uint8_t i = 0; i < 3 - recorded; i++) {
			struct egress used = {.brokered = i};

			(void)allot(g, &b, &used);
			if (i + recorded < 2)
				lease(g, &b, CARRIER, (uint8_t)(10 + i));
		}
		boxed_end(g, &b, SANDBOX_REASON_KILLED);
	}
	assert_true(n > 4);
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, gates_setup, gates_teardown)
	const struct CMUnitTest tests[] = {
		T(test_a_lease),
		T(test_no_lease_without_a_record),
		T(test_uses_of_a_rule),
		T(test_leases_are_of_the_budget),
		T(test_no_broker_no_lease),
		T(test_so_many_at_once),
		T(test_authority_that_ends_meanwhile),
		T(test_on_disk_before_the_broker),
		T(test_killed_at_each_step),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
