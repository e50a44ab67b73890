/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DNS messages as a server that only answers: a question read, an answer written. Pure, bounded, strict. No question causes another one anywhere.
 */
#pragma once

#include "lib/base/buf.h"
#include "lib/base/host.h"

enum { DNS_UDP_ANSWER_MAX = 512, DNS_MESSAGE_MAX = 4096 };

struct dns_asked {
	uint16_t id, type, class;
	bool recursion; /* RD, repeated in the answer */
	bool edns;
	size_t name_n; /* of name */
	char name
		[254]; /* canonical (lower case, no dot at the end); empty: not a host name, but well-formed */
	struct view wire; /* the question as it came, for the answer; borrowed */
};

enum dns_code {
	DNS_NOERROR = 0,
	DNS_FORMERR = 1,
	DNS_SERVFAIL = 2,
	DNS_NXDOMAIN = 3,
	DNS_NOTIMP = 4,
	DNS_REFUSED = 5
};

/*
 * 0; -ENOMSG: it deserves no answer (shorter than a header, or an answer itself); else an error is to be answered: *ret_code. One question,
 * opcode 0, class IN; EDNS is read and never offered more than 1232 bytes.
 */
int dns_asked_read(struct view message, struct dns_asked *ret, enum dns_code *ret_code) MUST_CHECK;

/* With an address (A or AAAA as its family says) or without (NODATA, or the code). TTL in seconds. */
void dns_answer_write(struct buf *out, const struct dns_asked *q, enum dns_code code,
	const struct address *a, uint32_t ttl);

/* To a message that could not be read: its id and the code, no question. */
void dns_error_write(struct buf *out, struct view message, enum dns_code code);
