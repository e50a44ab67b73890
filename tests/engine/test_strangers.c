/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whatever a token asks about an action of another tenant, or of another template of its own, it hears what it would hear if there were
 * no such thing; and nothing comes of it. Every request that names something of an action is in the list.
 */
#include "carry.h"

#include <setjmp.h>
#include <stdarg.h>

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

/* A token of acme for a template that none of its tasks has. */
static struct caller
of_template(struct play *p, uint8_t number)
{
	struct caller c;

	play_template(p, "node");
	c = play_token(p, "acme", "node", number);
	WANT(p, p->supervisor, TEMPLATE_PREPARE, template_prepare, prepare);
	return c;
}

/* One pending proposal, one that was carried out, and a grant: all of acme, without a template. */
struct things {
	struct play *p;
	struct carry pending, done;
	char task[ID_TEXT], grant[ID_TEXT], proposal[ID_TEXT], scope[ID_TEXT + 8];
};

static void
things_make(struct things *t, struct play *p)
{
	t->p = p;
	carry_start(p, &t->pending);
	carry_grant(p, &t->pending, "reply", 50);
	t->done = (struct carry){.task = t->pending.task, .grant = t->pending.grant};
	buf_init(&t->done.approvals, 65536);
	carry_dispatch(p, &t->done, 1);
	carry_executed(p, &t->done, ATTEMPT_SUCCEEDED);
	carry_decided(p, &t->done, PROPOSAL_STATE_SUCCEEDED);
	carry_reply(p, &t->pending, 2);
	id_text(&t->pending.task, ID_TASK, t->task);
	id_text(&t->pending.grant, ID_GRANT, t->grant);
	id_text(&t->pending.proposal, ID_PROPOSAL, t->proposal);
	(void)snprintf(t->scope, sizeof(t->scope), "task:%s", t->task);
}

#define NOTHING(NAME, name, ...)                                      \
	do {                                                          \
		ASK(t->p, NAME, name, {.caller = *who, __VA_ARGS__}); \
		play_refused(t->p, ERROR_NOT_FOUND);                  \
	} while (0)

static void
look(struct things *t, const struct caller *who)
{
	const struct view task = view_str(t->task);

	NOTHING(GRANT_LIST, grant_list, .task = task);
	NOTHING(PROPOSAL_LIST, proposal_list, .task = task);
	NOTHING(PROPOSAL_LIST, proposal_list, .after = t->pending.proposal);
	NOTHING(PROPOSAL_GET, proposal_get, .proposal = t->pending.proposal);
	NOTHING(EXECUTION_LIST, execution_list, .task = task);
	NOTHING(EXECUTION_LIST, execution_list, .after = t->done.execution);
	NOTHING(EXECUTION_GET, execution_get, .execution = t->done.execution);
	NOTHING(BUDGET_LIST, budget_list, .task = task);
	NOTHING(AUDIT_READ, audit_read, .name = task);
	NOTHING(INCLUSION_GET, inclusion_get, .task = task, .size = 1);
}

static void
take(struct things *t, const struct caller *who)
{
	static const char canonical[] = "{\"arguments\":{\"body\":\"number 2\",\"recipient\":"
					"\"a@b.example\",\"subject\":\"hello\"},\"note\":\"\","
					"\"operation\":\"reply\"}";
	const struct view task = view_str(t->task);

	NOTHING(GRANT_ISSUE, grant_issue, .task = task, .operation = view_str("reply"), .uses = 1,
		.ttl_ms = 60000);
	/* The same bytes as the pending one: not a word of a duplicate. */
	NOTHING(PROPOSAL_CREATE, proposal_create, .task = task, .proposal = view_str(canonical));
	NOTHING(PROPOSAL_DECIDE, proposal_decide, .proposal = t->pending.proposal,
		.decision = view_str("{}"), .signature = view_str("s"));
	NOTHING(RECONCILE, reconcile, .execution = t->done.execution);
	NOTHING(AUTHORITY_REVOKE, authority_revoke, .kind = AUTHORITY_GRANT,
		.name = view_str(t->grant));
	NOTHING(AUTHORITY_REVOKE, authority_revoke, .kind = AUTHORITY_PROPOSAL,
		.name = view_str(t->proposal));
	NOTHING(AUTHORITY_REVOKE, authority_revoke, .kind = AUTHORITY_TASK, .name = task);
	NOTHING(CONTAIN, contain, .scope = view_str(t->scope), .reason = view_str("r"));
}

static void
release(struct things *t, const struct caller *who, const char *scope, enum error error)
{
	const struct release_record r = {.approver = view_str("anna"),
		.note = view_str("n"),
		.scope = view_str(scope),
		.decided_ms = 1};
	auto_buf struct buf b;

	buf_init(&b, 4096);
	assert_int_equal(release_record_write(&r, &b, &(struct err){0}), 0);
	ASK(t->p, RELEASE, release,
		{.caller = *who, .release = buf_view(&b), .signature = view_str("s")});
	play_refused(t->p, error);
}

/* What is wider than one task is forbidden by name: a token knows its own tenant, and that there is a host. */
static void
widen(struct things *t, const struct caller *who)
{
	static const char *const scopes[] = {"host", "tenant:acme"};

	for (unsigned i = 0; i < 2; i++) {
		ASK(t->p, CONTAIN, contain,
			{.caller = *who, .scope = view_str(scopes[i]), .reason = view_str("r")});
		play_refused(t->p, ERROR_FORBIDDEN);
		release(t, who, scopes[i], ERROR_FORBIDDEN);
	}
	release(t, who, t->scope, ERROR_NOT_FOUND);
}

/* Lists without a task have nothing of it, and nobody lists what is contained. */
static void
lists(struct things *t, const struct caller *who)
{
	struct play *p = t->p;

	for (int open = 0; open < 2; open++) {
		ASK(p, PROPOSAL_LIST, proposal_list, {.caller = *who, .open = open});
		ANSWER(p, END, end, proposals);
		assert_false(proposals.more);
		ASK(p, EXECUTION_LIST, execution_list, {.caller = *who, .open = open});
		ANSWER(p, END, end, executions);
		assert_false(executions.more);
	}
}

static void
test_strangers(void **state)
{
	static struct things things;
	struct things *t = &things;
	struct caller strangers[2];

	things_make(t, *state);
	strangers[0] = play_token(t->p, "other", "", 80);
	strangers[1] = of_template(t->p, 81);
	for (unsigned i = 0; i < 2; i++) {
		look(t, &strangers[i]);
		take(t, &strangers[i]);
		widen(t, &strangers[i]);
		lists(t, &strangers[i]);
	}
	play_want_silence(t->p, t->p->broker, 100);
	assert_int_equal(carry_state(t->p, &t->pending), PROPOSAL_STATE_PENDING);
	ASK(t->p, GRANT_LIST, grant_list, {.caller = as_root, .task = view_str(t->task)});
	ANSWER(t->p, GRANT_ROW, grant_row, grant);
	assert_int_equal(grant.revoked_ms, 0);
	ANSWER(t->p, END, end, end);
	carry_done(&t->pending);
	carry_done(&t->done);
}

/* A containment is seen by whom its scope belongs to, and by administrators. */
static void
test_contained_scopes_of_others(void **state)
{
	struct play *p = *state;
	__attribute__((cleanup(carry_done))) struct carry a;
	struct caller other = play_token(p, "other", "", 82), node = of_template(p, 83);
	const struct caller *who[] = {&other, &node};
	char scope[ID_TEXT + 8] = "task:";

	carry_start(p, &a);
	id_text(&a.task, ID_TASK, scope + 5);
	ASK(p, CONTAIN, contain,
		{.caller = as_root, .scope = view_str(scope), .reason = view_str("r")});
	WANT(p, p->broker, BROKER_CONTAIN, broker_contain, told);
	SAY_TAG(p->broker, p->in.tag, BROKER_DONE, broker_done, -1, {0});
	ANSWER(p, CONTAINMENT_ROW, containment_row, row);
	ANSWER(p, END, end, contained);
	for (unsigned i = 0; i < 2; i++) {
		ASK(p, CONTAINMENT_LIST, containment_list, {.caller = *who[i]});
		ANSWER(p, END, end, none);
	}
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(strangers),
		TEST(contained_scopes_of_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
