/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of brokered rules: lease of the engine, then the broker carries it out. What serve.c hands on. */
#pragma once

#include "gateway.h"

/* LEASE_IS and BROKERED_DONE came. -EPROTO: nobody asked. */
int brokered_lease(struct gateway *g, uint64_t tag, enum egress_reason reason,
	const struct id *lease, struct err *err) MUST_CHECK;
int brokered_answered(struct gateway *g, uint64_t tag, const struct msg_brokered_done *m,
	struct err *err) MUST_CHECK;

/* Engine or broker is gone, or is back. */
void brokered_engine(struct gateway *g, bool there);
void brokered_broker(struct gateway *g, bool there);
