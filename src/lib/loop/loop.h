/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every process adds to libev: the loop itself, and memory that is released only after the events
 * of the current turn were handled (a stale event must not touch a freed object).
 */
#pragma once

#include "lib/base/attr.h"

#include <ev.h>

/* epoll, no environment variables; never NULL (a process without a loop cannot start). Run it with ev_run(). */
struct ev_loop *loop_new(void);

/* Releases what is due, then the loop. */
void loop_free(struct ev_loop *loop);

/* free(p) after this turn. */
void loop_free_later(struct ev_loop *loop, void *p);
