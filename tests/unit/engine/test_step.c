/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state machines, every (state, event) pair: listed in its .fsm table, or refused. The
 * matrices here are written by hand, so that a row that comes or goes in a table is noticed.
 */
#include "engine/step.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { NO = -1 };

#define S(name) SANDBOX_STATE_##name

/* Columns: READY KILL FREEZE THAW GONE AGAIN */
static const int sandbox_matrix[SANDBOX_STATE_MAX][SANDBOX_EVENT_MAX] = {
	[S(CREATING)] = {S(RUNNING), S(STOPPING), NO, NO, S(FAILED), NO},
	[S(RUNNING)] = {NO, S(STOPPING), S(PAUSED), S(RUNNING), S(GONE), NO},
	[S(PAUSED)] = {NO, S(STOPPING), S(PAUSED), S(RUNNING), S(GONE), NO},
	[S(STOPPING)] = {NO, NO, NO, NO, S(GONE), NO},
	[S(GONE)] = {NO, NO, NO, NO, NO, S(GONE)},
	[S(FAILED)] = {NO, NO, NO, NO, NO, S(FAILED)},
};

static void
test_sandbox(void **state)
{
	struct err err;

	(void)state;
	for (unsigned s = 0; s < SANDBOX_STATE_MAX; s++)
		for (unsigned e = 0; e < SANDBOX_EVENT_MAX; e++) {
			enum sandbox_state next = SANDBOX_STATE_MAX;
			int r = sandbox_next(
				(enum sandbox_state)s, (enum sandbox_event)e, &next, &err);

			if (sandbox_matrix[s][e] == NO) {
				assert_true(r < 0);
				assert_int_equal(next, SANDBOX_STATE_MAX);
			} else {
				assert_int_equal(r, 0);
				assert_int_equal(next, sandbox_matrix[s][e]);
			}
		}
}

#define T(name) TASK_STATE_##name

/* Columns: CLOSE MARK REOPEN RECLOSE */
static const int task_matrix[TASK_STATE_MAX][TASK_EVENT_MAX] = {
	[T(OPEN)] = {T(CLOSED), T(MARKED), NO, NO},
	[T(CLOSED)] = {T(CLOSED), T(MARKED), NO, NO},
	[T(MARKED)] = {T(MARKED), T(MARKED), T(OPEN), T(CLOSED)},
};

static void
test_task(void **state)
{
	struct err err;

	(void)state;
	for (unsigned s = 0; s < TASK_STATE_MAX; s++)
		for (unsigned e = 0; e < TASK_EVENT_MAX; e++) {
			enum task_state next = TASK_STATE_MAX;
			int r = task_next((enum task_state)s, (enum task_event)e, &next, &err);

			assert_int_equal(r == 0 ? (int)next : NO, task_matrix[s][e]);
		}
}

#define P(name) PROPOSAL_STATE_##name

/* Columns: SHOW FREE DENY JOIN APPROVE REJECT EXPIRE REVOKE SUPERSEDE DISPATCH SUCCEED FAIL LOSE SETTLE */
static const int proposal_matrix[PROPOSAL_STATE_MAX][PROPOSAL_EVENT_MAX] = {
	[P(PROPOSED)] = {P(PENDING), P(APPROVED), P(DENIED), NO, NO, NO, NO, P(REVOKED), NO, NO, NO,
		NO, NO, NO},
	[P(PENDING)] = {NO, NO, NO, P(PENDING), P(APPROVED), P(REJECTED), P(EXPIRED), P(REVOKED),
		P(SUPERSEDED), NO, NO, NO, NO, NO},
	[P(APPROVED)] = {NO, NO, P(DENIED), NO, NO, NO, P(EXPIRED), P(REVOKED), P(SUPERSEDED),
		P(DISPATCHING), NO, NO, NO, NO},
	[P(DISPATCHING)] = {NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, P(SUCCEEDED), P(FAILED),
		P(UNKNOWN), NO},
	[P(UNKNOWN)] = {NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, P(SUCCEEDED), P(FAILED), NO,
		P(MANUAL)},
#define FINAL                                                          \
	{                                                              \
		NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO \
	}
	[P(SUCCEEDED)] = FINAL,
	[P(FAILED)] = FINAL,
	[P(MANUAL)] = FINAL,
	[P(DENIED)] = FINAL,
	[P(REJECTED)] = FINAL,
	[P(EXPIRED)] = FINAL,
	[P(REVOKED)] = FINAL,
	[P(SUPERSEDED)] = FINAL,
#undef FINAL
};

static void
test_proposal(void **state)
{
	struct err err;

	(void)state;
	for (unsigned s = 0; s < PROPOSAL_STATE_MAX; s++)
		for (unsigned e = 0; e < PROPOSAL_EVENT_MAX; e++) {
			enum proposal_state next = PROPOSAL_STATE_MAX;
			int r = proposal_next(
				(enum proposal_state)s, (enum proposal_event)e, &next, &err);

			assert_int_equal(r == 0 ? (int)next : NO, proposal_matrix[s][e]);
			assert_true(r < 0 || s == PROPOSAL_STATE_PROPOSED ||
				    s == PROPOSAL_STATE_PENDING || next != PROPOSAL_STATE_APPROVED);
		}
}

#define X(name) EXECUTION_STATE_##name

/* Columns: SUCCEED FAIL LOSE SETTLE. Nothing leads to DISPATCHING: what was sent is never sent anew. */
static const int execution_matrix[EXECUTION_STATE_MAX][EXECUTION_EVENT_MAX] = {
	[X(DISPATCHING)] = {X(SUCCEEDED), X(FAILED), X(UNKNOWN), NO},
	[X(SUCCEEDED)] = {NO, NO, NO, NO},
	[X(FAILED)] = {NO, NO, NO, NO},
	[X(UNKNOWN)] = {X(SUCCEEDED), X(FAILED), X(UNKNOWN), X(MANUAL)},
	[X(MANUAL)] = {NO, NO, NO, NO},
};

static void
test_execution(void **state)
{
	struct err err;

	(void)state;
	for (unsigned s = 0; s < EXECUTION_STATE_MAX; s++)
		for (unsigned e = 0; e < EXECUTION_EVENT_MAX; e++) {
			enum execution_state next = EXECUTION_STATE_MAX;
			int r = execution_next(
				(enum execution_state)s, (enum execution_event)e, &next, &err);

			assert_int_equal(r == 0 ? (int)next : NO, execution_matrix[s][e]);
			assert_true(r < 0 || next != EXECUTION_STATE_DISPATCHING);
		}
}

/* A job ends once, for any reason but `running`. */
static void
test_job(void **state)
{
	struct err err;

	(void)state;
	for (unsigned s = 0; s < JOB_REASON_MAX; s++)
		for (unsigned e = 0; e < JOB_REASON_MAX; e++) {
			enum job_reason next = JOB_REASON_MAX;
			int r = job_next((enum job_reason)s, (enum job_reason)e, &next, &err);
			bool good = s == JOB_REASON_RUNNING && e != JOB_REASON_RUNNING;

			assert_int_equal(r == 0, good);
			assert_int_equal(next, good ? e : (unsigned)JOB_REASON_MAX);
		}
}

/* Each row of a table once. */
static void
test_rows(void **state)
{
	static const struct {
		unsigned state, event;
	} rows[] = {
#define STEP(s, e, n) {SANDBOX_STATE_##s, SANDBOX_##e},
#include "engine/sandbox.fsm"
#undef STEP
#define STEP(s, e, n) {100 + TASK_STATE_##s, TASK_##e},
#include "engine/task.fsm"
#undef STEP
#define STEP(s, e, n) {200 + JOB_REASON_##s, JOB_REASON_##e},
#include "engine/job.fsm"
#undef STEP
#define STEP(s, e, n) {300 + EXECUTION_STATE_##s, EXECUTION_##e},
#include "engine/execution.fsm"
#undef STEP
#define STEP(s, e, n) {400 + PROPOSAL_STATE_##s, PROPOSAL_##e},
#include "engine/proposal.fsm"
#undef STEP
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		for (size_t j = 0; j < i; j++)
			assert_false(
				rows[i].state == rows[j].state && rows[i].event == rows[j].event);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sandbox),
		cmocka_unit_test(test_task),
		cmocka_unit_test(test_proposal),
		cmocka_unit_test(test_execution),
		cmocka_unit_test(test_job),
		cmocka_unit_test(test_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
