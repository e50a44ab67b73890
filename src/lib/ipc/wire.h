/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fields on the wire, big-endian: used by generated code only. A reader that meets something
 * wrong remembers the first fault, reads zeros from then on and tells at wire_end().
 */
#pragma once

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/view.h"

struct wire {
	struct view at;    /* what is left; borrowed from the message */
	const char *fault; /* NULL while all was well */
};

void wire_put_u8(struct buf *b, uint8_t v);
void wire_put_u16(struct buf *b, uint16_t v);
void wire_put_u32(struct buf *b, uint32_t v);
void wire_put_u64(struct buf *b, uint64_t v);

/* Exactly n bytes, padded with NUL; the text must be shorter (a bug of ours otherwise). */
void wire_put_text(struct buf *b, const char *text, size_t n);

/* Length and bytes; more than max, or a str that is not UTF-8 without NUL, fails the buffer. */
void wire_put_str(struct buf *b, struct view v, size_t max);
void wire_put_blob(struct buf *b, struct view v, size_t max);

uint8_t wire_get_u8(struct wire *w);
uint16_t wire_get_u16(struct wire *w);
uint32_t wire_get_u32(struct wire *w);
uint64_t wire_get_u64(struct wire *w);

/* A byte that is less than `limit` (booleans, enums). */
uint8_t wire_get_u8_below(struct wire *w, unsigned limit);
void wire_get_bytes(struct wire *w, uint8_t *ret, size_t n);

/* n bytes: text without NUL, then NULs only, at least one. */
void wire_get_text(struct wire *w, char *ret, size_t n);
struct view wire_get_str(struct wire *w, size_t max);
struct view wire_get_blob(struct wire *w, size_t max);

/* 0 when all was well and nothing is left, else -EBADMSG with the fault. */
int wire_end(struct wire *w, const char *what, struct err *err) MUST_CHECK;
