/* SPDX-License-Identifier: Apache-2.0 */
/* See start.h. */
#include "broker/start.h"

#include "lib/base/log.h"
#include "lib/ipc/datagram.h"

#include <errno.h>
#include <poll.h>

enum { WAIT_MS = 30000 };

static int
next(int fd, uint8_t *room, size_t n, struct ipc_msg *ret, struct err *err)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int r = -EAGAIN;

	while (r == -EAGAIN) {
		if (poll(&p, 1, WAIT_MS) == 0)
			return err_set(err, -ETIMEDOUT, "the supervisor does not say how to start");
		r = ipc_read(fd, EDGE_SUPERVISOR_BROKER, ROOM_SUPERVISOR, room, n, ret, err);
	}
	return r;
}

static int
add_secret(struct broker *b, struct ipc_msg *in, struct err *err)
{
	auto_fd int fd = ipc_msg_take(in, 0);
	struct msg_secret m;
	struct err why = {0};
	int r = msg_secret_get(in->body, &m, err);

	if (r < 0)
		return r;
	r = vault_add(b->vault, m.name, fd, &why);
	if (r == -EINVAL) {
		log_line("%s; operations that need it are denied", why.text);
		return 0;
	}
	if (r < 0)
		*err = why;
	return r;
}

static int
add_mirror(struct broker *b, struct ipc_msg *in, struct err *err)
{
	if (b->nmirrors == LIMIT_MIRRORS)
		return err_set(err, -E2BIG, "more than %u mirrors", (unsigned)LIMIT_MIRRORS);
	b->mirrors[b->nmirrors++] = ipc_msg_take(in, 0);
	return 0;
}

int
start_read(struct broker *b, int supervisor, struct err *err)
{
	size_t n = ipc_room_bytes(EDGE_SUPERVISOR_BROKER, ROOM_SUPERVISOR);
	auto_free uint8_t *room = malloc(n);
	bool begun = false;

	if (room == NULL)
		return err_set(err, -ENOMEM, "no memory to start");
	while (!begun) {
		struct msg_broker_begin m;
		struct ipc_msg in = {0};
		int r = next(supervisor, room, n, &in, err);

		if (r < 0)
			return err_context(err, "supervisor");
		if (in.type == MSG_SECRET) {
			r = add_secret(b, &in, err);
		} else if (in.type == MSG_MIRROR) {
			r = add_mirror(b, &in, err);
		} else if (in.type == MSG_BROKER_BEGIN) {
			r = msg_broker_begin_get(in.body, &m, err);
			begun = true;
		} else {
			r = err_set(err, -EPROTO, "%s before BROKER_BEGIN", msg_info[in.type].name);
		}
		ipc_msg_done(&in);
		if (r < 0)
			return r;
		if (begun)
			(void)snprintf(b->origin, sizeof(b->origin), "%s", m.origin);
	}
	return 0;
}
