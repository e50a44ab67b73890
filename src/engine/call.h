/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is with the broker about executions, and who waits for it: in memory, for as long as either. One question about an execution at a
 * time. What is lost here is asked again from the rows (executions_resume).
 */
#pragma once

#include "engine/execution.h"

enum call_kind {
	CALL_NONE,
	CALL_EXECUTE, /* carry it out */
	CALL_ASK,     /* what does the ledger say */
	CALL_LOOKUP,  /* ask the provider */
	CALL_SETTLE   /* a person says */
};

/* What somebody wants to see when it ended, or when they waited long enough. */
enum waits_for { WAITS_PROPOSAL, WAITS_EXECUTION };

struct call {
	struct link link;
	struct engine *engine; /* borrowed */
	struct id execution, proposal;
	char tenant[TENANT_BYTES]; /* of CALL_EXECUTE */
	enum call_kind kind;       /* of the question that is with the broker; NONE = none is */
	struct broker_wait wait;
	uint32_t bytes;      /* reserved for it, of CALL_EXECUTE */
	uint64_t day;        /* budget_day() of it */
	struct link waiters; /* of struct call_waiter */
	/* Who asked for it, for the record. */
	struct principal who;
	char request_id[65];
	struct buf settlement, signature; /* of CALL_SETTLE */
};

/* That of an execution: found, or made. -ENOMEM */
int call_of(struct engine *e, const struct id *execution, const struct id *proposal,
	struct call **ret, struct err *err) MUST_CHECK;
/* NULL when nothing is with the broker and nobody waits. */
struct call *call_find(struct engine *e, const struct id *execution);
/* How many of a kind are with the broker; tenant NULL = of all. */
unsigned call_count(struct engine *e, enum call_kind kind, const char *tenant);
/* Frees it when it is of no use any more. */
void call_drop(struct call *c);

int call_wait(struct call *c, struct reply to, enum waits_for what, struct err *err) MUST_CHECK;
/* Everybody who waits sees the rows as they are now. */
void call_answer(struct call *c);
/* A refusal for all of them. */
void call_refuse(struct call *c, const struct err *why);
/* PROPOSAL_ROW as it is now. */
void call_show(struct engine *e, const struct id *proposal, struct reply to);
