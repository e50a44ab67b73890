/* SPDX-License-Identifier: Apache-2.0 */
/* The gateway of one sandbox: what main.c puts together, and what the files of this room work on. */
#pragma once

#include "lib/base/buf.h"
#include "lib/base/list.h"
#include "lib/egress/rules.h"
#include "lib/ipc/peer.h"

struct names;
struct ca;
struct roots;
struct verdicts;
struct allotment;
struct upstreams;

struct gateway {
	struct ev_loop *loop;                      /* owned */
	struct ipc_peer *supervisor;               /* owned; only read */
	struct ipc_peer *engine, *dialer, *broker; /* owned; NULL: there is none now */
	struct link listeners;                     /* of struct listener (accept.c) */
	size_t nlisteners;
	int reserve;        /* owned: a descriptor to give up when there is none for a connection */
	struct link askers; /* of struct asker (dns_serve.c): connections that ask by TCP */
	size_t naskers;
	struct link held; /* of struct held: questions that wait for the engine */
	size_t nheld;
	bool begun; /* GATEWAY_BEGIN came: from here on it is one sandbox's */
	struct id sandbox;
	uint8_t *document; /* owned: the bytes of the policy */
	struct policy policy;
	struct names *names; /* owned: names.h */
	struct ca *ca;       /* owned: ca.h; NULL: its policy has no intercepted rule */
	struct buf certificate, keystore; /* of it, as GATEWAY_READY says; empty without one */
	struct roots *roots;              /* owned: roots.h */
	struct verdicts *verdicts;        /* owned: verdict.h */
	struct allotment *allotment;      /* owned: allotment.h */
	struct upstreams *upstreams;      /* owned: upstream.h */
	struct link conns;                /* of struct conn (conn.c) */
	size_t nconns;
	uint64_t leases; /* that were asked for: tags of brokered.c */
	bool over;       /* its task was revoked: no server is asked any more */
	int exit;
};
