/* SPDX-License-Identifier: Apache-2.0 */
/* Peers in the event loop; see peer.h. */
#include "lib/ipc/peer.h"

#include "lib/base/fd.h"
#include "lib/loop/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum {
	READS_PER_TURN = 16, /* then the other watchers have their turn */
	QUEUE_MAX_BYTES = 8 << 20,
};

struct queued {
	struct link link;
	int fds[IPC_FDS_MAX]; /* owned */
	size_t nfds;
	size_t n;
	uint8_t bytes[];
};

static void
queued_free(struct queued *q)
{
	list_remove(&q->link);
	for (size_t i = 0; i < q->nfds; i++)
		(void)close(q->fds[i]); /* our copy; the message is sent or given up */
	free(q);
}

/* Whether the peer is read from now. A fault is told by this event: it stays under way. */
static void
reading_set(struct ipc_peer *peer)
{
	if (peer->queued_bytes > peer->pause_at_bytes)
		peer->full = true;
	else if (peer->queued_bytes <= peer->pause_at_bytes / 2)
		peer->full = false;
	if (peer->fault.code < 0)
		return;
	if (peer->paused || peer->full)
		ev_io_stop(peer->loop, &peer->readable);
	else
		ev_io_start(peer->loop, &peer->readable);
}

/* No more events, nothing queued, descriptor closed. */
static void
peer_disconnect(struct ipc_peer *peer)
{
	if (peer->fd < 0)
		return;
	ev_io_stop(peer->loop, &peer->readable);
	ev_io_stop(peer->loop, &peer->writable);
	list_each (q, &peer->queue, struct queued, link)
		queued_free(q);
	peer->queued_bytes = 0;
	(void)close(take_fd(&peer->fd)); /* nothing is owed to a peer that is gone */
}

static void
peer_lost(struct ipc_peer *peer, const struct err *why)
{
	if (peer->fd < 0)
		return;
	peer_disconnect(peer);
	peer->on_lost(peer, why);
}

static int
dispatch(struct ipc_peer *peer, struct ipc_msg *m, struct err *err)
{
	for (size_t i = 0; i < peer->nrows; i++) {
		const struct ipc_row *row = &peer->rows[i];

		if (row->type != m->type)
			continue;
		if ((row->states & IN(peer->state)) == 0)
			return err_set(err, -EPROTO, "%s in state %u", msg_info[m->type].name,
				peer->state);
		return row->handler(peer, m, err);
	}
	return err_set(err, -EPROTO, "%s is not in the table", msg_info[m->type].name);
}

static void
on_readable(struct ev_loop *loop, ev_io *w, int events)
{
	struct ipc_peer *peer = container_of(w, struct ipc_peer, readable);

	(void)loop, (void)events;
	if (peer->fault.code < 0) {
		peer_lost(peer, &peer->fault);
		return;
	}
	for (int i = 0; i < READS_PER_TURN && peer->fd >= 0 && ev_is_active(&peer->readable); i++) {
		struct ipc_msg m;
		struct err err = {0};
		int r = ipc_read(
			peer->fd, peer->edge, peer->other, peer->room, peer->room_bytes, &m, &err);

		if (r == -EAGAIN)
			return;
		if (r == 0) {
			r = dispatch(peer, &m, &err);
			ipc_msg_done(&m);
		}
		if (r < 0) {
			peer_lost(peer, &err);
			return;
		}
	}
}

static void
on_writable(struct ev_loop *loop, ev_io *w, int events)
{
	struct ipc_peer *peer = container_of(w, struct ipc_peer, writable);

	(void)loop, (void)events;
	while (!list_empty(&peer->queue)) {
		struct queued *q = container_of(peer->queue.next, struct queued, link);
		struct err err = {0};
		int r = ipc_write(peer->fd, view_of(q->bytes, q->n), q->fds, q->nfds, &err);

		if (r == -EAGAIN) {
			reading_set(peer);
			return;
		}
		if (r < 0) {
			peer_lost(peer, &err);
			return;
		}
		peer->queued_bytes -= q->n;
		queued_free(q);
	}
	reading_set(peer);
	ev_io_stop(peer->loop, &peer->writable);
	if (peer->on_drained != NULL)
		peer->on_drained(peer);
}

/* The table knows the two ends of an edge: whoever is not `self`. */
static enum room
edge_other(enum edge edge, enum room self)
{
	for (size_t i = 0; i < MSG_MAX; i++)
		if (msg_info[i].edge == edge)
			return msg_info[i].from == self ? msg_info[i].to : msg_info[i].from;
	must(false);
}

struct ipc_peer *
ipc_peer_new(struct ev_loop *loop, int fd, enum edge edge, enum room self,
	const struct ipc_row *rows, size_t nrows, void *owner,
	void (*on_lost)(struct ipc_peer *, const struct err *), struct err *err)
{
	auto_fd int owned = fd;
	auto_free struct ipc_peer *peer = calloc(1, sizeof(*peer));
	enum room other = edge_other(edge, self);
	size_t room_bytes = ipc_room_bytes(edge, other);
	auto_free uint8_t *room = malloc(room_bytes);

	if (peer == NULL || room == NULL) {
		(void)err_set(err, -ENOMEM, "no memory for a peer");
		return NULL;
	}
	if (fd_set_nonblock(fd, err) < 0 || fd_set_cloexec(fd, true, err) < 0)
		return NULL;
	peer->loop = loop;
	peer->fd = take_fd(&owned);
	peer->room = take_ptr(room);
	peer->room_bytes = room_bytes;
	peer->other = other;
	peer->edge = edge;
	peer->rows = rows;
	peer->nrows = nrows;
	peer->owner = owner;
	peer->on_lost = on_lost;
	peer->queue_max_bytes = QUEUE_MAX_BYTES;
	peer->pause_at_bytes = SIZE_MAX;
	list_init(&peer->queue);
	ev_io_init(&peer->readable, on_readable, fd, EV_READ);
	ev_io_init(&peer->writable, on_writable, fd, EV_WRITE);
	ev_io_start(loop, &peer->readable);
	return take_ptr(peer);
}

void
ipc_peer_close(struct ipc_peer *peer)
{
	if (peer == NULL)
		return;
	peer_disconnect(peer);
	loop_free_later(peer->loop, peer->room);
	loop_free_later(peer->loop, peer);
}

/* Keeps a copy for on_writable; false when it does not fit. */
static bool
enqueue(struct ipc_peer *peer, struct view packed, const int *fds, size_t nfds)
{
	struct queued *q;

	if (packed.n > peer->queue_max_bytes - peer->queued_bytes)
		return false;
	q = malloc(sizeof(*q) + packed.n);
	if (q == NULL)
		return false;
	q->nfds = 0;
	q->n = packed.n;
	memcpy(q->bytes, packed.p, packed.n);
	list_append(&peer->queue, &q->link);
	peer->queued_bytes += packed.n;
	for (size_t i = 0; i < nfds; i++) {
		int copy = fcntl(fds[i], F_DUPFD_CLOEXEC, 0);

		if (copy < 0)
			return false; /* the peer is lost and the queue with it */
		q->fds[q->nfds++] = copy;
	}
	ev_io_start(peer->loop, &peer->writable);
	reading_set(peer);
	return true;
}

void
ipc_peer_send(struct ipc_peer *peer, enum msg_type type, uint64_t tag, struct view body,
	const int *fds, size_t nfds)
{
	struct err err = {0};
	struct buf b;
	int r = -EAGAIN;

	must(msg_info[type].edge == peer->edge && msg_info[type].to == peer->other);
	must(msg_info[type].fds == nfds);
	if (peer->fd < 0 || peer->fault.code < 0)
		return;
	buf_init(&b, IPC_MAX + IPC_HEADER_BYTES);
	ipc_pack(&b, type, tag, body);
	if (buf_check(&b) < 0)
		r = err_set(&err, -ENOMEM, "no memory for a message");
	else if (list_empty(&peer->queue))
		r = ipc_write(peer->fd, buf_view(&b), fds, nfds, &err);
	if (r == -EAGAIN)
		r = enqueue(peer, buf_view(&b), fds, nfds)
			    ? 0
			    : err_set(&err, -ENOBUFS, "the peer does not read");
	buf_done(&b);
	if (r < 0) {
		/* Told from the loop, not from inside the caller. */
		peer->fault = err;
		ev_feed_event(peer->loop, &peer->readable, EV_READ);
	}
}

void
ipc_peer_pause(struct ipc_peer *peer, bool paused)
{
	if (peer->fd < 0)
		return;
	peer->paused = paused;
	reading_set(peer);
}
