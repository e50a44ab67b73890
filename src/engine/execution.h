/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An execution: one attempt of the broker to carry an approved proposal out. A row of the database, read when it is needed; in memory
 * stands only who waits for it and whether the broker was asked (execution_call.c).
 *
 * Invariants:
 * 1. The row, the step of its proposal, the reservation and the audit record are one transaction, and that is on disk before EXECUTE is
 *    sent. A proposal has one execution, for ever.
 * 2. Of one execution one question is with the broker at a time. What nobody can tell is `unknown`, never sent again from here.
 * 3. A result that came is recorded once; the same again changes nothing, another one is an incident.
 */
#pragma once

#include "engine/audit.h"
#include "engine/step.h"

enum { EXECUTION_TEXT = 513, EXECUTION_RECEIPT_MAX = 8192 };

struct execution {
	struct engine *engine; /* borrowed */
	uint64_t seq;
	struct id id, proposal, task;
	char tenant[TENANT_BYTES], operation[64], key[65], provider_account[129], currency[8];
	enum execution_state state;
	enum attempt settled;
	enum denial denial;
	bool incident;
	uint16_t status;
	uint32_t sends, first_byte_us, lookups;
	int64_t amount;
	uint64_t day, started_ms, spent_ms, ended_ms, lookup_ms, lookup_until_ms;
	uint8_t response[32];
	char text[EXECUTION_TEXT];
	struct buf receipt;
};

void execution_init(struct execution *x, struct engine *e);
void execution_done(struct execution *x);
#define auto_execution __attribute__((cleanup(execution_done)))

/* -ENOENT */
int execution_load(struct execution *x, const struct id *id, struct err *err) MUST_CHECK;
/* That of a proposal: -ENOENT when nothing was begun. */
int execution_load_of(struct execution *x, const struct id *proposal, struct err *err) MUST_CHECK;
/* Of a request: refused as not found when the caller may not see its task. */
int execution_find(struct execution *x, const struct principal *p, const struct id *id,
	struct err *err) MUST_CHECK;
int execution_insert(struct execution *x, struct err *err) MUST_CHECK;

/*
 * The one place where the state changes; writes the row and what stands in *x, inside the open transaction. -EALREADY: the row is
 * not in that state any more.
 */
int execution_step(struct execution *x, enum execution_event event, struct err *err) MUST_CHECK;

void execution_answer(struct execution *x, struct reply to);
int execution_audit(struct execution *x, const char *event, const struct principal *who,
	struct view request_id, void (*data)(struct canon_writer *, const void *), const void *arg,
	struct err *err) MUST_CHECK;

/* Nobody knows yet how it ended. */
static inline bool
execution_is_open(enum execution_state s)
{
	return s == EXECUTION_STATE_DISPATCHING || s == EXECUTION_STATE_UNKNOWN;
}

int on_execution_get(struct engine *e, struct reply to, const struct msg_execution_get *m,
	struct err *err) MUST_CHECK;
int on_execution_list(struct engine *e, struct reply to, const struct msg_execution_list *m,
	struct err *err) MUST_CHECK;
