/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters; see parameter.h. What a type takes is lib/action's to say: each parameter is read there, and told at its own place. */
#include "config/parameter.h"

#include "lib/action/parameter.h"
#include "lib/action/pattern.h"

static void one_write(struct builder *b, const struct node *n, bool named, unsigned depth,
	struct canon_writer *w);

static int
by_key(const void *a, const void *b)
{
	const struct node *x = *(const struct node *const *)a, *y = *(const struct node *const *)b;

	return canon_key_compare(x->key, y->key);
}

static int
by_text(const void *a, const void *b)
{
	const struct node *x = *(const struct node *const *)a, *y = *(const struct node *const *)b;

	return canon_key_compare(x->text, y->text);
}

/* ---- fields of one ---- */

static const struct node *
field(const struct section *s, enum key_id key)
{
	return s->at[key];
}

/* Numbers in the document: written, or what the type has by itself. */
static void
put_bound(struct builder *b, const struct section *s, enum key_id key, const char *name,
	int64_t fallback, struct canon_writer *w)
{
	int64_t i = fallback;

	if (field(s, key) != NULL)
		(void)value_int(b, field(s, key), name, -CANON_INT_MAX, CANON_INT_MAX, &i);
	else if (fallback < 0)
		return;
	put_key(w, name);
	canon_int(w, i);
}

static void
put_flag(struct builder *b, const struct section *s, enum key_id key, const char *name,
	struct canon_writer *w)
{
	bool on = false;

	if (field(s, key) == NULL || !value_bool(b, field(s, key), name, &on) || !on)
		return;
	put_key(w, name);
	canon_bool(w, true);
}

/* What the default is depends on the type: the text 12 of a string stands in quotes or not. */
static void
put_default(struct builder *b, const struct section *s, struct view type, struct canon_writer *w)
{
	const struct node *n = field(s, KEY_PARAMETER_DEFAULT);
	int64_t i = 0;
	bool on = false;

	if (n == NULL)
		return;
	put_key(w, "default");
	if (view_is(type, "integer") &&
		value_int(b, n, "default", -CANON_INT_MAX, CANON_INT_MAX, &i))
		canon_int(w, i);
	else if (view_is(type, "boolean") && value_bool(b, n, "default", &on))
		canon_bool(w, on);
	else if (view_is(type, "string") || view_is(type, "enum"))
		canon_text(w, n->text);
	else
		canon_null(w);
	if (view_is(type, "array") || view_is(type, "object") || view_is(type, "script"))
		fault(b, n->key_at, "%.*s has no default; make it optional", VIEW_ARGS(type));
}

static void
put_values(struct builder *b, const struct section *s, struct canon_writer *w)
{
	const struct node *list = field(s, KEY_PARAMETER_VALUES), *sorted[PARAMETER_VALUES_MAX];
	size_t n = 0;

	if (list == NULL)
		return;
	node_each(one, list)
	{
		int64_t unused;
		enum literal literal = one->kind == NODE_SCALAR ? literal_of(one, &unused)
								: LITERAL_EMPTY;

		if (literal == LITERAL_DOUBTFUL || literal == LITERAL_TRUE ||
			literal == LITERAL_FALSE)
			fault(b, one->at, "write \"%.*s\" in quotes: values are text",
				VIEW_ARGS(one->text));
		else if (value_text(b, one, "a value", 128) && n == PARAMETER_VALUES_MAX)
			fault(b, one->at, "an enum has at most %d values", PARAMETER_VALUES_MAX);
		if (n < PARAMETER_VALUES_MAX)
			sorted[n++] = one;
	}
	qsort(sorted, n, sizeof(sorted[0]), by_text);
	for (size_t i = 1; i < n; i++)
		if (view_eq(sorted[i - 1]->text, sorted[i]->text))
			fault(b, sorted[i]->at, "the value \"%.*s\" stands twice; keep one",
				VIEW_ARGS(sorted[i]->text));
	put_key(w, "values");
	canon_array_begin(w);
	for (size_t i = 0; i < n; i++)
		canon_str(w, sorted[i]->text);
	canon_array_end(w);
}

static void
put_pattern(struct builder *b, const struct section *s, struct canon_writer *w)
{
	const struct node *n = field(s, KEY_PARAMETER_PATTERN);
	struct err err = {0};

	if (n == NULL)
		return;
	if (pattern_check(n->text, &err) < 0)
		fault(b, n->at, "%s", err.text);
	put_key(w, "pattern");
	canon_text(w, n->text);
}

/* Least length where none is written: text is not empty unless somebody says so. */
static int64_t
min_of(struct view type)
{
	if (view_is(type, "string") || view_is(type, "script"))
		return 1;
	return view_is(type, "array") ? 0 : -1;
}

static void
fields_write(struct builder *b, const struct section *s, struct view type, const struct node *n,
	bool named, unsigned depth, struct canon_writer *w)
{
	put_default(b, s, type, w);
	if (field(s, KEY_PARAMETER_FIELDS) != NULL) {
		put_key(w, "fields");
		parameters_write(b, field(s, KEY_PARAMETER_FIELDS), depth + 1, w);
	}
	put_flag(b, s, KEY_PARAMETER_IDENTIFIER, "identifier", w);
	if (field(s, KEY_PARAMETER_ITEMS) != NULL) {
		put_key(w, "items");
		one_write(b, field(s, KEY_PARAMETER_ITEMS), false, depth + 1, w);
	}
	put_bound(b, s, KEY_PARAMETER_MAX, "max", -1, w);
	put_bound(b, s, KEY_PARAMETER_MIN, "min", min_of(type), w);
	put_flag(b, s, KEY_PARAMETER_MULTILINE, "multiline", w);
	if (named) {
		put_key(w, "name");
		canon_str(w, n->key);
	}
	put_flag(b, s, KEY_PARAMETER_OPTIONAL, "optional", w);
	put_pattern(b, s, w);
	put_key(w, "type");
	canon_str(w, type);
	put_values(b, s, w);
}

static void
one_write(
	struct builder *b, const struct node *n, bool named, unsigned depth, struct canon_writer *w)
{
	static const char *const types[] = {
		"string", "integer", "boolean", "enum", "array", "object", "script", NULL};
	struct view type = view_of(NULL, 0);
	struct section s = {0};
	unsigned unused;

	if (named && !name_is(n->key, false))
		fault(b, n->key_at,
			"the name of a parameter is 1 to 63 of a-z, 0-9 and _, a letter first");
	canon_object_begin(w);
	if (depth > PARAMETER_DEPTH_MAX)
		fault(b, n->at, "arrays and objects are more than %d deep", PARAMETER_DEPTH_MAX);
	else if (section_read(b, SECTION_PARAMETER, n, &s)) {
		if (s.at[KEY_PARAMETER_TYPE] != NULL &&
			value_word(b, s.at[KEY_PARAMETER_TYPE], "type", types, &unused))
			type = s.at[KEY_PARAMETER_TYPE]->text;
		fields_write(b, &s, type, n, named, depth, w);
	}
	canon_object_end(w);
}

/* The judge's word about one parameter, at its place. */
static void
judge(struct builder *b, const struct node *n)
{
	auto_buf struct buf text;
	struct parameter unused;
	struct canon_writer w;
	struct err err = {0};
	unsigned before = b->faults;

	buf_init(&text, CANON_BYTES_MAX);
	canon_begin(&w, &text);
	one_write(b, n, true, 0, &w);
	if (canon_end(&w, &err) < 0)
		fault(b, n->key_at, "%.*s: %s", VIEW_ARGS(n->key), err.text);
	if (b->faults == before && parameter_read(buf_view(&text), 0, &unused, &err) < 0)
		fault(b, n->key_at, "%.*s: %s", VIEW_ARGS(n->key), err.text);
}

void
parameters_write(struct builder *b, const struct node *all, unsigned depth, struct canon_writer *w)
{
	const struct node *sorted[PARAMETERS_MAX];
	unsigned before = b->faults;
	size_t n = 0;

	canon_array_begin(w);
	if (all != NULL && all->first == NULL)
		fault(b, all->at, "there must be at least one parameter");
	if (all != NULL)
		node_each(one, all)
		{
			if (n == PARAMETERS_MAX) {
				fault(b, one->key_at, "more than %d parameters stand here",
					PARAMETERS_MAX);
				break;
			}
			sorted[n++] = one;
		}
	qsort(sorted, n, sizeof(sorted[0]), by_key);
	/* At the top each is tried alone first: then all faults are told, and nothing is told twice. */
	for (size_t i = 0; depth == 0 && i < n; i++)
		judge(b, sorted[i]);
	for (size_t i = 0; b->faults == before && i < n; i++)
		one_write(b, sorted[i], true, depth, w);
	canon_array_end(w);
}
