/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Idempotency keys (Idempotency-Key of a creation): the same key with the same body means the same
 * object, with another body a refusal. Per tenant, for a day. A creation that came to
 * nothing frees its key in the transaction of its end.
 */
#pragma once

#include "engine/engine.h"

/* 1 and what it made, 0 when the key is new (or none), or a refusal. */
int key_find(struct engine *e, const char *tenant, const uint8_t key[static 32],
	const uint8_t body[static 32], struct id *ret, struct err *err) MUST_CHECK;

/* Inside the open transaction; nothing for a zero key. */
int key_insert(struct engine *e, const char *tenant, const uint8_t key[static 32],
	const uint8_t body[static 32], const struct id *made, struct err *err) MUST_CHECK;
int key_forget(struct engine *e, const struct id *made, struct err *err) MUST_CHECK;
