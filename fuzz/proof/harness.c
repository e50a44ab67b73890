/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzing of the verifiers of proofs over a real log of 1000 leaves: sizes, places and hashes are the input's. What is taken must be true: the leaf is the one
 * that stands there, the old root is that of this size.
 */
#include "lib/tlog/merkle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { LEAVES = 1000 };

static struct merkle_hash leaves[LEAVES], roots[LEAVES + 1];

static void
make(void)
{
	static struct merkle m;

	if (m.size != 0)
		return;
	roots[0] = merkle_root(&m);
	for (uint32_t i = 0; i < LEAVES; i++) {
		leaves[i] = merkle_leaf(view_of(&i, sizeof(i)));
		(void)merkle_add(&m, &leaves[i]);
		roots[i + 1] = merkle_root(&m);
	}
}

/* Hashes of the log itself (two bytes: which) are what a true proof is made of; others come as they are. */
static struct view
proof_of(struct view in, struct merkle_hash room[static 32])
{
	size_t k = 0;

	for (; in.n >= 3 && k < 32; in = view_skip(in, 3)) {
		size_t at = ((size_t)in.p[1] << 8 | in.p[2]) % LEAVES;

		room[k++] = in.p[0] % 2 == 0 ? leaves[at] : roots[at];
	}
	return view_of(room, k * SHA256_BYTES);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct merkle_hash room[32];
	struct view hashes;
	uint64_t a, b;

	make();
	if (n < 5)
		return 0;
	a = ((uint64_t)data[1] << 8 | data[2]) % (LEAVES + 1);
	b = ((uint64_t)data[3] << 8 | data[4]) % (LEAVES + 1);
	hashes = proof_of(view_of(data + 5, n - 5), room);
	if (data[0] % 2 == 0) {
		for (size_t i = 0; i < LEAVES; i += 97)
			if (merkle_inclusion_ok(&leaves[i], a, b, hashes, &roots[b]))
				must(i == a && a < b);
		/* Any numbers at all, and any bytes. */
		(void)merkle_inclusion_ok(
			&leaves[0], a << 50, b << 50 | a, view_of(data, n), &roots[b]);
	} else {
		if (merkle_consistency_ok(a, &roots[a == LEAVES ? 0 : a + 1], b, &roots[b], hashes))
			must(false);
		if (merkle_consistency_ok(a, &roots[a], b, &roots[b], hashes))
			must(a <= b);
		(void)merkle_consistency_ok(
			a << 50, &roots[a], b << 50 | a, &roots[b], view_of(data, n));
	}
	return 0;
}
