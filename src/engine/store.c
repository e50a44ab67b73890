/* SPDX-License-Identifier: Apache-2.0 */
/* The database; see store.h. */
#include "engine/store.h"

#include "engine/durable.h"
#include "lib/base/attr.h"
#include "lib/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

struct store {
	sqlite3 *database; /* owned */
	sqlite3_stmt *statements[Q_MAX];
	struct durable durable;
	bool open;                              /* inside a transaction */
	void (*end)(void *arg, bool committed); /* NULL: nobody is told */
	void *end_arg;
};

/* ---- names below the working directory ---- */

/* SQLite makes names absolute; a process that may see nothing above its directory keeps them as they are. */
static int
full_name(sqlite3_vfs *vfs, const char *name, int size, char *ret)
{
	(void)vfs;
	if (strlen(name) >= (size_t)size)
		return SQLITE_CANTOPEN;
	memcpy(ret, name, strlen(name) + 1);
	return SQLITE_OK;
}

static sqlite3_vfs relative; /* the one that SQLite keeps a pointer to */

static int
vfs_install(struct err *err)
{
	sqlite3_vfs *unix_vfs;

	if (relative.zName != NULL)
		return 0;
	if (sqlite3_config(SQLITE_CONFIG_SINGLETHREAD) != SQLITE_OK ||
		sqlite3_initialize() != SQLITE_OK)
		return err_set(err, -EIO, "SQLite does not start");
	unix_vfs = sqlite3_vfs_find("unix");
	if (unix_vfs == NULL)
		return err_set(err, -EIO, "SQLite has no unix VFS");
	relative = *unix_vfs;
	relative.zName = "relative";
	relative.pNext = NULL;
	relative.xFullPathname = full_name;
	if (sqlite3_vfs_register(&relative, 1) != SQLITE_OK)
		return err_set(err, -EIO, "SQLite takes no VFS");
	return 0;
}

/* ---- open ---- */

static int
fault(struct store *s, const char *what, struct err *err)
{
	int code = sqlite3_errcode(s->database);

	return err_set(err,
		code == SQLITE_FULL         ? -ENOSPC
		: code == SQLITE_CONSTRAINT ? -EEXIST
					    : -EIO,
		"%s: %s", what, sqlite3_errmsg(s->database));
}

static int
execute(struct store *s, const char *sql, struct err *err)
{
	if (sqlite3_exec(s->database, sql, NULL, NULL, NULL) != SQLITE_OK)
		return fault(s, "database", err);
	return 0;
}

/* The single integer or text that a PRAGMA answers. */
static int
ask(struct store *s, const char *sql, char *ret, size_t size, struct err *err)
{
	sqlite3_stmt *stmt = NULL;
	int r = 0;

	if (sqlite3_prepare_v2(s->database, sql, -1, &stmt, NULL) != SQLITE_OK)
		return fault(s, sql, err);
	if (sqlite3_step(stmt) == SQLITE_ROW)
		(void)snprintf(ret, size, "%s", (const char *)sqlite3_column_text(stmt, 0));
	else
		r = fault(s, sql, err);
	(void)sqlite3_finalize(stmt); /* its fault is the one of the step */
	return r;
}

static int
configure(struct store *s, struct err *err)
{
	char answer[128];
	int r;

	if (sqlite3_db_config(s->database, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL) != SQLITE_OK ||
		sqlite3_db_config(s->database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL) !=
			SQLITE_OK ||
		sqlite3_extended_result_codes(s->database, 0) != SQLITE_OK)
		return fault(s, "database", err);
	/* Small pages: a command changes a dozen of them, and each goes to the WAL whole, with a checksum. */
	r = execute(s,
		"PRAGMA page_size = 2048; PRAGMA locking_mode = EXCLUSIVE; PRAGMA temp_store = "
		"MEMORY;"
		"PRAGMA foreign_keys = ON; PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint "
		"= 0;"
		"PRAGMA cell_size_check = ON;",
		err);
	if (r == 0)
		r = ask(s, "PRAGMA journal_mode = WAL", answer, sizeof(answer), err);
	if (r == 0 && strcmp(answer, "wal") != 0)
		return err_set(err, -EIO, "the database cannot use a write-ahead log (%s)", answer);
	if (r == 0)
		r = ask(s, "PRAGMA quick_check(1)", answer, sizeof(answer), err);
	if (r == 0 && strcmp(answer, "ok") != 0)
		return err_set(err, -EUCLEAN, "the database is damaged: %s", answer);
	return r;
}

static int
migrate(struct store *s, struct err *err)
{
	char answer[32], sql[64];
	int version, r = ask(s, "PRAGMA user_version", answer, sizeof(answer), err);

	if (r < 0)
		return r;
	if (sscanf(answer, "%d", &version) != 1 || version < 0)
		return err_set(err, -EUCLEAN, "the database has no version");
	if (version > SCHEMA_VERSION)
		return err_set(err, -ENOTSUP,
			"the database has version %d, this program knows %d; use the newer program",
			version, SCHEMA_VERSION);
	for (; version < SCHEMA_VERSION; version++) {
		(void)snprintf(sql, sizeof(sql), "PRAGMA user_version = %d", version + 1);
		r = execute(s, "BEGIN IMMEDIATE", err);
		if (r == 0)
			r = execute(s, schema_steps[version], err);
		if (r == 0)
			r = execute(s, sql, err);
		if (r == 0)
			r = execute(s, "COMMIT", err);
		if (r < 0)
			return r; /* the open transaction ends with the connection */
	}
	return 0;
}

static int
prepare(struct store *s, struct err *err)
{
	for (size_t i = 0; i < Q_MAX; i++)
		if (sqlite3_prepare_v3(s->database, query_texts[i], -1, SQLITE_PREPARE_PERSISTENT,
			    &s->statements[i], NULL) != SQLITE_OK)
			return fault(s, query_texts[i], err);
	return 0;
}

void
store_close(struct store *s)
{
	if (s == NULL)
		return;
	if (s->durable.loop != NULL) {
		durable_sync(&s->durable);
		durable_done(&s->durable);
	}
	for (size_t i = 0; i < Q_MAX; i++)
		(void)sqlite3_finalize(s->statements[i]); /* its fault was told when it ran */
	if (sqlite3_close(s->database) != SQLITE_OK)
		log_line("the database does not close: %s", sqlite3_errmsg(s->database));
	free(s);
}

static void
store_cleanup(struct store **s)
{
	store_close(*s);
}

struct store *
store_open(struct ev_loop *loop, int state_fd, struct err *err)
{
	__attribute__((cleanup(store_cleanup))) struct store *s = calloc(1, sizeof(*s));
	int wal;

	if (s == NULL) {
		(void)err_set(err, -ENOMEM, "no memory for the database");
		return NULL;
	}
	if (vfs_install(err) < 0)
		return NULL;
	if (sqlite3_open_v2(STORE_FILE, &s->database,
		    SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOFOLLOW,
		    "relative") != SQLITE_OK) {
		(void)fault(s, "cannot open " STORE_FILE, err);
		return NULL;
	}
	if (configure(s, err) < 0 || migrate(s, err) < 0 || prepare(s, err) < 0)
		return NULL;
	/* A change, so that the WAL file is there to be synced from now on. */
	if (execute(s,
		    "INSERT INTO meta VALUES ('opened', x'00') ON CONFLICT DO UPDATE SET value = "
		    "x'00'",
		    err) < 0)
		return NULL;
	wal = openat(state_fd, STORE_FILE "-wal", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (wal < 0 || fsync(state_fd) < 0) {
		(void)err_errno(err, "open " STORE_FILE "-wal");
		if (wal >= 0)
			(void)close(wal); /* the store is of no use */
		return NULL;
	}
	durable_init(&s->durable, loop, s->database, wal);
	durable_sync(&s->durable);
	return take_ptr(s);
}

/* ---- transactions ---- */

static int
run(struct store *s, enum query_name name, struct err *err)
{
	auto_query struct query q = query_of(s, name);

	return query_run(&q, err);
}

int
tx_begin(struct tx *tx, struct store *s, struct err *err)
{
	int r;

	must(!s->open);
	r = run(s, Q_BEGIN, err);
	if (r == 0) {
		s->open = true;
		tx->store = s;
	}
	return r;
}

int
tx_commit(struct tx *tx, struct err *err)
{
	struct store *s = tx->store;
	int r = run(s, Q_COMMIT, err);

	if (r < 0)
		return r; /* undone at the end of the block */
	s->open = false;
	tx->store = NULL;
	durable_committed(&s->durable);
	if (s->end != NULL)
		s->end(s->end_arg, true);
	return 0;
}

void
tx_cleanup(struct tx *tx)
{
	struct err err;

	if (tx->store == NULL)
		return;
	tx->store->open = false;
	/* SQLite has undone it already after some faults; then there is nothing to roll back. */
	if (sqlite3_get_autocommit(tx->store->database) == 0 &&
		run(tx->store, Q_ROLLBACK, &err) < 0)
		log_exit(1, "a transaction cannot be undone: %s", err.text);
	if (tx->store->end != NULL)
		tx->store->end(tx->store->end_arg, false);
	tx->store = NULL;
}

void
store_on_end(struct store *s, void (*end)(void *arg, bool committed), void *arg)
{
	s->end = end;
	s->end_arg = arg;
}

void
store_sync(struct store *s)
{
	durable_sync(&s->durable);
}

/* ---- statements ---- */

struct query
query_of(struct store *s, enum query_name name)
{
	must(sqlite3_stmt_busy(s->statements[name]) == 0);
	return (struct query){.store = s, .stmt = s->statements[name]};
}

void
query_cleanup(struct query *q)
{
	if (q->stmt == NULL)
		return;
	(void)sqlite3_reset(q->stmt); /* repeats the fault of the step, which was told */
	(void)sqlite3_clear_bindings(q->stmt);
	q->stmt = NULL;
}

void
arg_i64(struct query *q, int64_t v)
{
	must(sqlite3_bind_int64(q->stmt, ++q->argument, v) == SQLITE_OK);
}

void
arg_u64(struct query *q, uint64_t v)
{
	must(v <= INT64_MAX);
	arg_i64(q, (int64_t)v);
}

/* Borrowed by SQLite until the end of the query: the caller's bytes live as long as its block. */
void
arg_view(struct query *q, struct view v)
{
	must(sqlite3_bind_text64(q->stmt, ++q->argument, v.n == 0 ? "" : (const char *)v.p, v.n,
		     SQLITE_STATIC, SQLITE_UTF8) == SQLITE_OK);
}

void
arg_text(struct query *q, const char *text)
{
	arg_view(q, view_str(text));
}

void
arg_blob(struct query *q, struct view v)
{
	must(sqlite3_bind_blob64(q->stmt, ++q->argument, v.n == 0 ? "" : (const void *)v.p, v.n,
		     SQLITE_STATIC) == SQLITE_OK);
}

void
arg_id(struct query *q, const struct id *id)
{
	arg_blob(q, view_of(id->b, ID_BYTES));
}

void
arg_digest(struct query *q, const uint8_t digest[static 32])
{
	arg_blob(q, view_of(digest, 32));
}

int
query_next(struct query *q, struct err *err)
{
	int r = sqlite3_step(q->stmt);

	q->column = 0;
	if (r == SQLITE_ROW)
		return 1;
	if (r == SQLITE_DONE)
		return 0;
	return fault(q->store, "database", err);
}

int
query_run(struct query *q, struct err *err)
{
	int r = query_next(q, err);

	must(r <= 0);
	return r;
}

int
query_one(struct query *q, struct err *err)
{
	int r = query_next(q, err);

	if (r == 0)
		return err_set(err, -ENOENT, "no such row");
	return r < 0 ? r : 0;
}

int64_t
col_i64(struct query *q)
{
	return sqlite3_column_int64(q->stmt, q->column++);
}

uint64_t
col_u64(struct query *q)
{
	int64_t v = col_i64(q);

	return v < 0 ? 0 : (uint64_t)v;
}

struct view
col_view(struct query *q)
{
	const void *p = sqlite3_column_blob(q->stmt, q->column);
	int n = sqlite3_column_bytes(q->stmt, q->column++);

	return view_of(p, (size_t)n);
}

void
col_text(struct query *q, char *ret, size_t size)
{
	struct view v = col_view(q);
	size_t n = v.n < size - 1 ? v.n : size - 1;

	if (n > 0)
		memcpy(ret, v.p, n);
	ret[n] = '\0';
}

/* The schema holds lengths; a NULL of an outer join reads as zero. */
static void
col_bytes(struct query *q, uint8_t *ret, size_t n)
{
	struct view v = col_view(q);

	if (v.n == n)
		memcpy(ret, v.p, n);
	else
		memset(ret, 0, n);
}

void
col_id(struct query *q, struct id *ret)
{
	col_bytes(q, ret->b, ID_BYTES);
}

void
col_digest(struct query *q, uint8_t ret[static 32])
{
	col_bytes(q, ret, 32);
}

uint64_t
store_last_row(struct store *s)
{
	return (uint64_t)sqlite3_last_insert_rowid(s->database);
}
