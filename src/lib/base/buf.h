/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growing byte buffer with a ceiling. Every buffer has a maximum given at init; an
 * append that would pass it (or that finds no memory) marks the buffer as failed and
 * changes nothing, and so does every later append: check once, at the end.
 */
#pragma once

#include "lib/base/attr.h"
#include "lib/base/view.h"

struct buf {
	uint8_t *p;  /* owned */
	size_t n;    /* bytes in use */
	size_t cap;  /* bytes allocated */
	size_t max;  /* never more than this */
	bool failed; /* an append did not fit */
};

void buf_init(struct buf *b, size_t max);
void buf_done(struct buf *b);

static inline void
buf_cleanup(struct buf *b)
{
	buf_done(b);
}
#define auto_buf __attribute__((cleanup(buf_cleanup)))

void buf_add(struct buf *b, const void *p, size_t n);
void buf_add_view(struct buf *b, struct view v);
void buf_add_str(struct buf *b, const char *s);
void buf_add_byte(struct buf *b, uint8_t c);
void buf_addf(struct buf *b, const char *fmt, ...) PRINTF(2, 3);

/* Room for n more bytes at the end, or NULL; after filling it say buf_grew(b, used). */
uint8_t *buf_room(struct buf *b, size_t n);
void buf_grew(struct buf *b, size_t n);

/* Drops n bytes at the front. */
void buf_drop(struct buf *b, size_t n);

/* Empties it, keeps the memory, clears `failed`. */
void buf_clear(struct buf *b);

/* 0, or -ENOBUFS when an append did not fit. */
int buf_check(const struct buf *b) MUST_CHECK;

static inline struct view
buf_view(const struct buf *b)
{
	return view_of(b->p, b->n);
}
