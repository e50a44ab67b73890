/* SPDX-License-Identifier: Apache-2.0 */
/* `request` and `verify` of an operation; see operation_parts.h. */
#include "config/operation_parts.h"
#include "config/provider.h"
#include "config/template.h"

enum { KEPT_MAX = 16 };

/* ---- what is kept of an answer ---- */

/* Rows of {name: field}, ascending by name in the document. */
struct kept {
	struct view name[KEPT_MAX], field[KEPT_MAX];
	size_t n;
};

static void
kept_add(struct builder *b, struct kept *k, const struct node *n, struct view name,
	struct view field)
{
	size_t at = k->n;

	while (at > 0 && canon_key_compare(k->name[at - 1], name) > 0)
		at--;
	if (at > 0 && view_eq(k->name[at - 1], name)) {
		fault(b, n->at, "%.*s stands here twice; keep one", VIEW_ARGS(name));
		return;
	}
	if (k->n == KEPT_MAX) {
		fault(b, n->key_at, "more than %d fields stand here", KEPT_MAX);
		return;
	}
	memmove(&k->name[at + 1], &k->name[at], (k->n - at) * sizeof(k->name[0]));
	memmove(&k->field[at + 1], &k->field[at], (k->n - at) * sizeof(k->field[0]));
	k->name[at] = name;
	k->field[at] = field;
	k->n++;
}

/* [{first: ..., second: ...}], in the order of the rows. */
static void
pairs_write(struct canon_writer *w, const char *key, const char *first, const struct view *a,
	const char *second, const struct view *b, size_t n)
{
	put_key(w, key);
	canon_array_begin(w);
	for (size_t i = 0; i < n; i++) {
		canon_object_begin(w);
		put_key(w, first);
		canon_str(w, a[i]);
		put_key(w, second);
		canon_str(w, b[i]);
		canon_object_end(w);
	}
	canon_array_end(w);
}

static void
receipt_write(struct builder *b, const struct node *n, struct canon_writer *w)
{
	struct kept k = {.n = 0};

	if (n == NULL)
		return;
	if (n->first == NULL)
		fault(b, n->at, "receipt is empty; take it away, or keep a field");
	node_each(one, n)
	{
		if (!name_is(one->key, false))
			fault(b, one->key_at,
				"a name of receipt is 1 to 63 of a-z, 0-9 and _, a letter first");
		field_check(b, one);
		kept_add(b, &k, one, one->key, one->text);
	}
	pairs_write(w, "receipt", "field", k.field, "name", k.name, k.n);
}

/* field: parameter. */
static void
echo_write(struct builder *b, const struct node *n, struct canon_writer *w)
{
	struct kept k = {.n = 0};

	if (n == NULL)
		return;
	if (n->first == NULL)
		fault(b, n->at, "echo is empty; take it away, or name a field of the answer");
	node_each(one, n)
	{
		const struct node field = {
			.kind = NODE_SCALAR, .text = one->key, .at = one->key_at};

		field_check(b, &field);
		if (parameter_node(b, one->text) == NULL)
			parameter_missing(b, one->at, one->text);
		kept_add(b, &k, one, one->text, one->key);
	}
	pairs_write(w, "echo", "argument", k.name, "field", k.field, k.n);
}

static bool
fact_name_is(struct view v)
{
	bool ok = v.n > 0 && v.n <= 63 && memmem(v.p, v.n, "__", 2) == NULL;

	for (size_t i = 0, start = 0; ok && i <= v.n; i++) {
		if (i < v.n && v.p[i] != '.')
			continue;
		ok = i > start && name_is(view_of(v.p + start, i - start), false) &&
		     v.p[i - 1] != '_';
		start = i + 1;
	}
	return ok;
}

static void
facts_write(struct builder *b, const struct node *n, struct canon_writer *w)
{
	struct kept k = {.n = 0};

	if (n != NULL && n->first == NULL)
		fault(b, n->at, "facts is empty; which fields of the answer are looked at?");
	if (n != NULL)
		node_each(one, n)
		{
			if (!fact_name_is(one->key))
				fault(b, one->key_at,
					"the name of a fact is words of a-z, 0-9 and _ with dots "
					"between, "
					"such as order.status");
			else if (parameter_node(b, one->key) != NULL)
				fault(b, one->key_at,
					"%.*s is a parameter too; call the fact order.%.*s, or "
					"what it "
					"is of",
					VIEW_ARGS(one->key), VIEW_ARGS(one->key));
			field_check(b, one);
			kept_add(b, &k, one, one->key, one->text);
		}
	pairs_write(w, "facts", "field", k.field, "name", k.name, k.n);
}

/* ---- pieces ---- */

/* The provider's document, or null where there is none that can be used. */
static const struct provider_source *
provider_put(struct builder *b, const struct node *n, struct canon_writer *w)
{
	const struct provider_source *p = n == NULL ? NULL : provider_find(b, n);

	put_key(w, "provider");
	if (p != NULL && p->good)
		provider_write(b, p, w);
	else
		canon_null(w);
	b->incomplete |= p == NULL || !p->good;
	return p != NULL && p->good ? p : NULL;
}

/* No status means two things. */
static void
meanings_apart(struct builder *b, const struct statuses *success, const struct statuses *pending,
	const struct provider_source *p)
{
	statuses_apart(b, pending, "pending", success, "success");
	if (p == NULL)
		return;
	statuses_apart(b, success, "success", &p->definite, "definite of the provider");
	statuses_apart(b, success, "success", &p->not_processed, "not_processed of the provider");
	statuses_apart(b, success, "success", &p->concurrent, "concurrent of the provider");
	statuses_apart(b, pending, "pending", &p->definite, "definite of the provider");
	statuses_apart(b, pending, "pending", &p->not_processed, "not_processed of the provider");
	statuses_apart(b, pending, "pending", &p->concurrent, "concurrent of the provider");
}

static const char *const encodings[] = {"json", "form", NULL};
enum { ENCODING_JSON, ENCODING_FORM };

static unsigned
encoding_read(struct builder *b, const struct section *s)
{
	const struct node *n = s->at[KEY_REQUEST_ENCODING];
	unsigned encoding = ENCODING_JSON;

	if (n != NULL && s->at[KEY_REQUEST_BODY] == NULL)
		fault(b, n->key_at, "encoding is of a body; there is none");
	if (n != NULL)
		(void)value_word(b, n, "encoding", encodings, &encoding);
	return encoding;
}

static void
method_write(struct builder *b, const struct section *s, enum effect effect, struct canon_writer *w)
{
	static const char *const reads[] = {"GET", NULL};
	static const char *const writes[] = {"POST", "PUT", "PATCH", "DELETE", NULL};
	const struct node *n = s->at[KEY_REQUEST_METHOD];
	unsigned unused;

	if (n == NULL)
		return;
	(void)value_word(b, n,
		effect == EFFECT_READ ? "method of an operation that only reads" : "method",
		effect == EFFECT_READ ? reads : writes, &unused);
	if (effect == EFFECT_READ && s->at[KEY_REQUEST_BODY] != NULL)
		fault(b, s->at[KEY_REQUEST_BODY]->key_at, "GET has no body");
	put_key(w, "method");
	canon_str(w, n->text);
}

/* A look-up by reference has it from the receipt. */
static void
reference_check(struct builder *b, const struct section *s, const struct provider_source *p)
{
	const struct node *receipt = s->at[KEY_REQUEST_RECEIPT];

	if (p == NULL || p->lookup.node == NULL || p->lookup_by != LOOKUP_BY_REFERENCE)
		return;
	if (receipt == NULL || node_child(receipt, "reference") == NULL)
		fault(b, s->node->key_at,
			"provider %.*s is looked up by reference: the receipt needs a field of "
			"that "
			"name, such as receipt: {reference: id}",
			VIEW_ARGS(p->node->key));
}

void
request_write(
	struct builder *b, const struct section *op, enum effect effect, struct canon_writer *w)
{
	const struct term_room room = {.what = "a request", .hosts = HOSTS_OF_REQUEST};
	const struct node *n = op->at[KEY_OPERATION_REQUEST], *body;
	struct statuses success, pending;
	const struct provider_source *p;
	struct section s;
	unsigned encoding;

	put_key(w, "request");
	canon_object_begin(w);
	if (n == NULL || !section_read(b, SECTION_REQUEST, n, &s)) {
		canon_object_end(w);
		return;
	}
	body = s.at[KEY_REQUEST_BODY];
	encoding = encoding_read(b, &s);
	if (body != NULL) {
		put_key(w, "body");
		body_write(b, &room, body, encoding == ENCODING_FORM, w);
	}
	echo_write(b, s.at[KEY_REQUEST_ECHO], w);
	put_key(w, "encoding");
	canon_str(w, view_str(body == NULL ? "none" : encodings[encoding]));
	method_write(b, &s, effect, w);
	put_key(w, "path");
	path_write(b, &room, s.at[KEY_REQUEST_PATH], w);
	statuses_read(b, s.at[KEY_REQUEST_PENDING], "pending", 200, 299, &pending);
	statuses_write(w, "pending", &pending);
	p = provider_put(b, s.at[KEY_REQUEST_PROVIDER], w);
	query_write(b, &room, s.at[KEY_REQUEST_QUERY], w);
	receipt_write(b, s.at[KEY_REQUEST_RECEIPT], w);
	statuses_read(b, s.at[KEY_REQUEST_SUCCESS], "success", 200, 299, &success);
	statuses_write(w, "success", &success);
	canon_object_end(w);
	meanings_apart(b, &success, &pending, p);
	reference_check(b, &s, p);
}

/* ---- verify ---- */

static void
require_write(const struct section *op, const struct section *s, enum conditions which,
	struct canon_writer *w)
{
	const struct node *facts = s->at[KEY_VERIFY_FACTS], *require = s->at[KEY_VERIFY_REQUIRE];

	put_key(w, "require");
	canon_array_begin(w);
	if (which == CONDITIONS_LATER && facts != NULL && facts->first != NULL) {
		canon_object_begin(w);
		put_key(w, "left");
		canon_object_begin(w);
		put_key(w, "fact");
		canon_str(w, facts->first->key);
		canon_object_end(w);
		put_key(w, "op");
		canon_str(w, view_str("eq"));
		put_key(w, "right");
		canon_object_begin(w);
		put_key(w, "host");
		canon_str(w, view_str("tenant"));
		canon_object_end(w);
		canon_object_end(w);
	}
	if (which == CONDITIONS_NOW && require != NULL)
		node_each(one, require) condition_write(op, one->text, w);
	canon_array_end(w);
}

void
verify_write(
	struct builder *b, const struct section *op, enum conditions which, struct canon_writer *w)
{
	const struct term_room room = {.what = "verify", .hosts = HOSTS_OF_VERIFY};
	const struct node *n = op->at[KEY_OPERATION_VERIFY];
	struct section s;

	if (n == NULL)
		return;
	put_key(w, "verify");
	canon_object_begin(w);
	if (section_read(b, SECTION_VERIFY, n, &s)) {
		facts_write(b, s.at[KEY_VERIFY_FACTS], w);
		put_key(w, "path");
		path_write(b, &room, s.at[KEY_VERIFY_PATH], w);
		(void)provider_put(b, s.at[KEY_VERIFY_PROVIDER], w);
		query_write(b, &room, s.at[KEY_VERIFY_QUERY], w);
		require_write(op, &s, which, w);
	}
	canon_object_end(w);
}
