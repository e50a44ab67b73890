/* SPDX-License-Identifier: Apache-2.0 */
/* Questions of the api about the tree: the newest signed head, and proofs. */
#pragma once

#include "engine/engine.h"

int on_checkpoint_get(struct engine *e, struct reply to, const struct msg_checkpoint_get *m,
	struct err *err) MUST_CHECK;
int on_inclusion_get(struct engine *e, struct reply to, const struct msg_inclusion_get *m,
	struct err *err) MUST_CHECK;
int on_consistency_get(struct engine *e, struct reply to, const struct msg_consistency_get *m,
	struct err *err) MUST_CHECK;
