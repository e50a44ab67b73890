/* SPDX-License-Identifier: Apache-2.0 */
/* The message tables of the broker towards engine, dialer and supervisor; that towards gateways stands in gateway.c. */
#include "broker/call.h"
#include "broker/gateway.h"
#include "broker/work.h"

#include "lib/base/log.h"

#include <errno.h>

static struct broker *
broker_of(const struct ipc_peer *peer)
{
	return peer->owner;
}

static struct ask
asked(const struct ipc_peer *peer, const struct ipc_msg *in)
{
	return (struct ask){.engine = broker_of(peer)->engine_number, .tag = in->tag};
}

/* ---- engine: each question is answered once, with its tag ---- */

#define ASKED(name, handler)                                            \
	static int on_##name(struct ipc_peer *peer, struct ipc_msg *in, \
		const struct msg_##name *m, struct err *err)            \
	{                                                               \
		(void)err;                                              \
		handler(broker_of(peer), asked(peer, in), m);           \
		return 0;                                               \
	}                                                               \
	IPC_HANDLER(name, on_##name)

static void
epoch(struct broker *b, struct ask ask, const struct msg_epoch_next *m)
{
	(void)m;
	epoch_next(b, ask);
}

/* Nothing is sent while the audit that tells of it cannot be signed; what was sent is told. */
static void
execute_audited(struct broker *b, struct ask ask, const struct msg_execute *m)
{
	char execution[ID_TEXT];

	id_text(&m->execution, ID_EXECUTION, execution);
	if (!b->audit.refused || work_of_execution(b, execution) != NULL ||
		ledger_by_execution(b->ledger, view_str(execution)) != NULL)
		execute(b, ask, m);
	else
		tell_refused(b, ask, DENIAL_AUDIT_UNAVAILABLE,
			"the last head of the audit could not be signed; nothing is sent until one "
			"is");
}

ASKED(verify_ask, verify_ask)
ASKED(read_ask, read_ask)
ASKED(decision_ask, decision_ask)
ASKED(execute, execute_audited)
ASKED(execution_ask, execution_ask)
ASKED(lookup_ask, lookup_ask)
ASKED(settle_ask, settle_ask)
ASKED(revoke, revoke_ask)
ASKED(broker_contain, contain)
ASKED(release_ask, release_ask)
ASKED(epoch_next, epoch)
ASKED(checkpoint_ask, checkpoint_ask)
ASKED(lease, lease_ask)

static const struct ipc_row engine_rows[] = {
	IPC_ROW(VERIFY_ASK, IN_ANY, on_verify_ask),
	IPC_ROW(READ_ASK, IN_ANY, on_read_ask),
	IPC_ROW(DECISION_ASK, IN_ANY, on_decision_ask),
	IPC_ROW(EXECUTE, IN_ANY, on_execute),
	IPC_ROW(EXECUTION_ASK, IN_ANY, on_execution_ask),
	IPC_ROW(LOOKUP_ASK, IN_ANY, on_lookup_ask),
	IPC_ROW(SETTLE_ASK, IN_ANY, on_settle_ask),
	IPC_ROW(REVOKE, IN_ANY, on_revoke),
	IPC_ROW(BROKER_CONTAIN, IN_ANY, on_broker_contain),
	IPC_ROW(RELEASE_ASK, IN_ANY, on_release_ask),
	IPC_ROW(EPOCH_NEXT, IN_ANY, on_epoch_next),
	IPC_ROW(CHECKPOINT_ASK, IN_ANY, on_checkpoint_ask),
	IPC_ROW(LEASE, IN_ANY, on_lease),
};

/* What is in flight goes on: the ledger has its end for the next engine. */
static void
on_engine_lost(struct ipc_peer *peer, const struct err *why)
{
	struct broker *b = broker_of(peer);

	if (why->code != -EPIPE && why->code != -ECONNRESET)
		log_line("engine: %s", why->text);
	ipc_peer_close(peer);
	b->engine = NULL;
}

static void
tell_ready(struct broker *b)
{
	struct msg_broker_ready m = {
		.epoch = ledger_epoch(b->ledger), .ledger_entries = ledger_entries(b->ledger)};

	memcpy(m.catalogue, b->catalogue.digest, SHA256_BYTES);
	checkpoint_ready(b, &m);
	IPC_SEND(b->engine, 0, BROKER_READY, broker_ready, m);
}

static void
tell_approvers(struct broker *b)
{
	const struct approvers *a = approval_now(&b->approval);
	struct msg_approvers_loaded m = {.fault = view_str(b->approval.fault)};

	if (a != NULL) {
		memcpy(m.digest, a->digest, SHA256_BYTES);
		m.keys = (uint32_t)a->n;
		m.people = (uint32_t)a->people;
	}
	if (b->engine != NULL)
		IPC_SEND(b->engine, 0, APPROVERS_LOADED, approvers_loaded, m);
}

void
approvers_look(struct broker *b)
{
	if (!approval_refresh(&b->approval))
		return;
	if (b->approval.fault[0] != '\0')
		log_line("%s; everything is denied", b->approval.fault);
	else
		log_line("approvers: read again");
	tell_approvers(b);
}

int
serve_engine(struct broker *b, int fd, struct err *err)
{
	struct ipc_peer *peer = ipc_peer_new(b->loop, fd, EDGE_ENGINE_BROKER, ROOM_BROKER,
		engine_rows, ARRAY_LEN(engine_rows), b, on_engine_lost, err);

	if (peer == NULL)
		return err->code;
	if (ending(b)) {
		ipc_peer_close(peer); /* the next broker is its own */
		return 0;
	}
	ipc_peer_close(b->engine);
	b->engine = peer;
	b->engine_number++;
	tell_ready(b);
	tell_approvers(b);
	return 0;
}

/* ---- dialer ---- */

static int
on_dialed(struct ipc_peer *peer, struct ipc_msg *in, const struct msg_dialed *m, struct err *err)
{
	(void)m, (void)err;
	call_dialed(broker_of(peer), in->tag, ipc_msg_take(in, 0));
	return 0;
}

static int
on_dial_failed(
	struct ipc_peer *peer, struct ipc_msg *in, const struct msg_dial_failed *m, struct err *err)
{
	(void)err;
	call_dial_failed(broker_of(peer), in->tag, m->reason,
		m->text[0] != '\0' ? m->text : dial_text(m->reason));
	return 0;
}

IPC_HANDLER(dialed, on_dialed)
IPC_HANDLER(dial_failed, on_dial_failed)

static const struct ipc_row dialer_rows[] = {
	IPC_ROW(DIALED, IN_ANY, on_dialed),
	IPC_ROW(DIAL_FAILED, IN_ANY, on_dial_failed),
};

static void
on_dialer_lost(struct ipc_peer *peer, const struct err *why)
{
	struct broker *b = broker_of(peer);

	if (why->code != -EPIPE && why->code != -ECONNRESET)
		log_line("dialer: %s", why->text);
	ipc_peer_close(peer);
	b->dialer = NULL;
	call_dialer_lost(b);
}

int
serve_dialer(struct broker *b, int fd, struct err *err)
{
	struct ipc_peer *peer = ipc_peer_new(b->loop, fd, EDGE_BROKER_DIALER, ROOM_BROKER,
		dialer_rows, ARRAY_LEN(dialer_rows), b, on_dialer_lost, err);

	if (peer == NULL)
		return err->code;
	if (b->dialer != NULL) {
		ipc_peer_close(b->dialer);
		call_dialer_lost(b);
	}
	b->dialer = peer;
	return 0;
}

/* ---- supervisor: first what the broker starts with, then only new edges ---- */

static int
on_secret(struct ipc_peer *peer, struct ipc_msg *in, const struct msg_secret *m, struct err *err)
{
	auto_fd int fd = ipc_msg_take(in, 0);
	int r = vault_add(broker_of(peer)->vault, m->name, fd, err);

	if (r == -EINVAL) {
		log_line("%s; operations that need it are denied", err->text);
		return 0;
	}
	return r;
}

static int
on_mirror(struct ipc_peer *peer, struct ipc_msg *in, const struct msg_mirror *m, struct err *err)
{
	struct broker *b = broker_of(peer);

	(void)m;
	if (b->nmirrors == LIMIT_MIRRORS)
		return err_set(err, -E2BIG, "more than %u mirrors", (unsigned)LIMIT_MIRRORS);
	b->mirrors[b->nmirrors++] = ipc_msg_take(in, 0);
	return 0;
}

/* What comes behind it waits until the broker is confined. */
static int
on_broker_begin(struct ipc_peer *peer, struct ipc_msg *in, const struct msg_broker_begin *m,
	struct err *err)
{
	struct broker *b = broker_of(peer);

	(void)in, (void)err;
	(void)snprintf(b->origin, sizeof(b->origin), "%s", m->origin);
	peer->state = BROKER_LIVE;
	ipc_peer_pause(peer, true);
	ev_break(b->loop, EVBREAK_ALL);
	return 0;
}

static int
on_broker_engine(struct ipc_peer *peer, struct ipc_msg *in, const struct msg_broker_engine *m,
	struct err *err)
{
	(void)m;
	return serve_engine(broker_of(peer), ipc_msg_take(in, 0), err);
}

static int
on_broker_dialer(struct ipc_peer *peer, struct ipc_msg *in, const struct msg_broker_dialer *m,
	struct err *err)
{
	(void)m;
	return serve_dialer(broker_of(peer), ipc_msg_take(in, 0), err);
}

static int
on_broker_gateway(struct ipc_peer *peer, struct ipc_msg *in, const struct msg_broker_gateway *m,
	struct err *err)
{
	int edge = ipc_msg_take(in, 0);

	(void)err;
	gateway_add(broker_of(peer), m, edge, ipc_msg_take(in, 1));
	return 0;
}

IPC_HANDLER(secret, on_secret)
IPC_HANDLER(mirror, on_mirror)
IPC_HANDLER(broker_begin, on_broker_begin)
IPC_HANDLER(broker_engine, on_broker_engine)
IPC_HANDLER(broker_dialer, on_broker_dialer)
IPC_HANDLER(broker_gateway, on_broker_gateway)

static const struct ipc_row supervisor_rows[] = {
	IPC_ROW(SECRET, IN(BROKER_STARTING), on_secret),
	IPC_ROW(MIRROR, IN(BROKER_STARTING), on_mirror),
	IPC_ROW(BROKER_BEGIN, IN(BROKER_STARTING), on_broker_begin),
	IPC_ROW(BROKER_ENGINE, IN(BROKER_LIVE), on_broker_engine),
	IPC_ROW(BROKER_DIALER, IN(BROKER_LIVE), on_broker_dialer),
	IPC_ROW(BROKER_GATEWAY, IN(BROKER_LIVE), on_broker_gateway),
};

static void
on_supervisor_lost(struct ipc_peer *peer, const struct err *why)
{
	struct broker *b = broker_of(peer);

	/* Nothing survives the supervisor. */
	if (why->code != -EPIPE && why->code != -ECONNRESET)
		log_line("supervisor: %s", why->text);
	ipc_peer_close(peer);
	b->supervisor = NULL;
	ev_break(b->loop, EVBREAK_ALL);
}

int
serve_supervisor(struct broker *b, int fd, struct err *err)
{
	b->supervisor = ipc_peer_new(b->loop, fd, EDGE_SUPERVISOR_BROKER, ROOM_BROKER,
		supervisor_rows, ARRAY_LEN(supervisor_rows), b, on_supervisor_lost, err);
	if (b->supervisor == NULL)
		return err->code;
	b->supervisor->state = BROKER_STARTING;
	return 0;
}
