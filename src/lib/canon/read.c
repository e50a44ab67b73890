/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The canonical reader; see read.h. Called by the engine and by `demilune audit verify`
 * on bytes that a hostile peer may have made.
 *
 * Level 0 is the place of the document itself: an array without brackets that takes one
 * value. `at` only grows, and each loop consumes a byte.
 */
#include "lib/canon/read.h"

#include "lib/base/num.h"
#include "lib/base/utf8.h"

#include <errno.h>

static int
refusal(const struct canon_reader *r, struct err *err)
{
	return err_set(err, r->code, "not canonical JSON at byte %zu: %s", r->at, r->why);
}

static int
refuse(struct canon_reader *r, int code, const char *why, struct err *err)
{
	r->code = code;
	r->why = why;
	return refusal(r, err);
}

static struct canon_read_level *
top(struct canon_reader *r)
{
	return &r->level[r->depth];
}

/* The byte at `at`, or 0 at the end: NUL is refused wherever it could stand. */
static uint8_t
peek(const struct canon_reader *r)
{
	return r->at < r->in.n ? r->in.p[r->at] : 0;
}

static bool
take(struct canon_reader *r, uint8_t c)
{
	if (r->at >= r->in.n || r->in.p[r->at] != c)
		return false;
	r->at++;
	return true;
}

void
canon_reader_init(struct canon_reader *r, struct view in, bool controls)
{
	*r = (struct canon_reader){.in = in, .controls = controls};
	if (in.n > CANON_BYTES_MAX) {
		r->code = -E2BIG;
		r->why = "larger than 256 KiB";
	}
}

static int
hex_value(uint8_t c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/*
 * What the escape at the front of v stands for, with its length, or -1 when it is not the
 * shortest one. v starts behind the backslash.
 */
static int
escape_value(struct view v, size_t *ret_n)
{
	static const uint8_t two[] = "\"\"\\\\b\bt\tn\nf\fr\r";
	int high, low, value;

	if (v.n == 0)
		return -1;
	for (size_t i = 0; i + 1 < sizeof(two); i += 2) {
		if (v.p[0] == two[i]) {
			*ret_n = 1;
			return two[i + 1];
		}
	}
	if (v.n < 5 || !view_starts(v, "u00"))
		return -1;
	high = hex_value(v.p[3]);
	low = hex_value(v.p[4]);
	value = high * 16 + low;
	if (high < 0 || low < 0 || value >= 0x20 || (value >= 8 && value <= 13 && value != 11))
		return -1;
	*ret_n = 5;
	return value;
}

static int
read_escape(struct canon_reader *r, struct canon_token *t, struct err *err)
{
	size_t n = 0;
	int c = escape_value(view_skip(r->in, r->at + 1), &n);

	if (c < 0)
		return refuse(r, -EINVAL, "an escape that is not the shortest form", err);
	if (c < 0x20 && !r->controls)
		return refuse(r, -EINVAL, "a control character in a string", err);
	t->escaped = true;
	t->controls |= c < 0x20;
	r->at += 1 + n;
	return 0;
}

static int
read_char(struct canon_reader *r, struct canon_token *t, struct err *err)
{
	uint32_t point = 0;
	int len;

	if (r->at >= r->in.n)
		return refuse(r, -EINVAL, "a string without an end", err);
	if (peek(r) == '\\')
		return read_escape(r, t, err);
	len = utf8_next(view_skip(r->in, r->at), &point);
	if (len < 0)
		return refuse(r, -EILSEQ, "invalid UTF-8", err);
	if (point < 0x20)
		return refuse(r, -EINVAL, "a control character that is not escaped", err);
	if (utf8_noncharacter(point))
		return refuse(r, -EILSEQ, "a code point that is not a character", err);
	r->at += (size_t)len;
	return 0;
}

/* From the opening quote to behind the closing one. */
static int
read_string(struct canon_reader *r, struct canon_token *t, struct err *err)
{
	if (!take(r, '"'))
		return refuse(r, -EINVAL, "a string is expected", err);
	size_t start = r->at;

	while (!take(r, '"')) {
		int e = read_char(r, t, err);

		if (e < 0)
			return e;
	}
	t->type = CANON_STR;
	t->raw = view_of(r->in.p + start, r->at - 1 - start);
	return 0;
}

static int
read_number(struct canon_reader *r, struct canon_token *t, struct err *err)
{
	size_t end = r->at + (peek(r) == '-' ? 1 : 0);
	struct view text;
	int e;

	while (end < r->in.n && r->in.p[end] >= '0' && r->in.p[end] <= '9')
		end++;
	text = view_of(r->in.p + r->at, end - r->at);
	e = num_i64(text, &t->i);
	if (e == -EINVAL || view_is(text, "-0"))
		return refuse(r, -EINVAL, "an integer that is not the shortest form", err);
	if (e < 0 || t->i > CANON_INT_MAX || t->i < -CANON_INT_MAX)
		return refuse(r, -ERANGE, "a number beyond 2^53 - 1", err);
	r->at = end;
	t->type = CANON_INT;
	return 0;
}

static int
read_word(struct canon_reader *r, struct canon_token *t, struct err *err)
{
	static const struct {
		const char *word;
		enum canon_type type;
		bool b;
	} words[] = {{"true", CANON_BOOL, true}, {"false", CANON_BOOL, false},
		{"null", CANON_NULL, false}};

	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		if (view_starts(view_skip(r->in, r->at), words[i].word)) {
			r->at += strlen(words[i].word);
			t->type = words[i].type;
			t->b = words[i].b;
			return 0;
		}
	}
	return refuse(r, -EINVAL, "a value is expected", err);
}

static int
read_value(struct canon_reader *r, struct canon_token *t, struct err *err)
{
	uint8_t c = peek(r);

	top(r)->some = true;
	top(r)->keyed = false;
	if (c == '"')
		return read_string(r, t, err);
	if (c == '-' || (c >= '0' && c <= '9'))
		return read_number(r, t, err);
	if (c != '{' && c != '[')
		return read_word(r, t, err);
	if (r->depth == CANON_DEPTH_MAX)
		return refuse(r, -E2BIG, "more than 16 objects and arrays inside each other", err);
	r->at++;
	r->depth++;
	*top(r) = (struct canon_read_level){.object = c == '{'};
	t->type = c == '{' ? CANON_OBJECT_BEGIN : CANON_ARRAY_BEGIN;
	return 0;
}

static int
read_key(struct canon_reader *r, struct canon_token *t, struct err *err)
{
	struct canon_read_level *l = top(r);
	size_t start = r->at;
	int e = read_string(r, t, err);

	if (e < 0)
		return e;
	if (!canon_key_ok(t->raw) || (l->some && canon_key_compare(l->key, t->raw) >= 0)) {
		r->at = start;
		return refuse(r, -EINVAL,
			"a key out of order, twice, or with other than letters, digits and _", err);
	}
	if (!take(r, ':'))
		return refuse(r, -EINVAL, "':' is expected", err);
	l->key = t->raw;
	l->keyed = true;
	t->type = CANON_KEY;
	return 0;
}

static int
read_token(struct canon_reader *r, struct canon_token *t, struct err *err)
{
	struct canon_read_level *l = top(r);

	if (l->keyed || (r->depth == 0 && !l->some))
		return read_value(r, t, err);
	if (r->depth == 0) {
		if (r->at != r->in.n)
			return refuse(r, -EINVAL, "bytes behind the document", err);
		t->type = CANON_END;
		return 0;
	}
	if (take(r, l->object ? '}' : ']')) {
		t->type = l->object ? CANON_OBJECT_END : CANON_ARRAY_END;
		r->depth--;
		return 0;
	}
	if (l->some && !take(r, ','))
		return refuse(r, -EINVAL, "',' or the end of the object or array is expected", err);
	return l->object ? read_key(r, t, err) : read_value(r, t, err);
}

int
canon_next(struct canon_reader *r, struct canon_token *ret, struct err *err)
{
	struct canon_token t = {0};
	int e;

	if (r->code != 0)
		return refusal(r, err);
	e = read_token(r, &t, err);
	if (e == 0)
		*ret = t;
	return e;
}

int
canon_want(struct canon_reader *r, enum canon_type type, struct canon_token *ret, struct err *err)
{
	static const char *const what[] = {
		[CANON_OBJECT_BEGIN] = "an object is expected",
		[CANON_OBJECT_END] = "a field that the schema does not know",
		[CANON_ARRAY_BEGIN] = "an array is expected",
		[CANON_ARRAY_END] = "an element too many",
		[CANON_KEY] = "a field is missing",
		[CANON_STR] = "a string is expected",
		[CANON_INT] = "an integer is expected",
		[CANON_BOOL] = "true or false is expected",
		[CANON_NULL] = "null is expected",
		[CANON_END] = "the end of the document is expected",
	};
	struct canon_token t;
	int e = canon_next(r, &t, err);

	if (e < 0)
		return e;
	if (t.type != type)
		return refuse(r, -EINVAL, what[type], err);
	*ret = t;
	return 0;
}

int
canon_want_key(struct canon_reader *r, const char *key, struct err *err)
{
	struct canon_token t;
	int e = canon_want(r, CANON_KEY, &t, err);

	if (e == 0 && !view_is(t.raw, key)) {
		(void)refuse(r, -EINVAL, "a field that the schema does not have here", err);
		return err_set(err, -EINVAL, "\"%.60s\" is expected, \"%.*s\" is there", key,
			t.raw.n > 60 ? 60 : (int)t.raw.n, (const char *)t.raw.p);
	}
	return e;
}

int
canon_skip(struct canon_reader *r, struct err *err)
{
	unsigned depth = r->depth;
	struct canon_token t;
	int e;

	if (r->code == 0 && r->depth > 0 && top(r)->object && !top(r)->keyed)
		return refuse(r, -EINVAL, "a key, not a value, comes next", err);
	e = canon_next(r, &t, err);
	if (e == 0 && r->depth < depth)
		return refuse(r, -EINVAL, "a value is expected", err);
	if (e == 0 && t.type == CANON_END)
		return refuse(r, -EINVAL, "a value is expected", err);
	while (e == 0 && r->depth > depth)
		e = canon_next(r, &t, err);
	return e;
}

void
canon_token_text(const struct canon_token *t, struct buf *out)
{
	must(t->type == CANON_STR);
	for (size_t i = 0; i < t->raw.n;) {
		size_t n = 1;
		int c = t->raw.p[i];

		if (c == '\\') {
			c = escape_value(view_skip(t->raw, i + 1), &n);
			n++;
		}
		must(c >= 0);
		buf_add_byte(out, (uint8_t)c);
		i += n;
	}
}

int
canon_check(struct view in, bool controls, struct err *err)
{
	struct canon_reader r;
	struct canon_token t = {.type = CANON_NULL};
	int e = 0;

	canon_reader_init(&r, in, controls);
	while (e == 0 && t.type != CANON_END)
		e = canon_next(&r, &t, err);
	return e;
}
