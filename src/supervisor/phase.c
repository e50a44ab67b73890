/* SPDX-License-Identifier: Apache-2.0 */
/* The state machine of a sandbox; see phase.h. */
#include "supervisor/phase.h"

#include <errno.h>

static const struct {
	enum phase at;
	enum phase_event event;
	enum phase next;
} rows[] = {
#define STEP(at, event, next) {PHASE_##at, PHASE_EVENT_##event, PHASE_##next},
#include "supervisor/sandbox.fsm"
#undef STEP
};

static const char *const phases[] = {
#define PHASE(name, prose) #name,
#include "supervisor/sandbox.fsm"
#undef PHASE
};

static const char *const events[] = {
#define EVENT(name, prose) #name,
#include "supervisor/sandbox.fsm"
#undef EVENT
};

int
phase_next(enum phase at, enum phase_event event, enum phase *ret, struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].at == at && rows[i].event == event) {
			*ret = rows[i].next;
			return 0;
		}
	return err_set(
		err, -EPROTO, "a sandbox in phase %s meets event %s", phases[at], events[event]);
}

const char *
phase_name(enum phase p)
{
	return phases[p];
}
