/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests of brokered rules: a lease of the engine, then the broker carries it out; the answer to the program is made here. Nothing of a
 * provider's answer but the rule's fields ever comes to this process. No engine, no broker: refused.
 */
#pragma once

#include "gateway.h"

struct conn;

/* The verdict is kept. */
void brokered_begin(struct conn *c);

/* LEASE_IS and BROKERED_DONE came. -EPROTO: nobody asked. */
int brokered_lease(struct gateway *g, uint64_t tag, enum egress_reason reason,
	const struct id *lease, struct err *err) MUST_CHECK;
int brokered_answered(struct gateway *g, uint64_t tag, const struct msg_brokered_done *m,
	struct err *err) MUST_CHECK;

/* Engine or broker is gone, or is back. */
void brokered_engine(struct gateway *g, bool there);
void brokered_broker(struct gateway *g, bool there);
