/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The other end of an edge, inside an event loop: reads messages, finds the row of the room's message
 * table, decodes, calls the handler; writes messages and queues what does not fit.
 *
 * A row says which message, in which states of the peer, and the handler. A message without a row, in
 * another state, or that its decoder or handler refuses is a broken peer: the peer is lost, never the
 * receiver. Refusals that a caller may cause are answered, not returned.
 *
 * Freed peers: a handler may close any peer, its own too; memory is released at the end of the loop
 * turn (lib/loop), so that no event of this turn touches freed memory.
 */
#pragma once

#include "lib/base/list.h"
#include "lib/ipc/datagram.h"

#include <ev.h>

struct ipc_peer;

/* 0, or negative with a sentence: the peer broke the protocol. */
typedef int ipc_handler_fn(struct ipc_peer *peer, struct ipc_msg *m, struct err *err);

struct ipc_row {
	enum msg_type type;
	uint32_t states; /* IN(...) */
	ipc_handler_fn *handler;
};

#define IN(state) (1U << (unsigned)(state))
#define IN_ANY    (~0U)

/*
 * IPC_HANDLER(job_run, on_job_run) defines the untyped half of
 *     static int on_job_run(struct ipc_peer *, struct ipc_msg *, const struct msg_job_run *, struct err *);
 * and IPC_ROW(JOB_RUN, IN(READY), on_job_run) its row.
 */
#define IPC_HANDLER(name, handler)                                                             \
	static int handler##_typed(struct ipc_peer *peer, struct ipc_msg *in, struct err *err) \
	{                                                                                      \
		struct msg_##name m;                                                           \
		int r = msg_##name##_get(in->body, &m, err);                                   \
                                                                                               \
		return r < 0 ? r : handler(peer, in, &m, err);                                 \
	}
#define IPC_ROW(NAME, states, handler)              \
	{                                           \
		MSG_##NAME, states, handler##_typed \
	}

struct ipc_peer {
	struct ev_loop *loop; /* borrowed */
	ev_io readable, writable;
	int fd;        /* owned; -1 when lost */
	uint8_t *room; /* owned: where messages are received */
	size_t room_bytes;
	struct err fault; /* code < 0: sending failed; told from the loop */
	enum edge edge;
	enum room other;
	unsigned state; /* of the room's own enum; rows name the states in which they hold */
	const struct ipc_row *rows;
	size_t nrows;
	void *owner; /* borrowed: the object of the room behind this peer */
	void (*on_lost)(struct ipc_peer *peer, const struct err *why); /* may close the peer */
	void (*on_drained)(struct ipc_peer *
			peer); /* NULL, or called when the queue became empty; may close the peer */
	struct link queue;     /* of struct queued: what the socket had no room for */
	size_t queued_bytes, queue_max_bytes;
	/*
	 * Back-pressure: while more than this is queued for the peer, nothing is read from it, until half of it is
	 * sent. SIZE_MAX, as it begins, is never: only for one end of an edge, see src/engine/serve.c.
	 */
	size_t pause_at_bytes;
	bool full;   /* it is so now */
	bool paused; /* by ipc_peer_pause */
};

/*
 * Takes fd. `self` tells which end of the edge we are. Call ipc_peer_close() once; on_lost is called at
 * most once, from the loop, when the peer closed or broke the protocol.
 */
struct ipc_peer *ipc_peer_new(struct ev_loop *loop, int fd, enum edge edge, enum room self,
	const struct ipc_row *rows, size_t nrows, void *owner,
	void (*on_lost)(struct ipc_peer *, const struct err *), struct err *err) MUST_CHECK;
void ipc_peer_close(struct ipc_peer *peer);

/*
 * Sends a packed message (see IPC_SEND); queues it when the socket is full. `fds` are duplicated into the
 * queue, the caller keeps its own. A peer whose queue passes its maximum is lost. On a lost peer: nothing.
 */
void ipc_peer_send(struct ipc_peer *peer, enum msg_type type, uint64_t tag, struct view body,
	const int *fds, size_t nfds);

/* IPC_SEND(peer, tag, JOB_RECORDED, job_recorded, {.job = id}) and with one descriptor IPC_SEND_FD(..., fd, ...). */
#define IPC_SEND(peer, tag, NAME, name, ...)                                  \
	do {                                                                  \
		const struct msg_##name m_ = __VA_ARGS__;                     \
		struct buf b_;                                                \
		buf_init(&b_, IPC_MAX);                                       \
		msg_##name##_put(&b_, &m_);                                   \
		must(buf_check(&b_) == 0);                                    \
		ipc_peer_send(peer, MSG_##NAME, tag, buf_view(&b_), NULL, 0); \
		buf_done(&b_);                                                \
	} while (0)
#define IPC_SEND_FD(peer, tag, NAME, name, fd, ...)                           \
	do {                                                                  \
		const struct msg_##name m_ = __VA_ARGS__;                     \
		const int fd_ = (fd);                                         \
		struct buf b_;                                                \
		buf_init(&b_, IPC_MAX);                                       \
		msg_##name##_put(&b_, &m_);                                   \
		must(buf_check(&b_) == 0);                                    \
		ipc_peer_send(peer, MSG_##NAME, tag, buf_view(&b_), &fd_, 1); \
		buf_done(&b_);                                                \
	} while (0)

/* Stops and resumes reading: back-pressure of the room on its peer, beside that of the queue. */
void ipc_peer_pause(struct ipc_peer *peer, bool paused);
