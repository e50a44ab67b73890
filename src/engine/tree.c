/* SPDX-License-Identifier: Apache-2.0 */
/* See tree.h. */
#include "engine/tree.h"

#include "lib/base/log.h"

#include <errno.h>
#include <inttypes.h>

enum { HEIGHTS = 4 };

_Static_assert(HEIGHTS *TILE_HEIGHT == 32, "nodes of level 32 are never complete");
#define LEAVES_MAX ((UINT64_C(1) << HEIGHTS * TILE_HEIGHT) - 1)
#define NO_TILE    UINT64_MAX

struct tree {
	struct merkle now;          /* with what the open transaction added */
	struct merkle before;       /* as it was when that began to add */
	bool open;                  /* a transaction added something */
	bool stale;                 /* an undone transaction spoilt a tile: to be read again */
	struct tile grows[HEIGHTS]; /* the one at the right edge, by height */
	struct tile full[HEIGHTS];  /* the one that was used last */
	uint64_t full_number[HEIGHTS];
};

/* Tiles of a height that are full. */
static uint64_t
tiles_full(uint64_t size, unsigned height)
{
	return size >> TILE_HEIGHT * (height + 1);
}

/* Nodes of the lowest level in the tile that grows. */
static size_t
tile_used(uint64_t size, unsigned height)
{
	return (size_t)(size >> TILE_HEIGHT * height) % TILE_WIDTH;
}

/* ---- the store ---- */

static int
tile_load(struct engine *e, unsigned height, uint64_t number, struct tile *ret,
	struct merkle_hash *ret_root, struct err *err)
{
	auto_query struct query q = query_of(e->store, Q_TILE_GET);
	static struct merkle_hash hashes[TILE_WIDTH];
	struct view v;
	int r;

	arg_u64(&q, height);
	arg_u64(&q, number);
	r = query_next(&q, err);
	if (r < 0)
		return r;
	v = r == 0 ? view_of(NULL, 0) : col_view(&q);
	if (v.n != TILE_BYTES)
		return err_set(err, -EUCLEAN, "the tree of audit records has no tile %u/%" PRIu64,
			height, number);
	memcpy(hashes, v.p, TILE_BYTES);
	*ret_root = tile_fill(ret, hashes, TILE_WIDTH);
	return 0;
}

static int
tile_store(struct engine *e, unsigned height, uint64_t number, struct err *err)
{
	struct tree *t = e->tree;
	auto_query struct query q = query_of(e->store, Q_TILE_INSERT);
	int r;

	arg_u64(&q, height);
	arg_u64(&q, number);
	arg_blob(&q, view_of(t->grows[height].node, TILE_BYTES));
	r = query_run(&q, err);
	if (r == 0) {
		t->full[height] = t->grows[height];
		t->full_number[height] = number;
	}
	return r;
}

/* ---- made anew ---- */

static int
grow_leaves(struct engine *e, uint64_t size, struct err *err)
{
	auto_query struct query q = query_of(e->store, Q_AUDIT_DIGESTS);
	static struct merkle_hash hashes[TILE_WIDTH];
	size_t n = 0;
	int r;

	arg_u64(&q, size - tile_used(size, 0));
	for (r = query_next(&q, err); r > 0 && n < TILE_WIDTH; r = query_next(&q, err)) {
		uint8_t digest[SHA256_BYTES];

		col_digest(&q, digest);
		hashes[n++] = merkle_leaf(view_of(digest, SHA256_BYTES));
	}
	if (r < 0)
		return r;
	if (n != tile_used(size, 0))
		return err_set(err, -EUCLEAN, "the numbers of audit records have a hole");
	(void)tile_fill(&e->tree->grows[0], hashes, n);
	return 0;
}

static int
grow_tile(struct engine *e, unsigned height, uint64_t size, struct err *err)
{
	static struct merkle_hash hashes[TILE_WIDTH];
	uint64_t first = tiles_full(size, height) << TILE_HEIGHT;
	static struct tile below;

	for (size_t i = 0; i < tile_used(size, height); i++) {
		int r = tile_load(e, height - 1, first + i, &below, &hashes[i], err);

		if (r < 0)
			return r;
	}
	(void)tile_fill(&e->tree->grows[height], hashes, tile_used(size, height));
	return 0;
}

static int
read_again(struct engine *e, uint64_t size, struct err *err)
{
	struct tree *t = e->tree;
	int r = grow_leaves(e, size, err);

	for (unsigned h = 1; r == 0 && h < HEIGHTS; h++)
		r = grow_tile(e, h, size, err);
	if (r < 0)
		return r;
	t->now = (struct merkle){.size = size};
	for (unsigned h = 0; h < HEIGHTS; h++)
		t->full_number[h] = NO_TILE;
	/* The compact range stands in the tiles that grow; the other newest nodes come with the next leaves. */
	for (unsigned k = 0; k < HEIGHTS * TILE_HEIGHT; k++)
		if ((size >> k & 1) != 0)
			t->now.node[k] = *tile_node(&t->grows[k / TILE_HEIGHT], k % TILE_HEIGHT,
				(size >> k & (tile_nodes(k % TILE_HEIGHT) - 1)) - 1);
	t->open = false;
	t->stale = false;
	return 0;
}

/* Each hash of a tile is the root of the tile below. */
static int
check_tile(struct engine *e, unsigned height, uint64_t number, struct err *err)
{
	static struct tile above, below;
	struct merkle_hash root;
	int r = tile_load(e, height, number, &above, &root, err);

	for (size_t i = 0; r == 0 && i < TILE_WIDTH; i++) {
		r = tile_load(e, height - 1, (number << TILE_HEIGHT) + i, &below, &root, err);
		if (r == 0 && !merkle_eq(&root, tile_node(&above, 0, i)))
			r = err_set(err, -EUCLEAN,
				"the tree of audit records was changed: tile %u/%" PRIu64
				" does not fit",
				height, number);
	}
	return r;
}

static int
count_tiles(struct engine *e, unsigned height, uint64_t *ret, struct err *err)
{
	auto_query struct query q = query_of(e->store, Q_TILE_COUNT);
	int r;

	arg_u64(&q, height);
	r = query_one(&q, err);
	if (r == 0)
		*ret = col_u64(&q);
	return r;
}

static int
check_tiles(struct engine *e, uint64_t size, struct err *err)
{
	for (unsigned h = 0; h < HEIGHTS; h++) {
		uint64_t n = 0;
		int r = count_tiles(e, h, &n, err);

		if (r == 0 && n != tiles_full(size, h))
			r = err_set(err, -EUCLEAN,
				"the tree of %" PRIu64 " audit records has %" PRIu64
				" tiles of height %u",
				size, n, h);
		for (uint64_t i = 0; r == 0 && h > 0 && i < n; i++)
			r = check_tile(e, h, i, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int
records(struct engine *e, uint64_t *ret, struct err *err)
{
	auto_query struct query q = query_of(e->store, Q_AUDIT_SIZE);
	uint64_t n;
	int r = query_one(&q, err);

	if (r < 0)
		return r;
	n = col_u64(&q);
	if (n != col_u64(&q))
		return err_set(err, -EUCLEAN, "the numbers of audit records have a hole");
	*ret = n;
	return 0;
}

/* A transaction ended without a commit, or with one. */
static void
on_end(void *arg, bool committed)
{
	struct engine *e = arg;
	struct tree *t = e->tree;

	if (!t->open)
		return;
	t->open = false;
	if (committed)
		return;
	/* What is beyond the size again will be written over, unless a tile began anew on top of the old one. */
	t->stale = t->stale || tiles_full(t->now.size, 0) != tiles_full(t->before.size, 0);
	t->now = t->before;
	for (unsigned h = 0; h < HEIGHTS; h++)
		t->full_number[h] = NO_TILE;
}

int
tree_open(struct engine *e, struct err *err)
{
	uint64_t size = 0;
	int r = records(e, &size, err);

	e->tree = calloc(1, sizeof(*e->tree));
	if (e->tree == NULL)
		return err_set(err, -ENOMEM, "no memory for the tree of audit records");
	if (r == 0)
		r = check_tiles(e, size, err);
	if (r == 0)
		r = read_again(e, size, err);
	if (r == 0)
		store_on_end(e->store, on_end, e);
	return r;
}

void
tree_close(struct tree *t)
{
	free(t);
}

/* ---- growing ---- */

uint64_t
tree_size(const struct tree *t)
{
	return t->now.size;
}

struct merkle_hash
tree_root(const struct tree *t)
{
	return merkle_root(&t->now);
}

static int
refresh(struct engine *e, struct err *err)
{
	return e->tree->stale ? read_again(e, e->tree->now.size, err) : 0;
}

int
tree_add(struct engine *e, const uint8_t digest[static SHA256_BYTES], struct err *err)
{
	struct tree *t = e->tree;
	const struct merkle_hash leaf = merkle_leaf(view_of(digest, SHA256_BYTES));
	unsigned top;

	if (t->now.size >= LEAVES_MAX)
		return err_set(err, -ENOSPC, "the tree of audit records is full");
	if (!t->open) {
		int r = refresh(e, err);

		if (r < 0)
			return r;
		t->before = t->now;
		t->open = true;
	}
	top = merkle_add(&t->now, &leaf);
	for (unsigned k = 0; k <= top; k++)
		*tile_node(&t->grows[k / TILE_HEIGHT], k % TILE_HEIGHT,
			((t->now.size >> k) - 1) &
				(tile_nodes(k % TILE_HEIGHT) - 1)) = t->now.node[k];
	for (unsigned h = 0;
		h < HEIGHTS && t->now.size % (UINT64_C(1) << TILE_HEIGHT * (h + 1)) == 0; h++) {
		int r = tile_store(e, h, tiles_full(t->now.size, h) - 1, err);

		if (r < 0)
			return r; /* the transaction is undone, and this with it */
	}
	return 0;
}

/* ---- nodes ---- */

static int
node(void *arg, unsigned level, uint64_t index, struct merkle_hash *ret, struct err *err)
{
	struct engine *e = arg;
	struct tree *t = e->tree;
	unsigned height = level / TILE_HEIGHT, low = level % TILE_HEIGHT;
	uint64_t number = index >> (TILE_HEIGHT - low), position = index & (tile_nodes(low) - 1);
	struct merkle_hash root;
	int r = refresh(e, err);

	must(height < HEIGHTS && index < t->now.size >> level);
	if (r < 0)
		return r;
	if (number == tiles_full(t->now.size, height)) {
		*ret = *tile_node(&t->grows[height], low, position);
		return 0;
	}
	if (t->full_number[height] != number) {
		t->full_number[height] = NO_TILE;
		r = tile_load(e, height, number, &t->full[height], &root, err);
		if (r < 0)
			return r;
		t->full_number[height] = number;
	}
	*ret = *tile_node(&t->full[height], low, position);
	return 0;
}

struct merkle_source
tree_source(struct engine *e)
{
	return (struct merkle_source){.node = node, .arg = e};
}
