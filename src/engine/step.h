/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state machines as pure functions over the .fsm tables: the next state, or -EPROTO for a pair that
 * is not listed. Only the function NOUN_step of each noun calls its own.
 */
#pragma once

#include "lib/base/err.h"
#include "proto_gen.h"

enum sandbox_event {
	SANDBOX_READY,
	SANDBOX_KILL,
	SANDBOX_FREEZE,
	SANDBOX_THAW,
	SANDBOX_GONE,
	SANDBOX_AGAIN,
	SANDBOX_EVENT_MAX
};

enum proposal_event {
	PROPOSAL_SHOW,
	PROPOSAL_FREE,
	PROPOSAL_DENY,
	PROPOSAL_JOIN,
	PROPOSAL_APPROVE,
	PROPOSAL_REJECT,
	PROPOSAL_EXPIRE,
	PROPOSAL_REVOKE,
	PROPOSAL_SUPERSEDE,
	PROPOSAL_DISPATCH,
	PROPOSAL_SUCCEED,
	PROPOSAL_FAIL,
	PROPOSAL_LOSE,
	PROPOSAL_SETTLE,
	PROPOSAL_EVENT_MAX
};

enum execution_event {
	EXECUTION_SUCCEED,
	EXECUTION_FAIL,
	EXECUTION_LOSE,
	EXECUTION_SETTLE,
	EXECUTION_EVENT_MAX
};

enum task_event { TASK_CLOSE, TASK_MARK, TASK_REOPEN, TASK_RECLOSE, TASK_EVENT_MAX };

/* The events of a job are the reasons for which it can end. */
int sandbox_next(enum sandbox_state state, enum sandbox_event event, enum sandbox_state *ret,
	struct err *err) MUST_CHECK;
int task_next(enum task_state state, enum task_event event, enum task_state *ret,
	struct err *err) MUST_CHECK;
int execution_next(enum execution_state state, enum execution_event event,
	enum execution_state *ret, struct err *err) MUST_CHECK;
int proposal_next(enum proposal_state state, enum proposal_event event, enum proposal_state *ret,
	struct err *err) MUST_CHECK;
int job_next(enum job_reason state, enum job_reason event, enum job_reason *ret,
	struct err *err) MUST_CHECK;
