/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine's tree in a real store: over commits, transactions that are undone (short ones, and ones that filled tiles), and starts, it is always the tree
 * over the records that are there. And what it costs.
 */
#include "engine/audit.h"
#include "engine/tree.h"
#include "lib/base/clock.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

enum { MOST = 70000 };

static struct engine engine;
static char dir[64];
static struct merkle naive;
static struct merkle_hash *leaves; /* of what is committed */

static int
begin(void **state)
{
	struct err err;

	(void)state;
	(void)snprintf(dir, sizeof(dir), "/tmp/demilune-tree-XXXXXX");
	assert_non_null(mkdtemp(dir));
	assert_int_equal(chdir(dir), 0);
	engine = (struct engine){.loop = ev_loop_new(EVFLAG_AUTO)};
	engine.engine_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	checkpoint_init(&engine);
	engine.store = store_open(engine.loop, engine.engine_fd, &err);
	assert_non_null(engine.store);
	assert_int_equal(tree_open(&engine, &err), 0);
	naive = (struct merkle){0};
	leaves = calloc(MOST, sizeof(*leaves));
	assert_non_null(leaves);
	return 0;
}

static int
end(void **state)
{
	static const char *const files[] = {STORE_FILE, STORE_FILE "-wal", STORE_FILE "-shm"};

	(void)state;
	store_close(engine.store);
	tree_close(engine.tree);
	ev_loop_destroy(engine.loop);
	free(leaves);
	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		(void)unlink(files[i]);
	(void)close(engine.engine_fd);
	assert_int_equal(chdir("/"), 0);
	return rmdir(dir);
}

static void
again(void)
{
	struct err err;

	tree_close(take_ptr(engine.tree));
	if (tree_open(&engine, &err) < 0)
		fail_msg("%s", err.text);
}

/* The digest of the last record, as the store has it. */
static struct merkle_hash
last_leaf(void)
{
	auto_query struct query q = query_of(engine.store, Q_AUDIT_DIGESTS);
	uint8_t digest[32];
	struct err err;

	arg_u64(&q, tree_size(engine.tree) - 1);
	assert_int_equal(query_one(&q, &err), 0);
	col_digest(&q, digest);
	return merkle_leaf(view_of(digest, 32));
}

static void
transaction(unsigned records, bool commit)
{
	const struct audit_event ev = {
		.event = "engine.start", .tenant = "", .who = &principal_engine};
	struct merkle before = naive;
	auto_tx struct tx tx = {0};
	struct err err;

	assert_int_equal(tx_begin(&tx, engine.store, &err), 0);
	for (unsigned i = 0; i < records; i++) {
		struct merkle_hash leaf;

		assert_int_equal(audit_append(&engine, &ev, &err), 0);
		leaf = last_leaf();
		assert_true(naive.size < MOST);
		leaves[naive.size] = leaf;
		(void)merkle_add(&naive, &leaf);
	}
	if (commit)
		assert_int_equal(tx_commit(&tx, &err), 0);
	else
		naive = before;
}

static void
is_the_same(void)
{
	struct merkle_hash is = tree_root(engine.tree), want = merkle_root(&naive);

	assert_int_equal(tree_size(engine.tree), naive.size);
	assert_memory_equal(is.b, want.b, 32);
}

static void
proves(uint64_t from, uint64_t leaf)
{
	const struct merkle_source nodes = tree_source(&engine);
	struct merkle_hash root = tree_root(engine.tree), was;
	struct merkle part = {0};
	struct merkle_proof p;
	struct err err;

	for (uint64_t i = 0; i < from; i++)
		(void)merkle_add(&part, &leaves[i]);
	was = merkle_root(&part);
	assert_int_equal(merkle_consistency(&nodes, from, naive.size, &p, &err), 0);
	assert_true(merkle_consistency_ok(from, &was, naive.size, &root, merkle_proof_view(&p)));
	assert_int_equal(merkle_inclusion(&nodes, leaf, naive.size, &p, &err), 0);
	assert_true(
		merkle_inclusion_ok(&leaves[leaf], leaf, naive.size, merkle_proof_view(&p), &root));
}

static void
it_is_the_tree_of_what_is_there(void **state)
{
	static const unsigned sizes[] = {1, 2, 3, 250, 7, 256, 1, 255, 257, 300, 1, 511, 700, 5};

	(void)state;
	for (unsigned round = 0; round < 4; round++)
		for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
			transaction(sizes[(i + round) % ARRAY_LEN(sizes)], false);
			is_the_same();
			if (naive.size != 0)
				proves(naive.size / 3, naive.size / 2);
			transaction(sizes[i], true);
			is_the_same();
			transaction(sizes[(i + 5) % ARRAY_LEN(sizes)], false);
			proves(naive.size - 1, naive.size - 1);
			if (i % 3 == 0) {
				again();
				is_the_same();
			}
			proves(naive.size / 2, 0);
		}
}

/* Over the first tile of height 1, where a tile of height 0 and one of height 1 fill at once; undone, and then for good. */
static void
two_tiles_fill_at_once(void **state)
{
	uint64_t took, records = 65530;

	(void)state;
	took = clock_mono_us();
	for (uint64_t i = 0; i < records; i += 10)
		transaction(10, true);
	took = clock_mono_us() - took;
	(void)printf("# %.2f us per record with its row\n", (double)took / (double)records);
	took = clock_mono_us();
	for (uint32_t i = 0; i < 65536; i++) {
		struct merkle_hash leaf = merkle_leaf(view_of(&i, sizeof(i)));
		static struct merkle m;

		(void)merkle_add(&m, &leaf);
	}
	(void)printf(
		"# %.2f us per leaf of the tree alone\n", (double)(clock_mono_us() - took) / 65536);
	for (unsigned i = 0; i < 3; i++) {
		transaction(20, false);
		is_the_same();
		proves(65000, 65529);
	}
	transaction(20, true);
	is_the_same();
	proves(65536, 65536);
	proves(65535, 3);
	took = clock_mono_us();
	again();
	(void)printf("# %.1f ms at start for %lu records\n", (double)(clock_mono_us() - took) / 1e3,
		(unsigned long)naive.size);
	is_the_same();
	proves(65537, 65535);
	transaction(300, true);
	is_the_same();
	took = clock_mono_us();
	for (uint64_t i = 0; i < 100; i++) {
		const struct merkle_source nodes = tree_source(&engine);
		struct merkle_proof p;
		struct err err;

		assert_int_equal(
			merkle_consistency(&nodes, naive.size - 256 - i, naive.size, &p, &err), 0);
	}
	(void)printf("# %.1f us per proof of 256 more records\n",
		(double)(clock_mono_us() - took) / 100);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(it_is_the_tree_of_what_is_there, begin, end),
		cmocka_unit_test_setup_teardown(two_tiles_fill_at_once, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
