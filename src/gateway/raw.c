/* SPDX-License-Identifier: Apache-2.0 */
/* See raw.h. */
#include "raw.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

void
raw_init(struct raw *w, int fd, size_t unread_max, size_t unsent_max)
{
	*w = (struct raw){.fd = fd};
	buf_init(&w->unread, unread_max);
	buf_init(&w->unsent, unsent_max);
}

void
raw_done(struct raw *w, bool reset)
{
	const struct linger now = {.l_onoff = 1, .l_linger = 0};

	if (reset)
		(void)setsockopt(w->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	(void)close(w->fd); /* what was to be known of it was asked by raw_flush() */
	w->fd = -1;
	buf_done(&w->unread);
	buf_done(&w->unsent);
}

int
raw_put_back(struct raw *w, struct view bytes, struct err *err)
{
	struct buf both;

	buf_init(&both, w->unread.max);
	buf_add_view(&both, bytes);
	buf_add_view(&both, view_skip(buf_view(&w->unread), w->unread_at));
	if (buf_check(&both) < 0) {
		buf_done(&both);
		return err_set(err, -ENOBUFS, "too much is to be read again");
	}
	buf_done(&w->unread);
	w->unread = both;
	w->unread_at = 0;
	return 0;
}

static ssize_t
take_unread(struct raw *w, void *room, size_t n)
{
	size_t have = raw_unread(w);

	if (n > have)
		n = have;
	memcpy(room, w->unread.p + w->unread_at, n);
	w->unread_at += n;
	if (n == have) {
		buf_done(&w->unread);
		w->unread_at = 0;
	}
	return (ssize_t)n;
}

static ssize_t
failed(struct raw *w)
{
	if (errno == EAGAIN || errno == EINTR)
		return -EAGAIN;
	if (w->fault == 0)
		w->fault = -errno;
	return -errno;
}

ssize_t
raw_read(struct raw *w, void *room, size_t n)
{
	ssize_t r;

	if (raw_unread(w) != 0)
		return take_unread(w, room, n);
	r = recv(w->fd, room, n, 0);
	if (r == 0)
		w->ended = true;
	return r < 0 ? failed(w) : r;
}

ssize_t
raw_write(struct raw *w, struct view bytes)
{
	ssize_t r = send(w->fd, bytes.p, bytes.n, MSG_NOSIGNAL | (w->last ? MSG_MORE : 0));

	return r < 0 ? failed(w) : r;
}

int
raw_flush(struct raw *w)
{
	while (w->unsent.n != 0) {
		ssize_t r = raw_write(w, buf_view(&w->unsent));

		if (r < 0)
			return (int)r;
		buf_drop(&w->unsent, (size_t)r);
	}
	buf_done(&w->unsent);
	return 0;
}

void
raw_acknowledge(const struct raw *w)
{
	const int one = 1;

	(void)setsockopt(
		w->fd, IPPROTO_TCP, TCP_QUICKACK, &one, sizeof(one)); /* else only slower */
}

/* ---- as a BIO ---- */

static int
bio_read(BIO *bio, char *room, int n)
{
	struct raw *w = BIO_get_data(bio);
	ssize_t r = n <= 0 ? 0 : raw_read(w, room, (size_t)n);

	BIO_clear_retry_flags(bio);
	if (r == -EAGAIN)
		BIO_set_retry_read(bio);
	return r < 0 ? -1 : (int)r;
}

/* Takes all or fails: what the socket does not take is kept, in order. */
static int
bio_write(BIO *bio, const char *p, int n)
{
	struct raw *w = BIO_get_data(bio);
	size_t all = n <= 0 ? 0 : (size_t)n;
	ssize_t r = 0;

	BIO_clear_retry_flags(bio);
	if (w->unsent.n == 0 && all != 0)
		r = raw_write(w, view_of(p, all));
	if (r == -EAGAIN)
		r = 0;
	if (r < 0)
		return -1;
	buf_add_view(&w->unsent, view_skip(view_of(p, all), (size_t)r));
	if (w->unsent.failed && w->fault == 0)
		w->fault = -ENOBUFS;
	return w->unsent.failed ? -1 : n;
}

static long
bio_ctrl(BIO *bio, int what, long number, void *p)
{
	const struct raw *w = BIO_get_data(bio);

	(void)number, (void)p;
	if (what == BIO_CTRL_EOF)
		return w->ended ? 1 : 0;
	return what == BIO_CTRL_FLUSH ? 1 : 0;
}

BIO *
raw_bio(struct raw *w)
{
	static BIO_METHOD *method; /* the same for all: made once, never freed */
	BIO *bio;

	if (method == NULL) {
		BIO_METHOD *m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket");

		if (m == NULL)
			return NULL;
		(void)BIO_meth_set_read(m, bio_read);
		(void)BIO_meth_set_write(m, bio_write);
		(void)BIO_meth_set_ctrl(m, bio_ctrl);
		method = m;
	}
	bio = BIO_new(method);
	if (bio == NULL)
		return NULL;
	BIO_set_data(bio, w);
	BIO_set_init(bio, 1);
	return bio;
}
