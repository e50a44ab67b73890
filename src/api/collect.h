/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One output stream of a command in bounded memory: its head and its tail, the middle counted. Fed with bytes by
 * offset, in order; what was left out before (by the relay) and what is left out here look the same.
 */
#pragma once

#include "lib/base/buf.h"
#include "lib/json/out.h"

struct collect {
	struct buf head, tail;
	size_t half;        /* each of them at most so much (the tail twice while it is filled) */
	uint64_t seen;      /* offset behind the last byte */
	uint64_t tail_from; /* offset of the first byte of the tail */
};

void collect_init(struct collect *c, size_t limit_bytes);
void collect_done(struct collect *c);
void collect_add(struct collect *c, uint64_t offset, struct view data);
void collect_gap(struct collect *c, uint64_t from, uint64_t to);

/*
 * Members of the open object: "<name>" as text (U+FFFD for what is not UTF-8, a marker line where bytes are
 * missing), "<name>_base64" with the kept bytes when they were not UTF-8, "<name>_bytes" {seen, kept, dropped, head}.
 */
void collect_out(
	const struct collect *c, const char *name, uint64_t seen_by_relay, struct json_out *o);

/* A view without the 1 to 3 bytes at its end that begin a character that does not end in it. */
struct view utf8_whole(struct view v);

/* "<key>": base64 of the bytes, RFC 4648 with padding. */
void base64_out(struct json_out *o, const char *key, struct view v);
