/* SPDX-License-Identifier: Apache-2.0 */
/* Messages; see serve.h. */
#include "serve.h"

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "limits.h"

#include <errno.h>
#include <poll.h>

int
serve_begin(int fd, struct msg_dialer_begin *ret, struct err *err)
{
	size_t n = ipc_room_bytes(EDGE_SUPERVISOR_DIALER, ROOM_SUPERVISOR);
	auto_free uint8_t *room = malloc(n);
	uint64_t until = clock_mono_ms() + LIMIT_BEGIN_MS;
	struct ipc_msg in;
	int r;

	if (room == NULL)
		return err_set(err, -ENOMEM, "no memory");
	for (;;) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		uint64_t now = clock_mono_ms();

		if (now >= until)
			return err_set(err, -ETIMEDOUT, "the supervisor does not say how to begin");
		(void)poll(&p, 1, (int)(until - now)); /* an interruption is another turn */
		r = ipc_read(fd, EDGE_SUPERVISOR_DIALER, ROOM_SUPERVISOR, room, n, &in, err);
		if (r != -EAGAIN)
			break;
	}
	if (r < 0)
		return r;
	r = in.type == MSG_DIALER_BEGIN
		    ? msg_dialer_begin_get(in.body, ret, err)
		    : err_set(err, -EPROTO, "%s before DIALER_BEGIN", msg_info[in.type].name);
	ipc_msg_done(&in);
	return r;
}

/* ---- broker ---- */

static int
on_dial(struct ipc_peer *peer, struct ipc_msg *in, const struct msg_dial *m, struct err *err)
{
	if (m->timeout_ms == 0)
		return err_set(err, -EPROTO, "DIAL without a time");
	dial_begin(peer->owner, in->tag, view_str(m->host), m->port, m->timeout_ms);
	return 0;
}

IPC_HANDLER(dial, on_dial)

static const struct ipc_row broker_rows[] = {
	IPC_ROW(DIAL, IN_ANY, on_dial),
};

/* The supervisor ends a broker that is lost and brings the edge to the next one. */
static void
on_broker_lost(struct ipc_peer *peer, const struct err *why)
{
	struct dialer *d = peer->owner;

	if (why->code != -EPIPE && why->code != -ECONNRESET)
		log_line("broker: %s", why->text);
	ipc_peer_close(peer);
	d->broker = NULL;
	dials_forget(d);
}

static int
broker_start(struct dialer *d, int fd, struct err *err)
{
	d->broker = ipc_peer_new(d->loop, fd, EDGE_BROKER_DIALER, ROOM_DIALER, broker_rows,
		ARRAY_LEN(broker_rows), d, on_broker_lost, err);
	return d->broker == NULL ? err->code : 0;
}

/* ---- supervisor ---- */

static int
on_dialer_broker(struct ipc_peer *peer, struct ipc_msg *in, const struct msg_dialer_broker *m,
	struct err *err)
{
	struct dialer *d = peer->owner;

	(void)m;
	dials_forget(d);
	ipc_peer_close(d->broker);
	return broker_start(d, ipc_msg_take(in, 0), err);
}

IPC_HANDLER(dialer_broker, on_dialer_broker)

static const struct ipc_row supervisor_rows[] = {
	IPC_ROW(DIALER_BROKER, IN_ANY, on_dialer_broker),
};

/* Nothing survives the supervisor. */
static void
on_supervisor_lost(struct ipc_peer *peer, const struct err *why)
{
	struct dialer *d = peer->owner;

	if (why->code != -EPIPE && why->code != -ECONNRESET) {
		log_line("supervisor: %s", why->text);
		d->exit = 1;
	}
	ev_break(d->loop, EVBREAK_ALL);
}

int
serve_start(struct dialer *d, int broker, int supervisor, struct err *err)
{
	int r = broker_start(d, broker, err);

	if (r < 0)
		return r;
	d->supervisor = ipc_peer_new(d->loop, supervisor, EDGE_SUPERVISOR_DIALER, ROOM_DIALER,
		supervisor_rows, ARRAY_LEN(supervisor_rows), d, on_supervisor_lost, err);
	return d->supervisor == NULL ? err->code : 0;
}
