/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A name to its addresses, asked of the name servers and of nobody else: no hosts file, no search list, no cache. A and AAAA are asked at the
 * same time, each from a socket, with an id and a mix of cases of its own, and once per server and round. Both must be answered: what was
 * not seen cannot be classified.
 */
#pragma once

#include "dns.h"
#include "proto_gen.h"
#include "servers.h"

#include <ev.h>

struct resolve;

/* addresses: of both kinds, IPv4 first; at most DNS_ADDRESSES_MAX. reason DIAL_CONNECTED: n >= 1; else n is 0 and `text` says why. */
typedef void resolve_done_fn(
	void *owner, enum dial reason, const struct address *address, size_t n, const char *text);

/* Calls `done` once, from the loop, unless it is cancelled before; frees itself. NULL: no memory. */
struct resolve *resolve_new(struct ev_loop *loop, const struct servers *servers, const char *host,
	resolve_done_fn *done, void *owner);
void resolve_cancel(struct resolve *r);
