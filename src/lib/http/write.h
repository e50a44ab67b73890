/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing heads and whole answers into a bounded buffer. Everything that leaves is made here from
 * parsed parts; no byte of a peer's head is ever copied through. A name, value, target or phrase
 * that the reader (head.h) would refuse is refused, so no caller can inject a line or a second
 * framing.
 *
 * Errors stick: write all, then look at the result of http_write_end once. On failure the buffer is
 * as long as it was before, so half a head never leaves.
 */
#pragma once

#include "lib/base/buf.h"
#include "lib/http/head.h"

struct http_write {
	struct buf *out; /* borrowed */
	size_t start;    /* where the head begins in it */
	enum http_side side;
	unsigned status;
	unsigned hosts, framings;
	bool bad;
};

/* "METHOD target HTTP/1.1". */
void http_write_request(
	struct http_write *w, struct buf *out, enum http_method method, struct view target);

/* "HTTP/1.1 status phrase". */
void http_write_response(struct http_write *w, struct buf *out, unsigned status);

/* Not for Content-Length and Transfer-Encoding: the two below write them. */
void http_write_field(struct http_write *w, const char *name, struct view value);
void http_write_field_view(struct http_write *w, struct view name, struct view value);

void http_write_length(struct http_write *w, uint64_t length);
void http_write_chunked(struct http_write *w);

/* The body ends with the connection: "Connection: close". For answers to HTTP/1.0 alone. */
void http_write_until_close(struct http_write *w);

/*
 * The empty line. 0, -EINVAL (something illegal; a request without exactly one Host; two framings;
 * a final answer with a body and no framing) or -ENOBUFS.
 */
int http_write_end(struct http_write *w) MUST_CHECK;

/* A whole answer in one piece: head and body go out in one write (two cost 40 ms with Nagle). */
struct http_answer {
	unsigned status;
	const char *type; /* Content-Type; NULL: none */
	struct view body;
	bool head_only;                 /* the request was HEAD: the length without the body */
	bool close;                     /* say Connection: close */
	const struct http_field *field; /* more fields */
	size_t fields;
};

int http_write_answer(struct buf *out, const struct http_answer *a) MUST_CHECK;
