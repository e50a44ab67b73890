/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The audit chain of a task: what makes a record's digest, and the check that nothing was
 * changed, left out, repeated or moved. Pure; the engine uses it when it writes and when it
 * starts, `demilune audit verify` on an export, offline.
 *
 * digest = SHA-256("demilune-audit-v1" NUL, digest before (32 bytes; zeros for the first), record).
 * A record is one canonical JSON document (lib/canon) with at least "v":1, "task" and
 * "task_seq"; see README.md. What the chain does not show: that its last records were cut off
 * (compare the number with the task's), and who wrote it (signed checkpoints do).
 */
#pragma once

#include "lib/base/err.h"
#include "lib/base/sha256.h"
#include "lib/base/view.h"

struct audit_row {
	uint64_t number; /* from 1 */
	uint8_t previous[SHA256_BYTES], digest[SHA256_BYTES];
	struct view record; /* borrowed */
};

void audit_digest(const uint8_t previous[static SHA256_BYTES], struct view record,
	uint8_t ret[static SHA256_BYTES]);

/* Where a check stands; all zero at the start of a chain. */
struct audit_chain {
	uint64_t number;
	uint8_t head[SHA256_BYTES];
	char task[32]; /* as the first record names it */
};

/* The next row. -EBADMSG with the number and what is wrong; *c then stays as it was. */
int audit_chain_add(struct audit_chain *c, const struct audit_row *row, struct err *err) MUST_CHECK;
