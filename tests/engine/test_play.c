/* SPDX-License-Identifier: Apache-2.0 */
/* The engine on its happy paths and in front of every refusal: real program, real messages. */
#include "play.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
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

static void
test_create_run_kill(void **state)
{
	struct play *p = *state;
	struct id sandbox, task, job;
	int relay = play_create(p, &sandbox, &task);

	play_run(p, relay, &sandbox, &job);
	play_end_job(p, relay, &job, 0);
	ANSWER(p, JOB_ROW, job_row, row);
	assert_int_equal(row.reason, JOB_REASON_EXITED);
	assert_int_equal(row.code, 0);
	assert_true(view_is(row.text, "true"));
	WANT(p, relay, JOB_RECORDED, job_recorded, recorded);
	assert_true(id_eq(&recorded.job, &job));

	ASK(p, SANDBOX_KILL, sandbox_kill, {.caller = as_root, .sandbox = sandbox});
	WANT(p, p->supervisor, KILL, kill, kill);
	assert_int_equal(kill.reason, SANDBOX_REASON_KILLED);
	play_gone(p, &sandbox, SANDBOX_REASON_KILLED);
	ANSWER(p, SANDBOX_ROW, sandbox_row, gone);
	assert_int_equal(gone.state, SANDBOX_STATE_GONE);
	assert_int_equal(gone.reason, SANDBOX_REASON_KILLED);
	assert_int_equal(gone.proof.teardown_us, 900);
	play_want_closed(p, relay);
	assert_int_equal(play_audit(p, &task), 6);
	assert_int_equal(play_events(p, "sandbox.create"), 1);
	assert_int_equal(play_events(p, "sandbox.ready"), 1);
	assert_int_equal(play_events(p, "job.start"), 1);
	assert_int_equal(play_events(p, "job.end"), 1);
	assert_int_equal(play_events(p, "sandbox.kill"), 1);
	assert_int_equal(play_events(p, "sandbox.gone"), 1);
	(void)close(relay);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_create_run_kill, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
