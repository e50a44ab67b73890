/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection of a program of the sandbox, in conn.fsm: a proxy request or a name that its address said, then TLS or not, then requests one
 * after the other, or a tunnel. Pipeline and order: docs/decisions/0004-egress.md.
 */
#pragma once

#include "gateway.h"

/* Where a program connected to. */
struct meant {
	bool proxy;       /* the explicit proxy: the first request says where to */
	struct view name; /* borrowed from names.h for ever; empty: an address that is no name's */
	char address[ADDRESS_TEXT]; /* that it dialled, for the record */
	uint16_t port;
};

/* Takes fd, always. A connection that no rule can take is told so or closed, and recorded. */
void conn_new(struct gateway *g, int fd, const struct meant *to);

/* All, at once (the end). */
void conns_end(struct gateway *g);
