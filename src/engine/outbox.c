/* SPDX-License-Identifier: Apache-2.0 */
/* Words for the broker; see outbox.h. */
#include "engine/outbox.h"

#include "engine/limits.h"
#include "engine/proposal.h"
#include "lib/base/log.h"

#include <errno.h>

/* ---- rows ---- */

static int
put(struct engine *e, const char *kind, const struct id *proposal, const char *scope,
	struct err *err)
{
	auto_query struct query q = query_of(e->store, Q_OUTBOX_PUT);

	arg_text(&q, kind);
	arg_id(&q, proposal);
	arg_text(&q, scope);
	return query_run(&q, err);
}

int
outbox_revoke(struct engine *e, const struct id *proposal, struct err *err)
{
	return put(e, "revoke", proposal, "", err);
}

int
outbox_contain(struct engine *e, const char *scope, struct err *err)
{
	static const struct id none;

	return put(e, "contain", &none, scope, err);
}

/* ---- who waits ---- */

void
outbox_wait(struct outbox *o, struct outbox_waiter *w)
{
	list_append(&o->waiters, &w->link);
}

static void
answer(struct outbox *o, const struct id *proposal, const char *scope, enum told told)
{
	list_each (w, &o->waiters, struct outbox_waiter, link)
		if (id_eq(&w->proposal, proposal) && strcmp(w->scope, scope) == 0) {
			list_remove(&w->link);
			w->done(w, told);
		}
}

static void
answer_all(struct outbox *o)
{
	list_each (w, &o->waiters, struct outbox_waiter, link) {
		list_remove(&w->link);
		w->done(w, TOLD_AWAY);
	}
}

/* ---- the broker has it ---- */

static void
put_too_late(struct canon_writer *w, const void *arg)
{
	char text[ID_TEXT];

	id_text(arg, ID_PROPOSAL, text);
	put_str(w, "proposal", text);
}

/* F8: it cannot be recalled; no other attempt follows, and that it was revoked meanwhile is in the record. */
static int
record_too_late(struct engine *e, const struct id *id, struct err *err)
{
	auto_proposal struct proposal p;
	int r;

	proposal_init(&p, e);
	r = proposal_load(&p, id, err);
	return r < 0 ? r
		     : proposal_audit(&p, "proposal.revoked_after_dispatch", &principal_engine,
			       view_of(NULL, 0), put_too_late, id, err);
}

static int
remove_told(struct outbox *o, bool too_late, struct err *err)
{
	struct engine *e = o->engine;
	auto_tx struct tx tx = {0};
	int r = tx_begin(&tx, e->store, err);

	if (r < 0)
		return r;
	{
		auto_query struct query q = query_of(e->store, Q_OUTBOX_DONE);

		arg_u64(&q, o->seq);
		r = query_run(&q, err);
	}
	if (r == 0 && too_late)
		r = record_too_late(e, &o->proposal, err);
	return r == 0 ? tx_commit(&tx, err) : r;
}

static void
put_off(struct outbox *o, struct view why)
{
	log_line("a word to the broker waits: %.*s", VIEW_ARGS(why));
	ev_timer_set(&o->again, (double)LIMIT_OUTBOX_MS / 1000, 0);
	ev_timer_start(o->engine->loop, &o->again);
}

static void
on_told(struct broker_wait *w, const struct broker_answer *a)
{
	struct outbox *o = container_of(w, struct outbox, wait);
	bool too_late = o->is_revocation && a->denial == DENIAL_NONE && a->m.revoked.spent;
	struct err err;

	o->busy = false;
	if (a->lost) {
		answer_all(o); /* told again at BROKER_READY */
		return;
	}
	if (a->denial != DENIAL_NONE) {
		put_off(o, a->text);
		answer(o, &o->proposal, o->scope, TOLD_AWAY);
		outbox_tell(o->engine);
		return;
	}
	if (remove_told(o, too_late, &err) < 0)
		log_line("a word to the broker is told again later: %s", err.text);
	answer(o, &o->proposal, o->scope, too_late ? TOLD_TOO_LATE : TOLD_DONE);
	outbox_tell(o->engine);
}

/* ---- telling ---- */

/* 1 with the next row, 0 when there is none. */
static int
next(struct outbox *o, struct err *err)
{
	auto_query struct query q = query_of(o->engine->store, Q_OUTBOX_NEXT);
	int r;

	arg_u64(&q, o->seq);
	r = query_next(&q, err);
	if (r <= 0)
		return r;
	o->seq = col_u64(&q);
	o->is_revocation = view_is(col_view(&q), "revoke");
	col_id(&q, &o->proposal);
	col_text(&q, o->scope, sizeof(o->scope));
	return 1;
}

void
outbox_tell(struct engine *e)
{
	struct outbox *o = &e->outbox;
	struct err err;
	int r;

	if (o->busy)
		return;
	if (!broker_there(e)) {
		answer_all(o);
		return;
	}
	r = next(o, &err);
	if (r == 0)
		return;
	if (r > 0)
		r = o->is_revocation ? BROKER_ASK(e, &o->wait, REVOKE, revoke, REVOKED, &err,
					       {.proposal = o->proposal})
				     : BROKER_ASK(e, &o->wait, BROKER_CONTAIN, broker_contain,
					       BROKER_DONE, &err, {.scope = view_str(o->scope)});
	if (r < 0) {
		put_off(o, view_str(err.text));
		answer_all(o);
		return;
	}
	o->busy = true;
}

void
outbox_start(struct engine *e)
{
	ev_timer_stop(e->loop, &e->outbox.again);
	e->outbox.seq = 0;
	outbox_tell(e);
}

static void
on_again(struct ev_loop *loop, ev_timer *w, int events)
{
	struct outbox *o = container_of(w, struct outbox, again);

	(void)loop, (void)events;
	if (!o->busy)
		outbox_start(o->engine);
}

void
outbox_init(struct outbox *o, struct engine *e)
{
	*o = (struct outbox){.engine = e, .wait = {.done = on_told}};
	list_init(&o->waiters);
	ev_timer_init(&o->again, on_again, 0, 0);
}
