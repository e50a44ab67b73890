/* SPDX-License-Identifier: Apache-2.0 */
/* Stands in for demilune-api: says its argument on every edge to the engine that it gets. */
#include "lib/base/attr.h"
#include "lib/ipc/datagram.h"

#include <poll.h>
#include <sys/socket.h>

int
main(int argc, char **argv)
{
	static uint8_t room[4096];
	int engine = FD_API_ENGINE;
	struct err err;

	if (argc != 2 || send(engine, argv[1], strlen(argv[1]), MSG_NOSIGNAL) < 0)
		return 1;
	for (;;) {
		struct pollfd p = {.fd = FD_API_SUPERVISOR, .events = POLLIN};
		struct ipc_msg m;

		if (poll(&p, 1, -1) < 0 ||
			ipc_read(FD_API_SUPERVISOR, EDGE_SUPERVISOR_API, ROOM_SUPERVISOR, room,
				sizeof(room), &m, &err) < 0)
			return 2;
		(void)close(engine); /* of an engine that is gone */
		engine = ipc_msg_take(&m, 0);
		if (send(engine, argv[1], strlen(argv[1]), MSG_NOSIGNAL) < 0)
			return 3;
	}
}
