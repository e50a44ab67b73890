/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection of a client: bytes in, requests one after another, answers out in one write each. Its life is
 * conn.fsm. Everything that comes in is hostile; every wait has a deadline, every buffer a ceiling (limits.def).
 * What a request may do with its connection stands in request.h; the functions below are for request.c.
 */
#pragma once

#include "lib/http/body.h"
#include "request.h"

enum conn_state {
#define STATE(name, prose) CONN_##name,
#define EVENT(name, prose)
#define STEP(from, event, to)
#include "conn.fsm"
#undef STATE
#undef EVENT
#undef STEP
	CONN_STATES
};

enum conn_event {
#define STATE(name, prose)
#define EVENT(name, prose) CONN_ON_##name,
#define STEP(from, event, to)
#include "conn.fsm"
#undef STATE
#undef EVENT
#undef STEP
	CONN_EVENTS
};

struct conn {
	struct link link;      /* in api->conns */
	struct link held_link; /* in api->held, or alone */
	struct api *api;       /* borrowed */
	int fd;                /* owned; -1 when it is gone */
	bool local;
	uint32_t uid;         /* of a local peer; for counting, the engine reads it itself */
	int caller_at;        /* in api->locals; -1: it has not asked without a token yet */
	struct caller caller; /* of the last request: whom what is held is counted for */
	enum conn_state state;
	bool keep;       /* the current request lets the connection live on */
	bool held;       /* a handler does not want more bytes now */
	bool ended;      /* the peer will not send any more */
	bool working;    /* conn_work is running */
	bool shut;       /* our side is shut down */
	size_t lingered; /* bytes read and dropped since */
	ev_io readable, writable;
	ev_timer deadline;
	struct buf in, out;
	size_t out_at;  /* bytes of out that were sent */
	size_t charged; /* bytes held for it, as counted last */
	struct http_limits limits;
	struct http_scan scan;
	struct http_head head; /* scratch of the scan */
	struct http_body body;
	struct request *request; /* owned; NULL between requests */
};

/* Takes fd. Nothing happens when there is no memory: the connection is closed. */
void conn_new(struct api *api, int fd, bool local, uint32_t uid);
void conn_close(struct conn *c);

/*
 * Counts anew what is held for this connection: answer, body, what the handler says (req->held). False when that is more
 * than all callers, or this one, may have: whoever grows something asks, and gives it up and refuses then.
 */
bool conn_fits(struct conn *c);

/* Requests of the same caller that are under way now, this one included. */
unsigned conn_of_caller(const struct conn *c);

/* The state that follows; a pair that conn.fsm does not list is a bug of ours. */
enum conn_state conn_next(enum conn_state state, enum conn_event event);
void conn_step(struct conn *c, enum conn_event event);

/* Sends what is in c->out as far as the socket takes it. The connection may be gone afterwards. */
void conn_flush(struct conn *c);

/* The request has its answer in c->out: it is released, and the connection goes on or ends. */
void conn_answered(struct conn *c);

/* Goes on with what was read already: after c->held was lifted. */
void conn_work(struct conn *c);

/*
 * Goes on with the connections whose work waits for the engine, oldest first. Requests do not begin, and their bytes are not
 * read, while the engine has more of us to read than it should (ask_room): callers then wait in the kernel's buffers.
 */
void conn_resume_held(struct api *api);
