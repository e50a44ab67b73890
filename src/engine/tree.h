/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree of RFC 6962 over all audit records of the host in their order: leaf N is the digest of the record with seq N + 1. It grows inside
 * the transaction of its record and shrinks back when that is undone. Memory holds the nodes that are needed to go on; full tiles are in
 * the store, written with the record that filled them.
 *
 * That a record still has the digest that its leaf was made of, nobody tests here: `demilune audit verify` does, over everything it is shown.
 */
#pragma once

#include "engine/engine.h"
#include "lib/tlog/tile.h"

struct tree;

/* At start: made anew from the store, whose tiles must fit together. -EUCLEAN. */
int tree_open(struct engine *e, struct err *err) MUST_CHECK;
void tree_close(struct tree *t);

uint64_t tree_size(const struct tree *t);
struct merkle_hash tree_root(const struct tree *t);

/* One more record, inside the open transaction. */
int tree_add(
	struct engine *e, const uint8_t digest[static SHA256_BYTES], struct err *err) MUST_CHECK;

/* Nodes for proofs over what is committed; not inside a transaction that added to it. Valid until the next tree_add. */
struct merkle_source tree_source(struct engine *e);
