/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table from bytes to a pointer, for the index of the ledger. Entries are never removed. The seed is random: keys come from others. */
#pragma once

#include "lib/base/view.h"
#include "lib/base/attr.h"

struct map_slot;

struct map {
	struct map_slot **slot; /* owned: chains */
	size_t n, slots;
	uint64_t seed;
};

void map_init(struct map *m);
void map_done(struct map *m); /* not what the pointers point at */

/* NULL: not there. */
void *map_find(const struct map *m, struct view key);

/* Every entry, in no order. */
void map_each(const struct map *m, void (*fn)(struct view key, void *value));

/* Copies the key; replaces the pointer of one that is there. 0 or -ENOMEM. */
int map_put(struct map *m, struct view key, void *value) MUST_CHECK;
