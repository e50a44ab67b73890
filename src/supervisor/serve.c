/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine's messages: the table, the handlers, the answers. Whatever breaks the table or contradicts itself
 * loses the engine, which is started anew; its sandboxes stay. What a caller may cause is answered.
 */
#include "supervisor/serve.h"

#include "lib/base/log.h"
#include "supervisor/edges.h"
#include "supervisor/usage.h"

#include <errno.h>

/* ---- telling ---- */

static void
tell_spawned(void *owner, struct sandbox *sb)
{
	struct supervisor *sv = owner;

	if (sv->engine_peer == NULL)
		return; /* sandboxes_engine_lost() takes care of it */
	IPC_SEND_FD(sv->engine_peer, sb->tag, SPAWNED, spawned, sb->relay.engine,
		{.sandbox = sb->id, .facts = sb->facts, .timings = sb->timings});
	if (sb->policy != NULL)
		IPC_SEND_FD(sv->engine_peer, 0, GATEWAY_EDGE, gateway_edge, sb->gateway.engine,
			{.sandbox = sb->id});
}

static void
tell_due(void *owner)
{
	edges_give(owner);
}

static void
tell_failed(void *owner, struct sandbox *sb)
{
	struct supervisor *sv = owner;
	struct msg_spawn_failed m = {.sandbox = sb->id, .code = sb->fault.code, .proof = sb->proof};

	log_line("sandbox %s was not built: %s", sb->name, sb->fault.text);
	(void)snprintf(m.text, sizeof(m.text), "%s", sb->fault.text);
	if (sv->engine_peer != NULL)
		IPC_SEND(sv->engine_peer, sb->tag, SPAWN_FAILED, spawn_failed, m);
	if (sv->stopping)
		stop_check(sv);
}

/* Kept for the next engine when there is none. */
static void
tell_gone(void *owner, struct sandbox *sb)
{
	struct supervisor *sv = owner;
	const struct msg_gone m = {
		.sandbox = sb->id, .reason = sb->reason, .proof = sb->proof, .usage = sb->usage};

	if (sv->engine_peer != NULL) {
		IPC_SEND(sv->engine_peer, sb->kill_tag, GONE, gone, m);
	} else if (!sv->stopping) {
		struct ended *e = calloc(1, sizeof(*e));

		if (e == NULL)
			return; /* the engine will not find it among HELD, and closes it */
		e->gone = m;
		list_append(&sv->ended, &e->link);
	}
	if (sv->stopping)
		stop_check(sv);
}

static void
tell_frozen(void *owner, struct sandbox *sb, uint64_t tag, bool frozen, const struct err *err)
{
	struct supervisor *sv = owner;
	struct msg_frozen m = {
		.sandbox = sb->id, .frozen = frozen, .code = err == NULL ? 0 : err->code};

	if (err != NULL)
		(void)snprintf(m.text, sizeof(m.text), "%s", err->text);
	if (sv->engine_peer != NULL)
		IPC_SEND(sv->engine_peer, tag, FROZEN, frozen, m);
}

const struct sandbox_tells serve_tells = {.spawned = tell_spawned,
	.due = tell_due,
	.failed = tell_failed,
	.gone = tell_gone,
	.frozen = tell_frozen};

static void
template_failed(struct supervisor *sv, const uint8_t *digest, uint64_t tag, const struct err *err)
{
	struct msg_template_failed m = {.code = err->code};

	memcpy(m.template, digest, SHA256_BYTES);
	(void)snprintf(m.text, sizeof(m.text), "%s", err->text);
	if (sv->engine_peer != NULL)
		IPC_SEND(sv->engine_peer, tag, TEMPLATE_FAILED, template_failed, m);
}

void
serve_template_done(void *owner, const struct template *t, uint64_t tag, const struct err *err)
{
	struct supervisor *sv = owner;
	struct msg_template_ready m = {.size_bytes = t->size_bytes};

	if (err != NULL) {
		log_line("a template cannot be used: %s", err->text);
		template_failed(sv, t->digest, tag, err);
		return;
	}
	memcpy(m.template, t->digest, SHA256_BYTES);
	if (sv->engine_peer != NULL)
		IPC_SEND(sv->engine_peer, tag, TEMPLATE_READY, template_ready, m);
}

/* ---- handlers ---- */

static int
on_template_prepare(struct ipc_peer *peer, struct ipc_msg *in, const struct msg_template_prepare *m,
	struct err *err)
{
	struct supervisor *sv = peer->owner;
	struct err why = {0};

	(void)err;
	if (template_prepare(&sv->templates, m->template, m->places, in->tag, &why) < 0) {
		log_line("a template cannot be used: %s", why.text);
		template_failed(sv, m->template, in->tag, &why);
	}
	return 0;
}

static int
on_spawn(struct ipc_peer *peer, struct ipc_msg *in, const struct msg_spawn *m, struct err *err)
{
	struct supervisor *sv = peer->owner;
	struct msg_spawn_failed refused = {.sandbox = m->sandbox};
	struct err why = {0};

	if (id_is_zero(&m->sandbox) || id_is_zero(&m->task))
		return err_set(err, -EPROTO, "SPAWN without an id");
	refused.code = sandbox_order(&sv->sandboxes, m, in->tag, &why);
	if (refused.code == -EEXIST)
		return err_set(err, -EPROTO, "SPAWN of a sandbox that exists");
	if (refused.code == 0)
		return 0;
	(void)snprintf(refused.text, sizeof(refused.text), "%s", why.text);
	IPC_SEND(peer, in->tag, SPAWN_FAILED, spawn_failed, refused);
	return 0;
}

static void
tell_gone_already(struct ipc_peer *peer, uint64_t tag, const struct id *id)
{
	IPC_SEND(peer, tag, GONE, gone, {.sandbox = *id, .reason = SANDBOX_REASON_NONE});
}

static int
on_kill(struct ipc_peer *peer, struct ipc_msg *in, const struct msg_kill *m, struct err *err)
{
	struct supervisor *sv = peer->owner;
	struct sandbox *sb = sandbox_find(&sv->sandboxes, &m->sandbox);

	(void)err;
	if (sb == NULL) {
		tell_gone_already(peer, in->tag, &m->sandbox);
		return 0;
	}
	sb->kill_tag = in->tag;
	sandbox_kill(sb, m->reason);
	return 0;
}

static int
on_ttl_set(struct ipc_peer *peer, struct ipc_msg *in, const struct msg_ttl_set *m, struct err *err)
{
	struct supervisor *sv = peer->owner;
	struct sandbox *sb = sandbox_find(&sv->sandboxes, &m->sandbox);

	(void)err;
	if (sb == NULL) {
		tell_gone_already(peer, in->tag, &m->sandbox);
		return 0;
	}
	IPC_SEND(peer, in->tag, TTL_IS, ttl_is,
		{.sandbox = m->sandbox, .ttl_ms = sandbox_ttl_set(sb, m->ttl_ms)});
	return 0;
}

static int
on_freeze(struct ipc_peer *peer, struct ipc_msg *in, const struct msg_freeze *m, struct err *err)
{
	struct supervisor *sv = peer->owner;
	struct sandbox *sb = sandbox_find(&sv->sandboxes, &m->sandbox);

	(void)err;
	if (sb == NULL)
		tell_gone_already(peer, in->tag, &m->sandbox);
	else
		sandbox_freeze(sb, m->frozen, in->tag);
	return 0;
}

static int
on_usage_ask(
	struct ipc_peer *peer, struct ipc_msg *in, const struct msg_usage_ask *m, struct err *err)
{
	struct supervisor *sv = peer->owner;
	struct sandbox *sb = sandbox_find(&sv->sandboxes, &m->sandbox);
	struct msg_usage answer = {.sandbox = m->sandbox};

	(void)err;
	if (sb == NULL || sb->phase >= PHASE_SWEEPING) {
		tell_gone_already(peer, in->tag, &m->sandbox);
		return 0;
	}
	usage_read(&sv->cgroups, sb->name, sb->volume, &answer.usage);
	IPC_SEND(peer, in->tag, USAGE, usage, answer);
	return 0;
}

static int
on_stopped(struct ipc_peer *peer, struct ipc_msg *in, const struct msg_stopped *m, struct err *err)
{
	struct supervisor *sv = peer->owner;

	(void)in, (void)m, (void)err;
	sv->engine_stopped = true;
	stop_check(sv);
	return 0;
}

IPC_HANDLER(template_prepare, on_template_prepare)
IPC_HANDLER(spawn, on_spawn)
IPC_HANDLER(kill, on_kill)
IPC_HANDLER(ttl_set, on_ttl_set)
IPC_HANDLER(freeze, on_freeze)
IPC_HANDLER(usage_ask, on_usage_ask)
IPC_HANDLER(stopped, on_stopped)

static const struct ipc_row rows[] = {
	IPC_ROW(TEMPLATE_PREPARE, IN_ANY, on_template_prepare),
	IPC_ROW(SPAWN, IN_ANY, on_spawn),
	IPC_ROW(KILL, IN_ANY, on_kill),
	IPC_ROW(TTL_SET, IN_ANY, on_ttl_set),
	IPC_ROW(FREEZE, IN_ANY, on_freeze),
	IPC_ROW(USAGE_ASK, IN_ANY, on_usage_ask),
	IPC_ROW(STOPPED, IN(ENGINE_STOPPING), on_stopped),
};

/* ---- an engine comes and goes ---- */

static void
on_lost(struct ipc_peer *peer, const struct err *why)
{
	struct supervisor *sv = peer->owner;

	log_line("the engine is lost: %s", why->text);
	child_kill(&sv->members[MEMBER_ENGINE]
			    .child); /* its end is noticed, and starts the next one */
	serve_engine_lost(sv);
}

void
serve_engine_lost(struct supervisor *sv)
{
	ipc_peer_close(sv->engine_peer);
	sv->engine_peer = NULL;
	sandboxes_engine_lost(&sv->sandboxes);
	if (sv->stopping)
		stop_check(sv);
}

/* New edges between the engine and its relay, and its gateway; one that does not take them is ended. */
static int
held_edges(struct sandbox *sb, int *ret_relay, int *ret_gateway)
{
	struct err err = {0};

	*ret_relay = relay_engine_edge(&sb->relay, &err);
	if (*ret_relay >= 0 && sb->policy != NULL)
		*ret_gateway = gateway_engine_edge(&sb->gateway, &err);
	if (err.code == 0)
		return 0;
	log_line("%s: %s", sb->name, err.text);
	sandbox_kill(sb, *ret_relay < 0 ? SANDBOX_REASON_RELAY_LOST : SANDBOX_REASON_GATEWAY_LOST);
	return err.code;
}

static void
tell_held(struct supervisor *sv)
{
	list_each (sb, &sv->sandboxes.list, struct sandbox, link) {
		auto_fd int relay = -1, gateway = -1;

		if (!sb->told || sb->phase >= PHASE_KILLING || held_edges(sb, &relay, &gateway) < 0)
			continue;
		IPC_SEND_FD(sv->engine_peer, 0, HELD, held, relay,
			{.sandbox = sb->id,
				.task = sb->task,
				.facts = sb->facts,
				.ttl_left_ms = sandbox_ttl_left_ms(sb)});
		if (gateway >= 0)
			IPC_SEND_FD(sv->engine_peer, 0, GATEWAY_EDGE, gateway_edge, gateway,
				{.sandbox = sb->id});
	}
}

int
serve_engine(struct supervisor *sv, int fd, struct err *err)
{
	struct msg_settings hello = {.settings = sv->settings};

	memcpy(hello.boot, sv->boot, sizeof(hello.boot));
	sv->engine_peer = ipc_peer_new(sv->loop, fd, EDGE_ENGINE_SUPERVISOR, ROOM_SUPERVISOR, rows,
		ARRAY_LEN(rows), sv, on_lost, err);
	if (sv->engine_peer == NULL)
		return err->code;
	sv->engine_peer->state = sv->stopping ? ENGINE_STOPPING : ENGINE_READY;
	IPC_SEND(sv->engine_peer, 0, SETTINGS, settings, hello);
	tell_held(sv);
	for (size_t i = 0; i < sv->nleftovers; i++)
		IPC_SEND(sv->engine_peer, 0, LEFTOVER, leftover,
			{.sandbox = sv->leftovers[i].sandbox,
				.task = sv->leftovers[i].task,
				.proof = sv->leftovers[i].proof});
	IPC_SEND(sv->engine_peer, 0, HELD_END, held_end, {0});
	list_each (e, &sv->ended, struct ended, link) {
		IPC_SEND(sv->engine_peer, 0, GONE, gone, e->gone);
		list_remove(&e->link);
		free(e);
	}
	return 0;
}

void
serve_stopping(struct supervisor *sv)
{
	if (sv->engine_peer == NULL)
		return;
	sv->engine_peer->state = ENGINE_STOPPING;
	IPC_SEND(sv->engine_peer, 0, STOPPING, stopping, {0});
}
