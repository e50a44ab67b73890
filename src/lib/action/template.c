/* SPDX-License-Identifier: Apache-2.0 */
/* Terms and templates of a document; see template.h. Recursion is bounded by TEMPLATE_DEPTH_MAX. */
#include "lib/action/template.h"

#include "lib/action/parameter.h"

#include <errno.h>

static const struct form_row term_form[TERM_KINDS] = {
	[TERM_ARGUMENT] = {"argument", FORM_STR, true},
	[TERM_ARRAY] = {"array", FORM_ARRAY, true},
	[TERM_HOST] = {"host", FORM_STR, true},
	[TERM_LITERAL] = {"literal", FORM_ANY, true},
	[TERM_OBJECT] = {"object", FORM_ARRAY, true},
};

static const char *const host_names[HOST_VALUES] = {
	[HOST_KEY] = "key",
	[HOST_TENANT] = "tenant",
	[HOST_TASK] = "task",
	[HOST_PROPOSAL] = "proposal",
	[HOST_REFERENCE] = "reference",
};

static int
host_read(struct term *t, struct err *err)
{
	for (unsigned i = 0; i < HOST_VALUES; i++) {
		if (view_is(t->v.text, host_names[i])) {
			t->host = (enum host_value)i;
			return 0;
		}
	}
	return err_set(err, -EINVAL, "host is key, tenant, task, proposal or reference");
}

int
term_read(struct view raw, struct term *ret, struct err *err)
{
	struct form_value v[TERM_KINDS];
	struct term t = {.kind = TERM_KINDS};
	int e = form_read(raw, "term", term_form, TERM_KINDS, v, err);

	if (e < 0)
		return e;
	for (unsigned i = 0; i < TERM_KINDS; i++) {
		if (!v[i].there)
			continue;
		if (t.kind != TERM_KINDS)
			return err_set(err, -EINVAL, "a term is one thing, not two");
		t.kind = (enum term_kind)i;
		t.v = v[i];
	}
	if (t.kind == TERM_KINDS)
		return err_set(err, -EINVAL,
			"a term is argument, host or literal; in a body array or object too");
	if (t.kind == TERM_LITERAL && (t.v.type == FORM_OBJECT || t.v.type == FORM_ARRAY))
		return err_set(err, -EINVAL, "a literal is a string, an integer or a boolean");
	if (t.kind == TERM_HOST)
		e = host_read(&t, err);
	if (e == 0)
		*ret = t;
	return e;
}

int
pair_read(
	struct view raw, struct form_value *ret_name, struct form_value *ret_value, struct err *err)
{
	static const struct form_row form[] = {
		{"name", FORM_TEXT, false}, {"value", FORM_OBJECT, false}};
	struct form_value v[2];
	int e = form_read(raw, "member", form, ARRAY_LEN(form), v, err);

	if (e < 0)
		return e;
	if (v[0].text.n == 0 || v[0].text.n > 128 || v[0].controls)
		return err_set(err, -EINVAL,
			"the name of a member has 1 to 128 bytes and no control characters");
	*ret_name = v[0];
	*ret_value = v[1];
	return 0;
}

static int
argument_check(const struct term_place *place, struct view name, struct err *err)
{
	struct parameter p;
	int e = parameter_find(place->parameters, name, &p, err);

	if (e < 0)
		return e;
	if (e == 0)
		return err_set(err, -EINVAL, "\"%.*s\" is not a parameter",
			name.n > 60 ? 60 : (int)name.n, (const char *)name.p);
	if (place->scalar && p.type >= PARAMETER_ARRAY)
		return err_set(err, -EINVAL, "\"%.*s\" is not a string, integer, boolean or enum",
			VIEW_ARGS(p.name));
	if (place->always && p.optional)
		return err_set(err, -EINVAL, "\"%.*s\" may be absent, and this may not",
			VIEW_ARGS(p.name));
	return 0;
}

/* Names are each there once: the earlier ones are read again, n is small. */
static int
member_once(struct view members, struct view name, struct err *err)
{
	struct form_value one = {0}, other_name = {0}, other_value = {0};
	struct form_list l;
	unsigned seen = 0;
	int e = form_list_begin(&l, members, err);

	while (e == 0 && (e = form_list_next(&l, &one, err)) == 1) {
		e = pair_read(one.raw, &other_name, &other_value, err);
		seen += e == 0 && view_eq(other_name.raw, name);
	}
	if (e == 0 && seen != 1)
		return err_set(err, -EINVAL, "a member is there twice");
	return e;
}

static int
tree_check(const struct term_place *place, const struct term *t, unsigned depth, struct err *err)
{
	struct form_value one = {0}, name = {0}, value = {0};
	struct form_list l;
	size_t n = 0;
	int e;

	if (place->scalar || depth >= TEMPLATE_DEPTH_MAX)
		return err_set(err, -EINVAL,
			place->scalar ? "an object or array cannot stand here"
				      : "the body is more than 8 deep");
	e = form_list_begin(&l, t->v.raw, err);
	while (e == 0 && (e = form_list_next(&l, &one, err)) == 1) {
		e = t->kind == TERM_OBJECT ? pair_read(one.raw, &name, &value, err) : 0;
		if (e == 0 && t->kind == TERM_OBJECT)
			e = member_once(t->v.raw, name.raw, err);
		if (e == 0 && ++n > 64)
			e = err_set(err, -EINVAL, "more than 64 members");
		if (e == 0)
			e = term_check(place, t->kind == TERM_OBJECT ? value.raw : one.raw,
				depth + 1, err);
	}
	return e;
}

int
term_check(const struct term_place *place, struct view raw, unsigned depth, struct err *err)
{
	struct term t;
	int e = term_read(raw, &t, err);

	if (e < 0)
		return e;
	switch (t.kind) {
	case TERM_ARGUMENT:
		return argument_check(place, t.v.text, err);
	case TERM_HOST:
		if ((place->hosts & (1u << t.host)) == 0)
			return err_set(
				err, -EINVAL, "the host has no \"%s\" here", host_names[t.host]);
		return 0;
	case TERM_LITERAL:
		return 0;
	case TERM_ARRAY:
	case TERM_OBJECT:
		return tree_check(place, &t, depth, err);
	case TERM_KINDS:
		break;
	}
	must(0);
}
