/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stands in for demilune-broker: says what it was given on every edge to the engine that it gets, and passes what the dialer says on.
 * On the edge to a gateway it says the policy. With a secret named `slow` it takes a second to end.
 */
#include "lib/base/attr.h"
#include "lib/ipc/datagram.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>

static char text[1024];
static int engine = FD_BROKER_ENGINE, dialer = FD_BROKER_DIALER;

static void
note(const char *what, const char *name, const char *content)
{
	size_t n = strlen(text);

	(void)snprintf(text + n, sizeof(text) - n, " %s=%s%s", what, name, content);
}

/* As one that waits for the end of what it has sent. */
static void
end_slowly(int signal)
{
	(void)signal;
	(void)sleep(1);
	_exit(0);
}

static void
on_secret(struct ipc_msg *m)
{
	struct msg_secret secret;
	char content[64] = ":";
	struct err err;

	if (msg_secret_get(m->body, &secret, &err) < 0 ||
		read(m->fds[0], content + 1, sizeof(content) - 2) < 0)
		_exit(3);
	note("secret", secret.name, content);
	if (strcmp(secret.name, "slow") == 0)
		(void)signal(SIGTERM, end_slowly);
}

static void
on_mirror(struct ipc_msg *m)
{
	struct msg_mirror mirror;
	struct err err;

	if (msg_mirror_get(m->body, &mirror, &err) < 0)
		_exit(3);
	note("mirror", strrchr(mirror.path, '/') + 1, "");
}

static void
on_begin(struct ipc_msg *m)
{
	struct msg_broker_begin begin;
	char content[64] = "";
	struct stat st;
	struct err err;

	if (msg_broker_begin_get(m->body, &begin, &err) < 0 ||
		read(FD_BROKER_CATALOGUE, content, sizeof(content) - 1) < 0 ||
		fstat(FD_BROKER_STATE, &st) < 0)
		_exit(3);
	note("origin", begin.origin, "");
	note("operations", content, "");
	note("state", (st.st_mode & 07777) == 0700 && st.st_uid == getuid() ? "own" : "other", "");
	note("trust", faccessat(FD_BROKER_TRUST, "approvers", R_OK, 0) == 0 ? "some" : "none", "");
}

/* Its edge is used for these words, and closed. */
static void
on_gateway(const struct ipc_msg *m)
{
	char content[128] = "", said[256];
	int n;

	if (pread(m->fds[1], content, sizeof(content) - 1, 0) < 0)
		_exit(3);
	n = snprintf(said, sizeof(said), "broker policy=%s", content);
	(void)send(m->fds[0], said, (size_t)n, MSG_NOSIGNAL); /* it may be gone */
}

static void
edge_new(int *edge, struct ipc_msg *m)
{
	(void)close(*edge); /* of a process that is gone */
	*edge = ipc_msg_take(m, 0);
}

static void
say(void)
{
	(void)send(engine, text, strlen(text), MSG_NOSIGNAL); /* the engine may be gone */
}

static void
on_supervisor(void)
{
	static uint8_t room[4096];
	struct ipc_msg m;
	struct err err;

	if (ipc_read(FD_BROKER_SUPERVISOR, EDGE_SUPERVISOR_BROKER, ROOM_SUPERVISOR, room,
		    sizeof(room), &m, &err) < 0)
		_exit(2);
	if (m.type == MSG_SECRET)
		on_secret(&m);
	else if (m.type == MSG_MIRROR)
		on_mirror(&m);
	else if (m.type == MSG_BROKER_BEGIN)
		on_begin(&m);
	else if (m.type == MSG_BROKER_GATEWAY)
		on_gateway(&m);
	else
		edge_new(m.type == MSG_BROKER_ENGINE ? &engine : &dialer, &m);
	if (m.type == MSG_BROKER_BEGIN || m.type == MSG_BROKER_ENGINE)
		say();
	ipc_msg_done(&m);
}

int
main(void)
{
	(void)snprintf(text, sizeof(text), "broker uid=%d", (int)getuid());
	for (;;) {
		struct pollfd p[] = {{.fd = FD_BROKER_SUPERVISOR, .events = POLLIN},
			{.fd = dialer, .events = POLLIN}};
		char said[256];
		ssize_t n;

		if (poll(p, 2, -1) < 0)
			return 1;
		if (p[0].revents != 0) {
			on_supervisor();
			continue;
		}
		n = recv(dialer, said, sizeof(said), 0);
		if (n <= 0) {
			(void)close(take_fd(&dialer)); /* a new one will come */
			continue;
		}
		(void)send(engine, said, (size_t)n, MSG_NOSIGNAL); /* as above */
	}
}
