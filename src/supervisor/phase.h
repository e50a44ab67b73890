/* SPDX-License-Identifier: Apache-2.0 */
/* The state machine of sandbox.fsm, without any object: (phase, event) to the next phase. */
#pragma once

#include "lib/base/err.h"

enum phase {
#define PHASE(name, prose) PHASE_##name,
#include "supervisor/sandbox.fsm"
#undef PHASE
	PHASE_MAX
};

enum phase_event {
#define EVENT(name, prose) PHASE_EVENT_##name,
#include "supervisor/sandbox.fsm"
#undef EVENT
	PHASE_EVENT_MAX
};

/* 0 and the next phase; -EPROTO for a pair without a row. */
int phase_next(enum phase at, enum phase_event event, enum phase *ret, struct err *err) MUST_CHECK;
const char *phase_name(enum phase p);
