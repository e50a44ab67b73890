/* SPDX-License-Identifier: Apache-2.0 */
/* Request targets and authorities; see target.h. Rows A and B of the egress tables. */
#include "lib/http/target.h"

#include "lib/base/num.h"
#include "lib/http/chars.h"

#include <arpa/inet.h>

enum { LABEL_MAX = 63 };

static uint8_t
lower(uint8_t c)
{
	return c >= 'A' && c <= 'Z' ? (uint8_t)(c | 0x20) : c;
}

static bool
is_letter(uint8_t c)
{
	return lower(c) >= 'a' && lower(c) <= 'z';
}

static bool
is_digit(uint8_t c)
{
	return c >= '0' && c <= '9';
}

/* Bytes that no authority may hold, each with the reason that says what was tried. */
static enum http_reason
authority_bytes(struct view text)
{
	for (size_t i = 0; i < text.n; i++)
		if (text.p[i] == '@' || text.p[i] == '\\' || text.p[i] == '#')
			return HTTP_NO_URL;
	for (size_t i = 0; i < text.n; i++)
		if (text.p[i] >= 0x80)
			return HTTP_NO_HOST_IDN;
	return HTTP_FINE;
}

static bool
label_ok(struct view label, unsigned flags)
{
	if (label.n == 0 || label.n > LABEL_MAX || label.p[0] == '-' || label.p[label.n - 1] == '-')
		return false;
	for (size_t i = 0; i < label.n; i++) {
		uint8_t c = label.p[i];

		if (!is_letter(c) && !is_digit(c) && c != '-' &&
			(c != '_' || (flags & HTTP_AUTHORITY_UNDERSCORE) == 0))
			return false;
	}
	return true;
}

/* A last label that some resolver would read as a number: no letter, or 0x and hex digits only. */
static bool
label_numeric(struct view label)
{
	bool hex = label.n >= 2 && label.p[0] == '0' && lower(label.p[1]) == 'x', letter = false;

	for (size_t i = 0; i < label.n; i++) {
		letter = letter || is_letter(label.p[i]);
		hex = hex && (i < 2 || char_is(label.p[i], CHAR_HEX));
	}
	return hex || !letter;
}

static enum http_reason
name_parse(struct view text, unsigned flags, struct http_authority *ret)
{
	struct view rest, label = {0};

	if (text.n > 1 && text.p[text.n - 1] == '.')
		text.n--;
	if (text.n == 0 || text.n > HTTP_HOST_MAX)
		return HTTP_NO_HOST_SYNTAX;
	for (rest = text;; rest = view_skip(rest, label.n + 1)) {
		const uint8_t *dot = rest.n == 0 ? NULL : memchr(rest.p, '.', rest.n);

		label = dot == NULL ? rest : view_of(rest.p, (size_t)(dot - rest.p));
		if (!label_ok(label, flags))
			return HTTP_NO_HOST_SYNTAX;
		if (dot == NULL)
			break;
	}
	if (label_numeric(label))
		return HTTP_NO_HOST_SYNTAX;
	ret->kind = HTTP_HOST_NAME;
	ret->n = (uint16_t)text.n;
	for (size_t i = 0; i < text.n; i++)
		ret->host[i] = (char)lower(text.p[i]);
	ret->host[text.n] = '\0';
	return HTTP_FINE;
}

/* An address of `family`: HTTP_NO_HOST_SYNTAX when it is none. */
static enum http_reason
address_parse(struct view text, int family, unsigned flags, struct http_authority *ret)
{
	char in[INET6_ADDRSTRLEN], out[INET6_ADDRSTRLEN];
	struct in6_addr addr;

	if (text.n == 0 || text.n >= sizeof(in) || view_has(text, '\0'))
		return HTTP_NO_HOST_SYNTAX;
	memcpy(in, text.p, text.n);
	in[text.n] = '\0';
	if (inet_pton(family, in, &addr) != 1)
		return HTTP_NO_HOST_SYNTAX;
	if ((flags & HTTP_AUTHORITY_IP) == 0 ||
		inet_ntop(family, &addr, out, sizeof(out)) == NULL || !view_is(text, out))
		return HTTP_NO_IP_LITERAL;
	ret->kind = family == AF_INET ? HTTP_HOST_IPV4 : HTTP_HOST_IPV6;
	ret->n = (uint16_t)text.n;
	memcpy(ret->host, in, text.n + 1);
	return HTTP_FINE;
}

static enum http_reason
host_parse(struct view text, bool bracketed, unsigned flags, struct http_authority *ret)
{
	enum http_reason no;

	if (bracketed)
		return address_parse(text, AF_INET6, flags, ret);
	no = address_parse(text, AF_INET, flags, ret);
	return no == HTTP_NO_HOST_SYNTAX ? name_parse(text, flags, ret) : no;
}

enum http_reason
http_authority_parse(struct view text, unsigned flags, struct http_authority *ret)
{
	struct http_authority a = {0};
	enum http_reason no = authority_bytes(text);
	bool bracketed = text.n > 0 && text.p[0] == '[';
	const uint8_t *end = text.n == 0 ? NULL : memchr(text.p, bracketed ? ']' : ':', text.n);
	struct view host = text, rest = {0};
	uint64_t port;

	if (no != HTTP_FINE)
		return no;
	if (bracketed && end == NULL)
		return HTTP_NO_HOST_SYNTAX;
	if (end != NULL) {
		size_t at = (size_t)(end - text.p);

		host = bracketed ? view_of(text.p + 1, at - 1) : view_of(text.p, at);
		rest = view_skip(text, bracketed ? at + 1 : at);
	}
	no = host_parse(host, bracketed, flags, &a);
	if (no != HTTP_FINE)
		return no;
	if (rest.n > 0) {
		if (rest.p[0] != ':')
			return HTTP_NO_HOST_SYNTAX;
		if (num_u64(view_skip(rest, 1), UINT16_MAX, &port) < 0 || port == 0)
			return HTTP_NO_PORT;
		a.port = (uint16_t)port;
	}
	*ret = a;
	return HTTP_FINE;
}

bool
http_authority_eq(
	const struct http_authority *a, const struct http_authority *b, uint16_t default_port)
{
	uint16_t pa = a->port != 0 ? a->port : default_port;
	uint16_t pb = b->port != 0 ? b->port : default_port;

	return a->kind == b->kind && a->n == b->n && memcmp(a->host, b->host, a->n) == 0 &&
	       pa == pb;
}

/* Bytes of one class, and escapes of two hex digits. */
static bool
bytes_ok(struct view v, uint8_t class)
{
	for (size_t i = 0; i < v.n; i++) {
		if (char_is(v.p[i], class))
			continue;
		if (v.p[i] != '%' || v.n - i < 3 || !char_is(v.p[i + 1], CHAR_HEX) ||
			!char_is(v.p[i + 2], CHAR_HEX))
			return false;
		i += 2;
	}
	return true;
}

/* path[?query]; text starts with '/', or with '?' or nothing after an authority. */
static enum http_reason
split_path(struct view text, struct http_target *t)
{
	const uint8_t *mark = text.n == 0 ? NULL : memchr(text.p, '?', text.n);

	t->path = text;
	if (mark != NULL) {
		t->path.n = (size_t)(mark - text.p);
		t->query = view_skip(text, t->path.n + 1);
		t->has_query = true;
	}
	if (!bytes_ok(t->path, CHAR_PATH))
		return HTTP_NO_PATH;
	if (!bytes_ok(t->query, CHAR_QUERY))
		return HTTP_NO_QUERY;
	if (t->path.n == 0)
		t->path = view_str("/");
	return HTTP_FINE;
}

static enum http_reason
split_absolute(struct view text, unsigned flags, struct http_target *t)
{
	const uint8_t *colon = memchr(text.p, ':', text.n);
	struct view scheme, rest, authority;
	enum http_reason no;

	if (colon == NULL || !is_letter(text.p[0]))
		return HTTP_NO_URL;
	scheme = view_of(text.p, (size_t)(colon - text.p));
	rest = view_skip(text, scheme.n + 1);
	t->https = view_eq_nocase(scheme, view_str("https"));
	if (!t->https && !view_eq_nocase(scheme, view_str("http"))) /* "name:443" is no scheme */
		return rest.n > 0 && is_digit(rest.p[0]) ? HTTP_NO_URL : HTTP_NO_SCHEME;
	if (!view_starts(rest, "//"))
		return HTTP_NO_URL;
	rest = authority = view_skip(rest, 2);
	for (authority.n = 0; authority.n < rest.n; authority.n++)
		if (rest.p[authority.n] == '/' || rest.p[authority.n] == '?')
			break;
	if (authority.n == 0)
		return HTTP_NO_URL;
	no = http_authority_parse(authority, flags, &t->authority);
	return no != HTTP_FINE ? no : split_path(view_skip(rest, authority.n), t);
}

static enum http_reason
split(struct view text, enum http_method method, unsigned flags, struct http_target *t)
{
	if (text.n == 0)
		return HTTP_NO_URL;
	if (method == HTTP_CONNECT) {
		enum http_reason no = http_authority_parse(text, flags, &t->authority);

		t->form = HTTP_FORM_AUTHORITY;
		return no == HTTP_FINE && t->authority.port == 0 ? HTTP_NO_PORT : no;
	}
	if (view_is(text, "*")) {
		t->form = HTTP_FORM_ASTERISK;
		return method == HTTP_OPTIONS ? HTTP_FINE : HTTP_NO_URL;
	}
	if (text.p[0] == '/')
		return split_path(text, t);
	t->form = HTTP_FORM_ABSOLUTE;
	return split_absolute(text, flags, t);
}

enum http_reason
http_target_parse(
	struct view text, enum http_method method, unsigned flags, struct http_target *ret)
{
	struct http_target t = {.form = HTTP_FORM_ORIGIN};
	enum http_reason no = split(text, method, flags, &t);

	if (no == HTTP_FINE)
		*ret = t;
	return no;
}
