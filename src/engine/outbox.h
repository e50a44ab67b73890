/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words that must reach the broker: never send this proposal, send nothing for this scope. Written in the transaction of what they
 * follow from, told in order, one at a time, and told again after each start of engine or broker and after a refusal, until it
 * confirms. The broker takes the same word twice.
 */
#pragma once

#include "engine/broker.h"

struct outbox {
	struct engine *engine; /* borrowed */
	struct broker_wait wait;
	bool busy; /* the broker was asked: what follows is the row it was asked about */
	uint64_t seq;
	bool is_revocation;
	struct id proposal;
	char scope[96];
	struct link waiters; /* of struct outbox_waiter */
	ev_timer again;      /* the broker refused it */
};

void outbox_init(struct outbox *o, struct engine *e);

/* Inside the open transaction. */
int outbox_revoke(struct engine *e, const struct id *proposal, struct err *err) MUST_CHECK;
int outbox_contain(struct engine *e, const char *scope, struct err *err) MUST_CHECK;

/* Tells what is not told yet: after each commit that put something. While the broker is away, nothing. */
void outbox_tell(struct engine *e);
/* The same from the beginning: at BROKER_READY. */
void outbox_start(struct engine *e);

/* TOO_LATE: it was sent or is being sent. AWAY: the broker is lost, or did not take it; it is told later. */
enum told { TOLD_DONE, TOLD_TOO_LATE, TOLD_AWAY };

/* Who answers somebody when the word has arrived. */
struct outbox_waiter {
	struct link link;
	struct id proposal;                                    /* of a revocation; else zero */
	char scope[96];                                        /* of a containment; else empty */
	void (*done)(struct outbox_waiter *w, enum told told); /* once; owns *w then */
};
void outbox_wait(struct outbox *o, struct outbox_waiter *w);
