/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may say what to the engine, in which state, and which function answers. Nothing else. A message
 * that is not here, or not now, ends its sender: the supervisor (and with it this process), the api (which
 * is then restarted) or one relay (and with it its sandbox).
 */
#include "engine/serve.h"

#include "engine/create.h"
#include "engine/gone.h"
#include "engine/health.h"
#include "engine/input.h"
#include "engine/job.h"
#include "engine/life.h"
#include "engine/lost.h"
#include "engine/restart.h"
#include "engine/stopping.h"
#include "engine/task.h"
#include "engine/token.h"

/* A request of the api: a refusal is an answer, never the fault of the peer. */
#define REQUEST(name)                                                                            \
	static int name##_untyped(struct ipc_peer *peer, struct ipc_msg *in, struct err *err)    \
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
	static int name##_untyped(struct ipc_peer *peer, struct ipc_msg *in, struct err *err)    \
	{                                                                                        \
		owner_type *owner = peer->owner;                                                 \
		struct msg_##name m;                                                             \
		int r = msg_##name##_get(in->body, &m, err);                                     \
                                                                                                 \
		return r < 0 ? r : on_##name(owner, &m, err);                                    \
	}

/* The same with a descriptor. */
#define TOLD_FD(name)                                                                            \
	static int name##_untyped(struct ipc_peer *peer, struct ipc_msg *in, struct err *err)    \
	{                                                                                        \
		struct msg_##name m;                                                             \
		int r = msg_##name##_get(in->body, &m, err);                                     \
                                                                                                 \
		return r < 0 ? r : on_##name(peer->owner, in, &m, err);                          \
	}

/* The same without fields. */
#define TOLD_PLAIN(name)                                                                         \
	static int name##_untyped(struct ipc_peer *peer, struct ipc_msg *in, struct err *err)    \
	{                                                                                        \
		struct msg_##name m;                                                             \
		int r = msg_##name##_get(in->body, &m, err);                                     \
                                                                                                 \
		return r < 0 ? r : on_##name(peer->owner, err);                                  \
	}

#define ROW(NAME, name, states) {MSG_##NAME, states, name##_untyped}

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
REQUEST(task_create)
REQUEST(task_list)
REQUEST(task_get)
REQUEST(task_close)
REQUEST(task_resume)
REQUEST(input_open)
REQUEST(input_close)
REQUEST(input_list)
REQUEST(template_list)
REQUEST(template_get)
REQUEST(audit_read)
REQUEST(health)

/* Not read before the supervisor has told what it holds. */
static const struct ipc_row api_rows[] = {
	ROW(WHOAMI,         whoami,         IN(API_LIVE)),
	ROW(TOKEN_CREATE,   token_create,   IN(API_LIVE)),
	ROW(TOKEN_LIST,     token_list,     IN(API_LIVE)),
	ROW(TOKEN_REVOKE,   token_revoke,   IN(API_LIVE)),
	ROW(SANDBOX_CREATE, sandbox_create, IN(API_LIVE)),
	ROW(SANDBOX_LIST,   sandbox_list,   IN(API_LIVE)),
	ROW(SANDBOX_GET,    sandbox_get,    IN(API_LIVE)),
	ROW(SANDBOX_KILL,   sandbox_kill,   IN(API_LIVE)),
	ROW(SANDBOX_FREEZE, sandbox_freeze, IN(API_LIVE)),
	ROW(SANDBOX_LIFE,   sandbox_life,   IN(API_LIVE)),
	ROW(SANDBOX_USAGE,  sandbox_usage,  IN(API_LIVE)),
	ROW(JOB_RUN,        job_run,        IN(API_LIVE)),
	ROW(JOB_ATTACH,     job_attach,     IN(API_LIVE)),
	ROW(JOB_GET,        job_get,        IN(API_LIVE)),
	ROW(JOB_LIST,       job_list,       IN(API_LIVE)),
	ROW(JOB_KILL,       job_kill,       IN(API_LIVE)),
	ROW(TASK_CREATE,    task_create,    IN(API_LIVE)),
	ROW(TASK_LIST,      task_list,      IN(API_LIVE)),
	ROW(TASK_GET,       task_get,       IN(API_LIVE)),
	ROW(TASK_CLOSE,     task_close,     IN(API_LIVE)),
	ROW(TASK_RESUME,    task_resume,    IN(API_LIVE)),
	ROW(INPUT_OPEN,     input_open,     IN(API_LIVE)),
	ROW(INPUT_CLOSE,    input_close,    IN(API_LIVE)),
	ROW(INPUT_LIST,     input_list,     IN(API_LIVE)),
	ROW(TEMPLATE_LIST,  template_list,  IN(API_LIVE)),
	ROW(TEMPLATE_GET,   template_get,   IN(API_LIVE)),
	ROW(AUDIT_READ,     audit_read,     IN(API_LIVE)),
	ROW(HEALTH,         health,         IN(API_LIVE)),
};

TOLD(settings, struct engine)
TOLD_FD(held)
TOLD(leftover, struct engine)
TOLD_PLAIN(held_end)
TOLD_FD(api_edge)
TOLD(template_ready, struct engine)
TOLD(template_failed, struct engine)
TOLD_FD(spawned)
TOLD(spawn_failed, struct engine)
TOLD(gone, struct engine)
TOLD(ttl_is, struct engine)
TOLD(frozen, struct engine)
TOLD(usage, struct engine)
TOLD_PLAIN(stopping)

enum { RUNS = IN(SUPERVISOR_HOLDS) | IN(SUPERVISOR_LIVE) };

static const struct ipc_row supervisor_rows[] = {
	ROW(SETTINGS,        settings,        IN(SUPERVISOR_NEW)),
	ROW(HELD,            held,            IN(SUPERVISOR_HOLDS)),
	ROW(LEFTOVER,        leftover,        IN(SUPERVISOR_HOLDS)),
	ROW(HELD_END,        held_end,        IN(SUPERVISOR_HOLDS)),
	ROW(API_EDGE,        api_edge,        RUNS),
	ROW(TEMPLATE_READY,  template_ready,  RUNS),
	ROW(TEMPLATE_FAILED, template_failed, RUNS),
	ROW(SPAWNED,         spawned,         IN(SUPERVISOR_LIVE)),
	ROW(SPAWN_FAILED,    spawn_failed,    IN(SUPERVISOR_LIVE)),
	ROW(GONE,            gone,            RUNS),
	ROW(TTL_IS,          ttl_is,          IN(SUPERVISOR_LIVE)),
	ROW(FROZEN,          frozen,          IN(SUPERVISOR_LIVE)),
	ROW(USAGE,           usage,           IN(SUPERVISOR_LIVE)),
	ROW(STOPPING,        stopping,        RUNS),
};

TOLD(relay_ready, struct sandbox)
TOLD(relay_job, struct sandbox)
TOLD_PLAIN(relay_jobs_end)
TOLD(job_ended, struct sandbox)
TOLD(relay_lost, struct sandbox)

static const struct ipc_row relay_rows[] = {
	ROW(RELAY_READY,    relay_ready,    IN(RELAY_STARTS)),
	ROW(RELAY_JOB,      relay_job,      IN(RELAY_RESYNCS)),
	ROW(RELAY_JOBS_END, relay_jobs_end, IN(RELAY_RESYNCS)),
	ROW(JOB_ENDED,      job_ended,      IN(RELAY_RESYNCS) | IN(RELAY_LIVE)),
	ROW(RELAY_LOST,     relay_lost,     IN_ANY),
};

int
serve_supervisor(struct engine *e, int fd, struct err *err)
{
	e->supervisor = ipc_peer_new(e->loop, fd, EDGE_ENGINE_SUPERVISOR, ROOM_ENGINE, supervisor_rows,
		ARRAY_LEN(supervisor_rows), e, lost_supervisor, err);
	if (e->supervisor == NULL)
		return err->code;
	e->supervisor->state = SUPERVISOR_NEW;
	return 0;
}

int
serve_api(struct engine *e, int fd, struct err *err)
{
	e->api = ipc_peer_new(e->loop, fd, EDGE_API_ENGINE, ROOM_ENGINE, api_rows, ARRAY_LEN(api_rows), e,
		lost_api, err);
	if (e->api == NULL)
		return err->code;
	e->api->state = API_LIVE;
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
