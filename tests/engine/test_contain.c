/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Containment of a task, a tenant and the host: what stops, what is listed, what a restart keeps, and what a release gives back; and a store
 * that is older than what was signed.
 */
#include "carry.h"
#include "trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
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

static void
contain(struct play *p, const char *scope)
{
	ASK(p, CONTAIN, contain,
		{.caller = as_root,
			.scope = view_str(scope),
			.reason = view_str("it does what it should not")});
}

static void
contain_told(struct play *p, const char *scope)
{
	WANT(p, p->broker, BROKER_CONTAIN, broker_contain, m);
	assert_true(view_is(m.scope, scope));
	SAY_TAG(p->broker, p->in.tag, BROKER_DONE, broker_done, -1, {0});
}

static void
revoked(struct play *p, const struct id *proposal)
{
	WANT(p, p->broker, REVOKE, revoke, m);
	assert_true(id_eq(&m.proposal, proposal));
	SAY_TAG(p->broker, p->in.tag, REVOKED, revoked, -1, {0});
}

static struct msg_containment_row
contained(struct play *p, unsigned executions)
{
	ANSWER(p, CONTAINMENT_ROW, containment_row, row);
	assert_int_equal(row.executions_open, executions);
	for (unsigned i = 0; i < executions; i++) {
		ANSWER(p, EXECUTION_ROW, execution_row, open);
		assert_true(open.state == EXECUTION_STATE_DISPATCHING ||
			    open.state == EXECUTION_STATE_UNKNOWN);
	}
	ANSWER(p, END, end, end);
	assert_false(end.more);
	return row;
}

static void
denied(struct play *p, enum denial denial)
{
	ANSWER(p, REFUSED, refused, m);
	if (m.error != ERROR_DENIED || m.denial != denial)
		fail_msg("%s is wanted, %u %s came: %.*s", denial_text(denial), m.error,
			denial_text(m.denial), VIEW_ARGS(m.text));
}

static void
release(struct play *p, const char *scope)
{
	struct release_record r = {.approver = view_str("anna"),
		.note = view_str("looked through"),
		.scope = view_str(scope),
		.decided_ms = clock_real_ms()};
	auto_buf struct buf bytes;
	struct err err;

	buf_init(&bytes, DECISION_RECORD_MAX);
	assert_int_equal(release_record_write(&r, &bytes, &err), 0);
	ASK(p, RELEASE, release,
		{.caller = as_root, .release = buf_view(&bytes), .signature = view_str("signed")});
}

static void
release_asked(struct play *p, enum denial denial)
{
	WANT(p, p->broker, RELEASE_ASK, release_ask, m);
	assert_true(view_is(m.signature, "signed"));
	SAY_TAG(p->broker, p->in.tag, DECISION_IS, decision_is, -1,
		{.denial = denial,
			.text = view_str(denial == DENIAL_NONE ? "" : "no such role"),
			.approver = view_str("anna"),
			.key = view_str("SHA256:key")});
}

static void
scope_of(const struct carry *a, char ret[64])
{
	char id[ID_TEXT];

	id_text(&a->task, ID_TASK, id);
	(void)snprintf(ret, 64, "task:%s", id);
}

static void
create(struct play *p, const char *tenant)
{
	ASK(p, SANDBOX_CREATE, sandbox_create,
		{.caller = as_root, .tenant = view_str(tenant), .template = view_str("python")});
}

/* ---- what stops ---- */

/* The whole of it: sandboxes end, grants and open proposals go, what was sent is listed, nothing new begins. */
static void
test_task(void **state)
{
	BEGIN(p, a);
	char scope[64], task[ID_TEXT];
	struct carry sent = a;

	carry_dispatch(p, &sent, 1);
	carry_reply(p, &a, 2);
	ASK(p, SANDBOX_CREATE, sandbox_create,
		{.caller = as_root, .task = a.task, .template = view_str("python")});
	struct id sandbox;
	int relay = play_spawn(p, &sandbox);
	ANSWER(p, SANDBOX_ROW, sandbox_row, made);
	/* By its ticket or its id; the answer has its id. */
	scope_of(&a, scope);
	contain(p, scope);
	WANT(p, p->supervisor, KILL, kill, kill);
	assert_true(id_eq(&kill.sandbox, &sandbox));
	contain_told(p, scope);
	/* The one on its way too: the broker may not have come to it. */
	revoked(p, &sent.proposal);
	revoked(p, &a.proposal);
	struct msg_containment_row row = contained(p, 1);
	assert_int_equal(row.sandboxes_ended, 1);
	assert_int_equal(row.grants_revoked, 1);
	assert_int_equal(row.proposals_stopped, 1);
	assert_int_equal(row.released_ms, 0);
	play_gone(p, &sandbox, SANDBOX_REASON_KILLED);
	assert_int_equal(carry_state(p, &a), PROPOSAL_STATE_REVOKED);
	/* Nothing new. */
	ASK(p, SANDBOX_CREATE, sandbox_create, {.caller = as_root, .task = a.task});
	denied(p, DENIAL_CONTAINED);
	ASK(p, TASK_RESUME, task_resume, {.caller = as_root, .task = a.task});
	denied(p, DENIAL_CONTAINED);
	id_text(&a.task, ID_TASK, task);
	ASK(p, GRANT_ISSUE, grant_issue,
		{.caller = as_root,
			.task = view_str(task),
			.operation = view_str("reply"),
			.uses = 1,
			.ttl_ms = 60000});
	denied(p, DENIAL_CONTAINED);
	/* What was sent is still told. */
	carry_executed(p, &sent, ATTEMPT_UNKNOWN);
	WANT(p, p->api, PROPOSAL_ROW, proposal_row, told);
	assert_int_equal(told.state, PROPOSAL_STATE_UNKNOWN);
	/* Another task is not touched. */
	carry_start_task(p, &a);
	carry_grant(p, &a, "reply", 1);
	(void)play_audit(p, &sent.task);
	assert_int_equal(play_events(p, "contain"), 1);
	assert_int_equal(play_events(p, "grant.revoke"), 1);
	assert_int_equal(play_events(p, "proposal.revoke"), 2);
	assert_int_equal(play_events(p, "sandbox.kill"), 1);
	buf_done(&sent.approvals);
	a.approvals = (struct buf){0};
	(void)close(relay);
}

/* D4: contained while the broker looks at the approval: its yes finds the proposal revoked. */
static void
test_D4_contained_while_it_is_decided(void **state)
{
	BEGIN(p, a);
	char scope[64];
	uint64_t tag;

	carry_reply(p, &a, 1);
	carry_ask(p, &a, "anna", clock_real_ms() + 60000);
	tag = p->in.tag;
	scope_of(&a, scope);
	contain(p, scope);
	contain_told(p, scope);
	revoked(p, &a.proposal);
	(void)contained(p, 0);
	p->in.tag = tag;
	carry_yes(p, "anna");
	WANT(p, p->api, REFUSED, refused, no);
	play_want_silence(p, p->broker, 200);
}

/* A tenant, and the host: a sandbox of somebody else lives on, or not. */
static void
test_wider(void **state)
{
	BEGIN(p, a);
	struct id own, other;
	int relays[2];

	create(p, "acme");
	relays[0] = play_spawn(p, &own);
	ANSWER(p, SANDBOX_ROW, sandbox_row, row);
	create(p, "umbra");
	relays[1] = play_spawn(p, &other);
	ANSWER(p, SANDBOX_ROW, sandbox_row, second);
	contain(p, "tenant:acme");
	WANT(p, p->supervisor, KILL, kill, kill);
	assert_true(id_eq(&kill.sandbox, &own));
	contain_told(p, "tenant:acme");
	assert_int_equal(contained(p, 0).sandboxes_ended, 1);
	create(p, "acme");
	denied(p, DENIAL_CONTAINED);
	play_want_silence(p, p->supervisor, 50);
	contain(p, "host");
	WANT(p, p->supervisor, KILL, kill, rest);
	assert_true(id_eq(&rest.sandbox, &other));
	contain_told(p, "host");
	assert_int_equal(contained(p, 0).sandboxes_ended, 1);
	create(p, "umbra");
	denied(p, DENIAL_CONTAINED);
	ASK(p, TASK_CREATE, task_create,
		{.caller = as_root, .tenant = view_str("umbra"), .template = view_str("python")});
	denied(p, DENIAL_CONTAINED);
	/* Said again it is the same one, and the broker is told again. */
	contain(p, "host");
	contain_told(p, "host");
	assert_int_equal(contained(p, 0).sandboxes_ended, 1);
	ASK(p, CONTAINMENT_LIST, containment_list, {.caller = as_root});
	ANSWER(p, CONTAINMENT_ROW, containment_row, host);
	assert_true(view_is(host.scope, "host"));
	assert_true(view_is(host.by, "uid:0"));
	ANSWER(p, CONTAINMENT_ROW, containment_row, tenant);
	assert_true(view_is(tenant.scope, "tenant:acme"));
	ANSWER(p, END, end, end);
	(void)close(relays[0]);
	(void)close(relays[1]);
}

/* Whoever may not see a scope may not contain it. */
static void
test_who(void **state)
{
	BEGIN(p, a);
	struct caller own = play_token(p, "acme", "", 5), other = play_token(p, "umbra", "", 6),
		      narrow = play_token(p, "acme", "python", 7);
	char scope[64];

	scope_of(&a, scope);
	ASK(p, CONTAIN, contain, {.caller = own, .scope = view_str("host")});
	play_refused(p, ERROR_FORBIDDEN);
	ASK(p, CONTAIN, contain, {.caller = other, .scope = view_str("tenant:acme")});
	play_refused(p, ERROR_FORBIDDEN);
	ASK(p, CONTAIN, contain, {.caller = narrow, .scope = view_str("tenant:acme")});
	play_refused(p, ERROR_FORBIDDEN);
	ASK(p, CONTAIN, contain, {.caller = other, .scope = view_str(scope)});
	play_refused(p, ERROR_NOT_FOUND);
	ASK(p, CONTAIN, contain, {.caller = as_root, .scope = view_str("tenant:")});
	play_refused(p, ERROR_BAD_REQUEST);
	ASK(p, CONTAIN, contain, {.caller = as_root, .scope = view_str("tenant:A b")});
	play_refused(p, ERROR_BAD_REQUEST);
	ASK(p, CONTAIN, contain, {.caller = as_root, .scope = view_str("everything")});
	play_refused(p, ERROR_BAD_REQUEST);
	play_want_silence(p, p->broker, 50);
	ASK(p, CONTAIN, contain, {.caller = own, .scope = view_str("tenant:acme")});
	contain_told(p, "tenant:acme");
	(void)contained(p, 0);
	ASK(p, CONTAINMENT_LIST, containment_list, {.caller = other});
	ANSWER(p, END, end, none);
	ASK(p, CONTAINMENT_LIST, containment_list, {.caller = own});
	ANSWER(p, CONTAINMENT_ROW, containment_row, row);
	ANSWER(p, END, end, end);
}

/* H7: without a broker it holds here; it is told when it comes. A restart keeps it, and ends what still lives. */
static void
test_H7_restart(void **state)
{
	BEGIN(p, a);

	play_broker_lost(p);
	contain(p, "tenant:acme");
	(void)contained(p, 0);
	play_kill(p);
	play_start(p);
	create(p, "acme");
	denied(p, DENIAL_CONTAINED);
	play_broker(p, false);
	contain_told(p, "tenant:acme");
	play_want_silence(p, p->broker, 200);
	carry_restart(p, true);
	play_want_silence(p, p->broker, 200);
}

/*
 * Killed after the row and before anything that follows from it: the row is enough. What was approved is not begun, sandboxes end, and the release
 * takes what is left.
 */
static void
test_killed_within(void **state)
{
	BEGIN(p, a);
	char scope[64];
	struct trace t;

	carry_reply(p, &a, 1);
	carry_approved(p, &a, "anna");
	scope_of(&a, scope);
	(void)usleep(100000);
	trace_begin(&t, p->engine, TRACE_SECOND);
	contain(p, scope);
	for (int i = 0; i < 1000 && !trace_killed(&t); i++)
		(void)usleep(5000);
	assert_true(trace_killed(&t));
	trace_end(&t);
	trace_free(&t);
	carry_restart(p, true);
	contain_told(p, scope);
	/* Approved still, and asked about: contained. */
	revoked(p, &a.proposal);
	assert_int_equal(carry_state(p, &a), PROPOSAL_STATE_REVOKED);
	ASK(p, PROPOSAL_GET, proposal_get, {.caller = as_root, .proposal = a.proposal});
	ANSWER(p, PROPOSAL_ROW, proposal_row, row);
	assert_int_equal(row.denial, DENIAL_CONTAINED);
	play_want_silence(p, p->broker, 100);
	release(p, scope);
	release_asked(p, DENIAL_NONE);
	ANSWER(p, CONTAINMENT_ROW, containment_row, released);
	assert_int_equal(released.grants_revoked, 1);
}

/* ---- release ---- */

static void
test_release(void **state)
{
	BEGIN(p, a);
	char scope[64];

	scope_of(&a, scope);
	release(p, scope);
	play_refused(p, ERROR_CONFLICT); /* nothing is contained */
	carry_dispatch(p, &a, 1);
	contain(p, scope);
	contain_told(p, scope);
	revoked(p, &a.proposal);
	(void)contained(p, 1);
	/* Not while something may have had an effect and nobody knows. */
	release(p, scope);
	denied(p, DENIAL_RELEASE_BLOCKED);
	carry_executed(p, &a, ATTEMPT_UNKNOWN);
	carry_decided(p, &a, PROPOSAL_STATE_UNKNOWN);
	release(p, scope);
	denied(p, DENIAL_RELEASE_BLOCKED);
	WANT(p, p->broker, LOOKUP_ASK, lookup_ask, look);
	a.execute_tag = p->in.tag;
	carry_executed(p, &a, ATTEMPT_SUCCEEDED);
	while (carry_state(p, &a) == PROPOSAL_STATE_UNKNOWN)
		(void)usleep(2000);
	/* Not without the role. */
	release(p, scope);
	release_asked(p, DENIAL_APPROVER_MAY_NOT);
	denied(p, DENIAL_APPROVER_MAY_NOT);
	create(p, "umbra");
	struct id other;
	int relay = play_spawn(p, &other);
	ANSWER(p, SANDBOX_ROW, sandbox_row, lives);
	ASK(p, SANDBOX_CREATE, sandbox_create, {.caller = as_root, .task = a.task});
	denied(p, DENIAL_CONTAINED);
	release(p, scope);
	release_asked(p, DENIAL_NONE);
	ANSWER(p, CONTAINMENT_ROW, containment_row, row);
	assert_int_not_equal(row.released_ms, 0);
	/* The grant does not come back. */
	ASK(p, GRANT_LIST, grant_list, {.caller = as_root, .task = view_str(scope + 5)});
	ANSWER(p, GRANT_ROW, grant_row, grant);
	assert_int_not_equal(grant.revoked_ms, 0);
	ANSWER(p, END, end, end);
	carry_grant(p, &a, "reply", 1);
	carry_reply(p, &a, 2);
	(void)play_audit(p, &a.task);
	assert_int_equal(play_events(p, "release"), 1);
	assert_true(play_record(p, "release", "\"approver\":\"anna\""));
	(void)close(relay);
}

/* Two at once: the first lifts it; the second, whatever the broker says of it, finds nothing to lift and makes no record. */
static void
test_two_releases_at_once(void **state)
{
	BEGIN(p, a);
	char scope[64];
	uint64_t tag[2];

	scope_of(&a, scope);
	ASK(p, CONTAIN, contain,
		{.caller = as_root, .scope = view_str(scope), .reason = view_str("r")});
	WANT(p, p->broker, BROKER_CONTAIN, broker_contain, told);
	SAY_TAG(p->broker, p->in.tag, BROKER_DONE, broker_done, -1, {0});
	ANSWER(p, CONTAINMENT_ROW, containment_row, contained);
	ANSWER(p, END, end, end);
	for (int i = 0; i < 2; i++) {
		release(p, scope);
		WANT(p, p->broker, RELEASE_ASK, release_ask, m);
		tag[i] = p->in.tag;
	}
	for (int i = 0; i < 2; i++)
		SAY_TAG(p->broker, tag[i], DECISION_IS, decision_is, -1,
			{.approver = view_str("anna"), .key = view_str("SHA256:key")});
	WANT(p, p->api, CONTAINMENT_ROW, containment_row, row);
	assert_int_not_equal(row.released_ms, 0);
	play_refused(p, ERROR_CONFLICT);
	(void)play_audit(p, &a.task);
	assert_int_equal(play_events(p, "release"), 1);
}

/* The release says which scope; one for another scope opens nothing. */
static void
test_release_of_another(void **state)
{
	BEGIN(p, a);
	char scope[64];

	scope_of(&a, scope);
	contain(p, "tenant:acme");
	contain_told(p, "tenant:acme");
	(void)contained(p, 0);
	release(p, scope);
	play_refused(p, ERROR_CONFLICT);
	release(p, "host");
	play_refused(p, ERROR_CONFLICT);
	ASK(p, RELEASE, release,
		{.caller = as_root, .release = view_str("{}"), .signature = view_str("signed")});
	denied(p, DENIAL_RECORD_MALFORMED);
	create(p, "acme");
	denied(p, DENIAL_CONTAINED);
	play_want_silence(p, p->broker, 50);
}

/* ---- a store that was restored ---- */

static struct msg_broker_ready
ready_with(struct play *p, uint64_t size, uint64_t epoch)
{
	struct msg_broker_ready m = {.epoch = epoch,
		.ledger_entries = 9,
		.checkpoint_size = size,
		.audit_key = view_str("demilune.local/audit+00000000+AA")};

	memcpy(m.catalogue, p->catalogue.digest, 32);
	memset(m.checkpoint_root, 3, sizeof(m.checkpoint_root));
	return m;
}

static void
epoch_asked(struct play *p, uint64_t epoch)
{
	bool told = false;

	/* The containment is told beside it. */
	for (int i = 0; i < 8; i++) {
		play_want_any(p, p->broker);
		if (p->in.type == MSG_EPOCH_NEXT) {
			SAY_TAG(p->broker, p->in.tag, EPOCH_IS, epoch_is, -1, {.epoch = epoch});
			told = true;
		} else if (p->in.type == MSG_BROKER_CONTAIN) {
			SAY_TAG(p->broker, p->in.tag, BROKER_DONE, broker_done, -1, {0});
		} else if (p->in.type == MSG_REVOKE) {
			SAY_TAG(p->broker, p->in.tag, REVOKED, revoked, -1, {0});
		} else {
			fail_msg("%s came", msg_info[p->in.type].name);
		}
		if (told && !carry_pending(p->broker) && !carry_pending(p->broker))
			return;
	}
	assert_true(told);
}

/* Once more, to a copy from after the release. Not inline: with a sanitizer each message has its own place in the frame. */
__attribute__((noinline)) static void
restored_again(struct play *p)
{
	struct msg_broker_ready m = ready_with(p, 100001, 8);

	carry_broker(p, &m);
	epoch_asked(p, 9);
	create(p, "umbra");
	denied(p, DENIAL_RESTORED);
	(void)play_audit_of(p, "host");
	assert_int_equal(play_events(p, "contain"), 2);
}

/*
 * H1: the newest checkpoint has more records than the store. What is approved expires, what is dispatching is unknown, nothing begins before a
 * signed release, the broker begins another epoch; the same checkpoint after that is no second quarantine, a newer one is.
 */
static void
test_H1_store_restored(void **state)
{
	BEGIN(p, a);
	struct carry sent = a, waits;
	struct msg_broker_ready m = ready_with(p, 100000, 7);

	carry_dispatch(p, &sent, 1);
	waits = sent;
	carry_reply(p, &waits, 2);
	carry_edge(p, &m);
	WANT(p, p->api, PROPOSAL_ROW, proposal_row, told);
	assert_int_equal(told.state, PROPOSAL_STATE_UNKNOWN);
	epoch_asked(p, 8);
	assert_int_equal(carry_row(p, &sent).state, EXECUTION_STATE_UNKNOWN);
	assert_int_equal(carry_state(p, &waits), PROPOSAL_STATE_REVOKED);
	create(p, "umbra");
	denied(p, DENIAL_RESTORED);
	ASK(p, CONTAINMENT_LIST, containment_list, {.caller = as_root});
	ANSWER(p, CONTAINMENT_ROW, containment_row, row);
	assert_true(view_is(row.scope, "host"));
	assert_non_null(memmem(row.reason.p, row.reason.n, "restored", 8));
	ANSWER(p, END, end, end);
	(void)play_audit_of(p, "host");
	assert_int_equal(play_events(p, "contain"), 1);
	/* Its next epoch, and the same checkpoint. The unknown one is looked up, nothing else comes. */
	m.epoch = 8;
	carry_broker(p, &m);
	WANT(p, p->broker, LOOKUP_ASK, lookup_ask, look);
	sent.execute_tag = p->in.tag;
	carry_executed(p, &sent, ATTEMPT_SUCCEEDED);
	while (carry_state(p, &sent) == PROPOSAL_STATE_UNKNOWN)
		(void)usleep(2000);
	play_want_silence(p, p->broker, 300);
	release(p, "host");
	release_asked(p, DENIAL_NONE);
	ANSWER(p, CONTAINMENT_ROW, containment_row, released);
	carry_grant(p, &sent, "reply", 5);
	restored_again(p);
	buf_done(&sent.approvals);
	a.approvals = (struct buf){0};
}

/* H1: approved when the copy was made: expired, never sent. Killed right after, the next one does what is left. */
static void
test_H1_approved_expires(void **state)
{
	BEGIN(p, a);
	struct msg_broker_ready m = ready_with(p, 100000, 7);

	carry_reply(p, &a, 1);
	carry_approved(p, &a, "anna"); /* and the broker was lost before it was begun */
	carry_broker(p, &m);
	WANT(p, p->broker, BROKER_CONTAIN, broker_contain, first);
	play_kill(p);
	play_start(p);
	SAY(p->broker, BROKER_READY, broker_ready, m);
	epoch_asked(p, 8);
	assert_int_equal(carry_state(p, &a), PROPOSAL_STATE_EXPIRED);
	create(p, "umbra");
	denied(p, DENIAL_RESTORED);
	(void)play_audit(p, &a.task);
	assert_int_equal(play_events(p, "execution.dispatching"), 0);
}

/* H1: dispatching in the copy, and the broker never got it: it is shut out, and that is the proof. */
static void
test_H1_never_seen(void **state)
{
	BEGIN(p, a);
	struct msg_broker_ready m = ready_with(p, 100000, 7);

	carry_dispatch(p, &a, 1);
	carry_edge(p, &m);
	carry_decided(p, &a, PROPOSAL_STATE_UNKNOWN);
	epoch_asked(p, 8);
	WANT(p, p->broker, LOOKUP_ASK, lookup_ask, look);
	SAY_TAG(p->broker, p->in.tag, BROKER_REFUSED, broker_refused, -1,
		{.denial = DENIAL_STATE,
			.text = view_str("the ledger does not have this execution")});
	WANT(p, p->broker, EXECUTION_ASK, execution_ask, ask);
	a.execute_tag = p->in.tag;
	carry_executed(p, &a, ATTEMPT_UNSEEN);
	while (carry_state(p, &a) == PROPOSAL_STATE_UNKNOWN)
		(void)usleep(2000);
	assert_int_equal(carry_state(p, &a), PROPOSAL_STATE_FAILED);
	assert_int_equal(carry_row(p, &a).sends, 0);
	release(p, "host");
	release_asked(p, DENIAL_NONE);
	ANSWER(p, CONTAINMENT_ROW, containment_row, released);
}

/* H2: the ledger of the broker is an older one: that it does not have something proves nothing any more. */
static void
test_H2_ledger_restored(void **state)
{
	BEGIN(p, a);
	struct msg_broker_ready m = ready_with(p, 0, 7);

	carry_broker(p, &m);
	carry_dispatch(p, &a, 1);
	m.ledger_entries = 8;
	carry_edge(p, &m);
	carry_decided(p, &a, PROPOSAL_STATE_UNKNOWN);
	epoch_asked(p, 8);
	WANT(p, p->broker, LOOKUP_ASK, lookup_ask, look);
	SAY_TAG(p->broker, p->in.tag, BROKER_REFUSED, broker_refused, -1,
		{.denial = DENIAL_STATE,
			.text = view_str("the ledger does not have this execution")});
	WANT(p, p->broker, EXECUTION_ASK, execution_ask, ask);
	a.execute_tag = p->in.tag;
	carry_executed(p, &a, ATTEMPT_UNSEEN);
	while (!carry_row(p, &a).incident)
		(void)usleep(2000);
	assert_int_equal(carry_state(p, &a), PROPOSAL_STATE_UNKNOWN);
	release(p, "host");
	denied(p, DENIAL_RELEASE_BLOCKED);
}

/* H2: another epoch than the one that the store knows, and nobody here asked for it. */
static void
test_H2_another_epoch(void **state)
{
	BEGIN(p, a);
	struct msg_broker_ready m = ready_with(p, 0, 8);

	carry_broker(p, &m);
	epoch_asked(p, 9);
	create(p, "umbra");
	denied(p, DENIAL_RESTORED);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(task),
		TEST(D4_contained_while_it_is_decided),
		TEST(wider),
		TEST(who),
		TEST(H7_restart),
		TEST(killed_within),
		TEST(release),
		TEST(two_releases_at_once),
		TEST(release_of_another),
		TEST(H1_store_restored),
		TEST(H1_approved_expires),
		TEST(H1_never_seen),
		TEST(H2_ledger_restored),
		TEST(H2_another_epoch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
