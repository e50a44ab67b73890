/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checks that only the broker can make (own catalogue's request, its ledger), as the bits that lib/approval puts in their place in the
 * order of lib/action/check.def, and the whole of them for one record.
 */
#pragma once

#include "broker/broker.h"

#include "lib/action/record.h"
#include "lib/action/request.h"

struct record_check {
	struct broker *b;
	struct view record;
	const char *proposal; /* of the message, in text */
	/* The result. */
	struct buf room; /* owned */
	struct proposal_record r;
	const struct operation *op; /* NULL: unknown */
	uint8_t digest[SHA256_BYTES];
	uint64_t failed; /* AUTHORITY_BIT of what was found */
};

/* Reads the record and finds what fails. `dispatch`: single use too. check_done in any case. */
void check_record(struct record_check *c, bool dispatch);
void check_done(struct record_check *c);

/* What authority_* is asked with. */
struct authority_ask check_ask(const struct record_check *c);
