/* SPDX-License-Identifier: Apache-2.0 */
/* A long-lived process beside us: started, watched, started again. */
#pragma once

#include "lib/base/err.h"

#include <ev.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct child {
	const char *noun;     /* for the log */
	struct ev_loop *loop; /* borrowed */
	/* Starts the process: sets pid and pidfd of the child, or fails. */
	int (*start)(struct child *c, struct err *err);
	/* It ended; everything that was shared with it is void. */
	void (*ended)(struct child *c);
	void *owner; /* borrowed */
	pid_t pid;
	int pidfd; /* owned; -1: not running */
	ev_io died;
	ev_timer again;
	ev_timer late; /* it was told to end */
	uint64_t started_ms;
	uint64_t pause_ms;
	uint64_t end_ms; /* how long it may take to end when it is told to */
	bool stopping;   /* it is not started again */
};

void child_init(struct child *c);

/* Starts it; a start that fails is tried again after a pause. */
void child_begin(struct child *c);

/* SIGKILL: it broke the protocol. It is started again. */
void child_kill(struct child *c);

/* SIGTERM, and SIGKILL when that takes too long. It is started again. */
void child_end(struct child *c);

/* Ends it for good: SIGKILL and wait. */
void child_stop(struct child *c);
