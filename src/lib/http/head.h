/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Request and response heads of HTTP/1.1, read strictly (RFC 9112; rows E and I of the egress
 * tables). Used by the api, the CLI and the gateway; both sides may be hostile.
 *
 * Incremental: the caller keeps the bytes of a message together, from its first one on, and calls
 * http_head_feed with all of them whenever there are more. Bytes that were looked at once are not
 * scanned again. The verdict depends on the bytes alone, never on how they were cut into reads.
 * No I/O, no allocation. All views of the result are borrowed from the caller's buffer and die
 * with it.
 *
 * What is accepted has exactly one meaning: one framing, one host, one method, one target. What is
 * not is refused for good: answer with http_reason_status(), then close.
 */
#pragma once

#include "lib/http/target.h"

enum { HTTP_FIELDS_MAX = 100 };

struct http_limits {
	size_t head_bytes;   /* the whole head with its empty line */
	size_t target_bytes; /* the request target */
	unsigned fields;     /* at most HTTP_FIELDS_MAX */
	uint64_t body_bytes; /* an announced length above it is refused; give it to http_body too */
	unsigned body_methods; /* bit 1 << HTTP_x: this method may carry a body */
	unsigned host_flags;   /* HTTP_AUTHORITY_*: in Host and in the target */
	bool method_override;  /* X-HTTP-Method-Override and its kin are let through */
};

/*
 * 32 KiB, 8192, 100 fields; 8 MiB in POST, PUT and PATCH; addresses and '_' refused; no override.
 */
void http_limits_init(struct http_limits *ret);

enum http_framing {
	HTTP_BODY_NONE,
	HTTP_BODY_LENGTH,
	HTTP_BODY_CHUNKED,
	HTTP_BODY_UNTIL_CLOSE, /* responses only */
	HTTP_BODY_TUNNEL,      /* 101, and 2xx to CONNECT: what follows is not HTTP */
};

struct http_field {
	struct view name; /* a token, as written */
	struct view
		value; /* without blanks around it; may hold bytes from 0x80 up, never controls but HTAB */
};

struct http_head {
	enum http_side side;
	unsigned minor; /* HTTP/1.minor: 0 or 1 */

	/* requests */
	enum http_method method;
	struct view target_text;
	struct http_target target;
	struct http_authority
		host; /* of Host; HTTP_HOST_NONE only on 1.0. Agrees with the target */
	bool expect_continue;

	/* responses */
	unsigned status;
	struct view phrase;

	struct http_field field[HTTP_FIELDS_MAX];
	unsigned fields;
	enum http_framing framing;
	uint64_t length; /* the length that was announced: HTTP_BODY_LENGTH, and answers to HEAD */
	bool keep_alive; /* the connection may be used again after the body */
	bool upgrade;    /* Connection names upgrade and there is one Upgrade field */
	bool odd;        /* legal but unusual framing: do not put the connection back into a pool */
};

struct http_scan {
	const struct http_limits *limits; /* borrowed */
	enum http_side side;
	enum http_method asked; /* responses: the method of the request */
	bool switch_asked;      /* responses: the request had Upgrade, so 101 is legal */
	bool cr;                /* the last byte was CR */
	unsigned lines;         /* complete non-empty lines */
	size_t begin;           /* where the first line begins: 0, or 2 after an empty line */
	size_t line;            /* where the current line begins */
	size_t pos;             /* bytes scanned; after completion the size of the head */
	enum http_reason reason;
};

void http_scan_request(struct http_scan *s, const struct http_limits *limits);
void http_scan_response(struct http_scan *s, const struct http_limits *limits,
	enum http_method asked, bool switch_asked);

/*
 * 1: *ret is filled and s->pos bytes of `in` are used; 0: more bytes are needed;
 * -EBADMSG: refused, s->reason says why, and stays so. *ret is scratch space until it returns 1.
 */
int http_head_feed(struct http_scan *s, struct view in, struct http_head *ret) MUST_CHECK;

/*
 * The field of this name (any case), or NULL when there is none or more than one: *ret_n says
 * how many there are.
 */
const struct http_field *http_head_field(
	const struct http_head *head, const char *name, unsigned *ret_n);

/* Whether `value`, a list of tokens, names `token` (any case). */
bool http_list_has(struct view value, const char *token);

/*
 * Interim answers (1xx but 101) in front of a final one: at most 8 and 16 KiB of them per request.
 * Zero it per request; call it for each response head with the bytes that the head took.
 */
struct http_interim {
	unsigned count;
	size_t bytes;
};

enum http_reason http_interim_admit(
	struct http_interim *i, const struct http_head *head, size_t head_bytes) MUST_CHECK;
