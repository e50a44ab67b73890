/* SPDX-License-Identifier: Apache-2.0 */
/* What the ledger knows, in memory: fed with each entry in its order by ledger.c only, asked through ledger.h. */
#pragma once

#include "broker/ledger.h"
#include "broker/map.h"

struct index {
	struct map proposal, execution, key; /* of struct spent */
	struct map receipt;                  /* of struct spent; provider NUL account NUL receipt */
	struct map revoked;                  /* not NULL: it is */
	struct map released;                 /* the same, by digest of the release */
	struct map accepted;                 /* of uint64_t: when */
	struct map contained;                /* of bool */
	struct spent *first;                 /* owned: all, newest first */
	uint64_t epoch;
};

void index_init(struct index *x);
void index_done(struct index *x);

/*
 * The entry is at this place of the file. -EBADMSG: it contradicts what came before. -ENOMEM. index_check tells before it is
 * written.
 */
int index_check(const struct index *x, const struct entry *e, struct err *err) MUST_CHECK;
int index_add(
	struct index *x, const struct entry *e, uint64_t at, size_t n, struct err *err) MUST_CHECK;

/* The name of a receipt in the index. */
void index_receipt_key(
	struct buf *b, struct view provider, struct view account, struct view receipt);

/* The member `reference` of a receipt, by which a provider tells effects apart; empty: it has none. */
struct view receipt_id(struct view receipt);
