/* SPDX-License-Identifier: Apache-2.0 */
/*
 * May this be decided, may this be sent: what a person's signature is worth, as pure functions over bytes, catalogue, approvers and a time
 * that the caller took after its lock. The broker calls them for DECISION_ASK (DECIDE), EXECUTE (DISPATCH), SETTLE_ASK and RELEASE_ASK;
 * nobody else decides. They establish, in the order of src/lib/action/check.def: RECORD_MALFORMED, OPERATION_UNKNOWN, SCHEMA_CHANGED,
 * ADAPTER_CHANGED, POLICY_CHANGED, ARGUMENTS, DIGEST, CLOCK, DECIDE_EXPIRED, DISPATCH_EXPIRED, APPROVERS_UNREADABLE, APPROVER_UNKNOWN,
 * SIGNATURE, APPROVER_MAY_NOT, APPROVER_AMOUNT, APPROVER_OWN, QUORUM.
 *
 * What only the broker knows (CONTAINED, REQUEST_DIFFERENT, EPOCH, REVOKED, SPENT, KEY_CONFLICT) it finds out first and says in
 * `failed`; each takes its place in that order, so the denial is always the first of the table. What comes after QUORUM is the broker's own.
 */
#pragma once

#include "lib/action/record.h"
#include "lib/approval/approvers.h"

enum {
	AUTHORITY_AHEAD_MS =
		5000, /* a decision (or a proposal) may be dated so far in the future */
	AUTHORITY_BEHIND_MS = 300000, /* and a decision so far in the past when it is first seen */
	AUTHORITY_APPROVALS_MAX = 16, /* in one EXECUTE */
};

enum authority_stage {
	AUTHORITY_DECIDE,
	AUTHORITY_DISPATCH,
};

struct authority_ask {
	const struct operation
		*op; /* of the own catalogue by the record's `action`; NULL: there is none */
	const struct approvers *approvers; /* NULL: the file cannot be used */
	struct view record;                /* of the proposal */
	uint64_t now_ms;                   /* CLOCK_REALTIME, taken after the lock */
	uint64_t failed; /* AUTHORITY_BIT of each denial that the caller found itself */
	/*
	 * When the ledger first saw the decision with this digest; 0: never, and `now_ms` counts. NULL: as if never.
	 */
	uint64_t (*seen_ms)(void *arg, const uint8_t decision[static SHA256_BYTES]);
	void *arg;
};

#define AUTHORITY_BIT(denial) (UINT64_C(1) << (denial))

struct authority_is {
	enum denial denial; /* DENIAL_NONE: it holds */
	bool approve;       /* a rejection that holds is one too */
	/* Whose key, as far as it came; "" before. */
	char approver[APPROVER_NAME_MAX + 1];
	char key[SSHKEY_FINGERPRINT];
	uint32_t
		quorum; /* what the operation asks for at this amount; 0 before POLICY_CHANGED was passed */
	uint32_t people; /* DISPATCH: distinct people whose approvals hold */
	uint64_t decided_ms;
	uint64_t dispatch_by_ms; /* DISPATCH: the earliest of those that count */
	struct err why;          /* the sentence of a denial */
};

/* SHA-256("demilune-decision-v1" NUL, decision): what the ledger keeps of a decision. */
void authority_digest(struct view decision, uint8_t ret[static SHA256_BYTES]);

/* One signed decision at DECIDE. The answer is ret->denial. */
void authority_decide(const struct authority_ask *ask, struct view decision, struct view signature,
	struct authority_is *ret);

/*
 * `approvals` of EXECUTE (record.h). An approval that does not hold now does not count; with too few people left the denial is that of the first
 * that did not hold, or QUORUM. A rejection is no approval. Where the operation asks for nobody, none are needed.
 */
void authority_dispatch(
	const struct authority_ask *ask, struct view approvals, struct authority_is *ret);

/* A settlement of this execution ("xc_..."), of the proposal in ask->record: by somebody who may= the operation and did not ask for it. */
void authority_settle(const struct authority_ask *ask, struct view execution,
	struct view settlement, struct view signature, struct authority_is *ret);

/* A release, by somebody with role=release; ask->op and ask->record are not looked at. */
void authority_release(const struct authority_ask *ask, struct view release, struct view signature,
	struct authority_is *ret);
