/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parameters as the document has them; see parameter.h. Recursion follows `fields` and `items` and is bounded by PARAMETER_DEPTH_MAX.
 */
#include "lib/action/parameter.h"

#include "lib/action/pattern.h"

#include <errno.h>

enum {
	P_DEFAULT,
	P_FIELDS,
	P_IDENTIFIER,
	P_ITEMS,
	P_MAX,
	P_MIN,
	P_MULTILINE,
	P_NAME,
	P_OPTIONAL,
	P_PATTERN,
	P_TYPE,
	P_VALUES,
	P_N
};

static const struct form_row parameter_form[P_N] = {
	[P_DEFAULT] = {"default", FORM_ANY, true},
	[P_FIELDS] = {"fields", FORM_ARRAY, true},
	[P_IDENTIFIER] = {"identifier", FORM_BOOL, true},
	[P_ITEMS] = {"items", FORM_OBJECT, true},
	[P_MAX] = {"max", FORM_INT, true},
	[P_MIN] = {"min", FORM_INT, true},
	[P_MULTILINE] = {"multiline", FORM_BOOL, true},
	[P_NAME] = {"name", FORM_STR, true},
	[P_OPTIONAL] = {"optional", FORM_BOOL, true},
	[P_PATTERN] = {"pattern", FORM_TEXT, true},
	[P_TYPE] = {"type", FORM_STR, false},
	[P_VALUES] = {"values", FORM_ARRAY, true},
};

/* What each type has beside name, default and optional. `must` is needed, `may` is allowed. */
#define BIT(x) (1u << (x))
static const struct {
	const char *text;
	unsigned must, may;
	int64_t min, max; /* bounds of min and max */
} types[PARAMETER_TYPES] = {
	[PARAMETER_STRING] = {"string", BIT(P_MIN) | BIT(P_MAX),
		BIT(P_IDENTIFIER) | BIT(P_MULTILINE) | BIT(P_PATTERN), 0, PARAMETER_TEXT_MAX},
	[PARAMETER_INTEGER] = {"integer", BIT(P_MIN) | BIT(P_MAX), 0, -CANON_INT_MAX,
		CANON_INT_MAX},
	[PARAMETER_BOOLEAN] = {"boolean", 0, 0, 0, 0},
	[PARAMETER_ENUM] = {"enum", BIT(P_VALUES), 0, 0, 0},
	[PARAMETER_ARRAY] = {"array", BIT(P_ITEMS) | BIT(P_MIN) | BIT(P_MAX), 0, 0,
		PARAMETER_ENTRIES_MAX},
	[PARAMETER_OBJECT] = {"object", BIT(P_FIELDS), 0, 0, 0},
	[PARAMETER_SCRIPT] = {"script", BIT(P_MIN) | BIT(P_MAX), 0, 1, PARAMETER_TEXT_MAX},
};

const char *
parameter_type_text(enum parameter_type t)
{
	return types[t].text;
}

static int
type_read(const struct form_value *v, enum parameter_type *ret, struct err *err)
{
	for (unsigned t = 0; t < PARAMETER_TYPES; t++) {
		if (view_is(v->text, types[t].text)) {
			*ret = (enum parameter_type)t;
			return 0;
		}
	}
	return err_set(err, -EINVAL,
		"type must be string, integer, boolean, enum, array, object or script");
}

/* A flag that is there is true: absent is the only way to say no. */
static int
flag_read(const struct form_value *v, const char *what, bool *ret, struct err *err)
{
	if (v->there && !v->b)
		return err_set(err, -EINVAL, "%s is true or not there", what);
	*ret = v->there;
	return 0;
}

/* Which fields this type, at this depth, has. */
static int
fields_fit(const struct form_value *v, enum parameter_type type, bool named, unsigned depth,
	struct err *err)
{
	unsigned needed = types[type].must | BIT(P_TYPE) | (named ? BIT(P_NAME) : 0);
	unsigned allowed = needed | types[type].may | (named ? BIT(P_OPTIONAL) : 0) |
			   (depth == 0 ? BIT(P_DEFAULT) : 0);

	for (unsigned i = 0; i < P_N; i++) {
		if (v[i].there && (allowed & BIT(i)) == 0)
			return err_set(err, -EINVAL, "%s has no \"%s\"%s", types[type].text,
				parameter_form[i].key, i == P_DEFAULT ? " inside another" : "");
		if (!v[i].there && (needed & BIT(i)) != 0)
			return err_set(err, -EINVAL, "%s needs \"%s\"", types[type].text,
				parameter_form[i].key);
	}
	return 0;
}

static int
bounds_read(const struct form_value *v, struct parameter *p, struct err *err)
{
	int64_t min = types[p->type].min, max = types[p->type].max;
	int e;

	if ((types[p->type].must & BIT(P_MIN)) == 0)
		return 0;
	e = form_int(&v[P_MIN], "min", min, max, &p->min, err);
	if (e == 0)
		e = form_int(&v[P_MAX], "max", p->min, max, &p->max, err);
	return e;
}

static int
pattern_read(const struct parameter *p, struct err *err)
{
	auto_buf struct buf text = {.max = PATTERN_BYTES_MAX};

	if (!p->pattern.there)
		return 0;
	if (p->max > PATTERN_TEXT_MAX || p->multiline)
		return err_set(err, -EINVAL,
			"with a pattern, max is at most %d and there is one line",
			PATTERN_TEXT_MAX);
	form_text(&p->pattern, &text);
	if (buf_check(&text) < 0)
		return err_set(err, -EINVAL, "a pattern has 1 to %d bytes", PATTERN_BYTES_MAX);
	return pattern_check(buf_view(&text), err);
}

static int
values_read(struct view values, struct err *err)
{
	struct form_list l;
	struct form_value v = {0};
	struct view last = {0};
	size_t n = 0;
	int e = form_list_begin(&l, values, err);

	while (e == 0 && (e = form_list_next(&l, &v, err)) == 1) {
		if (v.type != FORM_TEXT || v.escaped || v.text.n == 0 || v.text.n > 128 ||
			++n > PARAMETER_VALUES_MAX ||
			(n > 1 && canon_key_compare(last, v.text) >= 0))
			return err_set(err, -EINVAL,
				"values are 1 to %d different strings of 1 to 128 bytes, in order",
				PARAMETER_VALUES_MAX);
		last = v.text;
		e = 0;
	}
	return e;
}

/* What is inside, and the default. */
static int
inner_read(const struct parameter *p, unsigned depth, struct err *err)
{
	struct form_value fallback = {0};
	struct canon_reader r;
	int e = 0;

	if (p->type == PARAMETER_ENUM)
		e = values_read(p->values, err);
	if (p->type == PARAMETER_STRING)
		e = pattern_read(p, err);
	if (p->type == PARAMETER_STRING && p->identifier && p->multiline)
		e = err_set(err, -EINVAL, "an identifier has one line");
	if (p->type == PARAMETER_OBJECT)
		e = parameters_check(p->fields, depth + 1, err);
	if (p->type == PARAMETER_ARRAY) {
		struct parameter items;

		e = parameter_read(p->items, depth + 1, &items, err);
		if (e == 0 && items.name.n != 0)
			e = err_set(err, -EINVAL, "items have no name");
	}
	if (e < 0 || p->fallback.n == 0)
		return e;
	canon_reader_init(&r, p->fallback, true);
	e = form_value_read(&r, &fallback, err);
	if (e == 0)
		e = parameter_value(p, &fallback, err);
	return e < 0 ? err_context(err, "default") : 0;
}

int
parameter_read(struct view raw, unsigned depth, struct parameter *ret, struct err *err)
{
	struct form_value v[P_N];
	struct parameter p = {0};
	bool named;
	int e;

	if (depth > PARAMETER_DEPTH_MAX)
		return err_set(err, -EINVAL, "arrays and objects are more than %d deep",
			PARAMETER_DEPTH_MAX);
	e = form_read(raw, "parameter", parameter_form, P_N, v, err);
	if (e == 0)
		e = type_read(&v[P_TYPE], &p.type, err);
	named = v[P_NAME].there;
	if (e == 0)
		e = fields_fit(v, p.type, named, named ? depth : 1, err);
	if (e == 0 && named && !form_name_ok(v[P_NAME].text))
		e = err_set(err, -EINVAL, "a name is [a-z][a-z0-9_]*, at most 63");
	if (e == 0)
		e = flag_read(&v[P_OPTIONAL], "optional", &p.optional, err);
	if (e == 0)
		e = flag_read(&v[P_IDENTIFIER], "identifier", &p.identifier, err);
	if (e == 0)
		e = flag_read(&v[P_MULTILINE], "multiline", &p.multiline, err);
	if (e == 0 && p.optional && v[P_DEFAULT].there)
		e = err_set(err, -EINVAL, "what has a default is not optional");
	if (e == 0)
		e = bounds_read(v, &p, err);
	if (e < 0)
		return e;
	p.name = named ? v[P_NAME].text : view_of(NULL, 0);
	p.fallback = v[P_DEFAULT].raw;
	p.fields = v[P_FIELDS].raw;
	p.items = v[P_ITEMS].raw;
	p.values = v[P_VALUES].raw;
	p.pattern = v[P_PATTERN];
	e = inner_read(&p, depth, err);
	if (e == 0)
		*ret = p;
	return e;
}

int
parameters_check(struct view array, unsigned depth, struct err *err)
{
	struct form_list l;
	struct form_value v = {0};
	struct parameter p = {0}, last = {0};
	size_t n = 0;
	int e = form_list_begin(&l, array, err);

	while (e == 0 && (e = form_list_next(&l, &v, err)) == 1) {
		e = parameter_read(v.raw, depth, &p, err);
		if (e == 0 && p.name.n == 0)
			e = err_set(err, -EINVAL, "a parameter needs \"name\"");
		if (e == 0 && n > 0 && canon_key_compare(last.name, p.name) >= 0)
			e = err_set(err, -EINVAL,
				"parameters stand in the order of their names, each once");
		if (e == 0 && ++n > PARAMETERS_MAX)
			e = err_set(err, -EINVAL, "more than %d parameters", PARAMETERS_MAX);
		last = p;
		if (e < 0 && p.name.n != 0)
			return err_context(err, "%.*s", VIEW_ARGS(p.name));
	}
	return e;
}

int
parameter_find(struct view array, struct view name, struct parameter *ret, struct err *err)
{
	struct form_list l;
	struct form_value v = {0}, key = {0};
	int e = form_list_begin(&l, array, err);

	while (e == 0 && (e = form_list_next(&l, &v, err)) == 1) {
		e = form_find(v.raw, view_str("name"), &key, err);
		if (e == 1 && view_eq(key.text, name)) {
			e = parameter_read(v.raw, 0, ret, err);
			return e < 0 ? e : 1;
		}
		e = e < 0 ? e : 0;
	}
	return e;
}
