/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The canonical writer; see write.h. Called by engine and relay. It sees data of
 * strangers only as string and integer values; keys and shape are the caller's.
 */
#include "lib/canon/write.h"

#include "lib/base/utf8.h"

#include <errno.h>
#include <stdio.h>

static const char hex_digits[] = "0123456789abcdef";

static void
refuse(struct canon_writer *w, int code, const char *why)
{
	if (w->code != 0)
		return;
	w->code = code;
	w->why = why;
}

static struct canon_level *
top(struct canon_writer *w)
{
	return &w->level[w->depth];
}

static void
put(struct canon_writer *w, const void *p, size_t n)
{
	if (w->code != 0)
		return;
	if (n > CANON_BYTES_MAX - (w->out->n - w->start)) {
		refuse(w, -E2BIG, "larger than 256 KiB");
		return;
	}
	buf_add(w->out, p, n);
	if (buf_check(w->out) < 0)
		refuse(w, -ENOBUFS, "no room for the document");
}

static void
put_str(struct canon_writer *w, const char *s)
{
	put(w, s, strlen(s));
}

void
canon_begin(struct canon_writer *w, struct buf *out)
{
	*w = (struct canon_writer){.out = out, .start = out->n};
}

int
canon_end(struct canon_writer *w, struct err *err)
{
	must(w->depth == 0 && w->beyond == 0 && w->level[0].some);
	if (w->code == 0)
		return 0;
	w->out->n = w->start;
	return err_set(err, w->code, "this cannot be recorded: %s", w->why);
}

/* What stands before a value: nothing after a key, a comma between array elements. */
static void
value_begin(struct canon_writer *w)
{
	struct canon_level *l = top(w);

	if (w->beyond > 0)
		return;
	if (l->object) {
		must(l->keyed);
		l->keyed = false;
	} else if (l->some) {
		must(w->depth > 0);
		put(w, ",", 1);
	}
	l->some = true;
}

static void
container_begin(struct canon_writer *w, bool object)
{
	value_begin(w);
	if (w->depth == CANON_DEPTH_MAX) {
		refuse(w, -E2BIG, "more than 16 objects and arrays inside each other");
		w->beyond++;
		return;
	}
	put(w, object ? "{" : "[", 1);
	w->depth++;
	*top(w) = (struct canon_level){.object = object};
}

static void
container_end(struct canon_writer *w, bool object)
{
	if (w->beyond > 0) {
		w->beyond--;
		return;
	}
	must(w->depth > 0 && top(w)->object == object && !top(w)->keyed);
	put(w, object ? "}" : "]", 1);
	w->depth--;
}

void
canon_object_begin(struct canon_writer *w)
{
	container_begin(w, true);
}

void
canon_object_end(struct canon_writer *w)
{
	container_end(w, true);
}

void
canon_array_begin(struct canon_writer *w)
{
	container_begin(w, false);
}

void
canon_array_end(struct canon_writer *w)
{
	container_end(w, false);
}

void
canon_key(struct canon_writer *w, struct view key)
{
	struct canon_level *l = top(w);

	must(canon_key_ok(key));
	if (w->beyond > 0)
		return;
	must(l->object && !l->keyed);
	put_str(w, l->some ? ",\"" : "\"");
	if (w->code == 0) {
		if (l->some)
			must(canon_key_compare(view_of(w->out->p + l->key_at, l->key_n), key) < 0);
		l->key_at = w->out->n;
		l->key_n = key.n;
	}
	put(w, key.p, key.n);
	put(w, "\":", 2);
	l->some = true;
	l->keyed = true;
}

static void
put_control(struct canon_writer *w, uint8_t c)
{
	static const char short_form[0x20] = {
		['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};
	char esc[6] = {'\\', short_form[c]};

	if (esc[1] != 0) {
		put(w, esc, 2);
		return;
	}
	memcpy(esc, "\\u00", 4);
	esc[4] = hex_digits[c >> 4];
	esc[5] = hex_digits[c & 15];
	put(w, esc, 6);
}

/* One character at the front of v; how many bytes it has, or 0 after a refusal. */
static size_t
put_char(struct canon_writer *w, struct view v, bool controls)
{
	uint32_t point = 0;
	int len = utf8_next(v, &point);

	if (len < 0)
		refuse(w, -EILSEQ, "a string is not valid UTF-8");
	else if (utf8_noncharacter(point))
		refuse(w, -EILSEQ, "a string has a code point that is not a character");
	else if (point < 0x20 && !controls)
		refuse(w, -EINVAL, "a string has a control character");
	else if (point < 0x20)
		put_control(w, (uint8_t)point);
	else
		put(w, v.p, (size_t)len);
	return w->code == 0 ? (size_t)len : 0;
}

static size_t
plain_run(struct view v)
{
	size_t i = 0;

	while (i < v.n && v.p[i] >= 0x20 && v.p[i] < 0x80 && v.p[i] != '"' && v.p[i] != '\\')
		i++;
	return i;
}

static void
put_string(struct canon_writer *w, struct view v, bool controls)
{
	value_begin(w);
	put(w, "\"", 1);
	while (v.n > 0 && w->code == 0) {
		size_t n = plain_run(v);

		put(w, v.p, n);
		if (n == 0 && (v.p[0] == '"' || v.p[0] == '\\')) {
			put(w, "\\", 1);
			put(w, v.p, 1);
			n = 1;
		} else if (n == 0) {
			n = put_char(w, v, controls);
		}
		v = view_skip(v, n);
	}
	put(w, "\"", 1);
}

void
canon_str(struct canon_writer *w, struct view v)
{
	put_string(w, v, false);
}

void
canon_text(struct canon_writer *w, struct view v)
{
	put_string(w, v, true);
}

void
canon_int(struct canon_writer *w, int64_t i)
{
	char text[24];
	int n;

	value_begin(w);
	if (i > CANON_INT_MAX || i < -CANON_INT_MAX) {
		refuse(w, -ERANGE, "a number is beyond 2^53 - 1");
		return;
	}
	n = snprintf(text, sizeof(text), "%lld", (long long)i);
	must(n > 0 && (size_t)n < sizeof(text));
	put(w, text, (size_t)n);
}

void
canon_u64(struct canon_writer *w, uint64_t u)
{
	/* Anything above the limit is refused as such; the exact value does not matter. */
	canon_int(w, u > (uint64_t)CANON_INT_MAX ? INT64_MAX : (int64_t)u);
}

void
canon_bool(struct canon_writer *w, bool b)
{
	value_begin(w);
	put_str(w, b ? "true" : "false");
}

void
canon_null(struct canon_writer *w)
{
	value_begin(w);
	put_str(w, "null");
}

void
canon_bytes_hex(struct canon_writer *w, struct view v)
{
	value_begin(w);
	put(w, "\"", 1);
	for (size_t i = 0; i < v.n && w->code == 0; i++) {
		char two[2] = {hex_digits[v.p[i] >> 4], hex_digits[v.p[i] & 15]};

		put(w, two, 2);
	}
	put(w, "\"", 1);
}
