/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is to be written to one side, in order: what its stream does not take at once waits here. So that a head and the body behind it leave in
 * one write, bytes can be added first and flushed then.
 */
#pragma once

#include "lib/base/buf.h"
#include "stream.h"

struct outbox {
	struct stream *stream; /* owned by whoever has the outbox */
	struct buf bytes;
	size_t at;       /* sent of them */
	bool waits;      /* some were not taken */
	ev_tstamp moved; /* when the stream last took some, or had none to take */
};

void outbox_init(struct outbox *o, struct stream *s, ev_tstamp now);
void outbox_done(struct outbox *o); /* not the stream */
/* Nothing is to be written any more, and to no stream. */
void outbox_clear(struct outbox *o);

static inline size_t
outbox_left(const struct outbox *o)
{
	return o->bytes.n - o->at;
}

/* Where to add. */
struct buf *outbox_buf(struct outbox *o);

/* Writes what can be written. 0, or negative: the stream failed (it says so itself), or more waits than may. */
int outbox_flush(struct outbox *o, ev_tstamp now) MUST_CHECK;

/* `v` behind all else, at once as far as possible. As outbox_flush. */
int outbox_put(struct outbox *o, struct view v, ev_tstamp now) MUST_CHECK;
