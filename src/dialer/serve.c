/* SPDX-License-Identifier: Apache-2.0 */
/* Messages; see serve.h. */
#include "serve.h"

#include "gateway.h"
#include "lib/base/log.h"
#include "lib/base/sha256.h"
#include "limits.h"

#include <errno.h>
#include <stdio.h>

/* ---- broker ---- */

static void
broker_connected(struct asker *a, uint64_t tag, const char *address, int fd)
{
	struct msg_dialed m = {0};

	(void)snprintf(m.address, sizeof(m.address), "%s", address);
	if (a->peer != NULL)
		IPC_SEND_FD(a->peer, tag, DIALED, dialed, fd, m);
}

static void
broker_failed(struct asker *a, uint64_t tag, enum dial reason, const char *text)
{
	struct msg_dial_failed m = {.reason = reason};

	(void)snprintf(m.text, sizeof(m.text), "%s", text);
	if (a->peer != NULL)
		IPC_SEND(a->peer, tag, DIAL_FAILED, dial_failed, m);
}

void
broker_init(struct dialer *d)
{
	asker_init(&d->broker, d, false);
	d->broker.connected = broker_connected;
	d->broker.failed = broker_failed;
}

static int
on_dial(struct ipc_peer *peer, struct ipc_msg *in, const struct msg_dial *m, struct err *err)
{
	static const uint8_t none[SHA256_BYTES];
	bool catalogue = memcmp(m->policy, none, sizeof(none)) == 0;
	struct dialer *d = peer->owner;
	const struct origin *found = NULL;
	struct origin brokered;

	if (m->timeout_ms == 0)
		return err_set(err, -EPROTO, "DIAL without a time");
	if (catalogue)
		found = origins_find(&d->origins, view_str(m->host), m->port);
	else if (gateways_origin(d, m, &brokered))
		found = &brokered;
	if (found != NULL) {
		dial_begin(&d->broker, in->tag, found, m->timeout_ms);
		return 0;
	}
	log_line("asked for what is no origin");
	broker_failed(&d->broker, in->tag, DIAL_NOT_LISTED,
		catalogue ? "it is no origin of the catalogue"
			  : "no sandbox has a brokered rule that leads there");
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
	d->broker.peer = NULL;
	dials_forget(&d->broker);
}

int
serve_broker(struct dialer *d, int fd, struct err *err)
{
	d->broker.peer = ipc_peer_new(d->loop, fd, EDGE_BROKER_DIALER, ROOM_DIALER, broker_rows,
		ARRAY_LEN(broker_rows), d, on_broker_lost, err);
	return d->broker.peer == NULL ? err->code : 0;
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
on_dialer_ports(struct ipc_peer *peer, struct ipc_msg *in, const struct msg_dialer_ports *m,
	struct err *err)
{
	struct dialer *d = peer->owner;

	(void)in, (void)err;
	for (size_t i = 0; i < ARRAY_LEN(m->ports) && m->ports[i] != 0; i++)
		port_tell(d->told, m->ports[i]);
	return 0;
}

static int
on_dialer_gateway(struct ipc_peer *peer, struct ipc_msg *in, const struct msg_dialer_gateway *m,
	struct err *err)
{
	int edge = ipc_msg_take(in, 0);

	(void)err;
	gateway_add(peer->owner, m, edge, ipc_msg_take(in, 1));
	return 0;
}

static int
on_dialer_broker(struct ipc_peer *peer, struct ipc_msg *in, const struct msg_dialer_broker *m,
	struct err *err)
{
	struct dialer *d = peer->owner;

	(void)m;
	dials_forget(&d->broker);
	ipc_peer_close(d->broker.peer);
	return serve_broker(d, ipc_msg_take(in, 0), err);
}

IPC_HANDLER(dialer_ports, on_dialer_ports)
IPC_HANDLER(dialer_begin, on_dialer_begin)
IPC_HANDLER(dialer_broker, on_dialer_broker)
IPC_HANDLER(dialer_gateway, on_dialer_gateway)

static const struct ipc_row supervisor_rows[] = {
	IPC_ROW(DIALER_PORTS, IN(DIALER_NEW), on_dialer_ports),
	IPC_ROW(DIALER_BEGIN, IN(DIALER_NEW), on_dialer_begin),
	IPC_ROW(DIALER_BROKER, IN(DIALER_LIVE), on_dialer_broker),
	IPC_ROW(DIALER_GATEWAY, IN(DIALER_LIVE), on_dialer_gateway),
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
