/* SPDX-License-Identifier: Apache-2.0 */
/* One transaction for a turn; see said.h. */
#include "engine/said.h"

#include "engine/lease.h"
#include "engine/limits.h"
#include "engine/loan.h"
#include "engine/verdict.h"
#include "engine/verdict_check.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

#include <errno.h>

static void
on_turn(struct ev_loop *loop, ev_prepare *w, int events)
{
	(void)loop, (void)events;
	said_flush(container_of(w, struct engine, flush));
}

void
said_init(struct engine *e)
{
	list_init(&e->said);
	ev_prepare_init(&e->flush, on_turn);
}

struct said *
said_new(struct gate *g, enum said_kind kind, uint64_t tag, size_t text_n, struct err *err)
{
	struct said *d = calloc(1, sizeof(*d) + text_n);

	if (d == NULL) {
		(void)err_set(err, -ENOMEM, "no memory for what a gateway says");
		return NULL;
	}
	d->gate = g;
	d->kind = kind;
	d->tag = tag;
	return d;
}

struct view
said_text(struct said *d, size_t *at, struct view v)
{
	uint8_t *to = d->text + *at;

	if (v.n == 0)
		return view_of(NULL, 0);
	memcpy(to, v.p, v.n);
	*at += v.n;
	return view_of(to, v.n);
}

static void
said_free(struct said *d)
{
	list_remove(&d->link);
	free(d);
}

void
said_add(struct said *d)
{
	struct engine *e = d->gate->sandbox->engine;

	list_append(&e->said, &d->link);
	e->said_n++;
	if (e->said_n >= LIMIT_SAID)
		said_flush(e);
	else
		ev_prepare_start(e->loop, &e->flush);
}

void
said_forget(struct gate *g)
{
	struct engine *e = g->sandbox->engine;

	list_each (d, &e->said, struct said, link)
		if (d->gate == g) {
			said_free(d);
			e->said_n--;
		}
}

/* ---- the transaction ---- */

static int
write_one(struct said *d, struct err *err)
{
	switch (d->kind) {
	case SAID_VERDICT:
		return verdict_write(d, err);
	case SAID_FLOW:
		return flow_write(d, err);
	case SAID_ASK:
		return loan_write(d, err);
	case SAID_LEASE:
		return lease_write(d, err);
	}
	must(false);
}

static int
write_all(struct engine *e, struct link *batch, bool *ret_leases, struct err *err)
{
	auto_tx struct tx tx = {0};
	int r = tx_begin(&tx, e->store, err);

	e->turn++;
	list_each (d, batch, struct said, link) {
		if (r == 0)
			r = write_one(d, err);
		*ret_leases |= d->kind == SAID_LEASE && d->result == EGRESS_REASON_NONE;
	}
	return r == 0 ? tx_commit(&tx, err) : r;
}

/* Nothing of it is written. */
static void
undo(struct said *d)
{
	d->result = EGRESS_REASON_AUDIT;
	d->lied = false;
	d->total = d->gate->lent;
	d->over = false;
}

static void
answer(struct said *d)
{
	struct gate *g = d->gate;

	if (d->lied)
		gate_break(g, "it told that it used what it did not have, or less than before");
	if (g->peer == NULL)
		return;
	switch (d->kind) {
	case SAID_VERDICT:
		IPC_SEND(g->peer, d->tag, VERDICT_KEPT, verdict_kept,
			{.kept = d->result == EGRESS_REASON_NONE, .reason = d->result});
		break;
	case SAID_FLOW:
		break;
	case SAID_ASK:
		g->lent = d->total;
		IPC_SEND(g->peer, d->tag, ALLOTMENT, allotment,
			{.total = d->total, .over = d->over});
		break;
	case SAID_LEASE:
		lease_answer(d);
		break;
	}
}

/* Flows are kept for the next time; all others are answered. */
static void
give_up(struct engine *e, struct link *batch)
{
	list_each (d, batch, struct said, link) {
		if (d->kind == SAID_FLOW) {
			flow_undone(d);
			list_remove(&d->link);
			list_append(&e->said, &d->link);
			e->said_n++;
			continue;
		}
		undo(d);
		answer(d);
		said_free(d);
	}
}

void
said_flush(struct engine *e)
{
	struct link batch;
	struct err err;
	bool leases = false;

	ev_prepare_stop(e->loop, &e->flush);
	if (list_empty(&e->said))
		return;
	list_init(&batch);
	while (!list_empty(&e->said)) {
		struct link *first = e->said.next;

		list_remove(first);
		list_append(&batch, first);
	}
	e->said_n = 0;
	if (write_all(e, &batch, &leases, &err) < 0) {
		log_line("what gateways say is not recorded: %s", err.text);
		give_up(e, &batch);
		return;
	}
	if (leases)
		store_sync(e->store);
	list_each (d, &batch, struct said, link) {
		if (d->kind == SAID_VERDICT)
			verdict_written(d);
		else if (d->kind == SAID_FLOW)
			flow_written(d);
		answer(d);
		said_free(d);
	}
}

/* ---- the messages ---- */

int
on_verdict(struct gate *g, struct ipc_msg *in, const struct msg_verdict *m, struct err *err)
{
	uint64_t now = clock_mono_ms();
	struct said *d;
	size_t at = 0;

	g->heard++;
	if (verdict_check(g->policy, m, err) < 0)
		return err->code;
	d = said_new(g, SAID_VERDICT, in->tag,
		m->name.n + m->address.n + m->method.n + m->path.n + m->query.n, err);
	if (d == NULL)
		return err->code;
	d->verdict = m->verdict;
	d->reason = m->reason;
	d->scheme = m->scheme;
	d->rule = m->rule;
	d->port = m->port;
	d->name = said_text(d, &at, m->name);
	d->address = said_text(d, &at, m->address);
	d->method = said_text(d, &at, m->method);
	d->path = said_text(d, &at, m->path);
	d->query = said_text(d, &at, m->query);
	memcpy(d->digest, m->digest, 32);
	d->count = 1;
	/* It is not read from until one more may be recorded: programs wait, nothing is left out. */
	(void)tokens_take(&g->verdicts, LIMIT_VERDICT_BURST, LIMIT_VERDICT_PER_S, now);
	if (g->verdicts.milli < 1000 && !g->ending) {
		g->full = true;
		ipc_peer_pause(g->peer, true);
	}
	said_add(d);
	return 0;
}

static int
other(struct gate *g, struct err *err)
{
	g->heard++;
	if (!tokens_take(&g->others, LIMIT_GATE_BURST, LIMIT_GATE_PER_S, clock_mono_ms()))
		return err_set(err, -EPROTO, "more at once than a gateway has to say");
	if (g->sandbox->engine->said_n >= LIMIT_SAID_KEPT)
		return err_set(err, -ENOSPC, "nothing of what it says can be recorded");
	return 0;
}

int
on_flow(struct gate *g, struct ipc_msg *in, const struct msg_flow *m, struct err *err)
{
	struct said *d;
	size_t at = 0;

	if (flow_check(g->policy, m, err) < 0 || other(g, err) < 0)
		return err->code;
	d = said_new(g, SAID_FLOW, in->tag, m->name.n, err);
	if (d == NULL)
		return err->code;
	d->verdict = m->verdict;
	d->reason = m->reason;
	d->scheme = m->scheme;
	d->rule = m->rule;
	d->port = m->port;
	d->name = said_text(d, &at, m->name);
	d->count = m->count;
	d->bytes_out = m->bytes_out;
	d->bytes_in = m->bytes_in;
	said_add(d);
	return 0;
}

int
on_allotment_ask(
	struct gate *g, struct ipc_msg *in, const struct msg_allotment_ask *m, struct err *err)
{
	struct said *d;

	if (other(g, err) < 0)
		return err->code;
	d = said_new(g, SAID_ASK, in->tag, 0, err);
	if (d == NULL)
		return err->code;
	d->used = m->used;
	said_add(d);
	return 0;
}

int
on_lease_ask(struct gate *g, struct ipc_msg *in, const struct msg_lease_ask *m, struct err *err)
{
	struct said *d;

	if (lease_check(g->policy, m, err) < 0 || other(g, err) < 0)
		return err->code;
	d = said_new(g, SAID_LEASE, in->tag, 0, err);
	if (d == NULL)
		return err->code;
	d->rule = m->rule;
	memcpy(d->digest, m->digest, 32);
	said_add(d);
	return 0;
}
