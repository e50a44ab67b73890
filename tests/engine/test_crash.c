/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine is killed with SIGKILL right before each write, sync and message between the broker's yes and EXECUTE, and around its
 * answer; the played broker has the ledger and is the witness. Whatever the moment was: nothing is carried out twice, nothing that was sent
 * is called unsent, and what nobody can know is unknown.
 */
#include "carry.h"
#include "trace.h"

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

#define BEGIN(p, a)                                          \
	struct play *p = *state;                             \
	__attribute__((cleanup(carry_done))) struct carry a; \
	carry_start(p, &a);                                  \
	carry_grant(p, &a, "reply", 50)

/* ---- order ---- */

/* Between the last write of the transaction and EXECUTE there is a sync. */
static void
test_F2_on_disk_before_it_is_sent(void **state)
{
	BEGIN(p, a);
	struct trace t;
	int sent = -1, synced = -1, written = -1;

	carry_reply(p, &a, 1);
	carry_ask(p, &a, "anna", clock_real_ms() + 60000);
	(void)usleep(100000); /* syncs of groups are over */
	trace_begin(&t, p->engine, 0);
	carry_yes(p, "anna");
	carry_execute(p, &a);
	trace_end(&t);
	for (unsigned i = 0; i < trace_count(&t) && sent < 0; i++)
		switch (trace_at(&t, i)) {
		case TRACE_WRITE:
			written = (int)i;
			break;
		case TRACE_SYNC:
			synced = (int)i;
			break;
		case TRACE_BROKER:
			sent = (int)i;
			break;
		case TRACE_CALLS:
			fail();
		}
	assert_true(written >= 0 && synced > written && sent > synced);
	trace_free(&t);
	carry_executed(p, &a, ATTEMPT_SUCCEEDED);
	carry_decided(p, &a, PROPOSAL_STATE_SUCCEEDED);
}

/* The result is on disk before anybody is told. */
static void
test_F4_on_disk_before_it_is_told(void **state)
{
	BEGIN(p, a);
	struct trace t;

	carry_dispatch(p, &a, 1);
	(void)usleep(100000);
	trace_begin(&t, p->engine, 0);
	carry_executed(p, &a, ATTEMPT_SUCCEEDED);
	carry_decided(p, &a, PROPOSAL_STATE_SUCCEEDED);
	trace_end(&t);
	assert_true(trace_count(&t) >= 2);
	assert_int_equal(trace_at(&t, trace_count(&t) - 1), TRACE_SYNC);
	trace_free(&t);
}

/* ---- killed ---- */

/* What the broker of the test knows. */
struct ledger {
	unsigned executes; /* that it received */
	bool spent, shut;
};

/* Its words to an engine that starts: until nothing comes any more. */
static void
serve(struct play *p, struct carry *a, struct ledger *l, enum attempt what_became)
{
	while (carry_pending(p->broker) || carry_pending(p->broker)) {
		play_want_any(p, p->broker);
		a->execute_tag = p->in.tag;
		if (p->in.type == MSG_EXECUTION_ASK) {
			struct msg_execution_ask m;

			play_decoded(
				msg_execution_ask_get(p->in.body, &m, &(struct err){0}), "ASK");
			assert_true(id_eq(&m.proposal, &a->proposal));
			a->execution = m.execution;
			l->shut = l->shut || !l->spent;
			carry_executed(p, a, l->spent ? what_became : ATTEMPT_UNSEEN);
		} else if (p->in.type == MSG_EXECUTE) {
			struct msg_execute m;

			play_decoded(msg_execute_get(p->in.body, &m, &(struct err){0}), "EXECUTE");
			a->execution = m.execution;
			assert_false(l->shut);
			assert_false(l->spent);
			l->spent = true;
			l->executes++;
			carry_executed(p, a, ATTEMPT_SUCCEEDED);
		} else if (p->in.type == MSG_LOOKUP_ASK) {
			carry_executed(p, a, what_became);
		} else if (p->in.type == MSG_REVOKE) {
			SAY_TAG(p->broker, p->in.tag, REVOKED, revoked, -1, {.spent = l->spent});
		} else {
			fail_msg("%s came", msg_info[p->in.type].name);
		}
	}
}

static enum proposal_state
settled_state(struct play *p, struct carry *a, struct ledger *l, enum attempt what_became)
{
	for (int i = 0; i < 50; i++) {
		enum proposal_state s;

		serve(p, a, l, what_became);
		s = carry_state(p, a);
		if (s != PROPOSAL_STATE_DISPATCHING && s != PROPOSAL_STATE_APPROVED)
			return s;
	}
	fail_msg("it stays open");
	return PROPOSAL_STATE_MAX;
}

/* Is EXECUTE among what the dead engine had sent? */
static bool
witnessed(struct play *p)
{
	while (carry_pending(p->broker) && play_read(p, p->broker))
		if (p->in.type == MSG_EXECUTE)
			return true;
	return false;
}

/* F1, F2, F3: killed before its n-th write, sync or message after the broker's yes; false when it was not that many. */
static bool
killed_before(struct play *p, unsigned n, enum attempt what_became, unsigned *states)
{
	__attribute__((cleanup(carry_done))) struct carry a;
	struct ledger l = {0};
	enum proposal_state state;
	struct trace t;
	bool killed;

	carry_start(p, &a);
	carry_grant(p, &a, "reply", 50);
	carry_reply(p, &a, 1);
	carry_ask(p, &a, "anna", clock_real_ms() + 60000);
	(void)usleep(100000);
	trace_begin(&t, p->engine, n);
	carry_yes(p, "anna");
	for (int i = 0; i < 100 && !trace_killed(&t) && !carry_pending(p->broker); i++)
		;
	killed = trace_killed(&t);
	trace_end(&t);
	trace_free(&t);
	l.spent = witnessed(p);
	l.executes = l.spent;
	play_kill(p);
	play_start(p);
	play_broker(p, false);
	state = settled_state(p, &a, &l, what_became);
	if (state == PROPOSAL_STATE_PENDING) {
		/* Nothing of the decision was kept: it is made again. */
		carry_approve(p, &a, "anna");
		serve(p, &a, &l, what_became);
		carry_decided(p, &a, PROPOSAL_STATE_SUCCEEDED);
		state = PROPOSAL_STATE_SUCCEEDED;
	}
	*states |= 1U << state;
	assert_true(l.executes <= 1);
	if (l.shut)
		assert_int_equal(state, PROPOSAL_STATE_FAILED);
	else if (l.executes == 0)
		fail_msg("it is %s, and nobody saw it", proposal_state_text(state));
	(void)play_audit(p, &a.task);
	assert_int_equal(play_events(p, "execution.dispatching"), 1);
	return killed;
}

static void
matrix(struct play *p, enum attempt what_became, unsigned wanted)
{
	unsigned states = 0;
	bool killed = true;

	for (unsigned n = 1; killed; n++) {
		assert_true(n < 200);
		killed = killed_before(p, n, what_became, &states);
		play_close(p);
		play_open(p);
		play_start(p);
	}
	/* Each of the ways out was seen, none besides. */
	assert_int_equal(states, wanted);
}

/* F1: before the commit it is approved, and carried out by the next one. F2: after it, and before EXECUTE: failed, never sent. */
static void
test_F1_F2_killed_before_execute(void **state)
{
	matrix(*state, ATTEMPT_UNKNOWN,
		1U << PROPOSAL_STATE_SUCCEEDED | 1U << PROPOSAL_STATE_FAILED |
			1U << PROPOSAL_STATE_UNKNOWN);
}

/* F3: killed after EXECUTE: what the ledger says, and unknown when it cannot say. */
static void
test_F3_killed_after_execute(void **state)
{
	static const struct {
		enum attempt attempt;
		enum proposal_state state;
	} rows[] = {{ATTEMPT_UNKNOWN, PROPOSAL_STATE_UNKNOWN},
		{ATTEMPT_SUCCEEDED, PROPOSAL_STATE_SUCCEEDED},
		{ATTEMPT_FAILED, PROPOSAL_STATE_FAILED}, {ATTEMPT_UNSEEN, PROPOSAL_STATE_FAILED}};
	BEGIN(p, a);

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		carry_dispatch(p, &a, i);
		carry_restart(p, true);
		WANT(p, p->broker, EXECUTION_ASK, execution_ask, m);
		assert_true(id_eq(&m.execution, &a.execution));
		assert_true(id_eq(&m.proposal, &a.proposal));
		a.execute_tag = p->in.tag;
		assert_int_equal(carry_state(p, &a), PROPOSAL_STATE_DISPATCHING);
		carry_executed(p, &a, rows[i].attempt);
		while (carry_state(p, &a) == PROPOSAL_STATE_DISPATCHING)
			(void)usleep(2000);
		assert_int_equal(carry_state(p, &a), rows[i].state);
		struct msg_execution_row row = carry_row(p, &a);
		assert_int_equal(row.sends, rows[i].attempt != ATTEMPT_UNSEEN);
		if (rows[i].attempt != ATTEMPT_UNKNOWN)
			continue;
		/* The look-up that follows by itself. */
		WANT(p, p->broker, LOOKUP_ASK, lookup_ask, look);
		a.execute_tag = p->in.tag;
		carry_executed(p, &a, ATTEMPT_SUCCEEDED);
		while (carry_state(p, &a) == PROPOSAL_STATE_UNKNOWN)
			(void)usleep(2000);
	}
	(void)play_audit(p, &a.task);
	assert_int_equal(play_events(p, "execution.dispatching"), 4);
}

/* F4: it answered, and the engine died before that was stored: the ledger says it again. */
static void
test_F4_killed_before_the_result_is_stored(void **state)
{
	struct play *p = *state;
	bool killed = true;

	for (unsigned n = 1; killed; n++) {
		__attribute__((cleanup(carry_done))) struct carry a;
		struct ledger l = {.spent = true};
		struct trace t;

		carry_start(p, &a);
		carry_grant(p, &a, "reply", 50);
		carry_dispatch(p, &a, 1);
		(void)usleep(100000);
		trace_begin(&t, p->engine, n);
		carry_executed(p, &a, ATTEMPT_SUCCEEDED);
		for (int i = 0; i < 100 && !trace_killed(&t) && !carry_pending(p->api); i++)
			;
		killed = trace_killed(&t);
		trace_end(&t);
		trace_free(&t);
		carry_restart(p, true);
		assert_int_equal(
			settled_state(p, &a, &l, ATTEMPT_SUCCEEDED), PROPOSAL_STATE_SUCCEEDED);
		assert_int_equal(l.executes, 0);
		(void)play_audit(p, &a.task);
		assert_int_equal(play_events(p, "execution.succeeded"), 1);
		play_close(p);
		play_open(p);
		play_start(p);
	}
}

/* ---- only the broker is restarted ---- */

static void
test_H7_broker_lost(void **state)
{
	struct msg_broker_ready m = {
		.epoch = 7, .audit_key = view_str("demilune.local/audit+00000000+AA")};
	BEGIN(p, a);

	memcpy(m.catalogue, p->catalogue.digest, 32);
	struct carry b = a;
	carry_reply(p, &b, 2);
	carry_dispatch(p, &a, 1);
	play_broker_lost(p);
	play_want_silence(p, p->api, 300); /* nobody knows, so nothing is said yet */
	/* Without it nothing is decided: denied, never a "yes" from before. */
	struct msg_proposal_decide d = {.caller = as_root, .proposal = b.proposal};
	struct decision_record r = {.approver = view_str("anna"),
		.approve = true,
		.reason = view_str(""),
		.decided_ms = clock_real_ms(),
		.dispatch_by_ms = clock_real_ms() + 60000};
	auto_buf struct buf bytes;
	struct err err;
	buf_init(&bytes, DECISION_RECORD_MAX);
	memcpy(r.proposal, b.digest, 32);
	memcpy(d.shown, b.digest, 32);
	assert_int_equal(decision_record_write(&r, &bytes, &err), 0);
	d.decision = buf_view(&bytes);
	d.signature = view_str("signed");
	ASK(p, PROPOSAL_DECIDE, proposal_decide, d);
	ANSWER(p, REFUSED, refused, no);
	assert_int_equal(no.error, ERROR_UNAVAILABLE);
	assert_int_equal(no.denial, DENIAL_BROKER_UNAVAILABLE);
	carry_broker(p, &m);
	WANT(p, p->broker, EXECUTION_ASK, execution_ask, ask);
	assert_true(id_eq(&ask.execution, &a.execution));
	a.execute_tag = p->in.tag;
	carry_executed(p, &a, ATTEMPT_SUCCEEDED);
	carry_decided(p, &a, PROPOSAL_STATE_SUCCEEDED);
	assert_int_equal(carry_state(p, &b), PROPOSAL_STATE_PENDING);
}

/* ---- the disk is full ---- */

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

/* F12: what cannot be recorded is not done; when there is room again it is decided anew. */
static void
test_F12_disk_full_nothing_is_dispatched(void **state)
{
	BEGIN(p, a);

	carry_reply(p, &a, 1);
	carry_ask(p, &a, "anna", clock_real_ms() + 60000);
	(void)usleep(100000);
	uint64_t tag = p->in.tag;
	disk(p, true);
	p->in.tag = tag;
	carry_yes(p, "anna");
	ANSWER(p, REFUSED, refused, no);
	assert_true(no.error == ERROR_INTERNAL || no.error == ERROR_UNAVAILABLE ||
		    no.error == ERROR_DENIED);
	play_want_silence(p, p->broker, 500);
	disk(p, false);
	assert_int_equal(carry_state(p, &a), PROPOSAL_STATE_PENDING);
	carry_approve(p, &a, "anna");
	carry_execute(p, &a);
	/* The result cannot be recorded: the ledger is asked until it can be. */
	(void)usleep(100000);
	disk(p, true);
	carry_executed(p, &a, ATTEMPT_SUCCEEDED);
	WANT(p, p->broker, EXECUTION_ASK, execution_ask, ask);
	a.execute_tag = p->in.tag;
	disk(p, false);
	carry_executed(p, &a, ATTEMPT_SUCCEEDED);
	carry_decided(p, &a, PROPOSAL_STATE_SUCCEEDED);
	(void)play_audit(p, &a.task);
	assert_int_equal(play_events(p, "execution.dispatching"), 1);
	assert_int_equal(play_events(p, "execution.succeeded"), 1);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)
	/* A folder of its own below /tmp: the programs may stand there too. */
	static char place[] = "/tmp/demilune-crash-XXXXXX";
	const struct CMUnitTest tests[] = {
		TEST(F2_on_disk_before_it_is_sent),
		TEST(F4_on_disk_before_it_is_told),
		TEST(F1_F2_killed_before_execute),
		TEST(F3_killed_after_execute),
		TEST(F4_killed_before_the_result_is_stored),
		TEST(H7_broker_lost),
		TEST(F12_disk_full_nothing_is_dispatched),
	};
	int failed;

	if (mkdtemp(place) == NULL || chmod(place, 0755) < 0 || unshare(CLONE_NEWNS) < 0 ||
		mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		mount("tmpfs", place, "tmpfs", MS_NOSUID | MS_NODEV, "size=8m,mode=1777") < 0 ||
		setenv("TMPDIR", place, 1) < 0)
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	if (umount(place) < 0 || rmdir(place) < 0)
		return 1;
	return failed;
}
