/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One request to one provider: a connection from the dialer, used for this request only, and libcurl on it (http.c). Nothing here is ever
 * sent a second time by itself; whoever wants that makes a new call.
 *
 * `permit` is asked once, when the connection stands (TLS too) and the next thing that would leave is the first byte of the request. Only
 * when it says 0 does anything leave: from then on `sent` is true and whatever happens the provider may have acted.
 */
#pragma once

#include "lib/action/request.h"
#include "lib/base/list.h"

#include <curl/curl.h>
#include <ev.h>

struct broker;

enum call_end {
	CALL_NOT_SENT, /* no byte of the request left; `why` says why */
	CALL_ANSWERED, /* a whole answer: status and body */
	CALL_CUT,      /* it was sent, and no whole answer came */
};

struct call {
	struct link link; /* of broker.calls */
	struct broker *b;
	const struct provider *provider; /* borrowed from the catalogue */
	struct request request;          /* owned */
	char key[REQUEST_KEY_MAX + 3];   /* the idempotency header's value; empty: none */

	/* Of a brokered request: zero, or the policy and the rule by which the dialer lets it connect. */
	uint8_t policy[SHA256_BYTES];
	uint16_t rule;

	int (*permit)(struct call *c, struct err *err); /* NULL: nothing stands in its way */
	void (*done)(struct call
			*c); /* once, from the loop, never from call_start; may end in call_free */
	void *owner;         /* borrowed */

	/* The answer. */
	enum call_end end;
	bool denied; /* NOT_SENT, because permit said no */
	bool cut_by_size;
	enum dial dial;  /* NOT_SENT: why there is no connection; CONNECTED: it stood */
	CURLcode result; /* CURLE_OK: libcurl is not why */
	long status;
	uint64_t retry_after_ms; /* 0: it did not say */
	struct buf body;         /* owned; at most provider->response_max */
	uint64_t bytes;          /* out and in */
	uint64_t permitted_us;   /* clock_mono_us at permit; 0: never */
	struct err why;

	/* Inside call.c and http.c. */
	uint64_t number;              /* tag of its DIAL */
	bool dialling, sent, started; /* started: libcurl has it */
	int fd;                       /* owned until libcurl takes it */
	uint64_t head_bytes;
	ev_timer late;
	ev_timer end_soon;
	CURL *easy;                 /* owned */
	struct curl_slist *headers; /* owned; has the credential */
	struct curl_slist *resolve; /* owned */
	char error[CURL_ERROR_SIZE];
};

/*
 * Takes request->url and body (request is empty afterwards). NULL with the sentence: no memory, or the provider's secret or roots are not
 * there. The call begins when the loop runs.
 */
struct call *call_new(struct broker *b, const struct provider *provider, struct request *request,
	struct err *err) MUST_CHECK;
void call_start(struct call *c);

/* Also while it runs: then nothing more is heard of it. */
void call_free(struct call *c);

/* serve.c: what the dialer answered. */
void call_dialed(struct broker *b, uint64_t tag, int fd);
void call_dial_failed(struct broker *b, uint64_t tag, enum dial reason, const char *why);
void call_dialer_lost(struct broker *b);

/* http.c: begins on c->fd; ends in call_ended. */
void http_start(struct call *c);
void http_stop(struct call *c);

/* http.c tells the end. */
void call_ended(struct call *c, enum call_end end);
