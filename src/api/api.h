/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process: what all its files share. One instance, made by main.c, alive until the process ends.
 */
#pragma once

#include "lib/ipc/peer.h"
#include "limits.h"

struct listener {
	ev_io readable;
	struct api *api; /* borrowed */
	bool local;      /* a Unix socket: the engine is told of who calls (local.h) */
};

/* A caller at the local socket, see local.h. */
struct local {
	unsigned refs; /* 0: free */
	uint32_t uid;
	int fd;    /* borrowed of its connection; -1: that has ended */
	bool told; /* to this engine */
};

struct api {
	struct ev_loop *loop;
	struct ipc_peer *engine;     /* owned; NULL while the engine is being restarted */
	struct ipc_peer *supervisor; /* owned; brings the new engine's edge */
	uint64_t next_tag; /* of the next question; never used again, also not after a restart */
	struct link asks;  /* of struct ask */
	struct link conns; /* of struct conn, oldest activity first */
	struct link repls; /* of struct repl */
	unsigned nconns, nconns_tcp, nrepls;
	size_t held_bytes; /* sum of `charged` of all connections */
	struct local locals[LIMIT_LOCALS];
	struct listener local, tcp;
	bool has_tcp;
	ev_timer repl_reaper;
	ev_timer edge; /* runs while there is no engine; at its end neither side was restarted */
	struct link
		held; /* of struct conn by `held_link`: work that waits until the engine took more */
	int status;   /* of the process at its end */
	ev_signal term, intr;
};
