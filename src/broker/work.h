/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thing in flight for the engine: a verify, a read, an execution or a look-up. Holds its own copy of what the engine sent. At most
 * LIMIT_WORKS; it is answered once, to whoever asked (and to those who asked again), and freed.
 */
#pragma once

#include "broker/broker.h"
#include "broker/reading.h"

#include "lib/action/record.h"

enum work_kind {
	WORK_VERIFY,
	WORK_READ,
	WORK_EXECUTE,
	WORK_LOOKUP,
};

enum execution_phase {
#define STATE(name) PHASE_##name,
#define EVENT(name)
#define STEP(state, event, next)
#include "broker/execution.fsm"
#undef STATE
#undef EVENT
#undef STEP
};

struct work {
	struct link link; /* of broker.works */
	struct broker *b;
	enum work_kind kind;
	struct ask ask[4]; /* LIMIT_WAITERS */
	size_t nasks;

	/* What was asked; owned in `bytes` and `room`. */
	uint8_t *bytes;
	struct buf room, question; /* question: what a read was asked with */
	struct view record, approvals;
	struct proposal_record r;
	const struct operation *op;
	char execution[ID_TEXT], proposal[ID_TEXT], task[ID_TEXT];
	struct id execution_id;
	uint8_t digest[SHA256_BYTES];

	struct reading reading;
	struct call *call; /* owned while it runs */

	/* EXECUTE */
	enum execution_phase phase;
	enum denial denial; /* of a check at the moment of sending */
	uint64_t begun_us, first_byte_us, checked_ms,
		dispatch_by_ms; /* checked_ms: the clock of the last checks */
	uint32_t sends, calls;
	uint64_t bytes_used;
	ev_timer again;
};

/* NULL: too many; the engine was told. */
struct work *work_new(struct broker *b, enum work_kind kind, struct ask ask);
void work_free(struct work *w);

/* Copies both behind each other and points record and approvals there. */
int work_keep(
	struct work *w, struct view record, struct view approvals, struct err *err) MUST_CHECK;

/* One that is in flight for this execution or proposal; NULL. */
struct work *work_of_execution(struct broker *b, const char *execution);
struct work *work_of_proposal(struct broker *b, const char *proposal);

/* One more that waits for the end: false, too many. */
bool work_join(struct work *w, struct ask ask);

/* verify.c */
void verify_ask(struct broker *b, struct ask ask, const struct msg_verify_ask *m);
void read_ask(struct broker *b, struct ask ask, const struct msg_read_ask *m);

/* execute.c */
void execute(struct broker *b, struct ask ask, const struct msg_execute *m);

/* gateway.c: a brokered request of a sandbox */
void lease_ask(struct broker *b, struct ask ask, const struct msg_lease *m);

/* lookup.c */
void execution_ask(struct broker *b, struct ask ask, const struct msg_execution_ask *m);
void lookup_ask(struct broker *b, struct ask ask, const struct msg_lookup_ask *m);

/* The answer from what the ledger has of a spent execution. */
void tell_spent(
	struct broker *b, struct ask ask, const struct spent *s, uint32_t calls, uint64_t bytes);

/* decide.c: what is answered at once. */
void decision_ask(struct broker *b, struct ask ask, const struct msg_decision_ask *m);
void settle_ask(struct broker *b, struct ask ask, const struct msg_settle_ask *m);
void revoke_ask(struct broker *b, struct ask ask, const struct msg_revoke *m);
void contain(struct broker *b, struct ask ask, const struct msg_broker_contain *m);
void release_ask(struct broker *b, struct ask ask, const struct msg_release_ask *m);
void epoch_next(struct broker *b, struct ask ask);
