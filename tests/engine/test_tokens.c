/* SPDX-License-Identifier: Apache-2.0 */
/* What a token for one template sees, what goes with a token that is revoked, and when one counts. */
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

static void
whoami(struct play *p, const struct caller *c, bool lives)
{
	ASK(p, WHOAMI, whoami, {.caller = *c});
	if (!lives) {
		play_refused(p, ERROR_UNAUTHORIZED);
		return;
	}
	ANSWER(p, PRINCIPAL, principal, who);
}

/* A token that `maker` makes. */
static struct caller
child(struct play *p, const struct caller *maker, uint8_t number)
{
	struct msg_token_create m = {.caller = *maker, .token = {number}};
	struct caller c = {.kind = CALLER_KIND_TOKEN, .token = {number}};
	char prefix[17];

	(void)snprintf(prefix, sizeof(prefix), "dml_%u", number);
	m.prefix = view_str(prefix);
	ASK(p, TOKEN_CREATE, token_create, m);
	ANSWER(p, TOKEN_ROW, token_row, row);
	return c;
}

static void
test_family(void **state)
{
	struct play *p = *state;
	struct caller first = play_token(p, "acme", "", 70), aside = play_token(p, "acme", "", 71);
	struct caller second = child(p, &first, 72), third = child(p, &second, 73),
		      other = child(p, &aside, 74);

	ASK(p, TOKEN_REVOKE, token_revoke, {.caller = as_root, .prefix = view_str("dml_70")});
	ANSWER(p, DONE, done, done);
	whoami(p, &first, false);
	whoami(p, &second, false);
	whoami(p, &third, false);
	whoami(p, &aside, true);
	whoami(p, &other, true);
	/* Once more is no fault, and changes nothing. */
	ASK(p, TOKEN_REVOKE, token_revoke, {.caller = aside, .prefix = view_str("dml_70")});
	ANSWER(p, DONE, done, again);
	/* One record for each, with the one who did it. */
	(void)play_audit_of(p, "host");
	assert_int_equal(play_events(p, "token.revoke"), 3);
	assert_true(play_record(p, "token.revoke", "\"name\":\"uid:0\""));
	assert_true(play_recorded("\"maker\":\"dml_72\",\"prefix\":\"dml_73\""));
}

/* A token for one template: what is of another one does not exist for it. */
static void
test_template(void **state)
{
	struct play *p = *state;
	struct caller node, python;
	struct id sandbox, task, job;
	char name[ID_TEXT];

	play_template(p, "node");
	node = play_token(p, "acme", "node", 80);
	WANT(p, p->supervisor, TEMPLATE_PREPARE, template_prepare, prepare);
	python = play_token(p, "acme", "python", 81);
	ASK(p, SANDBOX_CREATE, sandbox_create,
		{.caller = as_root,
			.tenant = view_str("acme"),
			.template = view_str("python"),
			.metadata = view_of("ticket\00048221\0", 13)});
	int relay = play_spawn(p, &sandbox);
	ANSWER(p, SANDBOX_ROW, sandbox_row, made);
	task = made.task;
	play_run(p, relay, &sandbox, &job);
	id_text(&task, ID_TASK, name);
#define HIDDEN(NAME, name, ...)                            \
	ASK(p, NAME, name, {.caller = node, __VA_ARGS__}); \
	play_refused(p, ERROR_NOT_FOUND)
	HIDDEN(SANDBOX_GET, sandbox_get, .sandbox = sandbox);
	HIDDEN(SANDBOX_KILL, sandbox_kill, .sandbox = sandbox);
	HIDDEN(JOB_RUN, job_run, .sandbox = sandbox, .uid = 10001, .argv = view_of("true", 5));
	HIDDEN(JOB_GET, job_get, .sandbox = sandbox, .job = job);
	HIDDEN(TASK_GET, task_get, .name = view_str(name));
	HIDDEN(TASK_GET, task_get, .name = view_str("48221"));
	HIDDEN(TASK_CLOSE, task_close, .task = task);
	HIDDEN(TASK_RESUME, task_resume, .task = task);
	HIDDEN(INPUT_OPEN, input_open, .task = task, .path = view_str("/workspace/a"));
	HIDDEN(AUDIT_READ, audit_read, .name = view_str(name));
	HIDDEN(TOKEN_REVOKE, token_revoke, .prefix = view_str("dml_81"));
#define NOTHING(NAME, name, ...)                           \
	ASK(p, NAME, name, {.caller = node, __VA_ARGS__}); \
	play_want(p, p->api, MSG_END)
	NOTHING(SANDBOX_LIST, sandbox_list);
	NOTHING(TASK_LIST, task_list);
	NOTHING(TASK_LIST, task_list, .label = view_of("ticket\00048221\0", 13));
	ASK(p, TOKEN_LIST, token_list, {.caller = node});
	ANSWER(p, TOKEN_ROW, token_row, own);
	assert_true(view_is(own.prefix, "dml_80"));
	ANSWER(p, END, end, end);
	/* The token for its template sees it. */
	ASK(p, SANDBOX_LIST, sandbox_list, {.caller = python});
	ANSWER(p, SANDBOX_ROW, sandbox_row, seen);
	ANSWER(p, END, end, listed);
	ASK(p, TASK_GET, task_get, {.caller = python, .name = view_str("48221")});
	ANSWER(p, TASK_ROW, task_row, found);
	ASK(p, TASK_LIST, task_list, {.caller = python});
	ANSWER(p, TASK_ROW, task_row, listed_task);
	ANSWER(p, END, end, tasks);
	(void)close(relay);
}

/* Tokens that are over leave their place to new ones. */
static void
test_count(void **state)
{
	struct play *p = *state;
	uint64_t soon = clock_real_ms() + 4000;

	for (int i = 0; i <= 257; i++) {
		struct msg_token_create m = {.caller = as_root,
			.tenant = view_str("acme"),
			.token = {1, (uint8_t)i, (uint8_t)(i >> 8)},
			.expires_ms = i < 256 ? soon : 0};
		char prefix[17];

		(void)snprintf(prefix, sizeof(prefix), "dml_%d", i);
		m.prefix = view_str(prefix);
		ASK(p, TOKEN_CREATE, token_create, m);
		if (i == 256) {
			play_refused(p, ERROR_QUOTA);
			while (clock_real_ms() <= soon)
				(void)usleep(20000);
		} else {
			ANSWER(p, TOKEN_ROW, token_row, row);
		}
	}
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(family),
		TEST(template),
		TEST(count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
