/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A proposal as a person sees it: the bytes that the daemon sent, digested and rendered here. What the daemon says about them (their
 * digest, the operation's document) is tested against these bytes before anything is shown.
 */
#pragma once

#include "cli/verbs.h"
#include "lib/action/record.h"

struct proposal {
	char id[ID_TEXT];
	json_t *answer; /* owned: what the daemon said */
	bool changed; /* its operation is another by now: shown as bytes, and nobody can sign it */
	bool has_record;  /* without: it never became one, and nothing below is filled */
	struct buf bytes; /* owned: the record */
	struct buf room, document;
	struct buf text; /* owned: the display */
	struct proposal_record record;
	struct operation op;
	uint8_t digest[SHA256_BYTES];
};

/* GET, which decides nothing. -EBADMSG: the daemon contradicts itself. */
int proposal_get(struct cli *cli, const char *id, struct proposal *ret, struct err *err) MUST_CHECK;
void proposal_done(struct proposal *p);

static inline void
proposal_cleanup(struct proposal *p)
{
	proposal_done(p);
}
#define auto_proposal __attribute__((cleanup(proposal_cleanup)))

/* The display, below it and apart the model's own words, the state and who decided so far. */
void proposal_print(const struct proposal *p, FILE *out);

/* State, denial and sentence of an answer, one line each. */
void proposal_print_state(const json_t *answer, FILE *out);
