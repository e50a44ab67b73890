/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DNS messages of a stub resolver: one question written, one answer read. Pure, bounded, strict: an answer that is not well formed to its
 * last byte is no answer. Only the answer section is believed, of it only what the chain of aliases from the question leads to.
 */
#pragma once

#include "class.h"

enum {
	DNS_QUERY_MAX = 12 + 255 + 4,
	DNS_UDP_MAX =
		4096, /* an answer to a question without EDNS has 512; what is longer is cut and refused */
	DNS_TCP_MAX = 65535,
	DNS_ADDRESSES_MAX =
		64, /* more is no answer: a tail that nobody looked at would not be classified */
	DNS_ALIASES_MAX = 8,
	DNS_RECORDS_MAX = 256, /* of all sections */
};

enum dns_type { DNS_A = 1, DNS_CNAME = 5, DNS_AAAA = 28 };

struct dns_question {
	enum dns_type type;
	uint16_t id;
	size_t n;          /* of wire */
	uint8_t wire[255]; /* the name as it is sent, in mixed case */
};

struct dns_answer {
	bool truncated; /* ask again by TCP; nothing else of the answer counts */
	bool no_name;   /* NXDOMAIN */
	struct address address[DNS_ADDRESSES_MAX];
	size_t n; /* 0: the name has none of this type */
};

/*
 * A question for this name (host_name_ok()). `noise` chooses the id and the case of each letter. -EINVAL: no such name.
 */
int dns_question_make(struct view name, enum dns_type type, const uint8_t noise[static 34],
	struct dns_question *ret, struct err *err) MUST_CHECK;

/* The message; returns its length. */
size_t dns_query_write(const struct dns_question *q, uint8_t ret[static DNS_QUERY_MAX]);

/*
 * -ENOMSG: not an answer to this question (another id, name, case or type): somebody else's, go on waiting. -EPROTO: malformed, or
 * against a bound. -EAGAIN: the server cannot or will not say (SERVFAIL, REFUSED, ...).
 */
int dns_answer_read(struct view message, const struct dns_question *q, struct dns_answer *ret,
	struct err *err) MUST_CHECK;
