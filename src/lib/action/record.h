/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The records of an action as canonical bytes: proposal (engine), decision, settlement and release (signed by a person). Written once, then
 * only compared, digested and read. Forms and digests: docs/decisions/0003-actions.md. Readers are strict: every key, no other.
 */
#pragma once

#include "lib/action/operation.h"
#include "lib/base/buf.h"
#include "lib/base/id.h"

enum { PROPOSAL_RECORD_MAX = 65536, DECISION_RECORD_MAX = 4096 };

/* The names of the C members are those of the record. Views are borrowed; ids in text where the record has text. */
struct proposal_record {
	struct view action, actor, capability, environment, idempotency_key, owner, proposal,
		provider_account, requester, task, tenant;
	struct view method, url, content_type, body;
	struct view arguments, facts, provenance; /* canonical objects */
	struct view defaulted, roles, where;      /* NUL-terminated strings, one after the other */
	enum effect effect;
	uint64_t issued_ms, decide_by_ms, dispatch_within_ms, epoch;
	uint32_t quorum;
	uint8_t schema[SHA256_BYTES], adapter[SHA256_BYTES], policy[SHA256_BYTES],
		catalogue[SHA256_BYTES];
};
int proposal_record_write(
	const struct proposal_record *r, struct buf *out, struct err *err) MUST_CHECK;
/*
 * Text with escapes and the three lists are written into `room`, which must outlive *ret, be added to by nobody meanwhile, and have a maximum
 * of at least its length and bytes.n. Writing what was read gives the same bytes.
 */
int proposal_record_read(struct view bytes, struct buf *room, struct proposal_record *ret,
	struct err *err) MUST_CHECK;
void proposal_digest(struct view bytes, uint8_t ret[static SHA256_BYTES]);

struct decision_record {
	struct view approver, reason;
	bool approve;
	uint64_t decided_ms, dispatch_by_ms;
	uint8_t proposal[SHA256_BYTES], display[SHA256_BYTES], policy[SHA256_BYTES],
		schema[SHA256_BYTES];
};
int decision_record_write(
	const struct decision_record *r, struct buf *out, struct err *err) MUST_CHECK;
int decision_record_read(struct view bytes, struct buf *room, struct decision_record *ret,
	struct err *err) MUST_CHECK;

struct settlement_record {
	struct view approver, execution, note;
	bool succeeded;
	uint64_t decided_ms;
};
int settlement_record_write(
	const struct settlement_record *r, struct buf *out, struct err *err) MUST_CHECK;
int settlement_record_read(struct view bytes, struct buf *room, struct settlement_record *ret,
	struct err *err) MUST_CHECK;

struct release_record {
	struct view approver, note, scope;
	uint64_t decided_ms;
};
int release_record_write(
	const struct release_record *r, struct buf *out, struct err *err) MUST_CHECK;
int release_record_read(struct view bytes, struct buf *room, struct release_record *ret,
	struct err *err) MUST_CHECK;

/* `approvals` of EXECUTE: u16 length and decision, u16 length and signature, again and again. */
void approvals_put(struct buf *b, struct view decision, struct view signature);
/* Takes the first pair off *rest: 1, 0 at the end, -EINVAL. */
int approvals_take(
	struct view *rest, struct view *ret_decision, struct view *ret_signature) MUST_CHECK;
