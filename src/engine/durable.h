/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When commits reach the disk and when the WAL is folded into the database. Only store.c
 * uses this. A sync blocks the loop (0.8 ms on the machine it was measured on), so the
 * callers issue it where somebody else works meanwhile.
 */
#pragma once

#include "lib/base/attr.h"

#include <ev.h>
#include <sqlite3.h>
#include <stdbool.h>

struct durable {
	struct ev_loop *loop; /* borrowed */
	sqlite3 *database;    /* borrowed */
	int wal_fd;           /* owned */
	bool dirty;           /* something was committed since the last sync */
	int wal_pages;        /* as SQLite told after the last commit */
	ev_timer group, quiet;
};

void durable_init(struct durable *d, struct ev_loop *loop, sqlite3 *database, int wal_fd);
void durable_done(struct durable *d);

/* After each commit. */
void durable_committed(struct durable *d);
void durable_sync(struct durable *d);
