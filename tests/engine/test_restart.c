/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine is killed with SIGKILL after each step of a story, for every number of steps, and started again. Whatever
 * the step was: the chain has no gap, no job runs that nobody holds, no sandbox lives that nobody has, a key still means
 * what it meant, and the story can be told to its end.
 */
#include "play.h"

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

/* What the played supervisor and relay know. */
struct world {
	struct id sandbox, task, job;
	bool asked, stands, ready, started, ended, ending, gone;
	struct facts facts;
	struct limits limits;
	int relay;
};

static const struct msg_sandbox_create create = {.caller = {.kind = CALLER_KIND_LOCAL},
	.idempotency_key = {1},
	.idempotency_body = {2},
	.tenant = {(const uint8_t *)"acme", 4},
	.template = {(const uint8_t *)"python", 6},
	.metadata = {(const uint8_t *)"ticket\00048221\0a\0b", 17}};

/* One step each; false when the story is over. */
static bool
step(struct play *p, struct world *w, unsigned n)
{
	switch (n) {
	case 0:
		ASK(p, SANDBOX_CREATE, sandbox_create, create);
		return true;
	case 1: {
		WANT(p, p->supervisor, SPAWN, spawn, spawn);
		w->sandbox = spawn.sandbox;
		w->task = spawn.task;
		w->limits = spawn.limits;
		w->asked = true;
		return true;
	}
	case 2:
		w->facts = play_facts(p, &w->limits);
		w->relay = play_spawned(p, &w->sandbox, &w->facts);
		w->stands = true;
		return true;
	case 3:
		SAY(w->relay, RELAY_READY, relay_ready, {.agent_version = 1});
		return true;
	case 4: {
		ANSWER(p, SANDBOX_ROW, sandbox_row, row);
		w->ready = true;
		return true;
	}
	case 5:
		ASK(p, JOB_RUN, job_run,
			{.caller = as_root,
				.sandbox = w->sandbox,
				.kind = JOB_KIND_EXEC,
				.uid = 10001,
				.argv = view_of("true", 5)});
		return true;
	case 6: {
		WANT(p, w->relay, JOB_START, job_start, start);
		w->job = start.job;
		w->started = true;
		return true;
	}
	case 7:
		play_end_job(p, w->relay, &w->job, 0);
		w->ended = true;
		return true;
	case 8: {
		WANT(p, p->api, JOB_OPENED, job_opened, opened);
		ANSWER(p, JOB_ROW, job_row, row);
		return true;
	}
	case 9:
		ASK(p, SANDBOX_KILL, sandbox_kill, {.caller = as_root, .sandbox = w->sandbox});
		return true;
	case 10: {
		WANT(p, p->supervisor, KILL, kill, kill);
		w->ending = true;
		return true;
	}
	case 11:
		play_gone(p, &w->sandbox, SANDBOX_REASON_KILLED);
		w->gone = true;
		return true;
	case 12: {
		ANSWER(p, SANDBOX_ROW, sandbox_row, row);
		return true;
	}
	default:
		return false;
	}
}

/* The engine is started again: the supervisor says what it holds, the relay what runs. */
static bool
again(struct play *p, struct world *w, bool same_boot)
{
	bool held = same_boot && w->stands && !w->gone;
	int pair[2];
	struct err err;

	play_kill(p);
	if (!same_boot)
		p->boot[0]++;
	play_launch(p);
	if (w->relay >= 0)
		(void)close(w->relay);
	w->relay = -1;
	if (held) {
		assert_int_equal(ipc_pair(pair, &err), 0);
		SAY_FD(p->supervisor, HELD, held, pair[1],
			{.sandbox = w->sandbox,
				.task = w->task,
				.facts = w->facts,
				.ttl_left_ms = 60000});
		(void)close(pair[1]);
		w->relay = pair[0];
	} else if (!same_boot && w->asked) {
		SAY(p->supervisor, LEFTOVER, leftover, {.sandbox = w->sandbox, .task = w->task});
	}
	SAY(p->supervisor, HELD_END, held_end, {0});
	return held;
}

/* Messages of the supervisor until TEMPLATE_PREPARE; was the sandbox killed? */
static bool
killed_before_ready(struct play *p)
{
	for (bool killed = false;;) {
		play_want_any(p, p->supervisor);
		if (p->in.type == MSG_TEMPLATE_PREPARE) {
			struct msg_template_ready ready = {0};

			memcpy(ready.template, p->template, 32);
			SAY(p->supervisor, TEMPLATE_READY, template_ready, ready);
			return killed;
		}
		assert_int_equal(p->in.type, MSG_KILL);
		killed = true;
	}
}

/* Nothing of it is open: every start has its end, and the sandbox is gone. */
static void
check_closed(struct play *p, const struct world *w)
{
	ASK(p, SANDBOX_GET, sandbox_get, {.caller = as_root, .sandbox = w->sandbox});
	ANSWER(p, SANDBOX_ROW, sandbox_row, row);
	assert_true(row.state == SANDBOX_STATE_GONE || row.state == SANDBOX_STATE_FAILED);
	(void)play_audit(p, &w->task);
	assert_int_equal(play_events(p, "sandbox.create"), 1);
	assert_int_equal(play_events(p, "sandbox.gone"), 1);
	assert_int_equal(play_events(p, "job.start"), play_events(p, "job.end"));
	if (w->started)
		assert_int_equal(play_events(p, "job.start"), 1);
	ASK(p, JOB_LIST, job_list, {.caller = as_root, .sandbox = w->sandbox});
	for (;;) {
		struct err err = {0};

		play_want_any(p, p->api);
		if (p->in.type == MSG_END)
			break;
		assert_int_equal(p->in.type, MSG_JOB_ROW);
		struct msg_job_row job;
		play_decoded(msg_job_row_get(p->in.body, &job, &err), "JOB_ROW");
		assert_int_not_equal(job.reason, JOB_REASON_RUNNING);
	}
}

/* A creation that was answered is the same sandbox for its key; one that came to nothing can be made anew. */
static void
check_key(struct play *p, struct world *w)
{
	struct id id;

	ASK(p, SANDBOX_CREATE, sandbox_create, create);
	if (w->ready) {
		ANSWER(p, SANDBOX_ROW, sandbox_row, row);
		assert_true(row.replayed);
		assert_true(id_eq(&row.sandbox, &w->sandbox));
		return;
	}
	/* It was ready and nobody heard of it, or it is made anew. */
	struct err err = {0};
	play_want_either(p);
	if (p->in.type == MSG_SANDBOX_ROW) {
		struct msg_sandbox_row row;
		play_decoded(msg_sandbox_row_get(p->in.body, &row, &err), "SANDBOX_ROW");
		assert_true(row.replayed);
		return;
	}
	assert_int_equal(p->in.type, MSG_SPAWN);
	struct msg_spawn spawn;
	play_decoded(msg_spawn_get(p->in.body, &spawn, &err), "SPAWN");
	struct facts f = play_facts(p, &spawn.limits);
	int relay = play_spawned(p, &spawn.sandbox, &f);
	SAY(relay, RELAY_READY, relay_ready, {.agent_version = 1});
	ANSWER(p, SANDBOX_ROW, sandbox_row, row);
	assert_int_equal(row.state, SANDBOX_STATE_RUNNING);
	id = row.sandbox;
	assert_false(id_eq(&id, &w->sandbox));
	(void)close(relay);
}

/* The relay of a held sandbox: it runs the job, or the job's end was not recorded. */
static void
resync(struct play *p, struct world *w)
{
	(void)p;
	if (w->started && !w->ended)
		SAY(w->relay, RELAY_JOB, relay_job, {.job = w->job});
	SAY(w->relay, RELAY_JOBS_END, relay_jobs_end, {0});
	if (w->started && w->ended)
		play_end_job(p, w->relay, &w->job, 0);
}

static void
killed_after(struct play *p, unsigned steps, bool same_boot)
{
	struct world w = {.relay = -1};
	bool held, killed;

	for (unsigned i = 0; i < steps; i++)
		if (!step(p, &w, i))
			return;
	/* What was sent is heard before the kill, or not: both must be right. */
	if (steps % 2 == 0)
		(void)usleep(20000);
	held = again(p, &w, same_boot);
	killed = killed_before_ready(p);
	if (!w.asked)
		return; /* nobody knows a name of it */
	if (held && !killed) {
		resync(p, &w);
		if (w.started && !w.ended)
			play_end_job(p, w.relay, &w.job, 0);
		ASK(p, SANDBOX_KILL, sandbox_kill, {.caller = as_root, .sandbox = w.sandbox});
		WANT(p, p->supervisor, KILL, kill, kill);
		play_gone(p, &w.sandbox, SANDBOX_REASON_KILLED);
		ANSWER(p, SANDBOX_ROW, sandbox_row, row);
		assert_int_equal(row.state, SANDBOX_STATE_GONE);
	} else if (held) {
		play_gone(p, &w.sandbox, SANDBOX_REASON_KILLED);
	}
	do
		(void)play_audit(p, &w.task);
	while (play_events(p, "sandbox.gone") == 0);
	check_closed(p, &w);
	check_key(p, &w);
	if (w.relay >= 0)
		(void)close(w.relay);
}

static void
test_every_step(void **state)
{
	struct play *p = *state;

	for (unsigned steps = 0; steps <= 13; steps++)
		for (unsigned boot = 0; boot < 2; boot++) {
			killed_after(p, steps, boot == 0);
			play_close(p);
			play_open(p);
			play_start(p);
		}
}

/* A job goes on while the engine is away; its end is recorded by the next one. */
static void
test_job_survives(void **state)
{
	struct play *p = *state;
	struct world w = {.relay = -1};

	for (unsigned i = 0; i <= 6; i++)
		assert_true(step(p, &w, i));
	assert_true(again(p, &w, true));
	assert_false(killed_before_ready(p));
	SAY(w.relay, RELAY_JOB, relay_job, {.job = w.job});
	SAY(w.relay, RELAY_JOBS_END, relay_jobs_end, {0});
	play_want_silence(p, w.relay, 3000); /* named, so not lost */
	ASK(p, JOB_ATTACH, job_attach, {.caller = as_root, .sandbox = w.sandbox, .job = w.job});
	WANT(p, w.relay, JOB_SESSION, job_session, session);
	ANSWER(p, JOB_OPENED, job_opened, opened);
	play_end_job(p, w.relay, &w.job, 0);
	ANSWER(p, JOB_ROW, job_row, row);
	assert_int_equal(row.reason, JOB_REASON_EXITED);
	(void)close(w.relay);
}

/* A job that the relay does not name is lost; one that the store does not know is stopped; what ended unheard is told again. */
static void
test_relay_tells(void **state)
{
	struct play *p = *state;
	struct world w = {.relay = -1};

	for (unsigned i = 0; i <= 6; i++)
		assert_true(step(p, &w, i));
	assert_true(again(p, &w, true));
	assert_false(killed_before_ready(p));
	SAY(w.relay, RELAY_JOB, relay_job, {.job = {{7}}});
	WANT(p, w.relay, JOB_SIGNAL, job_signal, signal);
	assert_int_equal(signal.job.b[0], 7);
	assert_int_equal(signal.signal, 0);
	SAY(w.relay, RELAY_JOBS_END, relay_jobs_end, {0});
	SAY(w.relay, JOB_ENDED, job_ended, {.job = {{7}}, .cancelled = true});
	WANT(p, w.relay, JOB_RECORDED, job_recorded, seven);
	assert_int_equal(seven.job.b[0], 7);
	WANT(p, w.relay, JOB_RECORDED, job_recorded, lost);
	assert_true(id_eq(&lost.job, &w.job));
	ASK(p, JOB_GET, job_get, {.caller = as_root, .sandbox = w.sandbox, .job = w.job});
	ANSWER(p, JOB_ROW, job_row, row);
	assert_int_equal(row.reason, JOB_REASON_AGENT_LOST);
	(void)close(w.relay);
}

/* A sandbox that the store does not know is ended. */
static void
test_stranger(void **state)
{
	struct play *p = *state;
	int pair[2];
	struct err err;

	play_kill(p);
	play_launch(p);
	assert_int_equal(ipc_pair(pair, &err), 0);
	SAY_FD(p->supervisor, HELD, held, pair[1], {.sandbox = {{9}}, .task = {{9}}});
	WANT(p, p->supervisor, KILL, kill, kill);
	assert_int_equal(kill.reason, SANDBOX_REASON_ENGINE_RESTART);
	assert_int_equal(kill.sandbox.b[0], 9);
	play_ready(p);
	SAY(p->supervisor, GONE, gone, {.sandbox = {{9}}});
	ASK(p, HEALTH, health, {0});
	ANSWER(p, HEALTH_ROW, health_row, health);
	(void)close(pair[0]);
	(void)close(pair[1]);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(every_step),
		TEST(job_survives),
		TEST(relay_tells),
		TEST(stranger),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
