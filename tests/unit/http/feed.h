/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs one message through head and body reader, cut into reads in a given way. Shared by the
 * tests of lib/http.
 */
#pragma once

#include "lib/http/body.h"

enum { FEED_BODY = 8192 };

enum feed_end { FEED_PENDING, FEED_DONE, FEED_REFUSED };

struct feed {
	enum feed_end end;
	enum http_reason reason;
	bool in_body;  /* the head was complete */
	size_t used;   /* FEED_DONE: bytes of the message */
	size_t body_n; /* bytes of data handed out */
	uint8_t body[FEED_BODY];
	bool body_odd;
	struct http_head head; /* its views point into the input */
};

struct feed_side {
	enum http_side side;
	enum http_method asked;
	bool switch_asked;
};

/* Reads end at `first`, then at every further `step` bytes. */
void feed_run(struct feed *ret, const struct feed_side *side, const struct http_limits *limits,
	struct view input, size_t first, size_t step);

/*
 * Whole, at every single cut, and byte by byte; the verdicts must be one and the same, which is
 * in *ret.
 */
void feed_all(struct feed *ret, const struct feed_side *side, const struct http_limits *limits,
	struct view input, const char *id);
