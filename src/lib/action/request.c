/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exact request; see request.h. Values come from a stranger (checked by the schema) and are data everywhere: a segment, a value of a query,
 * a string of JSON. The document says where they stand.
 */
#include "lib/action/request.h"

#include "lib/action/template.h"
#include "lib/base/hex.h"
#include "lib/base/id.h"
#include "lib/base/utf8.h"
#include "lib/canon/write.h"

#include <errno.h>
#include <stdio.h>

struct render {
	const struct request_values *v;
	const struct provider *provider;
	struct request *to;
};

void
request_done(struct request *r)
{
	buf_done(&r->url);
	buf_done(&r->body);
}

static struct view
host_value(const struct request_values *v, enum host_value which)
{
	switch (which) {
	case HOST_KEY:
		return v->key;
	case HOST_TENANT:
		return v->tenant;
	case HOST_TASK:
		return v->task;
	case HOST_PROPOSAL:
		return v->proposal;
	case HOST_REFERENCE:
		return v->reference;
	case HOST_VALUES:
		break;
	}
	must(0);
}

/* The value of a plain term as text: 1, 0 for an argument that is absent, negative. */
static int
plain_text(const struct render *r, struct view raw, struct buf *out, struct err *err)
{
	struct form_value v = {0};
	struct term t;
	int e = term_read(raw, &t, err);

	if (e < 0)
		return e;
	if (t.kind == TERM_HOST) {
		struct view host = host_value(r->v, t.host);

		if (host.n == 0)
			return err_set(err, -EINVAL, "the host does not know a value here");
		buf_add_view(out, host);
		return 1;
	}
	v = t.v;
	if (t.kind == TERM_ARGUMENT) {
		e = form_find(r->v->arguments, t.v.text, &v, err);
		if (e <= 0)
			return e;
	}
	if (v.type == FORM_TEXT)
		form_text(&v, out);
	else if (v.type == FORM_INT)
		buf_addf(out, "%lld", (long long)v.i);
	else if (v.type == FORM_BOOL)
		buf_add_str(out, v.b ? "true" : "false");
	else
		return err_set(err, -EINVAL, "a plain value is expected here");
	return buf_check(out) < 0 ? err_set(err, -EINVAL, "a value is too large for its place") : 1;
}

static bool
unreserved(uint8_t c)
{
	uint8_t lower = c | 0x20;

	return (c >= '0' && c <= '9') || (lower >= 'a' && lower <= 'z') || c == '-' || c == '.' ||
	       c == '_' || c == '~';
}

/* RFC 3986: everything but unreserved becomes %XX. */
static void
percent(struct buf *out, struct view v)
{
	static const char digits[] = "0123456789ABCDEF";

	for (size_t i = 0; i < v.n; i++) {
		uint8_t c = v.p[i];

		if (unreserved(c)) {
			buf_add_byte(out, c);
			continue;
		}
		buf_add_byte(out, '%');
		buf_add_byte(out, (uint8_t)digits[c >> 4]);
		buf_add_byte(out, (uint8_t)digits[c & 15]);
	}
}

static bool
one_line(struct view v)
{
	while (v.n > 0) {
		uint32_t c = 0;
		int n = utf8_next(v, &c);

		if (n < 0 || c < 0x20 || (c >= 0x7f && c < 0xa0))
			return false;
		v = view_skip(v, (size_t)n);
	}
	return true;
}

/* A slash in a value would be encoded, but not every server routes before it decodes. */
static int
segment_put(const struct render *r, struct view raw, struct err *err)
{
	auto_buf struct buf text = {.max = REQUEST_URL_MAX};
	struct view v;
	int e = plain_text(r, raw, &text, err);

	if (e <= 0)
		return e < 0 ? e : err_set(err, -EINVAL, "a part of the path is absent");
	v = buf_view(&text);
	if (v.n == 0 || view_is(v, ".") || view_is(v, "..") || view_has(v, '/') ||
		view_has(v, '\\') || !one_line(v))
		return err_set(err, -EINVAL,
			"a part of the path is empty, \".\", \"..\" or has a slash, backslash or "
			"control character");
	percent(&r->to->url, v);
	return 0;
}

static int
path_put(const struct render *r, struct view path, struct err *err)
{
	struct form_value one = {0};
	struct form_list l;
	int e = form_list_begin(&l, path, err);

	while (e == 0 && (e = form_list_next(&l, &one, err)) == 1) {
		buf_add_byte(&r->to->url, '/');
		if (one.type == FORM_TEXT) {
			buf_add_view(&r->to->url, one.text);
			e = 0;
			continue;
		}
		e = segment_put(r, one.raw, err);
	}
	return e;
}

/* name=value&..., for a query and a form. What is absent is not there. */
static int
pairs_put(const struct render *r, struct view pairs, bool lines, char first, struct buf *out,
	struct err *err)
{
	struct form_value one = {0}, name = {0}, value = {0};
	struct form_list l;
	bool some = false;
	int e = form_list_begin(&l, pairs, err);

	while (e == 0 && (e = form_list_next(&l, &one, err)) == 1) {
		auto_buf struct buf text = {.max = REQUEST_BODY_MAX};
		auto_buf struct buf key = {.max = 256};

		e = pair_read(one.raw, &name, &value, err);
		if (e == 0)
			e = plain_text(r, value.raw, &text, err);
		if (e <= 0)
			continue;
		if (!lines && !one_line(buf_view(&text)))
			return err_set(
				err, -EINVAL, "a value of the query has a control character");
		form_text(&name, &key);
		if (buf_check(&key) < 0)
			return err_set(err, -ENOBUFS, "no memory for a name of the query");
		if (some || first != 0)
			buf_add_byte(out, (uint8_t)(some ? '&' : first));
		percent(out, buf_view(&key));
		buf_add_byte(out, '=');
		percent(out, buf_view(&text));
		some = true;
		e = 0;
	}
	return e;
}

static int json_put(const struct render *r, struct view raw, struct err *err);

static int
host_json(const struct render *r, enum host_value which, struct err *err)
{
	struct view v = host_value(r->v, which);
	struct canon_writer w;
	int e;

	if (v.n == 0)
		return err_set(err, -EINVAL, "the host does not know a value here");
	canon_begin(&w, &r->to->body);
	canon_str(&w, v);
	e = canon_end(&w, err);
	return e < 0 ? e : 1;
}

static int
tree_json(const struct render *r, const struct term *t, struct err *err)
{
	bool object = t->kind == TERM_OBJECT, some = false;
	struct form_value one = {0}, name = {0}, value = {0};
	struct buf *out = &r->to->body;
	struct form_list l;
	int e = form_list_begin(&l, t->v.raw, err);

	buf_add_byte(out, object ? '{' : '[');
	while (e == 0 && (e = form_list_next(&l, &one, err)) == 1) {
		size_t before = out->n;

		value = one;
		e = object ? pair_read(one.raw, &name, &value, err) : 0;
		if (e < 0)
			break;
		if (some)
			buf_add_byte(out, ',');
		if (object) {
			buf_add_view(out, name.raw);
			buf_add_byte(out, ':');
		}
		e = json_put(r, value.raw, err);
		some |= e == 1;
		if (e == 0 && !out->failed)
			out->n = before;
		e = e < 0 ? e : 0;
	}
	buf_add_byte(out, object ? '}' : ']');
	return e < 0 ? e : 1;
}

/* A TEMPLATE as JSON: 1, 0 when it is an argument that is absent, negative. */
static int
json_put(const struct render *r, struct view raw, struct err *err)
{
	struct form_value v = {0};
	struct term t;
	int e = term_read(raw, &t, err);

	if (e < 0)
		return e;
	switch (t.kind) {
	case TERM_ARGUMENT:
		e = form_find(r->v->arguments, t.v.text, &v, err);
		if (e == 1)
			buf_add_view(&r->to->body, v.raw);
		return e;
	case TERM_LITERAL:
		buf_add_view(&r->to->body, t.v.raw);
		return 1;
	case TERM_HOST:
		return host_json(r, t.host, err);
	case TERM_ARRAY:
	case TERM_OBJECT:
		return tree_json(r, &t, err);
	case TERM_KINDS:
		break;
	}
	must(0);
}

static void
origin_put(const struct provider *p, struct buf *out)
{
	buf_add_str(out, p->tls ? "https://" : "http://");
	buf_add_view(out, p->host);
	if (p->port != (p->tls ? 443 : 80))
		buf_addf(out, ":%u", p->port);
}

static int
url_put(const struct render *r, struct view form, struct err *err)
{
	struct form_value path = {0}, query = {0};
	int e;

	origin_put(r->provider, &r->to->url);
	e = form_find(form, view_str("path"), &path, err);
	must(e != 0);
	if (e == 1)
		e = path_put(r, path.raw, err);
	if (e == 0)
		e = form_find(form, view_str("query"), &query, err);
	if (e == 1)
		e = pairs_put(r, query.raw, false, '?', &r->to->url, err);
	if (e == 0 && buf_check(&r->to->url) < 0)
		e = err_set(err, -EINVAL, "the address has more than %d bytes", REQUEST_URL_MAX);
	return e;
}

static int
body_put(const struct render *r, struct view form, struct err *err)
{
	struct form_value encoding = {0}, body = {0};
	struct term t;
	int e = form_find(form, view_str("encoding"), &encoding, err);

	if (e >= 0)
		e = form_find(form, view_str("body"), &body, err);
	if (e <= 0)
		return e;
	if (view_is(encoding.text, "form")) {
		memcpy(r->to->content_type, "application/x-www-form-urlencoded",
			sizeof("application/x-www-form-urlencoded"));
		e = term_read(body.raw, &t, err);
		if (e == 0)
			e = pairs_put(r, t.v.raw, true, 0, &r->to->body, err);
	} else {
		memcpy(r->to->content_type, "application/json", sizeof("application/json"));
		e = json_put(r, body.raw, err);
		if (e == 0)
			e = err_set(err, -EINVAL, "the body is absent");
	}
	if (e >= 0 && buf_check(&r->to->body) < 0)
		e = err_set(err, -EINVAL, "the body has more than %d bytes", REQUEST_BODY_MAX);
	return e < 0 ? e : 0;
}

static int
render(struct render *r, struct view form, bool with_body, struct request *ret, struct err *err)
{
	struct request to = {.method = "GET"};
	int e;

	buf_init(&to.url, REQUEST_URL_MAX);
	buf_init(&to.body, REQUEST_BODY_MAX);
	r->to = &to;
	e = url_put(r, form, err);
	if (e == 0 && with_body)
		e = body_put(r, form, err);
	if (e == 0 && with_body) {
		struct form_value method = {0};

		must(form_find(form, view_str("method"), &method, err) == 1 &&
			method.text.n < sizeof(to.method));
		memset(to.method, 0, sizeof(to.method));
		memcpy(to.method, method.text.p, method.text.n);
	}
	if (e < 0) {
		request_done(&to);
		return e;
	}
	*ret = to;
	return 0;
}

int
request_render(const struct operation *op, const struct request_values *v, struct request *ret,
	struct err *err)
{
	struct render r = {.v = v, .provider = &op->provider};

	return render(&r, op->request, true, ret, err);
}

int
request_render_verify(const struct operation *op, const struct request_values *v,
	struct request *ret, struct err *err)
{
	struct render r = {.v = v, .provider = &op->verify_provider};

	if (op->verify.n == 0)
		return err_set(err, -EINVAL, "%.*s reads nothing before", VIEW_ARGS(op->name));
	return render(&r, op->verify, false, ret, err);
}

int
request_render_lookup(const struct operation *op, const struct request_values *v,
	struct request *ret, struct err *err)
{
	struct render r = {.v = v, .provider = &op->provider};

	if (op->provider.capability.lookup == LOOKUP_NONE)
		return err_set(
			err, -EINVAL, "the provider of %.*s has no look-up", VIEW_ARGS(op->name));
	return render(&r, op->provider.capability.lookup_form, false, ret, err);
}

bool
request_lookup_rule(const struct operation *op, struct lookup_rule *ret)
{
	struct view form = op->provider.capability.lookup_form;
	struct form_value field = {0}, list = {0}, succeeded = {0}, failed = {0};
	struct err err;

	if (op->provider.capability.lookup == LOOKUP_NONE)
		return false;
	must(form_find(form, view_str("field"), &field, &err) == 1);
	must(form_find(form, view_str("list"), &list, &err) >= 0);
	must(form_find(form, view_str("succeeded"), &succeeded, &err) == 1);
	must(form_find(form, view_str("failed"), &failed, &err) >= 0);
	*ret = (struct lookup_rule){.list = list.text,
		.field = field.text,
		.succeeded = succeeded.raw,
		.failed = failed.raw};
	return true;
}

bool
lookup_rule_has(struct view words, struct view text)
{
	struct form_value one = {0};
	struct form_list l;
	struct err err;

	if (words.n == 0 || form_list_begin(&l, words, &err) < 0)
		return false;
	while (form_list_next(&l, &one, &err) == 1) {
		if (view_eq(one.text, text))
			return true;
	}
	return false;
}

void
request_key(uint64_t epoch, const struct id *proposal, uint32_t index,
	char ret[static REQUEST_KEY_MAX + 1])
{
	uint8_t number[12], digest[SHA256_BYTES];
	struct sha256 h;

	for (unsigned i = 0; i < 8; i++)
		number[i] = (uint8_t)(epoch >> (56 - 8 * i));
	for (unsigned i = 0; i < 4; i++)
		number[8 + i] = (uint8_t)(index >> (24 - 8 * i));
	sha256_init(&h);
	sha256_add(&h, "demilune-key-v1", sizeof("demilune-key-v1"));
	sha256_add(&h, number, 8);
	sha256_add(&h, proposal->b, ID_BYTES);
	sha256_add(&h, number + 8, 4);
	sha256_end(&h, digest);
	memcpy(ret, "dml-", 4);
	hex_encode(digest, 20, ret + 4);
}

static size_t
rows(struct view form, const char *key, const char *name, struct answer_field *ret, size_t max)
{
	struct form_value all = {0}, one = {0}, n = {0}, f = {0};
	struct form_list l;
	struct err err;
	size_t i = 0;

	if (form.n == 0 || form_find(form, view_str(key), &all, &err) != 1)
		return 0;
	must(form_list_begin(&l, all.raw, &err) == 0);
	while (i < max && form_list_next(&l, &one, &err) == 1) {
		must(form_find(one.raw, view_str(name), &n, &err) == 1);
		must(form_find(one.raw, view_str("field"), &f, &err) == 1);
		ret[i++] = (struct answer_field){.name = n.text, .field = f.text};
	}
	return i;
}

size_t
request_receipt_fields(const struct operation *op, struct answer_field *ret, size_t max)
{
	return rows(op->request, "receipt", "name", ret, max);
}

size_t
request_fact_fields(const struct operation *op, struct answer_field *ret, size_t max)
{
	return rows(op->verify, "facts", "name", ret, max);
}

size_t
request_echo_fields(const struct operation *op, struct answer_field *ret, size_t max)
{
	return rows(op->request, "echo", "argument", ret, max);
}
