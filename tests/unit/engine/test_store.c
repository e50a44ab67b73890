/* SPDX-License-Identifier: Apache-2.0 */
/* The store: its lists are those of the protocol, it refuses what it must, undoes and keeps. */
#include "engine/store.h"

#include "lib/loop/loop.h"
#include "proto_gen.h"

#include <fcntl.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[] = "/tmp/demilune-store-XXXXXX";
static int dir_fd;
static struct ev_loop *loop;

static int
setup(void **state)
{
	(void)state;
	memcpy(dir + sizeof(dir) - 7, "XXXXXX", 6);
	assert_non_null(mkdtemp(dir));
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(fchdir(dir_fd), 0);
	loop = loop_new();
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	loop_free(loop);
	(void)unlinkat(dir_fd, STORE_FILE, 0);
	(void)unlinkat(dir_fd, STORE_FILE "-wal", 0);
	(void)unlinkat(dir_fd, STORE_FILE "-shm", 0);
	assert_int_equal(chdir("/"), 0);
	assert_int_equal(rmdir(dir), 0);
	(void)close(dir_fd);
	return 0;
}

/* Without blanks, so that line breaks in the list do not matter. */
static void
squeeze(const char *in, struct buf *out)
{
	for (; *in != '\0'; in++)
		if (*in != ' ' && *in != '\n' && *in != '\t')
			buf_add_byte(out, (uint8_t)*in);
	buf_add_byte(out, 0);
}

typedef const char *text_fn(unsigned v);

#define TEXT_FN(name)                                 \
	static const char *text_of_##name(unsigned v) \
	{                                             \
		return name##_text((enum name)v);     \
	}
TEXT_FN(task_state)
TEXT_FN(sandbox_state)
TEXT_FN(sandbox_reason)
TEXT_FN(job_kind)
TEXT_FN(job_reason)
TEXT_FN(effect)
TEXT_FN(proposal_state)
TEXT_FN(execution_state)
TEXT_FN(attempt)
TEXT_FN(denial)
TEXT_FN(counter)

static void
check_list_of(unsigned step, const char *table, const char *column, const char *more, text_fn *text,
	unsigned n)
{
	struct buf schema, want;
	const char *at;

	buf_init(&schema, 65536);
	buf_init(&want, 4096);
	squeeze(schema_steps[step], &schema);
	buf_addf(&want, "%sTEXTNOTNULL%sCHECK(%sIN(", column, more, column);
	for (unsigned i = 0; i < n; i++)
		buf_addf(&want, "%s'%s'", i == 0 ? "" : ",", text(i));
	buf_add(&want, "))", 3);
	at = strstr((const char *)schema.p, table);
	assert_non_null(at);
	at = strstr(at, (const char *)want.p);
	if (at == NULL)
		fail_msg("%s.%s is not the list of the protocol: %s", table, column,
			(const char *)want.p);
	buf_done(&schema);
	buf_done(&want);
}

static void
check_list(const char *table, const char *column, text_fn *text, unsigned n)
{
	check_list_of(0, table, column, "", text, n);
}

static void
test_lists_of_actions(void **state)
{
	static const char proposal[] = "CREATETABLEproposal(",
			  execution[] = "CREATETABLEexecution(";
	const char *none = "DEFAULT'none'";

	(void)state;
	check_list_of(1, proposal, "effect", "", text_of_effect, EFFECT_MAX);
	check_list_of(1, proposal, "state", "", text_of_proposal_state, PROPOSAL_STATE_MAX);
	check_list_of(1, proposal, "denial", none, text_of_denial, DENIAL_MAX);
	check_list_of(1, execution, "state", "", text_of_execution_state, EXECUTION_STATE_MAX);
	check_list_of(1, execution, "settled", "DEFAULT'unseen'", text_of_attempt, ATTEMPT_MAX);
	check_list_of(1, execution, "denial", none, text_of_denial, DENIAL_MAX);
	check_list_of(1, "CREATETABLEbudget(", "counter", "", text_of_counter, COUNTER_MAX);
}

static void
test_lists(void **state)
{
	(void)state;
	check_list("CREATETABLEtask(", "state", text_of_task_state, TASK_STATE_MAX);
	/* Made anew by version 6, as the reasons grew. */
	check_list_of(
		5, "CREATETABLEsandbox(", "state", "", text_of_sandbox_state, SANDBOX_STATE_MAX);
	check_list_of(
		5, "CREATETABLEsandbox(", "reason", "", text_of_sandbox_reason, SANDBOX_REASON_MAX);
	check_list("CREATETABLEjob(", "kind", text_of_job_kind, JOB_KIND_MAX);
	check_list("CREATETABLEjob(", "reason", text_of_job_reason, JOB_REASON_MAX);
}

/*
 * No query reads a table from one end to the other that grows with what people and sandboxes do: one loop answers everybody, and how long
 * an answer takes would say how much others have. What does so all the same, and why it may:
 */
static bool
may_scan(enum query_name name)
{
	static const enum query_name rows[] = {
		Q_AUDIT_SIZE, Q_AUDIT_DIGESTS, /* at the start, of an index or the end */
		Q_TASK_PAGE_ALL, Q_PROPOSAL_PAGE_ALL,
		Q_EXECUTION_PAGE_ALL,              /* all that it reads it shows */
		Q_EGRESS_PAGE_ALL,                 /* an administrator's, who sees all tenants */
		Q_CONTAINMENT_NEXT, Q_OUTBOX_NEXT, /* the next row, whichever it is */
		Q_TOKEN_LIST, Q_TOKEN_FIRST, Q_TOKEN_FAMILY,
		Q_TOKEN_REVOKE,   /* LIMIT_TOKENS_PER_TENANT */
		Q_BUDGET_RESTART, /* at the start */
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i] == name)
			return true;
	return false;
}

/* A partial index is of the few rows that are under way. */
static bool
is_scan(const char *step)
{
	static const char *const few[] = {"proposal_decide", "proposal_dispatch",
		"proposal_checked", "proposal_may_go", "execution_open", "sandbox_live",
		"grant_live", "CONSTANT ROW"};

	if (strncmp(step, "SCAN ", 5) != 0 && strstr(step, "INTEGER PRIMARY KEY (rowid") == NULL)
		return false;
	if (strstr(step, "(rowid=?)") != NULL)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(few); i++)
		if (strstr(step, few[i]) != NULL)
			return false;
	return true;
}

static void
test_no_query_scans(void **state)
{
	sqlite3 *db;

	(void)state;
	assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
	for (unsigned i = 0; i < SCHEMA_VERSION; i++)
		assert_int_equal(sqlite3_exec(db, schema_steps[i], NULL, NULL, NULL), SQLITE_OK);
	for (unsigned i = 0; i < Q_MAX; i++) {
		char text[4096];
		sqlite3_stmt *plan;

		(void)snprintf(text, sizeof(text), "EXPLAIN QUERY PLAN %s", query_texts[i]);
		assert_int_equal(sqlite3_prepare_v2(db, text, -1, &plan, NULL), SQLITE_OK);
		while (sqlite3_step(plan) == SQLITE_ROW) {
			const char *step = (const char *)sqlite3_column_text(plan, 3);

			if (is_scan(step) && !may_scan((enum query_name)i))
				fail_msg("%s\n%s", step, query_texts[i]);
		}
		(void)sqlite3_finalize(plan);
	}
	(void)sqlite3_close(db);
}

static struct store *
opened(void)
{
	struct err err = {0};
	struct store *s = store_open(loop, dir_fd, &err);

	if (s == NULL)
		fail_msg("%s", err.text);
	return s;
}

static void
set(struct store *s, const char *value, bool commit)
{
	struct err err;
	auto_tx struct tx tx = {0};
	auto_query struct query q = {0};

	assert_int_equal(tx_begin(&tx, s, &err), 0);
	q = query_of(s, Q_META_SET);
	arg_text(&q, "x");
	arg_blob(&q, view_str(value));
	assert_int_equal(query_run(&q, &err), 0);
	query_cleanup(&q);
	if (commit)
		assert_int_equal(tx_commit(&tx, &err), 0);
}

static bool
is(struct store *s, const char *value)
{
	struct err err;
	auto_query struct query q = query_of(s, Q_META_GET);

	arg_text(&q, "x");
	assert_int_equal(query_one(&q, &err), 0);
	return view_is(col_view(&q), value);
}

static void
test_keep(void **state)
{
	struct store *s = opened();

	(void)state;
	set(s, "one", true);
	set(s, "two", false); /* undone at the end of the block */
	assert_true(is(s, "one"));
	store_close(s);
	s = opened();
	assert_true(is(s, "one"));
	store_close(s);
}

static void
damage(const char *sql)
{
	sqlite3 *database;

	assert_int_equal(sqlite3_open(STORE_FILE, &database), SQLITE_OK);
	assert_int_equal(sqlite3_exec(database, sql, NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_close(database), SQLITE_OK);
}

static void
test_newer(void **state)
{
	struct err err = {0};
	char sql[64];

	(void)state;
	store_close(opened());
	(void)snprintf(sql, sizeof(sql), "PRAGMA user_version = %d", SCHEMA_VERSION + 1);
	damage(sql);
	assert_null(store_open(loop, dir_fd, &err));
	assert_non_null(strstr(err.text, "newer program"));
}

/* A store of version 5, with a sandbox and its job, as the programs of that version left it. */
static void
make_older(void)
{
	static const char rows[] =
		"PRAGMA user_version = 5; INSERT INTO chain (id) VALUES (x'00112233445566778899');"
		"INSERT INTO task (id, tenant, template, state, implicit, created_ms, "
		"memory_bytes, "
		"disk_bytes, disk_inodes, pids, cpu_milli, open_files, ttl_ms, idle_ms, labels) "
		"VALUES "
		"(x'00112233445566778899', 'acme', 'python', 'open', 0, 7, 1, 1, 1, 1, 1, 1, 1, 1, "
		"x'');"
		"INSERT INTO sandbox (seq, id, task, tenant, template_asked, template, digest, "
		"state, "
		"reason, memory_bytes, disk_bytes, disk_inodes, pids, cpu_milli, open_files, "
		"ttl_ms, "
		"ttl_until_ms, idle_ms, persistent, created_ms, metadata, residue, gone) VALUES "
		"(41, "
		"x'99112233445566778899', x'00112233445566778899', 'acme', 'python', 'python', "
		"zeroblob(32), 'deleted', 'ttl', 1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 10, x'0b', 1, "
		"x'0c');"
		"INSERT INTO job (id, sandbox, task, kind, reason, uid, timeout_ms, started_ms, "
		"argv_digest, text, cwd) VALUES (x'88112233445566778899', x'99112233445566778899', "
		"x'00112233445566778899', 'exec', 'exited', 1, 1, 1, zeroblob(32), '', '');";
	sqlite3 *db;

	assert_int_equal(sqlite3_open(STORE_FILE, &db), SQLITE_OK);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(sqlite3_exec(db, schema_steps[i], NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, rows, NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static int64_t
number(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *q;
	int64_t n;

	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &q, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(q), SQLITE_ROW);
	n = sqlite3_column_int64(q, 0);
	(void)sqlite3_finalize(q);
	return n;
}

/* Version 6 makes the table of sandboxes anew: nothing of it is lost, and what refers to it still does. */
static void
test_older(void **state)
{
	sqlite3 *db;

	(void)state;
	make_older();
	store_close(opened());
	assert_int_equal(sqlite3_open(STORE_FILE, &db), SQLITE_OK);
	assert_int_equal(number(db, "PRAGMA user_version"), SCHEMA_VERSION);
	assert_int_equal(
		number(db,
			"SELECT count(*) FROM sandbox WHERE seq = 41 AND id = "
			"x'99112233445566778899' AND tenant = 'acme' AND state = 'deleted' AND "
			"reason = 'ttl' AND cpu_milli = 5 AND ttl_until_ms = 8 AND persistent = 1 "
			"AND residue = 1 AND metadata = x'0b' AND gone = x'0c' AND spawned IS NULL "
			"AND policy = '' AND policy_digest = zeroblob(32)"),
		1);
	assert_int_equal(
		number(db, "SELECT count(*) FROM task WHERE policy = '' AND egress_revoked_ms = 0"),
		1);
	assert_int_equal(
		number(db, "SELECT count(*) FROM sqlite_schema WHERE name = 'sandbox_before'"), 0);
	assert_int_equal(number(db, "SELECT count(*) FROM sqlite_schema WHERE tbl_name = 'sandbox' "
				    "AND type = 'index'"),
		5);
	assert_int_equal(number(db, "SELECT count(*) FROM pragma_foreign_key_check"), 0);
	assert_int_equal(sqlite3_exec(db, "PRAGMA foreign_keys = ON", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(
		sqlite3_exec(db, "DELETE FROM sandbox", NULL, NULL, NULL), SQLITE_CONSTRAINT);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
	store_close(opened());
}

static void
test_damaged(void **state)
{
	struct err err = {0};
	uint8_t junk[4096];
	int fd;

	(void)state;
	store_close(opened());
	memset(junk, 0xa5, sizeof(junk));
	fd = openat(dir_fd, STORE_FILE, O_WRONLY | O_CLOEXEC);
	for (off_t page = 1; page < 20; page++)
		assert_int_equal(pwrite(fd, junk, sizeof(junk), page * 4096), sizeof(junk));
	(void)close(fd);
	assert_null(store_open(loop, dir_fd, &err));
	assert_true(err.code < 0);
}

/* One store, one engine. */
static void
test_second(void **state)
{
	struct store *s = opened();
	struct err err = {0};
	pid_t child = fork();
	int status;

	(void)state;
	if (child == 0) {
		struct ev_loop *own = loop_new();

		_exit(store_open(own, dir_fd, &err) == NULL ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	store_close(s);
}

/* The database itself refuses to change or remove a record. */
static void
test_append_only(void **state)
{
	sqlite3 *database;

	(void)state;
	store_close(opened());
	assert_int_equal(sqlite3_open(STORE_FILE, &database), SQLITE_OK);
	assert_int_equal(sqlite3_exec(database,
				 "INSERT INTO audit VALUES (1, zeroblob(10), 1, zeroblob(32), "
				 "zeroblob(32), x'00')",
				 NULL, NULL, NULL),
		SQLITE_OK);
	assert_int_equal(
		sqlite3_exec(database, "UPDATE audit SET record = x'01'", NULL, NULL, NULL),
		SQLITE_CONSTRAINT);
	assert_int_equal(
		sqlite3_exec(database, "DELETE FROM audit", NULL, NULL, NULL), SQLITE_CONSTRAINT);
	assert_int_equal(sqlite3_close(database), SQLITE_OK);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lists), cmocka_unit_test(test_lists_of_actions),
		cmocka_unit_test_setup_teardown(test_keep, setup, teardown),
		cmocka_unit_test_setup_teardown(test_newer, setup, teardown),
		cmocka_unit_test_setup_teardown(test_older, setup, teardown),
		cmocka_unit_test_setup_teardown(test_damaged, setup, teardown),
		cmocka_unit_test_setup_teardown(test_second, setup, teardown),
		cmocka_unit_test_setup_teardown(test_append_only, setup, teardown),
		cmocka_unit_test(test_no_query_scans), /* starts SQLite by itself */
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
