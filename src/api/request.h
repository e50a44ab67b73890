/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One request and its one answer. A handler (route.def) is called when head and, if it is collected, body are
 * complete. It returns negative with a row of errors.def (-ERROR_*) and a sentence to refuse at once; else it has answered,
 * or will, by exactly one of: request_answer, request_json, request_nothing, request_refuse, request_stream_begin ...
 * request_stream_end, request_socket. The request is released with its answer; functions say so by "ends".
 *
 * Views of a request live as long as it does. All bytes are of a stranger.
 */
#pragma once

#include "api.h"
#include "ask.h"
#include "lib/base/sha256.h"
#include "lib/http/head.h"
#include "lib/http/query.h"
#include "lib/json/out.h"

struct conn;
struct job;
struct request;
struct route;

enum { REQUEST_ARGS = 3, REQUEST_ID_MAX = 64, REQUEST_KEY_MAX = 255 };

/* What a handler that stays with the connection wants to be told; any may be NULL. */
struct request_ops {
	void (*feed)(struct request *req, struct view piece); /* the next bytes of the body */
	void (*feed_end)(struct request *req);                /* the body is complete */
	void (*socket)(
		struct request *req, uint8_t *p, size_t n); /* bytes of a WebSocket, all of them */
	void (*drained)(struct request *req);               /* the peer took what was queued */
	void (*tick)(struct request *req);                  /* see request_timer */
	void (*revoked)(struct request *req, struct view text); /* see request_check */
	void (*gone)(struct request *req);                      /* release `own`; always called */
};

struct request {
	struct api *api;   /* borrowed */
	struct conn *conn; /* borrowed */
	const struct route *route;
	struct caller caller;
	char id[REQUEST_ID_MAX + 1];   /* echoed or made; safe characters */
	struct view arg[REQUEST_ARGS]; /* what stood for {...} in the path, decoded */
	size_t nargs;
	struct http_params params;
	uint8_t *texts;                    /* owned: the memory of arg and params */
	uint64_t length;                   /* announced length of the body; 0 when it is chunked */
	bool chunked;                      /* the body has no announced length */
	bool chunks_ok;                    /* HTTP/1.1: an answer may be streamed */
	bool streaming;                    /* the head of the answer is out */
	bool checking;                     /* request_check asks */
	bool ndjson;                       /* Accept names application/x-ndjson */
	char accept_key[32];               /* of a WebSocket handshake; "" = none */
	enum http_reason socket_refusal;   /* why it is none */
	unsigned allow;                    /* methods that the path has, when it has not this one */
	uint8_t key[SHA256_BYTES];         /* digest of caller and Idempotency-Key; zero = none */
	uint8_t body_digest[SHA256_BYTES]; /* of route and body; zero without a key */
	size_t held;     /* bytes that handler and JSON hold beside text and body */
	struct buf body; /* a collected body */
	void *json;      /* owned json_t: what the fields borrow from */
	void *fields;    /* owned: struct body_<name> of the route, NULL without one */

	struct link asks;              /* questions to the engine */
	struct id last;                /* of a list: the row after which the next page begins */
	struct job *job;               /* owned; NULL = none */
	void *own;                     /* of the handler; released by ops->gone */
	const struct request_ops *ops; /* NULL until a handler sets it */
	ev_timer timer;
	struct buf text;     /* the answer under way ... */
	struct json_out out; /* ... and its writer */
};

/* Fills what comes from the head. A refusal sets *err (-ERROR_*) and leaves a request that can be answered. */
struct request *request_new(struct api *api, struct conn *conn);
int request_begin(struct request *req, const struct http_head *head, struct err *err) MUST_CHECK;
int request_body(struct request *req, struct err *err) MUST_CHECK; /* parses the collected body */
void request_free(struct request *req);

/* Names and numbers in the path and the query. */
int request_id(const struct request *req, size_t arg, const char *prefix, struct id *ret,
	struct err *err) MUST_CHECK;
struct view request_param(const struct request *req, const char *name); /* empty when absent */
bool request_flag(const struct request *req, const char *name);         /* 1 or true */
int request_number(const struct request *req, const char *name, uint64_t absent, uint64_t max,
	uint64_t *ret, struct err *err) MUST_CHECK;
int request_mode(
	const struct request *req, uint32_t absent, uint32_t *ret, struct err *err) MUST_CHECK;

/* Whether it has an Idempotency-Key; a refusal where one would promise what is not kept. */
bool request_keyed(const struct request *req);
int request_unkeyed(const struct request *req, const char *why, struct err *err) MUST_CHECK;

/* Opens req->text for a JSON answer and returns its writer. */
struct json_out *request_out(struct request *req);
void request_json(struct request *req, unsigned status); /* sends req->text; ends */
void request_answer(
	struct request *req, unsigned status, const char *type, struct view body); /* ends */
void request_nothing(struct request *req);                                         /* 204; ends */
void request_refuse(struct request *req, enum error error, uint32_t retry_after_ms,
	struct view text);                     /* ends */
void request_refuse_full(struct request *req); /* too much is held; nothing was begun; ends */
void request_fail(struct request *req, const struct err *err); /* code -ERROR_*; ends */
void request_refuse_status(
	struct request *req, unsigned status, const char *code, const struct err *err); /* ends */

/* True when it was a refusal, which was passed on: the request has ended. */
bool request_refused(struct request *req, const struct answer *answer);

/* As request_refuse, with an object that is open in req->text and gets the error's fields added; ends. */
void request_refuse_with(
	struct request *req, enum error error, enum denial denial, struct view text);

/* A streamed answer: type, then pieces (each one chunk, flushed), then the end. `field` is one more header or NULL. */
int request_stream_begin(struct request *req, unsigned status, const char *type,
	const struct http_field *field, struct err *err) MUST_CHECK;
void request_stream_add(struct request *req, struct view piece);
void request_stream_end(struct request *req); /* ends */
void request_stream_abort(struct request
		*req); /* closes without the last chunk: the peer sees that it is cut; ends */

/* One event of an SSE stream whose data is the object in req->text (ASCII); a heartbeat. */
int request_events_begin(struct request *req, const struct id *job, struct err *err) MUST_CHECK;
struct json_out *request_event_out(struct request *req);
void request_event(struct request *req, const char *name);
void request_heartbeat(struct request *req);

/* The 101; after it bytes go to ops->socket and out by request_socket_send. */
int request_socket(struct request *req, struct err *err) MUST_CHECK;
void request_socket_send(struct request *req, struct view frames);
void request_socket_end(struct request *req); /* after a close frame was sent; ends */

/* Calls ops->tick every so many ms; 0 stops. */
void request_timer(struct request *req, uint64_t ms);

/*
 * Asks whether the caller may still ask: a token that was revoked or that expired must not keep what it opened. If not,
 * ops->revoked is called, which ends the request. For whoever lasts: at every heartbeat.
 */
void request_check(struct request *req);

/*
 * The connection broke while something was sent: the request is released with the end of this loop turn and must not be
 * answered any more. To be asked after every request_stream_add, request_event and request_socket_send.
 */
bool request_gone(const struct request *req);

size_t request_backlog(const struct request *req); /* bytes that the peer has not taken */
void request_hold(struct request *req, bool held); /* stops reading of body or socket */

extern const char request_full[];

#define refuse(err, ERR, ...) err_set(err, -ERROR_##ERR, __VA_ARGS__)

/* Asks on behalf of a request; its function gets the request as owner. */
#define REQUEST_ASK(req, fn, err, NAME, name, ...) \
	ASK((req)->api, &(req)->asks, fn, req, err, NAME, name, __VA_ARGS__)
