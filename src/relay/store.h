/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is kept of one output stream: the head, and behind it the newest bytes in a ring. Both grow as bytes
 * come, from a budget that all streams of the sandbox share; without budget or memory, bytes are counted
 * and not kept. Offsets are those of the stream.
 *
 * Invariants: head covers [0, head_n); the ring covers [seen - ring_n, seen); seen - ring_n >= head_n; once
 * a byte did not go to the head, none does any more.
 */
#pragma once

#include "lib/base/view.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct store_budget {
	size_t used, max;
	bool (*make_room)(void *owner); /* forgets something and says whether it did */
	void *owner;                    /* borrowed */
};

struct store {
	struct store_budget *budget; /* borrowed */
	uint8_t *head, *ring;        /* owned */
	size_t head_n, head_cap, head_max;
	size_t ring_n, ring_cap, ring_max;
	size_t ring_at; /* where the oldest byte of the ring is */
	uint64_t seen;
	bool head_closed;
};

void store_init(struct store *s, struct store_budget *budget, size_t head_max, size_t ring_max);
void store_done(struct store *s);
void store_add(struct store *s, struct view v);

/*
 * What is kept from this offset on, as far as it lies in one piece (borrowed until the next call on s); empty
 * with *ret_gap_end set when the bytes before that offset are lost. `from` is less than seen.
 */
struct view store_at(const struct store *s, uint64_t from, uint64_t *ret_gap_end);

static inline uint64_t
store_kept(const struct store *s)
{
	return (uint64_t)s->head_n + s->ring_n;
}
