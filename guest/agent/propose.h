/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two sockets on which programs of the sandbox ask for an action (propose) or for the answer of a read (read). One connection
 * is one request: the program writes a JSON document of at most 32 KiB, shuts its writing end and reads one JSON object. Here it is
 * bytes: they go to the relay as they come, and its answer back. Documented for programs in docs/guide/propose.md.
 */
#pragma once

#include "watch.h"

#include "lib/base/list.h"
#include "lib/base/view.h"

#include <stddef.h>
#include <stdint.h>

struct agent;

enum {
	PROPOSE_SOCKETS = 2,
};

struct propose {
	struct watch listener[PROPOSE_SOCKETS]; /* fd -1: /run is not writable in this template */
	struct link askers, dead; /* of struct asker; dead ones are freed at the end of the turn */
	size_t n;
	uint64_t last_number;
};

/* Before the first job, while /run is still nobody's but ours. A template without a writable /run has no sockets. */
void propose_open(struct agent *a);

/* main.c: events, what is due, and the end of a turn. */
void propose_accept(struct agent *a, struct watch *listener);
void asker_ready(struct agent *a, struct watch *w);
void propose_due(struct agent *a, uint64_t now_ms);
void propose_sweep(struct agent *a);
uint64_t propose_next_due_ms(const struct agent *a);

/* serve.c: false when nobody asked under this number. */
bool propose_answered(struct agent *a, uint64_t number, struct view answer) MUST_CHECK;
