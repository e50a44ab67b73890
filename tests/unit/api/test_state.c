/* SPDX-License-Identifier: Apache-2.0 */
/* conn.fsm, every pair; and what each end of a job means to a caller. */
#include "conn.h"
#include "exec.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <sys/wait.h>

/* The table again, by hand: -1 = not listed. Columns as in conn.fsm: JSON PIECES WHOLE ANSWER BEGIN SWITCH LAST. */
static const int want[CONN_STATES][CONN_EVENTS] = {
	[CONN_HEAD] = {CONN_BODY, CONN_FEED, CONN_WAIT, -1, -1, -1, CONN_LINGER},
	[CONN_BODY] = {-1, -1, CONN_WAIT, -1, -1, -1, CONN_LINGER},
	[CONN_FEED] = {-1, -1, CONN_WAIT, -1, -1, -1, CONN_LINGER},
	[CONN_WAIT] = {-1, -1, -1, CONN_HEAD, CONN_STREAM, CONN_SOCKET, CONN_LINGER},
	[CONN_STREAM] = {-1, -1, -1, CONN_HEAD, -1, -1, CONN_LINGER},
	[CONN_SOCKET] = {-1, -1, -1, -1, -1, -1, CONN_LINGER},
	[CONN_LINGER] = {-1, -1, -1, -1, -1, -1, -1},
};

/* The next state as an exit status; -1 when the process was ended by must(). */
static int
next_in_child(enum conn_state state, enum conn_event event)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		(void)close(2);
		_exit((int)conn_next(state, event));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void
every_pair(void **state)
{
	(void)state;
	for (enum conn_state s = CONN_HEAD; s < CONN_STATES; s++)
		for (enum conn_event e = CONN_ON_JSON; e < CONN_EVENTS; e++)
			assert_int_equal(next_in_child(s, e), want[s][e]);
}

static void
codes(void **state)
{
	static const struct {
		enum job_reason reason;
		int code, want;
		bool lost;
	} cases[] = {
		{JOB_REASON_EXITED, 0, 0, false},
		{JOB_REASON_EXITED, 7, 7, false},
		{JOB_REASON_SIGNALLED, 9, 137, false},
		{JOB_REASON_SIGNALLED, 15, 143, false},
		{JOB_REASON_NOT_STARTED, ENOENT, 127, false},
		{JOB_REASON_NOT_STARTED, EACCES, 126, false},
		{JOB_REASON_TIMEOUT, 9, 124, false},
		{JOB_REASON_CANCELLED, 9, 137, false},
		{JOB_REASON_OOM, 9, 137, false},
		{JOB_REASON_PIDS, 2, 2, false},
		{JOB_REASON_DISK, 0, 1, false},
		{JOB_REASON_AGENT_LOST, 0, 137, true},
		{JOB_REASON_SANDBOX_ENDED, 0, 137, true},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct msg_job_row row = {.reason = cases[i].reason, .code = cases[i].code};
		const char *text = NULL;

		assert_int_equal(exec_code(&row), cases[i].want);
		assert_int_equal(exec_lost(&row, &text), cases[i].lost);
		assert_int_equal(text != NULL, cases[i].lost);
	}
}

/* Whatever ended the sandbox, its caller is told what. */
static void
lost_says_why(void **state)
{
	(void)state;
	for (enum sandbox_reason why = SANDBOX_REASON_NONE; why < SANDBOX_REASON_MAX; why++) {
		struct msg_job_row row = {
			.reason = JOB_REASON_SANDBOX_ENDED, .sandbox_reason = why};
		const char *text = NULL;

		assert_true(exec_lost(&row, &text));
		assert_non_null(text);
		assert_true(strlen(text) > strlen("the sandbox ended during the command: "));
	}
}

/* Existing clients take these words in a permanent error for "not ready yet" and send the request again. */
static void
no_warm_up_words(void **state)
{
	static const char *const words[] = {
		"connection refused", "no route to host", "i/o timeout"};
	char text[160];
	struct msg_job_row row = {.reason = JOB_REASON_TIMEOUT, .timeout_ms = 1500};

	(void)state;
	exec_timeout_text(&row, text, sizeof(text));
	assert_non_null(strstr(text, "timeout"));
	assert_non_null(strstr(text, "1.500 s"));
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		assert_null(strstr(text, words[i]));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_pair),
		cmocka_unit_test(codes),
		cmocka_unit_test(lost_says_why),
		cmocka_unit_test(no_warm_up_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
