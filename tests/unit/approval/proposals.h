/* SPDX-License-Identifier: Apache-2.0 */
/* Proposal records for the tests, written key by key and not by the code under test. */
#pragma once

#include "lib/base/buf.h"

/* One key of the record instead of the usual one: its canonical bytes; NULL: the key is left out. */
struct instead {
	const char *key, *value;
};

/* refund of 4200 cents in the form of docs/decisions/0003-actions.md; `n` keys are others. "request.url" and so on for members of request. */
void proposal_put(struct buf *out, const struct instead *others, size_t n);

/* The digests that stand in it. */
#define PROPOSAL_SCHEMA  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define PROPOSAL_ADAPTER "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define PROPOSAL_POLICY  "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"

enum { PROPOSAL_ISSUED_S = 1795968784 };
