/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One descriptor in the epoll instance. An idle watch is taken out rather than kept with no events: EPOLLHUP
 * is told even then, and would spin. It is always taken out before its descriptor is closed: a child that
 * was just forked still holds the same open file, and epoll would go on telling of it.
 */
#pragma once

#include "lib/base/attr.h"

#include <stdbool.h>
#include <sys/epoll.h>

enum watch_kind {
	WATCH_CHANNEL,
	WATCH_REPORT,
	WATCH_STDIN,
	WATCH_STDOUT,
	WATCH_STDERR,
	WATCH_SINK,
	WATCH_LISTENER, /* of programs that ask for an action */
	WATCH_ASKER,    /* one of them */
};

struct job;

struct watches {
	int epoll; /* owned */
};

struct watch {
	enum watch_kind kind;
	int fd; /* owned; -1 when closed */
	uint32_t events;
	struct job *job; /* borrowed: the job that contains this watch, if one does */
};

/* Waits for these events; 0 = none. False when the kernel has no memory for it: try again later. */
bool watch_for(const struct watches *ws, struct watch *w, uint32_t events);
void watch_close(const struct watches *ws, struct watch *w);

/* Moves the descriptor out of the watch. */
int watch_take(const struct watches *ws, struct watch *w);
