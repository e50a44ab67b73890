/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fake addresses: one for each name that a program asked for, chosen by a keyed hash with linear probing in the pool, never evicted and never
 * reused for another name as long as the sandbox lives. Full is full.
 */
#pragma once

#include "lib/base/err.h"
#include "lib/base/host.h"

struct names;

/* 198.18.0.0/15, or with ipv6 fd00:5eed::/64, of which the low 17 bits count. key: 16 random bytes. */
struct names *names_new(bool ipv6, const uint8_t key[static 16]);
void names_free(struct names *n);

/* The address of this canonical name, the same each time. -ENOSPC: NAMES_MAX (limits.def) are known. */
int names_address(
	struct names *n, struct view name, struct address *ret, struct err *err) MUST_CHECK;

/* This canonical name has an address already. */
bool names_has(const struct names *n, struct view name);

/* Empty view: nobody asked for it. Borrowed, for ever. */
struct view names_find(const struct names *n, const struct address *a);

/* Of the pool at all, whether given out or not. */
bool names_pool_has(const struct names *n, const struct address *a);
size_t names_count(const struct names *n);
