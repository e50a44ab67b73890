/* SPDX-License-Identifier: Apache-2.0 */
/* The message tables; see serve.h. Engine, dialer and broker may go and come again: what waits for them is told, all else goes on. */
#include "serve.h"

#include "accept.h"
#include "allotment.h"
#include "begin.h"
#include "brokered.h"
#include "conn.h"
#include "roots.h"
#include "upstream.h"
#include "verdict.h"

#include "lib/base/log.h"

#include <errno.h>

static bool
is_closed(const struct err *why)
{
	return why->code == -EPIPE || why->code == -ECONNRESET;
}

/* ---- engine ---- */

static int
on_verdict_kept(struct ipc_peer *peer, struct ipc_msg *in, const struct msg_verdict_kept *m,
	struct err *err)
{
	return verdict_kept(peer->owner, in->tag, m->kept, m->reason, err);
}

static int
on_allotment(
	struct ipc_peer *peer, struct ipc_msg *in, const struct msg_allotment *m, struct err *err)
{
	(void)in, (void)err;
	allotment_set(peer->owner, m);
	return 0;
}

static int
on_lease_is(
	struct ipc_peer *peer, struct ipc_msg *in, const struct msg_lease_is *m, struct err *err)
{
	return brokered_lease(peer->owner, in->tag, m->reason, &m->lease, err);
}

static int
on_egress_end(
	struct ipc_peer *peer, struct ipc_msg *in, const struct msg_egress_end *m, struct err *err)
{
	struct gateway *g = peer->owner;

	(void)in, (void)m, (void)err;
	g->over = true;
	conns_end(g);
	return 0;
}

IPC_HANDLER(verdict_kept, on_verdict_kept)
IPC_HANDLER(allotment, on_allotment)
IPC_HANDLER(lease_is, on_lease_is)
IPC_HANDLER(egress_end, on_egress_end)

static const struct ipc_row engine_rows[] = {
	IPC_ROW(VERDICT_KEPT, IN_ANY, on_verdict_kept),
	IPC_ROW(ALLOTMENT, IN_ANY, on_allotment),
	IPC_ROW(LEASE_IS, IN_ANY, on_lease_is),
	IPC_ROW(EGRESS_END, IN_ANY, on_egress_end),
};

static void
on_engine_lost(struct ipc_peer *peer, const struct err *why)
{
	struct gateway *g = peer->owner;

	if (!is_closed(why))
		log_line("engine: %s", why->text);
	ipc_peer_close(peer);
	g->engine = NULL;
	if (!g->begun)
		return;
	verdicts_engine(g, false);
	allotment_engine(g, false);
	brokered_engine(g, false);
}

/* ---- dialer ---- */

static int
on_reached(struct ipc_peer *peer, struct ipc_msg *in, const struct msg_reached *m, struct err *err)
{
	return upstream_reached(peer->owner, in->tag, ipc_msg_take(in, 0), m->address, err);
}

static int
on_reach_failed(struct ipc_peer *peer, struct ipc_msg *in, const struct msg_reach_failed *m,
	struct err *err)
{
	return upstream_failed(peer->owner, in->tag, m->reason, m->text, err);
}

IPC_HANDLER(reached, on_reached)
IPC_HANDLER(reach_failed, on_reach_failed)

static const struct ipc_row dialer_rows[] = {
	IPC_ROW(REACHED, IN_ANY, on_reached),
	IPC_ROW(REACH_FAILED, IN_ANY, on_reach_failed),
};

static void
on_dialer_lost(struct ipc_peer *peer, const struct err *why)
{
	struct gateway *g = peer->owner;

	if (!is_closed(why))
		log_line("dialer: %s", why->text);
	ipc_peer_close(peer);
	g->dialer = NULL;
	if (g->begun)
		upstreams_dialer(g, false);
}

/* ---- broker ---- */

static int
on_brokered_done(struct ipc_peer *peer, struct ipc_msg *in, const struct msg_brokered_done *m,
	struct err *err)
{
	return brokered_answered(peer->owner, in->tag, m, err);
}

IPC_HANDLER(brokered_done, on_brokered_done)

static const struct ipc_row broker_rows[] = {
	IPC_ROW(BROKERED_DONE, IN_ANY, on_brokered_done),
};

static void
on_broker_lost(struct ipc_peer *peer, const struct err *why)
{
	struct gateway *g = peer->owner;

	if (!is_closed(why))
		log_line("broker: %s", why->text);
	ipc_peer_close(peer);
	g->broker = NULL;
	if (g->begun)
		brokered_broker(g, false);
}

/* ---- supervisor ---- */

static int
on_listener(
	struct ipc_peer *peer, struct ipc_msg *in, const struct msg_listener *m, struct err *err)
{
	return listener_add(peer->owner, ipc_msg_take(in, 0), m->kind, m->port, err);
}

static int
on_roots(struct ipc_peer *peer, struct ipc_msg *in, const struct msg_roots *m, struct err *err)
{
	struct gateway *g = peer->owner;

	return roots_add(g->roots, m->name, ipc_msg_take(in, 0), err);
}

static int
on_gateway_engine(struct ipc_peer *peer, struct ipc_msg *in, const struct msg_gateway_engine *m,
	struct err *err)
{
	struct gateway *g = peer->owner;

	(void)m;
	if (g->engine != NULL)
		on_engine_lost(g->engine, &(struct err){.code = -EPIPE});
	g->engine = ipc_peer_new(g->loop, ipc_msg_take(in, 0), EDGE_GATEWAY_ENGINE, ROOM_GATEWAY,
		engine_rows, ARRAY_LEN(engine_rows), g, on_engine_lost, err);
	if (g->engine == NULL)
		return err->code;
	if (g->begun)
		gateway_engine_there(g);
	return 0;
}

static int
on_gateway_dialer(struct ipc_peer *peer, struct ipc_msg *in, const struct msg_gateway_dialer *m,
	struct err *err)
{
	struct gateway *g = peer->owner;

	(void)m;
	if (g->dialer != NULL)
		on_dialer_lost(g->dialer, &(struct err){.code = -EPIPE});
	g->dialer = ipc_peer_new(g->loop, ipc_msg_take(in, 0), EDGE_GATEWAY_DIALER, ROOM_GATEWAY,
		dialer_rows, ARRAY_LEN(dialer_rows), g, on_dialer_lost, err);
	if (g->dialer == NULL)
		return err->code;
	if (g->begun)
		upstreams_dialer(g, true);
	return 0;
}

static int
on_gateway_broker(struct ipc_peer *peer, struct ipc_msg *in, const struct msg_gateway_broker *m,
	struct err *err)
{
	struct gateway *g = peer->owner;

	(void)m;
	if (g->broker != NULL)
		on_broker_lost(g->broker, &(struct err){.code = -EPIPE});
	g->broker = ipc_peer_new(g->loop, ipc_msg_take(in, 0), EDGE_GATEWAY_BROKER, ROOM_GATEWAY,
		broker_rows, ARRAY_LEN(broker_rows), g, on_broker_lost, err);
	if (g->broker == NULL)
		return err->code;
	if (g->begun)
		brokered_broker(g, true);
	return 0;
}

static int
on_gateway_policy(struct ipc_peer *peer, struct ipc_msg *in, const struct msg_gateway_policy *m,
	struct err *err)
{
	return gateway_policy(peer->owner, ipc_msg_take(in, 0), m, err);
}

static int
on_gateway_begin(struct ipc_peer *peer, struct ipc_msg *in, const struct msg_gateway_begin *m,
	struct err *err)
{
	(void)in, (void)m, (void)err;
	gateway_begin(peer->owner);
	return 0;
}

IPC_HANDLER(listener, on_listener)
IPC_HANDLER(roots, on_roots)
IPC_HANDLER(gateway_engine, on_gateway_engine)
IPC_HANDLER(gateway_dialer, on_gateway_dialer)
IPC_HANDLER(gateway_broker, on_gateway_broker)
IPC_HANDLER(gateway_policy, on_gateway_policy)
IPC_HANDLER(gateway_begin, on_gateway_begin)

static const struct ipc_row supervisor_rows[] = {
	IPC_ROW(LISTENER, IN(GATEWAY_NEW) | IN(GATEWAY_NAMED), on_listener),
	IPC_ROW(ROOTS, IN(GATEWAY_NEW) | IN(GATEWAY_NAMED), on_roots),
	IPC_ROW(GATEWAY_ENGINE, IN_ANY, on_gateway_engine),
	IPC_ROW(GATEWAY_DIALER, IN_ANY, on_gateway_dialer),
	IPC_ROW(GATEWAY_BROKER, IN_ANY, on_gateway_broker),
	IPC_ROW(GATEWAY_POLICY, IN(GATEWAY_NEW), on_gateway_policy),
	IPC_ROW(GATEWAY_BEGIN, IN(GATEWAY_NAMED), on_gateway_begin),
};

/* Nothing survives the supervisor. */
static void
on_supervisor_lost(struct ipc_peer *peer, const struct err *why)
{
	struct gateway *g = peer->owner;

	if (!is_closed(why)) {
		log_line("supervisor: %s", why->text);
		g->exit = 1;
	}
	ev_break(g->loop, EVBREAK_ALL);
}

int
serve_supervisor(struct gateway *g, int fd, struct err *err)
{
	g->supervisor = ipc_peer_new(g->loop, fd, EDGE_SUPERVISOR_GATEWAY, ROOM_GATEWAY,
		supervisor_rows, ARRAY_LEN(supervisor_rows), g, on_supervisor_lost, err);
	if (g->supervisor == NULL)
		return err->code;
	g->supervisor->state = GATEWAY_NEW;
	return 0;
}
