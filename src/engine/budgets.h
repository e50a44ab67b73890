/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a task, and its tenant in a day (UTC), may still use. The limits of the configuration (settings.actions) hold for all operations together, those
 * of an operation for itself: attempts (its uses) and money. A row of the database says what is reserved and used; the row refuses what would
 * pass its limit, so two that race cannot both have the last of it. Everything here is inside the open transaction of the step it belongs to.
 *
 * Reserve before, settle after with what it came to. What comes to more than was left counts as all that was left. A result
 * that nobody knows keeps its reservation.
 */
#pragma once

#include "engine/engine.h"

struct budget_of {
	struct id task;
	const char *tenant;         /* borrowed */
	const struct operation *op; /* borrowed; NULL: only the configuration's counters */
	uint64_t day;               /* budget_day() of the reservation, kept with it */
};

uint64_t budget_day(uint64_t now_ms);

/* -EDQUOT with the sentence of the budget that is used up; then the transaction must be undone. */
int budget_reserve(struct engine *e, const struct budget_of *of, enum counter counter, uint64_t n,
	struct err *err) MUST_CHECK;
/* reserved - n, used + m. */
int budget_settle(struct engine *e, const struct budget_of *of, enum counter counter, uint64_t n,
	uint64_t m, struct err *err) MUST_CHECK;
/* used + n, at once. -EDQUOT as above. */
int budget_take(struct engine *e, const struct budget_of *of, enum counter counter, uint64_t n,
	struct err *err) MUST_CHECK;

/* A call of the broker that costs calls and bytes: reserved before it is asked, settled with what it says. */
int budget_call_reserve(
	struct engine *e, const struct budget_of *of, uint32_t bytes, struct err *err) MUST_CHECK;
int budget_call_settle(struct engine *e, const struct budget_of *of, uint32_t bytes,
	uint32_t used_calls, uint64_t used_bytes, struct err *err) MUST_CHECK;

/* After a start: calls of the engine that died count as used. Reservations of executions (attempts, money) stay. */
int budget_restart(struct engine *e, struct err *err) MUST_CHECK;

int on_budget_list(struct engine *e, struct reply to, const struct msg_budget_list *m,
	struct err *err) MUST_CHECK;
