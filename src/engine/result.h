/* SPDX-License-Identifier: Apache-2.0 */
/* What the broker says of executions, and asking it again after a restart of either. */
#pragma once

#include "engine/call.h"

/* The answer to any question of a call; its `wait.done`. */
void on_execution_told(struct broker_wait *w, const struct broker_answer *a);

/* Step of execution and proposal and the budgets, inside the open transaction; what is told of it stands in *x already. */
int execution_move(struct execution *x, enum execution_event event, struct err *err) MUST_CHECK;

/* At BROKER_READY: every execution that is dispatching and not asked about is asked about, what is approved is begun. */
void executions_resume(struct engine *e);
/* The same in a while: something could not be recorded. */
void executions_again(struct engine *e);
void on_executions_again(struct ev_loop *loop, ev_timer *w, int events); /* of e->again */

/* Members of audit records. */
void put_execution(struct canon_writer *w, const struct execution *x);
void put_execution_proposal(struct canon_writer *w, const struct execution *x);
