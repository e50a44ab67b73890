/* SPDX-License-Identifier: Apache-2.0 */
/* Messages; see serve.h. */
#include "serve.h"

#include "lib/base/log.h"
#include "limits.h"

#include <errno.h>

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

int
serve_broker(struct dialer *d, int fd, struct err *err)
{
	d->broker = ipc_peer_new(d->loop, fd, EDGE_BROKER_DIALER, ROOM_DIALER, broker_rows,
		ARRAY_LEN(broker_rows), d, on_broker_lost, err);
	return d->broker == NULL ? err->code : 0;
}

/* ---- supervisor ---- */

static int
on_dialer_begin(struct ipc_peer *peer, struct ipc_msg *in, const struct msg_dialer_begin *m,
	struct err *err)
{
	struct dialer *d = peer->owner;
	int r = d->begin(d, m, err);

	(void)in;
	ev_timer_stop(d->loop, &d->late);
	peer->state = DIALER_LIVE;
	return r;
}

static int
on_dialer_broker(struct ipc_peer *peer, struct ipc_msg *in, const struct msg_dialer_broker *m,
	struct err *err)
{
	struct dialer *d = peer->owner;

	(void)m;
	dials_forget(d);
	ipc_peer_close(d->broker);
	return serve_broker(d, ipc_msg_take(in, 0), err);
}

IPC_HANDLER(dialer_begin, on_dialer_begin)
IPC_HANDLER(dialer_broker, on_dialer_broker)

static const struct ipc_row supervisor_rows[] = {
	IPC_ROW(DIALER_BEGIN, IN(DIALER_NEW), on_dialer_begin),
	IPC_ROW(DIALER_BROKER, IN(DIALER_LIVE), on_dialer_broker),
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

static void
on_late(struct ev_loop *loop, ev_timer *w, int events)
{
	struct dialer *d = container_of(w, struct dialer, late);

	(void)events;
	log_line("the supervisor does not say how to begin");
	d->exit = 1;
	ev_break(loop, EVBREAK_ALL);
}

int
serve_supervisor(struct dialer *d, int fd, struct err *err)
{
	d->supervisor = ipc_peer_new(d->loop, fd, EDGE_SUPERVISOR_DIALER, ROOM_DIALER,
		supervisor_rows, ARRAY_LEN(supervisor_rows), d, on_supervisor_lost, err);
	if (d->supervisor == NULL)
		return err->code;
	d->supervisor->state = DIALER_NEW;
	ev_timer_init(&d->late, on_late, (double)LIMIT_BEGIN_MS / 1000, 0.0);
	ev_timer_start(d->loop, &d->late);
	return 0;
}
