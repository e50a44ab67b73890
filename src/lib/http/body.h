/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Message bodies: a decoder for the four framings and a writer of chunks.
 *
 * The decoder eats from the front of the caller's view and hands out pieces of it (borrowed,
 * never copied). A chunk line is hex digits (at most 16), extensions of tokens only (at most 64
 * bytes, dropped), CRLF; data end in CRLF; trailers are checked, counted (at most 4 KiB) and
 * dropped, never merged into the head. More data than the maximum is refused before the first
 * byte of the chunk that would pass it. A body that is cut off is refused: end it with
 * http_body_close.
 */
#pragma once

#include "lib/base/buf.h"
#include "lib/http/head.h"

struct http_body {
	enum http_framing framing;
	unsigned state;       /* enum in body.c */
	bool extension_value; /* behind the '=' of an extension */
	bool odd;             /* there were extensions or trailers: see http_head.odd */
	unsigned digits;      /* of the current chunk size */
	unsigned extension;   /* bytes of extension in this chunk line */
	size_t extensions;    /* ... and in all of them */
	size_t trailer;       /* bytes of trailers */
	uint64_t left;        /* bytes of data before the next decision */
	uint64_t total;       /* bytes of data handed out */
	uint64_t max;
	enum http_reason reason;
};

/* For the body that `head` announces; max as http_limits.body_bytes. Not for HTTP_BODY_TUNNEL. */
void http_body_init(struct http_body *b, const struct http_head *head, uint64_t max);

enum http_body_event {
	HTTP_BODY_MORE,    /* *in is eaten up, the body goes on */
	HTTP_BODY_DATA,    /* *ret_data is the next piece, not empty */
	HTTP_BODY_END,     /* the body is complete; *in is what follows it */
	HTTP_BODY_REFUSED, /* b->reason; stays so */
};

enum http_body_event http_body_next(
	struct http_body *b, struct view *in, struct view *ret_data) MUST_CHECK;

/* The peer closed: HTTP_FINE when the body is complete (or ends by closing), else TRUNCATED. */
enum http_reason http_body_close(struct http_body *b) MUST_CHECK;

/* "1a\r\n" for n > 0 bytes of data into ret; returns its length. "\r\n" follows the data. */
enum { HTTP_CHUNK_HEAD = 18 };
size_t http_chunk_head(size_t n, char ret[static HTTP_CHUNK_HEAD]);

/* One chunk with its data; nothing for empty data, which would end the body. */
void http_chunk_add(struct buf *out, struct view data);

/* The last chunk, without trailers. */
void http_chunk_end(struct buf *out);
