/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection of a program of the sandbox, in conn.fsm: a proxy request or a name that its address said, then TLS or not, then requests one
 * after the other, or a tunnel. Pipeline and order: docs/decisions/0004-egress.md.
 */
#pragma once

#include "gateway.h"
#include "outbox.h"

struct exchange;
struct tunnel;
struct upstream;
struct upstream_ask;
struct verdict_of;
struct verdict_wait;

/* Where a program connected to. */
struct meant {
	bool proxy;       /* the explicit proxy: the first request says where to */
	struct view name; /* borrowed from names.h for ever; empty: an address that is no name's */
	char address[ADDRESS_TEXT]; /* that it dialled, for the record */
	uint16_t port;
};

/* Takes fd, always. A connection that no rule can take is told so or closed, and recorded. */
void conn_new(struct gateway *g, int fd, const struct meant *to);

/* All, at once (the end). */
void conns_end(struct gateway *g);

/* There is more of a budget: who waits for it tries again. */
void conns_wake(struct gateway *g);

/* ---- for the files that a connection is made of: proxy, exchange, request, answer, brokered, through ---- */

enum conn_state {
#define STATE(name, prose) CONN_##name,
#define EVENT(name, prose)
#define STEP(from, event, to)
#include "conn.fsm"
#undef STATE
#undef EVENT
#undef STEP
	CONN_STATES,
};

enum conn_event {
#define STATE(name, prose)
#define EVENT(name, prose) CONN_ON_##name,
#define STEP(from, event, to)
#include "conn.fsm"
#undef STATE
#undef EVENT
#undef STEP
	CONN_EVENTS,
};

struct conn {
	struct link link;
	struct gateway *g; /* borrowed */
	enum conn_state state;
	struct outbox out;         /* to the program; its stream is owned */
	struct buf in;             /* of the program, not used yet */
	bool calling;              /* inside of a call that may answer at once */
	bool ended;                /* nothing follows from the program */
	bool proxy;                /* what it says is to the explicit proxy, not to a server */
	enum egress_reason doomed; /* no rule takes it: it is read on for the record only */
	struct egress_place at;    /* the name object: name is a view of `name` */
	rule_set rules;            /* that speak of that place */
	char name[HOST_NAME_MAX_BYTES + 1];
	char address[ADDRESS_TEXT]; /* where it goes; before that what was dialled */
	ev_timer timer;
	ev_tstamp due;
	uint16_t rule;              /* of a tunnel */
	enum egress_reason stopped; /* why a tunnel may move no more */
	ev_tstamp held[2];          /* since when it waits for a budget, each way; 0: it does not */
	struct upstream_ask *ask;
	struct verdict_wait *wait;
	struct upstream *up;   /* owned */
	struct tunnel *tunnel; /* owned */
	struct exchange *x;    /* owned; from the first request on */
};

void conn_step(struct conn *c, enum conn_event event);

/* Goes on as far as it can with what there is; then waits for the events of its state. The connection may be closed after it. */
void conn_run(struct conn *c);

/* Closed at once: with a reset, or behind what was written. */
void conn_close(struct conn *c, bool abort);

/* The state may last so long. */
void conn_due(struct conn *c, uint64_t ms);
ev_tstamp conn_now(const struct conn *c);

/* The place that the program means, from a canonical name. Sets the rules; NONE, or why there are none. */
enum egress_reason conn_place(
	struct conn *c, struct view name, uint16_t port, enum egress_scheme scheme);

/* From there: TLS, requests or a tunnel, as the rules of the place speak. */
void conn_open(struct conn *c);

/* A verdict about the connection as such: no request. */
void conn_verdict(const struct conn *c, enum verdict verdict, enum egress_reason reason,
	struct verdict_of *ret);
void conn_drop(struct conn *c, enum egress_reason reason); /* told, and closed without a word */

/* The server is there, its record kept: both streams belong to a tunnel. */
void through_begin(struct conn *c);
/* A tunnel for c->rule: asks for server and record, then through_begin(). Called again while its name waits for a budget. */
void through_ask(struct conn *c);
/* The deadline of what it waits for may have passed. */
void through_late(struct conn *c);

enum { CONN_PIECE = 65536 };
/* Room for one read; used up before the function that reads returns. */
uint8_t *conn_scratch(void);
