/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signed heads of the tree. The engine asks, the broker signs what it is shown to continue the last one. A head is asked for every 256
 * records, at the latest 2 s after a record, at a task's close, and before the first dispatch of a turn of the loop.
 *
 * A dispatch does not wait for the answer: CHECKPOINT_ASK goes over the same edge in front of EXECUTE, the broker has the head signed, stored
 * and copied before it reads the next message, and carries nothing out while the last head that it was shown was not one to sign.
 */
#pragma once

#include "lib/base/list.h"
#include "lib/tlog/note.h"

#include <ev.h>

struct engine;
struct msg_broker_ready;

struct checkpoints {
	uint64_t
		asked; /* the size of the newest head that the broker has, or will have when it answers what it was asked */
	uint64_t signed_size;
	char note[NOTE_MAX + 1]; /* of signed_size; "" = none yet */
	unsigned turn;           /* of the loop, in which one was asked for before a dispatch */
	uint32_t mirrors_failed; /* as told last */
	ev_timer timer;
	struct link waiters; /* of struct waiter */
};

void checkpoint_init(struct engine *e);

/* A record was added. */
void checkpoint_due(struct engine *e);
/* In the next turn, whatever the time. */
void checkpoint_soon(struct engine *e);
/* Of what is committed, in front of what is sent to the broker next. */
void checkpoint_before(struct engine *e);

/* A broker came, with this as its newest head. */
void checkpoint_told(struct engine *e, const struct msg_broker_ready *m);
/* It begins a new line (the next epoch): its first head continues nothing. */
void checkpoint_line(struct engine *e);
