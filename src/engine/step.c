/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of the state machines; see step.h. */
#include "engine/step.h"

#include <errno.h>

struct edge_row {
	unsigned state, event, next;
};

static const struct edge_row sandbox_edges[] = {
#define STEP(s, e, n) {SANDBOX_STATE_##s, SANDBOX_##e, SANDBOX_STATE_##n},
#include "engine/sandbox.fsm"
#undef STEP
};

static const struct edge_row task_edges[] = {
#define STEP(s, e, n) {TASK_STATE_##s, TASK_##e, TASK_STATE_##n},
#include "engine/task.fsm"
#undef STEP
};

static const struct edge_row job_edges[] = {
#define STEP(s, e, n) {JOB_REASON_##s, JOB_REASON_##e, JOB_REASON_##n},
#include "engine/job.fsm"
#undef STEP
};

static const struct edge_row proposal_edges[] = {
#define STEP(s, e, n) {PROPOSAL_STATE_##s, PROPOSAL_##e, PROPOSAL_STATE_##n},
#include "engine/proposal.fsm"
#undef STEP
};

static const struct edge_row execution_edges[] = {
#define STEP(s, e, n) {EXECUTION_STATE_##s, EXECUTION_##e, EXECUTION_STATE_##n},
#include "engine/execution.fsm"
#undef STEP
};

static const struct edge_row *
find(const struct edge_row *rows, size_t n, unsigned state, unsigned event)
{
	for (size_t i = 0; i < n; i++)
		if (rows[i].state == state && rows[i].event == event)
			return &rows[i];
	return NULL;
}

int
sandbox_next(enum sandbox_state state, enum sandbox_event event, enum sandbox_state *ret,
	struct err *err)
{
	const struct edge_row *row = find(sandbox_edges, ARRAY_LEN(sandbox_edges), state, event);

	if (row == NULL)
		return err_set(err, -EPROTO, "event %u for a sandbox that is %s", (unsigned)event,
			sandbox_state_text(state));
	*ret = (enum sandbox_state)row->next;
	return 0;
}

int
task_next(enum task_state state, enum task_event event, enum task_state *ret, struct err *err)
{
	const struct edge_row *row = find(task_edges, ARRAY_LEN(task_edges), state, event);

	if (row == NULL)
		return err_set(err, -EPROTO, "event %u for a task that is %s", (unsigned)event,
			task_state_text(state));
	*ret = (enum task_state)row->next;
	return 0;
}

int
job_next(enum job_reason state, enum job_reason event, enum job_reason *ret, struct err *err)
{
	const struct edge_row *row = find(job_edges, ARRAY_LEN(job_edges), state, event);

	if (row == NULL)
		return err_set(err, -EPROTO, "%s for a job that is %s", job_reason_text(event),
			job_reason_text(state));
	*ret = (enum job_reason)row->next;
	return 0;
}

int
proposal_next(enum proposal_state state, enum proposal_event event, enum proposal_state *ret,
	struct err *err)
{
	const struct edge_row *row = find(proposal_edges, ARRAY_LEN(proposal_edges), state, event);

	if (row == NULL)
		return err_set(err, -EPROTO, "event %u for a proposal that is %s", (unsigned)event,
			proposal_state_text(state));
	*ret = (enum proposal_state)row->next;
	return 0;
}

int
execution_next(enum execution_state state, enum execution_event event, enum execution_state *ret,
	struct err *err)
{
	const struct edge_row *row = find(
		execution_edges, ARRAY_LEN(execution_edges), state, event);

	if (row == NULL)
		return err_set(err, -EPROTO, "event %u for an execution that is %s",
			(unsigned)event, execution_state_text(state));
	*ret = (enum execution_state)row->next;
	return 0;
}
