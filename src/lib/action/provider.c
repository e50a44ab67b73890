/* SPDX-License-Identifier: Apache-2.0 */
/* PROVIDER and its capability record in a document (docs/decisions/0003-actions.md). What is not promised there is not assumed. */
#include "lib/action/part.h"
#include "lib/action/schema.h"
#include "lib/base/host.h"
#include "lib/base/name.h"

#include <errno.h>
#include <sys/socket.h>

int
codes_read(const struct form_value *v, const char *what, struct codes *ret, struct err *err)
{
	struct codes c = {0};
	struct form_value one = {0};
	struct form_list l;
	int e;

	if (!v->there) {
		*ret = c;
		return 0;
	}
	e = form_list_begin(&l, v->raw, err);
	while (e == 0 && (e = form_list_next(&l, &one, err)) == 1) {
		if (one.type != FORM_INT || one.i < 100 || one.i > 599 ||
			c.n == OPERATION_CODES_MAX || (c.n > 0 && one.i <= c.code[c.n - 1]))
			return err_set(err, -EINVAL,
				"%s: at most %d statuses from 100 to 599, ascending", what,
				OPERATION_CODES_MAX);
		c.code[c.n++] = (uint16_t)one.i;
		e = 0;
	}
	if (e == 0)
		*ret = c;
	return e;
}

bool
codes_have(const struct codes *c, unsigned status)
{
	for (size_t i = 0; i < c->n; i++) {
		if (c->code[i] == status)
			return true;
	}
	return false;
}

/*
 * A name whose last label begins with no digit ("0x7f000001" is an address to some resolvers), or an IPv4 address in its one form.
 */
static bool
host_ok(struct view v)
{
	struct address a;
	size_t last = v.n;

	if (address_parse(v, &a) == 0)
		return a.family == AF_INET;
	while (last > 0 && v.p[last - 1] != '.')
		last--;
	return host_name_ok(v) && (v.p[last] < '0' || v.p[last] > '9');
}

static int
origin_read(struct view raw, struct provider *p, struct err *err)
{
	static const struct form_row form[] = {
		{"host", FORM_STR, false}, {"port", FORM_INT, false}, {"tls", FORM_BOOL, false}};
	struct form_value v[ARRAY_LEN(form)];
	int64_t port = 0;
	int e = form_read(raw, "origin", form, ARRAY_LEN(form), v, err);

	if (e == 0 && !host_ok(v[0].text))
		e = err_set(err, -EINVAL,
			"origin: host must be a name in lower-case ASCII or an IPv4 address");
	if (e == 0)
		e = form_int(&v[1], "origin: port", 1, 65535, &port, err);
	if (e < 0)
		return e;
	p->host = v[0].text;
	p->port = (uint16_t)port;
	p->tls = v[2].b;
	return 0;
}

/* Names of the transport are the broker's own. */
static bool
header_ok(struct view v)
{
	static const char *const own[] = {"host", "connection", "content-length", "content-type",
		"transfer-encoding", "expect", "te", "trailer", "upgrade", "cookie",
		"accept-encoding"};

	if (v.n == 0 || v.n > 63)
		return false;
	for (size_t i = 0; i < v.n; i++) {
		uint8_t c = v.p[i], lower = c | 0x20;

		if (c != '-' && c != '_' && (c < '0' || c > '9') && (lower < 'a' || lower > 'z'))
			return false;
	}
	for (size_t i = 0; i < ARRAY_LEN(own); i++) {
		if (view_eq_nocase(v, view_str(own[i])))
			return false;
	}
	return true;
}

static int
credential_read(const struct form_value *raw, struct provider *p, struct err *err)
{
	static const struct form_row form[] = {{"header", FORM_STR, false},
		{"prefix", FORM_STR, true}, {"secret", FORM_STR, false}};
	struct form_value v[ARRAY_LEN(form)];
	int e;

	if (!raw->there)
		return 0;
	e = form_read(raw->raw, "credential", form, ARRAY_LEN(form), v, err);
	if (e < 0)
		return e;
	if (!header_ok(v[0].text))
		return err_set(err, -EINVAL, "credential: this header cannot carry one");
	if (v[1].text.n > 32 || (v[1].there && v[1].text.n == 0))
		return err_set(err, -EINVAL, "credential: prefix has 1 to 32 characters");
	for (size_t i = 0; i < v[1].text.n; i++) {
		if (v[1].text.p[i] < 0x20 || v[1].text.p[i] > 0x7e)
			return err_set(err, -EINVAL, "credential: prefix is ASCII");
	}
	if (!name_ok(v[2].text))
		return err_set(err, -EINVAL, "credential: secret is the name of a file");
	p->credential_header = v[0].text;
	p->credential_prefix = v[1].text;
	p->credential_secret = v[2].text;
	return 0;
}

/* One of a few words; -1 when it is none. */
static int
word_of(struct view v, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (view_is(v, words[i]))
			return (int)i;
	}
	return -1;
}

static int
key_read(const struct form_value *raw, struct capability *c, struct err *err)
{
	static const struct form_row form[] = {
		{"format", FORM_STR, false}, {"header", FORM_STR, false}};
	static const char *const formats[] = {"raw", "structured"};
	struct form_value v[ARRAY_LEN(form)];
	int e, format;

	if (!raw->there)
		return 0;
	e = form_read(raw->raw, "key", form, ARRAY_LEN(form), v, err);
	if (e < 0)
		return e;
	format = word_of(v[0].text, formats, ARRAY_LEN(formats));
	if (format < 0 || !header_ok(v[1].text))
		return err_set(
			err, -EINVAL, "key: format is raw or structured, header a header's name");
	c->key = true;
	c->key_structured = format == 1;
	c->key_header = v[1].text;
	return 0;
}

/* What the answer of a look-up may say, as strings. */
static int
words_check(const struct form_value *v, const char *what, struct err *err)
{
	struct form_value one = {0};
	struct form_list l;
	size_t n = 0;
	int e = v->there ? form_list_begin(&l, v->raw, err) : 0;

	while (v->there && e == 0 && (e = form_list_next(&l, &one, err)) == 1) {
		if (one.type != FORM_TEXT || one.escaped || one.text.n == 0 || one.text.n > 64 ||
			++n > 16)
			return err_set(err, -EINVAL,
				"lookup: %s has 1 to 16 strings of 1 to 64 bytes", what);
		e = 0;
	}
	return e;
}

enum { L_BY, L_CONSISTENCY, L_FAILED, L_FIELD, L_LIST, L_PATH, L_QUERY, L_SUCCEEDED, L_N };

/* path and query are looked at with the operation, whose arguments they may have: lookup_check. */
static int
lookup_read(const struct form_value *raw, struct capability *c, struct err *err)
{
	static const struct form_row form[L_N] = {{"by", FORM_STR, false},
		{"consistency_ms", FORM_INT, false}, {"failed", FORM_ARRAY, true},
		{"field", FORM_STR, false}, {"list", FORM_STR, true}, {"path", FORM_ARRAY, false},
		{"query", FORM_ARRAY, true}, {"succeeded", FORM_ARRAY, false}};
	static const char *const by[] = {"key", "reference"};
	struct form_value v[L_N];
	int64_t ms = 0;
	int e, which;

	if (!raw->there)
		return 0;
	e = form_read(raw->raw, "lookup", form, L_N, v, err);
	if (e == 0)
		e = form_int(&v[L_CONSISTENCY], "lookup: consistency_ms", 0, 604800000, &ms, err);
	if (e == 0)
		e = words_check(&v[L_FAILED], "failed", err);
	if (e == 0)
		e = words_check(&v[L_SUCCEEDED], "succeeded", err);
	if (e < 0)
		return e;
	which = word_of(v[L_BY].text, by, ARRAY_LEN(by));
	if (which < 0)
		return err_set(err, -EINVAL, "lookup: by is key or reference");
	if (!form_field_ok(v[L_FIELD].text) || (v[L_LIST].there && !form_field_ok(v[L_LIST].text)))
		return err_set(err, -EINVAL, "lookup: field and list are dotted names");
	c->lookup = which == 0 ? LOOKUP_KEY : LOOKUP_REFERENCE;
	c->lookup_form = raw->raw;
	c->consistency_ms = (uint64_t)ms;
	return 0;
}

enum { C_CONCURRENT, C_DEFINITE, C_KEY, C_WINDOW, C_LOOKUP, C_NOT, C_N };

static int
window_read(const struct form_value *v, struct capability *c, struct err *err)
{
	int64_t window = 0;
	int e;

	if (!v->there)
		return 0;
	if (!c->key)
		return err_set(err, -EINVAL, "capability: key_window_ms needs key");
	e = form_int(v, "capability: key_window_ms", 1000, INT64_C(31622400000), &window, err);
	c->key_window_ms = (uint64_t)window;
	return e;
}

static int
capability_read(const struct form_value *raw, struct capability *ret, struct err *err)
{
	static const struct form_row form[C_N] = {{"concurrent", FORM_ARRAY, true},
		{"definite", FORM_ARRAY, true}, {"key", FORM_OBJECT, true},
		{"key_window_ms", FORM_INT, true}, {"lookup", FORM_OBJECT, true},
		{"not_processed", FORM_ARRAY, true}};
	struct form_value v[C_N];
	int e;

	if (!raw->there)
		return 0;
	e = form_read(raw->raw, "capability", form, C_N, v, err);
	if (e == 0)
		e = codes_read(&v[C_CONCURRENT], "concurrent", &ret->concurrent, err);
	if (e == 0)
		e = codes_read(&v[C_DEFINITE], "definite", &ret->definite, err);
	if (e == 0)
		e = codes_read(&v[C_NOT], "not_processed", &ret->not_processed, err);
	if (e == 0)
		e = key_read(&v[C_KEY], ret, err);
	if (e == 0)
		e = window_read(&v[C_WINDOW], ret, err);
	if (e == 0)
		e = lookup_read(&v[C_LOOKUP], ret, err);
	return e;
}

enum {
	V_ACCOUNT,
	V_CAPABILITY,
	V_CREDENTIAL,
	V_ENVIRONMENT,
	V_NAME,
	V_ORIGIN,
	V_RESPONSE,
	V_ROOTS,
	V_TIMEOUT,
	V_N
};

static int
names_check(const struct form_value *v, struct err *err)
{
	if (!name_ok(v[V_NAME].text) || (v[V_ROOTS].there && !name_ok(v[V_ROOTS].text)))
		return err_set(err, -EINVAL,
			"provider: name and roots are 1 to 63 of [a-z0-9._-], a letter or digit "
			"first");
	if (!identifier_ascii(v[V_ACCOUNT].text) || v[V_ACCOUNT].text.n > 63 ||
		!name_ok(v[V_ENVIRONMENT].text))
		return err_set(err, -EINVAL,
			"provider: account is 1 to 63 ASCII characters without blanks, environment "
			"a name");
	return 0;
}

int
provider_read(struct view raw, struct provider *ret, struct err *err)
{
	static const struct form_row form[V_N] = {{"account", FORM_STR, false},
		{"capability", FORM_OBJECT, true}, {"credential", FORM_OBJECT, true},
		{"environment", FORM_STR, false}, {"name", FORM_STR, false},
		{"origin", FORM_OBJECT, false}, {"response_max", FORM_INT, false},
		{"roots", FORM_STR, true}, {"timeout_ms", FORM_INT, false}};
	struct form_value v[V_N];
	struct provider p = {0};
	int64_t response = 0, timeout = 0;
	int e = form_read(raw, "provider", form, V_N, v, err);

	if (e == 0)
		e = names_check(v, err);
	if (e == 0)
		e = form_int(&v[V_RESPONSE], "response_max", 256, 1 << 20, &response, err);
	if (e == 0)
		e = form_int(&v[V_TIMEOUT], "timeout_ms", 100, 120000, &timeout, err);
	if (e == 0)
		e = origin_read(v[V_ORIGIN].raw, &p, err);
	if (e == 0)
		e = credential_read(&v[V_CREDENTIAL], &p, err);
	if (e == 0)
		e = capability_read(&v[V_CAPABILITY], &p.capability, err);
	if (e == 0 && v[V_ROOTS].there && !p.tls)
		e = err_set(err, -EINVAL, "provider: roots need tls");
	if (e < 0)
		return e;
	p.name = v[V_NAME].text;
	p.account = v[V_ACCOUNT].text;
	p.environment = v[V_ENVIRONMENT].text;
	p.roots = v[V_ROOTS].text;
	p.response_max = (uint32_t)response;
	p.timeout_ms = (uint32_t)timeout;
	*ret = p;
	return 0;
}
