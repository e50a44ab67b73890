/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges of host uids, one per sandbox (and per spare). A range is given out again only after its
 * sandbox was proved gone, and as late as possible: the search goes round.
 */
#pragma once

#include "lib/base/err.h"

#include <stdint.h>

struct slots {
	uint8_t *used; /* owned; one byte per slot */
	uint32_t n, next, base;
};

int slots_init(struct slots *s, uint32_t base, uint32_t n, struct err *err) MUST_CHECK;
void slots_done(struct slots *s);

/* The number of a free slot. -EAGAIN when all are taken. */
int slot_take(struct slots *s, uint32_t *ret, struct err *err) MUST_CHECK;
void slot_give(struct slots *s, uint32_t slot);

/* First host uid of the slot. */
uint32_t slot_uid(const struct slots *s, uint32_t slot);
