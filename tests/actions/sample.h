/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A catalogue for tests, as the configuration compiler would write it: `note` (draft, nobody approves), `order_status` (read), `refund`
 * (irreversible, cents in EUR, reads the order first, two people above 1000.00) and `reply` (external). All of one provider,
 * "shop" at http://provider.test:PORT, account acct_1, environment test, secret shop-key.
 */
#pragma once

#include "lib/action/operation.h"
#include "lib/base/buf.h"

#include <stdint.h>

enum { SAMPLE_OPERATIONS = 4 };

/* The document of an operation, appended; NULL-terminated names are in the table above. */
void sample_document(const char *name, uint16_t port, struct buf *out);

/* All four in a memfd with every seal. */
int sample_catalogue_fd(uint16_t port);

/* Any bytes in a memfd with these seals (F_SEAL_...); for catalogues that must be refused. */
int sample_fd(struct view bytes, int seals);
