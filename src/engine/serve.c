/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may say what to the engine, in which state, and which function answers. Nothing else. A message
 * that is not here, or not now, ends its sender: the supervisor (and with it this process), the api (which ends
 * itself without an edge and is started again) or one relay (and with it its sandbox).
 */
#include "engine/serve.h"

#include "engine/budgets.h"
#include "engine/authority.h"
#include "engine/cell.h"
#include "engine/contain.h"
#include "engine/create.h"
#include "engine/decision.h"
#include "engine/execution.h"
#include "engine/gate.h"
#include "engine/gone.h"
#include "engine/health.h"
#include "engine/input.h"
#include "engine/job.h"
#include "engine/life.h"
#include "engine/limits.h"
#include "engine/local.h"
#include "engine/lost.h"
#include "engine/net.h"
#include "engine/proof.h"
#include "engine/propose.h"
#include "engine/reconcile.h"
#include "engine/restart.h"
#include "engine/said.h"
#include "engine/stopping.h"
#include "engine/task.h"
#include "engine/token.h"

#include <errno.h>

/* An answer of the broker, to be matched with its question. */
#define ANSWERED(name)                                                                           \
	static int on_##name##_typed(struct ipc_peer *peer, struct ipc_msg *in, struct err *err) \
	{                                                                                        \
		struct broker_answer a = {0};                                                    \
		int r = msg_##name##_get(in->body, &a.m.name, err);                              \
                                                                                                 \
		return r < 0 ? r : broker_answered(peer->owner, in, &a, err);                    \
	}

/* A request of the api: a refusal is an answer, never the fault of the peer. */
#define REQUEST(name)                                                                            \
	static int on_##name##_typed(struct ipc_peer *peer, struct ipc_msg *in, struct err *err) \
	{                                                                                        \
		struct engine *e = peer->owner;                                                  \
		struct reply to = reply_of(e, in);                                               \
		struct msg_##name m;                                                             \
		struct err why;                                                                  \
		int r = msg_##name##_get(in->body, &m, err);                                     \
                                                                                                 \
		if (r < 0)                                                                       \
			return r;                                                                \
		if (on_##name(e, to, &m, &why) < 0)                                              \
			answer_refused(e, to, &why);                                             \
		return 0;                                                                        \
	}

/* A message of supervisor or relay; `owner` is the engine or the sandbox. */
#define TOLD(name, owner_type)                                                                   \
	static int on_##name##_typed(struct ipc_peer *peer, struct ipc_msg *in, struct err *err) \
	{                                                                                        \
		owner_type *owner = peer->owner;                                                 \
		struct msg_##name m;                                                             \
		int r = msg_##name##_get(in->body, &m, err);                                     \
                                                                                                 \
		return r < 0 ? r : on_##name(owner, &m, err);                                    \
	}

/* The same with the message itself: its descriptor, its tag. */
#define TOLD_FD(name)                                                                            \
	static int on_##name##_typed(struct ipc_peer *peer, struct ipc_msg *in, struct err *err) \
	{                                                                                        \
		struct msg_##name m;                                                             \
		int r = msg_##name##_get(in->body, &m, err);                                     \
                                                                                                 \
		return r < 0 ? r : on_##name(peer->owner, in, &m, err);                          \
	}

/* The same without fields. */
#define TOLD_PLAIN(name)                                                                         \
	static int on_##name##_typed(struct ipc_peer *peer, struct ipc_msg *in, struct err *err) \
	{                                                                                        \
		struct msg_##name m;                                                             \
		int r = msg_##name##_get(in->body, &m, err);                                     \
                                                                                                 \
		return r < 0 ? r : on_##name(peer->owner, err);                                  \
	}

REQUEST(whoami)
REQUEST(token_create)
REQUEST(token_list)
REQUEST(token_revoke)
REQUEST(sandbox_create)
REQUEST(sandbox_list)
REQUEST(sandbox_get)
REQUEST(sandbox_kill)
REQUEST(sandbox_freeze)
REQUEST(sandbox_life)
REQUEST(sandbox_usage)
REQUEST(job_run)
REQUEST(job_attach)
REQUEST(job_get)
REQUEST(job_list)
REQUEST(job_kill)
REQUEST(cell_begin)
REQUEST(cell_end)
REQUEST(task_create)
REQUEST(task_list)
REQUEST(task_get)
REQUEST(task_close)
REQUEST(task_resume)
REQUEST(input_open)
REQUEST(input_close)
REQUEST(input_list)
REQUEST(input_delete)
REQUEST(template_list)
REQUEST(template_get)
REQUEST(audit_read)
REQUEST(checkpoint_get)
REQUEST(inclusion_get)
REQUEST(consistency_get)
REQUEST(health)
REQUEST(operation_list)
REQUEST(operation_get)
REQUEST(proposal_list)
REQUEST(proposal_get)
REQUEST(proposal_create)
REQUEST(proposal_decide)
REQUEST(grant_issue)
REQUEST(grant_list)
REQUEST(budget_list)
REQUEST(execution_get)
REQUEST(execution_list)
REQUEST(reconcile)
REQUEST(authority_revoke)
REQUEST(contain)
REQUEST(release)
REQUEST(containment_list)
REQUEST(policy_list)
REQUEST(policy_get)
REQUEST(net_get)
REQUEST(egress_list)

TOLD_FD(local_open)
TOLD(local_close, struct engine)

/* Not read before the supervisor has told what it holds. */
static const struct ipc_row api_rows[] = {
	IPC_ROW(LOCAL_OPEN, IN(API_LIVE), on_local_open),
	IPC_ROW(LOCAL_CLOSE, IN(API_LIVE), on_local_close),
	IPC_ROW(WHOAMI, IN(API_LIVE), on_whoami),
	IPC_ROW(TOKEN_CREATE, IN(API_LIVE), on_token_create),
	IPC_ROW(TOKEN_LIST, IN(API_LIVE), on_token_list),
	IPC_ROW(TOKEN_REVOKE, IN(API_LIVE), on_token_revoke),
	IPC_ROW(SANDBOX_CREATE, IN(API_LIVE), on_sandbox_create),
	IPC_ROW(SANDBOX_LIST, IN(API_LIVE), on_sandbox_list),
	IPC_ROW(SANDBOX_GET, IN(API_LIVE), on_sandbox_get),
	IPC_ROW(SANDBOX_KILL, IN(API_LIVE), on_sandbox_kill),
	IPC_ROW(SANDBOX_FREEZE, IN(API_LIVE), on_sandbox_freeze),
	IPC_ROW(SANDBOX_LIFE, IN(API_LIVE), on_sandbox_life),
	IPC_ROW(SANDBOX_USAGE, IN(API_LIVE), on_sandbox_usage),
	IPC_ROW(JOB_RUN, IN(API_LIVE), on_job_run),
	IPC_ROW(JOB_ATTACH, IN(API_LIVE), on_job_attach),
	IPC_ROW(JOB_GET, IN(API_LIVE), on_job_get),
	IPC_ROW(JOB_LIST, IN(API_LIVE), on_job_list),
	IPC_ROW(JOB_KILL, IN(API_LIVE), on_job_kill),
	IPC_ROW(CELL_BEGIN, IN(API_LIVE), on_cell_begin),
	IPC_ROW(CELL_END, IN(API_LIVE), on_cell_end),
	IPC_ROW(TASK_CREATE, IN(API_LIVE), on_task_create),
	IPC_ROW(TASK_LIST, IN(API_LIVE), on_task_list),
	IPC_ROW(TASK_GET, IN(API_LIVE), on_task_get),
	IPC_ROW(TASK_CLOSE, IN(API_LIVE), on_task_close),
	IPC_ROW(TASK_RESUME, IN(API_LIVE), on_task_resume),
	IPC_ROW(INPUT_OPEN, IN(API_LIVE), on_input_open),
	IPC_ROW(INPUT_CLOSE, IN(API_LIVE), on_input_close),
	IPC_ROW(INPUT_LIST, IN(API_LIVE), on_input_list),
	IPC_ROW(INPUT_DELETE, IN(API_LIVE), on_input_delete),
	IPC_ROW(TEMPLATE_LIST, IN(API_LIVE), on_template_list),
	IPC_ROW(TEMPLATE_GET, IN(API_LIVE), on_template_get),
	IPC_ROW(AUDIT_READ, IN(API_LIVE), on_audit_read),
	IPC_ROW(CHECKPOINT_GET, IN(API_LIVE), on_checkpoint_get),
	IPC_ROW(INCLUSION_GET, IN(API_LIVE), on_inclusion_get),
	IPC_ROW(CONSISTENCY_GET, IN(API_LIVE), on_consistency_get),
	IPC_ROW(HEALTH, IN(API_LIVE), on_health),
	IPC_ROW(OPERATION_LIST, IN(API_LIVE), on_operation_list),
	IPC_ROW(OPERATION_GET, IN(API_LIVE), on_operation_get),
	IPC_ROW(PROPOSAL_LIST, IN(API_LIVE), on_proposal_list),
	IPC_ROW(PROPOSAL_GET, IN(API_LIVE), on_proposal_get),
	IPC_ROW(PROPOSAL_CREATE, IN(API_LIVE), on_proposal_create),
	IPC_ROW(PROPOSAL_DECIDE, IN(API_LIVE), on_proposal_decide),
	IPC_ROW(GRANT_ISSUE, IN(API_LIVE), on_grant_issue),
	IPC_ROW(GRANT_LIST, IN(API_LIVE), on_grant_list),
	IPC_ROW(BUDGET_LIST, IN(API_LIVE), on_budget_list),
	IPC_ROW(EXECUTION_GET, IN(API_LIVE), on_execution_get),
	IPC_ROW(EXECUTION_LIST, IN(API_LIVE), on_execution_list),
	IPC_ROW(RECONCILE, IN(API_LIVE), on_reconcile),
	IPC_ROW(AUTHORITY_REVOKE, IN(API_LIVE), on_authority_revoke),
	IPC_ROW(CONTAIN, IN(API_LIVE), on_contain),
	IPC_ROW(RELEASE, IN(API_LIVE), on_release),
	IPC_ROW(CONTAINMENT_LIST, IN(API_LIVE), on_containment_list),
	IPC_ROW(POLICY_LIST, IN(API_LIVE), on_policy_list),
	IPC_ROW(POLICY_GET, IN(API_LIVE), on_policy_get),
	IPC_ROW(NET_GET, IN(API_LIVE), on_net_get),
	IPC_ROW(EGRESS_LIST, IN(API_LIVE), on_egress_list),
};

TOLD(settings, struct engine)
TOLD_FD(held)
TOLD(leftover, struct engine)
TOLD_PLAIN(held_end)
TOLD_FD(api_edge)
TOLD_FD(broker_edge)
TOLD(template_ready, struct engine)
TOLD(template_failed, struct engine)
TOLD_FD(spawned)
TOLD_FD(gateway_edge)
TOLD(spawn_failed, struct engine)
TOLD(gone, struct engine)
TOLD(ttl_is, struct engine)
TOLD(frozen, struct engine)
TOLD(usage, struct engine)
TOLD_PLAIN(stopping)

enum { RUNS = IN(SUPERVISOR_HOLDS) | IN(SUPERVISOR_LIVE) };

static const struct ipc_row supervisor_rows[] = {
	IPC_ROW(SETTINGS, IN(SUPERVISOR_NEW), on_settings),
	IPC_ROW(HELD, IN(SUPERVISOR_HOLDS), on_held),
	IPC_ROW(LEFTOVER, IN(SUPERVISOR_HOLDS), on_leftover),
	IPC_ROW(HELD_END, IN(SUPERVISOR_HOLDS), on_held_end),
	IPC_ROW(API_EDGE, RUNS, on_api_edge),
	IPC_ROW(BROKER_EDGE, RUNS, on_broker_edge),
	IPC_ROW(TEMPLATE_READY, RUNS, on_template_ready),
	IPC_ROW(TEMPLATE_FAILED, RUNS, on_template_failed),
	IPC_ROW(SPAWNED, IN(SUPERVISOR_LIVE), on_spawned),
	IPC_ROW(GATEWAY_EDGE, RUNS, on_gateway_edge),
	IPC_ROW(SPAWN_FAILED, IN(SUPERVISOR_LIVE), on_spawn_failed),
	IPC_ROW(GONE, RUNS, on_gone),
	IPC_ROW(TTL_IS, IN(SUPERVISOR_LIVE), on_ttl_is),
	IPC_ROW(FROZEN, IN(SUPERVISOR_LIVE), on_frozen),
	IPC_ROW(USAGE, IN(SUPERVISOR_LIVE), on_usage),
	IPC_ROW(STOPPING, RUNS, on_stopping),
};

TOLD(relay_ready, struct sandbox)
TOLD(relay_job, struct sandbox)
TOLD_PLAIN(relay_jobs_end)
TOLD_FD(propose)
TOLD(job_ended, struct sandbox)
TOLD(relay_lost, struct sandbox)

static const struct ipc_row relay_rows[] = {
	IPC_ROW(RELAY_READY, IN(RELAY_STARTS), on_relay_ready),
	IPC_ROW(RELAY_JOB, IN(RELAY_RESYNCS), on_relay_job),
	IPC_ROW(RELAY_JOBS_END, IN(RELAY_RESYNCS), on_relay_jobs_end),
	IPC_ROW(JOB_ENDED, IN(RELAY_RESYNCS) | IN(RELAY_LIVE), on_job_ended),
	IPC_ROW(PROPOSE, IN(RELAY_RESYNCS) | IN(RELAY_LIVE), on_propose),
	IPC_ROW(RELAY_LOST, IN_ANY, on_relay_lost),
};

TOLD(gateway_ready, struct gate)
TOLD_FD(verdict)
TOLD_FD(flow)
TOLD_FD(allotment_ask)
TOLD_FD(lease_ask)

/* GATEWAY_READY comes once on each edge, and first: at the beginning, and from the same gateway after a restart of this engine. */
static const struct ipc_row gateway_rows[] = {
	IPC_ROW(GATEWAY_READY, IN(GATE_STARTS), on_gateway_ready),
	IPC_ROW(VERDICT, IN(GATE_LIVE), on_verdict),
	IPC_ROW(FLOW, IN(GATE_LIVE), on_flow),
	IPC_ROW(ALLOTMENT_ASK, IN(GATE_LIVE), on_allotment_ask),
	IPC_ROW(LEASE_ASK, IN(GATE_LIVE), on_lease_ask),
};

TOLD(broker_ready, struct engine)
TOLD(approvers_loaded, struct engine)
ANSWERED(verified)
ANSWERED(read_done)
ANSWERED(decision_is)
ANSWERED(executed)
ANSWERED(revoked)
ANSWERED(epoch_is)
ANSWERED(checkpoint_is)
ANSWERED(broker_done)

/* The same as a broker_answer without a message. */
static int
on_broker_refused_typed(struct ipc_peer *peer, struct ipc_msg *in, struct err *err)
{
	struct msg_broker_refused m;
	int r = msg_broker_refused_get(in->body, &m, err);
	struct broker_answer a = {.denial = m.denial, .text = m.text};

	if (r < 0)
		return r;
	if (m.denial == DENIAL_NONE)
		return err_set(err, -EPROTO, "a refusal without a reason");
	return broker_answered(peer->owner, in, &a, err);
}

static const struct ipc_row broker_rows[] = {
	IPC_ROW(BROKER_READY, IN(BROKER_NEW), on_broker_ready),
	IPC_ROW(APPROVERS_LOADED, IN(BROKER_LIVE), on_approvers_loaded),
	IPC_ROW(VERIFIED, IN(BROKER_LIVE), on_verified),
	IPC_ROW(READ_DONE, IN(BROKER_LIVE), on_read_done),
	IPC_ROW(DECISION_IS, IN(BROKER_LIVE), on_decision_is),
	IPC_ROW(EXECUTED, IN(BROKER_LIVE), on_executed),
	IPC_ROW(REVOKED, IN(BROKER_LIVE), on_revoked),
	IPC_ROW(EPOCH_IS, IN(BROKER_LIVE), on_epoch_is),
	IPC_ROW(CHECKPOINT_IS, IN(BROKER_LIVE), on_checkpoint_is),
	IPC_ROW(BROKER_DONE, IN(BROKER_LIVE), on_broker_done),
	IPC_ROW(BROKER_REFUSED, IN(BROKER_LIVE), on_broker_refused),
};

/* Not read before the supervisor has told what it holds: the restart comes first. */
int
serve_broker(struct engine *e, int fd, struct err *err)
{
	struct ipc_peer *peer = ipc_peer_new(e->loop, fd, EDGE_ENGINE_BROKER, ROOM_ENGINE,
		broker_rows, ARRAY_LEN(broker_rows), e, lost_broker, err);

	if (peer == NULL)
		return err->code;
	peer->state = BROKER_NEW;
	e->broker.peer = peer;
	if (!e->ready)
		ipc_peer_pause(peer, true);
	return 0;
}

int
serve_supervisor(struct engine *e, int fd, struct err *err)
{
	e->supervisor = ipc_peer_new(e->loop, fd, EDGE_ENGINE_SUPERVISOR, ROOM_ENGINE,
		supervisor_rows, ARRAY_LEN(supervisor_rows), e, lost_supervisor, err);
	if (e->supervisor == NULL)
		return err->code;
	e->supervisor->state = SUPERVISOR_NEW;
	return 0;
}

/*
 * Flow on API_ENGINE. One question may have an answer of LIMIT_PAGE_BYTES, and callers choose how many they
 * ask: so no question is read while more than LIMIT_API_QUEUE_BYTES wait for the api. What is queued is then at most that
 * mark, the one answer that passed it (a page), and the late answers to questions that were read before, one to each; all of
 * it is below the ceiling of the queue, at which the api would be lost.
 *
 * Both directions may be full at the same time. That never stops: the api reads answers always, whatever it has
 * to send (its reading waits for nothing: an answer goes into memory within a budget, or is refused there), so the
 * engine's queue drains, the engine reads again, and the api's queue drains. Only this end pauses.
 */
int
serve_api(struct engine *e, int fd, struct err *err)
{
	e->api = ipc_peer_new(e->loop, fd, EDGE_API_ENGINE, ROOM_ENGINE, api_rows,
		ARRAY_LEN(api_rows), e, lost_api, err);
	if (e->api == NULL)
		return err->code;
	e->api->state = API_LIVE;
	locals_forget(e);
	e->api->pause_at_bytes = LIMIT_API_QUEUE_BYTES;
	e->api->queue_max_bytes = LIMIT_API_QUEUE_MAX_BYTES;
	e->api_generation++;
	if (!e->ready)
		ipc_peer_pause(e->api, true);
	return 0;
}

int
serve_relay(struct sandbox *s, int fd, enum relay_state state, struct err *err)
{
	s->relay = ipc_peer_new(s->engine->loop, fd, EDGE_RELAY_ENGINE, ROOM_ENGINE, relay_rows,
		ARRAY_LEN(relay_rows), s, lost_relay, err);
	if (s->relay == NULL)
		return err->code;
	s->relay->state = state;
	return 0;
}

int
serve_gateway(struct gate *g, int fd, struct err *err)
{
	g->peer = ipc_peer_new(g->sandbox->engine->loop, fd, EDGE_GATEWAY_ENGINE, ROOM_ENGINE,
		gateway_rows, ARRAY_LEN(gateway_rows), g, lost_gateway, err);
	if (g->peer == NULL)
		return err->code;
	g->peer->state = GATE_STARTS;
	return 0;
}
