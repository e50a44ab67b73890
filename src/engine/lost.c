/* SPDX-License-Identifier: Apache-2.0 */
/* Lost peers; see lost.h. */
#include "engine/lost.h"

#include "engine/gone.h"
#include "engine/input.h"
#include "engine/serve.h"
#include "lib/base/log.h"

#include <errno.h>

/* Without the supervisor there is nothing to do; it starts a new engine, and all is in the database. */
void
lost_supervisor(struct ipc_peer *peer, const struct err *why)
{
	struct engine *e = peer->owner;

	if (e->stopped && why->code == -EPIPE) {
		ev_break(e->loop, EVBREAK_ALL);
		return;
	}
	if (e->store != NULL)
		store_sync(e->store);
	log_exit(2, "the supervisor is lost: %s", why->text);
}

/*
 * It died, and the supervisor starts it again and brings its new edge; or it broke the protocol and sees now that its
 * edge is closed while no new one comes: then it ends itself, see src/api/serve.c.
 */
void
lost_api(struct ipc_peer *peer, const struct err *why)
{
	struct engine *e = peer->owner;

	if (!e->stopping)
		log_line("the api is lost: %s", why->text);
	uploads_drop(e);
	ipc_peer_close(take_ptr(e->api));
}

static enum sandbox_reason
reason_of(const struct err *why)
{
	return why->code == -EPIPE ? SANDBOX_REASON_RELAY_LOST : SANDBOX_REASON_PROTOCOL;
}

void
lost_relay(struct ipc_peer *peer, const struct err *why)
{
	struct sandbox *s = peer->owner;
	bool ending = s->state == SANDBOX_STATE_STOPPING;

	ipc_peer_close(take_ptr(s->relay));
	if (ending)
		return;
	/* One that is gone may be how any end looks from here: GONE tells, and is logged then. */
	if (why->code != -EPIPE)
		log_line("a relay is lost: %s", why->text);
	sandbox_kill(s, reason_of(why), &principal_engine, view_of(NULL, 0));
}

int
on_relay_lost(struct sandbox *s, const struct msg_relay_lost *m, struct err *err)
{
	(void)err;
	if (m->code != -EPIPE && m->code != -ECONNRESET && s->state != SANDBOX_STATE_STOPPING)
		log_line("an agent is lost: %s", m->text);
	s->relay->state = RELAY_DEAD;
	sandbox_kill(s, SANDBOX_REASON_AGENT_LOST, &principal_engine, view_of(NULL, 0));
	return 0;
}

int
on_api_edge(struct engine *e, struct ipc_msg *in, const struct msg_api_edge *m, struct err *err)
{
	(void)m;
	if (e->api != NULL) {
		uploads_drop(e);
		ipc_peer_close(take_ptr(e->api));
	}
	return serve_api(e, ipc_msg_take(in, 0), err);
}
