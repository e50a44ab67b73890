/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the records say beyond that something happened: who did it, what was granted, which path it was; and
 * the edges of keys and lists that a record or a row decides.
 */
#include "play.h"

#include "lib/base/hex.h"
#include "lib/base/sha256.h"

#include <setjmp.h>
#include <sqlite3.h>
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

/* Each record names the one who did it: the token, or the engine where it acts by itself. */
static void
test_principals(void **state)
{
#define PRINCIPAL(kind, name) "\"principal\":{\"kind\":\"" kind "\",\"name\":\"" name "\"}"
	static const struct {
		const char *event, *who;
	} rows[] = {
		{"task.create", PRINCIPAL("local", "uid:0")},
		{"input.store", PRINCIPAL("local", "uid:0")},
		{"input.delete", PRINCIPAL("token", "dml_90")},
		{"sandbox.create", PRINCIPAL("token", "dml_90")},
		{"sandbox.ready", PRINCIPAL("engine", "engine")},
		{"job.start", PRINCIPAL("token", "dml_91")},
		{"cell.start", PRINCIPAL("token", "dml_91")},
		{"job.end", PRINCIPAL("engine", "engine")},
		{"sandbox.freeze", PRINCIPAL("token", "dml_91")},
		{"sandbox.frozen", PRINCIPAL("engine", "engine")},
		{"sandbox.life", PRINCIPAL("token", "dml_90")},
		{"sandbox.ttl", PRINCIPAL("engine", "engine")},
		{"sandbox.kill", PRINCIPAL("token", "dml_91")},
		{"sandbox.gone", PRINCIPAL("engine", "engine")},
		{"task.close", PRINCIPAL("token", "dml_90")},
	};
	struct play *p = *state;
	struct caller one = play_token(p, "acme", "", 90), two = play_token(p, "acme", "", 91);
	struct id task = play_task(p, "acme"), sandbox;
	struct msg_input_row row;

	play_input(p, &task, "/workspace/a", "x", &row);
	ASK(p, INPUT_DELETE, input_delete,
		{.caller = one, .task = task, .path = view_str("/workspace/a")});
	ANSWER(p, DONE, done, deleted);
	ASK(p, SANDBOX_CREATE, sandbox_create,
		{.caller = one, .task = task, .template = view_str("python")});
	int relay = play_spawn(p, &sandbox);
	ANSWER(p, SANDBOX_ROW, sandbox_row, made);
	ASK(p, JOB_RUN, job_run,
		{.caller = two, .sandbox = sandbox, .uid = 10001, .argv = view_of("true", 5)});
	uint64_t run_tag = p->tag;
	WANT(p, relay, JOB_START, job_start, start);
	struct id job = start.job;
	WANT(p, relay, JOB_SESSION, job_session, session);
	ANSWER(p, JOB_OPENED, job_opened, opened);
	ASK(p, CELL_BEGIN, cell_begin,
		{.caller = two, .sandbox = sandbox, .job = job, .code = view_str("1")});
	ANSWER(p, DONE, done, begun);
	play_end_job(p, relay, &job, 0);
	WANT(p, p->api, JOB_ROW, job_row, ended);
	assert_int_equal(p->in.tag, run_tag);
	ASK(p, SANDBOX_FREEZE, sandbox_freeze, {.caller = two, .sandbox = sandbox, .frozen = true});
	WANT(p, p->supervisor, FREEZE, freeze, freeze);
	SAY(p->supervisor, FROZEN, frozen, {.sandbox = sandbox, .frozen = true});
	ANSWER(p, SANDBOX_ROW, sandbox_row, frozen);
	ASK(p, SANDBOX_LIFE, sandbox_life,
		{.caller = one, .sandbox = sandbox, .set = 1, .ttl_ms = 60000});
	WANT(p, p->supervisor, TTL_SET, ttl_set, ttl);
	SAY(p->supervisor, TTL_IS, ttl_is, {.sandbox = sandbox, .ttl_ms = 50000});
	ANSWER(p, SANDBOX_ROW, sandbox_row, life);
	ASK(p, SANDBOX_KILL, sandbox_kill, {.caller = two, .sandbox = sandbox});
	WANT(p, p->supervisor, KILL, kill, kill);
	play_gone(p, &sandbox, SANDBOX_REASON_KILLED);
	ANSWER(p, SANDBOX_ROW, sandbox_row, gone);
	ASK(p, TASK_CLOSE, task_close, {.caller = one, .task = task});
	ANSWER(p, TASK_ROW, task_row, closed);
	(void)play_audit(p, &task);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (!play_record(p, rows[i].event, rows[i].who))
			fail_msg("%s is not recorded as done by %s", rows[i].event, rows[i].who);
	/* What was asked, and what was granted. */
	assert_true(play_record(p, "sandbox.life", "\"ttl_ms\":60000"));
	assert_true(play_record(p, "sandbox.ttl", "\"ttl_ms\":50000"));
	(void)close(relay);
}

/* A path is redacted wherever it is shown; then its digest says exactly which it was. */
static void
test_paths(void **state)
{
	static const struct {
		enum job_kind kind;
		const char *path, *shown, *key;
	} cases[] = {
		{JOB_KIND_FILE_READ, "/work/a.txt", "/work/a.txt", "path"},
		{JOB_KIND_FILE_READ, "/work/token=abcdef", "/work/token=[redacted]", "path"},
		{JOB_KIND_FILE_READ, "/\xef\xbf\xbf", "/\xef\xbf\xbd", "path"},
		{JOB_KIND_EXEC, "/work/token=abcdef", "/work/token=[redacted]", "cwd"},
	};
	struct play *p = *state;
	struct id sandbox, task;
	int relay = play_create(p, &sandbox, &task);

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		bool exec = cases[i].kind == JOB_KIND_EXEC;
		char want[160], hex[65];
		uint8_t digest[32];

		ASK(p, JOB_RUN, job_run,
			{.caller = as_root,
				.sandbox = sandbox,
				.kind = cases[i].kind,
				.uid = 10001,
				.path = view_str(cases[i].path),
				.argv = view_of("true", exec ? 5 : 0)});
		WANT(p, relay, JOB_START, job_start, start);
		assert_true(view_is(start.path, cases[i].path)); /* the relay's is exact */
		WANT(p, relay, JOB_SESSION, job_session, session);
		ANSWER(p, JOB_OPENED, job_opened, opened);
		play_end_job(p, relay, &start.job, 0);
		ANSWER(p, JOB_ROW, job_row, row);
		assert_true(view_is(exec ? row.cwd : row.text, cases[i].shown));
		WANT(p, relay, JOB_RECORDED, job_recorded, recorded);
		(void)play_audit(p, &task);
		sha256_of(view_str(cases[i].path), digest);
		hex_encode(digest, 32, hex);
		(void)snprintf(want, sizeof(want), "\"%s\":\"%s\",\"%s_digest\":\"%s\"",
			cases[i].key, cases[i].shown, cases[i].key, hex);
		assert_int_equal(play_recorded(want), strcmp(cases[i].path, cases[i].shown) != 0);
		assert_false(play_recorded("abcdef\""));
	}
	(void)close(relay);
}

static void
age_keys(struct play *p)
{
	char path[128];
	sqlite3 *db;

	(void)snprintf(path, sizeof(path), "%s/engine/engine.db", p->dir);
	assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
	assert_int_equal(
		sqlite3_exec(db, "UPDATE idempotency SET created_ms = created_ms - 86400001", NULL,
			NULL, NULL),
		SQLITE_OK);
	assert_int_equal(sqlite3_changes(db), 1);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* A key holds for a day, then it is a new one. */
static void
test_key_window(void **state)
{
	struct play *p = *state;
	struct msg_task_create m = {.caller = as_root,
		.template = view_str("python"),
		.idempotency_key = {1},
		.idempotency_body = {1}};

	ASK(p, TASK_CREATE, task_create, m);
	ANSWER(p, TASK_ROW, task_row, first);
	play_kill(p);
	play_start(p);
	ASK(p, TASK_CREATE, task_create, m);
	ANSWER(p, TASK_ROW, task_row, replayed);
	assert_true(id_eq(&first.task, &replayed.task));
	play_kill(p);
	age_keys(p);
	play_start(p);
	ASK(p, TASK_CREATE, task_create, m);
	ANSWER(p, TASK_ROW, task_row, next);
	assert_false(id_eq(&first.task, &next.task));
}

/* A page goes on behind the last one of the page before, also when that one ended meanwhile. */
static void
test_list_after_the_end(void **state)
{
	struct play *p = *state;
	struct id ids[3];
	int relays[3];

	for (size_t i = 0; i < 3; i++)
		relays[i] = play_create(p, &ids[i], NULL);
	ASK(p, SANDBOX_KILL, sandbox_kill, {.caller = as_root, .sandbox = ids[1]});
	WANT(p, p->supervisor, KILL, kill, kill);
	play_gone(p, &ids[1], SANDBOX_REASON_KILLED);
	ANSWER(p, SANDBOX_ROW, sandbox_row, gone);
	ASK(p, SANDBOX_LIST, sandbox_list, {.caller = as_root, .after = ids[1]});
	ANSWER(p, SANDBOX_ROW, sandbox_row, third);
	assert_true(id_eq(&third.sandbox, &ids[2]));
	ANSWER(p, END, end, end);
	assert_false(end.more);
	ASK(p, SANDBOX_LIST, sandbox_list, {.caller = as_root, .after = {{1}}});
	play_refused(p, ERROR_NOT_FOUND);
	for (size_t i = 0; i < 3; i++)
		(void)close(relays[i]);
}

/* An administrator who names a tenant gets no task of another one. */
static void
test_task_of_tenant(void **state)
{
	struct play *p = *state;
	struct id task = play_task(p, "acme");

	ASK(p, SANDBOX_CREATE, sandbox_create,
		{.caller = as_root,
			.tenant = view_str("other"),
			.task = task,
			.template = view_str("python")});
	play_refused(p, ERROR_NOT_FOUND);
	play_want_silence(p, p->supervisor, 50);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(principals),
		TEST(paths),
		TEST(key_window),
		TEST(list_after_the_end),
		TEST(task_of_tenant),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
