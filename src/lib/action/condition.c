/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conditions; see condition.h. A condition of the document and one in text become the same struct condition; one function says whether it can be
 * true for the operation, another whether it is. What is not there, or of another type, does not hold.
 */
#include "lib/action/condition.h"

#include "lib/action/parameter.h"
#include "lib/action/part.h"
#include "lib/action/template.h"
#include "lib/base/num.h"
#include "lib/base/utf8.h"

#include <errno.h>
#include <stdio.h>

enum condition_op { OP_EQ, OP_NE, OP_LE, OP_GE, OP_LT, OP_GT, OP_IN, OPS };

static const struct {
	const char *word, *sign;
} ops[OPS] = {
	[OP_EQ] = {"eq", "=="},
	[OP_NE] = {"ne", "!="},
	[OP_LE] = {"le", "<="},
	[OP_GE] = {"ge", ">="},
	[OP_LT] = {"lt", "<"},
	[OP_GT] = {"gt", ">"},
	[OP_IN] = {"in", "in"},
};

enum operand_kind {
	OPERAND_FACT,
	OPERAND_ARGUMENT,
	OPERAND_TENANT,
	OPERAND_TASK,
	OPERAND_LITERAL,
	OPERAND_LIST
};

enum { LIST_MAX = 32 };

struct operand {
	enum operand_kind kind;
	struct view name;        /* FACT, ARGUMENT */
	struct form_value value; /* LITERAL; LIST of the document: its array */
	struct view list;        /* LIST in text: between the brackets */
};

struct condition {
	struct operand left, right;
	enum condition_op op;
};

/* ---- the document ---- */

enum { T_ARGUMENT, T_FACT, T_HOST, T_LIST, T_LITERAL, T_N };

static int
operand_form(struct view raw, struct operand *ret, struct err *err)
{
	static const struct form_row form[T_N] = {{"argument", FORM_STR, true},
		{"fact", FORM_STR, true}, {"host", FORM_STR, true}, {"list", FORM_ARRAY, true},
		{"literal", FORM_ANY, true}};
	static const enum operand_kind kind[T_N] = {
		OPERAND_ARGUMENT, OPERAND_FACT, OPERAND_TENANT, OPERAND_LIST, OPERAND_LITERAL};
	struct form_value v[T_N];
	unsigned n = 0;
	int e = form_read(raw, "side", form, T_N, v, err);

	for (unsigned i = 0; e == 0 && i < T_N; i++) {
		if (!v[i].there)
			continue;
		n++;
		*ret = (struct operand){.kind = kind[i], .name = v[i].text, .value = v[i]};
	}
	if (e == 0 && n != 1)
		return err_set(
			err, -EINVAL, "a side is one thing: argument, fact, host, list or literal");
	if (e == 0 && ret->kind == OPERAND_TENANT && view_is(ret->name, "task"))
		ret->kind = OPERAND_TASK;
	else if (e == 0 && ret->kind == OPERAND_TENANT && !view_is(ret->name, "tenant"))
		return err_set(err, -EINVAL, "host is tenant or task in a condition");
	return e;
}

static int
condition_form(struct view raw, struct condition *ret, struct err *err)
{
	static const struct form_row form[] = {{"left", FORM_OBJECT, false},
		{"op", FORM_STR, false}, {"right", FORM_OBJECT, false}};
	struct form_value v[ARRAY_LEN(form)];
	unsigned op = 0;
	int e = form_read(raw, "condition", form, ARRAY_LEN(form), v, err);

	if (e < 0)
		return e;
	while (op < OPS && !view_is(v[1].text, ops[op].word))
		op++;
	if (op == OPS)
		return err_set(err, -EINVAL, "op is eq, ne, le, ge, lt, gt or in");
	ret->op = (enum condition_op)op;
	e = operand_form(v[0].raw, &ret->left, err);
	return e < 0 ? e : operand_form(v[2].raw, &ret->right, err);
}

/* ---- text ---- */

static void
blanks(struct view *v)
{
	while (v->n > 0 && v->p[0] == ' ')
		*v = view_skip(*v, 1);
}

static struct view
word_take(struct view *v)
{
	size_t n = 0;

	while (n < v->n) {
		uint8_t c = v->p[n], lower = c | 0x20;

		if (c != '_' && c != '.' && c != '-' && (c < '0' || c > '9') &&
			(lower < 'a' || lower > 'z'))
			break;
		n++;
	}
	struct view word = view_of(v->p, n);

	*v = view_skip(*v, n);
	return word;
}

/* "quoted text", a word, an integer, true or false, as a literal. */
static int
literal_take(struct view *rest, struct form_value *ret, struct err *err)
{
	struct form_value v = {.there = true, .type = FORM_TEXT};

	if (view_starts(*rest, "\"")) {
		struct view in = view_skip(*rest, 1);
		const uint8_t *end = in.n == 0 ? NULL : memchr(in.p, '"', in.n);

		if (end == NULL || memchr(in.p, '\\', (size_t)(end - in.p)) != NULL)
			return err_set(
				err, -EINVAL, "quoted text ends with \" and has no \" or \\ in it");
		v.text = view_of(in.p, (size_t)(end - in.p));
		*rest = view_skip(in, v.text.n + 1);
	} else {
		v.text = word_take(rest);
		if (v.text.n == 0)
			return err_set(err, -EINVAL,
				"a value is expected: @tenant, @task, an integer, a word or "
				"\"text\"");
		if (num_i64(v.text, &v.i) == 0 && v.i <= CANON_INT_MAX && v.i >= -CANON_INT_MAX)
			v.type = FORM_INT;
		else if (view_is(v.text, "true") || view_is(v.text, "false"))
			v.type = FORM_BOOL;
		v.b = view_is(v.text, "true");
	}
	*ret = v;
	return 0;
}

/* Is this the name of a fact of the operation: 1, 0 or negative. */
static int
fact_known(const struct operation *op, struct view name, struct err *err)
{
	struct form_value facts = {0}, one = {0}, v = {0};
	struct form_list l;
	int e = op->verify.n == 0 ? 0 : form_find(op->verify, view_str("facts"), &facts, err);

	if (e <= 0)
		return e;
	e = form_list_begin(&l, facts.raw, err);
	while (e == 0 && (e = form_list_next(&l, &one, err)) == 1) {
		e = form_find(one.raw, view_str("name"), &v, err);
		if (e == 1 && view_eq(v.text, name))
			return 1;
		e = e < 0 ? e : 0;
	}
	return e;
}

static int
left_take(const struct operation *op, struct view *rest, struct operand *ret, struct err *err)
{
	struct parameter p;
	int e;

	ret->name = word_take(rest);
	ret->kind = OPERAND_FACT;
	if (ret->name.n == 0)
		return err_set(err, -EINVAL, "a condition begins with a fact or a parameter");
	e = fact_known(op, ret->name, err);
	if (e != 0)
		return e < 0 ? e : 0;
	ret->kind = OPERAND_ARGUMENT;
	e = parameter_find(op->parameters, ret->name, &p, err);
	if (e == 0)
		return err_set(err, -EINVAL, "\"%.*s\" is neither a fact nor a parameter of %.*s",
			ret->name.n > 60 ? 60 : (int)ret->name.n, (const char *)ret->name.p,
			VIEW_ARGS(op->name));
	return e < 0 ? e : 0;
}

static int
op_take(struct view *rest, enum condition_op *ret, struct err *err)
{
	/* The longer sign first; OP_LT and OP_GT stand behind OP_LE and OP_GE. */
	for (unsigned i = 0; i < OPS; i++) {
		if (!view_starts(*rest, ops[i].sign))
			continue;
		*rest = view_skip(*rest, strlen(ops[i].sign));
		if (i == OP_IN && rest->n > 0 && rest->p[0] != ' ' && rest->p[0] != '[')
			break;
		*ret = (enum condition_op)i;
		return 0;
	}
	if (view_starts(*rest, "=")) {
		*rest = view_skip(*rest, 1);
		*ret = OP_EQ;
		return 0;
	}
	return err_set(err, -EINVAL, "==, !=, <=, >=, <, > or in is expected");
}

/* A word that is a parameter's name is the parameter; one that is a fact's name is a mistake. */
static int
word_right(const struct operation *op, struct operand *ret, struct err *err)
{
	struct parameter p;
	int e = parameter_find(op->parameters, ret->value.text, &p, err);

	if (e == 1) {
		ret->kind = OPERAND_ARGUMENT;
		ret->name = ret->value.text;
	}
	if (e != 0)
		return e < 0 ? e : 0;
	e = fact_known(op, ret->value.text, err);
	if (e == 1)
		return err_set(
			err, -EINVAL, "a fact stands on the left; quote a text that has its name");
	return e;
}

static int
right_take(const struct operation *op, enum condition_op which, struct view *rest,
	struct operand *ret, struct err *err)
{
	bool quoted = view_starts(*rest, "\"");
	int e;

	if (which == OP_IN) {
		const uint8_t *end = rest->n == 0 ? NULL : memchr(rest->p, ']', rest->n);

		if (!view_starts(*rest, "[") || end == NULL)
			return err_set(err, -EINVAL, "[a, b] is expected behind in");
		ret->kind = OPERAND_LIST;
		ret->list = view_of(rest->p + 1, (size_t)(end - rest->p) - 1);
		*rest = view_skip(*rest, ret->list.n + 2);
		return 0;
	}
	if (view_starts(*rest, "@")) {
		*rest = view_skip(*rest, 1);
		ret->name = word_take(rest);
		ret->kind = view_is(ret->name, "task") ? OPERAND_TASK : OPERAND_TENANT;
		return view_is(ret->name, "task") || view_is(ret->name, "tenant")
			       ? 0
			       : err_set(err, -EINVAL, "only @tenant and @task are known");
	}
	ret->kind = OPERAND_LITERAL;
	e = literal_take(rest, &ret->value, err);
	if (e == 0 && !quoted && ret->value.type == FORM_TEXT)
		e = word_right(op, ret, err);
	return e;
}

static bool
printable(struct view text)
{
	while (text.n > 0) {
		uint32_t c = 0;
		int n = utf8_next(text, &c);

		if (n < 0 || c < 0x20 || (c >= 0x7f && c < 0xa0) || utf8_noncharacter(c))
			return false;
		text = view_skip(text, (size_t)n);
	}
	return true;
}

static int
condition_text(const struct operation *op, struct view text, struct condition *ret, struct err *err)
{
	struct condition c = {0};
	int e;

	if (text.n == 0 || text.n > CONDITION_BYTES_MAX || !printable(text))
		return err_set(err, -EINVAL, "a condition is one line of 1 to %d bytes",
			CONDITION_BYTES_MAX);
	blanks(&text);
	e = left_take(op, &text, &c.left, err);
	blanks(&text);
	if (e == 0)
		e = op_take(&text, &c.op, err);
	blanks(&text);
	if (e == 0)
		e = right_take(op, c.op, &text, &c.right, err);
	blanks(&text);
	if (e == 0 && text.n != 0)
		e = err_set(err, -EINVAL, "something stands behind the condition");
	if (e == 0)
		*ret = c;
	return e;
}

/* ---- lists ---- */

struct items {
	struct form_list l;
	struct view rest;
	bool text, some;
	size_t n;
};

static int
items_begin(struct items *it, const struct operand *o, struct err *err)
{
	*it = (struct items){.rest = o->list, .text = !o->value.there};
	return it->text ? 0 : form_list_begin(&it->l, o->value.raw, err);
}

/* 1 with a literal, 0 at the end, negative. */
static int
items_next(struct items *it, struct form_value *ret, struct err *err)
{
	int e;

	if (++it->n > LIST_MAX + 1)
		return err_set(err, -EINVAL, "a list has at most %d values", LIST_MAX);
	if (!it->text) {
		e = form_list_next(&it->l, ret, err);
		if (e == 1 && (ret->type == FORM_ARRAY || ret->type == FORM_OBJECT ||
				      ret->type == FORM_NULL))
			return err_set(err, -EINVAL, "a list has strings, integers and booleans");
		return e;
	}
	blanks(&it->rest);
	if (it->some && it->rest.n == 0)
		return 0;
	if (it->some && it->rest.p[0] != ',')
		return err_set(err, -EINVAL, "values of a list stand with , between them");
	if (it->some)
		it->rest = view_skip(it->rest, 1);
	it->some = true;
	blanks(&it->rest);
	e = literal_take(&it->rest, ret, err);
	return e < 0 ? e : 1;
}

/* ---- can it be true ---- */

/* The type of a side where it is known before: FORM_ANY for a fact. */
static int
side_type(const struct operation *op, const struct operand *o, enum form_type *ret, struct err *err)
{
	struct parameter p;
	int e;

	*ret = FORM_TEXT;
	if (o->kind == OPERAND_LITERAL)
		*ret = o->value.type;
	if (o->kind == OPERAND_FACT) {
		*ret = FORM_ANY;
		e = fact_known(op, o->name, err);
		return e == 0 ? err_set(err, -EINVAL, "\"%.*s\" is not a fact of verify",
					o->name.n > 60 ? 60 : (int)o->name.n,
					(const char *)o->name.p)
			      : (e < 0 ? e : 0);
	}
	if (o->kind != OPERAND_ARGUMENT)
		return 0;
	e = parameter_find(op->parameters, o->name, &p, err);
	if (e <= 0 || p.type >= PARAMETER_ARRAY)
		return e < 0 ? e
			     : err_set(err, -EINVAL,
				       "\"%.*s\" is not a parameter with a plain value",
				       o->name.n > 60 ? 60 : (int)o->name.n,
				       (const char *)o->name.p);
	if (p.type == PARAMETER_INTEGER)
		*ret = FORM_INT;
	if (p.type == PARAMETER_BOOLEAN)
		*ret = FORM_BOOL;
	return 0;
}

static int
list_possible(const struct condition *c, enum form_type left, struct err *err)
{
	struct form_value one = {0};
	struct items it;
	int e = items_begin(&it, &c->right, err);

	while (e == 0 && (e = items_next(&it, &one, err)) == 1) {
		if (left != FORM_ANY && one.type != left)
			return err_set(err, -EINVAL, "a list has another type than its left side");
		e = 0;
	}
	return e;
}

static int
condition_possible(const struct operation *op, const struct condition *c, struct err *err)
{
	enum form_type left = FORM_ANY, right = FORM_ANY;
	int e;

	if (c->left.kind != OPERAND_FACT && c->left.kind != OPERAND_ARGUMENT)
		return err_set(err, -EINVAL, "the left side is a fact or an argument");
	if ((c->op == OP_IN) != (c->right.kind == OPERAND_LIST))
		return err_set(err, -EINVAL, "a list stands behind in, and only there");
	e = side_type(op, &c->left, &left, err);
	if (e == 0 && c->op == OP_IN)
		return list_possible(c, left, err);
	if (e == 0)
		e = side_type(op, &c->right, &right, err);
	if (e < 0)
		return e;
	if (right == FORM_OBJECT || right == FORM_ARRAY || right == FORM_NULL)
		return err_set(err, -EINVAL, "a literal is a string, an integer or a boolean");
	if (left != FORM_ANY && right != FORM_ANY && left != right)
		return err_set(err, -EINVAL, "the two sides have different types");
	if (c->op > OP_NE && ((left != FORM_INT && left != FORM_ANY) ||
				     (right != FORM_INT && right != FORM_ANY)))
		return err_set(err, -EINVAL, "only integers are more or less than others");
	return 0;
}

int
condition_check(const struct operation *op, struct view text, struct err *err)
{
	struct condition c;
	int e = condition_text(op, text, &c, err);

	return e < 0 ? e : condition_possible(op, &c, err);
}

int
conditions_check(const struct operation *op, struct err *err)
{
	struct form_value one = {0};
	struct form_list l;
	size_t n = 0;
	int e = form_list_begin(&l, op->conditions, err);

	while (e == 0 && (e = form_list_next(&l, &one, err)) == 1) {
		struct condition c = {0};

		e = condition_form(one.raw, &c, err);
		if (e == 0)
			e = condition_possible(op, &c, err);
		if (e == 0 && ++n > CONDITIONS_MAX)
			e = err_set(err, -EINVAL, "more than %d conditions", CONDITIONS_MAX);
	}
	return e < 0 ? err_context(err, "require") : 0;
}

/* ---- is it true ---- */

/* The key of a fact in the object of facts: dots are written as "__". */
static struct view
fact_key(struct view name, uint8_t room[static 128])
{
	size_t n = 0;

	for (size_t i = 0; i < name.n && n < 126; i++) {
		bool dot = name.p[i] == '.';

		room[n++] = dot ? '_' : name.p[i];
		if (dot)
			room[n++] = '_';
	}
	return view_of(room, n);
}

/* 1 with the value, 0 when it is not there, negative. */
static int
side_value(const struct condition_world *w, const struct operand *o, struct form_value *ret,
	struct err *err)
{
	uint8_t room[128];

	switch (o->kind) {
	case OPERAND_FACT:
		return w->facts.n == 0 ? 0 : form_find(w->facts, fact_key(o->name, room), ret, err);
	case OPERAND_ARGUMENT:
		return form_find(w->arguments, o->name, ret, err);
	case OPERAND_TENANT:
		*ret = (struct form_value){.there = true, .type = FORM_TEXT, .text = w->tenant};
		return w->tenant.n != 0;
	case OPERAND_TASK:
		*ret = (struct form_value){.there = true, .type = FORM_TEXT, .text = w->task};
		return w->task.n != 0;
	case OPERAND_LITERAL:
	case OPERAND_LIST:
		break;
	}
	*ret = o->value;
	return 1;
}

/* Canonical strings are equal exactly when what is between their quotes is. */
static bool
same(const struct form_value *a, const struct form_value *b)
{
	if (a->type != b->type)
		return false;
	if (a->type == FORM_INT)
		return a->i == b->i;
	if (a->type == FORM_BOOL)
		return a->b == b->b;
	return a->type == FORM_TEXT && view_eq(a->text, b->text);
}

static bool
compared(enum condition_op op, const struct form_value *a, const struct form_value *b)
{
	bool both = a->type == FORM_INT && b->type == FORM_INT;

	switch (op) {
	case OP_EQ:
		return same(a, b);
	case OP_NE:
		return a->type == b->type && a->type != FORM_OBJECT && a->type != FORM_ARRAY &&
		       a->type != FORM_NULL && !same(a, b);
	case OP_LE:
		return both && a->i <= b->i;
	case OP_GE:
		return both && a->i >= b->i;
	case OP_LT:
		return both && a->i < b->i;
	case OP_GT:
		return both && a->i > b->i;
	case OP_IN:
	case OPS:
		break;
	}
	must(0);
}

/* For a person, in ASCII: what is not printable is a question mark, what is long is cut. */
static void
show(const struct form_value *v, bool there, char ret[static 48])
{
	size_t n = 0;

	if (!there)
		(void)snprintf(ret, 48, "not there");
	else if (v->type == FORM_INT)
		(void)snprintf(ret, 48, "%lld", (long long)v->i);
	else if (v->type == FORM_BOOL)
		(void)snprintf(ret, 48, "%s", v->b ? "true" : "false");
	if (!there || v->type == FORM_INT || v->type == FORM_BOOL)
		return;
	for (size_t i = 0; i < v->text.n && n < 40; i++)
		ret[n++] = v->text.p[i] >= 0x20 && v->text.p[i] < 0x7f ? (char)v->text.p[i] : '?';
	(void)snprintf(ret + n, 8, "%s", v->text.n > 40 ? "..." : "");
}

static void
name_show(const struct operand *o, char ret[static 48])
{
	struct form_value v = {.type = FORM_TEXT, .text = o->name};

	if (o->kind == OPERAND_TENANT)
		v.text = view_str("@tenant");
	if (o->kind == OPERAND_TASK)
		v.text = view_str("@task");
	if (o->kind == OPERAND_LITERAL)
		v = o->value;
	if (o->kind == OPERAND_LIST)
		v.text = o->value.there ? o->value.raw : o->list;
	show(&v, true, ret);
}

#define FAILS " does not hold"

static int
does_not_hold(const struct condition *c, const struct form_value *left, bool have_left,
	const struct form_value *right, bool have_right, struct err *err)
{
	char name[48], other[48], a[48], b[48];

	name_show(&c->left, name);
	name_show(&c->right, other);
	show(left, have_left, a);
	show(right, have_right, b);
	if (c->right.kind == OPERAND_LITERAL || c->right.kind == OPERAND_LIST)
		return err_set(err, -EPERM, "%s %s %s" FAILS ": it is %s", name, ops[c->op].sign,
			other, a);
	return err_set(err, -EPERM, "%s %s %s" FAILS ": it is %s, and %s is %s", name,
		ops[c->op].sign, other, a, other, b);
}

static int
in_list(const struct condition *c, const struct form_value *left, struct err *err)
{
	struct form_value one = {0};
	struct items it;
	int e = items_begin(&it, &c->right, err);

	while (e == 0 && (e = items_next(&it, &one, err)) == 1) {
		if (same(left, &one))
			return 1;
		e = 0;
	}
	return e;
}

static int
condition_holds(const struct condition_world *w, const struct condition *c, struct err *err)
{
	struct form_value left = {0}, right = {0};
	int have_left = side_value(w, &c->left, &left, err), have_right, e;

	if (have_left < 0)
		return have_left;
	if (c->op == OP_IN) {
		e = have_left == 1 ? in_list(c, &left, err) : 0;
		if (e != 0)
			return e < 0 ? e : 0;
		return does_not_hold(c, &left, have_left == 1, &right, false, err);
	}
	have_right = side_value(w, &c->right, &right, err);
	if (have_right < 0)
		return have_right;
	if (have_left == 1 && have_right == 1 && compared(c->op, &left, &right))
		return 0;
	return does_not_hold(c, &left, have_left == 1, &right, have_right == 1, err);
}

int
conditions_hold(const struct condition_world *w, struct err *err)
{
	struct form_value one = {0};
	struct form_list l;
	int e;

	if (w->op->conditions.n == 0)
		return 0;
	e = form_list_begin(&l, w->op->conditions, err);
	while (e == 0 && (e = form_list_next(&l, &one, err)) == 1) {
		struct condition c = {0};

		e = condition_form(one.raw, &c, err);
		if (e == 0)
			e = condition_holds(w, &c, err);
	}
	return e;
}

int
conditions_hold_text(const struct condition_world *w, struct view where, struct err *err)
{
	size_t n = 0;

	while (where.n > 0) {
		const uint8_t *end = memchr(where.p, 0, where.n);
		struct condition c;
		struct view text;
		int e;

		if (end == NULL || ++n > CONDITIONS_MAX)
			return err_set(
				err, -EINVAL, "the conditions of the grant are not well-formed");
		text = view_of(where.p, (size_t)(end - where.p));
		e = condition_text(w->op, text, &c, err);
		if (e == 0)
			e = condition_possible(w->op, &c, err);
		if (e == 0)
			e = condition_holds(w, &c, err);
		if (e < 0)
			return e;
		where = view_skip(where, text.n + 1);
	}
	return 0;
}

/* Values stand behind the first FAILS; a second one is part of a value. */
struct view
condition_failed(struct view sentence)
{
	const uint8_t *fails = sentence.n == 0
				       ? NULL
				       : memmem(sentence.p, sentence.n, FAILS, strlen(FAILS));

	return fails == NULL ? view_of(NULL, 0)
			     : view_of(sentence.p, (size_t)(fails - sentence.p) + strlen(FAILS));
}

/* ---- what an == says of an argument ---- */

static bool
says(const struct operand *fact, const struct operand *argument, struct view name)
{
	return fact->kind == OPERAND_FACT && argument->kind == OPERAND_ARGUMENT &&
	       view_eq(argument->name, name);
}

bool
condition_verifies(const struct operation *op, struct view argument)
{
	struct form_value one = {0};
	struct form_list l;
	struct condition c;
	struct err err;

	if (op->conditions.n == 0 || form_list_begin(&l, op->conditions, &err) < 0)
		return false;
	while (form_list_next(&l, &one, &err) == 1)
		if (condition_form(one.raw, &c, &err) == 0 && c.op == OP_EQ &&
			(says(&c.left, &c.right, argument) || says(&c.right, &c.left, argument)))
			return true;
	return false;
}
