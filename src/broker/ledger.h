/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ledger: the broker's own memory of what was approved, spent, ended and revoked, which no other process can change. One append-only
 * file, `u32 length, canonical bytes, SHA-256 chained over all before`; each append is on disk before it returns, and nothing has an
 * effect before its entry returned. All of it is indexed in memory at start.
 *
 * Invariants: a proposal and a key have at most one `spent`; what is not indexed is not on disk. A tail that ends inside an entry is what a
 * crash leaves (its append never returned, so nothing came of it) and is cut; a file that is damaged in any other way is refused.
 * Once an append failed and could not be undone, none works any more.
 */
#pragma once

#include "broker/entry.h"
#include "lib/base/id.h"

struct ledger;

/* What became of a spent proposal. */
enum outcome {
	OUTCOME_OPEN, /* no answer is known: the process died while it was out, or it is out now */
	OUTCOME_UNKNOWN,
	OUTCOME_SUCCEEDED,
	OUTCOME_FAILED,
};

/* One that was sent. Texts are owned by the ledger and live as long as it. */
struct spent {
	struct spent *next;
	char execution[ID_TEXT], proposal[ID_TEXT], task[ID_TEXT], tenant[64], key[64];
	char *account; /* owned: provider, NUL, account */
	uint8_t record[SHA256_BYTES];
	uint64_t ms, ended_ms,
		ended_at; /* ended_at: where the last `ended` stands in the file, 0: none */
	size_t ended_n;
	enum outcome outcome;
	bool settled;
	char *settled_by; /* owned; NULL: not by a person */
};

/*
 * `dir` is the broker's own directory; the file is made when it is not there, and held with an exclusive lock: -EBUSY, another broker
 * has it. -EBADMSG: it is damaged. *ret_cut: bytes of a torn tail that were cut.
 */
int ledger_open(int dir, struct ledger **ret, uint64_t *ret_cut, struct err *err) MUST_CHECK;
void ledger_close(struct ledger *l);

/* Writes, waits for the disk, indexes. On failure nothing is there. */
int ledger_add(struct ledger *l, const struct entry *e, struct err *err) MUST_CHECK;

/* Can an entry be written at all: a cheap question before something is begun. */
int ledger_usable(const struct ledger *l, struct err *err) MUST_CHECK;

uint64_t ledger_epoch(const struct ledger *l);
uint64_t ledger_entries(const struct ledger *l);

const struct spent *ledger_by_proposal(const struct ledger *l, struct view proposal);
const struct spent *ledger_by_execution(const struct ledger *l, struct view execution);
const struct spent *ledger_by_key(const struct ledger *l, struct view key);

/* Another execution of this provider and account that has this receipt. */
const struct spent *ledger_by_receipt(
	const struct ledger *l, struct view provider, struct view account, struct view receipt);
bool ledger_revoked(const struct ledger *l, struct view proposal);

/* When this decision was first seen, 0: never. */
uint64_t ledger_accepted_ms(const struct ledger *l, const uint8_t decision[static SHA256_BYTES]);

/* The scope that keeps it from being sent (host, tenant:NAME, task:tk_...), or NULL. */
const char *ledger_contained(const struct ledger *l, struct view task, struct view tenant);
bool ledger_scope_contained(const struct ledger *l, struct view scope);

/* Was this release (its digest) used already. */
bool ledger_released(const struct ledger *l, const uint8_t record[static SHA256_BYTES]);

/* An execution of the scope whose end is not known, or NULL. */
const struct spent *ledger_open_in(const struct ledger *l, struct view scope);

/* The last `ended` entry of an execution, read from the file; room holds its bytes. -ENOENT: it has none. */
int ledger_ended(const struct ledger *l, const struct spent *s, struct buf *room, struct entry *ret,
	struct err *err) MUST_CHECK;
