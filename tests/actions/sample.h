/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A catalogue for tests, as the configuration compiler would write it: `note` (draft, nobody approves), `order_status` (read), `refund`
 * (irreversible, cents in EUR, reads the order first, two people above 1000.00) and `reply` (external). All of one provider,
 * "shop" at http://provider.test:PORT, account acct_1, environment test, secret shop-key.
 */
#pragma once

#include "lib/action/record.h"
#include "lib/action/request.h"
#include "lib/base/buf.h"

#include <stdint.h>

enum { SAMPLE_OPERATIONS = 4 };

/* A whole proposal record with what it borrows from. */
struct sample_proposal {
	struct proposal_record record;
	struct buf arguments, defaulted, roles;
	struct request request;
	char key[REQUEST_KEY_MAX + 1];
	char proposal[ID_TEXT], task[ID_TEXT], grant[ID_TEXT];
};

/* The document of an operation, appended; NULL-terminated names are in the table above. */
void sample_document(const char *name, uint16_t port, struct buf *out);

/* All four in a memfd with every seal. */
int sample_catalogue_fd(uint16_t port);

/* Any bytes in a memfd with these seals (F_SEAL_...); for catalogues that must be refused. */
int sample_fd(struct view bytes, int seals);

/*
 * What the engine would record of these arguments: epoch 1, tenant acme, sandbox sb_0000000000000000 of uid:1000, issued at `now_ms`; facts and where
 * are left to the caller. The digests of the catalogue are its own.
 */
void sample_proposal(const struct catalogue *c, const char *operation, const char *arguments,
	const struct id *proposal, uint64_t now_ms, struct sample_proposal *ret);
void sample_proposal_done(struct sample_proposal *p);
