/* SPDX-License-Identifier: Apache-2.0 */
/* One rule of a document; see policy.h. Which keys a kind has stands in a table; what each may say is tested here, once, for all who decide. */
#include "lib/base/name.h"
#include "lib/egress/part.h"

#include <errno.h>

enum {
	R_ADDRESS,
	R_CREDENTIAL,
	R_FIELDS,
	R_HOST,
	R_KIND,
	R_LABELS,
	R_METHODS,
	R_PATH,
	R_PORT,
	R_QUERY,
	R_REQUEST_MAX,
	R_RESPONSE_MAX,
	R_ROOTS,
	R_TLS,
	R_USES,
	R_WEBSOCKET,
	R_N
};

/* All optional: what a kind needs stands in kinds[]. */
static const struct form_row rule_form[R_N] = {
	[R_ADDRESS] = {"address", FORM_STR, true},
	[R_CREDENTIAL] = {"credential", FORM_OBJECT, true},
	[R_FIELDS] = {"fields", FORM_ARRAY, true},
	[R_HOST] = {"host", FORM_STR, true},
	[R_KIND] = {"kind", FORM_STR, true},
	[R_LABELS] = {"labels", FORM_STR, true},
	[R_METHODS] = {"methods", FORM_ARRAY, true},
	[R_PATH] = {"path", FORM_STR, true},
	[R_PORT] = {"port", FORM_INT, true},
	[R_QUERY] = {"query", FORM_ARRAY, true},
	[R_REQUEST_MAX] = {"request_max", FORM_INT, true},
	[R_RESPONSE_MAX] = {"response_max", FORM_INT, true},
	[R_ROOTS] = {"roots", FORM_STR, true},
	[R_TLS] = {"tls", FORM_BOOL, true},
	[R_USES] = {"uses", FORM_INT, true},
	[R_WEBSOCKET] = {"websocket", FORM_BOOL, true},
};

#define BIT(i) (1U << (i))
enum {
	OF_PLACE = BIT(R_HOST) | BIT(R_KIND) | BIT(R_PORT),
	OF_REQUEST = BIT(R_METHODS) | BIT(R_PATH) | BIT(R_RESPONSE_MAX),
	MAY_PLACE = BIT(R_ADDRESS) | BIT(R_LABELS),
	MAY_REQUEST = BIT(R_QUERY) | BIT(R_ROOTS),
};

static const struct {
	unsigned needs, may;
} kinds[RULE_KIND_MAX] = {
	[RULE_KIND_FETCH] = {OF_PLACE | OF_REQUEST,
		MAY_PLACE | MAY_REQUEST | BIT(R_REQUEST_MAX) | BIT(R_TLS) | BIT(R_WEBSOCKET)},
	[RULE_KIND_BROKERED] = {OF_PLACE | OF_REQUEST | BIT(R_CREDENTIAL) | BIT(R_FIELDS),
		MAY_PLACE | MAY_REQUEST | BIT(R_USES)},
	[RULE_KIND_TCP] = {OF_PLACE, MAY_PLACE},
	[RULE_KIND_PASSTHROUGH] = {OF_PLACE, MAY_PLACE},
};

static int
keys_check(const struct form_value v[static R_N], enum rule_kind kind, struct err *err)
{
	for (unsigned i = 0; i < R_N; i++) {
		if (v[i].there && ((kinds[kind].needs | kinds[kind].may) & BIT(i)) == 0)
			return err_set(err, -EINVAL, "a %s rule has no \"%s\"",
				rule_kind_text(kind), rule_form[i].key);
		if (!v[i].there && (kinds[kind].needs & BIT(i)) != 0)
			return err_set(err, -EINVAL, "a %s rule needs \"%s\"", rule_kind_text(kind),
				rule_form[i].key);
	}
	return 0;
}

/* ---- the place ---- */

static int
labels_read(const struct form_value *v, enum rule_labels *ret, struct err *err)
{
	*ret = !v->there ? LABELS_NONE : view_is(v->text, "one") ? LABELS_ONE : LABELS_MANY;
	if (*ret == LABELS_MANY && !view_is(v->text, "many"))
		return err_set(err, -EINVAL, "labels is one or many");
	return 0;
}

static int
address_read(const struct form_value *v, struct rule *r, struct err *err)
{
	struct address a = {0};

	if (!v->there)
		return 0;
	if (address_parse(v->text, &a) < 0)
		return err_set(err, -EINVAL, "address is not one address in its one form");
	if (r->labels != LABELS_NONE)
		return err_set(err, -EINVAL, "one address for many names");
	if (r->literal && !address_eq(&a, &r->address))
		return err_set(err, -EINVAL, "the host is one address and has another");
	r->address = a;
	r->exact = true;
	return 0;
}

static int
place_read(const struct form_value v[static R_N], struct rule *r, struct err *err)
{
	int64_t port = 0;
	int e = labels_read(&v[R_LABELS], &r->labels, err);

	r->host = v[R_HOST].text;
	r->literal = address_parse(r->host, &r->address) == 0;
	if (e == 0 && !r->literal && !host_name_ok(r->host))
		e = err_set(err, -EINVAL, "the host is no name and no address");
	if (e == 0 && r->literal && r->labels != LABELS_NONE)
		e = err_set(err, -EINVAL, "an address has no labels");
	if (e == 0)
		e = address_read(&v[R_ADDRESS], r, err);
	if (e == 0)
		e = form_int(&v[R_PORT], "port", 1, UINT16_MAX, &port, err);
	if (e == 0 && (port == GATEWAY_DNS_PORT || port == GATEWAY_PROXY_PORT))
		e = err_set(err, -EINVAL, "port %d is the gateway's own", (int)port);
	r->port = (uint16_t)port;
	return e;
}

/* ---- the request ---- */

enum { BODY_METHODS = 1U << HTTP_POST | 1U << HTTP_PUT | 1U << HTTP_PATCH };

static int
methods_read(const struct form_value *v, struct rule *r, struct err *err)
{
	struct form_value one = {0};
	struct form_list l;
	int e = form_list_begin(&l, v->raw, err);

	while (e == 0 && (e = form_list_next(&l, &one, err)) == 1) {
		enum http_method m = one.type != FORM_TEXT ? HTTP_METHODS
							   : http_method_of(one.text);

		if (m == HTTP_METHODS || m == HTTP_CONNECT)
			return err_set(err, -EINVAL, "methods: not a method of rules");
		if (r->methods >> m != 0)
			return err_set(err, -EINVAL, "methods stand in their order, each once");
		r->methods |= 1U << m;
		e = 0;
	}
	if (e == 0 && r->kind == RULE_KIND_BROKERED && r->methods != 1U << HTTP_GET)
		return err_set(err, -EINVAL, "a brokered rule takes GET only");
	return e;
}

static bool
pattern_byte_ok(const uint8_t *p, size_t n)
{
	static const char hex[] = "0123456789ABCDEFabcdef";
	uint8_t c = p[0], lower = c | 0x20;

	if (c == '%')
		return n > 2 && memchr(hex, p[1], 22) != NULL && memchr(hex, p[2], 22) != NULL;
	return (lower >= 'a' && lower <= 'z') || (c >= '0' && c <= '9') ||
	       memchr("-._~!$&'()+,=:@", c, 15) != NULL;
}

bool
rule_path_ok(struct view path)
{
	size_t start = 1;

	if (path.n == 0 || path.p[0] != '/' || path.n > POLICY_PATH_MAX)
		return false;
	for (size_t i = 1; i <= path.n; i++) {
		struct view segment = view_of(path.p + start, i - start);

		if (i < path.n && path.p[i] != '/')
			continue;
		start = i + 1;
		if (segment.n == 0 && i < path.n)
			return false;
		if (view_is(segment, ".") || view_is(segment, ".."))
			return false;
		if (view_is(segment, "*") || (view_is(segment, "**") && i == path.n))
			continue;
		for (size_t k = 0; k < segment.n; k++)
			if (!pattern_byte_ok(segment.p + k, segment.n - k))
				return false;
	}
	return true;
}

static bool
parameter_ok(struct view v)
{
	for (size_t i = 0; i < v.n; i++)
		if (v.p[i] <= ' ' || v.p[i] >= 0x7f)
			return false;
	return v.n > 0 && v.n <= POLICY_PARAMETER_MAX;
}

static int
sizes_read(const struct form_value v[static R_N], struct rule *r, struct err *err)
{
	int64_t in = 0, out = 0;
	bool body = (r->methods & BODY_METHODS) != 0;
	int e = form_int(&v[R_RESPONSE_MAX], "response_max", 1,
		r->kind == RULE_KIND_BROKERED ? POLICY_BROKERED_BYTES_MAX : POLICY_BODY_MAX, &in,
		err);

	if (e == 0 && v[R_REQUEST_MAX].there != body)
		e = err_set(err, -EINVAL, "request_max goes with POST, PUT and PATCH");
	if (e == 0 && body)
		e = form_int(&v[R_REQUEST_MAX], "request_max", 1, POLICY_BODY_MAX, &out, err);
	r->response_max = (uint64_t)in;
	r->request_max = (uint64_t)out;
	return e;
}

static int
flags_read(const struct form_value v[static R_N], struct rule *r, struct err *err)
{
	if ((v[R_TLS].there && !v[R_TLS].b) || (v[R_WEBSOCKET].there && !v[R_WEBSOCKET].b))
		return err_set(err, -EINVAL, "what is false is left out");
	r->tls = v[R_TLS].there || r->kind == RULE_KIND_BROKERED;
	r->websocket = v[R_WEBSOCKET].there;
	if (r->websocket && (r->methods & 1U << HTTP_GET) == 0)
		return err_set(err, -EINVAL, "a WebSocket begins with GET");
	if (!v[R_ROOTS].there)
		return 0;
	if (!r->tls || !name_ok(v[R_ROOTS].text))
		return err_set(err, -EINVAL, "roots is a name, and for https");
	r->roots = v[R_ROOTS].text;
	return 0;
}

/* ---- brokered ---- */

static bool
header_ok(struct view v)
{
	for (size_t i = 0; i < v.n; i++) {
		uint8_t c = v.p[i], lower = c | 0x20;

		if ((lower < 'a' || lower > 'z') && (c < '0' || c > '9') && c != '-' && c != '_')
			return false;
	}
	return v.n > 0 && v.n <= 63;
}

static bool
prefix_ok(struct view v)
{
	for (size_t i = 0; i < v.n; i++)
		if (v.p[i] < ' ' || v.p[i] >= 0x7f)
			return false;
	return v.n > 0 && v.n <= 32;
}

static int
credential_read(const struct form_value *v, struct rule *r, struct err *err)
{
	static const struct form_row form[] = {{"header", FORM_STR, false},
		{"prefix", FORM_STR, true}, {"secret", FORM_STR, false}};
	struct form_value c[ARRAY_LEN(form)];
	int e = form_read(v->raw, "credential", form, ARRAY_LEN(form), c, err);

	if (e < 0)
		return e;
	if (!header_ok(c[0].text) || (c[1].there && !prefix_ok(c[1].text)) || !name_ok(c[2].text))
		return err_set(err, -EINVAL, "credential: a part is not well-formed");
	r->credential_header = c[0].text;
	r->credential_prefix = c[1].text;
	r->credential_secret = c[2].text;
	return 0;
}

bool
rule_field_ok(struct view v)
{
	for (size_t i = 1; i < v.n; i++) {
		bool before = v.p[i - 1] == '_' || v.p[i - 1] == '.';
		bool here = v.p[i] == '_' || v.p[i] == '.';

		if ((before && here) || v.p[i] == '-')
			return false;
	}
	return form_field_ok(v) && v.n <= POLICY_FIELD_MAX && (v.p[0] | 0x20) >= 'a' &&
	       (v.p[0] | 0x20) <= 'z';
}

/* Where "a" is something, "a.b" is nothing. */
static int
fields_read(const struct form_value *v, struct rule *r, struct err *err)
{
	int e = texts_read(
		v, "fields", rule_field_ok, POLICY_FIELDS_MAX, r->field, &r->nfields, err);

	for (size_t i = 0; e == 0 && i < r->nfields; i++)
		for (size_t k = 0; e == 0 && k < r->nfields; k++)
			if (r->field[k].n > r->field[i].n && r->field[k].p[r->field[i].n] == '.' &&
				memcmp(r->field[k].p, r->field[i].p, r->field[i].n) == 0)
				e = err_set(err, -EINVAL, "fields: one is a part of another");
	return e;
}

static int
brokered_read(const struct form_value v[static R_N], struct rule *r, struct err *err)
{
	int64_t uses = 0;
	int e = credential_read(&v[R_CREDENTIAL], r, err);

	if (e == 0)
		e = fields_read(&v[R_FIELDS], r, err);
	if (e == 0 && v[R_USES].there)
		e = form_int(&v[R_USES], "uses", 1, POLICY_USES_MAX, &uses, err);
	r->uses = (uint32_t)uses;
	return e;
}

static int
request_read(const struct form_value v[static R_N], struct rule *r, struct err *err)
{
	int e = methods_read(&v[R_METHODS], r, err);

	if (e == 0 && !rule_path_ok(v[R_PATH].text))
		e = err_set(err, -EINVAL, "the path is not a pattern");
	if (e == 0)
		e = texts_read(&v[R_QUERY], "query", parameter_ok, POLICY_QUERY_MAX, r->query,
			&r->nquery, err);
	if (e == 0)
		e = sizes_read(v, r, err);
	if (e == 0)
		e = flags_read(v, r, err);
	if (e == 0 && r->kind == RULE_KIND_BROKERED)
		e = brokered_read(v, r, err);
	r->path = v[R_PATH].text;
	return e;
}

int
rule_read(struct view raw, struct rule *ret, struct err *err)
{
	struct form_value v[R_N];
	struct rule r = {0};
	int e = form_read(raw, "rule", rule_form, R_N, v, err);

	if (e < 0)
		return e;
	if (!v[R_KIND].there || rule_kind_parse(v[R_KIND].text, &r.kind) < 0)
		return err_set(err, -EINVAL, "a rule has no kind that is known");
	e = keys_check(v, r.kind, err);
	if (e == 0)
		e = place_read(v, &r, err);
	if (e == 0 && (kinds[r.kind].needs & BIT(R_METHODS)) != 0)
		e = request_read(v, &r, err);
	if (e == 0)
		*ret = r;
	return e;
}
