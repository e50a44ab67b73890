/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tile: 256 neighbouring nodes of one level (0, 8, 16, 24) and all nodes over them but their common root, which is one of the next tile's
 * 256. The tree is kept as tiles: full ones in the store by their 256 hashes, the one that grows in memory.
 */
#pragma once

#include "lib/tlog/merkle.h"

enum {
	TILE_HEIGHT = 8,
	TILE_WIDTH = 1 << TILE_HEIGHT,
	TILE_NODES = 2 * TILE_WIDTH - 2,
	TILE_BYTES = TILE_WIDTH * SHA256_BYTES
};

struct tile {
	struct merkle_hash node[TILE_NODES];
};

/* Nodes of the level `low` (0..7) inside a tile. */
static inline uint64_t
tile_nodes(unsigned low)
{
	return (uint64_t)TILE_WIDTH >> low;
}

static inline struct merkle_hash *
tile_node(struct tile *t, unsigned low, uint64_t position)
{
	return &t->node[2 * (TILE_WIDTH - tile_nodes(low)) + position];
}

/* Makes all nodes from `n` hashes of the lowest level; what they do not complete stays as it was. Returns the common root when n is 256. */
struct merkle_hash tile_fill(struct tile *t, const struct merkle_hash *hashes, size_t n);
