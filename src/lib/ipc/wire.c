/* SPDX-License-Identifier: Apache-2.0 */
/* Fields on the wire; see wire.h. */
#include "lib/ipc/wire.h"

#include <errno.h>

static void
put_number(struct buf *b, uint64_t v, size_t n)
{
	uint8_t bytes[8];

	for (size_t i = 0; i < n; i++)
		bytes[i] = (uint8_t)(v >> (8 * (n - 1 - i)));
	buf_add(b, bytes, n);
}

void
wire_put_u8(struct buf *b, uint8_t v)
{
	put_number(b, v, 1);
}

void
wire_put_u16(struct buf *b, uint16_t v)
{
	put_number(b, v, 2);
}

void
wire_put_u32(struct buf *b, uint32_t v)
{
	put_number(b, v, 4);
}

void
wire_put_u64(struct buf *b, uint64_t v)
{
	put_number(b, v, 8);
}

void
wire_put_text(struct buf *b, const char *text, size_t n)
{
	size_t used = strnlen(text, n);
	uint8_t *to = buf_room(b, n);

	must(used < n);
	if (to == NULL)
		return;
	memcpy(to, text, used);
	memset(to + used, 0, n - used);
	buf_grew(b, n);
}

void
wire_put_blob(struct buf *b, struct view v, size_t max)
{
	if (v.n > max) {
		b->failed = true;
		return;
	}
	put_number(b, v.n, 4);
	buf_add_view(b, v);
}

static bool
is_str(struct view v)
{
	return view_utf8(v) && !view_has(v, '\0');
}

void
wire_put_str(struct buf *b, struct view v, size_t max)
{
	if (!is_str(v)) {
		b->failed = true;
		return;
	}
	wire_put_blob(b, v, max);
}

/* The next n bytes, or NULL after noting the fault. */
static const uint8_t *
get(struct wire *w, size_t n)
{
	const uint8_t *p = w->at.p;

	if (w->fault != NULL)
		return NULL;
	if (n > w->at.n) {
		w->fault = "too short";
		return NULL;
	}
	w->at = view_skip(w->at, n);
	return p;
}

static uint64_t
get_number(struct wire *w, size_t n)
{
	const uint8_t *p = get(w, n);
	uint64_t v = 0;

	for (size_t i = 0; p != NULL && i < n; i++)
		v = v << 8 | p[i];
	return v;
}

uint8_t
wire_get_u8(struct wire *w)
{
	return (uint8_t)get_number(w, 1);
}

uint16_t
wire_get_u16(struct wire *w)
{
	return (uint16_t)get_number(w, 2);
}

uint32_t
wire_get_u32(struct wire *w)
{
	return (uint32_t)get_number(w, 4);
}

uint64_t
wire_get_u64(struct wire *w)
{
	return get_number(w, 8);
}

uint8_t
wire_get_u8_below(struct wire *w, unsigned limit)
{
	uint8_t v = wire_get_u8(w);

	if (v < limit)
		return v;
	if (w->fault == NULL)
		w->fault = "a value outside its set";
	return 0;
}

void
wire_get_bytes(struct wire *w, uint8_t *ret, size_t n)
{
	const uint8_t *p = get(w, n);

	if (p != NULL)
		memcpy(ret, p, n);
}

void
wire_get_text(struct wire *w, char *ret, size_t n)
{
	const uint8_t *p = get(w, n);
	size_t used;

	if (p == NULL)
		return;
	used = strnlen((const char *)p, n);
	for (size_t i = used; i < n; i++)
		if (p[i] != 0)
			w->fault = "bytes behind the end of a text";
	if (used == n)
		w->fault = "a text without end";
	if (w->fault == NULL)
		memcpy(ret, p, n);
}

struct view
wire_get_blob(struct wire *w, size_t max)
{
	uint32_t n = wire_get_u32(w);
	const uint8_t *p;

	if (w->fault == NULL && n > max)
		w->fault = "a field longer than its bound";
	p = get(w, n);
	return view_of(p, p == NULL ? 0 : n);
}

struct view
wire_get_str(struct wire *w, size_t max)
{
	struct view v = wire_get_blob(w, max);

	if (w->fault == NULL && !is_str(v)) {
		w->fault = "text that is not UTF-8 without NUL";
		return view_of(NULL, 0);
	}
	return v;
}

int
wire_end(struct wire *w, const char *what, struct err *err)
{
	if (w->fault == NULL && w->at.n != 0)
		w->fault = "bytes behind the last field";
	if (w->fault != NULL)
		return err_set(err, -EBADMSG, "%s: %s", what, w->fault);
	return 0;
}
