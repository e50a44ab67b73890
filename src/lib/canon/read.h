/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading canonical bytes (profile.h), one token at a time. It accepts exactly what the
 * writer writes: bytes that say the same in any other form are refused, so two readers
 * can never take one document for two. The engine reads proposals with it, `demilune
 * audit verify` reads exported records. Nothing is allocated and nothing recurses.
 *
 * A refusal is final: the reader gives the same answer again. A document is accepted
 * only when CANON_END came; what was read before must not have had any effect.
 */
#pragma once

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/canon/profile.h"

enum canon_type {
	CANON_OBJECT_BEGIN,
	CANON_OBJECT_END,
	CANON_ARRAY_BEGIN,
	CANON_ARRAY_END,
	CANON_KEY,
	CANON_STR,
	CANON_INT,
	CANON_BOOL,
	CANON_NULL,
	CANON_END, /* the whole document was read, and nothing stands behind it */
};

struct canon_token {
	enum canon_type type;
	struct view raw; /* KEY: the key. STR: between the quotes. Borrowed from the document */
	bool escaped;    /* STR: raw has escapes, use canon_token_text */
	bool controls;   /* STR: has C0 controls; for schemas that allow them in some fields */
	int64_t i;       /* INT */
	bool b;          /* BOOL */
};

struct canon_read_level {
	bool object;
	bool some;       /* something was read inside */
	bool keyed;      /* a key was read, its value comes next */
	struct view key; /* the last key */
};

struct canon_reader {
	struct view in; /* borrowed; must outlive the reader and its tokens */
	size_t at;
	bool controls;
	unsigned depth;
	int code; /* the refusal, or 0 */
	const char *why;
	struct canon_read_level level[CANON_DEPTH_MAX + 1];
};

/* `controls`: strings may have escaped C0 controls. */
void canon_reader_init(struct canon_reader *r, struct view in, bool controls);

/* 0, or -EINVAL (not the canonical form), -EILSEQ, -ERANGE, -E2BIG as in write.h. */
int canon_next(struct canon_reader *r, struct canon_token *ret, struct err *err) MUST_CHECK;

/* As canon_next, and the token must be of this type, else -EINVAL. */
int canon_want(struct canon_reader *r, enum canon_type type, struct canon_token *ret,
	struct err *err) MUST_CHECK;

/* The next token must be this key. */
int canon_want_key(struct canon_reader *r, const char *key, struct err *err) MUST_CHECK;

/* Reads over one whole value. */
int canon_skip(struct canon_reader *r, struct err *err) MUST_CHECK;

/* The text of a STR token, without its escapes, appended to `out`. */
void canon_token_text(const struct canon_token *t, struct buf *out);

/* Is this one canonical document? */
int canon_check(struct view in, bool controls, struct err *err) MUST_CHECK;
