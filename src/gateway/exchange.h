/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request of a program and its answer: read strictly, judged, put on record, written anew from its parts. One after the other on a connection,
 * each judged alone. Called by conn.c by the state of the connection. Nothing of a request is in any answer of ours but the canonical name.
 *
 * Order (0004): head, place, rules, budget, server, record, bytes. Whoever changes it changes the security of the whole.
 */
#pragma once

#include "conn.h"
#include "verdict.h"

#include "lib/http/body.h"
#include "lib/http/ws_hand.h"

struct exchange {
	/* the request */
	struct http_limits limits;
	struct http_scan scan;
	struct http_head head;
	struct buf text;  /* the bytes that `head` looks into */
	struct buf query; /* decoded parameters */
	struct http_params params;
	struct egress_request request;
	struct egress_decision decision;
	const struct rule *rule; /* that allows it; NULL before */
	uint8_t digest[SHA256_BYTES];
	struct http_body body;
	bool counted;  /* against its budgets */
	bool kept;     /* on record */
	bool complete; /* all of its body went out */
	size_t judged; /* bytes of c->in that are its body, read before a server is asked for */
	ev_tstamp end, heard, window;
	uint64_t window_bytes;
	struct outbox up;                              /* to the server */
	char key[WS_KEY_TEXT], accept[WS_ACCEPT_TEXT]; /* of a WebSocket; empty: none */

	/* the answer */
	struct http_limits answer_limits;
	struct http_scan answer_scan;
	struct http_head answer;
	struct buf answer_text; /* a head that is not complete */
	struct http_interim interim;
	struct http_body answer_body;
	bool any;      /* a byte of it came */
	bool answered; /* its head was written to the program */
	bool chunked;  /* as it is written to the program */
	bool keep;     /* the connection goes on after it */
	bool again;    /* another server connection was tried for it */
	bool dry;      /* there is no budget for its bytes at the moment */
	ev_tstamp dry_since;
	bool switched;      /* a WebSocket is open: the rest is a tunnel's */
	uint64_t passed[2]; /* its bytes, by enum tunnel_way */

	/* brokered */
	uint64_t tag;
	bool sent; /* to the broker */
};

/* With its connection. Its buffers go at once, the rest at the end of the turn: who holds it looks at the connection's state. */
void exchange_end(struct conn *c);

/* The next head is waited for. */
void exchange_expect(struct conn *c);

/* By state: HEAD, ASK, RELAY. True: the state changed, and there may be more to do. */
bool exchange_head(struct conn *c);
bool exchange_ask(struct conn *c);
bool exchange_relay(struct conn *c);

/* The deadline of the state passed; the program is gone; it took bytes. */
void exchange_late(struct conn *c);
void exchange_lost(struct conn *c);
void exchange_room(struct conn *c);
size_t exchange_ahead(const struct conn *c);

/* A verdict about the request. */
void exchange_verdict(const struct conn *c, enum verdict verdict, enum egress_reason reason,
	struct verdict_of *ret);
void exchange_bytes(const struct conn *c, uint64_t out, uint64_t in);

/*
 * The request ends here: told as refused (or, when its record was kept, as aborted), answered when that is still possible, else cut off. `text`
 * for people, or NULL. status 0: the one of the reason.
 */
void exchange_refuse(struct conn *c, enum egress_reason reason, unsigned status, const char *text);

/* For what the codec says. */
void exchange_refuse_http(struct conn *c, enum http_reason no);
/* Told, and cut off on both sides. */
void exchange_cut(struct conn *c, enum egress_reason reason);

/* There is no budget for bytes at the moment. */
void exchange_dry(struct conn *c);

/* Answered: the next request, or the end of the connection. */
void exchange_next(struct conn *c, bool keep);

/* ---- answer.c ---- */

void answer_begin(struct conn *c);
/* Reads of the server what there is and may be. */
void answer_read(struct conn *c);
extern const struct stream_events answer_events;
