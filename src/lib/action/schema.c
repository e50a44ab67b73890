/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values against parameters; see schema.h and parameter.h. Reads what a stranger's program wrote, after the relay made it canonical. The
 * arguments and the parameters are both in ascending order, so one walk over both finds what is missing and what nobody knows.
 */
#include "lib/action/schema.h"

#include "lib/action/parameter.h"
#include "lib/action/pattern.h"
#include "lib/base/utf8.h"

#include <errno.h>

static int fields_check(struct view fields, struct view object, struct err *err);

/* Controls: none in one line; in several, newline and tab. U+2028 and U+2029 end a line too. */
static bool
lines_ok(struct view text, bool multiline)
{
	while (text.n > 0) {
		uint32_t c = 0;
		int n = utf8_next(text, &c);

		if (n < 0 || utf8_noncharacter(c))
			return false;
		if ((c < 0x20 && !(multiline && (c == '\n' || c == '\t'))) ||
			(c >= 0x7f && c < 0xa0))
			return false;
		if (!multiline && (c == 0x2028 || c == 0x2029))
			return false;
		text = view_skip(text, (size_t)n);
	}
	return true;
}

static int
pattern_holds(const struct parameter *p, struct view text, struct err *err)
{
	auto_buf struct buf pattern = {.max = PATTERN_BYTES_MAX};
	int e;

	if (!p->pattern.there)
		return 0;
	form_text(&p->pattern, &pattern);
	if (buf_check(&pattern) < 0)
		return err_set(err, -ENOBUFS, "no memory for the pattern");
	e = pattern_match(buf_view(&pattern), text, err);
	if (e == 0)
		return err_set(err, -EINVAL, "must match %.*s",
			pattern.n > 120 ? 120 : (int)pattern.n, (const char *)pattern.p);
	return e < 0 ? e : 0;
}

static int
text_check(const struct parameter *p, struct view text, struct err *err)
{
	if (text.n < (uint64_t)p->min || text.n > (uint64_t)p->max)
		return err_set(err, -EINVAL, "must have %lld to %lld bytes, has %zu",
			(long long)p->min, (long long)p->max, text.n);
	if (!lines_ok(text, p->multiline))
		return err_set(err, -EINVAL,
			p->multiline ? "must not have control characters but newline and tab"
				     : "must be one line without control characters");
	if (p->identifier && text.n > 0 &&
		!(p->pattern.there ? identifier_ok(text) : identifier_ascii(text)))
		return err_set(err, -EINVAL,
			"is an identifier: no blanks, no combining, invisible or direction "
			"characters, and only ASCII where its pattern does not say otherwise");
	return pattern_holds(p, text, err);
}

static int
string_check(const struct parameter *p, const struct form_value *v, struct err *err)
{
	auto_buf struct buf text = {.max = CANON_BYTES_MAX};

	if (v->type != FORM_TEXT)
		return err_set(err, -EINVAL, "must be a string");
	if (!v->escaped)
		return text_check(p, v->text, err);
	form_text(v, &text);
	if (buf_check(&text) < 0)
		return err_set(err, -ENOBUFS, "no memory for the text");
	return text_check(p, buf_view(&text), err);
}

static int
integer_check(const struct parameter *p, const struct form_value *v, struct err *err)
{
	if (v->type != FORM_INT || v->i < p->min || v->i > p->max)
		return err_set(err, -EINVAL, "must be an integer from %lld to %lld",
			(long long)p->min, (long long)p->max);
	return 0;
}

static int
enum_check(const struct parameter *p, const struct form_value *v, struct err *err)
{
	struct form_value one = {0};
	struct form_list l;
	int e = form_list_begin(&l, p->values, err);

	while (e == 0 && (e = form_list_next(&l, &one, err)) == 1) {
		if (v->type == FORM_TEXT && view_eq(one.raw, v->raw))
			return 0;
		e = 0;
	}
	if (e < 0)
		return e;
	return err_set(err, -EINVAL, "must be one of %.*s",
		p->values.n > 160 ? 160 : (int)p->values.n, (const char *)p->values.p);
}

static int
array_check(const struct parameter *p, const struct form_value *v, struct err *err)
{
	struct form_value one = {0};
	struct parameter items;
	struct form_list l;
	int64_t n = 0;
	int e;

	if (v->type != FORM_ARRAY)
		return err_set(err, -EINVAL, "must be an array");
	e = parameter_read(p->items, 1, &items, err);
	if (e == 0)
		e = form_list_begin(&l, v->raw, err);
	while (e == 0 && (e = form_list_next(&l, &one, err)) == 1) {
		e = parameter_value(&items, &one, err);
		if (e < 0)
			return err_context(err, "entry %lld", (long long)n);
		n++;
	}
	if (e == 0 && (n < p->min || n > p->max))
		return err_set(err, -EINVAL, "must have %lld to %lld entries, has %lld",
			(long long)p->min, (long long)p->max, (long long)n);
	return e;
}

/* The script itself and where it runs: no name of a file, whose content another could change. */
static int
script_check(const struct parameter *p, const struct form_value *v, struct err *err)
{
	static const struct form_row form[] = {
		{"text", FORM_TEXT, false}, {"workdir", FORM_STR, false}};
	struct parameter text = *p;
	struct form_value f[2];
	struct view dir;
	int e;

	if (v->type != FORM_OBJECT)
		return err_set(err, -EINVAL, "must be an object with text and workdir");
	e = form_read(v->raw, "script", form, ARRAY_LEN(form), f, err);
	if (e < 0)
		return e;
	text.multiline = true;
	e = string_check(&text, &f[0], err);
	if (e < 0)
		return err_context(err, "text");
	dir = f[1].text;
	if (!view_starts(dir, "/") || dir.n > 255 || !identifier_ascii(dir) ||
		memmem(dir.p, dir.n, "/.", 2) != NULL || memmem(dir.p, dir.n, "//", 2) != NULL)
		return err_set(err, -EINVAL,
			"workdir must be an absolute path without blanks, \".\" and \"..\"");
	return 0;
}

int
parameter_value(const struct parameter *p, const struct form_value *v, struct err *err)
{
	switch (p->type) {
	case PARAMETER_STRING:
		return string_check(p, v, err);
	case PARAMETER_INTEGER:
		return integer_check(p, v, err);
	case PARAMETER_BOOLEAN:
		return v->type == FORM_BOOL ? 0 : err_set(err, -EINVAL, "must be true or false");
	case PARAMETER_ENUM:
		return enum_check(p, v, err);
	case PARAMETER_ARRAY:
		return array_check(p, v, err);
	case PARAMETER_OBJECT:
		if (v->type != FORM_OBJECT)
			return err_set(err, -EINVAL, "must be an object");
		return fields_check(p->fields, v->raw, err);
	case PARAMETER_SCRIPT:
		return script_check(p, v, err);
	case PARAMETER_TYPES:
		break;
	}
	must(0);
}

/* The walk over arguments and parameters. `out` and `defaulted` only at the first level. */
struct walk {
	struct canon_reader r; /* of the arguments */
	bool some;             /* a key waits */
	struct view key;
	bool begun; /* something was written */
	struct buf *out, *defaulted;
};

static int
key_next(struct walk *w, struct err *err)
{
	struct canon_token t = {0};
	int e = canon_next(&w->r, &t, err);

	w->some = e == 0 && t.type == CANON_KEY;
	w->key = t.raw;
	return e;
}

static int
unknown(const struct walk *w, struct err *err)
{
	return err_set(err, -EINVAL, "\"%.*s\" is not a parameter",
		w->key.n > 60 ? 60 : (int)w->key.n, (const char *)w->key.p);
}

static void
put(struct walk *w, struct view name, struct view raw)
{
	if (w->out == NULL)
		return;
	buf_add_str(w->out, w->begun ? ",\"" : "\"");
	buf_add_view(w->out, name);
	buf_add_str(w->out, "\":");
	buf_add_view(w->out, raw);
	w->begun = true;
}

static int
absent(struct walk *w, const struct parameter *p, struct err *err)
{
	if (p->fallback.n != 0) {
		put(w, p->name, p->fallback);
		if (w->defaulted != NULL) {
			buf_add_view(w->defaulted, p->name);
			buf_add_byte(w->defaulted, 0);
		}
		return 0;
	}
	if (p->optional)
		return 0;
	return err_set(err, -EINVAL, "\"%.*s\" is missing", VIEW_ARGS(p->name));
}

static int
one_parameter(struct walk *w, const struct parameter *p, struct err *err)
{
	struct form_value v = {0};
	int e, order = w->some ? canon_key_compare(w->key, p->name) : 1;

	if (order < 0)
		return unknown(w, err);
	if (order > 0)
		return absent(w, p, err);
	e = form_value_read(&w->r, &v, err);
	if (e == 0)
		e = parameter_value(p, &v, err);
	if (e < 0)
		return err_context(err, "%.*s", VIEW_ARGS(p->name));
	put(w, p->name, v.raw);
	return key_next(w, err);
}

static int
walk_all(struct walk *w, struct view fields, struct view object, struct err *err)
{
	struct form_value raw = {0};
	struct parameter p;
	struct canon_token t = {0};
	struct form_list l;
	int e;

	canon_reader_init(&w->r, object, true);
	e = canon_want(&w->r, CANON_OBJECT_BEGIN, &t, err);
	if (e == 0)
		e = key_next(w, err);
	if (e == 0)
		e = form_list_begin(&l, fields, err);
	while (e == 0 && (e = form_list_next(&l, &raw, err)) == 1) {
		e = parameter_read(raw.raw, w->out == NULL ? 1 : 0, &p, err);
		if (e == 0)
			e = one_parameter(w, &p, err);
	}
	if (e == 0 && w->some)
		return unknown(w, err);
	return e < 0 ? e : canon_want(&w->r, CANON_END, &t, err);
}

static int
fields_check(struct view fields, struct view object, struct err *err)
{
	struct walk w = {0};

	return walk_all(&w, fields, object, err);
}

int
schema_apply(const struct operation *op, struct view arguments, struct buf *out,
	struct buf *defaulted, struct err *err)
{
	struct walk w = {.out = out, .defaulted = defaulted};
	size_t out_n = out->n, defaulted_n = defaulted->n;
	int e;

	if (arguments.n > ARGUMENTS_BYTES_MAX)
		return err_set(
			err, -EINVAL, "the arguments have more than %d bytes", ARGUMENTS_BYTES_MAX);
	buf_add_byte(out, '{');
	e = walk_all(&w, op->parameters, arguments, err);
	buf_add_byte(out, '}');
	if (e == 0 && (buf_check(out) < 0 || buf_check(defaulted) < 0))
		e = err_set(err, -ENOBUFS, "no room for the arguments");
	if (e == 0 && out->n - out_n > ARGUMENTS_BYTES_MAX)
		e = err_set(err, -EINVAL,
			"the arguments with their defaults have more than %d bytes",
			ARGUMENTS_BYTES_MAX);
	if (e < 0) {
		out->n = out_n;
		defaulted->n = defaulted_n;
	}
	return e;
}

int64_t
schema_amount(const struct operation *op, struct view arguments)
{
	struct form_value v = {0};
	struct err err;

	if (!op->has_amount)
		return 0;
	if (form_find(arguments, op->amount_argument, &v, &err) != 1 || v.type != FORM_INT)
		return INT64_MAX;
	return v.i;
}
