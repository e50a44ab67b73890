/* SPDX-License-Identifier: Apache-2.0 */
/* Datagrams of the edges; see datagram.h. */
#include "lib/ipc/datagram.h"

#include "lib/ipc/wire.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

void
ipc_msg_done(struct ipc_msg *m)
{
	for (size_t i = 0; i < m->nfds; i++)
		if (m->fds[i] >= 0)
			(void)close(m->fds[i]); /* it was never ours to use */
	m->nfds = 0;
}

int
ipc_msg_take(struct ipc_msg *m, size_t i)
{
	must(i < m->nfds);
	return take_fd(&m->fds[i]);
}

void
ipc_pack(struct buf *b, enum msg_type type, uint64_t tag, struct view body)
{
	wire_put_u16(b, (uint16_t)type);
	wire_put_u16(b, msg_info[type].fds);
	wire_put_u32(b, (uint32_t)body.n);
	wire_put_u64(b, tag);
	buf_add_view(b, body);
}

int
ipc_write(int fd, struct view packed, const int *fds, size_t nfds, struct err *err)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(int) * IPC_FDS_MAX)];
	} control = {0};
	struct iovec iov = {.iov_base = (void *)(uintptr_t)packed.p, .iov_len = packed.n};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t r;

	must(nfds <= IPC_FDS_MAX);
	if (nfds > 0) {
		struct cmsghdr *c;

		msg.msg_control = control.room;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * nfds);
		c = &control.align; /* CMSG_FIRSTHDR, which cannot be NULL here */
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * nfds);
		memcpy(CMSG_DATA(c), fds, sizeof(int) * nfds);
	}
	do
		r = sendmsg(fd, &msg, MSG_NOSIGNAL);
	while (r < 0 && errno == EINTR);
	if (r < 0 && errno == EAGAIN)
		return err_set(err, -EAGAIN, "the socket is full");
	if (r < 0)
		return err_errno(err, "send");
	return 0;
}

/* Takes the descriptors out of the control data; false when they are not what was promised. */
static bool
take_control(struct msghdr *msg, struct ipc_msg *m)
{
	bool good = (msg->msg_flags & MSG_CTRUNC) == 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c != NULL; c = CMSG_NXTHDR(msg, c)) {
		int got[IPC_FDS_MAX + 2];
		size_t n;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) {
			good = false;
			continue;
		}
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		must(n <= ARRAY_LEN(got));
		memcpy(got, CMSG_DATA(c), n * sizeof(int));
		for (size_t i = 0; i < n; i++) {
			if (m->nfds < IPC_FDS_MAX) {
				m->fds[m->nfds++] = got[i];
			} else {
				(void)close(got[i]); /* more than any message has */
				good = false;
			}
		}
	}
	return good;
}

/* Header and row of the table, against what came. */
static int
check(struct ipc_msg *m, struct view got, enum edge edge, enum room from, struct err *err)
{
	struct wire w = {.at = got};
	uint16_t type = wire_get_u16(&w), nfds = wire_get_u16(&w);
	uint32_t length = wire_get_u32(&w);
	const struct msg_info *info;

	m->tag = wire_get_u64(&w);
	if (w.fault != NULL)
		return err_set(err, -EBADMSG, "a datagram of %zu bytes", got.n);
	if (type >= MSG_MAX)
		return err_set(err, -EBADMSG, "unknown message type %u", type);
	info = &msg_info[type];
	if (info->edge != edge || info->from != from)
		return err_set(err, -EBADMSG, "%s does not belong here", info->name);
	if (length != w.at.n || length > info->body_max ||
		(info->fixed && length != info->body_max))
		return err_set(err, -EBADMSG, "%s with a body of %zu bytes", info->name, w.at.n);
	if (nfds != info->fds || m->nfds != info->fds)
		return err_set(err, -EBADMSG, "%s with %zu descriptors", info->name, m->nfds);
	m->type = (enum msg_type)type;
	m->body = w.at;
	return 0;
}

size_t
ipc_room_bytes(enum edge edge, enum room from)
{
	size_t n = 0;

	for (size_t i = 0; i < MSG_MAX; i++)
		if (msg_info[i].edge == edge && msg_info[i].from == from &&
			msg_info[i].body_max > n)
			n = msg_info[i].body_max;
	return IPC_HEADER_BYTES + n;
}

int
ipc_read(int fd, enum edge edge, enum room from, uint8_t *room, size_t n, struct ipc_msg *ret,
	struct err *err)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(int) * (IPC_FDS_MAX + 2))];
	} control;
	struct iovec iov = {.iov_base = room, .iov_len = n};
	struct msghdr msg = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.room,
		.msg_controllen = sizeof(control.room)};
	struct ipc_msg m = {.nfds = 0};
	ssize_t r;
	int code;

	/*
	 * ECONNRESET: the other end closed with messages of ours unread. It is told once, in front of what the
	 * other end said last (RELAY_LOST is such a word), so that is read first; then comes the end.
	 */
	do
		r = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC);
	while (r < 0 && (errno == EINTR || errno == ECONNRESET));
	if (r < 0 && errno == EAGAIN)
		return err_set(err, -EAGAIN, "nothing to read");
	if (r < 0)
		return err_errno(err, "receive");
	if (r == 0 && msg.msg_controllen == 0)
		return err_set(err, -EPIPE, "the other end closed");
	if (!take_control(&msg, &m) || (msg.msg_flags & MSG_TRUNC) != 0) {
		ipc_msg_done(&m);
		return err_set(
			err, -EBADMSG, "a datagram that is too large or with too many descriptors");
	}
	code = check(&m, view_of(room, (size_t)r), edge, from, err);
	if (code < 0) {
		ipc_msg_done(&m);
		return code;
	}
	*ret = m;
	return 0;
}

int
ipc_pair(int ret_fds[2], struct err *err)
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ret_fds) < 0)
		return err_errno(err, "socketpair");
	return 0;
}
