/* SPDX-License-Identifier: Apache-2.0 */
/* Growing buffers; see buf.h. */
#include "lib/base/buf.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

void
buf_init(struct buf *b, size_t max)
{
	*b = (struct buf){.max = max};
}

void
buf_done(struct buf *b)
{
	free(b->p);
	*b = (struct buf){.max = b->max};
}

uint8_t *
buf_room(struct buf *b, size_t n)
{
	size_t cap = b->cap;
	uint8_t *p;

	if (b->failed || n > b->max - b->n) {
		b->failed = true;
		return NULL;
	}
	if (b->n + n <= b->cap)
		return b->p + b->n;
	if (cap < 64)
		cap = 64;
	while (cap < b->n + n)
		cap = cap > b->max / 2 ? b->max : cap * 2;
	p = realloc(b->p, cap);
	if (p == NULL) {
		b->failed = true;
		return NULL;
	}
	b->p = p;
	b->cap = cap;
	return b->p + b->n;
}

void
buf_grew(struct buf *b, size_t n)
{
	must(n <= b->cap - b->n);
	b->n += n;
}

void
buf_add(struct buf *b, const void *p, size_t n)
{
	uint8_t *to = n == 0 ? NULL : buf_room(b, n);

	if (to == NULL)
		return;
	memcpy(to, p, n);
	b->n += n;
}

void
buf_add_view(struct buf *b, struct view v)
{
	buf_add(b, v.p, v.n);
}

void
buf_add_str(struct buf *b, const char *s)
{
	buf_add(b, s, strlen(s));
}

void
buf_add_byte(struct buf *b, uint8_t c)
{
	buf_add(b, &c, 1);
}

void
buf_addf(struct buf *b, const char *fmt, ...)
{
	char small[512];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(small, sizeof(small), fmt, ap);
	va_end(ap);
	must(n >= 0);
	if ((size_t)n < sizeof(small)) {
		buf_add(b, small, (size_t)n);
		return;
	}
	/* vsnprintf wants one byte more for its NUL than we keep. */
	char *to = (char *)buf_room(b, (size_t)n + 1);
	if (to == NULL)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(to, (size_t)n + 1, fmt, ap);
	va_end(ap);
	b->n += (size_t)n;
}

void
buf_drop(struct buf *b, size_t n)
{
	must(n <= b->n);
	if (n == 0)
		return;
	memmove(b->p, b->p + n, b->n - n);
	b->n -= n;
}

void
buf_clear(struct buf *b)
{
	b->n = 0;
	b->failed = false;
}

int
buf_check(const struct buf *b)
{
	return b->failed ? -ENOBUFS : 0;
}
