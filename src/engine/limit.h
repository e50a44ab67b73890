/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a tenant and the host may use: sizes of one sandbox, sums over the living ones, and how fast
 * new ones may be made (a token bucket per tenant). Checked before anything is written.
 */
#pragma once

#include "engine/engine.h"

/* The bucket of one tenant: full at settings.tenant_creates_per_minute, a full one is forgotten. */
struct rate {
	struct link link;
	char tenant[TENANT_BYTES];
	uint64_t at_ms; /* monotonic: when `left` was true */
	uint64_t left;  /* thousandths of a creation */
};

/* Zeros of `asked` become those of `fallback`; above settings.max_limits is a refusal. */
int limits_resolve(const struct settings *c, const struct limits *asked,
	const struct limits *fallback, struct limits *ret, struct err *err) MUST_CHECK;

/* Zero becomes `fallback`. */
int ttl_resolve(const struct settings *c, uint64_t asked_ms, uint64_t fallback_ms, uint64_t *ret,
	struct err *err) MUST_CHECK;
int idle_resolve(
	uint64_t asked_ms, uint64_t fallback_ms, uint64_t *ret, struct err *err) MUST_CHECK;

/* Is there room for one more sandbox with this much memory? */
int quota_check(
	struct engine *e, const char *tenant, uint64_t memory_bytes, struct err *err) MUST_CHECK;

/* Takes one creation out of the tenant's bucket at this time. */
int rate_take(struct engine *e, const char *tenant, uint64_t now_ms, struct err *err) MUST_CHECK;
void rate_free_all(struct engine *e);
