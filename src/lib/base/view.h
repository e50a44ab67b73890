/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A view is (pointer, length) of bytes that somebody else owns. No NUL at the end is
 * promised. The owner must outlive the view; functions say when they keep one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct view {
	const uint8_t *p; /* borrowed; may be NULL when n is 0 */
	size_t n;
};

static inline struct view
view_of(const void *p, size_t n)
{
	return (struct view){.p = p, .n = n};
}

static inline struct view
view_str(const char *s)
{
	return view_of(s, strlen(s));
}

static inline bool
view_eq(struct view a, struct view b)
{
	return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static inline bool
view_is(struct view a, const char *s)
{
	return view_eq(a, view_str(s));
}

static inline bool
view_starts(struct view a, const char *s)
{
	size_t n = strlen(s);

	return a.n >= n && memcmp(a.p, s, n) == 0;
}

static inline bool
view_has(struct view a, uint8_t c)
{
	return a.n != 0 && memchr(a.p, c, a.n) != NULL;
}

/* The rest behind the first n bytes (n is clamped). */
static inline struct view
view_skip(struct view a, size_t n)
{
	if (n > a.n)
		n = a.n;
	return n == 0 ? a : view_of(a.p + n, a.n - n);
}

/* printf("%.*s", VIEW_ARGS(v)) */
#define VIEW_ARGS(v) (int)((v).n > 4096 ? 4096 : (v).n), (const char *)(v).p

/* Well-formed UTF-8 (RFC 3629: no surrogates, no overlong forms, at most U+10FFFF). */
bool view_utf8(struct view v);

/* Lowers ASCII letters only; the comparison of header names. */
bool view_eq_nocase(struct view a, struct view b);
