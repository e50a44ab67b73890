/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine is killed with SIGKILL right before each write, sync and message from PROPOSE to its answer. Whatever the moment was: the
 * proposal is not there, denied, or pending with its record; the grant was used for what is there and not more; nothing stays reserved;
 * and the same can be proposed again.
 */
#include "acts.h"
#include "trace.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

static struct acts acts;

static int
setup(void **state)
{
	acts_open(&acts);
	acts.p.settings.actions.task.proposals = 10000;
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

static bool
readable(int fd)
{
	struct pollfd w = {.fd = fd, .events = POLLIN};

	return poll(&w, 1, 5) == 1;
}

/* The broker answers, until the relay is told or the engine is dead. True: it was told. */
static bool
play_on(struct acts *a, struct trace *t)
{
	for (int i = 0; i < 2000; i++) {
		if (readable(a->p.broker) && play_read(&a->p, a->p.broker))
			acts_verified(a, a->p.in.tag, DENIAL_NONE, FACTS_GOOD);
		if (readable(a->relay) && play_read(&a->p, a->relay)) {
			assert_int_equal(a->p.in.type, MSG_PROPOSED);
			return true;
		}
		if (trace_killed(t))
			return false;
	}
	fail_msg("it is neither told nor dead");
	return false;
}

/* The newest proposal of the task after those that were there; how many. */
static unsigned
proposals(struct acts *a, const struct id *after, struct msg_proposal_row *ret, uint8_t digest[32])
{
	unsigned n = 0;
	bool seen = false;

	ASK(&a->p, PROPOSAL_LIST, proposal_list,
		{.caller = as_root, .task = view_str(a->task_text)});
	for (;;) {
		struct msg_proposal_row row;

		play_want_any(&a->p, a->p.api);
		if (a->p.in.type == MSG_END)
			return n;
		play_decoded(msg_proposal_row_get(a->p.in.body, &row, &(struct err){0}), "ROW");
		seen = seen || id_eq(&row.proposal, after);
		if (seen)
			continue;
		n++;
		*ret = row;
		proposal_digest(row.record, digest);
	}
}

/* So that the next round uses its own. */
static void
take_back(struct acts *a, const struct id *grant)
{
	char name[ID_TEXT];

	id_text(grant, ID_GRANT, name);
	ASK(&a->p, AUTHORITY_REVOKE, authority_revoke,
		{.caller = as_root,
			.kind = AUTHORITY_GRANT,
			.name = view_str(name),
			.reason = view_str("over")});
	play_want(&a->p, a->p.api, MSG_DONE);
}

/* Before its n-th call; false when there were not that many. */
static bool
killed_before(struct acts *a, unsigned n, struct id *last, unsigned *states)
{
	struct id grant = acts_grant(a, "refund", NULL, 2), again;
	struct msg_proposal_row row = {0};
	struct msg_grant_row g;
	uint8_t digest[32];
	char arguments[64];
	struct trace t;
	bool killed, told;
	unsigned there;

	(void)snprintf(arguments, sizeof(arguments), "{\"cents\":1,\"order_id\":\"%u\"}", n);
	(void)usleep(300000); /* syncs of groups and the checkpoint of a quiet moment are over */
	trace_begin(&t, a->p.engine, n);
	acts_ask(a, 1000 + n, "refund", arguments);
	told = play_on(a, &t);
	killed = trace_killed(&t);
	trace_end(&t);
	trace_free(&t);
	acts_restart(a);
	there = proposals(a, last, &row, digest);
	assert_true(there <= 1);
	if (there == 1) {
		*states |= 1U << row.state;
		assert_true(
			row.state == PROPOSAL_STATE_PENDING || row.state == PROPOSAL_STATE_DENIED);
		if (row.state == PROPOSAL_STATE_PENDING)
			assert_memory_equal(row.digest, digest, 32);
		*last = row.proposal;
	}
	assert_true(!told || row.state == PROPOSAL_STATE_PENDING); /* told only what is on disk */
	acts_grant_row(a, &grant, &g);
	assert_int_equal(g.used, there == 1 && row.state == PROPOSAL_STATE_PENDING);
	assert_int_equal(acts_budget(a, false, COUNTER_BROKER_CALLS, "").reserved, 0);
	assert_int_equal(acts_budget(a, false, COUNTER_BROKER_BYTES, "").reserved, 0);
	acts_ask(a, 2000 + n, "refund", arguments);
	if (row.state == PROPOSAL_STATE_PENDING && there == 1) {
		again = acts_proposed(a, 2000 + n, true);
		assert_true(id_eq(&again, last));
	} else {
		acts_verified(a, acts_verify(a), DENIAL_NONE, FACTS_GOOD);
		*last = acts_proposed(a, 2000 + n, false);
	}
	acts_decide(a, last, "anna", false); /* the caps are not what is tested here */
	acts_decided(a, acts_decision(a), DENIAL_NONE, "anna", 1);
	play_want(&a->p, a->p.api, MSG_PROPOSAL_ROW);
	take_back(a, &grant);
	return killed;
}

static void
F1_killed_at_each_step_of_a_proposal(void **state)
{
	struct acts *a = *state;
	struct id last = {0};
	unsigned states = 0, n = 1;

	while (killed_before(a, n, &last, &states))
		n++;
	assert_true(n > 6); /* two transactions, a question and a sync at least */
	assert_true((states & 1U << PROPOSAL_STATE_PENDING) != 0);
	assert_true((states & 1U << PROPOSAL_STATE_DENIED) != 0);
	(void)play_audit(&a->p, &a->task);
}

/* Whoever is told an id can rely on it: the record is on disk before. */
static void
test_on_disk_before_it_is_told(void **state)
{
	struct acts *a = *state;
	struct trace t;

	(void)acts_grant(a, "refund", NULL, 2);
	(void)usleep(300000);
	trace_begin(&t, a->p.engine, 0);
	acts_ask(a, 1, "refund", "{\"cents\":1,\"order_id\":\"1\"}");
	acts_verified(a, acts_verify(a), DENIAL_NONE, FACTS_GOOD);
	(void)acts_proposed(a, 1, false);
	trace_end(&t);
	assert_true(trace_count(&t) >= 4);
	assert_int_equal(trace_at(&t, trace_count(&t) - 1), TRACE_SYNC);
	trace_free(&t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			F1_killed_at_each_step_of_a_proposal, setup, teardown),
		cmocka_unit_test_setup_teardown(test_on_disk_before_it_is_told, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
