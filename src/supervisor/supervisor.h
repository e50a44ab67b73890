/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor: what main.c puts together, and what serve.c works on. */
#pragma once

#include "lib/ipc/peer.h"
#include "supervisor/cgroup.h"
#include "supervisor/compile.h"
#include "supervisor/room.h"
#include "supervisor/sandbox.h"

/* A sandbox that ended while no engine listened. */
struct ended {
	struct link link;
	struct msg_gone gone;
};

/* A sandbox of an earlier run. */
struct leftover {
	struct id sandbox, task;
	struct proof proof;
};

/* The compilers that run after SIGHUP. */
enum { RELOAD_OPERATIONS, RELOAD_POLICIES, RELOADS };

struct reload {
	struct compile compile;
	ev_io said;
	bool done; /* without a fault */
	struct supervisor *owner;
};

struct supervisor {
	struct ev_loop *loop; /* owned */
	struct settings settings;
	uint8_t boot[SHA256_BYTES]; /* random, of this run */
	char tag[17];               /* of the parents of its control groups */
	int state, run, stage,
		templates_dir;     /* owned: directories; templates_dir is handed to templates */
	bool run_made;             /* the run directory was not there before */
	int lock, run_lock, local; /* owned: lock files, listening socket */
	struct programs programs;
	struct cgroups cgroups;
	struct slots slots;
	struct journal journal;
	struct templates templates;
	struct sandboxes sandboxes;

	struct member members[MEMBER_MAX];
	struct ipc_peer *engine_peer; /* owned; NULL while there is none */

	int operations, origins;   /* owned: the compiled catalogue and its origins, sealed; -1 */
	struct revisions policies; /* owned: what new sandboxes get */
	struct reload reload[RELOADS];
	ev_timer reload_late;
	int empty; /* owned: a directory with nothing in it, in the run directory; -1 */
	int broker_state, trust; /* owned: directories; -1 */

	ev_timer edges_timer; /* edges that dialer or broker had no room for are given again */
	uint64_t edges_since_ms;

	struct link ended;          /* owned: of struct ended */
	struct leftover *leftovers; /* owned */
	size_t nleftovers;

	ev_signal term, interrupt, hangup;
	ev_timer stop_timer;
	uint64_t stop_ms;
	bool stopping, engine_stopped;
};
