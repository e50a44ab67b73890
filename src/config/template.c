/* SPDX-License-Identifier: Apache-2.0 */
/* Paths, queries and bodies; see template.h. */
#include "config/template.h"

#include "lib/canon/form.h"

enum { TEXT_BYTES_MAX = 16384, DEPTH_MAX = 8, PAIRS_MAX = 16, MEMBERS_MAX = 64, SEGMENTS_MAX = 16 };

static const char *const hosts[HOST_WORDS + 1] = {
	[HOST_KEY] = "key",
	[HOST_TENANT] = "tenant",
	[HOST_TASK] = "task",
	[HOST_PROPOSAL] = "proposal",
	[HOST_REFERENCE] = "reference",
};

const struct node *
node_child(const struct node *n, const char *key)
{
	if (n->kind == NODE_MAPPING)
		node_each(child, n) if (view_is(child->key, key)) return child;
	return NULL;
}

static const struct node *
parameters(const struct builder *b)
{
	return b->operation == NULL ? NULL : b->operation->at[KEY_OPERATION_PARAMETERS];
}

const struct node *
parameter_node(const struct builder *b, struct view name)
{
	const struct node *all = parameters(b);

	if (all != NULL)
		node_each(n, all) if (view_eq(n->key, name)) return n;
	return NULL;
}

static const char *
parameter_name(const void *ctx, size_t i)
{
	const struct node *n = ((const struct node *)ctx)->first;

	for (; n != NULL && i > 0; i--)
		n = n->next;
	return n == NULL ? NULL : (const char *)n->key.p;
}

void
parameter_missing(struct builder *b, struct place at, struct view name)
{
	const struct node *all = parameters(b);
	const char *near = all == NULL ? NULL
				       : nearest(name, parameter_name, all, DOCUMENT_CHILDREN_MAX);

	if (near != NULL)
		fault(b, at, "operation %.*s has no parameter \"%.*s\"; write %s",
			VIEW_ARGS(b->operation->node->key), VIEW_ARGS(name), near);
	else
		fault(b, at, "operation %.*s has no parameter \"%.*s\"",
			VIEW_ARGS(b->operation->node->key), VIEW_ARGS(name));
}

/* ---- terms ---- */

enum term_kind { TERM_BAD, TERM_LITERAL, TERM_ARGUMENT, TERM_HOST };

struct term {
	enum term_kind kind;
	struct view name; /* of an argument */
	enum host_word host;
};

static const char *
host_name(const void *ctx, size_t i)
{
	return (*(const unsigned *)ctx >> i & 1) != 0 ? hosts[i] : NULL;
}

static void
host_read(struct builder *b, const struct term_room *room, struct place at, struct view word,
	struct term *ret)
{
	const char *near = NULL;

	for (unsigned i = 0; i < HOST_WORDS; i++)
		if ((room->hosts >> i & 1) != 0 && view_is(word, hosts[i])) {
			*ret = (struct term){.kind = TERM_HOST, .host = (enum host_word)i};
			return;
		}
	near = nearest(word, host_name, &room->hosts, HOST_WORDS);
	if (near != NULL)
		fault(b, at, "%s knows no @%.*s; write @%s", room->what, VIEW_ARGS(word), near);
	else
		fault(b, at,
			"%s knows no @%.*s; write @tenant or @task%s, or @@ for the character "
			"itself",
			room->what, VIEW_ARGS(word),
			(room->hosts >> HOST_KEY & 1) != 0 ? ", @key or @proposal" : "");
}

/* Fixed text, with its doubled characters as one. false: one of them stands alone. */
static bool
literal_text(struct view v, struct buf *out)
{
	if (view_starts(v, "@@"))
		v = view_skip(v, 1);
	for (size_t i = 0; i < v.n; i++) {
		uint8_t c = v.p[i];

		if (c == '{' || c == '}') {
			if (i + 1 == v.n || v.p[i + 1] != c)
				return false;
			i++;
		}
		buf_add_byte(out, c);
	}
	return true;
}

static struct term
text_read(struct builder *b, const struct term_room *room, struct place at, struct view v,
	struct buf *out)
{
	struct term t = {.kind = TERM_BAD};

	if (view_starts(v, "@") && !view_starts(v, "@@")) {
		host_read(b, room, at, view_skip(v, 1), &t);
		return t;
	}
	if (v.n > 2 && v.p[0] == '{' && v.p[v.n - 1] == '}' && v.p[1] != '{') {
		t.name = view_of(v.p + 1, v.n - 2);
		if (name_is(t.name, false)) {
			t.kind = TERM_ARGUMENT;
			return t;
		}
	}
	if (!literal_text(v, out)) {
		fault(b, at,
			"this is neither {parameter} nor fixed text: nothing may stand beside a "
			"{parameter}; {{ and }} write the braces themselves");
		return t;
	}
	t.kind = TERM_LITERAL;
	return t;
}

/* always: an argument that may be absent cannot stand here. */
static void
argument_check(struct builder *b, const struct term_room *room, struct place at,
	const struct term *t, bool scalar, bool always)
{
	const struct node *p = parameter_node(b, t->name), *type;

	if (b->operation == NULL)
		return;
	if (p == NULL) {
		parameter_missing(b, at, t->name);
		return;
	}
	type = node_child(p, "type");
	if (scalar && type != NULL &&
		(view_is(type->text, "array") || view_is(type->text, "object") ||
			view_is(type->text, "script")))
		fault(b, at, "{%.*s} is not one value and cannot stand in %s here",
			VIEW_ARGS(t->name), room->what);
	if (always && node_child(p, "optional") != NULL)
		fault(b, at, "{%.*s} is optional, but the path always needs it",
			VIEW_ARGS(t->name));
}

static void
term_put(const struct term *t, struct view text, struct canon_writer *w)
{
	switch (t->kind) {
	case TERM_BAD:
		canon_null(w);
		return;
	case TERM_ARGUMENT:
		canon_object_begin(w);
		put_key(w, "argument");
		canon_str(w, t->name);
		break;
	case TERM_HOST:
		canon_object_begin(w);
		put_key(w, "host");
		canon_str(w, view_str(hosts[t->host]));
		break;
	case TERM_LITERAL:
		canon_object_begin(w);
		put_key(w, "literal");
		canon_text(w, text);
		break;
	}
	canon_object_end(w);
}

static void
literal_put(struct canon_writer *w, enum literal literal, int64_t i)
{
	canon_object_begin(w);
	put_key(w, "literal");
	if (literal == LITERAL_INTEGER)
		canon_int(w, i);
	else
		canon_bool(w, literal == LITERAL_TRUE);
	canon_object_end(w);
}

static void
scalar_write(struct builder *b, const struct term_room *room, const struct node *n, bool one_value,
	struct canon_writer *w)
{
	int64_t i = 0;
	enum literal literal = literal_of(n, &i);
	auto_buf struct buf text;
	struct term t = {.kind = TERM_BAD};

	buf_init(&text, TEXT_BYTES_MAX);
	switch (literal) {
	case LITERAL_INTEGER:
	case LITERAL_TRUE:
	case LITERAL_FALSE:
		literal_put(w, literal, i);
		return;
	case LITERAL_TEXT:
		t = text_read(b, room, n->at, n->text, &text);
		break;
	case LITERAL_EMPTY:
		fault(b, n->at, "a value is missing; write \"\" for empty text");
		break;
	case LITERAL_FLOAT:
		fault(b, n->at,
			"numbers with a point are not used; write a whole number of the smallest "
			"unit, or put text in quotes");
		break;
	case LITERAL_DOUBTFUL:
		fault(b, n->at, "write true, false or a plain number, or put text in quotes");
		break;
	}
	if (t.kind == TERM_ARGUMENT)
		argument_check(b, room, n->at, &t, one_value, false);
	if (buf_check(&text) < 0)
		fault(b, n->at, "this text is longer than %d bytes", TEXT_BYTES_MAX);
	term_put(&t, buf_view(&text), w);
}

/* {cents} without quotes is a mapping of one empty value. */
static bool
forgot_quotes(struct builder *b, const struct node *n)
{
	const struct node *one = n->first;

	if (one == NULL || one->next != NULL || one->kind != NODE_SCALAR || !one->plain ||
		one->text.n != 0)
		return false;
	fault(b, n->at, "write \"{%.*s}\", in quotes: without them YAML reads a mapping",
		VIEW_ARGS(one->key));
	return true;
}

/* ---- path and query ---- */

static bool
segment_ok(struct view v)
{
	if (v.n == 0 || v.n > 128 || view_is(v, ".") || view_is(v, ".."))
		return false;
	for (size_t i = 0; i < v.n; i++) {
		uint8_t c = v.p[i], lower = c | 0x20;
		bool alnum = (c >= '0' && c <= '9') || (lower >= 'a' && lower <= 'z');

		if (!alnum && (c == 0 || strchr("-._~!$&'()*+,;=:@", c) == NULL))
			return false;
	}
	return true;
}

static void
segment_write(struct builder *b, const struct term_room *room, const struct node *n, struct view v,
	struct canon_writer *w)
{
	auto_buf struct buf text;
	struct term t;

	buf_init(&text, TEXT_BYTES_MAX);
	t = text_read(b, room, n->at, v, &text);
	if (t.kind == TERM_ARGUMENT)
		argument_check(b, room, n->at, &t, true, true);
	if (t.kind == TERM_LITERAL && !segment_ok(buf_view(&text)))
		fault(b, n->at,
			"path has a part that is not letters, digits and -._~!$&'()*+,;=:@; it is "
			"neither empty, . nor .., and nothing is escaped with %%");
	if (t.kind == TERM_LITERAL)
		canon_str(w, buf_view(&text));
	else
		term_put(&t, buf_view(&text), w);
}

void
path_write(struct builder *b, const struct term_room *room, const struct node *n,
	struct canon_writer *w)
{
	struct view rest;
	size_t segments = 0;

	canon_array_begin(w);
	if (n != NULL && !view_starts(n->text, "/"))
		fault(b, n->at, "path must begin with /");
	else if (n != NULL && (view_has(n->text, '?') || view_has(n->text, '#')))
		fault(b, n->at, "path has no ? and #; what stands behind ? goes below query");
	else if (n != NULL)
		for (rest = view_skip(n->text, 1);; segments++) {
			const uint8_t *slash = rest.n == 0 ? NULL : memchr(rest.p, '/', rest.n);
			struct view one = slash == NULL ? rest
							: view_of(rest.p, (size_t)(slash - rest.p));

			if (segments == SEGMENTS_MAX) {
				fault(b, n->at, "path has more than %d parts", SEGMENTS_MAX);
				break;
			}
			segment_write(b, room, n, one, w);
			if (slash == NULL)
				break;
			rest = view_skip(rest, one.n + 1);
		}
	canon_array_end(w);
}

static void
pair_write(struct builder *b, const struct term_room *room, const struct node *n,
	struct canon_writer *w)
{
	canon_object_begin(w);
	put_key(w, "name");
	canon_str(w, n->key);
	put_key(w, "value");
	if (n->kind == NODE_SCALAR) {
		scalar_write(b, room, n, true, w);
	} else {
		if (n->kind != NODE_MAPPING || !forgot_quotes(b, n))
			fault(b, n->at, "%.*s must be one value", VIEW_ARGS(n->key));
		canon_null(w);
	}
	canon_object_end(w);
}

void
query_write(struct builder *b, const struct term_room *room, const struct node *n,
	struct canon_writer *w)
{
	size_t pairs = 0;

	if (n == NULL)
		return;
	put_key(w, "query");
	canon_array_begin(w);
	if (n->first == NULL)
		fault(b, n->at, "query is empty; take it away");
	node_each(one, n)
	{
		if (pairs++ == PAIRS_MAX)
			fault(b, one->key_at, "query has more than %d values", PAIRS_MAX);
		pair_write(b, room, one, w);
	}
	canon_array_end(w);
}

/* ---- body ---- */

static void body_node(struct builder *b, const struct term_room *room, const struct node *n,
	bool flat, unsigned depth, struct canon_writer *w);

static void
members_write(struct builder *b, const struct term_room *room, const struct node *n, bool flat,
	unsigned depth, struct canon_writer *w)
{
	bool object = n->kind == NODE_MAPPING;
	size_t members = 0;

	canon_object_begin(w);
	put_key(w, object ? "object" : "array");
	canon_array_begin(w);
	node_each(one, n)
	{
		if (members++ == MEMBERS_MAX)
			fault(b, one->at, "more than %d values stand here", MEMBERS_MAX);
		if (object) {
			canon_object_begin(w);
			put_key(w, "name");
			canon_text(w, one->key);
			put_key(w, "value");
		}
		body_node(b, room, one, flat, depth + 1, w);
		if (object)
			canon_object_end(w);
	}
	canon_array_end(w);
	canon_object_end(w);
}

static void
body_node(struct builder *b, const struct term_room *room, const struct node *n, bool flat,
	unsigned depth, struct canon_writer *w)
{
	if (n->kind == NODE_SCALAR) {
		scalar_write(b, room, n, flat, w);
		return;
	}
	if (depth >= DEPTH_MAX)
		fault(b, n->at, "the body is more than %d deep", DEPTH_MAX);
	else if (flat && depth > 0)
		fault(b, n->at, "a form has single values only; write encoding: json for others");
	else if (n->first == NULL)
		fault(b, n->at, "an empty list or mapping cannot be sent; take it away");
	else if (n->kind != NODE_MAPPING || !forgot_quotes(b, n)) {
		members_write(b, room, n, flat, depth, w);
		return;
	}
	canon_null(w);
}

void
body_write(struct builder *b, const struct term_room *room, const struct node *n, bool flat,
	struct canon_writer *w)
{
	body_node(b, room, n, flat, 0, w);
}

/* ---- fields ---- */

void
field_check(struct builder *b, const struct node *n)
{
	if (n->kind != NODE_SCALAR || !form_field_ok(n->text))
		fault(b, n->at,
			"a field is a name in the answer's JSON, or names and numbers of entries "
			"with dots between: data.0.id");
}
