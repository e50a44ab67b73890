/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The message tables of the api and nothing else: all answers of the engine go to the question that they
 * carry the tag of; the supervisor may say one thing. Output of jobs has its own table in job.c.
 */
#include "serve.h"

#include "ask.h"
#include "conn.h"
#include "lib/base/log.h"
#include "local.h"

#include <errno.h>

enum { ENGINE_UP };
enum { EXIT_EDGE = 4 };

/* A handler that finds the question that was asked. */
#define ANSWER(name)                                                    \
	static int on_##name(struct ipc_peer *peer, struct ipc_msg *in, \
		const struct msg_##name *m, struct err *err)            \
	{                                                               \
		return ask_answered(peer->owner, in, m, err);           \
	}                                                               \
	IPC_HANDLER(name, on_##name)
ANSWER(refused)
ANSWER(done)
ANSWER(end)
ANSWER(principal)
ANSWER(token_row)
ANSWER(sandbox_row)
ANSWER(usage_row)
ANSWER(job_opened)
ANSWER(job_row)
ANSWER(task_row)
ANSWER(input_file)
ANSWER(input_row)
ANSWER(template_row)
ANSWER(audit_row)
ANSWER(health_row)
ANSWER(operation_row)
ANSWER(grant_row)
ANSWER(proposal_row)
ANSWER(execution_row)
ANSWER(containment_row)
ANSWER(budget_row)
ANSWER(checkpoint_row)
ANSWER(proof_row)
ANSWER(policy_row)
ANSWER(net_row)
ANSWER(net_budget)
ANSWER(egress_row)

static const struct ipc_row engine_rows[] = {
	IPC_ROW(REFUSED, IN(ENGINE_UP), on_refused),
	IPC_ROW(DONE, IN(ENGINE_UP), on_done),
	IPC_ROW(END, IN(ENGINE_UP), on_end),
	IPC_ROW(PRINCIPAL, IN(ENGINE_UP), on_principal),
	IPC_ROW(TOKEN_ROW, IN(ENGINE_UP), on_token_row),
	IPC_ROW(SANDBOX_ROW, IN(ENGINE_UP), on_sandbox_row),
	IPC_ROW(USAGE_ROW, IN(ENGINE_UP), on_usage_row),
	IPC_ROW(JOB_OPENED, IN(ENGINE_UP), on_job_opened),
	IPC_ROW(JOB_ROW, IN(ENGINE_UP), on_job_row),
	IPC_ROW(TASK_ROW, IN(ENGINE_UP), on_task_row),
	IPC_ROW(INPUT_FILE, IN(ENGINE_UP), on_input_file),
	IPC_ROW(INPUT_ROW, IN(ENGINE_UP), on_input_row),
	IPC_ROW(TEMPLATE_ROW, IN(ENGINE_UP), on_template_row),
	IPC_ROW(AUDIT_ROW, IN(ENGINE_UP), on_audit_row),
	IPC_ROW(HEALTH_ROW, IN(ENGINE_UP), on_health_row),
	IPC_ROW(OPERATION_ROW, IN(ENGINE_UP), on_operation_row),
	IPC_ROW(GRANT_ROW, IN(ENGINE_UP), on_grant_row),
	IPC_ROW(PROPOSAL_ROW, IN(ENGINE_UP), on_proposal_row),
	IPC_ROW(EXECUTION_ROW, IN(ENGINE_UP), on_execution_row),
	IPC_ROW(CONTAINMENT_ROW, IN(ENGINE_UP), on_containment_row),
	IPC_ROW(BUDGET_ROW, IN(ENGINE_UP), on_budget_row),
	IPC_ROW(CHECKPOINT_ROW, IN(ENGINE_UP), on_checkpoint_row),
	IPC_ROW(PROOF_ROW, IN(ENGINE_UP), on_proof_row),
	IPC_ROW(POLICY_ROW, IN(ENGINE_UP), on_policy_row),
	IPC_ROW(NET_ROW, IN(ENGINE_UP), on_net_row),
	IPC_ROW(NET_BUDGET, IN(ENGINE_UP), on_net_budget),
	IPC_ROW(EGRESS_ROW, IN(ENGINE_UP), on_egress_row),
};

/* Ends the process; the supervisor starts it again, with an edge. */
static void
end_without_edge(struct api *api)
{
	api->status = EXIT_EDGE;
	ev_break(api->loop, EVBREAK_ALL);
}

static void
on_no_edge(struct ev_loop *loop, ev_timer *w, int events)
{
	(void)loop, (void)events;
	log_line("no new edge to the engine came: it lives and gave up on this process");
	end_without_edge(container_of(w, struct api, edge));
}

static void
engine_forget(struct api *api)
{
	ipc_peer_close(take_ptr(api->engine));
	ask_engine_lost(api);
	conn_resume_held(api); /* to be refused */
}

/*
 * The supervisor makes an edge when it starts one of its two ends. So a lost edge comes back by itself only when the
 * engine died. If it lives, it either broke the protocol, which is seen here, or found that this process did, which
 * looks like its death, only that no new edge follows: in both cases this process ends, so that one is made.
 */
static void
on_engine_lost(struct ipc_peer *peer, const struct err *why)
{
	struct api *api = peer->owner;

	log_line("the engine is gone: %s", why->text);
	engine_forget(api);
	if (why->code != -EPIPE && why->code != -ECONNRESET)
		end_without_edge(api);
	else
		ev_timer_start(api->loop, &api->edge);
}

static void
on_engine_drained(struct ipc_peer *peer)
{
	conn_resume_held(peer->owner);
}

static int
engine_connect(struct api *api, int fd, struct err *err)
{
	api->engine = ipc_peer_new(api->loop, fd, EDGE_API_ENGINE, ROOM_API, engine_rows,
		ARRAY_LEN(engine_rows), api, on_engine_lost, err);
	if (api->engine == NULL)
		return err->code;
	api->engine->on_drained = on_engine_drained;
	local_tell_all(api);
	ev_timer_stop(api->loop, &api->edge);
	ev_timer_set(&api->edge, LIMIT_EDGE_MS / 1e3, 0);
	return 0;
}

static int
on_engine_new(
	struct ipc_peer *peer, struct ipc_msg *in, const struct msg_engine_new *m, struct err *err)
{
	struct api *api = peer->owner;

	(void)m;
	if (api->engine != NULL)
		engine_forget(api);
	log_line("a new engine");
	return engine_connect(api, ipc_msg_take(in, 0), err);
}
IPC_HANDLER(engine_new, on_engine_new)

static const struct ipc_row supervisor_rows[] = {
	IPC_ROW(ENGINE_NEW, IN_ANY, on_engine_new),
};

/* Nothing survives the supervisor. */
static void
on_supervisor_lost(struct ipc_peer *peer, const struct err *why)
{
	struct api *api = peer->owner;

	log_line("the supervisor is gone: %s", why->text);
	ev_break(api->loop, EVBREAK_ALL);
}

int
serve_start(struct api *api, int engine_fd, int supervisor_fd, struct err *err)
{
	auto_fd int supervisor = supervisor_fd;

	ev_timer_init(&api->edge, on_no_edge, LIMIT_EDGE_MS / 1e3, 0);
	if (engine_connect(api, engine_fd, err) < 0)
		return err->code;
	api->supervisor = ipc_peer_new(api->loop, take_fd(&supervisor), EDGE_SUPERVISOR_API,
		ROOM_API, supervisor_rows, ARRAY_LEN(supervisor_rows), api, on_supervisor_lost,
		err);
	return api->supervisor == NULL ? err->code : 0;
}

void
serve_stop(struct api *api)
{
	ev_timer_stop(api->loop, &api->edge);
	ipc_peer_close(api->engine);
	ipc_peer_close(api->supervisor);
	api->engine = api->supervisor = NULL;
}
