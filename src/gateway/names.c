/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fake addresses; see names.h. Where a name lands is a keyed hash, so that a program can neither aim at the address of a name that it did
 * not ask for, nor learn from addresses how many names there are. Nothing is ever taken out.
 */
#include "names.h"

#include "limits.h"

#include "lib/base/sha256.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

enum { POOL_BITS = 17, POOL = 1 << POOL_BITS, KEY_BYTES = 16, FIRST_ROOM = 64 };

struct name {
	uint8_t n;
	char text[]; /* n bytes */
};

struct names {
	bool ipv6;
	uint8_t key[KEY_BYTES];
	size_t n, room;
	struct name **name; /* owned, in the order in which they were asked for */
	uint32_t *place;    /* owned, POOL of them: index of the name, from 1; 0: free */
};

struct names *
names_new(bool ipv6, const uint8_t key[static KEY_BYTES])
{
	struct names *n = calloc(1, sizeof(*n));

	if (n == NULL)
		return NULL;
	must(LIMIT_NAMES < POOL - 2); /* a search ends at a free place */
	n->ipv6 = ipv6;
	memcpy(n->key, key, KEY_BYTES);
	n->place = calloc(POOL, sizeof(*n->place)); /* only pages that are used become memory */
	if (n->place == NULL) {
		free(n);
		return NULL;
	}
	return n;
}

void
names_free(struct names *n)
{
	if (n == NULL)
		return;
	for (size_t i = 0; i < n->n; i++)
		free(n->name[i]);
	explicit_bzero(n->key, sizeof(n->key));
	free(n->name);
	free(n->place);
	free(n);
}

static uint32_t
place_next(uint32_t place)
{
	return (place + 1) & (POOL - 1);
}

/* The first and the last of the pool look like a network and its broadcast to some: they are nobody's. */
static bool
place_reserved(uint32_t place)
{
	return place == 0 || place == POOL - 1;
}

/* Where this name is, or the free place where it belongs. */
static uint32_t
place_of(const struct names *n, struct view name)
{
	uint8_t hash[SHA256_BYTES];
	struct sha256 h;
	uint32_t place;

	sha256_init(&h);
	sha256_add(&h, n->key, sizeof(n->key));
	sha256_add(&h, name.p, name.n);
	sha256_end(&h, hash);
	memcpy(&place, hash, sizeof(place));
	for (place &= POOL - 1;; place = place_next(place)) {
		const struct name *at;

		if (place_reserved(place))
			continue;
		if (n->place[place] == 0)
			return place;
		at = n->name[n->place[place] - 1];
		if (view_eq(view_of(at->text, at->n), name))
			return place;
	}
}

static void
address_at(const struct names *n, uint32_t place, struct address *ret)
{
	struct address a = {0};

	if (n->ipv6) {
		a.family = AF_INET6;
		memcpy(a.b, (const uint8_t[]){0xfd, 0x00, 0x5e, 0xed}, 4);
		a.b[13] = (uint8_t)(place >> 16);
		a.b[14] = (uint8_t)(place >> 8);
		a.b[15] = (uint8_t)place;
	} else {
		a.family = AF_INET;
		a.b[0] = 198;
		a.b[1] = (uint8_t)(18 + (place >> 16));
		a.b[2] = (uint8_t)(place >> 8);
		a.b[3] = (uint8_t)place;
	}
	*ret = a;
}

static int
name_add(struct names *n, struct view name, uint32_t place, struct err *err)
{
	struct name *new;

	if (n->n >= LIMIT_NAMES)
		return err_set(err, -ENOSPC, "%zu names have an address", n->n);
	if (n->n == n->room) {
		size_t room = n->room == 0 ? FIRST_ROOM : n->room * 2;
		struct name **more = reallocarray(n->name, room, sizeof(*more));

		if (more == NULL)
			return err_set(err, -ENOMEM, "no memory");
		n->name = more;
		n->room = room;
	}
	new = malloc(sizeof(*new) + name.n);
	if (new == NULL)
		return err_set(err, -ENOMEM, "no memory");
	new->n = (uint8_t)name.n;
	memcpy(new->text, name.p, name.n);
	n->name[n->n++] = new;
	n->place[place] = (uint32_t)n->n;
	return 0;
}

int
names_address(struct names *n, struct view name, struct address *ret, struct err *err)
{
	uint32_t place;
	int r = 0;

	must(host_name_ok(name));
	place = place_of(n, name);
	if (n->place[place] == 0)
		r = name_add(n, name, place, err);
	if (r == 0)
		address_at(n, place, ret);
	return r;
}

bool
names_has(const struct names *n, struct view name)
{
	return n->place[place_of(n, name)] != 0;
}

struct view
names_find(const struct names *n, const struct address *a)
{
	const uint8_t *end = a->b + (n->ipv6 ? sizeof(a->b) : 4);
	struct address same;
	const struct name *at;
	uint32_t place;

	if (!names_pool_has(n, a))
		return view_of(NULL, 0);
	/* 18 and 19 differ in their last bit, as the high bits of both pools' places do. */
	place = (uint32_t)(end[-3] & 1) << 16 | (uint32_t)end[-2] << 8 | end[-1];
	address_at(n, place, &same);
	if (!address_eq(&same, a) || n->place[place] == 0)
		return view_of(NULL, 0);
	at = n->name[n->place[place] - 1];
	return view_of(at->text, at->n);
}

bool
names_pool_has(const struct names *n, const struct address *a)
{
	static const uint8_t ula[8] = {0xfd, 0x00, 0x5e, 0xed};

	if (n->ipv6)
		return a->family == AF_INET6 && memcmp(a->b, ula, sizeof(ula)) == 0;
	return a->family == AF_INET && a->b[0] == 198 && (a->b[1] & 0xfe) == 18;
}

size_t
names_count(const struct names *n)
{
	return n->n;
}
