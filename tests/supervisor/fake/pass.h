/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors over a socket, for the stand-ins and the rig. */
#pragma once

#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum { PASS_MAX = 5 };

static inline int
pass_send(int sock, char what, const int *fds, size_t n)
{
	char room[CMSG_SPACE(sizeof(int) * PASS_MAX)] = {0};
	struct iovec iov = {&what, 1};
	struct msghdr msg = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = room,
		.msg_controllen = CMSG_SPACE(sizeof(int) * n)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int) * n);
	memcpy(CMSG_DATA(c), fds, sizeof(int) * n);
	return sendmsg(sock, &msg, MSG_NOSIGNAL) == 1 ? 0 : -1;
}

/* The byte, or -1; ret has room for PASS_MAX. */
static inline int
pass_receive(int sock, int *ret, size_t *ret_n)
{
	char room[CMSG_SPACE(sizeof(int) * PASS_MAX)], what;
	struct iovec iov = {&what, 1};
	struct msghdr msg = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = room,
		.msg_controllen = sizeof(room)};
	struct cmsghdr *c;

	if (recvmsg(sock, &msg, MSG_CMSG_CLOEXEC) != 1)
		return -1;
	c = CMSG_FIRSTHDR(&msg);
	*ret_n = c == NULL ? 0 : (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	if (c != NULL)
		memcpy(ret, CMSG_DATA(c), *ret_n * sizeof(int));
	return what;
}
