/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the engine is told. An allowed exchange waits until its verdict is on record; above the rate (limits.def) those of a kind that is on
 * record already are only counted, and their number and bytes follow within a second. So no byte moves that no record names; how often is exact.
 */
#pragma once

#include "gateway.h"

struct verdict_of {
	enum verdict verdict;
	enum egress_reason reason;
	enum egress_scheme scheme;
	uint16_t rule, port;
	struct view name; /* canonical, or empty */
	struct view address, method, path,
		query; /* as VERDICT; empty ones are fine; path and query too long are left empty */
	const uint8_t *digest; /* 32 bytes, or NULL */
};

struct verdicts *verdicts_new(struct gateway *g);
void verdicts_free(struct verdicts *v);

/* For what was refused or aborted: told or counted, nobody waits. */
void verdict_tell(struct gateway *g, const struct verdict_of *v);

/*
 * For what is allowed. `kept` is called once, from the loop or at once: NONE, or why nothing may move (AUDIT, CONTAINED). The pointer is for
 * verdict_forget(); NULL when it was called at once.
 */
struct verdict_wait;
typedef void verdict_kept_fn(void *owner, enum egress_reason reason);
struct verdict_wait *verdict_ask(
	struct gateway *g, const struct verdict_of *v, verdict_kept_fn *kept, void *owner);
void verdict_forget(struct verdict_wait *w);

/* Bytes that moved for a kind of verdict; told with the next FLOW. */
void verdict_bytes(struct gateway *g, const struct verdict_of *v, uint64_t out, uint64_t in);

/* VERDICT_KEPT came; the engine is gone, or is back. */
int verdict_kept(struct gateway *g, uint64_t tag, bool kept, enum egress_reason reason,
	struct err *err) MUST_CHECK;
void verdicts_engine(struct gateway *g, bool there);
