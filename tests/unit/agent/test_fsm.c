/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lives of a job, guest/agent/job.fsm and src/relay/job.fsm: no pair twice, every state is reached from the
 * first, every state but the last leads to the last.
 */
#include "lib/base/attr.h"

#include <stdbool.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

struct edge {
	const char *state, *event, *next;
};

#define STATE(name)
#define EVENT(name)
#define STEP(s, e, n) {#s, #e, #n},
static const struct edge agent_edges[] = {
#include "../../../guest/agent/job.fsm"
};
static const struct edge relay_edges[] = {
#include "../../../src/relay/job.fsm"
};
#undef STATE
#undef EVENT
#undef STEP

#define STATE(name) #name,
#define EVENT(name)
#define STEP(s, e, n)
static const char *const agent_states[] = {
#include "../../../guest/agent/job.fsm"
};
static const char *const relay_states[] = {
#include "../../../src/relay/job.fsm"
};
#undef STATE
#undef EVENT
#undef STEP

#define STATE(name)
#define EVENT(name) #name,
#define STEP(s, e, n)
static const char *const agent_events[] = {
#include "../../../guest/agent/job.fsm"
};
static const char *const relay_events[] = {
#include "../../../src/relay/job.fsm"
};

static bool
listed(const char *const *names, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

static bool
leads(const struct edge *edges, size_t n, const char *from, const char *to, unsigned depth)
{
	if (strcmp(from, to) == 0)
		return true;
	for (size_t i = 0; i < n && depth > 0; i++)
		if (strcmp(edges[i].state, from) == 0 &&
			leads(edges, n, edges[i].next, to, depth - 1))
			return true;
	return false;
}

static void
walk(const struct edge *edges, size_t n, const char *const *states, size_t nstates,
	const char *const *events, size_t nevents)
{
	for (size_t i = 0; i < n; i++) {
		assert_true(listed(states, nstates, edges[i].state) &&
			    listed(states, nstates, edges[i].next));
		assert_true(listed(events, nevents, edges[i].event));
		for (size_t k = 0; k < i; k++)
			assert_false(strcmp(edges[i].state, edges[k].state) == 0 &&
				     strcmp(edges[i].event, edges[k].event) == 0);
	}
	for (size_t i = 0; i < nstates; i++) {
		assert_true(leads(edges, n, states[0], states[i], 8));
		assert_true(leads(edges, n, states[i], states[nstates - 1], 8));
	}
}

static void
agent(void **state)
{
	(void)state;
	walk(agent_edges, ARRAY_LEN(agent_edges), agent_states, ARRAY_LEN(agent_states),
		agent_events, ARRAY_LEN(agent_events));
	/* Nothing leaves the end: a job that told its end says nothing more. */
	for (size_t i = 0; i < ARRAY_LEN(agent_edges); i++)
		assert_string_not_equal(agent_edges[i].state, "ENDED");
}

static void
relay(void **state)
{
	(void)state;
	walk(relay_edges, ARRAY_LEN(relay_edges), relay_states, ARRAY_LEN(relay_states),
		relay_events, ARRAY_LEN(relay_events));
	/* A job that ended never runs again. */
	assert_false(leads(relay_edges, ARRAY_LEN(relay_edges), "ENDED", "RUNNING", 8));
	assert_false(leads(relay_edges, ARRAY_LEN(relay_edges), "ENDED", "ENDING", 8));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(agent),
		cmocka_unit_test(relay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
