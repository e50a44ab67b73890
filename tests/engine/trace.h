/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches the system calls by which the engine makes something durable and tells others, and can kill it right before one of them: what a
 * crash leaves behind is then exact, and so is the order of fsync and send.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

enum trace_call {
	TRACE_WRITE, /* into the database or its log */
	TRACE_SYNC,
	TRACE_BROKER, /* a message to the broker */
	TRACE_CALLS
};

struct trace {
	pid_t watcher;
	struct trace_log *log; /* shared with it */
};

/* Of kill_at: before the first write after a sync, which is where the second of two transactions is written. */
enum { TRACE_SECOND = 1 << 20 };

/* From now on; kill_at: SIGKILL before its n-th such call of any kind, counted from 1; 0 = never. */
void trace_begin(struct trace *t, pid_t pid, unsigned kill_at);
/* No more; the engine goes on when it lives. */
void trace_end(struct trace *t);

unsigned trace_count(const struct trace *t);
enum trace_call trace_at(const struct trace *t, unsigned i);
bool trace_killed(const struct trace *t);
void trace_free(struct trace *t);
