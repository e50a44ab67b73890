/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a request to a proposal. propose.c weighs it: every check of lib/action/check.def that the engine can make by itself, in that order,
 * in one transaction with the row, the use of the grant and the reservation. verify.c asks the broker about the system of record and writes the
 * record; read.c carries out a read. Who asked is an object of the engine (a sandbox) or an authenticated caller; nothing in the bytes says so.
 */
#pragma once

#include "engine/budgets.h"
#include "engine/grant.h"
#include "engine/proposal.h"
#include "engine/sandbox.h"

enum { REQUEST_ID_BYTES = 65 };

/* Where the answer goes, and who asked. */
struct asker {
	struct engine *engine; /* borrowed */
	struct id sandbox;     /* zero: the api */
	uint64_t tag;          /* of a relay's question */
	struct reply to;       /* of the api's */
	struct principal who;
	char request_id[REQUEST_ID_BYTES];
};

/* One that waits for the broker. */
struct asked {
	struct broker_wait wait;
	struct asker asker;
	const struct operation *op; /* borrowed from the catalogue */
	struct id proposal, task, grant;
	char tenant[TENANT_BYTES];
	uint8_t arguments[32]; /* their digest, for the record of a read */
	uint64_t day;
	uint32_t bytes; /* reserved */
};

/* What the asker hears. A relay that is gone hears nothing; a sandbox's question is over with it. */
void asker_denied(const struct asker *a, const struct id *proposal, const struct err *why);
void asker_proposed(const struct asker *a, struct proposal *p, bool duplicate);
void asker_read(const struct asker *a, const struct id *proposal, struct view answer);

/* A principal for the records of what a sandbox does. */
struct principal principal_sandbox(const struct id *sandbox);

/* DENY with a denial that somebody else named, and their sentence. */
void err_denied(struct err *err, enum denial denial, struct view text);

/* The denial of a code of DENY; AUDIT_UNAVAILABLE for any fault of ours: what cannot be recorded is not done. */
enum denial denial_of(const struct err *why);

/* Asks the broker, or shows it at once; ends with an answer. *a is taken over. */
void verify_begin(struct asked *a, struct proposal *p, struct view where);
void read_begin(struct asked *a, struct view arguments, struct view where);

/* Given back what was reserved for a call, inside the open transaction. */
int asked_settle(struct asked *a, uint32_t calls, uint64_t bytes, struct err *err) MUST_CHECK;

/* The values that a request is made of, as the engine knows them. */
struct request_values;
struct request_room {
	char task[ID_TEXT], proposal[ID_TEXT], key[64];
};
void request_values_of(struct engine *e, const char *tenant, const struct id *task,
	const struct id *proposal, struct view arguments, struct request_room *room,
	struct request_values *ret);

int on_propose(struct sandbox *s, struct ipc_msg *in, const struct msg_propose *m,
	struct err *err) MUST_CHECK;
int on_proposal_create(struct engine *e, struct reply to, const struct msg_proposal_create *m,
	struct err *err) MUST_CHECK;
