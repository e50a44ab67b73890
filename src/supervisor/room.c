/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Engine and api; see room.h. The edge between them is made by whoever is started second: the end for the one that
 * runs is sent to it (API_EDGE, ENGINE_NEW), the end for one that does not run yet waits here.
 */
#include "supervisor/room.h"

#include "lib/base/log.h"
#include "supervisor/serve.h"

#include <errno.h>
#include <stdio.h>

static void
close_kept(int *fd)
{
	if (*fd >= 0)
		(void)close(take_fd(fd)); /* its other end sees it */
}

/* The api's new edge to the engine. An api that does not read is started anew. */
static void
api_tell(struct supervisor *sv, int edge)
{
	const struct msg_engine_new m = {0};
	auto_buf struct buf body, packed;
	struct err err = {0};

	buf_init(&body, IPC_MAX);
	buf_init(&packed, IPC_MAX);
	msg_engine_new_put(&body, &m);
	ipc_pack(&packed, MSG_ENGINE_NEW, 0, buf_view(&body));
	if (buf_check(&packed) == 0 &&
		ipc_write(sv->api_edge, buf_view(&packed), &edge, 1, &err) == 0)
		return;
	log_line("the api does not take its new edge: %s", err.text);
	child_kill(&sv->api);
}

/* ---- engine ---- */

static int
engine_start(struct child *c, struct err *err)
{
	struct supervisor *sv = c->owner;
	auto_fd int mine = -1, theirs = -1, api = take_fd(&sv->engine_api), other = -1;
	int pair[2];
	int r = ipc_pair(pair, err);

	if (r < 0)
		return r;
	mine = pair[0];
	theirs = pair[1];
	if (api < 0) {
		r = ipc_pair(pair, err);
		if (r < 0)
			return r;
		api = pair[0];
		other = pair[1];
	}
	const int fds[] = {[FD_ENGINE_SUPERVISOR - 3] = theirs,
		[FD_ENGINE_API - 3] = api,
		[FD_ENGINE_STATE - 3] = sv->state};
	const struct program_start start = {.path = sv->programs.path[PROGRAM_ENGINE],
		.uid = sv->settings.engine_uid,
		.fds = fds,
		.nfds = ARRAY_LEN(fds)};

	c->pid = program_start(&start, &c->pidfd, err);
	if (c->pid < 0)
		return (int)c->pid;
	r = serve_engine(sv, take_fd(&mine), err);
	if (r < 0) {
		program_end(&c->pidfd);
		return r;
	}
	if (other >= 0 && sv->api.pidfd >= 0)
		api_tell(sv, other);
	else if (other >= 0)
		sv->api_engine = take_fd(&other);
	return 0;
}

static void
engine_ended(struct child *c)
{
	struct supervisor *sv = c->owner;

	close_kept(&sv->api_engine);
	serve_engine_lost(sv);
}

/* ---- api ---- */

static int
api_start(struct child *c, struct err *err)
{
	struct supervisor *sv = c->owner;
	auto_fd int engine = take_fd(&sv->api_engine), other = -1, mine = -1, theirs = -1;
	char address[96] = "none";
	int pair[2];
	int r = ipc_pair(pair, err);

	if (r < 0)
		return r;
	mine = pair[0];
	theirs = pair[1];
	if (engine < 0) {
		r = ipc_pair(pair, err);
		if (r < 0)
			return r;
		engine = pair[0];
		other = pair[1];
	}
	if (sv->settings.tcp_address[0] != '\0')
		(void)snprintf(address, sizeof(address), "%s:%u", sv->settings.tcp_address,
			sv->settings.tcp_port);
	const int fds[] = {[FD_API_ENGINE - 3] = engine,
		[FD_API_LOCAL - 3] = sv->local,
		[FD_API_SUPERVISOR - 3] = theirs};
	const struct program_start start = {.path = sv->programs.path[PROGRAM_API],
		.argument = address,
		.uid = sv->settings.api_uid,
		.fds = fds,
		.nfds = ARRAY_LEN(fds)};

	c->pid = program_start(&start, &c->pidfd, err);
	if (c->pid < 0)
		return (int)c->pid;
	sv->api_edge = take_fd(&mine);
	if (other >= 0 && sv->engine_peer != NULL)
		IPC_SEND_FD(sv->engine_peer, 0, API_EDGE, api_edge, other, {0});
	else if (other >= 0)
		sv->engine_api = take_fd(&other);
	return 0;
}

static void
api_ended(struct child *c)
{
	struct supervisor *sv = c->owner;

	close_kept(&sv->engine_api);
	close_kept(&sv->api_edge);
}

void
rooms_init(struct supervisor *sv)
{
	sv->engine = (struct child){.noun = "engine",
		.loop = sv->loop,
		.start = engine_start,
		.ended = engine_ended,
		.owner = sv};
	sv->api = (struct child){.noun = "api",
		.loop = sv->loop,
		.start = api_start,
		.ended = api_ended,
		.owner = sv};
	child_init(&sv->engine);
	child_init(&sv->api);
}

void
rooms_end(struct supervisor *sv)
{
	child_stop(&sv->api);
	child_stop(&sv->engine);
	ipc_peer_close(sv->engine_peer);
	sv->engine_peer = NULL;
	close_kept(&sv->engine_api);
	close_kept(&sv->api_engine);
	close_kept(&sv->api_edge);
}
