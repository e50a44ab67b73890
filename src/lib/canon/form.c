/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of a fixed form; see form.h. Sees bytes of anybody; each loop consumes a token. */
#include "lib/canon/form.h"

#include <errno.h>

static enum form_type
type_of(enum canon_type t)
{
	switch (t) {
	case CANON_STR:
		return FORM_TEXT;
	case CANON_INT:
		return FORM_INT;
	case CANON_BOOL:
		return FORM_BOOL;
	case CANON_OBJECT_BEGIN:
		return FORM_OBJECT;
	case CANON_ARRAY_BEGIN:
		return FORM_ARRAY;
	case CANON_NULL:
	case CANON_OBJECT_END:
	case CANON_ARRAY_END:
	case CANON_KEY:
	case CANON_END:
		break;
	}
	return FORM_NULL;
}

static int
value_rest(struct canon_reader *r, size_t start, const struct canon_token *t, unsigned depth,
	struct form_value *ret, struct err *err)
{
	struct canon_token inner;

	while (r->depth > depth) {
		int e = canon_next(r, &inner, err);

		if (e < 0)
			return e;
	}
	*ret = (struct form_value){
		.there = true,
		.type = type_of(t->type),
		.escaped = t->escaped,
		.controls = t->controls,
		.raw = view_of(r->in.p + start, r->at - start),
		.text = t->raw,
		.i = t->i,
		.b = t->b,
	};
	return 0;
}

int
form_value_read(struct canon_reader *r, struct form_value *ret, struct err *err)
{
	size_t start = r->at;
	unsigned depth = r->depth;
	struct canon_token t = {0};
	int e;

	if (start < r->in.n && r->in.p[start] == ',')
		start++;
	e = canon_next(r, &t, err);
	if (e < 0)
		return e;
	if (r->depth < depth || t.type == CANON_END || t.type == CANON_KEY)
		return err_set(err, -EINVAL, "a value is expected");
	return value_rest(r, start, &t, depth, ret, err);
}

static const char *
type_name(enum form_type t)
{
	switch (t) {
	case FORM_STR:
		return "a string without quotation marks, backslashes and control characters";
	case FORM_TEXT:
		return "a string";
	case FORM_INT:
		return "an integer";
	case FORM_BOOL:
		return "true or false";
	case FORM_OBJECT:
		return "an object";
	case FORM_ARRAY:
		return "an array with at least one entry";
	case FORM_NULL:
		return "null";
	case FORM_ANY:
		break;
	}
	return "a value";
}

static bool
type_fits(enum form_type want, const struct form_value *v)
{
	if (v->type == FORM_NULL)
		return false;
	if (want == FORM_ANY)
		return true;
	if (want == FORM_STR)
		return v->type == FORM_TEXT && !v->escaped;
	return want == v->type && (want != FORM_ARRAY || v->raw.n > 2);
}

/* The row of a key at or after *i; those passed over must be optional. */
static int
row_find(struct view key, const char *what, const struct form_row *rows, size_t n, size_t *i,
	struct err *err)
{
	size_t at = *i;

	while (at < n && !view_is(key, rows[at].key))
		at++;
	if (at == n)
		return err_set(err, -EINVAL, "%s: \"%.*s\" is not a field of it", what,
			key.n > 60 ? 60 : (int)key.n, (const char *)key.p);
	for (; *i < at; (*i)++) {
		if (!rows[*i].optional)
			return err_set(err, -EINVAL, "%s: \"%s\" is missing", what, rows[*i].key);
	}
	return 0;
}

static int
rows_read(struct canon_reader *r, const char *what, const struct form_row *rows, size_t n,
	struct form_value *ret, struct err *err)
{
	struct canon_token t = {0};
	size_t i = 0;
	int e;

	while ((e = canon_next(r, &t, err)) == 0 && t.type == CANON_KEY) {
		e = row_find(t.raw, what, rows, n, &i, err);
		if (e < 0)
			return e;
		e = form_value_read(r, &ret[i], err);
		if (e < 0)
			break;
		if (!type_fits(rows[i].type, &ret[i]))
			return err_set(err, -EINVAL, "%s: \"%s\" must be %s", what, rows[i].key,
				type_name(rows[i].type));
		i++;
	}
	if (e < 0)
		return err_context(err, "%s", what);
	for (; i < n; i++) {
		if (!rows[i].optional)
			return err_set(err, -EINVAL, "%s: \"%s\" is missing", what, rows[i].key);
	}
	return 0;
}

int
form_read(struct view object, const char *what, const struct form_row *rows, size_t n,
	struct form_value *ret, struct err *err)
{
	struct canon_token t = {0};
	struct canon_reader r;
	int e;

	for (size_t i = 0; i < n; i++)
		ret[i] = (struct form_value){0};
	canon_reader_init(&r, object, true);
	e = canon_want(&r, CANON_OBJECT_BEGIN, &t, err);
	if (e < 0)
		return err_context(err, "%s", what);
	e = rows_read(&r, what, rows, n, ret, err);
	if (e < 0)
		return e;
	e = canon_want(&r, CANON_END, &t, err);
	return e < 0 ? err_context(err, "%s", what) : 0;
}

int
form_find(struct view object, struct view key, struct form_value *ret, struct err *err)
{
	struct form_value v = {0};
	struct canon_token t = {0};
	struct canon_reader r;
	bool found = false;
	int e;

	canon_reader_init(&r, object, true);
	e = canon_want(&r, CANON_OBJECT_BEGIN, &t, err);
	while (e == 0 && (e = canon_next(&r, &t, err)) == 0 && t.type == CANON_KEY) {
		e = form_value_read(&r, &v, err);
		if (e == 0 && view_eq(t.raw, key)) {
			*ret = v;
			found = true;
		}
	}
	if (e == 0)
		e = canon_want(&r, CANON_END, &t, err);
	return e < 0 ? e : found;
}

int
form_list_begin(struct form_list *l, struct view array, struct err *err)
{
	struct canon_token t = {0};

	canon_reader_init(&l->r, array, true);
	return canon_want(&l->r, CANON_ARRAY_BEGIN, &t, err);
}

int
form_list_next(struct form_list *l, struct form_value *ret, struct err *err)
{
	struct canon_token t = {0};
	int e;

	if (l->r.code == 0 && l->r.at < l->r.in.n && l->r.in.p[l->r.at] == ']') {
		e = canon_want(&l->r, CANON_ARRAY_END, &t, err);
		return e < 0 ? e : canon_want(&l->r, CANON_END, &t, err);
	}
	e = form_value_read(&l->r, ret, err);
	return e < 0 ? e : 1;
}

void
form_text(const struct form_value *v, struct buf *out)
{
	struct canon_token t = {
		.type = CANON_STR, .raw = v->text, .escaped = v->escaped, .controls = v->controls};

	must(v->type == FORM_TEXT);
	canon_token_text(&t, out);
}

int
form_int(const struct form_value *v, const char *what, int64_t min, int64_t max, int64_t *ret,
	struct err *err)
{
	if (v->type != FORM_INT || v->i < min || v->i > max)
		return err_set(err, -EINVAL, "%s must be an integer from %lld to %lld", what,
			(long long)min, (long long)max);
	*ret = v->i;
	return 0;
}

bool
form_name_ok(struct view v)
{
	if (v.n == 0 || v.n > 63 || v.p[0] < 'a' || v.p[0] > 'z')
		return false;
	for (size_t i = 1; i < v.n; i++) {
		uint8_t c = v.p[i];

		if (c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z'))
			return false;
	}
	return true;
}

bool
form_field_ok(struct view v)
{
	unsigned parts = 1;

	if (v.n == 0 || v.n > 128 || v.p[0] == '.' || v.p[v.n - 1] == '.')
		return false;
	for (size_t i = 0; i < v.n; i++) {
		uint8_t c = v.p[i], lower = c | 0x20;

		if (c == '.' && (v.p[i + 1] == '.' || ++parts > 16))
			return false;
		if (c != '.' && c != '_' && c != '-' && (c < '0' || c > '9') &&
			(lower < 'a' || lower > 'z'))
			return false;
	}
	return true;
}
