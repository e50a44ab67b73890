/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connected socket as stream.c uses it: with bytes in front that were read before, and bytes behind that the socket did not take yet. It is
 * a BIO of OpenSSL too, which never says "write again": what is half sent waits here, so that a record is never asked for twice.
 */
#pragma once

#include "lib/base/buf.h"
#include "lib/base/err.h"

#include <openssl/bio.h>
#include <sys/types.h>

struct raw {
	int fd;            /* owned */
	struct buf unread; /* from unread_at on */
	size_t unread_at;
	struct buf unsent;
	bool ended; /* FIN came */
	bool last;  /* FIN follows what is written: one packet for both */
	int fault;  /* negative: errno of the first call that failed */
};

void raw_init(struct raw *w, int fd, size_t unread_max, size_t unsent_max);
/* reset: RST in place of FIN. */
void raw_done(struct raw *w, bool reset);

static inline size_t
raw_unread(const struct raw *w)
{
	return w->unread.n - w->unread_at;
}

/* In front of what is unread already. */
int raw_put_back(struct raw *w, struct view bytes, struct err *err) MUST_CHECK;

/* > 0; 0: FIN; -EAGAIN or another errno. */
ssize_t raw_read(struct raw *w, void *room, size_t n);
/* What the socket takes now; nothing is kept. */
ssize_t raw_write(struct raw *w, struct view bytes);
/* 0: nothing is unsent; -EAGAIN; or another errno. */
int raw_flush(struct raw *w);

/*
 * What was read is acknowledged now, not when we have something to say. A program whose small writes wait for that (Nagle) would stand still for
 * the 40 ms that Linux waits.
 */
void raw_acknowledge(const struct raw *w);

/* NULL: no memory. Borrows w. */
BIO *raw_bio(struct raw *w);
