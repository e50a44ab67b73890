/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps of an action between played api and played broker: grant, proposal, decision, execution. The broker's words here are the
 * test's own: it is the witness of what the engine sends, and when.
 */
#pragma once

#include "play.h"

#include "lib/action/record.h"

/* One proposal as a test follows it. */
struct carry {
	struct id task, grant, proposal, execution;
	uint8_t digest[32];
	uint8_t record[4096];
	size_t record_n;
	uint64_t tag; /* of the last PROPOSAL_DECIDE */
	uint64_t execute_tag;
	struct buf approvals; /* of EXECUTE */
};
void carry_done(struct carry *a);

/* With broker, and a task of the tenant acme. */
void carry_start(struct play *p, struct carry *a);

/* Another task, for the same broker. */
void carry_start_task(struct play *p, struct carry *a);

/* A grant for `operation` with so many uses. */
void carry_grant(struct play *p, struct carry *a, const char *operation, uint32_t uses);
/* PROPOSAL_CREATE; `reply` is pending at once. n goes into its bytes, so that no two are the same. */
void carry_reply(struct play *p, struct carry *a, unsigned n);
/* The same for `refund`: VERIFY_ASK is answered with facts that hold. */
void carry_refund(struct play *p, struct carry *a, int64_t cents);

/* PROPOSAL_DECIDE by this person: the broker is asked, and has not answered yet. */
void carry_ask(struct play *p, struct carry *a, const char *approver, uint64_t dispatch_by_ms);
/* It says yes. */
void carry_yes(struct play *p, const char *approver);
/* Both, with five minutes to dispatch. */
void carry_approve(struct play *p, struct carry *a, const char *approver);
/* Approved and not begun: the engine is killed between the two transactions, and started again without a broker. */
void carry_approved(struct play *p, struct carry *a, const char *approver);
/* EXECUTE must come, with these bytes and this approval. */
void carry_execute(struct play *p, struct carry *a);
/* EXECUTED for it. */
void carry_executed(struct play *p, const struct carry *a, enum attempt attempt);
/* The answer to PROPOSAL_DECIDE must be in this state. */
void carry_decided(struct play *p, const struct carry *a, enum proposal_state state);
/* All of it up to EXECUTE, for a `reply`. */
void carry_dispatch(struct play *p, struct carry *a, unsigned n);

/* As the engine tells it now. */
enum proposal_state carry_state(struct play *p, const struct carry *a);
struct msg_execution_row carry_row(struct play *p, const struct carry *a);
/* Reserved and used of a counter of the task; unit for money. */
void carry_budget(struct play *p, const struct carry *a, enum counter counter, bool of_tenant,
	uint64_t *ret_reserved, uint64_t *ret_used);

/* Is there something to read, within 10 ms? */
bool carry_pending(int fd);

/* The engine is killed and started again; the broker comes again when `broker`. */
void carry_restart(struct play *p, bool broker);
/* A broker on a new edge, that says this; the engine need not have read it yet. */
void carry_edge(struct play *p, const struct msg_broker_ready *m);
/* The same, and it has. */
void carry_broker(struct play *p, const struct msg_broker_ready *m);
