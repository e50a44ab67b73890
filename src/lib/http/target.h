/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The request target in its four forms (RFC 9112, 3.2) and the authority host[:port].
 *
 * The strict authority grammar: 1 to 253 bytes of LDH labels (1 to 63, no '-' at either end), at
 * least one letter in the last label, which also may not look like a hexadecimal number (0x7f...
 * is an address to glibc); one trailing dot is removed; a port has 1 to 5 digits without leading
 * zero, 1 to 65535. Addresses only in the form that inet_ntop writes. Everything else is refused,
 * not repaired: user information, percent signs, blanks, zone ids, non-ASCII.
 *
 * The result holds its own lower-cased copy of the name: this is the one name object that rules,
 * SNI, Host and the dialer are to be compared with. No later layer may look at the text again.
 */
#pragma once

#include "lib/http/method.h"
#include "lib/http/reason.h"

enum { HTTP_HOST_MAX = 253 };

enum http_host_kind { HTTP_HOST_NONE, HTTP_HOST_NAME, HTTP_HOST_IPV4, HTTP_HOST_IPV6 };

enum {
	HTTP_AUTHORITY_IP = 1,         /* addresses are fine */
	HTTP_AUTHORITY_UNDERSCORE = 2, /* '_' in labels is fine */
};

struct http_authority {
	enum http_host_kind kind;
	uint16_t port; /* 0: none given */
	uint16_t n;    /* length of host */
	char host[HTTP_HOST_MAX +
		  1]; /* lower case, no dot at the end, no brackets; NUL-terminated */
};

enum http_reason http_authority_parse(
	struct view text, unsigned flags, struct http_authority *ret) MUST_CHECK;

/* Same kind, host and port, where a missing port counts as default_port (0: must match exactly). */
bool http_authority_eq(
	const struct http_authority *a, const struct http_authority *b, uint16_t default_port);

enum http_form { HTTP_FORM_ORIGIN, HTTP_FORM_ABSOLUTE, HTTP_FORM_AUTHORITY, HTTP_FORM_ASTERISK };

struct http_target {
	enum http_form form;
	bool https;                      /* absolute form: the scheme */
	struct http_authority authority; /* absolute and authority form */
	struct view path;                /* borrowed from the text ("/" where the URL has none) */
	struct view query;               /* borrowed; without '?' */
	bool has_query;
};

/*
 * Splits and checks the bytes of path and query (CHAR_PATH, CHAR_QUERY, well-formed escapes), not
 * the meaning of the path: that is http_path_judge. CONNECT takes authority form only, with a port;
 * '*' goes with OPTIONS only.
 */
enum http_reason http_target_parse(struct view text, enum http_method method, unsigned flags,
	struct http_target *ret) MUST_CHECK;
