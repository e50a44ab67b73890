/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree against the definitions of RFC 6962 as they stand there (recursive, over all leaves), known trees, and every proof of the
 * sizes 0 to 300: it holds, and it holds no more with one bit, one hash, one number changed.
 */
#include "lib/base/hex.h"
#include "lib/tlog/merkle.h"
#include "lib/tlog/tile.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { SIZES = 300 };

/* ---- RFC 6962, 2.1, to the letter ---- */

static struct merkle_hash leaves[SIZES + 1];

static size_t
split(size_t n)
{
	size_t k = 1;

	while (k * 2 < n)
		k *= 2;
	return k;
}

static struct merkle_hash
mth(size_t first, size_t n)
{
	/* Asked for again and again; each is computed once. */
	static struct merkle_hash known[SIZES + 1][SIZES + 1];
	static bool is_known[SIZES + 1][SIZES + 1];
	uint8_t b[65] = {1};
	struct merkle_hash l, r, ret;
	size_t k;

	if (n == 0) {
		sha256_of(view_of(NULL, 0), ret.b);
		return ret;
	}
	if (n == 1)
		return leaves[first];
	if (is_known[first][n])
		return known[first][n];
	k = split(n);
	l = mth(first, k);
	r = mth(first + k, n - k);
	memcpy(b + 1, l.b, 32);
	memcpy(b + 33, r.b, 32);
	sha256_of(view_of(b, 65), ret.b);
	known[first][n] = ret;
	is_known[first][n] = true;
	return ret;
}

static void
path(size_t m, size_t first, size_t n, struct merkle_proof *p)
{
	size_t k;

	if (n == 1)
		return;
	k = split(n);
	if (m < k) {
		path(m, first, k, p);
		p->hash[p->n++] = mth(first + k, n - k);
	} else {
		path(m - k, first + k, n - k, p);
		p->hash[p->n++] = mth(first, k);
	}
}

static void
subproof(size_t m, size_t first, size_t n, bool b, struct merkle_proof *p)
{
	size_t k;

	if (m == n) {
		if (!b)
			p->hash[p->n++] = mth(first, n);
		return;
	}
	k = split(n);
	if (m <= k) {
		subproof(m, first, k, b, p);
		p->hash[p->n++] = mth(first + k, n - k);
	} else {
		subproof(m - k, first + k, n - k, false, p);
		p->hash[p->n++] = mth(first, k);
	}
}

/* ---- the same from nodes ---- */

static int
node(void *arg, unsigned level, uint64_t index, struct merkle_hash *ret, struct err *err)
{
	size_t *most = arg, first = (size_t)index << level, n = (size_t)1 << level;

	(void)err;
	assert_true(first + n <= *most); /* only complete ones are asked for */
	*ret = mth(first, n);
	return 0;
}

static int
make_leaves(void **state)
{
	(void)state;
	for (size_t i = 0; i <= SIZES; i++) {
		uint8_t b[2] = {(uint8_t)(i >> 8), (uint8_t)i};

		leaves[i] = merkle_leaf(view_of(b, 2));
	}
	return 0;
}

static void
known_roots(void **state)
{
	static const char *const entry[] = {"", "00", "10", "2021", "3031", "40414243",
		"5051525354555657", "606162636465666768696a6b6c6d6e6f"};
	static const char *const root[] = {
		"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		"6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
		"fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
		"aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
		"d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
		"4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
		"76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
		"ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
		"5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"};
	struct merkle m = {0};
	struct merkle_hash want, is;

	(void)state;
	for (size_t i = 0; i <= 8; i++) {
		assert_int_equal(hex_decode(view_str(root[i]), want.b, 32), 0);
		is = merkle_root(&m);
		assert_memory_equal(is.b, want.b, 32);
		if (i < 8) {
			uint8_t b[16];
			size_t n = strlen(entry[i]) / 2;

			assert_int_equal(hex_decode(view_str(entry[i]), b, n), 0);
			is = merkle_leaf(view_of(b, n));
			(void)merkle_add(&m, &is);
		}
	}
}

/* node[k] is the newest complete node of each level, after every leaf. */
static void
growing_gives_all_roots_and_nodes(void **state)
{
	struct merkle m = {0};

	(void)state;
	for (size_t n = 0; n <= SIZES; n++) {
		struct merkle_hash is = merkle_root(&m), want = mth(0, n);
		size_t all = n;
		struct merkle_source s = {node, &all};
		struct err err;

		assert_memory_equal(is.b, want.b, 32);
		assert_int_equal(merkle_root_at(&s, n, &is, &err), 0);
		assert_memory_equal(is.b, want.b, 32);
		for (unsigned k = 0; n >> k != 0; k++) {
			want = mth(((n >> k) - 1) << k, (size_t)1 << k);
			assert_memory_equal(m.node[k].b, want.b, 32);
		}
		if (n < SIZES)
			assert_int_equal(merkle_add(&m, &leaves[n]), __builtin_ctzll(n + 1));
	}
}

/* Alone and behind the leaf before it (or itself, when it held) it is the same. */
static bool
holds(const struct merkle_hash *leaf, uint64_t index, uint64_t size, struct view hashes,
	const struct merkle_hash *root)
{
	static struct merkle_path before;
	static unsigned asked;
	bool ok = merkle_inclusion_ok(leaf, index, size, hashes, root);
	struct merkle_path p;

	if (!ok && ++asked % 4 != 0)
		return ok;
	p = before;
	assert_int_equal(merkle_inclusion_next(&p, leaf, index, size, hashes, root), ok);
	if (ok)
		before = p;
	return ok;
}

/* Every single bit of a proof matters. */
static void
no_other_inclusion(size_t i, size_t n, struct merkle_proof *p, const struct merkle_hash *root)
{
	uint8_t *b = (uint8_t *)p->hash;
	struct merkle_hash other = leaves[i];

	for (size_t bit = i % 256; bit < p->n * 256;
		bit += (n % 100 == 0 && i % 16 == 0 ? 1 : 251)) {
		b[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_false(holds(&leaves[i], i, n, merkle_proof_view(p), root));
		b[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	other.b[i % 32] ^= 1;
	assert_false(holds(&other, i, n, merkle_proof_view(p), root));
	if (i != 0)
		assert_false(holds(&leaves[i], i - 1, n, merkle_proof_view(p), root));
	assert_false(holds(&leaves[i], i + 1, n, merkle_proof_view(p), root));
	assert_false(holds(&leaves[i], i, n, view_of(p->hash, p->n * 32 + 32), root));
	assert_false(holds(&leaves[i], i, n, view_of(p->hash, p->n * 32 + 1), root));
	if (p->n != 0)
		assert_false(holds(&leaves[i], i, n, view_of(p->hash, p->n * 32 - 32), root));
}

static void
every_inclusion(void **state)
{
	(void)state;
	for (size_t n = 1; n <= SIZES; n++) {
		struct merkle_source s = {node, &n};
		struct merkle_hash root = mth(0, n);

		for (size_t i = 0; i < n; i++) {
			struct merkle_proof p = {0}, want = {0};
			struct err err;

			assert_int_equal(merkle_inclusion(&s, i, n, &p, &err), 0);
			path(i, 0, n, &want);
			assert_int_equal(p.n, want.n);
			assert_memory_equal(p.hash, want.hash, p.n * 32);
			assert_true(holds(&leaves[i], i, n, merkle_proof_view(&p), &root));
			no_other_inclusion(i, n, &p, &root);
		}
	}
}

static void
no_other_consistency(size_t m, size_t n, struct merkle_proof *p, const struct merkle_hash *was,
	const struct merkle_hash *is)
{
	uint8_t *b = (uint8_t *)p->hash;
	struct merkle_hash other = *was;

	for (size_t bit = m % 256; bit < p->n * 256;
		bit += (n % 100 == 0 && m % 16 == 0 ? 1 : 251)) {
		b[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_false(merkle_consistency_ok(m, was, n, is, merkle_proof_view(p)));
		b[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	other.b[m % 32] ^= 0x80;
	assert_false(merkle_consistency_ok(m, &other, n, is, merkle_proof_view(p)));
	other = *is;
	other.b[m % 32] ^= 0x80;
	if (m != 0)
		assert_false(merkle_consistency_ok(m, was, n, &other, merkle_proof_view(p)));
	assert_false(merkle_consistency_ok(m, was, n, is, view_of(p->hash, p->n * 32 + 32)));
	assert_false(merkle_consistency_ok(m, was, n, is, view_of(p->hash, p->n * 32 + 7)));
	if (p->n != 0)
		assert_false(
			merkle_consistency_ok(m, was, n, is, view_of(p->hash, p->n * 32 - 32)));
	/* Nothing shrinks, and of one size there is one root. */
	if (m != n)
		assert_false(merkle_consistency_ok(n, is, m, was, merkle_proof_view(p)));
	assert_false(merkle_consistency_ok(n, is, n, &other, view_of(NULL, 0)));
}

static void
every_consistency(void **state)
{
	(void)state;
	for (size_t n = 0; n <= SIZES; n++) {
		struct merkle_source s = {node, &n};
		struct merkle_hash is = mth(0, n);

		for (size_t m = 0; m <= n; m++) {
			struct merkle_proof p = {0}, want = {0};
			struct merkle_hash was = mth(0, m);
			struct err err;

			assert_int_equal(merkle_consistency(&s, m, n, &p, &err), 0);
			if (m != 0)
				subproof(m, 0, n, true, &want);
			assert_int_equal(p.n, want.n);
			assert_memory_equal(p.hash, want.hash, p.n * 32);
			assert_true(merkle_consistency_ok(m, &was, n, &is, merkle_proof_view(&p)));
			no_other_consistency(m, n, &p, &was, &is);
		}
	}
}

static void
what_cannot_be_proved_is_refused(void **state)
{
	size_t n = 5;
	struct merkle_source s = {node, &n};
	struct merkle_proof p;
	struct err err;

	(void)state;
	assert_int_equal(merkle_inclusion(&s, 5, 5, &p, &err), -ERANGE);
	assert_int_equal(merkle_inclusion(&s, 0, 0, &p, &err), -ERANGE);
	assert_int_equal(merkle_consistency(&s, 6, 5, &p, &err), -ERANGE);
	assert_false(holds(&leaves[0], 0, 0, view_of(NULL, 0), &leaves[0]));
	assert_false(holds(&leaves[0], UINT64_MAX, UINT64_MAX, view_of(NULL, 0), &leaves[0]));
}

static void
a_tile_has_all_nodes(void **state)
{
	static struct tile t;
	struct merkle_hash root = tile_fill(&t, leaves, TILE_WIDTH), want = mth(0, TILE_WIDTH);

	(void)state;
	assert_memory_equal(root.b, want.b, 32);
	for (unsigned low = 0; low < TILE_HEIGHT; low++)
		for (size_t i = 0; i < (size_t)TILE_WIDTH >> low; i++) {
			want = mth(i << low, (size_t)1 << low);
			assert_memory_equal(tile_node(&t, low, i)->b, want.b, 32);
		}
	assert_ptr_equal(tile_node(&t, 0, 0), &t.node[0]);
	assert_ptr_equal(tile_node(&t, TILE_HEIGHT - 1, 1), &t.node[TILE_NODES - 1]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_roots),
		cmocka_unit_test(growing_gives_all_roots_and_nodes),
		cmocka_unit_test(every_inclusion),
		cmocka_unit_test(every_consistency),
		cmocka_unit_test(what_cannot_be_proved_is_refused),
		cmocka_unit_test(a_tile_has_all_nodes),
	};

	return cmocka_run_group_tests(tests, make_leaves, NULL);
}
