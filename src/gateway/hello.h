/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ClientHello at the beginning of a TLS connection, over as many records and reads as it comes in, at most 16 KiB. Looked at before anything
 * else is decided; nothing is kept but what is asked for here. Pure.
 */
#pragma once

#include "lib/base/view.h"

enum { HELLO_MAX = 16384 };

enum hello_verdict {
	HELLO_MORE, /* not complete yet */
	HELLO_DONE,
	HELLO_NOT_TLS, /* it does not begin like one, contradicts its own lengths, or says an extension twice */
	HELLO_LONG, /* more than HELLO_MAX bytes, the headers of its records among them */
};

struct hello {
	bool has_name, ech;
	bool name_bad; /* with has_name: not exactly one, or no canonical host name (another case is canonical here) */
	size_t name_n;
	char name[254]; /* lower case */
	bool http1;     /* ALPN is absent or offers http/1.1 */
};

/* With all bytes from the first one on, whenever there are more; what follows the hello is not looked at. The verdict does not depend on how they were cut. *ret is filled with HELLO_DONE only. */
enum hello_verdict hello_read(struct view bytes, struct hello *ret);
