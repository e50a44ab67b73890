/* SPDX-License-Identifier: Apache-2.0 */
/* The relay of one sandbox: started unused, bound to its sandbox by the channel whose other end the agent gets. */
#pragma once

#include "lib/base/err.h"

#include <sys/types.h>

struct relay {
	pid_t pid;
	int pidfd;   /* owned; -1: none */
	int channel; /* owned: the agent's end, until it was given away */
	int engine;  /* owned: the engine's end of RELAY_ENGINE, until it was given away */
	int edge;    /* owned: our end of SUPERVISOR_RELAY; only written */
};

#define RELAY_NONE ((struct relay){.pidfd = -1, .channel = -1, .engine = -1, .edge = -1})

int relay_start(struct relay *r, const char *program, uint32_t uid, struct err *err) MUST_CHECK;

/* The agent's end was given away: the relay may count on hearing from it. */
int relay_agent_starts(struct relay *r, struct err *err) MUST_CHECK;

/* A fresh RELAY_ENGINE edge: tells the relay, returns the engine's end, owned by the caller. */
int relay_engine_edge(struct relay *r, struct err *err) MUST_CHECK;

/* Closes all; kills and waits for the process if it still runs. */
void relay_end(struct relay *r);
