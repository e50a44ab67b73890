/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections to servers: asked of the dialer, verified where the rule speaks TLS, kept for the next request of the same (rule, name, port) when
 * the last one ended cleanly. Of one sandbox only: the process is.
 */
#pragma once

#include "gateway.h"
#include "stream.h"

struct upstream {
	struct link link;
	struct gateway *g;     /* borrowed */
	struct stream *stream; /* owned */
	uint16_t rule, port;
	char name[HOST_NAME_MAX_BYTES + 1];
	char address[ADDRESS_TEXT];
	bool used;       /* it carried a request before */
	ev_tstamp until; /* in the pool */
};

struct upstreams *upstreams_new(struct gateway *g);
void upstreams_free(struct upstreams *u);

/*
 * One to use: reason NONE with `up` owned by the receiver, who gives its stream events of his own (stream_give()), or why not with a sentence. From the loop, or at
 * once: then upstream_get() returns NULL. fresh: not one that was used before. The name must outlive the ask.
 */
typedef void upstream_done_fn(
	void *owner, enum egress_reason reason, struct upstream *up, const char *text);
struct upstream_ask;
struct upstream_ask *upstream_get(struct gateway *g, uint16_t rule, struct view name, uint16_t port,
	bool fresh, upstream_done_fn *done, void *owner);
void upstream_forget(struct upstream_ask *a);

/* Back into the pool, or closed with a reset, so that a request that was cut can never look complete. */
void upstream_put(struct gateway *g, struct upstream *up, bool reusable);

/* The stream alone; the rest is released. */
struct stream *upstream_stream_take(struct upstream *up);

/* REACHED (takes fd) and REACH_FAILED came; the dialer is gone, or is back. */
int upstream_reached(
	struct gateway *g, uint64_t tag, int fd, const char *address, struct err *err) MUST_CHECK;
int upstream_failed(struct gateway *g, uint64_t tag, enum dial reason, const char *text,
	struct err *err) MUST_CHECK;
void upstreams_dialer(struct gateway *g, bool there);
