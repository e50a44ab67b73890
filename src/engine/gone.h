/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a sandbox: asked for, told, recorded with its proof. Killing never fails: what cannot be
 * recorded at once is killed all the same, and the kill is recorded with its end when that is possible
 * again.
 */
#pragma once

#include "engine/sandbox.h"

/* Ends it for this reason; nothing if it is ending already. `who` and request_id for the record. */
void sandbox_kill(struct sandbox *s, enum sandbox_reason reason, const struct principal *who,
	struct view request_id);

/*
 * Nothing of it runs any more. proof_known false: nobody looked (restart of the engine). Afterwards *s is
 * gone, unless it could not be recorded.
 */
void sandbox_ended(struct sandbox *s, const struct msg_gone *m, bool proof_known);

int on_gone(struct engine *e, const struct msg_gone *m, struct err *err) MUST_CHECK;

/* One that is not in memory: its resources were looked at again. -ENOENT when the store does not know it. */
int gone_again(struct engine *e, const struct msg_gone *m, struct err *err) MUST_CHECK;
