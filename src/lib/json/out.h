/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing JSON answers into a buffer, piece by piece: api, relay and cli. Shape is the
 * caller's own and held by must(); strings may be any bytes of a stranger.
 *
 * A malformed UTF-8 sequence becomes one U+FFFD, and the writer says that it did so. In
 * ASCII mode everything from U+007F up is written as \u escapes (surrogate pairs), for
 * event streams whose readers guess the charset.
 */
#pragma once

#include "lib/base/buf.h"

enum { JSON_OUT_DEPTH_MAX = 32 };

struct json_out {
	struct buf *b; /* borrowed; its ceiling is the only limit */
	bool ascii;
	bool replaced; /* a U+FFFD was put in somewhere */
	bool keyed;    /* a key waits for its value */
	unsigned depth;
	struct {
		bool object, some;
	} level[JSON_OUT_DEPTH_MAX + 1];
};

void json_out_init(struct json_out *o, struct buf *b, bool ascii);

/* 0, or -ENOBUFS when the buffer was too small for it. The one value must be complete. */
int json_out_end(const struct json_out *o) MUST_CHECK;

void json_out_object_begin(struct json_out *o);
void json_out_object_end(struct json_out *o);
void json_out_array_begin(struct json_out *o);
void json_out_array_end(struct json_out *o);

/* A key of our own (a literal), or of a stranger; that no key comes twice is the caller's. */
void json_out_key(struct json_out *o, const char *key);
bool json_out_key_view(struct json_out *o, struct view key);

/* True when something in it had to be replaced. */
bool json_out_str(struct json_out *o, struct view v);
void json_out_int(struct json_out *o, int64_t i);
void json_out_u64(struct json_out *o, uint64_t u);

/* Thousandths with exactly three decimals: 12345 is 12.345. Milliseconds from microseconds. */
void json_out_fixed3(struct json_out *o, int64_t thousandths);
void json_out_bool(struct json_out *o, bool b);
void json_out_null(struct json_out *o);

/* One whole JSON value that is already written; ASCII if the writer is in ASCII mode. */
void json_out_raw(struct json_out *o, struct view v);

/* A key and its value in one call, for the long lists of an answer. */
void json_out_key_str(struct json_out *o, const char *key, struct view v);
void json_out_key_int(struct json_out *o, const char *key, int64_t i);
void json_out_key_bool(struct json_out *o, const char *key, bool b);
