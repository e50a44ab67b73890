/* SPDX-License-Identifier: Apache-2.0 */
/* See tile.h. */
#include "lib/tlog/tile.h"

struct merkle_hash
tile_fill(struct tile *t, const struct merkle_hash *hashes, size_t n)
{
	struct merkle_hash root = {{0}};

	must(n <= TILE_WIDTH);
	for (size_t i = 0; i < n; i++)
		*tile_node(t, 0, i) = hashes[i];
	for (unsigned low = 1; low < TILE_HEIGHT; low++)
		for (size_t i = 0; i < n >> low; i++)
			*tile_node(t, low, i) = merkle_node(
				tile_node(t, low - 1, 2 * i), tile_node(t, low - 1, 2 * i + 1));
	if (n == TILE_WIDTH)
		root = merkle_node(
			tile_node(t, TILE_HEIGHT - 1, 0), tile_node(t, TILE_HEIGHT - 1, 1));
	return root;
}
