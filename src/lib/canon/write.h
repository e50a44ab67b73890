/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing one canonical document (profile.h) into a buffer, piece by piece. The engine
 * writes audit records with it, the relay writes proposals.
 *
 * Order and shape are the caller's own and held by must(): keys in ascending order, a key
 * before each value of an object and only there, one value at the top, ends that match.
 * Data can come from strangers and is refused: the writer remembers the first refusal,
 * writes nothing more, and canon_end tells it. Check once, at the end.
 */
#pragma once

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/canon/profile.h"

struct canon_level {
	bool object;
	bool some;     /* something was written inside */
	bool keyed;    /* a key waits for its value */
	size_t key_at; /* the last key, as an offset into the buffer */
	size_t key_n;
};

struct canon_writer {
	struct buf *out; /* borrowed; nobody else writes to it before canon_end */
	size_t start;    /* where the document begins in it */
	unsigned depth;  /* of objects and arrays that are open */
	unsigned beyond; /* begun after a refusal; they only count */
	int code;        /* the first refusal, or 0 */
	const char *why; /* literal */
	struct canon_level level[CANON_DEPTH_MAX + 1];
};

/* The document is appended to `out`, whose own ceiling holds as well. */
void canon_begin(struct canon_writer *w, struct buf *out);

/*
 * 0, or -EILSEQ (bad UTF-8 or noncharacter), -EINVAL (control character), -ERANGE
 * (integer), -E2BIG (depth or size), -ENOBUFS (the buffer's ceiling). On failure `out`
 * has again the length it had at canon_begin.
 */
int canon_end(struct canon_writer *w, struct err *err) MUST_CHECK;

void canon_object_begin(struct canon_writer *w);
void canon_object_end(struct canon_writer *w);
void canon_array_begin(struct canon_writer *w);
void canon_array_end(struct canon_writer *w);
void canon_key(struct canon_writer *w, struct view key);

void canon_str(struct canon_writer *w, struct view v);  /* refuses C0 controls */
void canon_text(struct canon_writer *w, struct view v); /* escapes C0 controls */
void canon_int(struct canon_writer *w, int64_t i);
void canon_u64(struct canon_writer *w, uint64_t u);
void canon_bool(struct canon_writer *w, bool b);
void canon_null(struct canon_writer *w);

/* Any bytes, as a string of lower-case hexadecimal digits. */
void canon_bytes_hex(struct canon_writer *w, struct view v);
