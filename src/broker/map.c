/* SPDX-License-Identifier: Apache-2.0 */
/* See map.h. */
#include "broker/map.h"

#include <errno.h>
#include <sys/random.h>

enum { SLOTS_FIRST = 64 };

struct map_slot {
	struct map_slot *next; /* owned */
	void *value;           /* borrowed */
	size_t n;
	uint8_t key[];
};

void
map_init(struct map *m)
{
	*m = (struct map){0};
	must(getrandom(&m->seed, sizeof(m->seed), 0) == sizeof(m->seed));
}

void
map_done(struct map *m)
{
	for (size_t i = 0; i < m->slots; i++)
		while (m->slot[i] != NULL) {
			struct map_slot *s = m->slot[i];

			m->slot[i] = s->next;
			free(s);
		}
	free(m->slot);
	*m = (struct map){0};
}

/* FNV-1a from a random start, mixed once more. */
static uint64_t
hash(const struct map *m, struct view key)
{
	uint64_t h = m->seed ^ UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < key.n; i++)
		h = (h ^ key.p[i]) * UINT64_C(0x100000001b3);
	h ^= h >> 33;
	h *= UINT64_C(0xff51afd7ed558ccd);
	return h ^ h >> 33;
}

static struct map_slot *
find(const struct map *m, struct view key)
{
	if (m->slots == 0)
		return NULL;
	for (struct map_slot *s = m->slot[hash(m, key) % m->slots]; s != NULL; s = s->next)
		if (view_eq(view_of(s->key, s->n), key))
			return s;
	return NULL;
}

void *
map_find(const struct map *m, struct view key)
{
	struct map_slot *s = find(m, key);

	return s == NULL ? NULL : s->value;
}

void
map_each(const struct map *m, void (*fn)(struct view key, void *value))
{
	for (size_t i = 0; i < m->slots; i++)
		for (const struct map_slot *s = m->slot[i]; s != NULL; s = s->next)
			fn(view_of(s->key, s->n), s->value);
}

static int
grow(struct map *m)
{
	size_t slots = m->slots == 0 ? SLOTS_FIRST : m->slots * 2;
	struct map_slot **slot = calloc(slots, sizeof(struct map_slot *));

	if (slot == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < m->slots; i++)
		while (m->slot[i] != NULL) {
			struct map_slot *s = m->slot[i];
			size_t at = hash(m, view_of(s->key, s->n)) % slots;

			m->slot[i] = s->next;
			s->next = slot[at];
			slot[at] = s;
		}
	free(m->slot);
	m->slot = slot;
	m->slots = slots;
	return 0;
}

int
map_put(struct map *m, struct view key, void *value)
{
	struct map_slot *s = find(m, key);
	size_t at;

	if (s != NULL) {
		s->value = value;
		return 0;
	}
	if (m->n >= m->slots && grow(m) < 0)
		return -ENOMEM;
	s = malloc(sizeof(*s) + key.n);
	if (s == NULL)
		return -ENOMEM;
	at = hash(m, key) % m->slots;
	*s = (struct map_slot){.next = m->slot[at], .value = value, .n = key.n};
	if (key.n != 0)
		memcpy(s->key, key.p, key.n);
	m->slot[at] = s;
	m->n++;
	return 0;
}
