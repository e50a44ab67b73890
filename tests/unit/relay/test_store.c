/* SPDX-License-Identifier: Apache-2.0 */
/* Head and tail against a model that keeps everything. */
#include "relay/store.h"

#include "lib/base/buf.h"

#include <stdlib.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static bool
no_room(void *owner)
{
	(void)owner;
	return false;
}

/* Reads the stream from `from` on; whatever is there must be what was written, and gaps must be where they may be. */
static void
compare(const struct store *s, struct view all, uint64_t from, uint64_t head, uint64_t tail)
{
	unsigned gaps = 0;

	assert_int_equal(s->seen, all.n);
	while (from < all.n) {
		uint64_t gap_end = 0;
		struct view v = store_at(s, from, &gap_end);

		if (v.n == 0) {
			assert_true(from >= head);
			assert_true(gap_end > from && gap_end <= all.n);
			assert_true(gap_end <= all.n - tail);
			from = gap_end;
			gaps++;
			continue;
		}
		assert_true(v.n <= all.n - from);
		assert_memory_equal(v.p, all.p + from, v.n);
		from += v.n;
	}
	assert_true(gaps <= 1);
}

static void
against_a_model(void **state)
{
	uint32_t x = 12345;

	(void)state;
	for (int round = 0; round < 200; round++) {
		struct store_budget budget = {.max = 1 << 20, .make_room = no_room};
		auto_buf struct buf all = {.max = 1 << 22};
		size_t head = (size_t)(round * 37 % 9000), ring = (size_t)(round * 101 % 20000);
		struct store s;

		store_init(&s, &budget, head, ring);
		for (int i = 0; i < 40; i++) {
			uint8_t piece[4096];
			size_t n, seen;

			x = x * 1664525 + 1013904223;
			n = (x >> 8) % (round % 2 == 0 ? 64 : sizeof(piece)) + 1;
			for (size_t k = 0; k < n; k++)
				piece[k] = (uint8_t)(x >> 16) ^ (uint8_t)(k * 7);
			buf_add(&all, piece, n);
			store_add(&s, view_of(piece, n));
			seen = all.n;
			compare(&s, buf_view(&all), 0, head < seen ? head : seen,
				seen > head && seen - head < ring ? seen - head
				: ring < seen                     ? ring
								  : 0);
			compare(&s, buf_view(&all), seen / 2, head < seen ? head : seen, 0);
		}
		assert_true(store_kept(&s) <= head + ring);
		assert_true(budget.used <= head + ring + 8192);
		store_done(&s);
		assert_int_equal(budget.used, 0);
	}
}

static void
nothing_to_keep(void **state)
{
	struct store_budget budget = {.max = 0, .make_room = no_room};
	struct store s;
	uint64_t gap_end = 0;

	(void)state;
	store_init(&s, &budget, 1000, 1000);
	store_add(&s, view_str("hello"));
	assert_int_equal(s.seen, 5);
	assert_int_equal(store_kept(&s), 0);
	assert_int_equal(store_at(&s, 2, &gap_end).n, 0);
	assert_int_equal(gap_end, 5);
	store_done(&s);
}

static bool
room_once(void *owner)
{
	struct store_budget *budget = owner;

	if (budget->max > 4096)
		return false;
	budget->max = 8192;
	return true;
}

static void
asks_for_room(void **state)
{
	struct store_budget budget = {.max = 4096, .make_room = room_once, .owner = &budget};
	uint8_t data[10000] = {1};
	struct store s;

	(void)state;
	store_init(&s, &budget, 8192, 8192);
	store_add(&s, view_of(data, 8192));
	assert_int_equal(store_kept(&s), 8192);
	store_add(&s, view_of(data, sizeof(data)));
	assert_int_equal(store_kept(&s), 8192); /* no budget for a tail */
	assert_int_equal(s.seen, 18192);
	store_done(&s);
	assert_int_equal(budget.used, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(against_a_model),
		cmocka_unit_test(nothing_to_keep),
		cmocka_unit_test(asks_for_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
