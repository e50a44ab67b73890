/* SPDX-License-Identifier: Apache-2.0 */
/* Head and tail of an output stream; see store.h. */
#include "store.h"

#include "lib/base/attr.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_BYTES = 4096 };

void
store_init(struct store *s, struct store_budget *budget, size_t head_max, size_t ring_max)
{
	*s = (struct store){.budget = budget, .head_max = head_max, .ring_max = ring_max};
}

void
store_done(struct store *s)
{
	s->budget->used -= s->head_cap + s->ring_cap;
	free(s->head);
	free(s->ring);
	s->head = s->ring = NULL;
	s->head_n = s->head_cap = s->ring_n = s->ring_cap = s->ring_at = 0;
	s->head_closed = true;
	s->ring_max = 0;
}

static bool
budget_take(struct store_budget *b, size_t n)
{
	while (n > b->max - b->used)
		if (!b->make_room(b->owner))
			return false;
	b->used += n;
	return true;
}

/* The next capacity for n bytes in all: doubled, at most max. */
static size_t
grown(size_t cap, size_t n, size_t max)
{
	if (cap < FIRST_BYTES)
		cap = FIRST_BYTES;
	while (cap < n)
		cap *= 2;
	return cap > max ? max : cap;
}

static bool
head_grow(struct store *s, size_t n)
{
	size_t cap = grown(s->head_cap, n, s->head_max);
	uint8_t *p;

	if (n <= s->head_cap)
		return true;
	if (!budget_take(s->budget, cap - s->head_cap))
		return false;
	p = realloc(s->head, cap);
	if (p == NULL) {
		s->budget->used -= cap - s->head_cap;
		return false;
	}
	s->head = p;
	s->head_cap = cap;
	return true;
}

/* Makes room for n bytes in all, as far as the ring may grow; its bytes are in order then. */
static void
ring_grow(struct store *s, size_t n)
{
	size_t cap = grown(s->ring_cap, n < s->ring_max ? n : s->ring_max, s->ring_max), first;
	uint8_t *p;

	if (n <= s->ring_cap || s->ring_cap == s->ring_max)
		return;
	if (!budget_take(s->budget, cap - s->ring_cap))
		return;
	p = malloc(cap);
	if (p == NULL) {
		s->budget->used -= cap - s->ring_cap;
		return;
	}
	if (s->ring_n > 0) {
		first = s->ring_cap - s->ring_at < s->ring_n ? s->ring_cap - s->ring_at : s->ring_n;
		memcpy(p, s->ring + s->ring_at, first);
		memcpy(p + first, s->ring, s->ring_n - first);
	}
	free(s->ring);
	s->ring = p;
	s->ring_cap = cap;
	s->ring_at = 0;
}

static void
ring_add(struct store *s, struct view v)
{
	size_t end, first;

	ring_grow(s, s->ring_n + v.n);
	if (s->ring_cap == 0)
		return;
	if (v.n > s->ring_cap)
		v = view_skip(v, v.n - s->ring_cap);
	if (s->ring_n + v.n > s->ring_cap) {
		size_t lost = s->ring_n + v.n - s->ring_cap;

		s->ring_at = (s->ring_at + lost) % s->ring_cap;
		s->ring_n -= lost;
	}
	end = (s->ring_at + s->ring_n) % s->ring_cap;
	first = s->ring_cap - end < v.n ? s->ring_cap - end : v.n;
	memcpy(s->ring + end, v.p, first);
	memcpy(s->ring, v.p + first, v.n - first);
	s->ring_n += v.n;
}

void
store_add(struct store *s, struct view v)
{
	size_t n = s->head_max - s->head_n < v.n ? s->head_max - s->head_n : v.n;

	s->seen += v.n;
	if (!s->head_closed && n > 0 && head_grow(s, s->head_n + n)) {
		memcpy(s->head + s->head_n, v.p, n);
		s->head_n += n;
		v = view_skip(v, n);
	}
	if (v.n == 0)
		return;
	s->head_closed = true;
	ring_add(s, v);
}

struct view
store_at(const struct store *s, uint64_t from, uint64_t *ret_gap_end)
{
	uint64_t start = s->seen - s->ring_n;
	size_t skip, at, n;

	must(from < s->seen);
	if (from < s->head_n)
		return view_of(s->head + from, s->head_n - (size_t)from);
	if (from < start) {
		*ret_gap_end = start;
		return view_of(NULL, 0);
	}
	skip = (size_t)(from - start);
	at = (s->ring_at + skip) % s->ring_cap;
	n = s->ring_n - skip;
	return view_of(s->ring + at, s->ring_cap - at < n ? s->ring_cap - at : n);
}
