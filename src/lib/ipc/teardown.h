/* SPDX-License-Identifier: Apache-2.0 */
/* What a proof of teardown says: the supervisor retries, and the engine marks the sandbox, by the same answer. */
#pragma once

#include "proto_gen.h"

static inline bool
proof_is_zero(const struct proof *p)
{
	return p->processes == 0 && p->cgroups == 0 && p->mounts == 0 && p->namespaces == 0 &&
	       p->journal == 0;
}
