/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Proposals whose time is over, and those that a start of the engine finds half-way. Times are half-open: at its millisecond it is
 * expired. Whoever is about to use a proposal asks the clock again, after the lock; this is only so that the rows say so too.
 */
#pragma once

#include "engine/proposal.h"

/* There may be one now that has a time: the clock of actions runs (e->actions). */
void expiry_wake(struct engine *e);
/* From that clock; true: something still has a time. */
bool expiry_tick(struct engine *e);

/* The step of one whose time is over, with its record, inside the open transaction. */
int expiry_step(struct proposal *p, enum denial denial, struct err *err) MUST_CHECK;

/*
 * At start: what was being checked is denied, nobody waits for it any more; what was made for an operation that is not the same now is
 * superseded; calls of the engine that died count as used.
 */
int proposals_restart(struct engine *e, struct err *err) MUST_CHECK;
