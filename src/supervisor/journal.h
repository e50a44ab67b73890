/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the supervisor holds, on disk before it is acquired: so that the next supervisor finds what a killed one left.
 * It needs to survive a process, not a power cut (nothing of a sandbox survives that): no fsync.
 *
 * Lines:  "demilune-journal 2 BOOT"      first; the kernel's boot id: a journal of an earlier boot names nothing that lives
 *         "@ PATH"                       a parent of control groups, in front of all entries: where a later start looks,
 *                                        from whatever control group it is itself started
 *         "+ NAME SLOT"                  a process and its control groups are about to be made
 *         "= NAME SANDBOX TASK"          it becomes this sandbox
 *         "- NAME"                       it was proved gone
 * A line that is cut at the end of the file was being written when the supervisor died: nothing was acquired for it.
 *
 * The file is written anew with what lives after LIMIT_JOURNAL_LINES lines, so that it stays as small as that; one that
 * is larger (the disk was full for long) is read all the same, in little memory.
 */
#pragma once

#include "lib/base/err.h"
#include "lib/base/id.h"

#include <stdbool.h>
#include <stdint.h>

enum { JOURNAL_NAME = 24, JOURNAL_BOOT = 37, JOURNAL_PATH = 4095, JOURNAL_LINE = JOURNAL_PATH + 3 };

struct journal_entry {
	char name[JOURNAL_NAME];
	uint32_t slot;
	bool named; /* sandbox and task are known */
	struct id sandbox, task;
};

/* What a journal says is held. */
struct journal_held {
	char boot[JOURNAL_BOOT]; /* empty: there was none */
	char **parents;          /* owned, and each of them */
	size_t nparents;
	struct journal_entry *entries; /* owned */
	size_t n;
};

struct journal {
	int dir;                  /* borrowed: the state directory */
	int fd;                   /* owned */
	size_t lines;             /* since it was written anew */
	struct journal_held held; /* as its lines say */
};

/* Strict reader; a journal that nobody can have written is refused. Pure. */
int journal_parse(struct view text, struct journal_held *ret, struct err *err) MUST_CHECK;
void journal_held_done(struct journal_held *h);
int journal_held_parent(struct journal_held *h, const char *path, struct err *err) MUST_CHECK;

/* Reads the file of the last run; an absent one is empty. */
int journal_read(int dir, struct journal_held *ret, struct err *err) MUST_CHECK;

/* Begins a new file with what is held (taken over), in place of the old one. */
int journal_begin(
	struct journal *j, int dir, struct journal_held *held, struct err *err) MUST_CHECK;

int journal_add(struct journal *j, const char *name, uint32_t slot, struct err *err) MUST_CHECK;
int journal_name(struct journal *j, const char *name, const struct id *sandbox,
	const struct id *task, struct err *err) MUST_CHECK;
int journal_drop(struct journal *j, const char *name, struct err *err) MUST_CHECK;

/* Closes; the file is removed when everything was dropped. */
void journal_end(struct journal *j);
