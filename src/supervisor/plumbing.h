/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a network namespace gets for a gateway: routes that lead a pool of addresses, or all, to lo, and the sockets that hear there. Made by
 * the clone that becomes the sandbox (inside.c), in its own namespace, as root of the host: the sandbox owns none of it.
 */
#pragma once

#include "lib/base/err.h"
#include "lib/egress/policy.h"

/* Two for DNS, the proxy, and one for each port. */
enum { PLUMBING_SOCKETS_MAX = 3 + POLICY_PORTS_MAX };

struct plumbing {
	bool wanted;                      /* false: nothing at all */
	bool ipv6;                        /* this host has it */
	bool capture;                     /* every address, not the pool only */
	uint16_t ports[POLICY_PORTS_MAX]; /* as in CONFIG_POLICY: 0 behind the last */
};

/* In the namespace of the caller, whose lo is up. */
int plumbing_routes(const struct plumbing *p, struct err *err) MUST_CHECK;

/* All sockets, owned by the caller, in the order of plumbing_socket(); none on failure. */
int plumbing_sockets(
	const struct plumbing *p, int ret[static PLUMBING_SOCKETS_MAX], struct err *err) MUST_CHECK;

/* Which ones there are. */
struct plumbing_socket {
	enum socket_kind kind;
	uint16_t port;
};
size_t plumbing_count(const struct plumbing *p);
struct plumbing_socket plumbing_socket(const struct plumbing *p, size_t i);
