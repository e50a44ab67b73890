/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nothing can be written any more: nothing new begins, what must end ends, and when there is room again
 * every end is recorded and answered, once. The disk is a small one of the test's own mount namespace.
 */
#include "acts.h"
#include "gates.h"

#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/mount.h>
#include <sys/stat.h>
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
disk(struct play *p, bool full)
{
	static uint8_t junk[65536];
	ssize_t n = sizeof(junk);
	int fd;

	if (!full) {
		assert_int_equal(unlinkat(p->state, "junk", 0), 0);
		return;
	}
	fd = openat(p->state, "junk", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	while (n > 0)
		n = write(fd, junk, n == sizeof(junk) ? sizeof(junk) : 1);
	(void)close(fd);
}

static void
test_full(void **state)
{
	struct play *p = *state;
	struct id sandbox, task, jobs[2];
	int relay = play_create(p, &sandbox, &task);

	play_run(p, relay, &sandbox, &jobs[0]);
	play_run(p, relay, &sandbox, &jobs[1]);
	ASK(p, CELL_BEGIN, cell_begin,
		{.caller = as_root, .sandbox = sandbox, .job = jobs[0], .code = view_str("1")});
	ANSWER(p, DONE, done, begun);
	disk(p, true);
	/* Nothing begins. */
	ASK(p, JOB_RUN, job_run,
		{.caller = as_root,
			.sandbox = sandbox,
			.kind = JOB_KIND_EXEC,
			.uid = 10001,
			.argv = view_of("true", 5)});
	ANSWER(p, REFUSED, refused, run);
	assert_true(run.error == ERROR_INTERNAL || run.error == ERROR_UNAVAILABLE);
	ASK(p, CELL_BEGIN, cell_begin,
		{.caller = as_root, .sandbox = sandbox, .job = jobs[1], .code = view_str("2")});
	ANSWER(p, REFUSED, refused, cell);
	ASK(p, CELL_END, cell_end,
		{.caller = as_root,
			.sandbox = sandbox,
			.job = jobs[0],
			.reason = JOB_REASON_EXITED});
	ANSWER(p, REFUSED, refused, cell_end);
	ASK(p, SANDBOX_CREATE, sandbox_create, {.caller = as_root, .template = view_str("python")});
	ANSWER(p, REFUSED, refused, made);
	ASK(p, TOKEN_CREATE, token_create,
		{.caller = as_root, .prefix = view_str("dml_50"), .token = {50}});
	ANSWER(p, REFUSED, refused, token);
	play_want_silence(p, relay, 50);
	play_want_silence(p, p->supervisor, 50);
	/* What cannot be recorded is not answered, and the relay keeps it. */
	play_end_job(p, relay, &jobs[0], 0);
	play_want_silence(p, relay, 700);
	play_want_silence(p, p->api, 50);
	disk(p, false);
	WANT(p, relay, JOB_RECORDED, job_recorded, recorded);
	WANT(p, p->api, JOB_ROW, job_row, row);
	assert_int_equal(row.reason, JOB_REASON_EXITED);
	disk(p, true);
	/* Killing does not wait for the record. */
	ASK(p, SANDBOX_KILL, sandbox_kill, {.caller = as_root, .sandbox = sandbox});
	WANT(p, p->supervisor, KILL, kill, kill);
	play_gone(p, &sandbox, SANDBOX_REASON_KILLED);
	play_want_silence(p, p->api, 700);
	disk(p, false);
	WANT(p, p->api, JOB_ROW, job_row, lost);
	assert_int_equal(lost.reason, JOB_REASON_SANDBOX_ENDED);
	ANSWER(p, SANDBOX_ROW, sandbox_row, gone);
	assert_int_equal(gone.state, SANDBOX_STATE_GONE);
	assert_int_equal(gone.proof.teardown_us, 900);
	(void)play_audit(p, &task);
	assert_int_equal(play_events(p, "job.start"), 2);
	assert_int_equal(play_events(p, "job.end"), 2);
	/* The end that could not be recorded came with its job. */
	assert_int_equal(play_events(p, "cell.start"), 1);
	assert_int_equal(play_events(p, "cell.end"), 1);
	assert_true(play_recorded("\"reason\":\"exited\",\"source\":\"engine\""));
	assert_int_equal(play_events(p, "sandbox.gone"), 1);
	/* The kill is in the record, once, by whom it was asked. */
	assert_int_equal(play_events(p, "sandbox.kill"), 1);
	assert_true(play_record(p, "sandbox.kill", "\"name\":\"uid:0\""));
	assert_true(play_record(p, "sandbox.kill", "\"reason\":\"killed\""));
	(void)close(relay);
}

/* What the kernel did while nothing could be written is recorded when there is room again. */
static void
test_freeze(void **state)
{
	struct play *p = *state;
	struct id sandbox, task;
	int relay = play_create(p, &sandbox, &task);

	ASK(p, SANDBOX_FREEZE, sandbox_freeze,
		{.caller = as_root, .sandbox = sandbox, .frozen = true});
	WANT(p, p->supervisor, FREEZE, freeze, freeze);
	(void)usleep(50000);
	disk(p, true);
	SAY(p->supervisor, FROZEN, frozen, {.sandbox = sandbox, .frozen = true});
	ANSWER(p, SANDBOX_ROW, sandbox_row, row);
	assert_int_equal(row.state, SANDBOX_STATE_PAUSED);
	(void)play_audit(p, &task);
	assert_int_equal(play_events(p, "sandbox.frozen"), 0);
	disk(p, false);
	play_want_silence(p, p->api, 1200);
	(void)play_audit(p, &task);
	assert_int_equal(play_events(p, "sandbox.freeze"), 1);
	assert_int_equal(play_events(p, "sandbox.frozen"), 1);
	(void)close(relay);
}

/* Ready, but it cannot be recorded: it is not handed out. */
static void
test_not_ready(void **state)
{
	struct play *p = *state;
	struct id sandbox;

	ASK(p, SANDBOX_CREATE, sandbox_create, {.caller = as_root, .template = view_str("python")});
	WANT(p, p->supervisor, SPAWN, spawn, spawn);
	sandbox = spawn.sandbox;
	struct facts f = play_facts(p, &spawn.limits);
	(void)usleep(50000); /* the sync of the creation is over */
	disk(p, true);
	int relay = play_spawned(p, &sandbox, &f);
	SAY(relay, RELAY_READY, relay_ready, {.agent_version = 1});
	WANT(p, p->supervisor, KILL, kill, kill);
	play_gone(p, &sandbox, SANDBOX_REASON_KILLED);
	play_want_silence(p, p->api, 300);
	disk(p, false);
	play_refused(p, ERROR_SPAWN);
	(void)close(relay);
}

static struct acts acts;

static int
setup_acts(void **state)
{
	acts_open(&acts);
	acts_start(&acts);
	(void)acts_grant(&acts, "refund", NULL, 20);
	*state = &acts;
	return 0;
}

static int
teardown_acts(void **state)
{
	acts_close(*state);
	return 0;
}

/* What cannot be recorded is not done: not asked, not shown, not decided, not sent; and when there is room again it goes on. */
static void
F12_on_a_full_disk_nothing_is_proposed_or_decided(void **state)
{
	struct acts *a = *state;
	struct play *p = &a->p;
	struct id id = acts_pending(a, "1", 1), checked;
	uint64_t verify, decision;

	acts_ask(a, 5, "refund", "{\"cents\":1,\"order_id\":\"2\"}");
	{
		WANT(p, p->broker, VERIFY_ASK, verify_ask, m);
		checked = m.proposal;
		verify = p->in.tag;
	}
	acts_decide(a, &id, "anna", true);
	decision = acts_decision(a);
	disk(p, true);
	acts_ask(a, 6, "refund", "{\"cents\":1,\"order_id\":\"3\"}");
	acts_denied(a, 6, DENIAL_AUDIT_UNAVAILABLE);
	acts_verified(a, verify, DENIAL_NONE, FACTS_GOOD);
	acts_denied(a, 5, DENIAL_AUDIT_UNAVAILABLE);
	acts_decided(a, decision, DENIAL_NONE, "anna", 1);
	{
		ANSWER(p, REFUSED, refused, m);
		assert_int_equal(m.error, ERROR_UNAVAILABLE);
	}
	play_want_silence(p, p->broker, 100);
	assert_int_equal(acts_state(a, &id), PROPOSAL_STATE_PENDING);
	assert_int_equal(acts_state(a, &checked), PROPOSAL_STATE_PROPOSED);
	disk(p, false);
	for (int i = 0; acts_state(a, &checked) != PROPOSAL_STATE_DENIED; i++) {
		assert_true(i < 300);
		(void)usleep(20000);
	}
	assert_int_equal(acts_budget(a, false, COUNTER_BROKER_CALLS, "").reserved, 0);
	(void)acts_pending(a, "2", 1); /* it may be asked again */
	acts_decide(a, &id, "anna", true);
	acts_decided(a, acts_decision(a), DENIAL_NONE, "anna", 1);
	acts_executed(a, acts_execute(a), ATTEMPT_SUCCEEDED);
	ANSWER(p, PROPOSAL_ROW, proposal_row, row);
	assert_int_equal(row.state, PROPOSAL_STATE_SUCCEEDED);
	(void)play_audit(p, &a->task);
}

/* Of a gateway: what cannot be recorded may not move, and what moved already is recorded when there is room again. */
static void
test_nothing_moves_without_a_record(void **state)
{
	struct gates *g = *state;
	struct msg_verdict m = good_verdict();
	struct msg_flow f = {.scheme = m.scheme, .rule = m.rule, .port = m.port, .name = m.name};
	struct msg_net_budget budget = {0};
	struct msg_net_row row = {0};
	struct boxed b;
	size_t n = 1;

	boxed_create(g, &g->task, &b);
	assert_int_equal(allot(g, &b, &(struct egress){0}).total.names, 5);
	assert_int_equal(verdict_say(g, &b, 1, &m), EGRESS_REASON_NONE);
	disk(&g->p, true);
	assert_int_equal(verdict_say(g, &b, 2, &m), EGRESS_REASON_AUDIT);
	f.count = 2;
	f.bytes_in = 50;
	SAY(b.gateway, FLOW, flow, f);
	/* It has what it had. */
	assert_int_equal(allot(g, &b, &(struct egress){.names = 5}).total.names, 5);
	SAY_TAG(b.gateway, 9, LEASE_ASK, lease_ask, -1, {.rule = CARRIER});
	WANT(&g->p, b.gateway, LEASE_IS, lease_is, lease);
	assert_int_equal(lease.reason, EGRESS_REASON_AUDIT);
	disk(&g->p, false);
	for (int i = 0; i < 50 && row.count < 3; i++) {
		(void)usleep(100000);
		gates_net(g, &g->task, &budget, &row, &n);
	}
	assert_int_equal(row.count, 3);
	assert_int_equal(row.bytes_in, 50);
	assert_int_equal(verdict_say(g, &b, 3, &m), EGRESS_REASON_NONE);
	(void)play_audit(&g->p, &g->task);
	assert_int_equal(play_events(&g->p, "egress.verdict"), 2);
	assert_int_equal(play_events(&g->p, "egress.flow"), 1);
}

int
main(void)
{
	/* A folder of its own below /tmp: the programs may stand there too. */
	static char place[] = "/tmp/demilune-full-XXXXXX";

	if (mkdtemp(place) == NULL || chmod(place, 0755) < 0 || unshare(CLONE_NEWNS) < 0 ||
		mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		mount("tmpfs", place, "tmpfs", MS_NOSUID | MS_NODEV, "size=4m,mode=1777") < 0 ||
		setenv("TMPDIR", place, 1) < 0)
		return 1;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_full, setup, teardown),
		cmocka_unit_test_setup_teardown(test_not_ready, setup, teardown),
		cmocka_unit_test_setup_teardown(test_freeze, setup, teardown),
		cmocka_unit_test_setup_teardown(F12_on_a_full_disk_nothing_is_proposed_or_decided,
			setup_acts, teardown_acts),
		cmocka_unit_test_setup_teardown(
			test_nothing_moves_without_a_record, gates_setup, gates_teardown),
	};

	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	if (umount(place) < 0 || rmdir(place) < 0)
		return 1;
	return failed;
}
