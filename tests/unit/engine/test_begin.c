/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last checks before anything leaves, one by one: each alone keeps EXECUTE from being sent, and what becomes of the proposal; times to the
 * millisecond; and that a step from a state that a row has no more changes nothing. The engine's own code in this process, with a
 * clock that the test sets and a lock that takes as long as the test wants.
 */
#include "engine/begin.h"
#include "engine/contain.h"
#include "engine/execution.h"
#include "engine/proposal.h"
#include "engine/reconcile.h"
#include "engine/result.h"
#include "engine/serve.h"
#include "engine/tree.h"
#include "lib/base/clock.h"
#include "lib/loop/loop.h"
#include "tests/actions/sample.h"

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

static char dir[] = "/tmp/demilune-begin-XXXXXX";
static int dir_fd, broker;
static struct engine e;
static struct id task, grant, proposal;
static struct sample_proposal sample;
static struct buf record;

/* ---- rows ---- */

static void
make_grant(void)
{
	auto_query struct query q = query_of(e.store, Q_GRANT_INSERT);
	struct err err;

	id_new(&grant);
	arg_id(&q, &grant);
	arg_id(&q, &task);
	arg_text(&q, "acme");
	arg_text(&q, "refund");
	arg_u64(&q, 1);
	arg_digest(&q, (const uint8_t[32]){1});
	arg_blob(&q, view_of(NULL, 0));
	arg_u64(&q, 5);
	arg_u64(&q, 1);
	arg_u64(&q, 2 * T);
	arg_text(&q, "uid:0");
	assert_int_equal(query_run(&q, &err), 0);
}

static void
make_approved(struct proposal *p)
{
	struct err err;

	p->id = proposal;
	p->task = task;
	p->grant = grant;
	p->effect = EFFECT_IRREVERSIBLE;
	p->quorum = 1;
	p->amount = 5000;
	(void)snprintf(p->currency, sizeof(p->currency), "EUR");
	(void)snprintf(p->tenant, sizeof(p->tenant), "acme");
	(void)snprintf(p->operation, sizeof(p->operation), "refund");
	assert_int_equal(proposal_insert(p, &err), 0);
	p->decide_by_ms = p->dispatch_by_ms = T;
	buf_add_view(&p->record, buf_view(&record));
	proposal_digest(buf_view(&record), p->digest);
	assert_int_equal(proposal_step(p, PROPOSAL_SHOW, &err), 0);
	assert_int_equal(proposal_step(p, PROPOSAL_APPROVE, &err), 0);
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
	make_grant();
	make_approved(&p);
	assert_int_equal(tx_commit(&tx, &err), 0);
}

static void
make_record(void)
{
	struct err err = {0};

	id_new(&proposal);
	sample_proposal(&e.catalogue, "refund", "{\"cents\":5000,\"order_id\":\"48221\"}",
		&proposal, 1, &sample);
	buf_init(&record, PROPOSAL_RECORD_MAX);
	if (proposal_record_write(&sample.record, &record, &err) < 0)
		fail_msg("%s", err.text);
}

static int
setup(void **state)
{
	int pair[2], fd auto_fd = sample_catalogue_fd(4080);
	struct err err = {0};

	(void)state;
	now = 1;
	lock_ms = 0;
	memcpy(dir + sizeof(dir) - 7, "XXXXXX", 6);
	assert_non_null(mkdtemp(dir));
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(fchdir(dir_fd), 0);
	e = (struct engine){.loop = loop_new(), .ready = true};
	e.settings.actions.task = e.settings.actions.tenant_day = (struct budgets){
		100, 100, 100, 1 << 20};
	list_init(&e.broker.waits);
	list_init(&e.calls);
	list_init(&e.sandboxes);
	outbox_init(&e.outbox, &e);
	ev_timer_init(&e.again, on_executions_again, 0, 0);
	ev_timer_init(&e.lookup, on_lookups, 0, 0);
	ev_timer_init(&e.actions, on_executions_again, 0, 1);
	assert_int_equal(catalogue_read(fd, &e.catalogue, &err), 0);
	e.store = store_open(e.loop, dir_fd, &err);
	assert_non_null(e.store);
	checkpoint_init(&e);
	assert_int_equal(tree_open(&e, &err), 0);
	assert_int_equal(ipc_pair(pair, &err), 0);
	broker = pair[1];
	assert_int_equal(serve_broker(&e, pair[0], &err), 0);
	e.broker.peer->state = BROKER_LIVE;
	make_record();
	make_rows();
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	list_each (c, &e.calls, struct call, link) {
		c->kind = CALL_NONE;
		call_drop(c);
	}
	ipc_peer_close(e.broker.peer);
	ev_timer_stop(e.loop, &e.actions);
	ev_timer_stop(e.loop, &e.again);
	ev_timer_stop(e.loop, &e.lookup);
	ev_timer_stop(e.loop, &e.outbox.again);
	ev_timer_stop(e.loop, &e.checkpoints.timer);
	store_close(e.store);
	tree_close(e.tree);
	catalogue_done(&e.catalogue);
	loop_free(e.loop);
	sample_proposal_done(&sample);
	buf_done(&record);
	(void)close(broker);
	(void)unlinkat(dir_fd, STORE_FILE, 0);
	(void)unlinkat(dir_fd, STORE_FILE "-wal", 0);
	(void)unlinkat(dir_fd, STORE_FILE "-shm", 0);
	assert_int_equal(chdir("/"), 0);
	assert_int_equal(rmdir(dir), 0);
	(void)close(dir_fd);
	return 0;
}

/* ---- what happens ---- */

/* Was EXECUTE sent? Words of revocation may stand before it. */
static bool
executed(void)
{
	static uint8_t room[IPC_MAX];
	struct ipc_msg m;
	struct err err;
	bool found = false;

	while (ipc_read(broker, EDGE_ENGINE_BROKER, ROOM_ENGINE, room, sizeof(room), &m, &err) ==
		0) {
		found = found || m.type == MSG_EXECUTE;
		ipc_msg_done(&m);
	}
	return found;
}

static void
begin(void)
{
	execution_begin(&e, &proposal, (struct reply){0}, &principal_engine, view_of(NULL, 0));
}

static void
is(enum proposal_state state, enum denial denial)
{
	auto_proposal struct proposal p;
	struct err err;

	proposal_init(&p, &e);
	assert_int_equal(proposal_load(&p, &proposal, &err), 0);
	if (p.state != state || p.denial != denial)
		fail_msg("it is %s for %s: %s", proposal_state_text(p.state), denial_text(p.denial),
			p.text);
}

/* Behind the engine's back. */
static void
change(const char *sql)
{
	struct query q = query_of(e.store, Q_META_GET);

	assert_int_equal(sqlite3_exec(sqlite3_db_handle(q.stmt), sql, NULL, NULL, NULL), SQLITE_OK);
	query_cleanup(&q);
}

static void
stopped(enum proposal_state state, enum denial denial)
{
	begin();
	assert_false(executed());
	is(state, denial);
}

/* ---- times ---- */

static void
C1_one_millisecond_before_it_is_sent(void **state)
{
	(void)state;
	now = T - 1;
	begin();
	assert_true(executed());
	is(PROPOSAL_STATE_DISPATCHING, DENIAL_NONE);
	/* Again: nothing. */
	begin();
	execution_begin_all(&e);
	assert_false(executed());
}

static void
C1_at_its_millisecond_it_is_expired(void **state)
{
	(void)state;
	now = T;
	stopped(PROPOSAL_STATE_EXPIRED, DENIAL_DISPATCH_EXPIRED);
}

static void
C2_a_lock_that_takes_too_long_is_too_late(void **state)
{
	(void)state;
	now = T - 5;
	lock_ms = 5;
	stopped(PROPOSAL_STATE_EXPIRED, DENIAL_DISPATCH_EXPIRED);
}

/* ---- one check each ---- */

static void
contained_by(const char *scope, bool restored)
{
	auto_query struct query q = query_of(e.store, Q_CONTAINMENT_INSERT);
	struct err err;

	arg_text(&q, scope);
	arg_text(&q, "");
	arg_text(&q, "uid:0");
	arg_u64(&q, 1);
	arg_u64(&q, restored);
	assert_int_equal(query_run(&q, &err), 0);
}

static void
contained_host(void **state)
{
	(void)state;
	contained_by("host", false);
	stopped(PROPOSAL_STATE_REVOKED, DENIAL_CONTAINED);
}

static void
contained_tenant(void **state)
{
	(void)state;
	contained_by("tenant:umbra", false);
	contained_by("tenant:acme", false);
	stopped(PROPOSAL_STATE_REVOKED, DENIAL_CONTAINED);
}

static void
contained_task(void **state)
{
	char id[ID_TEXT], scope[64];

	(void)state;
	id_text(&task, ID_TASK, id);
	(void)snprintf(scope, sizeof(scope), "task:%s", id);
	contained_by(scope, false);
	stopped(PROPOSAL_STATE_REVOKED, DENIAL_CONTAINED);
}

static void
contained_elsewhere(void **state)
{
	(void)state;
	contained_by("tenant:umbra", false);
	contained_by("task:tk_0000000000000000", false);
	begin();
	assert_true(executed());
}

static void
H1_restored(void **state)
{
	(void)state;
	contained_by("tenant:acme", false);
	contained_by("host", true);
	stopped(PROPOSAL_STATE_REVOKED, DENIAL_RESTORED);
}

static void
H8_grant_taken_back(void **state)
{
	(void)state;
	change("UPDATE grant_ SET revoked_ms = 5");
	stopped(PROPOSAL_STATE_REVOKED, DENIAL_NO_GRANT);
}

static void
C1_grant_is_over(void **state)
{
	(void)state;
	now = 900000;
	change("UPDATE grant_ SET expires_ms = 900000");
	stopped(PROPOSAL_STATE_REVOKED, DENIAL_NO_GRANT);
}

static void
grant_of_another_task(void **state)
{
	(void)state;
	change("INSERT INTO chain (id) VALUES (x'01010101010101010101')");
	change("INSERT INTO task (id, tenant, template, state, implicit, created_ms, memory_bytes, "
	       "disk_bytes, disk_inodes, pids, cpu_milli, open_files, ttl_ms, idle_ms, labels) "
	       "VALUES (x'01010101010101010101', 'acme', 'python', 'open', 0, 1, 1, 1, 1, 1, 1, 1, "
	       "1, 1, x'')");
	change("UPDATE grant_ SET task = x'01010101010101010101'");
	stopped(PROPOSAL_STATE_REVOKED, DENIAL_NO_GRANT);
}

/* D1: the bytes are not those whose digest was approved. */
static void
D1_other_bytes(void **state)
{
	(void)state;
	change("UPDATE proposal SET record = CAST(replace(CAST(record AS TEXT), '5000', '5001') AS "
	       "BLOB)");
	stopped(PROPOSAL_STATE_DENIED, DENIAL_DIGEST);
}

/* D16, A16: the operation is not the one any more that was shown. */
static void
D16_policy_tightened(void **state)
{
	(void)state;
	for (size_t i = 0; i < e.catalogue.n; i++)
		e.catalogue.op[i].policy[0] ^= 1;
	stopped(PROPOSAL_STATE_SUPERSEDED, DENIAL_POLICY_CHANGED);
}

static void
A16_schema_changed(void **state)
{
	(void)state;
	for (size_t i = 0; i < e.catalogue.n; i++)
		e.catalogue.op[i].schema[3] ^= 1;
	stopped(PROPOSAL_STATE_SUPERSEDED, DENIAL_SCHEMA_CHANGED);
}

static void
A16_adapter_changed(void **state)
{
	(void)state;
	for (size_t i = 0; i < e.catalogue.n; i++)
		e.catalogue.op[i].adapter[31] ^= 1;
	stopped(PROPOSAL_STATE_SUPERSEDED, DENIAL_ADAPTER_CHANGED);
}

/* F11: each of the budgets that an execution reserves. */
static void
F11_attempts(void **state)
{
	(void)state;
	e.settings.actions.task.attempts = 0;
	stopped(PROPOSAL_STATE_DENIED, DENIAL_BUDGET);
}

static void
F11_money(void **state)
{
	(void)state;
	for (size_t i = 0; i < e.catalogue.n; i++)
		e.catalogue.op[i].tenant_day_amount = 4999;
	stopped(PROPOSAL_STATE_DENIED, DENIAL_BUDGET);
}

static void
F11_money_to_the_last_cent(void **state)
{
	(void)state;
	for (size_t i = 0; i < e.catalogue.n; i++)
		e.catalogue.op[i].tenant_day_amount = e.catalogue.op[i].task_amount = 5000;
	begin();
	assert_true(executed());
}

/* Nothing is begun while a sandbox of the task cannot be removed; it may be later. */
static void
marked(void **state)
{
	(void)state;
	change("UPDATE task SET state = 'marked'");
	stopped(PROPOSAL_STATE_APPROVED, DENIAL_NONE);
	change("UPDATE task SET state = 'closed'");
	execution_begin_all(&e);
	assert_true(executed());
}

/* H7: without a broker it stays approved. */
static void
H7_no_broker(void **state)
{
	(void)state;
	e.broker.peer->state = BROKER_NEW;
	begin();
	is(PROPOSAL_STATE_APPROVED, DENIAL_NONE);
	assert_false(executed());
	e.broker.peer->state = BROKER_LIVE;
	execution_begin_all(&e);
	assert_true(executed());
}

/* ---- when somebody is asked again ---- */

/* 1 s, 5 s, 30 s, 5 min, then every 30 min; G18: never at or after the time at which the provider forgets the key. */
static void
G18_look_ups_end_before_the_key_does(void **state)
{
	static const uint32_t after[] = {1000, 5000, 30000, 300000, 1800000, 1800000};

	(void)state;
	for (uint32_t i = 0; i < ARRAY_LEN(after); i++) {
		assert_int_equal(lookup_next(i, T, UINT64_MAX), T + after[i]);
		assert_int_equal(lookup_next(i, T, T + after[i] + 1), T + after[i]);
		assert_int_equal(lookup_next(i, T, T + after[i]), 0);
		assert_int_equal(lookup_next(i, T, 0), 0);
	}
}

static void
lost(enum attempt attempt, uint64_t spent_ms)
{
	auto_execution struct execution x;
	struct broker_answer a = {0};
	struct ipc_msg in = {.type = MSG_EXECUTED, .tag = e.broker.tag};
	struct err err = {0};

	execution_init(&x, &e);
	assert_int_equal(execution_load_of(&x, &proposal, &err), 0);
	a.m.executed = (struct msg_executed){.execution = x.id,
		.attempt = attempt,
		.sends = spent_ms != 0,
		.spent_ms = spent_ms,
		.text = view_str("nobody knows"),
		.receipt = view_str("{}")};
	if (broker_answered(&e, &in, &a, &err) < 0)
		fail_msg("%s", err.text);
}

/* The type of the next question; MSG_TYPE_MAX: there is none. */
static enum msg_type
asked(void)
{
	static uint8_t room[IPC_MAX];
	struct ipc_msg m;
	struct err err;

	if (ipc_read(broker, EDGE_ENGINE_BROKER, ROOM_ENGINE, room, sizeof(room), &m, &err) < 0)
		return MSG_MAX;
	ipc_msg_done(&m);
	return m.type;
}

static void
forget_lookup(void)
{
	for (size_t i = 0; i < e.catalogue.n; i++)
		e.catalogue.op[i].provider.capability.lookup = LOOKUP_NONE;
}

/* G11: the provider is asked when it is time, not before. */
static void
G11_the_provider_is_asked_at_its_time(void **state)
{
	(void)state;
	begin();
	assert_int_equal(asked(), MSG_EXECUTE);
	lost(ATTEMPT_UNKNOWN, 5);
	on_lookups(e.loop, &e.lookup, 0);
	assert_int_equal(asked(), MSG_MAX);
	now += 999;
	on_lookups(e.loop, &e.lookup, 0);
	assert_int_equal(asked(), MSG_MAX);
	now += 1;
	on_lookups(e.loop, &e.lookup, 0);
	assert_int_equal(asked(), MSG_LOOKUP_ASK);
	/* One question at a time. */
	now += 60000;
	on_lookups(e.loop, &e.lookup, 0);
	assert_int_equal(asked(), MSG_MAX);
	is(PROPOSAL_STATE_UNKNOWN, DENIAL_NONE);
}

/* G13: a provider that cannot be asked is not: the ledger is, for ten minutes, and then a person must settle it. */
static void
G13_no_look_up_no_question_to_the_provider(void **state)
{
	unsigned questions = 0;

	(void)state;
	forget_lookup();
	begin();
	assert_int_equal(asked(), MSG_EXECUTE);
	lost(ATTEMPT_UNKNOWN, 5);
	for (now = 1; now < 2 * T; now += 500) {
		enum msg_type type;

		on_lookups(e.loop, &e.lookup, 0);
		type = asked();
		if (type == MSG_MAX)
			continue;
		assert_int_equal(type, MSG_EXECUTION_ASK);
		assert_true(now < 1 + 600000);
		lost(ATTEMPT_UNKNOWN, 5);
		questions++;
	}
	assert_int_equal(questions, 4);
	is(PROPOSAL_STATE_UNKNOWN, DENIAL_NONE);
}

/* ---- two who saw the same row ---- */

static void
F7_a_stale_execution_changes_nothing(void **state)
{
	auto_execution struct execution one, two;
	auto_tx struct tx tx = {0};
	struct err err;

	(void)state;
	begin();
	execution_init(&one, &e);
	execution_init(&two, &e);
	assert_int_equal(execution_load_of(&one, &proposal, &err), 0);
	assert_int_equal(execution_load_of(&two, &proposal, &err), 0);
	assert_int_equal(tx_begin(&tx, e.store, &err), 0);
	assert_int_equal(execution_step(&one, EXECUTION_LOSE, &err), 0);
	assert_int_equal(execution_step(&two, EXECUTION_SUCCEED, &err), -EALREADY);
	assert_int_equal(tx_commit(&tx, &err), 0);
	assert_int_equal(execution_load_of(&two, &proposal, &err), 0);
	assert_int_equal(two.state, EXECUTION_STATE_UNKNOWN);
}

static void
F7_a_stale_proposal_is_not_dispatched(void **state)
{
	auto_proposal struct proposal one, two;
	auto_tx struct tx tx = {0};
	struct err err;

	(void)state;
	proposal_init(&one, &e);
	proposal_init(&two, &e);
	assert_int_equal(proposal_load(&one, &proposal, &err), 0);
	assert_int_equal(proposal_load(&two, &proposal, &err), 0);
	assert_int_equal(tx_begin(&tx, e.store, &err), 0);
	assert_int_equal(proposal_step(&one, PROPOSAL_REVOKE, &err), 0);
	assert_int_equal(proposal_step(&two, PROPOSAL_DISPATCH, &err), -EALREADY);
	assert_int_equal(tx_commit(&tx, &err), 0);
	is(PROPOSAL_STATE_REVOKED, DENIAL_NONE);
}

/* A second execution of one proposal, or with its key, is refused by the schema itself. */
static void
G16_one_execution_of_a_proposal(void **state)
{
	auto_execution struct execution x;
	struct err err;

	(void)state;
	begin();
	execution_init(&x, &e);
	assert_int_equal(execution_load_of(&x, &proposal, &err), 0);
	id_new(&x.id);
	(void)snprintf(x.key, sizeof(x.key), "another");
	assert_int_equal(execution_insert(&x, &err), -EEXIST);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(C1_one_millisecond_before_it_is_sent),
		TEST(C1_at_its_millisecond_it_is_expired),
		TEST(C2_a_lock_that_takes_too_long_is_too_late),
		TEST(contained_host),
		TEST(contained_tenant),
		TEST(contained_task),
		TEST(contained_elsewhere),
		TEST(H1_restored),
		TEST(H8_grant_taken_back),
		TEST(C1_grant_is_over),
		TEST(grant_of_another_task),
		TEST(D1_other_bytes),
		TEST(D16_policy_tightened),
		TEST(A16_schema_changed),
		TEST(A16_adapter_changed),
		TEST(F11_attempts),
		TEST(F11_money),
		TEST(F11_money_to_the_last_cent),
		TEST(marked),
		TEST(H7_no_broker),
		TEST(G18_look_ups_end_before_the_key_does),
		TEST(G11_the_provider_is_asked_at_its_time),
		TEST(G13_no_look_up_no_question_to_the_provider),
		TEST(F7_a_stale_execution_changes_nothing),
		TEST(F7_a_stale_proposal_is_not_dispatched),
		TEST(G16_one_execution_of_a_proposal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
