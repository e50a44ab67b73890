/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests to the daemon, one connection each, and their answers: whole, as JSON, or in pieces. The daemon is
 * ours, but what comes is read as strictly as a stranger's: every length has a bound, every wait an end.
 */
#pragma once

#include "cli/place.h"
#include "lib/base/buf.h"
#include "lib/http/body.h"
#include "lib/json/parse.h"

struct client {
	struct place place;
	int signals;   /* borrowed signalfd that ends waiting with -EINTR; -1: none */
	int signalled; /* the signal that did it, or 0 */
	/*
	 * What is asked for makes something that only the answer names: the first signal shortens the waiting to
	 * LIMIT_LINGER_MS, and only a second one ends it.
	 */
	bool lingers;
	uint64_t linger_until; /* CLOCK_MONOTONIC; 0: no signal came yet */
	uint64_t patience_ms;  /* until an answer begins; 0: LIMIT_HEAD_MS */
	struct buf
		refusal; /* what the daemon said of the last refusal; safe text, may be longer than an err */
	unsigned refusal_status;
	json_t *refused; /* owned: its object, NULL if it was none */
};

void client_init(struct client *c);
void client_done(struct client *c);

struct exchange;

struct ask {
	enum http_method method;
	struct view target;
	const char *accept; /* NULL: whatever there is */
	const char *type;   /* of the body; NULL: no body */
	struct view body;
	int body_fd; /* used instead of body when body_bytes is not 0 */
	uint64_t body_bytes;
	/* Used instead of both: sends the body by exchange_send, in chunks. */
	int (*feed)(struct exchange *x, void *arg, struct err *err);
	void *arg;
	const char *ws_key; /* asks for a WebSocket */
};

enum { EXCHANGE_READ_BYTES = 65536 };

/* One request and its answer. */
struct exchange {
	struct client *client; /* borrowed */
	int fd;                /* owned */
	struct http_limits limits;
	struct buf head_bytes;
	struct http_head head; /* borrowed from head_bytes */
	struct http_body body;
	uint8_t *room;    /* owned, EXCHANGE_READ_BYTES */
	struct view left; /* bytes of room that were not looked at yet */
};

void exchange_done(struct exchange *x);

static inline void
exchange_cleanup(struct exchange *x)
{
	exchange_done(x);
}
#define auto_exchange __attribute__((cleanup(exchange_cleanup)))

/*
 * Sends and waits for the head of the answer. 0, or negative: -EINTR when a signal came; any status that is not a
 * success is a refusal: -EREMOTEIO with the daemon's sentence in *err and, whole, in c->refusal.
 */
int exchange_open(
	struct client *c, const struct ask *ask, struct exchange *ret, struct err *err) MUST_CHECK;

/* For ask.feed: 0; 1: the daemon answers already, so nothing more is to be sent; negative. */
int exchange_send(struct exchange *x, struct view piece, struct err *err) MUST_CHECK;

/* 1: *ret_piece is the next piece of the body, borrowed until the next call; 0: it is complete. */
int exchange_next(struct exchange *x, struct view *ret_piece, struct err *err) MUST_CHECK;

/* The whole answer as JSON; *ret is NULL when it was empty. The caller owns it. */
int client_json(struct client *c, const struct ask *ask, json_t **ret, struct err *err) MUST_CHECK;

/* As client_json for requests without a body, and with a JSON body that is already written. */
int client_get(struct client *c, struct view target, json_t **ret, struct err *err) MUST_CHECK;
int client_send(struct client *c, enum http_method method, struct view target, struct view body,
	json_t **ret, struct err *err) MUST_CHECK;

/* Appends a text as one segment of a path or one value of a query. */
void target_add(struct buf *out, const char *text);

/* Waits until fd is ready or the deadline (CLOCK_MONOTONIC) is reached; -ETIMEDOUT, -EINTR as above. */
int client_wait(
	struct client *c, int fd, short events, uint64_t deadline_ms, struct err *err) MUST_CHECK;
