/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The egress budgets of a task, lent to its sandboxes in slices. The limits are those of the policy of the sandbox that asks; what counts against
 * them is what all ended sandboxes of the task used and what the living ones have on loan. All of it is in the store before a gateway hears of it, so
 * whoever crashes gives nothing back.
 */
#pragma once

#include "engine/said.h"

/* A new sandbox with a policy, inside the open transaction. */
int loan_begin(struct sandbox *s, struct err *err) MUST_CHECK;

/* SAID_ASK, inside the open transaction. */
int loan_write(struct said *d, struct err *err) MUST_CHECK;

/* 1: there is one more brokered request on loan, and it is used now; 0: none. */
int loan_lease(struct gate *g, struct err *err) MUST_CHECK;

/* The end of a sandbox, inside the open transaction: `all` when nobody knows what it used, else as it told. */
int loan_settle(struct gate *g, bool all, struct err *err) MUST_CHECK;

/* Of the task: used as far as it is known, and what else is on loan. */
int loan_show(struct engine *e, const struct id *task, struct egress *ret_used,
	struct egress *ret_lent, struct err *err) MUST_CHECK;
