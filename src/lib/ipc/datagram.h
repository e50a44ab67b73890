/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One message on a SOCK_SEQPACKET socket: 16 bytes of header (u16 type, u16 descriptors, u32 body
 * length, u64 tag), then the body, with descriptors beside. Nothing is believed: a datagram that is
 * cut, too long, of another edge or direction, or with another number of descriptors than its row in
 * proto/messages.def is an error, and its descriptors are closed.
 */
#pragma once

#include "proto_gen.h"

enum { IPC_HEADER_BYTES = 16, IPC_FDS_MAX = 3, IPC_MAX = 212992 - 64 };

struct ipc_msg {
	enum msg_type type;
	uint64_t tag;
	struct view body;     /* borrowed from the receive buffer, until the handler returns */
	int fds[IPC_FDS_MAX]; /* owned by the receiver; ipc_msg_take() moves one out */
	size_t nfds;
};

/* Closes what nobody took. */
void ipc_msg_done(struct ipc_msg *m);

/* Moves descriptor i out; -1 if it was taken already. */
int ipc_msg_take(struct ipc_msg *m, size_t i);

/* Appends header and body to an empty buffer: put is msg_<name>_put, m its struct. */
void ipc_pack(struct buf *b, enum msg_type type, uint64_t tag, struct view body);

/*
 * Sends one packed datagram. 0; -EAGAIN when the socket is full (nothing was sent); else the
 * connection is of no use any more. The descriptors stay with the caller.
 */
int ipc_write(int fd, struct view packed, const int *fds, size_t nfds, struct err *err) MUST_CHECK;

/* Bytes of room that ipc_read() needs for the largest message of this sender on this edge. */
size_t ipc_room_bytes(enum edge edge, enum room from);

/*
 * Receives one into `room` of n bytes and checks it: `edge` and `from` are whom this socket belongs
 * to. 0; -EAGAIN; -EPIPE when the other end closed; -EBADMSG for whatever breaks the table.
 */
int ipc_read(int fd, enum edge edge, enum room from, uint8_t *room, size_t n, struct ipc_msg *ret,
	struct err *err) MUST_CHECK;

/* A connected pair, close-on-exec, both ends non-blocking. */
int ipc_pair(int ret_fds[2], struct err *err) MUST_CHECK;
