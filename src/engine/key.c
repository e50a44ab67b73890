/* SPDX-License-Identifier: Apache-2.0 */
/* Idempotency keys; see key.h. */
#include "engine/key.h"

#include "engine/limits.h"
#include "lib/base/clock.h"

#include <errno.h>

int
key_find(struct engine *e, const char *tenant, const uint8_t key[static 32],
	const uint8_t body[static 32], struct id *ret, struct err *err)
{
	auto_query struct query q = query_of(e->store, Q_IDEMPOTENCY_GET);
	uint8_t known[32];
	struct id made;
	int r;

	if (digest_is_zero(key))
		return 0;
	arg_text(&q, tenant);
	arg_digest(&q, key);
	arg_u64(&q, clock_real_ms() - LIMIT_IDEMPOTENCY_MS);
	r = query_next(&q, err);
	if (r <= 0)
		return r;
	col_digest(&q, known);
	col_id(&q, &made);
	if (memcmp(known, body, 32) != 0)
		return REFUSE(err, IDEMPOTENCY,
			"this Idempotency-Key came before with another request; use a new key for "
			"a new request");
	*ret = made;
	return 1;
}

static int
expire(struct engine *e, uint64_t now, struct err *err)
{
	auto_query struct query q = query_of(e->store, Q_IDEMPOTENCY_EXPIRE);

	arg_u64(&q, now - LIMIT_IDEMPOTENCY_MS);
	return query_run(&q, err);
}

int
key_insert(struct engine *e, const char *tenant, const uint8_t key[static 32],
	const uint8_t body[static 32], const struct id *made, struct err *err)
{
	uint64_t now = clock_real_ms();
	int r;

	if (digest_is_zero(key))
		return 0;
	r = expire(e, now, err);
	if (r < 0)
		return r;
	auto_query struct query q = query_of(e->store, Q_IDEMPOTENCY_INSERT);
	arg_text(&q, tenant);
	arg_digest(&q, key);
	arg_digest(&q, body);
	arg_id(&q, made);
	arg_u64(&q, now);
	return query_run(&q, err);
}

int
key_forget(struct engine *e, const struct id *made, struct err *err)
{
	auto_query struct query q = query_of(e->store, Q_IDEMPOTENCY_FORGET);

	arg_id(&q, made);
	return query_run(&q, err);
}
