/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A gateway that was taken over. The supervisor starts it in the gateway's place (--libexec; test_taken_over.py), it enters the gateway's own
 * jail, takes the sockets, edges and the policy that it is sent, says that it is ready, and from then on obeys: each datagram at the
 * sandbox's DNS socket, from a program inside, is one command in words, and what came of it is the answer.
 *
 *     fds                         name=number of each descriptor that it has
 *     say FD HEX [FD...]          one datagram or write, with descriptors beside
 *     hear FD MS                  HEX of the next datagram, and "|" and the numbers of descriptors that came; "timeout"; "end"
 *     call NUMBER ARG...          a system call; ARG: a number, or @HEX for a pointer to these bytes, which stand in the answer behind "|"
 *     read NUMBER ARG...          the same; the answer has the bytes that the call left in the buffers
 *
 * An error is "-" and the number of errno. It never sees more than a gateway does.
 */
#include "gateway/confine.h"

#include "lib/base/fd.h"
#include "lib/base/hex.h"
#include "lib/base/log.h"
#include "lib/base/num.h"
#include "lib/ipc/datagram.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>

enum { EXIT_NO_START = 1, WORDS = 12, ARGS = 6, BYTES = 8192, HELD_MAX = 64 };

struct held {
	char name[24];
	int fd;
};

static struct held held[HELD_MAX] = {{"supervisor", FD_GATEWAY_SUPERVISOR}};
static size_t nheld = 1;
static uint8_t room[IPC_MAX], given[ARGS][BYTES];
static char answer[4 * BYTES];

static void
hold(const char *name, int fd)
{
	must(nheld < HELD_MAX);
	held[nheld].fd = fd;
	(void)snprintf(held[nheld++].name, sizeof(held->name), "%s", name);
}

static int
held_fd(const char *name)
{
	for (size_t i = nheld; i-- > 0;)
		if (strcmp(held[i].name, name) == 0)
			return held[i].fd;
	return -1;
}

/* ---- as a gateway begins ---- */

static void
ready(void)
{
	const struct msg_gateway_ready m = {0};
	auto_buf struct buf body, packed;
	struct err err = {0};

	buf_init(&body, IPC_MAX);
	buf_init(&packed, IPC_MAX);
	msg_gateway_ready_put(&body, &m);
	ipc_pack(&packed, MSG_GATEWAY_READY, 0, buf_view(&body));
	if (ipc_write(held_fd("engine"), buf_view(&packed), NULL, 0, &err) < 0)
		log_exit(EXIT_NO_START, "%s", err.text);
}

static void
take(struct ipc_msg *in)
{
	struct msg_listener m;
	struct err err = {0};

	switch ((int)in->type) {
	case MSG_LISTENER:
		if (msg_listener_get(in->body, &m, &err) == 0)
			hold(socket_kind_text(m.kind), ipc_msg_take(in, 0));
		break;
	case MSG_GATEWAY_ENGINE:
		hold("engine", ipc_msg_take(in, 0));
		break;
	case MSG_GATEWAY_DIALER:
		hold("dialer", ipc_msg_take(in, 0));
		break;
	case MSG_GATEWAY_BROKER:
		hold("broker", ipc_msg_take(in, 0));
		break;
	case MSG_ROOTS:
		hold("roots", ipc_msg_take(in, 0));
		break;
	case MSG_GATEWAY_POLICY:
		hold("policy", ipc_msg_take(in, 0));
		break;
	case MSG_GATEWAY_BEGIN:
		ready();
		break;
	default:
		ipc_msg_done(in);
	}
}

/* ---- commands ---- */

static long
number(const char *word)
{
	int64_t n;

	return num_i64(view_str(word), &n) == 0 ? (long)n : held_fd(word);
}

static size_t
bytes(const char *hex, uint8_t *ret)
{
	size_t n = strlen(hex) / 2;

	return n <= BYTES && hex_decode(view_of(hex, 2 * n), ret, n) == 0 ? n : 0;
}

static void
say(size_t n, char **word)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(WORDS * sizeof(int))];
	} beside = {0};
	struct iovec io = {.iov_base = given[0], .iov_len = bytes(word[2], given[0])};
	struct msghdr m = {.msg_iov = &io, .msg_iovlen = 1};
	int fds[WORDS];
	ssize_t sent;

	if (n > 3) {
		for (size_t i = 3; i < n; i++)
			fds[i - 3] = (int)number(word[i]);
		m.msg_control = &beside;
		m.msg_controllen = CMSG_SPACE((n - 3) * sizeof(int));
		beside.header = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
			.cmsg_type = SCM_RIGHTS,
			.cmsg_len = CMSG_LEN((n - 3) * sizeof(int))};
		memcpy(CMSG_DATA(&beside.header), fds, (n - 3) * sizeof(int));
	}
	sent = sendmsg((int)number(word[1]), &m, MSG_NOSIGNAL);
	(void)snprintf(answer, sizeof(answer), "%zd", sent < 0 ? (ssize_t)-errno : sent);
}

static void
hear(char **word)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(IPC_FDS_MAX * sizeof(int))];
	} beside = {0};
	struct pollfd p = {.fd = (int)number(word[1]), .events = POLLIN};
	struct iovec io = {.iov_base = given[0], .iov_len = BYTES};
	struct msghdr m = {.msg_iov = &io,
		.msg_iovlen = 1,
		.msg_control = &beside,
		.msg_controllen = sizeof(beside)};
	int fds[IPC_FDS_MAX];
	ssize_t got;
	size_t at;

	if (poll(&p, 1, (int)number(word[2])) == 0) {
		(void)snprintf(answer, sizeof(answer), "timeout");
		return;
	}
	got = recvmsg(p.fd, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	if (got <= 0) {
		(void)snprintf(answer, sizeof(answer), got == 0 ? "end" : "-%d", errno);
		return;
	}
	hex_encode(given[0], (size_t)got, answer);
	at = strlen(answer);
	if (m.msg_controllen >= sizeof(struct cmsghdr)) {
		size_t n = (beside.header.cmsg_len - CMSG_LEN(0)) / sizeof(int);

		memcpy(fds, CMSG_DATA(&beside.header), n * sizeof(int));
		for (size_t i = 0; i < n; i++)
			at += (size_t)snprintf(answer + at, sizeof(answer) - at, "%s%d",
				i == 0 ? "|" : " ", fds[i]);
	}
}

static void
call(size_t n, char **word)
{
	const bool read_back = strcmp(word[0], "read") == 0;
	long arg[ARGS] = {0}, got;
	size_t size[ARGS] = {0}, at;

	for (size_t i = 2; i < n && i - 2 < ARGS; i++) {
		if (word[i][0] == '@') {
			size[i - 2] = bytes(word[i] + 1, given[i - 2]);
			arg[i - 2] = (long)given[i - 2];
		} else
			arg[i - 2] = number(word[i]);
	}
	got = syscall(number(word[1]), arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
	at = (size_t)snprintf(answer, sizeof(answer), "%ld", got < 0 ? (long)-errno : got);
	for (size_t i = 0; read_back && i < ARGS; i++) {
		if (size[i] == 0 || at + 2 * size[i] + 2 > sizeof(answer))
			continue;
		answer[at++] = '|';
		hex_encode(given[i], size[i], answer + at);
		at += 2 * size[i];
	}
}

static void
obey(char *line)
{
	char *word[WORDS] = {NULL}, *rest = line, *next;
	size_t n = 0, at = 0;

	while (n < WORDS && (next = strsep(&rest, " ")) != NULL)
		word[n++] = next;
	if (strcmp(word[0], "fds") == 0) {
		for (size_t i = 0; i < nheld; i++)
			at += (size_t)snprintf(answer + at, sizeof(answer) - at, "%s=%d ",
				held[i].name, held[i].fd);
	} else if (strcmp(word[0], "say") == 0 && n > 2)
		say(n, word);
	else if (strcmp(word[0], "hear") == 0 && n > 2)
		hear(word);
	else if (n > 1)
		call(n, word);
	else
		(void)snprintf(answer, sizeof(answer), "what?");
}

static void
command(int dns)
{
	static char line[8 * BYTES];
	struct sockaddr_storage from;
	socklen_t n = sizeof(from);
	ssize_t got = recvfrom(dns, line, sizeof(line) - 1, MSG_DONTWAIT, (void *)&from, &n);

	if (got <= 0)
		return;
	line[got] = '\0';
	answer[0] = '\0';
	obey(line);
	if (sendto(dns, answer, strlen(answer), 0, (void *)&from, n) < 0)
		log_line("answer: %d", errno);
}

int
main(void)
{
	struct err err = {0};

	log_name("taken-over");
	(void)signal(SIGPIPE, SIG_IGN);
	if (fd_close_from(FD_GATEWAY_SUPERVISOR + 1, &err) < 0 || confine(&err) < 0)
		log_exit(EXIT_NO_START, "%s", err.text);
	for (;;) {
		struct pollfd p[] = {{.fd = FD_GATEWAY_SUPERVISOR, .events = POLLIN},
			{.fd = held_fd("dns_udp"), .events = POLLIN}};
		struct ipc_msg in;
		int r;

		(void)poll(p, ARRAY_LEN(p), -1);
		if (p[0].revents != 0) {
			r = ipc_read(FD_GATEWAY_SUPERVISOR, EDGE_SUPERVISOR_GATEWAY,
				ROOM_SUPERVISOR, room, sizeof(room), &in, &err);
			if (r == 0)
				take(&in);
			else if (r != -EAGAIN)
				return 0;
		}
		if ((p[1].revents & POLLIN) != 0)
			command(held_fd("dns_udp"));
	}
}
