/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state machines as pure functions over the .fsm tables: the next state, or -EPROTO for a pair that
 * is not listed. Only sandbox_step, task_step and job_step call them.
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

enum task_event { TASK_CLOSE, TASK_MARK, TASK_REOPEN, TASK_RECLOSE, TASK_EVENT_MAX };

/* The events of a job are the reasons for which it can end. */
int sandbox_next(enum sandbox_state state, enum sandbox_event event, enum sandbox_state *ret,
	struct err *err) MUST_CHECK;
int task_next(enum task_state state, enum task_event event, enum task_state *ret,
	struct err *err) MUST_CHECK;
int job_next(enum job_reason state, enum job_reason event, enum job_reason *ret,
	struct err *err) MUST_CHECK;
