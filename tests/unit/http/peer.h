/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The second opinion: Debian's http-parser, driven over one message. Its header and ours use the
 * same names, so it stays in peer.c.
 */
#pragma once

#include "lib/base/view.h"

enum { PEER_BODY = 8192 };

struct peer {
	bool refused;
	bool trailing; /* it got as far as the trailers, which it reads as if they were headers */
	bool complete;
	size_t used; /* bytes of the message, when complete */
	size_t body_n;
	uint8_t body[PEER_BODY];
	unsigned method_or_status; /* its own numbering of methods */
	bool keep_alive;
};

/* no_body: the response answers a HEAD. closed: the input ends by closing the connection. */
void peer_run(struct peer *ret, bool response, bool no_body, bool closed, struct view input);

const char *peer_method(const struct peer *peer);
