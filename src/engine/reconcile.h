/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executions that are unknown: looked up by themselves where the provider can be asked, at growing distances until it forgets the
 * key; looked up when somebody asks; settled when a person signs what became of it. All of it may be repeated.
 */
#pragma once

#include "engine/call.h"
#include "lib/action/operation.h"

/*
 * Until when an execution of this operation is looked up by itself: as long as its provider remembers the key. One that cannot be
 * asked: for a while, because the broker's ledger may still get its end.
 */
uint64_t lookup_until(const struct operation *op, uint64_t started_ms);
/* After so many look-ups the next one is at this time; 0 = there is none. */
uint64_t lookup_next(uint32_t lookups, uint64_t now_ms, uint64_t until_ms);

/* It could not be looked up now: later, inside the open transaction. */
int lookup_put_off(struct execution *x, struct err *err) MUST_CHECK;

/*
 * EXECUTION_ASK, for a call that has no question: where a provider cannot be asked, the ledger may still get the end of what the broker
 * went on with for an engine that died.
 */
int ledger_ask(struct call *c, struct err *err) MUST_CHECK;

/* Sets the clock for the next look-up: after each change of an unknown one, and at BROKER_READY. */
void lookups_arm(struct engine *e);
void on_lookups(struct ev_loop *loop, ev_timer *w, int events); /* of e->lookup */

int on_reconcile(struct engine *e, struct reply to, const struct msg_reconcile *m,
	struct err *err) MUST_CHECK;
