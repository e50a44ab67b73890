/* SPDX-License-Identifier: Apache-2.0 */
/* See outbox.h. Memory of more than a head is given back when it is empty: an idle connection holds little. */
#include "outbox.h"

#include "limits.h"

#include <errno.h>

enum { SMALL = 4096 };

void
outbox_init(struct outbox *o, struct stream *s, ev_tstamp now)
{
	o->stream = s;
	o->at = 0;
	o->waits = false;
	o->moved = now;
	buf_init(&o->bytes, LIMIT_OUTBOX);
}

void
outbox_done(struct outbox *o)
{
	buf_done(&o->bytes);
	o->at = 0;
}

void
outbox_clear(struct outbox *o)
{
	o->stream = NULL;
	buf_clear(&o->bytes);
	o->at = 0;
	o->waits = false;
}

static void
emptied(struct outbox *o)
{
	if (o->bytes.cap > SMALL)
		buf_done(&o->bytes);
	else
		buf_clear(&o->bytes);
	o->at = 0;
}

/* Bytes of v that were taken; negative: failed. */
static ssize_t
write_some(struct outbox *o, struct view v, ev_tstamp now)
{
	size_t put = 0;

	while (put < v.n) {
		ssize_t n = stream_write(o->stream, view_skip(v, put));

		if (n == -EAGAIN)
			break;
		if (n < 0)
			return n;
		put += (size_t)n;
		o->moved = now;
	}
	return (ssize_t)put;
}

int
outbox_flush(struct outbox *o, ev_tstamp now)
{
	ssize_t n;

	if (buf_check(&o->bytes) < 0)
		return -ENOBUFS;
	if (outbox_left(o) == 0)
		return 0;
	if (!o->waits)
		o->moved = now;
	n = write_some(o, view_skip(buf_view(&o->bytes), o->at), now);
	if (n < 0)
		return (int)n;
	o->at += (size_t)n;
	if (outbox_left(o) == 0)
		emptied(o);
	o->waits = outbox_left(o) > 0;
	stream_want_write(o->stream, o->waits);
	return 0;
}

struct buf *
outbox_buf(struct outbox *o)
{
	if (o->at > 0) {
		buf_drop(&o->bytes, o->at);
		o->at = 0;
	}
	return &o->bytes;
}

int
outbox_put(struct outbox *o, struct view v, ev_tstamp now)
{
	ssize_t n = 0;

	if (outbox_left(o) == 0) {
		o->moved = now;
		n = write_some(o, v, now);
		if (n < 0)
			return (int)n;
	}
	v = view_skip(v, (size_t)n);
	if (v.n == 0)
		return 0;
	buf_add_view(outbox_buf(o), v);
	o->waits = true;
	stream_want_write(o->stream, true);
	return buf_check(&o->bytes);
}
