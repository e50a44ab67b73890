/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of streams: a stream of the gateway on one end of a TCP connection, and on the other end OpenSSL used directly, or a plain socket.
 * All in one thread: ends_run() turns the loop and lets the other end go on, until something holds or three seconds are over.
 */
#pragma once

#include "gateway/stream.h"

#include <openssl/ssl.h>

struct heard {
	int readable, writable, shaken, failed;
	struct err why;
};
extern const struct stream_events heard_events; /* owner: struct heard */

/* A connected pair, both non-blocking. */
void ends_pair(int fds[static 2]);
/* A stream on one end of a new pair; the other end is *ret_fd. */
struct stream *ends_stream(struct ev_loop *loop, struct heard *h, int *ret_fd);

/* The other end in TLS, driven by ends_run(). */
struct other {
	SSL *ssl;
	bool shaken, broken;
	int reason; /* of OpenSSL, when broken */
	int alert;  /* received; 0: none */
	uint8_t got[65536];
	size_t n;
	bool ended; /* close_notify came */
};
void other_begin(struct other *o, SSL_CTX *ctx, int fd, bool server, const char *server_name);
void other_done(struct other *o);

#define ends_run(loop, o, condition)                               \
	do {                                                       \
		for (int i_ = 0; i_ < 30000 && !(condition); i_++) \
			ends_step(loop, o);                        \
	} while (0)
void ends_step(struct ev_loop *loop, struct other *o);

/* ---- certificates ---- */

struct wanted {
	const char *dns[3];  /* names; NULL behind the last */
	size_t dns_n;        /* bytes of dns[0] when it has a NUL; 0: its length */
	const char *address; /* of an IP name */
	const char *common;  /* common name */
	long from_s, to_s;   /* seconds from now; both 0: an hour before and after */
	bool self_signed;
	bool client_only; /* extended usage: of a client */
	bool by_stranger; /* signed by an authority that nobody trusts */
};

/* A context of a server with a new certificate like that; chain: what the trusted authority of the tests signed. */
SSL_CTX *wanted_server(const struct wanted *w);
/* The tests' authority as a file of PEM, open for reading. */
int wanted_roots(void);
