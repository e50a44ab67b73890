/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Never two effects: the broker is killed at each step (research/actions.md 3.6, F1 to F12), asked two hundred times, revoked, contained, and
 * started beside itself. The provider's own ledger counts.
 */
#include "play.h"

#include "lib/action/request.h"
#include "lib/base/fd.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
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
ask_is(const struct action *a, enum attempt attempt)
{
	struct msg_executed m = action_ask(&play, a);

	if (m.attempt != attempt)
		fail_msg("%s came, %s is due: %.*s", attempt_text(m.attempt), attempt_text(attempt),
			VIEW_ARGS(m.text));
}

/* Whatever the engine tries after a crash, there is one effect at most, and none that is called failed. */
static void
nothing_more(struct action *a, unsigned effects)
{
	struct msg_executed m = action_execute(&play, a);
	struct id execution = a->execution;

	assert_true(m.attempt != ATTEMPT_UNSEEN);
	id_new(&a->execution);
	m = action_execute(&play, a);
	assert_int_equal(m.attempt, ATTEMPT_DENIED);
	assert_int_equal(provider_effects(&play), effects);
	a->execution = execution;
}

/* Looks a hundred times whether the provider has the request, so many milliseconds apart. */
static void
until_posted(int step_ms)
{
	for (int i = 0; provider_requests(&play, "POST") == 0; i++) {
		assert_true(i < 100);
		play_silence(&play, step_ms);
	}
}

/* ---- kill -9 ---- */

static void
F1_killed_before_anything_it_may_still_be_sent(void **state)
{
	struct msg_executed m;
	struct action a;

	(void)state;
	action_refund(&play, &a);
	play_restart(&play);
	m = action_execute(&play, &a);
	action_is(&m, ATTEMPT_SUCCEEDED, DENIAL_NONE);
	nothing_more(&a, 1);
	action_done(&a);
}

static void
F2_killed_while_it_connects_nothing_was_spent(void **state)
{
	struct msg_executed m;
	struct action a;

	(void)state;
	action_refund(&play, &a);
	play.dials = DIALER_HOLDS;
	action_send(&play, &a);
	play_until_dialled(&play, 1); /* the read before it */
	play_dial_now(&play);
	play_until_dialled(&play, 2);
	play_restart(&play);
	play.dials = DIALER_CONNECTS;
	/* The engine asks: it is shut out, so that failed stays true. */
	ask_is(&a, ATTEMPT_UNSEEN);
	m = action_execute(&play, &a);
	action_is(&m, ATTEMPT_DENIED, DENIAL_REVOKED);
	assert_int_equal(provider_requests(&play, "POST"), 0);
	action_done(&a);
}

static void
F3_killed_after_the_bytes_it_is_unknown(void **state)
{
	struct action a;

	(void)state;
	provider_script(&play, "effect slow 1\n");
	action_refund(&play, &a);
	action_send(&play, &a);
	until_posted(50);
	play_restart(&play);
	ask_is(&a, ATTEMPT_UNKNOWN);
	nothing_more(&a, provider_effects(&play));
	play_silence(&play, 1200);
	assert_int_equal(provider_effects(&play), 1);
	struct msg_executed m = action_lookup(&play, &a);

	action_is(&m, ATTEMPT_SUCCEEDED, DENIAL_NONE);
	nothing_more(&a, 1);
	action_done(&a);
}

static void
F4_killed_before_the_end_is_recorded_it_is_unknown_then_found(void **state)
{
	struct msg_executed m;
	struct action a;

	(void)state;
	provider_script(&play, "effect executes_then_stalls 2\n");
	action_refund(&play, &a);
	action_send(&play, &a);
	for (int i = 0; provider_effects(&play) == 0; i++) {
		assert_true(i < 100);
		play_silence(&play, 50);
	}
	play_restart(&play);
	ask_is(&a, ATTEMPT_UNKNOWN);
	nothing_more(&a, 1);
	m = action_lookup(&play, &a);
	action_is(&m, ATTEMPT_SUCCEEDED, DENIAL_NONE);
	action_done(&a);
}

static void
F6_killed_during_a_lookup_it_can_be_looked_up_again(void **state)
{
	struct msg_executed m;
	struct action a;

	(void)state;
	provider_script(&play, "effect executes_then_drops\n");
	action_refund(&play, &a);
	m = action_execute(&play, &a);
	action_is(&m, ATTEMPT_UNKNOWN, DENIAL_PROVIDER_ANSWER);
	play.dials = DIALER_HOLDS;
	ASK(&play, LOOKUP_ASK, lookup_ask,
		{.execution = a.execution, .record = buf_view(&a.record)});
	play_until_dialled(&play, play.dialled + 1);
	play_restart(&play);
	play.dials = DIALER_CONNECTS;
	ask_is(&a, ATTEMPT_UNKNOWN);
	m = action_lookup(&play, &a);
	action_is(&m, ATTEMPT_SUCCEEDED, DENIAL_NONE);
	nothing_more(&a, 1);
	action_done(&a);
}

/* Killed at moments that nobody chose: whatever the ledger says afterwards is true. */
static void
F2_F3_killed_at_any_moment_never_two_and_never_a_lie(void **state)
{
	(void)state;
	for (int us = 0; us < 30000; us += 1500) {
		unsigned before = provider_effects(&play);
		struct action a;

		action_refund(&play, &a);
		action_send(&play, &a);
		uint64_t until = clock_mono_us() + (uint64_t)us;

		while (clock_mono_us() < until)
			play_turn(&play, 1);
		play_restart(&play);
		struct msg_executed m = action_ask(&play, &a);

		play_silence(&play, 30);
		switch (m.attempt) {
		case ATTEMPT_UNSEEN:
			assert_int_equal(provider_effects(&play) - before, 0);
			break;
		case ATTEMPT_SUCCEEDED:
			assert_int_equal(provider_effects(&play) - before, 1);
			break;
		case ATTEMPT_UNKNOWN:
			assert_true(provider_effects(&play) - before <= 1);
			break;
		case ATTEMPT_DENIED:
		case ATTEMPT_NOT_SENT:
		case ATTEMPT_FAILED:
		case ATTEMPT_MAX:
			fail_msg("%s", attempt_text(m.attempt));
		}
		nothing_more(&a, provider_effects(&play));
		assert_true(provider_effects(&play) - before <= 1);
		action_done(&a);
	}
}

static void
G9_killed_while_it_waits_to_send_again_it_does_not(void **state)
{
	struct msg_executed m;
	struct action a;

	(void)state;
	provider_script(&play, "effect retry 3\n");
	action_refund(&play, &a);
	action_send(&play, &a);
	until_posted(50);
	play_silence(&play, 200);
	play_restart(&play);
	ask_is(&a, ATTEMPT_UNKNOWN);
	nothing_more(&a, 0);
	/* Not found proves nothing while the provider might still be at it: timeout_ms and consistency_ms. */
	m = action_lookup(&play, &a);
	action_is(&m, ATTEMPT_UNKNOWN, DENIAL_PROVIDER_ANSWER);
	play_silence(&play, 3600);
	m = action_lookup(&play, &a);
	action_is(&m, ATTEMPT_FAILED, DENIAL_PROVIDER_ANSWER);
	assert_int_equal(provider_requests(&play, "POST"), 1);
	action_done(&a);
}

/* ---- at random ---- */

enum { CHAOS_ROUNDS = 10, CHAOS_ACTIONS = 12 };

/* Effects at the provider with the key of this record. */
static unsigned
effects_of(const struct action *a)
{
	auto_buf struct buf all = {.max = 16 << 20};
	char key[REQUEST_KEY_MAX + 1], quoted[REQUEST_KEY_MAX + 12];
	unsigned n = 0;

	request_key(play.epoch, &a->proposal, 0, key);
	(void)snprintf(quoted, sizeof(quoted), "\"key\": \"%s\"", key);
	play_read(&play, play.provider_dir, "effects", &all);
	for (const uint8_t *p = all.p; p != NULL && p < all.p + all.n; p++) {
		p = memmem(p, (size_t)(all.p + all.n - p), quoted, strlen(quoted));
		if (p == NULL)
			break;
		n++;
	}
	return n;
}

static uint32_t
pick(uint32_t n)
{
	static uint64_t x;

	if (x == 0) {
		x = clock_mono_us() | 1;
		print_message("# chaos %llu\n", (unsigned long long)x);
	}
	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return (uint32_t)(x >> 20) % n;
}

/* What came to the engine meanwhile: a claim that must be true at the end. */
static void
hear(struct action *a, enum attempt *said, struct msg_executed m)
{
	for (unsigned i = 0; i < CHAOS_ACTIONS; i++)
		if (id_eq(&m.execution, &a[i].execution) && m.attempt != ATTEMPT_UNKNOWN)
			said[i] = m.attempt;
}

static void
settle_all(struct action *a, enum attempt *said)
{
	for (unsigned i = 0; i < CHAOS_ACTIONS; i++) {
		struct msg_executed m = action_ask(&play, &a[i]);

		hear(a, said, m);
		for (unsigned n = 0; m.attempt == ATTEMPT_UNKNOWN && n < 100; n++) {
			play_silence(&play, 100);
			m = action_lookup(&play, &a[i]);
			hear(a, said, m);
		}
		if (m.attempt == ATTEMPT_UNKNOWN && !m.incident)
			fail_msg("stays unknown: %.*s", VIEW_ARGS(m.text));
	}
}

static void
F_whatever_happens_no_effect_is_two_and_no_claim_a_lie(void **state)
{
	static const char *const scripts[] = {"", "effect executes_then_drops\n", "effect drop\n",
		"effect executes_then 500\n", "effect status 400\n", "effect retry 1\n",
		"effect status 429\n", "effect truncated\n", "effect executes_then_stalls 1\n",
		"effect garbage\n", "effect status 503\n", "read drop\n",
		"effect executes_then 202\n"};
	unsigned claims[ATTEMPT_MAX] = {0};

	(void)state;
	for (unsigned round = 0; round < CHAOS_ROUNDS; round++) {
		struct action a[CHAOS_ACTIONS];
		enum attempt said[CHAOS_ACTIONS];

		for (unsigned i = 0; i < CHAOS_ACTIONS; i++) {
			said[i] = ATTEMPT_UNKNOWN;
			provider_script(&play, scripts[pick(ARRAY_LEN(scripts))]);
			action_refund(&play, &a[i]);
		}
		for (unsigned i = 0; i < CHAOS_ACTIONS; i++)
			action_send(&play, &a[i]);
		for (uint64_t until = clock_mono_us() + pick(60000); clock_mono_us() < until;)
			play_turn(&play, 1);
		if (pick(3) == 0)
			play_engine_again(&play);
		else
			play_restart(&play);
		play_write(play.provider_dir, "script", "");
		settle_all(a, said);
		for (unsigned i = 0; i < CHAOS_ACTIONS; i++) {
			unsigned effects = effects_of(&a[i]);

			claims[said[i]]++;
			if (effects > 1 || (said[i] == ATTEMPT_SUCCEEDED && effects != 1) ||
				(said[i] != ATTEMPT_SUCCEEDED && said[i] != ATTEMPT_UNKNOWN &&
					effects != 0))
				fail_msg("%s, and %u effects", attempt_text(said[i]), effects);
			action_done(&a[i]);
		}
	}
	for (unsigned i = 0; i < ATTEMPT_MAX; i++)
		if (claims[i] != 0)
			print_message("# %s: %u\n", attempt_text((enum attempt)i), claims[i]);
}

/* ---- at the same time ---- */

static void
D3_two_hundred_executes_of_one_approval_have_one_effect(void **state)
{
	unsigned done = 0, denied = 0, refused = 0;
	struct action a;

	(void)state;
	action_refund(&play, &a);
	for (unsigned i = 0; i < 200; i++) {
		if (i % 2 == 1)
			id_new(&a.execution); /* the same and others */
		action_send(&play, &a);
	}
	for (unsigned i = 0; i < 200; i++) {
		play_want_any(&play);
		if (play.in.type == MSG_BROKER_REFUSED) {
			refused++; /* too many wait for one end */
			continue;
		}
		struct msg_executed m;

		play_decoded(msg_executed_get(play.in.body, &m, &(struct err){0}), "EXECUTED");
		if (m.attempt == ATTEMPT_SUCCEEDED)
			done++;
		else if (m.attempt == ATTEMPT_DENIED)
			denied++;
		else
			fail_msg("%s", attempt_text(m.attempt));
	}
	assert_true(done >= 1 && done + denied + refused == 200);
	assert_int_equal(provider_effects(&play), 1);
	assert_int_equal(provider_requests(&play, "POST"), 1);
	action_done(&a);
}

static void
at_most_64_things_are_in_flight(void **state)
{
	struct action a[65];

	(void)state;
	for (unsigned i = 0; i < 65; i++)
		action_refund(&play, &a[i]);
	play.dials = DIALER_HOLDS;
	for (unsigned i = 0; i < 65; i++)
		action_send(&play, &a[i]);
	WANT(&play, BROKER_REFUSED, broker_refused, m);
	assert_int_equal(m.denial, DENIAL_BROKER_UNAVAILABLE);
	assert_int_equal(play.in.tag, play.tag);
	play.dials = DIALER_CONNECTS;
	play_until_dialled(&play, 64);
	play_dial_now(&play);
	for (unsigned i = 0; i < 64; i++)
		play_want(&play, MSG_EXECUTED);
	assert_int_equal(provider_effects(&play), 64);
	for (unsigned i = 0; i < 65; i++)
		action_done(&a[i]);
}

static void
F7_a_second_broker_does_not_start(void **state)
{
	int supervisor = play.supervisor, engine = play.engine, dialer = play.dialer;
	pid_t first = play.broker;
	struct msg_executed m;
	struct action a;
	int status;

	(void)state;
	play.broker = 0;
	play_launch(&play);
	status = play_wait(&play);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 2);
	play.broker = first;
	play.supervisor = supervisor;
	play.engine = engine;
	play.dialer = dialer;
	action_refund(&play, &a);
	m = action_execute(&play, &a);
	action_is(&m, ATTEMPT_SUCCEEDED, DENIAL_NONE);
	action_done(&a);
}

/* ---- taken back ---- */

static bool
take_back(const struct action *a)
{
	ASK(&play, REVOKE, revoke, {.proposal = a->proposal});
	WANT(&play, REVOKED, revoked, m);
	return m.spent;
}

static void
D4_a_revocation_beats_what_is_not_sent(void **state)
{
	struct msg_executed m;
	struct action a;

	(void)state;
	action_refund(&play, &a);
	play.dials = DIALER_HOLDS;
	action_send(&play, &a);
	play_until_dialled(&play, 1);
	play_dial_now(&play);
	play_until_dialled(&play, 2); /* all checks were made; it connects */
	assert_false(take_back(&a));
	play.dials = DIALER_CONNECTS;
	play_dial_now(&play);
	m = action_executed(&play);
	action_is(&m, ATTEMPT_DENIED, DENIAL_REVOKED);
	play_restart(&play);
	m = action_execute(&play, &a);
	action_is(&m, ATTEMPT_DENIED, DENIAL_REVOKED);
	assert_int_equal(provider_requests(&play, "POST"), 0);
	action_done(&a);
}

static void
F8_a_revocation_while_it_is_out_stops_what_would_follow(void **state)
{
	struct msg_executed m;
	struct action a;

	(void)state;
	provider_script(&play, "effect retry 2\n");
	action_refund(&play, &a);
	action_send(&play, &a);
	until_posted(20);
	assert_true(take_back(&a)); /* too late for the first, not for the next */
	m = action_executed(&play);
	action_is(&m, ATTEMPT_FAILED, DENIAL_PROVIDER_ANSWER);
	assert_int_equal(provider_requests(&play, "POST"), 1);
	assert_int_equal(provider_effects(&play), 0);
	action_done(&a);
}

static void
contain(const char *scope)
{
	ASK(&play, BROKER_CONTAIN, broker_contain, {.scope = view_str(scope)});
	play_want(&play, MSG_BROKER_DONE);
}

static enum denial
release(const char *scope, unsigned person, uint64_t decided_ms)
{
	auto_buf struct buf record = {.max = 4096}, signature = {.max = 4096};
	struct release_record r = {.approver = view_str(play.person[person].name),
		.note = view_str("looked at it"),
		.scope = view_str(scope),
		.decided_ms = decided_ms};
	struct err err;

	assert_int_equal(release_record_write(&r, &record, &err), 0);
	play_sign(&play, person, buf_view(&record), &signature);
	ASK(&play, RELEASE_ASK, release_ask,
		{.release = buf_view(&record), .signature = buf_view(&signature)});
	WANT(&play, DECISION_IS, decision_is, m);
	return m.denial;
}

static void
what_is_contained_is_not_sent_until_it_is_released(void **state)
{
	uint64_t now = clock_real_ms();
	struct msg_executed m;
	struct action a;

	(void)state;
	action_refund(&play, &a);
	contain("tenant:acme");
	m = action_execute(&play, &a);
	action_is(&m, ATTEMPT_DENIED, DENIAL_CONTAINED);
	play_restart(&play);
	m = action_execute(&play, &a);
	action_is(&m, ATTEMPT_DENIED, DENIAL_CONTAINED);
	assert_int_equal(release("tenant:acme", 0, now), DENIAL_APPROVER_MAY_NOT);
	assert_int_equal(release("tenant:acme", 1, now), DENIAL_NONE);
	/* A release is for the containment that was. */
	contain("tenant:acme");
	assert_int_equal(release("tenant:acme", 1, now), DENIAL_SPENT);
	m = action_execute(&play, &a);
	action_is(&m, ATTEMPT_DENIED, DENIAL_CONTAINED);
	assert_int_equal(release("tenant:acme", 1, now + 1), DENIAL_NONE);
	assert_int_equal(provider_requests(&play, "POST"), 0);
	m = action_execute(&play, &a);
	action_is(&m, ATTEMPT_SUCCEEDED, DENIAL_NONE);
	action_done(&a);
}

static enum denial
settle(const struct action *a, unsigned person, bool succeeded)
{
	auto_buf struct buf record = {.max = 4096}, signature = {.max = 4096};
	char execution[ID_TEXT] = "";
	struct settlement_record r = {.approver = view_str(play.person[person].name),
		.note = view_str("asked the provider by telephone"),
		.succeeded = succeeded,
		.decided_ms = clock_real_ms()};
	struct err err;

	id_text(&a->execution, ID_EXECUTION, execution);
	r.execution = view_str(execution);
	assert_int_equal(settlement_record_write(&r, &record, &err), 0);
	play_sign(&play, person, buf_view(&record), &signature);
	ASK(&play, SETTLE_ASK, settle_ask,
		{.execution = a->execution,
			.record = buf_view(&a->record),
			.settlement = buf_view(&record),
			.signature = buf_view(&signature)});
	WANT(&play, DECISION_IS, decision_is, m);
	return m.denial;
}

static void
an_unknown_execution_blocks_the_release_until_a_person_settles_it(void **state)
{
	struct msg_executed m;
	struct action a;

	(void)state;
	provider_script(&play, "effect executes_then_drops\n");
	action_refund(&play, &a);
	m = action_execute(&play, &a);
	action_is(&m, ATTEMPT_UNKNOWN, DENIAL_PROVIDER_ANSWER);
	contain("host");
	assert_int_equal(release("host", 1, clock_real_ms()), DENIAL_RELEASE_BLOCKED);
	assert_int_equal(settle(&a, 2, true), DENIAL_APPROVER_MAY_NOT);
	assert_int_equal(settle(&a, 1, true), DENIAL_NONE);
	assert_int_equal(settle(&a, 1, false), DENIAL_STATE);
	play_restart(&play);
	m = action_ask(&play, &a);
	action_is(&m, ATTEMPT_SUCCEEDED, DENIAL_NONE);
	assert_true(view_is(m.text, "settled by ben"));
	assert_int_equal(release("host", 1, clock_real_ms()), DENIAL_NONE);
	assert_int_equal(provider_requests(&play, "POST"), 1);
	action_done(&a);
}

/* What is still on its way is not unknown: a settlement would stand beside the end that comes. */
static void
nobody_settles_what_is_still_on_its_way(void **state)
{
	struct msg_executed m;
	struct action a;

	(void)state;
	provider_script(&play, "effect executes_then_stalls 1\n");
	action_refund(&play, &a);
	action_send(&play, &a);
	for (int i = 0; provider_effects(&play) == 0; i++) {
		assert_true(i < 250);
		play_silence(&play, 20);
	}
	assert_int_equal(settle(&a, 1, false), DENIAL_STATE);
	m = action_executed(&play);
	action_is(&m, ATTEMPT_SUCCEEDED, DENIAL_NONE);
	action_done(&a);
}

static void
H1_after_an_epoch_nothing_that_was_made_before_is_sent(void **state)
{
	struct msg_executed m;
	struct action a;

	(void)state;
	action_refund(&play, &a);
	ASK(&play, EPOCH_NEXT, epoch_next, {0});
	WANT(&play, EPOCH_IS, epoch_is, e);
	assert_int_equal(e.epoch, 2);
	m = action_execute(&play, &a);
	action_is(&m, ATTEMPT_DENIED, DENIAL_CONTAINED);
	assert_int_equal(release("host", 1, clock_real_ms()), DENIAL_NONE);
	m = action_execute(&play, &a);
	action_is(&m, ATTEMPT_DENIED, DENIAL_EPOCH);
	play_restart(&play);
	assert_int_equal(play.epoch, 2);
	m = action_execute(&play, &a);
	action_is(&m, ATTEMPT_DENIED, DENIAL_EPOCH);
	action_done(&a);
	action_refund(&play, &a);
	m = action_execute(&play, &a);
	action_is(&m, ATTEMPT_SUCCEEDED, DENIAL_NONE);
	assert_int_equal(provider_effects(&play), 1);
	action_done(&a);
}

/* ---- others are away ---- */

static void
H7_without_a_dialer_nothing_is_sent(void **state)
{
	struct msg_executed m;
	struct action a;

	(void)state;
	action_refund(&play, &a);
	play.dials = DIALER_REFUSES;
	m = action_execute(&play, &a);
	action_is(&m, ATTEMPT_DENIED, DENIAL_VERIFY_UNAVAILABLE);
	play.dials = DIALER_HOLDS;
	action_send(&play, &a);
	play_until_dialled(&play, 2);
	(void)close(take_fd(&play.dialer));
	m = action_executed(&play);
	action_is(&m, ATTEMPT_DENIED, DENIAL_VERIFY_UNAVAILABLE);
	m = action_execute(&play, &a);
	action_is(&m, ATTEMPT_DENIED, DENIAL_VERIFY_UNAVAILABLE);
	action_done(&a);
	assert_int_equal(provider_requests(&play, "POST"), 0);
}

static void
a_lost_dialer_before_the_effect_is_not_sent(void **state)
{
	struct msg_executed m;
	struct action a;

	(void)state;
	action_make(&play, &a, "reply",
		"{\"body\":\"hello\",\"recipient\":\"kim@example.org\",\"subject\":\"order\"}");
	action_approve(&play, &a, 2);
	play.dials = DIALER_REFUSES;
	m = action_execute(&play, &a);
	action_is(&m, ATTEMPT_NOT_SENT, DENIAL_DIAL_REFUSED);
	/* Nothing was spent. */
	play.dials = DIALER_CONNECTS;
	id_new(&a.execution);
	m = action_execute(&play, &a);
	action_is(&m, ATTEMPT_SUCCEEDED, DENIAL_NONE);
	action_done(&a);
}

static void
a_new_engine_hears_the_end_of_what_the_old_one_asked(void **state)
{
	struct msg_executed m;
	struct action a;

	(void)state;
	provider_script(&play, "effect executes_then_stalls 1\n");
	action_refund(&play, &a);
	action_send(&play, &a);
	for (int i = 0; provider_effects(&play) == 0; i++) {
		assert_true(i < 100);
		play_silence(&play, 20);
	}
	play_engine_again(&play);
	m = action_ask(&play, &a); /* it waits for the end */
	action_is(&m, ATTEMPT_SUCCEEDED, DENIAL_NONE);
	assert_int_equal(provider_effects(&play), 1);
	action_done(&a);
}

/* The engine was restarted while the broker connects: what it asks about is shut out before it is answered. */
static void
an_asked_execution_that_is_not_sent_never_is(void **state)
{
	struct action a;

	(void)state;
	action_refund(&play, &a);
	play.dials = DIALER_HOLDS;
	action_send(&play, &a);
	play_until_dialled(&play, 1);
	play_dial_now(&play);
	play_until_dialled(&play, 2);
	play_engine_again(&play);
	ask_is(&a, ATTEMPT_UNSEEN);
	play.dials = DIALER_CONNECTS;
	play_dial_now(&play);
	play_silence(&play, 500);
	assert_int_equal(provider_requests(&play, "POST"), 0);
	action_done(&a);
}

/* ---- the disk ---- */

static void
F12_without_room_for_the_ledger_nothing_is_sent(void **state)
{
	struct msg_executed m;
	struct action a;
	struct stat st;

	(void)state;
	action_refund(&play, &a);
	assert_int_equal(fstatat(play.state, "ledger", &st, 0), 0);
	play_kill(&play);
	play.file_size = (uint64_t)st.st_size + 100; /* room for a part of an entry */
	play_start(&play);
	m = action_execute(&play, &a);
	action_is(&m, ATTEMPT_DENIED, DENIAL_AUDIT_UNAVAILABLE);
	assert_int_equal(provider_requests(&play, "POST"), 0);
	/* What was written of the entry was taken back. */
	assert_int_equal(fstatat(play.state, "ledger", &st, 0), 0);
	assert_true((uint64_t)st.st_size == play.file_size - 100);
	play_kill(&play);
	play.file_size = 0;
	play_start(&play);
	m = action_execute(&play, &a);
	action_is(&m, ATTEMPT_SUCCEEDED, DENIAL_NONE);
	action_done(&a);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(F1_killed_before_anything_it_may_still_be_sent),
		TEST(F2_killed_while_it_connects_nothing_was_spent),
		TEST(F3_killed_after_the_bytes_it_is_unknown),
		TEST(F4_killed_before_the_end_is_recorded_it_is_unknown_then_found),
		TEST(F6_killed_during_a_lookup_it_can_be_looked_up_again),
		TEST(F2_F3_killed_at_any_moment_never_two_and_never_a_lie),
		TEST(G9_killed_while_it_waits_to_send_again_it_does_not),
		TEST(F_whatever_happens_no_effect_is_two_and_no_claim_a_lie),
		TEST(D3_two_hundred_executes_of_one_approval_have_one_effect),
		TEST(at_most_64_things_are_in_flight),
		TEST(F7_a_second_broker_does_not_start),
		TEST(D4_a_revocation_beats_what_is_not_sent),
		TEST(F8_a_revocation_while_it_is_out_stops_what_would_follow),
		TEST(what_is_contained_is_not_sent_until_it_is_released),
		TEST(an_unknown_execution_blocks_the_release_until_a_person_settles_it),
		TEST(nobody_settles_what_is_still_on_its_way),
		TEST(H1_after_an_epoch_nothing_that_was_made_before_is_sent),
		TEST(H7_without_a_dialer_nothing_is_sent),
		TEST(a_lost_dialer_before_the_effect_is_not_sent),
		TEST(a_new_engine_hears_the_end_of_what_the_old_one_asked),
		TEST(an_asked_execution_that_is_not_sent_never_is),
		TEST(F12_without_room_for_the_ledger_nothing_is_sent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
