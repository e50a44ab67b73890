/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The database: SQLite in WAL mode, one connection, one writer, so nothing is ever busy. All
 * statements are prepared at open; nothing outside the .sql files reaches SQLite.
 *
 * Durability: a commit is in the page cache of the kernel (no process crash loses it);
 * store_sync() puts the WAL file on disk, at once or within LIMIT_GROUP_MS for a commit
 * that asked for no more than that. A disk that cannot sync ends the process: what was
 * promised would not be true any more.
 *
 * The process has its state directory as working directory, and the database has a relative
 * name there: no path outside that directory is ever opened.
 */
#pragma once

#include "lib/base/err.h"
#include "lib/base/id.h"
#include "lib/base/view.h"
#include "sql_gen.h"

#include <ev.h>
#include <sqlite3.h>

#define STORE_FILE "engine.db"

struct store;

/* Opens, checks and brings the schema up to date; refuses one that is newer than this program. */
struct store *store_open(struct ev_loop *loop, int state_fd, struct err *err) MUST_CHECK;
void store_close(struct store *s);

/*
 * A transaction: auto_tx struct tx tx = {0}; tx_begin, changes, tx_commit. Leaving the block without
 * tx_commit undoes all.
 */
struct tx {
	struct store *store; /* borrowed; NULL when not open */
};

int tx_begin(struct tx *tx, struct store *s, struct err *err) MUST_CHECK;
/* Committed and, within LIMIT_GROUP_MS, durable. */
int tx_commit(struct tx *tx, struct err *err) MUST_CHECK;
void tx_cleanup(struct tx *tx);
#define auto_tx __attribute__((cleanup(tx_cleanup)))

/* What is told, with its argument, of the end of each transaction that was begun; one. */
void store_on_end(struct store *s, void (*end)(void *arg, bool committed), void *arg);

/* All commits so far are on disk when this returns. */
void store_sync(struct store *s);

/*
 * One use of a prepared statement: arguments in order, then query_run, or query_next and columns in
 * order. Views and text of columns live until the next query_next or the end of the block.
 */
struct query {
	struct store *store; /* borrowed */
	sqlite3_stmt *stmt;  /* borrowed from the store; NULL after the end */
	int argument, column;
};

struct query query_of(struct store *s, enum query_name name);
void query_cleanup(struct query *q);
#define auto_query __attribute__((cleanup(query_cleanup)))

void arg_u64(struct query *q, uint64_t v); /* at most INT64_MAX */
void arg_i64(struct query *q, int64_t v);
void arg_view(struct query *q, struct view v); /* a text */
void arg_text(struct query *q, const char *text);
void arg_blob(struct query *q, struct view v);
void arg_id(struct query *q, const struct id *id);
void arg_digest(struct query *q, const uint8_t digest[static 32]);

/* A statement without rows. -EEXIST: a constraint of the schema does not hold; nothing of the statement was done. */
int query_run(struct query *q, struct err *err) MUST_CHECK;

/* 1 with a row, 0 at the end, or negative. */
int query_next(struct query *q, struct err *err) MUST_CHECK;

uint64_t col_u64(struct query *q);
int64_t col_i64(struct query *q);
struct view col_view(struct query *q);
void col_text(struct query *q, char *ret, size_t size); /* cut to size - 1 */
void col_id(struct query *q, struct id *ret);           /* zero when it is none */
void col_digest(struct query *q, uint8_t ret[static 32]);

/* The row number of the last insert. */
uint64_t store_last_row(struct store *s);

/* One row whose columns the caller reads, else -ENOENT. */
int query_one(struct query *q, struct err *err) MUST_CHECK;
