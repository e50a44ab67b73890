/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The message tables of the api and nothing else: all answers of the engine go to the question that they
 * carry the tag of; the supervisor may say one thing. Output of jobs has its own table in job.c.
 */
#include "serve.h"

#include "ask.h"
#include "lib/base/log.h"

enum { ENGINE_UP };

static const struct ipc_row engine_rows[];

#define ANSWER(NAME, name)                                              \
	static int on_##name(struct ipc_peer *peer, struct ipc_msg *in, \
		const struct msg_##name *m, struct err *err)            \
	{                                                               \
		return ask_answered(peer->owner, in, m, err);           \
	}                                                               \
	IPC_HANDLER(name, on_##name)
#include "answer.def"
#undef ANSWER

static const struct ipc_row engine_rows[] = {
#define ANSWER(NAME, name) IPC_ROW(NAME, IN(ENGINE_UP), on_##name),
#include "answer.def"
#undef ANSWER
};

static void
on_engine_lost(struct ipc_peer *peer, const struct err *why)
{
	struct api *api = peer->owner;

	log_line("the engine is gone: %s", why->text);
	api->engine = NULL;
	ipc_peer_close(peer);
	ask_engine_lost(api);
}

static int
engine_connect(struct api *api, int fd, struct err *err)
{
	api->engine = ipc_peer_new(api->loop, fd, EDGE_API_ENGINE, ROOM_API, engine_rows,
		ARRAY_LEN(engine_rows), api, on_engine_lost, err);
	return api->engine == NULL ? err->code : 0;
}

static int
on_engine_new(
	struct ipc_peer *peer, struct ipc_msg *in, const struct msg_engine_new *m, struct err *err)
{
	struct api *api = peer->owner;

	(void)m;
	if (api->engine != NULL) {
		ipc_peer_close(api->engine);
		api->engine = NULL;
		ask_engine_lost(api);
	}
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
	ipc_peer_close(api->engine);
	ipc_peer_close(api->supervisor);
	api->engine = api->supervisor = NULL;
}
