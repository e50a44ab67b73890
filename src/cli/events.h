/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reader of text/event-stream as lib/http/sse.h writes it: bare LF, comments, at most one event line and one
 * data line per event. Anything else is refused. Pieces may be cut anywhere.
 */
#pragma once

#include "lib/base/buf.h"
#include "lib/base/err.h"

enum { EVENTS_NAME_MAX = 31 };

struct events {
	struct buf line; /* the current line so far */
	struct buf data;
	char name[EVENTS_NAME_MAX + 1];
	bool has_data, told;
};

void events_init(struct events *e);
void events_done(struct events *e);

static inline void
events_cleanup(struct events *e)
{
	events_done(e);
}
#define auto_events __attribute__((cleanup(events_cleanup)))

/*
 * 1: e->name ("" = none) and e->data are the next event, until the next call; 0: *in is used up; -EBADMSG,
 * -EMSGSIZE. *in moves forward.
 */
int events_next(struct events *e, struct view *in, struct err *err) MUST_CHECK;
