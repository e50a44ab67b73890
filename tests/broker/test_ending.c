/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SIGTERM: a supervisor that has other operations, or ends, must not make an `unknown` of what was sent, and nothing is begun any more. The
 * provider's own ledger counts.
 */
#include "play.h"

#include "lib/base/fd.h"

#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct play play;

static int
begin(void **state)
{
	(void)state;
	play_open(&play);
	play_start(&play);
	return 0;
}

static int
end(void **state)
{
	(void)state;
	play_close(&play);
	return 0;
}

static void
told_to_end(void)
{
	assert_int_equal(kill(play.broker, SIGTERM), 0);
}

/* Its status, and how long it took. */
static uint64_t
ended_well(void)
{
	uint64_t began = clock_mono_ms();
	int status = play_wait(&play);

	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	return clock_mono_ms() - began;
}

/* The engine's edge is closed: it sees a broker that is away. */
static void
engine_is_let_go(void)
{
	struct pollfd p = {.fd = play.engine, .events = POLLIN};

	assert_int_equal(poll(&p, 1, 5000), 1);
	assert_true((p.revents & POLLHUP) != 0);
}

static void
with_nothing_in_flight_it_ends_at_once(void **state)
{
	(void)state;
	told_to_end();
	assert_true(ended_well() < 1000);
}

static void
what_was_sent_gets_its_end_first(void **state)
{
	struct msg_executed m;
	struct action a;
	uint64_t took;

	(void)state;
	provider_script(&play, "effect executes_then_stalls 1\n");
	action_refund(&play, &a);
	action_send(&play, &a);
	for (int i = 0; provider_effects(&play) == 0; i++) {
		assert_true(i < 250);
		play_silence(&play, 20);
	}
	told_to_end();
	engine_is_let_go();
	took = ended_well();
	assert_in_range(took, 300, 5000);
	play_start(&play);
	m = action_ask(&play, &a);
	action_is(&m, ATTEMPT_SUCCEEDED, DENIAL_NONE);
	assert_int_equal(provider_effects(&play), 1);
	action_done(&a);
}

/* A new engine, as after SIGHUP, gets nothing from the old broker: the next one has its operations. */
static void
what_is_not_sent_never_is(void **state)
{
	struct msg_executed m;
	struct action sent, held;
	int engine[2];
	struct err err;

	(void)state;
	provider_script(&play, "effect executes_then_stalls 2\n");
	action_refund(&play, &sent);
	action_send(&play, &sent);
	for (int i = 0; provider_effects(&play) == 0; i++) {
		assert_true(i < 250);
		play_silence(&play, 20);
	}
	play.dials = DIALER_HOLDS;
	action_make(&play, &held, "reply",
		"{\"body\":\"hello\",\"recipient\":\"kim@example.org\",\"subject\":\"order\"}");
	action_approve(&play, &held, 2);
	action_send(&play, &held);
	play_until_dialled(&play, play.dialled + 1);
	told_to_end();
	engine_is_let_go();
	assert_int_equal(ipc_pair(engine, &err), 0);
	(void)close(take_fd(&play.engine));
	play.engine = engine[0];
	SAY_TAG(play.supervisor, 0, BROKER_ENGINE, broker_engine, engine[1], {0});
	(void)close(engine[1]);
	engine_is_let_go();
	play_dial_now(&play);
	(void)ended_well();
	assert_int_equal(provider_effects(&play), 1);
	play.dials = DIALER_CONNECTS;
	play_start(&play);
	m = action_ask(&play, &sent);
	action_is(&m, ATTEMPT_SUCCEEDED, DENIAL_NONE);
	m = action_ask(&play, &held);
	action_is(&m, ATTEMPT_UNSEEN, DENIAL_NONE);
	assert_int_equal(provider_effects(&play), 1);
	action_done(&sent);
	action_done(&held);
}

/* Its time has an end; what the provider did meanwhile is then looked up. */
static void
a_provider_that_stalls_is_not_waited_for_for_ever(void **state)
{
	struct msg_executed m;
	struct action a;
	int status;

	(void)state;
	play_kill(&play);
	play_edit(&play, "'timeout_ms':3000", "'timeout_ms':60000");
	play_start(&play);
	provider_script(&play, "effect executes_then_stalls 40\n");
	action_refund(&play, &a);
	action_send(&play, &a);
	for (int i = 0; provider_effects(&play) == 0; i++) {
		assert_true(i < 250);
		play_silence(&play, 20);
	}
	told_to_end();
	(void)poll(NULL, 0, 15000);
	assert_int_equal(waitpid(play.broker, &status, WNOHANG), 0);
	(void)ended_well();
	play_start(&play);
	m = action_ask(&play, &a);
	action_is(&m, ATTEMPT_UNKNOWN, DENIAL_PROVIDER_ANSWER);
	action_done(&a);
}

int
main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(with_nothing_in_flight_it_ends_at_once),
		TEST(what_was_sent_gets_its_end_first),
		TEST(what_is_not_sent_never_is),
		TEST(a_provider_that_stalls_is_not_waited_for_for_ever),
	};

	return cmocka_run_group_tests_name("broker_ending", tests, NULL, NULL);
}
