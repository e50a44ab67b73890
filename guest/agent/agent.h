/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent itself: its channel, its epoll instance, its jobs, and the outputs that nobody wants any more.
 * One object, made by main.c, handed to all.
 */
#pragma once

#include "drop.h"
#include "limits.h"
#include "oom.h"
#include "propose.h"
#include "watch.h"

#include "lib/base/list.h"
#include "lib/channel/channel.h"

struct agent {
	struct watches watches;
	struct watch channel;
	struct channel_in in;
	struct channel_out out;
	struct link jobs; /* of struct job, live */
	struct link
		dead; /* of struct job, freed at the end of the turn: a stale event must find memory */
	size_t njobs;
	uint32_t last_stream;
	struct watch sinks[AGENT_SINKS];
	size_t next_sink;
	struct oom oom;
	struct propose propose; /* programs that ask for an action */
	struct drop drop;       /* what a child must give up */
	bool trusts;            /* TRUST came: jobs find trust.def in their environment */
	bool purge; /* a reaper was killed: end all orphans, they cannot be told apart any more */
};

/* How the agent ends; the kernel kills the rest of the sandbox. */
enum agent_exit {
	AGENT_CLOSED = 0,
	AGENT_NO_START = 1,
	AGENT_BAD_FRAME = 2,
};

/* serve.c: takes all complete frames. A frame that breaks the table does not return. */
void serve_frames(struct agent *a);
