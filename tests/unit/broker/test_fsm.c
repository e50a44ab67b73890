/* SPDX-License-Identifier: Apache-2.0 */
/* The table of an execution in the broker, walked: what was sent never gets back to where `spent` would be written. */
#include "lib/base/attr.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum state {
#define STATE(name) S_##name,
#define EVENT(name)
#define STEP(state, event, next)
#include "broker/execution.fsm"
#undef STATE
#undef EVENT
#undef STEP
	STATES
};

enum event {
#define STATE(name)
#define EVENT(name) E_##name,
#define STEP(state, event, next)
#include "broker/execution.fsm"
#undef STATE
#undef EVENT
#undef STEP
	EVENTS
};

static const struct {
	enum state from;
	enum event event;
	enum state to;
} steps[] = {
#define STATE(name)
#define EVENT(name)
#define STEP(state, event, next) {S_##state, E_##event, S_##next},
#include "broker/execution.fsm"
#undef STATE
#undef EVENT
#undef STEP
};

/* Everything that can follow. */
static void
reach(enum state from, bool seen[STATES])
{
	for (size_t i = 0; i < ARRAY_LEN(steps); i++)
		if (steps[i].from == from && !seen[steps[i].to]) {
			seen[steps[i].to] = true;
			reach(steps[i].to, seen);
		}
}

static void
a_pair_has_one_next_state(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(steps); i++)
		for (size_t k = 0; k < i; k++)
			assert_false(
				steps[i].from == steps[k].from && steps[i].event == steps[k].event);
}

static void
every_state_is_reached_and_ends(void **state)
{
	bool seen[STATES] = {[S_CHECKING] = true};

	(void)state;
	reach(S_CHECKING, seen);
	for (unsigned s = 0; s < STATES; s++) {
		bool then[STATES] = {false};

		assert_true(seen[s]);
		reach((enum state)s, then);
		assert_true(s == S_ENDED || then[S_ENDED]);
	}
}

static void
nothing_leads_back_to_spend(void **state)
{
	bool seen[STATES] = {false};

	(void)state;
	reach(S_SENT, seen);
	assert_false(seen[S_CHECKING] || seen[S_VERIFYING] || seen[S_CONNECTING]);
	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		if (steps[i].to == S_SENT)
			assert_true(steps[i].event == E_SPEND || steps[i].event == E_RESEND);
		if (steps[i].event == E_SPEND)
			assert_int_equal(steps[i].from, S_CONNECTING);
		assert_true(steps[i].from != S_ENDED);
		/* What says that nothing left comes only before anything did. */
		if (steps[i].event == E_DENY)
			assert_true(steps[i].from <= S_CONNECTING);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pair_has_one_next_state),
		cmocka_unit_test(every_state_is_reached_and_ends),
		cmocka_unit_test(nothing_leads_back_to_spend),
	};

	_Static_assert(EVENTS > 0, "");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
