/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a condition (lib/action/condition.h has the grammar) as CONDITION of the document. */
#include "config/operation_parts.h"
#include "config/template.h"
#include "lib/base/num.h"

static const struct {
	const char *sign, *word;
} signs[] = {{"==", "eq"}, {"!=", "ne"}, {"<=", "le"}, {">=", "ge"}, {"<", "lt"}, {">", "gt"},
	{"=", "eq"}, {"in", "in"}};

static void
blanks(struct view *v)
{
	while (v->n > 0 && v->p[0] == ' ')
		*v = view_skip(*v, 1);
}

static struct view
word_take(struct view *v)
{
	struct view word = view_of(v->p, 0);

	while (word.n < v->n) {
		uint8_t c = v->p[word.n], lower = c | 0x20;

		if (c != '_' && c != '.' && c != '-' && (c < '0' || c > '9') &&
			(lower < 'a' || lower > 'z'))
			break;
		word.n++;
	}
	*v = view_skip(*v, word.n);
	return word;
}

static const struct node *
parameter_of(const struct section *op, struct view name)
{
	const struct node *all = op->at[KEY_OPERATION_PARAMETERS];

	if (all != NULL)
		node_each(n, all) if (view_eq(n->key, name)) return n;
	return NULL;
}

static void
name_put(struct canon_writer *w, const char *kind, struct view name)
{
	canon_object_begin(w);
	put_key(w, kind);
	canon_str(w, name);
	canon_object_end(w);
}

/* "quoted text", an integer, true, false or a word. */
static void
literal_put(struct canon_writer *w, struct view *rest)
{
	struct view word;
	int64_t i;

	if (view_starts(*rest, "\"")) {
		struct view in = view_skip(*rest, 1);
		const uint8_t *end = in.n == 0 ? NULL : memchr(in.p, '"', in.n);

		word = end == NULL ? in : view_of(in.p, (size_t)(end - in.p));
		*rest = view_skip(in, word.n + 1);
		canon_str(w, word);
		return;
	}
	word = word_take(rest);
	if (num_i64(word, &i) == 0 && i >= -CANON_INT_MAX && i <= CANON_INT_MAX)
		canon_int(w, i);
	else if (view_is(word, "true") || view_is(word, "false"))
		canon_bool(w, view_is(word, "true"));
	else
		canon_str(w, word);
}

static void
list_put(struct canon_writer *w, struct view *rest)
{
	*rest = view_skip(*rest, 1); /* [ */
	canon_object_begin(w);
	put_key(w, "list");
	canon_array_begin(w);
	do {
		size_t before = rest->n;

		blanks(rest);
		literal_put(w, rest);
		blanks(rest);
		if (view_starts(*rest, ","))
			*rest = view_skip(*rest, 1);
		if (rest->n == before)
			break; /* not a list; the reader of the document refuses what it became */
	} while (rest->n > 0 && rest->p[0] != ']');
	canon_array_end(w);
	canon_object_end(w);
}

static void
right_put(const struct section *op, struct canon_writer *w, struct view *rest)
{
	struct view whole = *rest, word;

	if (view_starts(*rest, "[")) {
		list_put(w, rest);
		return;
	}
	if (view_starts(*rest, "@")) {
		name_put(w, "host", view_skip(*rest, 1));
		return;
	}
	word = word_take(rest);
	if (word.n > 0 && parameter_of(op, word) != NULL) {
		name_put(w, "argument", word);
		return;
	}
	*rest = whole;
	canon_object_begin(w);
	put_key(w, "literal");
	literal_put(w, rest);
	canon_object_end(w);
}

void
condition_write(const struct section *op, struct view text, struct canon_writer *w)
{
	struct view left, rest = text;
	const char *sign = "";

	while (rest.n > 0 && rest.p[rest.n - 1] == ' ')
		rest.n--;
	blanks(&rest);
	left = word_take(&rest);
	blanks(&rest);
	for (size_t i = 0; i < ARRAY_LEN(signs); i++)
		if (view_starts(rest, signs[i].sign)) {
			rest = view_skip(rest, strlen(signs[i].sign));
			sign = signs[i].word;
			break;
		}
	blanks(&rest);
	canon_object_begin(w);
	put_key(w, "left");
	/* What is a fact cannot be a parameter. */
	name_put(w, parameter_of(op, left) != NULL ? "argument" : "fact", left);
	put_key(w, "op");
	canon_str(w, view_str(sign));
	put_key(w, "right");
	right_put(op, w, &rest);
	canon_object_end(w);
}
