/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Taking authority back: a grant with the proposals that were made by it, one approval (its proposal), or all of a task. It is on disk here
 * before it is answered, and the broker is told until it confirms (outbox.h). What was sent cannot be recalled; that is recorded
 * and said.
 */
#pragma once

#include "engine/contain.h"

struct taken {
	uint32_t grants, proposals;
};

/*
 * Grants and proposals of a scope that could still lead to a dispatch, inside the open transaction; grant: only that one and what
 * was proposed by it, NULL = all.
 */
int authority_take(struct engine *e, const struct scope *s, const struct id *grant,
	const struct principal *who, struct view request_id, const char *why, struct taken *ret,
	struct err *err) MUST_CHECK;

int on_authority_revoke(struct engine *e, struct reply to, const struct msg_authority_revoke *m,
	struct err *err) MUST_CHECK;
