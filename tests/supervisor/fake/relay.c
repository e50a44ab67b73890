/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stands in for demilune-relay: gives the channel to the test over the edge to the engine, gives it again over
 * each new edge, and ends when the agent's end is closed.
 */
#include "lib/base/attr.h"
#include "lib/ipc/datagram.h"

#include "fake/pass.h"

#include <poll.h>

int
main(void)
{
	static uint8_t room[4096];
	const int channel = FD_RELAY_CHANNEL;
	int engine = FD_RELAY_ENGINE;
	struct err err;

	(void)pass_send(
		engine, 'r', &channel, 1); /* a test in a hurry may have closed it already */
	for (;;) {
		struct pollfd p[] = {{.fd = FD_RELAY_SUPERVISOR, .events = POLLIN},
			{.fd = channel, .events = POLLRDHUP}};
		struct ipc_msg m;

		if (poll(p, 2, -1) < 0)
			return 1;
		if (p[1].revents != 0)
			return 3; /* as the real one: the guest is gone */
		if (ipc_read(FD_RELAY_SUPERVISOR, EDGE_SUPERVISOR_RELAY, ROOM_SUPERVISOR, room,
			    sizeof(room), &m, &err) < 0)
			return 2;
		if (m.type == MSG_AGENT_STARTS)
			continue;
		(void)close(engine); /* of an engine that is gone */
		engine = ipc_msg_take(&m, 0);
		(void)pass_send(engine, 'r', &channel, 1); /* the test may have closed it already */
	}
}
