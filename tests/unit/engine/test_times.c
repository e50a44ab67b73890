/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Half-open times of grants and proposals, to the millisecond, and that the clock is read after the lock. The engine's own code in this process,
 * with a clock that the test sets and a lock that takes as long as the test wants.
 */
#include "engine/decision.h"
#include "engine/expiry.h"
#include "engine/grant.h"
#include "engine/serve.h"
#include "engine/tree.h"
#include "lib/base/clock.h"
#include "lib/loop/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { T = 1000000 };

static uint64_t now, lock_ms;

uint64_t __wrap_clock_real_ms(void);
int __real_tx_begin(struct tx *tx, struct store *s, struct err *err);
int __wrap_tx_begin(struct tx *tx, struct store *s, struct err *err);

uint64_t
__wrap_clock_real_ms(void)
{
	return now;
}

int
__wrap_tx_begin(struct tx *tx, struct store *s, struct err *err)
{
	now += lock_ms;
	return __real_tx_begin(tx, s, err);
}

static char dir[] = "/tmp/demilune-times-XXXXXX";
static int dir_fd, broker;
static struct engine e;
static struct id task, grant, proposal;

static void
on_timer(struct ev_loop *loop, ev_timer *w, int events)
{
	(void)loop, (void)w, (void)events;
}

static void
make_rows(void)
{
	auto_task struct task t;
	auto_proposal struct proposal p;
	auto_tx struct tx tx = {0};
	struct err err;

	task_init(&t, &e);
	proposal_init(&p, &e);
	(void)snprintf(t.tenant, sizeof(t.tenant), "acme");
	(void)snprintf(t.template, sizeof(t.template), "python");
	assert_int_equal(tx_begin(&tx, e.store, &err), 0);
	assert_int_equal(task_insert(&t, &err), 0);
	task = t.id;
	id_new(&grant);
	{
		auto_query struct query q = query_of(e.store, Q_GRANT_INSERT);

		arg_id(&q, &grant);
		arg_id(&q, &task);
		arg_text(&q, "acme");
		arg_text(&q, "refund");
		arg_u64(&q, 1);
		arg_digest(&q, (const uint8_t[32]){1});
		arg_blob(&q, view_of(NULL, 0));
		arg_u64(&q, 5);
		arg_u64(&q, 1);
		arg_u64(&q, T);
		arg_text(&q, "uid:0");
		assert_int_equal(query_run(&q, &err), 0);
	}
	id_new(&p.id);
	proposal = p.id;
	p.task = task;
	p.grant = grant;
	p.effect = EFFECT_IRREVERSIBLE;
	p.quorum = 1;
	(void)snprintf(p.tenant, sizeof(p.tenant), "acme");
	(void)snprintf(p.operation, sizeof(p.operation), "refund");
	assert_int_equal(proposal_insert(&p, &err), 0);
	p.decide_by_ms = T;
	buf_add_str(&p.record, "{}");
	memset(p.digest, 0x11, sizeof(p.digest));
	assert_int_equal(proposal_step(&p, PROPOSAL_SHOW, &err), 0);
	assert_int_equal(tx_commit(&tx, &err), 0);
}

static int
setup(void **state)
{
	struct err err = {0};
	int pair[2];

	(void)state;
	now = 1;
	lock_ms = 0;
	memcpy(dir + sizeof(dir) - 7, "XXXXXX", 6);
	assert_non_null(mkdtemp(dir));
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(fchdir(dir_fd), 0);
	e = (struct engine){
		.loop = loop_new(), .ready = true, .locals = {{.open = true, .known = true}}};
	list_init(&e.broker.waits);
	ev_timer_init(&e.actions, on_timer, 0, 1);
	e.store = store_open(e.loop, dir_fd, &err);
	assert_non_null(e.store);
	checkpoint_init(&e);
	assert_int_equal(tree_open(&e, &err), 0);
	assert_int_equal(ipc_pair(pair, &err), 0);
	broker = pair[1];
	assert_int_equal(serve_broker(&e, pair[0], &err), 0);
	e.broker.peer->state = BROKER_LIVE;
	make_rows();
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	ipc_peer_close(e.broker.peer);
	ev_timer_stop(e.loop, &e.actions);
	ev_timer_stop(e.loop, &e.checkpoints.timer);
	store_close(e.store);
	tree_close(e.tree);
	loop_free(e.loop);
	(void)close(broker);
	(void)unlinkat(dir_fd, STORE_FILE, 0);
	(void)unlinkat(dir_fd, STORE_FILE "-wal", 0);
	(void)unlinkat(dir_fd, STORE_FILE "-shm", 0);
	assert_int_equal(chdir("/"), 0);
	assert_int_equal(rmdir(dir), 0);
	(void)close(dir_fd);
	return 0;
}

static enum proposal_state
state_now(void)
{
	auto_proposal struct proposal p;
	struct err err;

	proposal_init(&p, &e);
	assert_int_equal(proposal_load(&p, &proposal, &err), 0);
	return p.state;
}

/* A decision of anna, at a time that the engine's clock shows. */
static void
decide(void)
{
	struct decision_record d = {.approver = view_str("anna"),
		.reason = view_str("seen"),
		.approve = true,
		.decided_ms = 1,
		.dispatch_by_ms = T + 1000};
	struct msg_proposal_decide m = {.caller = {.kind = CALLER_KIND_LOCAL},
		.proposal = proposal,
		.signature = view_str("signed")};
	auto_buf struct buf b;
	struct err err = {0};

	buf_init(&b, DECISION_RECORD_MAX);
	memset(d.proposal, 0x11, 32);
	memset(m.shown, 0x11, 32);
	assert_int_equal(decision_record_write(&d, &b, &err), 0);
	m.decision = buf_view(&b);
	if (on_proposal_decide(&e, (struct reply){0}, &m, &err) < 0)
		fail_msg("%s", err.text);
}

/* Was the broker asked? */
static bool
asked(void)
{
	uint8_t room[4096]; /* a datagram: the rest of it is dropped */

	return recv(broker, room, sizeof(room), MSG_DONTWAIT) > 0;
}

static void
answer(void)
{
	struct broker_answer a = {0};
	struct ipc_msg in = {.type = MSG_DECISION_IS, .tag = e.broker.tag};
	struct err err = {0};

	a.m.decision_is = (struct msg_decision_is){.approver = view_str("anna"),
		.key = view_str("k"),
		.text = view_str(""),
		.seen_ms = now,
		.quorum = 2}; /* one more is needed, so that nothing begins here */
	if (broker_answered(&e, &in, &a, &err) < 0)
		fail_msg("%s", err.text);
}

static uint64_t
decisions(void)
{
	auto_query struct query q = query_of(e.store, Q_DECISION_APPROVALS);
	struct err err;

	arg_id(&q, &proposal);
	assert_int_equal(query_one(&q, &err), 0);
	return col_u64(&q);
}

static void
C1_at_its_millisecond_it_is_expired(void **state)
{
	(void)state;
	now = T;
	decide();
	assert_false(asked());
	assert_int_equal(state_now(), PROPOSAL_STATE_EXPIRED);
}

static void
C1_one_millisecond_before_it_is_not(void **state)
{
	(void)state;
	now = T - 1;
	decide();
	assert_true(asked());
	answer();
	assert_int_equal(state_now(), PROPOSAL_STATE_PENDING);
	assert_int_equal(decisions(), 1);
}

static void
C1_the_clock_of_actions_expires_it_then(void **state)
{
	(void)state;
	now = T - 1;
	assert_true(expiry_tick(&e));
	assert_int_equal(state_now(), PROPOSAL_STATE_PENDING);
	now = T;
	assert_false(expiry_tick(&e));
	assert_int_equal(state_now(), PROPOSAL_STATE_EXPIRED);
}

/* It came in time, and the lock took too long. */
static void
C2_a_lock_that_takes_too_long_is_too_late(void **state)
{
	(void)state;
	now = T - 5;
	lock_ms = 10;
	decide();
	assert_false(asked());
	assert_int_equal(state_now(), PROPOSAL_STATE_EXPIRED);
}

/* The broker's answer came in time, and the lock took too long. */
static void
C3_the_clock_is_read_after_the_lock(void **state)
{
	(void)state;
	now = T - 2;
	decide();
	assert_true(asked());
	lock_ms = 2;
	answer();
	assert_int_equal(state_now(), PROPOSAL_STATE_EXPIRED);
	assert_int_equal(decisions(), 0);
}

/* Two that saw the same row: the second finds that it is another one now, and nothing of its step is there. */
static void
D3_a_step_from_a_state_that_is_over_writes_nothing(void **state)
{
	auto_proposal struct proposal first, second;
	struct err err;

	(void)state;
	proposal_init(&first, &e);
	proposal_init(&second, &e);
	assert_int_equal(proposal_load(&first, &proposal, &err), 0);
	assert_int_equal(proposal_load(&second, &proposal, &err), 0);
	{
		auto_tx struct tx tx = {0};

		assert_int_equal(tx_begin(&tx, e.store, &err), 0);
		assert_int_equal(proposal_step(&first, PROPOSAL_REJECT, &err), 0);
		assert_int_equal(tx_commit(&tx, &err), 0);
	}
	{
		auto_tx struct tx tx = {0};

		assert_int_equal(tx_begin(&tx, e.store, &err), 0);
		assert_int_equal(proposal_step(&second, PROPOSAL_APPROVE, &err), -EALREADY);
		assert_int_equal(tx_commit(&tx, &err), 0);
	}
	assert_int_equal(second.state, PROPOSAL_STATE_PENDING);
	assert_int_equal(state_now(), PROPOSAL_STATE_REJECTED);
}

static void
C1_a_grant_at_its_millisecond_is_none(void **state)
{
	const struct operation op = {.name = view_str("refund"), .digest = {1}},
			       other = {.name = view_str("refund"), .digest = {2}};
	auto_grant struct grant g;
	struct err err;

	(void)state;
	grant_init(&g, &e);
	assert_int_equal(grant_live(&g, &task, &op, T, &err), 0);
	assert_int_equal(grant_live(&g, &task, &op, T - 1, &err), 1);
	assert_true(id_eq(&g.id, &grant));
	/* D18: it is for the operation as it was when it was issued. */
	assert_int_equal(grant_live(&g, &task, &other, T - 1, &err), 0);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(C1_at_its_millisecond_it_is_expired),
		TEST(C1_one_millisecond_before_it_is_not),
		TEST(C1_the_clock_of_actions_expires_it_then),
		TEST(C2_a_lock_that_takes_too_long_is_too_late),
		TEST(C3_the_clock_is_read_after_the_lock),
		TEST(D3_a_step_from_a_state_that_is_over_writes_nothing),
		TEST(C1_a_grant_at_its_millisecond_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
