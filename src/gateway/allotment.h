/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this sandbox may still use of its task's budgets: slices, lent by the engine. Nothing is used that was not lent; while the engine is
 * away what is lent still may be.
 */
#pragma once

#include "gateway.h"

enum allotment_of {
	OF_NAMES,
	OF_CONNECTIONS,
	OF_HANDSHAKES,
	OF_REQUESTS,
	OF_BROKERED,
	OF_BYTES_OUT,
	OF_BYTES_IN,
	OF_MAX
};

struct allotment *allotment_new(struct gateway *g);
void allotment_free(struct allotment *a);

/* False: there is no more (QUOTA), or not yet: allotment_coming(). Asks the engine for more in time. */
bool allotment_take(struct gateway *g, enum allotment_of of, uint64_t n) MUST_CHECK;

/*
 * A name that only a pattern of the policy takes (its labels could carry data) is counted once in a sandbox, whoever says it: a question, or a
 * proxy request. From then on it has an address. False: as above. Addresses are no names.
 */
bool allotment_name(struct gateway *g, struct view name) MUST_CHECK;

/* How much of n can be taken now. */
uint64_t allotment_left(struct gateway *g, enum allotment_of of, uint64_t n);

/* More may come of what could not be taken: conns_wake() says when to try again. The caller does not wait for ever. */
bool allotment_coming(const struct gateway *g);

/* ALLOTMENT came; the engine is gone, or is back. */
void allotment_set(struct gateway *g, const struct msg_allotment *m);
void allotment_engine(struct gateway *g, bool there);
