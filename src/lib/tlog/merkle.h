/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Merkle tree of RFC 6962 over an append-only log: hashes, a compact form that grows by one leaf at a time, proofs, and their verification.
 * The engine keeps the tree, the broker signs no head that is not proved to continue the last one, `demilune audit verify` believes neither.
 * Pure: nodes that a proof needs come from a callback. A proof is a row of hashes, in the order of RFC 6962.
 *
 * Node (level, index): the root over the leaves [index << level, (index + 1) << level). Level 0 is the hash of a leaf.
 */
#pragma once

#include "lib/base/err.h"
#include "lib/base/sha256.h"

#include <stdbool.h>

enum { MERKLE_LEVELS = 64, MERKLE_PROOF_MAX = 2 * MERKLE_LEVELS };

struct merkle_hash {
	uint8_t b[SHA256_BYTES];
};

struct merkle_hash merkle_leaf(struct view entry);
struct merkle_hash merkle_node(const struct merkle_hash *left, const struct merkle_hash *right);
struct merkle_hash merkle_empty(void);

static inline bool
merkle_eq(const struct merkle_hash *a, const struct merkle_hash *b)
{
	return memcmp(a->b, b->b, SHA256_BYTES) == 0;
}

/*
 * A tree that grows; all zero: empty. node[k] is the newest complete node of level k (index (size >> k) - 1), so where bit k of the size is set,
 * it is a member of the compact range that the root is made of.
 */
struct merkle {
	uint64_t size;
	struct merkle_hash node[MERKLE_LEVELS];
};

/* One more leaf, by its hash. The nodes of levels 0 to the returned one have become complete with it. */
unsigned merkle_add(struct merkle *m, const struct merkle_hash *leaf);
struct merkle_hash merkle_root(const struct merkle *m);

/* Where complete nodes come from: 0, or negative with *err. */
struct merkle_source {
	int (*node)(void *arg, unsigned level, uint64_t index, struct merkle_hash *ret,
		struct err *err);
	void *arg;
};

struct merkle_proof {
	size_t n;
	struct merkle_hash hash[MERKLE_PROOF_MAX];
};

/* The root of the first `size` leaves. */
int merkle_root_at(const struct merkle_source *s, uint64_t size, struct merkle_hash *ret,
	struct err *err) MUST_CHECK;
/* That leaf `index` is in the tree of `size`; index < size, else -ERANGE. */
int merkle_inclusion(const struct merkle_source *s, uint64_t index, uint64_t size,
	struct merkle_proof *ret, struct err *err) MUST_CHECK;
/* That the tree of `from` is the beginning of that of `size`; from <= size, else -ERANGE. Empty when they are equal or from is 0. */
int merkle_consistency(const struct merkle_source *s, uint64_t from, uint64_t size,
	struct merkle_proof *ret, struct err *err) MUST_CHECK;

/* Do the proofs hold? `hashes`: of a peer, 32 bytes each; any other length, one too many or too few is false. */
bool merkle_inclusion_ok(const struct merkle_hash *leaf, uint64_t index, uint64_t size,
	struct view hashes, const struct merkle_hash *root);
bool merkle_consistency_ok(uint64_t from, const struct merkle_hash *from_root, uint64_t size,
	const struct merkle_hash *root, struct view hashes);

/*
 * The same for many leaves of one tree, one after the other: where a path comes to a node of the one before it that held, and what is left of
 * both proofs is the same, the rest was computed then. All zero: there was none yet.
 */
struct merkle_path {
	uint64_t size;
	struct merkle_hash root;
	struct {
		uint64_t index;
		size_t left; /* bytes of the proof from here on */
		struct merkle_hash hash;
	} node[MERKLE_LEVELS + 1];
	size_t n; /* bytes of the proof */
	uint8_t proof[MERKLE_PROOF_MAX * SHA256_BYTES];
};
bool merkle_inclusion_next(struct merkle_path *p, const struct merkle_hash *leaf, uint64_t index,
	uint64_t size, struct view hashes, const struct merkle_hash *root);

static inline struct view
merkle_proof_view(const struct merkle_proof *p)
{
	return view_of(p->hash, p->n * SHA256_BYTES);
}
