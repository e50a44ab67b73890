/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stands in for demilune-dialer: says what it was given on every edge to the broker and to a gateway that it gets. With origins that begin with `deaf` it does
 * not end when it is told to.
 */
#include "lib/base/attr.h"
#include "lib/ipc/datagram.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>

static char text[256], ports[256];

static void
on_ports(const struct ipc_msg *m)
{
	struct msg_dialer_ports is;
	struct err err;

	if (msg_dialer_ports_get(m->body, &is, &err) < 0)
		_exit(3);
	for (size_t i = 0; i < ARRAY_LEN(is.ports) && is.ports[i] != 0; i++) {
		size_t n = strlen(ports);

		(void)snprintf(ports + n, sizeof(ports) - n, ",%u", is.ports[i]);
	}
}

/* Its edge is used for these words, and closed. */
static void
on_gateway(const struct ipc_msg *m)
{
	char content[128] = "", said[512];
	int n;

	if (pread(m->fds[1], content, sizeof(content) - 1, 0) < 0)
		_exit(3);
	n = snprintf(said, sizeof(said), "dialer ports=%s policy=%s", ports, content);
	(void)send(m->fds[0], said, (size_t)n, MSG_NOSIGNAL); /* it may be gone */
}

static int
tell(int broker)
{
	return send(broker, text, strlen(text), MSG_NOSIGNAL) < 0 ? -1 : 0;
}

int
main(void)
{
	static uint8_t room[4096];
	char origins[64] = "";
	int broker = FD_DIALER_BROKER;
	struct err err;

	if (read(FD_DIALER_ORIGINS, origins, sizeof(origins) - 1) < 0)
		return 1;
	if (strncmp(origins, "deaf", 4) == 0)
		(void)signal(SIGTERM, SIG_IGN);
	for (;;) {
		struct pollfd p = {.fd = FD_DIALER_SUPERVISOR, .events = POLLIN};
		struct msg_dialer_begin begin;
		struct ipc_msg m;

		if (poll(&p, 1, -1) < 0 ||
			ipc_read(FD_DIALER_SUPERVISOR, EDGE_SUPERVISOR_DIALER, ROOM_SUPERVISOR,
				room, sizeof(room), &m, &err) < 0)
			return 2;
		if (m.type == MSG_DIALER_BEGIN) {
			if (msg_dialer_begin_get(m.body, &begin, &err) < 0)
				return 3;
			(void)snprintf(text, sizeof(text), "dialer uid=%d resolver=%s origins=%s",
				(int)getuid(), begin.resolvers[0], origins);
		} else if (m.type == MSG_DIALER_BROKER) {
			(void)close(broker); /* of a broker that is gone */
			broker = ipc_msg_take(&m, 0);
		} else if (m.type == MSG_DIALER_GATEWAY) {
			on_gateway(&m);
			ipc_msg_done(&m);
			continue;
		} else {
			on_ports(&m);
			continue;
		}
		if (tell(broker) < 0)
			return 4;
	}
}
