/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dialer's own table: where it connects to at all. Read once at the start from the sealed memory file that the configuration compiler made
 * (its form: docs/decisions/0003-actions.md). No message adds to it.
 */
#pragma once

#include "class.h"

enum { ORIGINS_MAX = 512, ORIGINS_BYTES_MAX = 262144 };

struct origin {
	char host[HOST_NAME_MAX_BYTES + 1]; /* lower case, or the canonical text of an address */
	uint16_t port;
	bool literal; /* address holds: it is dialled and nothing is resolved */
	bool exact;   /* it is the row's own, so it need not be public */
	struct address address;
};

struct origins {
	struct origin *row; /* owned */
	size_t n;
};

/* From a canonical document. -EINVAL with what is wrong; nothing of it holds then. */
int origins_read(struct view document, struct origins *ret, struct err *err) MUST_CHECK;

/* From the memory file: seals are tested, then all of it is read. */
int origins_load(int fd, struct origins *ret, struct err *err) MUST_CHECK;
void origins_done(struct origins *o);

/* NULL: it is no origin. */
const struct origin *origins_find(const struct origins *o, struct view host, uint16_t port);
