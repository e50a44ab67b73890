/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `request` and `verify` of a document: where they go, what they take, what is kept of the answer. Every name that they use must be there.
 */
#include "lib/action/condition.h"
#include "lib/action/parameter.h"
#include "lib/action/part.h"
#include "lib/action/template.h"

#include <errno.h>

#define KNOWN_BEFORE ((1u << HOST_TENANT) | (1u << HOST_TASK))
#define KNOWN        (KNOWN_BEFORE | (1u << HOST_KEY) | (1u << HOST_PROPOSAL))

bool
fact_name_ok(struct view v)
{
	size_t from = 0;

	if (v.n == 0 || v.n > 63 || memmem(v.p, v.n, "__", 2) != NULL)
		return false;
	for (size_t i = 0; i <= v.n; i++) {
		if (i < v.n && v.p[i] != '.')
			continue;
		if (!form_name_ok(view_of(v.p + from, i - from)) || v.p[i - 1] == '_')
			return false;
		from = i + 1;
	}
	return true;
}

/* A literal segment is what pchar of RFC 3986 has, without escapes. */
static bool
segment_ok(struct view v)
{
	if (v.n == 0 || v.n > 128 || view_is(v, ".") || view_is(v, ".."))
		return false;
	for (size_t i = 0; i < v.n; i++) {
		uint8_t c = v.p[i], lower = c | 0x20;

		if ((c < '0' || c > '9') && (lower < 'a' || lower > 'z') &&
			(c == 0 || strchr("-._~!$&'()*+,;=:@", c) == NULL))
			return false;
	}
	return true;
}

static int
path_check(const struct term_place *place, const struct form_value *path, struct err *err)
{
	struct form_value one = {0};
	struct form_list l;
	size_t n = 0;
	int e = form_list_begin(&l, path->raw, err);

	while (e == 0 && (e = form_list_next(&l, &one, err)) == 1) {
		if (++n > 16)
			return err_set(err, -EINVAL, "more than 16 segments");
		if (one.type == FORM_TEXT)
			e = !one.escaped && segment_ok(one.text)
				    ? 0
				    : err_set(err, -EINVAL,
					      "a segment is letters, digits and -._~!$&'()*+,;=:@");
		else
			e = term_check(place, one.raw, 0, err);
	}
	return e < 0 ? err_context(err, "path") : 0;
}

static int
query_check(const struct term_place *place, const struct form_value *query, struct err *err)
{
	struct form_value one = {0}, name = {0}, value = {0};
	struct form_list l;
	size_t n = 0;
	int e = query->there ? form_list_begin(&l, query->raw, err) : 0;

	while (query->there && e == 0 && (e = form_list_next(&l, &one, err)) == 1) {
		e = pair_read(one.raw, &name, &value, err);
		if (e == 0 && ++n > 16)
			e = err_set(err, -EINVAL, "more than 16 pairs");
		if (e == 0)
			e = term_check(place, value.raw, 0, err);
	}
	return e < 0 ? err_context(err, "query") : 0;
}

int
target_check(const struct operation *op, const struct form_value *path,
	const struct form_value *query, unsigned hosts, struct err *err)
{
	struct term_place place = {
		.parameters = op->parameters, .hosts = hosts, .scalar = true, .always = true};
	int e = path_check(&place, path, err);

	place.always = false;
	return e < 0 ? e : query_check(&place, query, err);
}

/* [{first, second}] ordered by the name in it; what the name must be is the caller's. */
static int
kept_check(const struct form_value *v, bool echo, const struct operation *op,
	bool (*ok)(struct view), struct err *err)
{
	struct form_row form[2] = {{"field", FORM_STR, false}, {"name", FORM_STR, false}};
	struct view last = {0};
	struct form_value one = {0}, f[2];
	struct form_list l;
	size_t n = 0, name = echo ? 0 : 1;
	int e = v->there ? form_list_begin(&l, v->raw, err) : 0;

	if (echo) {
		form[0] = (struct form_row){"argument", FORM_STR, false};
		form[1] = (struct form_row){"field", FORM_STR, false};
	}
	while (v->there && e == 0 && (e = form_list_next(&l, &one, err)) == 1) {
		struct parameter p;

		e = form_read(one.raw, "entry", form, ARRAY_LEN(form), f, err);
		if (e == 0 && (!form_field_ok(f[1 - name].text) || !ok(f[name].text)))
			e = err_set(err, -EINVAL, "a name or a field is not well-formed");
		if (e == 0 && ++n > 16)
			e = err_set(err, -EINVAL, "more than 16 entries");
		if (e == 0 && n > 1 && canon_key_compare(last, f[name].text) >= 0)
			e = err_set(err, -EINVAL,
				"entries stand in the order of their names, each once");
		if (e == 0)
			e = parameter_find(op->parameters, f[name].text, &p, err);
		if (e >= 0 && echo && (e == 0 || p.type >= PARAMETER_ARRAY))
			return err_set(err, -EINVAL,
				"\"%.*s\" is not a parameter with a plain value",
				VIEW_ARGS(f[name].text));
		if (e == 1 && ok == fact_name_ok)
			return err_set(err, -EINVAL, "\"%.*s\" is a fact and a parameter",
				VIEW_ARGS(f[name].text));
		e = e < 0 ? e : 0;
		last = f[name].text;
	}
	return e;
}

enum {
	R_BODY,
	R_ECHO,
	R_ENCODING,
	R_METHOD,
	R_PATH,
	R_PENDING,
	R_PROVIDER,
	R_QUERY,
	R_RECEIPT,
	R_SUCCESS,
	R_N
};

/* A form's body is one object of plain values. */
static int
form_body_check(struct view body, struct err *err)
{
	struct form_value one = {0}, name = {0}, value = {0};
	struct form_list l;
	struct term t;
	int e = term_read(body, &t, err);

	if (e == 0 && t.kind != TERM_OBJECT)
		e = err_set(err, -EINVAL, "a form is an object");
	if (e == 0)
		e = form_list_begin(&l, t.v.raw, err);
	while (e == 0 && (e = form_list_next(&l, &one, err)) == 1) {
		e = pair_read(one.raw, &name, &value, err);
		if (e == 0)
			e = term_read(value.raw, &t, err);
		if (e == 0 && (t.kind == TERM_OBJECT || t.kind == TERM_ARRAY))
			e = err_set(err, -EINVAL, "a form has plain values only");
	}
	return e;
}

static int
body_check(const struct operation *op, const struct form_value *v, struct err *err)
{
	struct term_place place = {.parameters = op->parameters, .hosts = KNOWN};
	bool none = view_is(v[R_ENCODING].text, "none"), form = view_is(v[R_ENCODING].text, "form");
	int e = 0;

	if (!none && !form && !view_is(v[R_ENCODING].text, "json"))
		return err_set(err, -EINVAL, "encoding is json, form or none");
	if (none == v[R_BODY].there)
		return err_set(
			err, -EINVAL, "a body is there exactly when encoding is json or form");
	if (none)
		return 0;
	if (form)
		e = form_body_check(v[R_BODY].raw, err);
	place.scalar = false;
	if (e == 0)
		e = term_check(&place, v[R_BODY].raw, 0, err);
	return e < 0 ? err_context(err, "body") : 0;
}

static int
method_check(const struct operation *op, const struct form_value *v, struct err *err)
{
	static const char *const methods[] = {"POST", "PUT", "PATCH", "DELETE"};
	bool read = op->effect == EFFECT_READ;

	if (read && view_is(v[R_METHOD].text, "GET") && view_is(v[R_ENCODING].text, "none"))
		return 0;
	for (size_t i = 0; !read && i < ARRAY_LEN(methods); i++) {
		if (view_is(v[R_METHOD].text, methods[i]))
			return 0;
	}
	return err_set(err, -EINVAL,
		"method is GET without a body for a read, else POST, PUT, PATCH or DELETE");
}

/* No status may mean two things. */
static int
codes_apart(const struct operation *op, struct err *err)
{
	const struct capability *c = &op->provider.capability;
	const struct codes *all[] = {
		&op->success, &op->pending, &c->definite, &c->not_processed, &c->concurrent};

	for (unsigned status = 100; status < 600; status++) {
		unsigned n = 0;

		for (size_t i = 0; i < ARRAY_LEN(all); i++)
			n += codes_have(all[i], status);
		if (n > 1)
			return err_set(err, -EINVAL, "status %u means two things", status);
	}
	return 0;
}

/* Does a part of the path or a value of the query come from the host, one of these. */
static int
names_host(const struct form_value *list, bool pairs, unsigned hosts, struct err *err)
{
	struct form_value one = {0}, name = {0}, value = {0};
	struct form_list l;
	int e = list->there ? form_list_begin(&l, list->raw, err) : 0;

	while (list->there && e == 0 && (e = form_list_next(&l, &one, err)) == 1) {
		struct term t;

		value = one;
		e = pairs ? pair_read(one.raw, &name, &value, err) : 0;
		if (e == 0 && value.type == FORM_OBJECT)
			e = term_read(value.raw, &t, err);
		else
			continue;
		if (e == 0 && t.kind == TERM_HOST && (hosts & (1u << t.host)) != 0)
			return 1;
	}
	return e;
}

/* A look-up that names nothing of the execution would find those of others, and "not found" would be a lie. */
static int
names_execution(const struct form_value *path, const struct form_value *query, struct err *err)
{
	static const unsigned hosts = 1u << HOST_KEY | 1u << HOST_PROPOSAL | 1u << HOST_REFERENCE;
	int e = names_host(path, false, hosts, err);

	if (e == 0)
		e = names_host(query, true, hosts, err);
	if (e == 0)
		return err_set(err, -EINVAL,
			"neither its path nor its query names the execution: @key, @proposal or, "
			"by "
			"reference, @reference");
	return e < 0 ? e : 0;
}

/* Of the look-up: by the key, or by what a receipt calls "reference". */
static int
lookup_check(const struct operation *op, const struct form_value *receipt, struct err *err)
{
	const struct capability *c = &op->provider.capability;
	struct form_value path = {0}, query = {0}, one = {0}, name = {0};
	unsigned hosts = KNOWN;
	struct form_list l;
	bool named = false;
	int e;

	if (c->lookup == LOOKUP_NONE)
		return 0;
	if (c->lookup == LOOKUP_REFERENCE)
		hosts |= 1u << HOST_REFERENCE;
	e = form_find(c->lookup_form, view_str("path"), &path, err);
	if (e >= 0)
		e = form_find(c->lookup_form, view_str("query"), &query, err);
	if (e >= 0)
		e = target_check(op, &path, &query, hosts, err);
	if (e == 0)
		e = names_execution(&path, &query, err);
	if (e < 0)
		return err_context(err, "lookup");
	if (c->lookup == LOOKUP_KEY)
		return 0;
	e = receipt->there ? form_list_begin(&l, receipt->raw, err) : 0;
	while (receipt->there && e == 0 && (e = form_list_next(&l, &one, err)) == 1) {
		e = form_find(one.raw, view_str("name"), &name, err);
		named |= e == 1 && view_is(name.text, "reference");
		e = e < 0 ? e : 0;
	}
	if (e == 0 && !named)
		e = err_set(err, -EINVAL,
			"a lookup by reference needs a receipt with the name \"reference\"");
	return e;
}

int
request_read(struct view raw, struct operation *op, struct err *err)
{
	static const struct form_row form[R_N] = {{"body", FORM_OBJECT, true},
		{"echo", FORM_ARRAY, true}, {"encoding", FORM_STR, false},
		{"method", FORM_STR, false}, {"path", FORM_ARRAY, false},
		{"pending", FORM_ARRAY, true}, {"provider", FORM_OBJECT, false},
		{"query", FORM_ARRAY, true}, {"receipt", FORM_ARRAY, true},
		{"success", FORM_ARRAY, false}};
	struct form_value v[R_N];
	int e = form_read(raw, "request", form, R_N, v, err);

	if (e < 0)
		return e;
	e = provider_read(v[R_PROVIDER].raw, &op->provider, err);
	if (e == 0)
		e = method_check(op, v, err);
	if (e == 0)
		e = body_check(op, v, err);
	if (e == 0)
		e = target_check(op, &v[R_PATH], &v[R_QUERY], KNOWN, err);
	if (e == 0)
		e = codes_read(&v[R_SUCCESS], "success", &op->success, err);
	if (e == 0)
		e = codes_read(&v[R_PENDING], "pending", &op->pending, err);
	if (e == 0)
		e = codes_apart(op, err);
	if (e == 0)
		e = kept_check(&v[R_RECEIPT], false, op, form_name_ok, err);
	if (e == 0)
		e = kept_check(&v[R_ECHO], true, op, form_name_ok, err);
	if (e == 0)
		e = lookup_check(op, &v[R_RECEIPT], err);
	op->request = raw;
	return e < 0 ? err_context(err, "request") : 0;
}

enum { F_FACTS, F_PATH, F_PROVIDER, F_QUERY, F_REQUIRE, F_N };

int
verify_read(struct view raw, struct operation *op, struct err *err)
{
	static const struct form_row form[F_N] = {{"facts", FORM_ARRAY, false},
		{"path", FORM_ARRAY, false}, {"provider", FORM_OBJECT, false},
		{"query", FORM_ARRAY, true}, {"require", FORM_ARRAY, false}};
	struct form_value v[F_N];
	int e = form_read(raw, "verify", form, F_N, v, err);

	if (e < 0)
		return e;
	op->verify = raw;
	op->conditions = v[F_REQUIRE].raw;
	e = provider_read(v[F_PROVIDER].raw, &op->verify_provider, err);
	if (e == 0)
		e = target_check(op, &v[F_PATH], &v[F_QUERY], KNOWN_BEFORE, err);
	if (e == 0)
		e = kept_check(&v[F_FACTS], false, op, fact_name_ok, err);
	if (e == 0)
		e = conditions_check(op, err);
	return e < 0 ? err_context(err, "verify") : 0;
}
