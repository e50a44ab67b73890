/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What gateways say, collected until the end of a turn of the loop and then written in one transaction, in the order in which it came. Answers go out
 * only after that, so that nothing moves that no record names; leases after a sync too. What cannot be written: verdicts and leases are
 * answered AUDIT, flows wait (the bytes moved already) and are tried again.
 */
#pragma once

#include "engine/gate.h"

enum said_kind { SAID_VERDICT, SAID_FLOW, SAID_ASK, SAID_LEASE };

struct said {
	struct link link;
	struct gate *gate; /* borrowed: said_forget() */
	enum said_kind kind;
	uint64_t tag;
	/* Of a verdict or a flow. The views point into text. */
	enum verdict verdict;
	enum egress_reason reason;
	enum egress_scheme scheme;
	uint16_t rule, port;
	struct view name, address, method, path, query;
	uint8_t digest[32]; /* of a lease too */
	uint64_t count, bytes_out, bytes_in;
	struct egress used; /* SAID_ASK */

	/* What was written, valid after the commit. */
	enum egress_reason result; /* NONE: kept, or leased */
	bool lied;                 /* the gateway is to be lost */
	bool alone;                /* the flow has a record of its own; */
	struct untold sum;         /* and that is what was recorded of the others */
	struct egress total;       /* SAID_ASK */
	bool over;
	struct id lease;
	uint8_t text[];
};

void said_init(struct engine *e);

/* With room for so many bytes of text. */
struct said *said_new(struct gate *g, enum said_kind kind, uint64_t tag, size_t text_n,
	struct err *err) MUST_CHECK;
/* A copy of the bytes, in its text; *at counts. */
struct view said_text(struct said *d, size_t *at, struct view v);
void said_add(struct said *d);

/* All of it, now; also from the clock. Not inside a transaction. */
void said_flush(struct engine *e);
/* The gateway is no more. */
void said_forget(struct gate *g);

int on_verdict(struct gate *g, struct ipc_msg *in, const struct msg_verdict *m,
	struct err *err) MUST_CHECK;
int on_flow(
	struct gate *g, struct ipc_msg *in, const struct msg_flow *m, struct err *err) MUST_CHECK;
int on_allotment_ask(struct gate *g, struct ipc_msg *in, const struct msg_allotment_ask *m,
	struct err *err) MUST_CHECK;
int on_lease_ask(struct gate *g, struct ipc_msg *in, const struct msg_lease_ask *m,
	struct err *err) MUST_CHECK;
