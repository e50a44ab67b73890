/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From approved to dispatching: the one way in which anything leaves. Also where it goes on after a restart.
 */
#pragma once

#include "engine/caller.h"

/*
 * Carries an approved proposal out. `to` gets the PROPOSAL_ROW: when the execution ended, after LIMIT_EXECUTION_WAIT_MS, or at once when
 * nothing was begun: then the row says why (expired, revoked, denied), or it is approved still, because only the moment is
 * wrong (no broker, nothing can be recorded), and is tried again until dispatch_by.
 */
void execution_begin(struct engine *e, const struct id *proposal, struct reply to,
	const struct principal *who, struct view request_id);

/* What is approved and not begun, again. */
void execution_begin_all(struct engine *e);
