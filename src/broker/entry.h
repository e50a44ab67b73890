/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One entry of the ledger as canonical bytes, by the table ledger.def: exactly the fields of its kind, in one form. Pure; the file is
 * ledger.c's. Nothing of a secret gets in: callers redact.
 */
#pragma once

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/sha256.h"

enum entry_kind {
#define KIND(name, word) ENTRY_##name,
#define FIELD(type, member)
#define END
#include "broker/ledger.def"
#undef KIND
#undef FIELD
#undef END
	ENTRY_KINDS
};

/* All members of all kinds; views are borrowed from the bytes or from `room` of entry_read. */
struct entry {
	enum entry_kind kind;
	uint64_t ms;
	struct view approver, account, execution, key, outcome, proposal, provider, receipt, scope,
		task, tenant, text;
	uint8_t decision[SHA256_BYTES], record[SHA256_BYTES], response[SHA256_BYTES];
	uint64_t bytes, calls, epoch, first_byte_us, sends, status;
	bool incident;
};

/* Appends to out. */
int entry_write(const struct entry *e, struct buf *out, struct err *err) MUST_CHECK;

/* Text with escapes is put into `room`, which must outlive *ret. */
int entry_read(struct view bytes, struct buf *room, struct entry *ret, struct err *err) MUST_CHECK;
