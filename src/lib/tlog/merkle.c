/* SPDX-License-Identifier: Apache-2.0 */
/* The tree of RFC 6962; see merkle.h. Verification as in RFC 9162, 2.1.3.2 and 2.1.4.2. */
#include "lib/tlog/merkle.h"

#include <errno.h>
#include <inttypes.h>

_Static_assert(sizeof(struct merkle_hash) == SHA256_BYTES, "a proof is its hashes");

struct merkle_hash
merkle_leaf(struct view entry)
{
	static const uint8_t prefix = 0;
	struct merkle_hash ret;
	struct sha256 h;

	sha256_init(&h);
	sha256_add(&h, &prefix, 1);
	sha256_add(&h, entry.p, entry.n);
	sha256_end(&h, ret.b);
	return ret;
}

struct merkle_hash
merkle_node(const struct merkle_hash *left, const struct merkle_hash *right)
{
	uint8_t bytes[1 + 2 * SHA256_BYTES] = {1};
	struct merkle_hash ret;

	memcpy(bytes + 1, left->b, SHA256_BYTES);
	memcpy(bytes + 1 + SHA256_BYTES, right->b, SHA256_BYTES);
	sha256_of(view_of(bytes, sizeof(bytes)), ret.b);
	return ret;
}

struct merkle_hash
merkle_empty(void)
{
	struct merkle_hash ret;

	sha256_of(view_of(NULL, 0), ret.b);
	return ret;
}

/* ---- growing ---- */

unsigned
merkle_add(struct merkle *m, const struct merkle_hash *leaf)
{
	struct merkle_hash h = *leaf;
	unsigned k = 0;

	must(m->size < UINT64_MAX >> 1);
	for (; (m->size >> k & 1) != 0; k++) {
		struct merkle_hash up = merkle_node(&m->node[k], &h);

		m->node[k] = h;
		h = up;
	}
	m->node[k] = h;
	m->size++;
	return k;
}

struct merkle_hash
merkle_root(const struct merkle *m)
{
	struct merkle_hash h = merkle_empty();
	bool any = false;

	for (unsigned k = 0; k < MERKLE_LEVELS; k++)
		if ((m->size >> k & 1) != 0) {
			h = any ? merkle_node(&m->node[k], &h) : m->node[k];
			any = true;
		}
	return h;
}

/* ---- making proofs ---- */

/* The largest power of two below n, as its exponent; n > 1. */
static unsigned
split_level(uint64_t n)
{
	return 63 - (unsigned)__builtin_clzll(n - 1);
}

/* The root over n leaves from `first` on, which is a multiple of the power of two that they fit in: its right edge may be incomplete. */
static int
range_root(const struct merkle_source *s, uint64_t first, uint64_t n, struct merkle_hash *ret,
	struct err *err)
{
	struct merkle_hash h, left;
	bool any = false;

	/* From the smallest complete node, at the right, to the largest. */
	for (unsigned k = 0; n >> k != 0; k++) {
		int r;

		if ((n >> k & 1) == 0)
			continue;
		r = s->node(s->arg, k, (first + ((n >> k & ~UINT64_C(1)) << k)) >> k, &left, err);
		if (r < 0)
			return r;
		h = any ? merkle_node(&left, &h) : left;
		any = true;
	}
	*ret = h;
	return 0;
}

int
merkle_root_at(
	const struct merkle_source *s, uint64_t size, struct merkle_hash *ret, struct err *err)
{
	if (size == 0) {
		*ret = merkle_empty();
		return 0;
	}
	return range_root(s, 0, size, ret, err);
}

/* Turns it round: it is collected from the root down, and told from the leaf up. */
static void
reverse(struct merkle_proof *p)
{
	for (size_t i = 0; i < p->n / 2; i++) {
		struct merkle_hash h = p->hash[i];

		p->hash[i] = p->hash[p->n - 1 - i];
		p->hash[p->n - 1 - i] = h;
	}
}

int
merkle_inclusion(const struct merkle_source *s, uint64_t index, uint64_t size,
	struct merkle_proof *ret, struct err *err)
{
	struct merkle_proof p = {0};
	uint64_t first = 0, n = size;

	if (index >= size)
		return err_set(
			err, -ERANGE, "leaf %" PRIu64 " is not in a tree of %" PRIu64, index, size);
	while (n > 1) {
		uint64_t half = UINT64_C(1) << split_level(n);
		bool right = index - first >= half;
		int r = right ? range_root(s, first, half, &p.hash[p.n], err)
			      : range_root(s, first + half, n - half, &p.hash[p.n], err);

		if (r < 0)
			return r;
		p.n++;
		first += right ? half : 0;
		n = right ? n - half : half;
	}
	reverse(&p);
	*ret = p;
	return 0;
}

int
merkle_consistency(const struct merkle_source *s, uint64_t from, uint64_t size,
	struct merkle_proof *ret, struct err *err)
{
	struct merkle_proof p = {0};
	uint64_t first = 0, n = size, m = from;
	bool whole = true; /* the old tree is a subtree that the verifier has the root of */

	if (from > size)
		return err_set(err, -ERANGE,
			"a tree of %" PRIu64 " does not begin with one of %" PRIu64, size, from);
	if (from == 0 || from == size) {
		*ret = p;
		return 0;
	}
	while (m != n) {
		uint64_t half = UINT64_C(1) << split_level(n);
		bool right = m > half;
		int r = right ? range_root(s, first, half, &p.hash[p.n], err)
			      : range_root(s, first + half, n - half, &p.hash[p.n], err);

		if (r < 0)
			return r;
		p.n++;
		if (right) {
			first += half;
			m -= half;
			whole = false;
		}
		n = right ? n - half : half;
	}
	if (!whole) {
		int r = range_root(s, first, n, &p.hash[p.n], err);

		if (r < 0)
			return r;
		p.n++;
	}
	reverse(&p);
	*ret = p;
	return 0;
}

/* ---- verifying ---- */

/* The next hash of a proof; false: there is none. */
static bool
take(struct view *hashes, struct merkle_hash *ret)
{
	if (hashes->n < SHA256_BYTES)
		return false;
	memcpy(ret->b, hashes->p, SHA256_BYTES);
	*hashes = view_skip(*hashes, SHA256_BYTES);
	return true;
}

/* Is this where the last path that held was, with the same way before it? */
static bool
met(const struct merkle_path *p, unsigned level, uint64_t index, const struct merkle_hash *h,
	struct view hashes)
{
	return p->node[level].index == index && p->node[level].left == hashes.n &&
	       merkle_eq(&p->node[level].hash, h) &&
	       memcmp(p->proof + (p->n - hashes.n), hashes.p, hashes.n) == 0;
}

/* A path is kept only when it held: what was kept meanwhile is forgotten. */
static bool
keep(struct merkle_path *p, struct view proof, uint64_t size, const struct merkle_hash *root,
	bool held)
{
	p->size = held ? size : 0;
	p->root = *root;
	p->n = proof.n;
	if (held && proof.n > 0)
		memcpy(p->proof, proof.p, proof.n);
	return held;
}

bool
merkle_inclusion_next(struct merkle_path *p, const struct merkle_hash *leaf, uint64_t index,
	uint64_t size, struct view hashes, const struct merkle_hash *root)
{
	bool same = size == p->size && merkle_eq(root, &p->root);
	const struct view proof = hashes;
	struct merkle_hash h = *leaf, other;
	uint64_t last = size - 1;

	if (index >= size || hashes.n % SHA256_BYTES != 0 || hashes.n > sizeof(p->proof))
		return false;
	for (unsigned level = 0; last != 0; level++, index >>= 1, last >>= 1) {
		if (same && met(p, level, index, &h, hashes))
			return keep(p, proof, size, root, true);
		p->node[level].index = index;
		p->node[level].left = hashes.n;
		p->node[level].hash = h;
		if ((index & 1) == 0 && index == last)
			continue; /* it has no sibling on this level */
		if (!take(&hashes, &other))
			return keep(p, proof, size, root, false);
		h = (index & 1) != 0 ? merkle_node(&other, &h) : merkle_node(&h, &other);
	}
	return keep(p, proof, size, root, hashes.n == 0 && merkle_eq(&h, root));
}

bool
merkle_inclusion_ok(const struct merkle_hash *leaf, uint64_t index, uint64_t size,
	struct view hashes, const struct merkle_hash *root)
{
	struct merkle_path none = {0};

	return merkle_inclusion_next(&none, leaf, index, size, hashes, root);
}

bool
merkle_consistency_ok(uint64_t from, const struct merkle_hash *from_root, uint64_t size,
	const struct merkle_hash *root, struct view hashes)
{
	struct merkle_hash was, is, other, empty = merkle_empty();
	uint64_t node = from - 1, last = size - 1;

	if (from > size || hashes.n % SHA256_BYTES != 0 ||
		hashes.n > MERKLE_PROOF_MAX * SHA256_BYTES)
		return false;
	if (from == 0)
		return hashes.n == 0 && merkle_eq(from_root, &empty) &&
		       (size != 0 || merkle_eq(root, &empty));
	if (from == size)
		return hashes.n == 0 && merkle_eq(from_root, root);
	for (; (node & 1) != 0; node >>= 1)
		last >>= 1;
	was = *from_root;
	if (node != 0 && !take(&hashes, &was))
		return false;
	is = was;
	for (; last != 0; node >>= 1, last >>= 1) {
		if ((node & 1) == 0 && node == last)
			continue;
		if (!take(&hashes, &other))
			return false;
		if ((node & 1) != 0) {
			was = merkle_node(&other, &was);
			is = merkle_node(&other, &is);
		} else {
			is = merkle_node(&is, &other);
		}
	}
	return hashes.n == 0 && merkle_eq(&was, from_root) && merkle_eq(&is, root);
}
