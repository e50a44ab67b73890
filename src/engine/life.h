/* SPDX-License-Identifier: Apache-2.0 */
/* What may happen to a sandbox that lives: look, kill, freeze, other times, usage; and the clock. */
#pragma once

#include "engine/sandbox.h"

int on_sandbox_list(struct engine *e, struct reply to, const struct msg_sandbox_list *m,
	struct err *err) MUST_CHECK;
int on_sandbox_get(struct engine *e, struct reply to, const struct msg_sandbox_get *m,
	struct err *err) MUST_CHECK;
int on_sandbox_kill(struct engine *e, struct reply to, const struct msg_sandbox_kill *m,
	struct err *err) MUST_CHECK;
int on_sandbox_freeze(struct engine *e, struct reply to, const struct msg_sandbox_freeze *m,
	struct err *err) MUST_CHECK;
int on_sandbox_life(struct engine *e, struct reply to, const struct msg_sandbox_life *m,
	struct err *err) MUST_CHECK;
int on_sandbox_usage(struct engine *e, struct reply to, const struct msg_sandbox_usage *m,
	struct err *err) MUST_CHECK;

int on_frozen(struct engine *e, const struct msg_frozen *m, struct err *err) MUST_CHECK;
int on_ttl_is(struct engine *e, const struct msg_ttl_is *m, struct err *err) MUST_CHECK;
int on_usage(struct engine *e, const struct msg_usage *m, struct err *err) MUST_CHECK;

/* What the kernel did last, recorded; when that fails, frozen_due says so and the tick calls it again. */
void frozen_again(struct sandbox *s);
/* Its audit record alone, inside the open transaction. */
int frozen_audit(struct sandbox *s, struct err *err) MUST_CHECK;

/* Deadlines, idle times and records that could not be written. */
void life_tick(struct engine *e);
