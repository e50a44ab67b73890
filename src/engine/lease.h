/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leases: the broker carries a brokered request out only when the engine says so, once, and the engine says so only when the request is on record, its
 * task may, and there is one left of the rule's uses and of the budget. All that is counted and on disk before the broker hears of it; a
 * lease that came to nothing is not given back.
 */
#pragma once

#include "engine/said.h"

/* SAID_LEASE, inside the open transaction: d->result NONE with d->lease, or why not. */
int lease_write(struct said *d, struct err *err) MUST_CHECK;
/* After commit and sync: asks the broker, or tells the gateway why not. */
void lease_answer(struct said *d);

/* The gateway is no more. */
void leases_forget(struct gate *g);
