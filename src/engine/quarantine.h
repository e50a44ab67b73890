/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store was restored from a copy: it is older than what the broker signed. What was approved may have been sent, and what is
 * dispatching too, under records that are not here any more. So: approved is expired, dispatching is unknown, the host is contained
 * until a signed release, and the broker begins the next epoch, which makes every older record void.
 */
#pragma once

#include "engine/engine.h"

/*
 * At BROKER_READY, before anything else is done with the broker: compares the store with what e->broker has of it (newest checkpoint
 * and epoch). A fault: nothing may be told to the broker.
 */
int quarantine_check(struct engine *e, struct err *err) MUST_CHECK;

/* The quarantine itself; `reason` for the containment. Again, it does what is not done yet. */
int quarantine_begin(struct engine *e, const char *reason, struct err *err) MUST_CHECK;

/* Was the broker's ledger found to be an older one after this time? Then that it does not have something proves nothing. */
bool ledger_lost_since(struct engine *e, uint64_t ms);
