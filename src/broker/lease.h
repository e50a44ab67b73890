/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leases: the engine's word that one brokered request of one sandbox was budgeted and is on record. Each is good for one request of that
 * sandbox, by that rule, with that digest, for a short time. In memory only: what a broker that ended had is void. Pure; `now_ms` is of the
 * monotonic clock.
 */
#pragma once

#include "lib/base/err.h"
#include "lib/base/id.h"
#include "lib/base/sha256.h"

#include <stdbool.h>

enum { LEASES_MAX = 1024, LEASES_OF_ONE = 32 };

struct lease {
	struct id id, sandbox;
	uint16_t rule;
	uint8_t digest[SHA256_BYTES]; /* of the request */
	uint64_t until_ms;            /* not at this time any more */
	bool spent; /* it stays until then, or until its place is needed: it is not taken for a new one */
};

struct leases {
	struct lease row[LEASES_MAX];
	size_t n;
};

/* -EEXIST: one with this id is or was there. -ENOSPC, -E2BIG: too many that are not spent, in all or of this sandbox. */
int leases_add(
	struct leases *l, const struct lease *lease, uint64_t now_ms, struct err *err) MUST_CHECK;

/*
 * Spends it, whatever becomes of the request. -ENOENT: there is none, or it is of another sandbox or rule, which leaves that one as it is.
 * -EALREADY: it was spent. -ETIME: it is too late.
 */
int leases_spend(struct leases *l, const struct id *id, const struct id *sandbox, uint16_t rule,
	uint64_t now_ms, uint8_t ret_digest[static SHA256_BYTES], struct err *err) MUST_CHECK;
