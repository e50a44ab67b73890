/* SPDX-License-Identifier: Apache-2.0 */
/* Gateways; see gate.h. */
#include "engine/gate.h"

#include "engine/contain.h"
#include "engine/create.h"
#include "engine/gone.h"
#include "engine/lease.h"
#include "engine/limits.h"
#include "engine/said.h"
#include "engine/serve.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/loop/loop.h"

#include <errno.h>

enum {
	TRUST_MAX = 24576 /* as GATEWAY_READY has it */,
	TURNS_MAX = 64 /* more than a socket holds */
};

int
gate_new(struct sandbox *s, const struct policy *p, struct err *err)
{
	struct gate *g = calloc(1, sizeof(*g));

	if (g == NULL)
		return err_set(err, -ENOMEM, "no memory for a gateway");
	g->sandbox = s;
	g->policy = p;
	buf_init(&g->certificate, TRUST_MAX);
	buf_init(&g->keystore, TRUST_MAX);
	list_init(&g->leases);
	s->gate = g;
	return 0;
}

void
gate_free(struct gate *g)
{
	if (g == NULL)
		return;
	said_forget(g);
	leases_forget(g);
	ipc_peer_close(g->peer);
	buf_done(&g->certificate);
	buf_done(&g->keystore);
	g->sandbox->gate = NULL;
	loop_free_later(g->sandbox->engine->loop, g);
}

bool
gate_ready(const struct gate *g)
{
	return g->peer != NULL && g->peer->state == GATE_LIVE;
}

void
gate_trust(struct gate *g)
{
	if (g->certificate.n != 0)
		IPC_SEND(g->sandbox->relay, 0, RELAY_TRUST, relay_trust,
			{.certificate = buf_view(&g->certificate),
				.keystore = buf_view(&g->keystore),
				.system_roots = g->system_roots});
	buf_done(&g->certificate);
	buf_done(&g->keystore);
}

bool
tokens_take(struct tokens *t, uint64_t burst, uint64_t per_s, uint64_t now_ms)
{
	uint64_t passed = t->at_ms == 0 ? burst * 1000 : now_ms - t->at_ms;

	t->at_ms = now_ms;
	t->milli = passed > burst * 1000 ? burst * 1000 : t->milli + passed * per_s;
	if (t->milli > burst * 1000)
		t->milli = burst * 1000;
	if (t->milli < 1000)
		return false;
	t->milli -= 1000;
	return true;
}

static int
task_may(struct gate *g, bool *ret, struct err *err)
{
	struct sandbox *s = g->sandbox;
	auto_query struct query q = query_of(s->engine->store, Q_EGRESS_MAY);
	struct view state;
	int r;

	arg_id(&q, &s->task);
	r = query_one(&q, err);
	if (r < 0)
		return r;
	state = col_view(&q);
	*ret = view_is(state, task_state_text(TASK_STATE_OPEN)) && col_u64(&q) == 0;
	return 0;
}

int
gate_may(struct gate *g, enum egress_reason *ret, struct err *err)
{
	struct sandbox *s = g->sandbox;
	char scope[SCOPE_TEXT];
	enum denial denial = DENIAL_NONE;
	bool open = false;
	int r;

	if (g->may_turn == s->engine->turn) {
		*ret = g->may;
		return 0;
	}
	r = task_may(g, &open, err);
	if (r == 0)
		r = contained(s->engine, s->tenant, &s->task, &denial, scope, err);
	if (r < 0)
		return r;
	g->may = open && denial == DENIAL_NONE && s->state != SANDBOX_STATE_STOPPING
			 ? EGRESS_REASON_NONE
			 : EGRESS_REASON_CONTAINED;
	g->may_turn = s->engine->turn;
	*ret = g->may;
	return 0;
}

int
gate_may_now(struct gate *g, enum egress_reason *ret, struct err *err)
{
	g->sandbox->engine->turn++; /* what was found before is old */
	return gate_may(g, ret, err);
}

/* ---- its life ---- */

int
on_gateway_edge(
	struct engine *e, struct ipc_msg *in, const struct msg_gateway_edge *m, struct err *err)
{
	struct sandbox *s = sandbox_live(e, &m->sandbox);

	if (s == NULL || s->state == SANDBOX_STATE_STOPPING)
		return 0; /* it was refused or is ending: nobody hears this gateway */
	if (s->gate == NULL || !s->spawned || s->gate->told)
		return err_set(err, -EPROTO, "GATEWAY_EDGE for a sandbox that waits for none");
	s->gate->told = true;
	return serve_gateway(s->gate, ipc_msg_take(in, 0), err);
}

static int
tell_if_over(struct gate *g, struct err *err)
{
	enum egress_reason may;
	int r = gate_may_now(g, &may, err);

	if (r == 0 && may != EGRESS_REASON_NONE)
		IPC_SEND(g->peer, 0, EGRESS_END, egress_end, {0});
	return r;
}

void
gates_end(struct engine *e, const struct id *task)
{
	list_each (s, &e->sandboxes, struct sandbox, link)
		if (s->gate != NULL && s->gate->peer != NULL && id_eq(&s->task, task))
			IPC_SEND(s->gate->peer, 0, EGRESS_END, egress_end, {0});
}

int
on_gateway_ready(struct gate *g, const struct msg_gateway_ready *m, struct err *err)
{
	struct sandbox *s = g->sandbox;

	if ((m->certificate.n == 0) != (m->keystore.n == 0))
		return err_set(err, -EPROTO, "half of what is to be trusted");
	g->peer->state = GATE_LIVE;
	/* One that runs already was told by the engine of its beginning, and maybe not of a revocation. */
	if (s->state != SANDBOX_STATE_CREATING)
		return tell_if_over(g, err);
	buf_add_view(&g->certificate, m->certificate);
	buf_add_view(&g->keystore, m->keystore);
	g->system_roots = m->system_roots;
	if (buf_check(&g->certificate) < 0 || buf_check(&g->keystore) < 0)
		return err_set(err, -ENOMEM, "no memory for what is to be trusted");
	create_gateway_ready(s);
	return 0;
}

static void
lose(struct gate *g, const char *why, bool shown)
{
	struct sandbox *s = g->sandbox;
	bool ending = s->state == SANDBOX_STATE_STOPPING || g->ending;

	ipc_peer_close(take_ptr(g->peer));
	if (ending)
		return;
	if (shown)
		log_line("a gateway is lost: %s", why);
	if (s->state == SANDBOX_STATE_CREATING)
		(void)snprintf(s->refusal, sizeof(s->refusal),
			"the gateway of the sandbox was lost before it was ready");
	sandbox_kill(s, SANDBOX_REASON_GATEWAY_LOST, &principal_engine, view_of(NULL, 0));
}

/* One that is gone may be how any end looks from here: GONE tells which it was. */
void
lost_gateway(struct ipc_peer *peer, const struct err *why)
{
	struct gate *g = peer->owner;
	bool gone = why->code == -EPIPE || why->code == -ECONNRESET;

	g->broke |= !gone;
	lose(g, why->text, !gone);
}

void
gate_break(struct gate *g, const char *why)
{
	if (g->peer == NULL)
		return;
	g->broke = true;
	lose(g, why, true);
}

void
gate_drain(struct gate *g)
{
	uint64_t before = UINT64_MAX;

	g->ending = true;
	g->unheard = g->full;
	for (int i = 0; i < TURNS_MAX && g->peer != NULL && g->heard != before; i++) {
		before = g->heard;
		ipc_peer_pause(g->peer, false);
		ev_invoke(g->peer->loop, &g->peer->readable, EV_READ);
	}
	said_flush(g->sandbox->engine);
}

void
gate_tick(struct gate *g, uint64_t now_ms)
{
	if (!g->full || g->peer == NULL)
		return;
	if (!tokens_take(&g->verdicts, LIMIT_VERDICT_BURST, LIMIT_VERDICT_PER_S, now_ms))
		return;
	g->verdicts.milli += 1000; /* it was only a look */
	g->full = false;
	ipc_peer_pause(g->peer, false);
}

void
gates_resume(struct engine *e)
{
	list_each (s, &e->sandboxes, struct sandbox, link)
		if (s->gate != NULL && s->held && !s->gate->told &&
			s->state != SANDBOX_STATE_STOPPING)
			sandbox_kill(s, SANDBOX_REASON_GATEWAY_LOST, &principal_engine,
				view_of(NULL, 0));
}
