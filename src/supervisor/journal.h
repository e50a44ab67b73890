/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the supervisor holds, on disk before it is acquired: so that the next supervisor finds what a killed one left.
 * It needs to survive a process, not a power cut (nothing of a sandbox survives that): no fsync.
 *
 * Lines:  "demilune-journal 1 TAG"      first; the tag names the parent of all control groups
 *         "+ NAME SLOT"                 a process and its control groups are about to be made
 *         "= NAME SANDBOX TASK"         it becomes this sandbox
 *         "- NAME"                      it was proved gone
 * A line that is cut at the end of the file was being written when the supervisor died: nothing was acquired for it.
 */
#pragma once

#include "lib/base/err.h"
#include "lib/base/id.h"

#include <stdbool.h>
#include <stdint.h>

enum { JOURNAL_NAME = 24, JOURNAL_TAG = 17 };

struct journal_entry {
	char name[JOURNAL_NAME];
	uint32_t slot;
	bool named; /* sandbox and task are known */
	struct id sandbox, task;
};

/* What a journal says is still held. */
struct journal_found {
	char tag[JOURNAL_TAG];         /* empty: there was none */
	struct journal_entry *entries; /* owned */
	size_t n;
};

struct journal {
	int dir; /* borrowed: the state directory */
	int fd;  /* owned */
	size_t lines;
	char tag[JOURNAL_TAG];
};

/* Strict reader; a journal that nobody can have written is refused. Pure. */
int journal_parse(struct view text, struct journal_found *ret, struct err *err) MUST_CHECK;
void journal_found_done(struct journal_found *f);

/* Reads the file of the last run; an absent one is empty. */
int journal_read(int dir, struct journal_found *ret, struct err *err) MUST_CHECK;

/* Begins a new file with these entries, in place of the old one. */
int journal_begin(struct journal *j, int dir, const char *tag, const struct journal_entry *entries,
	size_t n, struct err *err) MUST_CHECK;

int journal_add(struct journal *j, const char *name, uint32_t slot, struct err *err) MUST_CHECK;
int journal_name(struct journal *j, const char *name, const struct id *sandbox,
	const struct id *task, struct err *err) MUST_CHECK;
int journal_drop(struct journal *j, const char *name, struct err *err) MUST_CHECK;

/* Closes; the file is removed when everything was dropped. */
void journal_end(struct journal *j, bool clean);
