/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts and URLs of rules; see url.h. */
#include "config/url.h"

#include "config/provider.h"
#include "lib/base/num.h"
#include "lib/http/path.h"

#include <idn2.h>
#include <stdio.h>

static bool
ascii(struct view v)
{
	for (size_t i = 0; i < v.n; i++)
		if (v.p[i] >= 0x80)
			return false;
	return true;
}

/* Whether a label begins with "xn--", in any case. */
static bool
has_a_label(struct view v)
{
	for (size_t i = 0; i + 4 <= v.n; i++)
		if ((i == 0 || v.p[i - 1] == '.') &&
			view_eq_nocase(view_of(v.p + i, 4), view_str("xn--")))
			return true;
	return false;
}

/*
 * The A-label form of a name with other letters than ASCII, which must be its own mapping ("write it like this" when it is not), or of one that
 * has A-labels already, which must be real ones. false: told.
 */
static bool
idna(struct builder *b, struct place at, struct view v, char ret[static HOST_NAME_MAX_BYTES + 1])
{
	const int flags = IDN2_NONTRANSITIONAL | IDN2_USE_STD3_ASCII_RULES;
	char name[512] = "", *a = NULL, *u = NULL, *again = NULL;
	int code;
	bool ok;

	if (v.n >= sizeof(name) || view_has(v, '\0')) {
		fault(b, at, "the name of the host is longer than 253 bytes");
		return false;
	}
	memcpy(name, v.p, v.n);
	code = idn2_to_ascii_8z(name, &a, flags);
	if (code == IDN2_OK)
		code = idn2_to_unicode_8z8z(a, &u, flags);
	if (code == IDN2_OK)
		code = idn2_to_ascii_8z(u, &again, flags);
	ok = code == IDN2_OK && strlen(a) <= HOST_NAME_MAX_BYTES && strcmp(a, again) == 0;
	if (!ok)
		fault(b, at, "this is no international name: %s",
			code == IDN2_OK ? "it reads back as another one" : idn2_strerror(code));
	else if (ascii(v) ? strcmp(a, name) != 0 : strcmp(u, name) != 0) {
		fault(b, at, "write this name in lower-case letters as they are usual, or as %s",
			a);
		ok = false;
	}
	if (ok)
		(void)snprintf(ret, HOST_NAME_MAX_BYTES + 1, "%s", a);
	idn2_free(a);
	idn2_free(u);
	idn2_free(again);
	return ok;
}

/* What is wrong with a host that is no name and no address in the one form of either. */
static void
host_fault(struct builder *b, struct place at, struct view v)
{
	char address[CONFIG_ADDRESS_BYTES] = "";
	bool loopback, upper = false, strange = false;

	for (size_t i = 0; i < v.n; i++) {
		upper = upper || (v.p[i] >= 'A' && v.p[i] <= 'Z');
		strange = strange || v.p[i] <= ' ' || v.p[i] == 0x7f;
	}
	if (v.n == 0)
		fault(b, at, "there is no host");
	else if (address_read(v, address, &loopback))
		fault(b, at, "write this address as %s", address);
	else if (view_has(v, '@'))
		fault(b, at, "there is no user here; write the secret as credential");
	else if (view_has(v, '*'))
		fault(b, at,
			"a * stands for whole labels and only in front: *.example.org is one label "
			"more, **.example.org one or more");
	else if (v.p[v.n - 1] == '.')
		fault(b, at, "take the dot at the end of the host away");
	else if (upper && !strange)
		fault(b, at, "write the host in lower-case letters");
	else if (view_has(v, '_'))
		fault(b, at, "a host has no _ in its name");
	else
		fault(b, at,
			"this is no host: write a name such as docs.example.org, or an IP address "
			"in its usual form");
}

bool
host_pattern_read(struct builder *b, struct place at, struct view text, struct rule_source *r)
{
	struct rule *rule = &r->rule;
	struct view v = text;

	rule->labels = view_starts(v, "**.")  ? LABELS_MANY
		       : view_starts(v, "*.") ? LABELS_ONE
					      : LABELS_NONE;
	v = view_skip(v, rule->labels == LABELS_MANY ? 3 : rule->labels == LABELS_ONE ? 2 : 0);
	rule->literal = address_parse(v, &rule->address) == 0;
	if (rule->literal && rule->labels != LABELS_NONE) {
		fault(b, at, "an address has no names below it; take the * away");
		return false;
	}
	if (!ascii(v) || (has_a_label(v) && host_name_ok(v))) {
		if (!idna(b, at, v, r->host))
			return false;
	} else if (v.n <= HOST_NAME_MAX_BYTES && (rule->literal || host_name_ok(v))) {
		memcpy(r->host, v.p, v.n);
	} else {
		host_fault(b, at, v);
		return false;
	}
	rule->host = view_str(r->host);
	if (!rule->literal && !host_name_ok(rule->host)) {
		host_fault(b, at, rule->host);
		return false;
	}
	return true;
}

/* ---- the authority ---- */

static bool
port_read(struct builder *b, struct place at, struct view v, struct rule_source *r)
{
	uint64_t port;

	if (num_u64(v, 65535, &port) < 0 || port == 0) {
		fault(b, at, "the port must be a number from 1 to 65535");
		return false;
	}
	r->rule.port = (uint16_t)port;
	return true;
}

/* HOST, HOST:PORT, [IPV6] or [IPV6]:PORT. */
static bool
authority_read(struct builder *b, struct place at, struct view v, struct rule_source *r)
{
	bool bracket = v.n > 0 && v.p[0] == '[';
	const uint8_t *end = v.n == 0 ? NULL : memchr(v.p, bracket ? ']' : ':', v.n);
	struct view host = end == NULL ? v : view_of(v.p, (size_t)(end - v.p)), rest;

	if (view_has(v, '@')) {
		fault(b, at, "url has no user; write the secret as credential");
		return false;
	}
	rest = view_skip(v, host.n + (bracket ? 1 : 0));
	if (bracket)
		host = view_skip(host, 1);
	if ((bracket && (end == NULL || !view_has(host, ':'))) ||
		(rest.n > 0 && rest.p[0] != ':')) {
		fault(b, at, "brackets are around an IPv6 address: https://[2001:db8::1]/");
		return false;
	}
	if (!bracket && rest.n > 0 && view_has(view_skip(rest, 1), ':')) {
		fault(b, at, "an IPv6 address stands in brackets: https://[2001:db8::1]/");
		return false;
	}
	if (!host_pattern_read(b, at, host, r))
		return false;
	return rest.n == 0 || port_read(b, at, view_skip(rest, 1), r);
}

/* ---- the path ---- */

/* What is wrong with a segment; NULL: nothing that is seen here. */
static const char *
segment_fault(struct view s, bool last)
{
	if (s.n == 0 && !last)
		return "url has // in its path; servers differ in what that means";
	if (view_is(s, ".") || view_is(s, ".."))
		return "url has . or .. in its path; write the path that is meant";
	if (view_is(s, "*") || (view_is(s, "**") && last))
		return NULL;
	if (view_is(s, "**"))
		return "** stands at the end only: whatever follows";
	if (view_has(s, '*'))
		return "a * stands for one whole part of the path between slashes, ** at the end "
		       "for whatever follows";
	if (view_has(s, ';'))
		return "; is not allowed in paths; servers differ in what it means";
	if (view_has(s, '\\'))
		return "url has a \\ in its path; servers differ in what that means";
	return ascii(s) ? NULL : "write letters that are not ASCII as %XX of their UTF-8 in url";
}

static bool
path_read(struct builder *b, struct place at, struct view path, struct rule_source *r)
{
	const char *why = NULL;

	for (size_t i = 1, start = 1; i <= path.n && why == NULL; i++) {
		if (i < path.n && path.p[i] != '/')
			continue;
		why = segment_fault(view_of(path.p + start, i - start), i == path.n);
		start = i + 1;
	}
	if (why == NULL && path.n > POLICY_PATH_MAX)
		why = "the path of url is longer than 1024 bytes";
	if (why == NULL && (!rule_path_ok(path) || http_path_judge(path, 0) != HTTP_FINE))
		why = "the path of url has a character or a %XX that no request can have; letters, "
		      "digits and -._~!$&'()+,=:@ stand for themselves, others as %XX";
	if (why != NULL) {
		fault(b, at, "%s", why);
		return false;
	}
	r->rule.path = path;
	return true;
}

bool
url_read(struct builder *b, const struct node *n, struct rule_source *r)
{
	struct view v = n->text;
	const uint8_t *slash;
	bool plain = view_starts(v, "http://");

	if (!plain && !view_starts(v, "https://")) {
		fault(b, n->at,
			"url must begin with https://%s, such as https://docs.example.org/help/**",
			r->rule.kind == RULE_KIND_FETCH ? " or http://" : "");
		return false;
	}
	if (plain && r->rule.kind == RULE_KIND_BROKERED) {
		fault(b, n->at,
			"a brokered url is https: its credential would cross the network in clear");
		return false;
	}
	if (view_has(v, '?')) {
		fault(b, n->at,
			"url has no query; list the parameters that may be there: query: [page]");
		return false;
	}
	if (view_has(v, '#')) {
		fault(b, n->at, "url has no fragment: what is behind # is never sent");
		return false;
	}
	r->rule.tls = !plain;
	r->rule.port = plain ? 80 : 443;
	v = view_skip(v, plain ? 7 : 8);
	slash = v.n == 0 ? NULL : memchr(v.p, '/', v.n);
	if (slash == NULL) {
		fault(b, n->at, "url needs a path; /** at its end takes every one");
		return false;
	}
	if (!authority_read(b, n->at, view_of(v.p, (size_t)(slash - v.p)), r))
		return false;
	return path_read(b, n->at, view_skip(v, (size_t)(slash - v.p)), r);
}
