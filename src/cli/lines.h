/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes in pieces to lines without their newline; a line has a bound, and the last one must end. */
#pragma once

#include "lib/base/buf.h"
#include "lib/base/err.h"

struct lines {
	struct buf line;
	bool told;
};

void lines_init(struct lines *l, size_t max);
void lines_done(struct lines *l);

static inline void
lines_cleanup(struct lines *l)
{
	lines_done(l);
}
#define auto_lines __attribute__((cleanup(lines_cleanup)))

/* 1: *ret is the next line, until the next call; 0: *in is used up; -EMSGSIZE. *in moves forward. */
int lines_next(struct lines *l, struct view *in, struct view *ret, struct err *err) MUST_CHECK;

/* 0, or -EBADMSG when there is a line without its end. */
int lines_end(const struct lines *l, struct err *err) MUST_CHECK;
