/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A proposal: a row of the database, read when it is needed. propose.c makes it, verify.c gives it its record, decision.c decides, expiry.c
 * ends it, execution.c carries it out.
 *
 * Invariants:
 * 1. Only proposal_step changes a state; with the row the audit record, in one transaction.
 * 2. record and digest are written once, with the step out of PROPOSED, and never again.
 * 3. A row that is not void is the only one with its request.
 */
#pragma once

#include "engine/audit.h"
#include "engine/caller.h"
#include "engine/step.h"
#include "engine/task.h"
#include "lib/action/record.h"

enum { PROPOSAL_TEXT = 513, NOTE_BYTES_MAX = 2048 };

struct proposal {
	struct engine *engine; /* borrowed */
	uint64_t seq;
	struct id id, task, sandbox /* zero = host code asked */, grant;
	char tenant[TENANT_BYTES], operation[OPERATION_NAME_MAX + 1], actor[PRINCIPAL_TEXT],
		requester[PRINCIPAL_TEXT], currency[8], text[PROPOSAL_TEXT];
	uint32_t version, quorum;
	enum effect effect;
	enum proposal_state state;
	enum denial denial;
	bool is_void;
	int64_t amount;
	uint8_t request[32], digest[32];
	struct buf arguments, defaulted, provenance, note, record;
	uint64_t created_ms, decide_by_ms, dispatch_by_ms, ended_ms;
};

void proposal_init(struct proposal *p, struct engine *e);
void proposal_done(struct proposal *p);
#define auto_proposal __attribute__((cleanup(proposal_done)))

/* -ENOENT */
int proposal_load(struct proposal *p, const struct id *id, struct err *err) MUST_CHECK;
/* The one that is not void and asks for the same: 1, 0 when there is none. */
int proposal_load_same(
	struct proposal *p, const uint8_t request[static 32], struct err *err) MUST_CHECK;
/* Of a request: refused as not found when the caller may not see its task. */
int proposal_find(struct proposal *p, const struct principal *who, const struct id *id,
	struct err *err) MUST_CHECK;

/* Inside the open transaction; sets seq. -EEXIST: there is one already that asks for the same. */
int proposal_insert(struct proposal *p, struct err *err) MUST_CHECK;

/*
 * The one place where the state changes; writes the row (state, denial, text, record, digest, quorum, times, void) inside the open
 * transaction, and when the row is not in the state that *p says any more: -EALREADY, nothing was written. What may be asked again afterwards is
 * void; of one that is settled as failed the caller says so with is_void before.
 */
int proposal_step(struct proposal *p, enum proposal_event event, struct err *err) MUST_CHECK;

/* Its audit record; data may be NULL. The record has proposal, operation and state by itself. */
int proposal_audit(struct proposal *p, const char *event, const struct principal *who,
	struct view request_id, void (*data)(struct canon_writer *, const void *), const void *arg,
	struct err *err) MUST_CHECK;

/* A check failed: DENIAL and sentence into *p (the sentence cut to what fits). */
void proposal_deny(struct proposal *p, enum denial denial, struct view text);

/* PROPOSAL_ROW with its decisions and its execution. */
int proposal_answer(
	struct proposal *p, struct reply to, bool duplicate, struct err *err) MUST_CHECK;

int on_operation_list(struct engine *e, struct reply to, const struct msg_operation_list *m,
	struct err *err) MUST_CHECK;
int on_operation_get(struct engine *e, struct reply to, const struct msg_operation_get *m,
	struct err *err) MUST_CHECK;
int on_proposal_list(struct engine *e, struct reply to, const struct msg_proposal_list *m,
	struct err *err) MUST_CHECK;
int on_proposal_get(struct engine *e, struct reply to, const struct msg_proposal_get *m,
	struct err *err) MUST_CHECK;
