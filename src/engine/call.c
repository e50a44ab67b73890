/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about executions and who waits for them; see call.h. */
#include "engine/call.h"

#include "engine/limits.h"
#include "engine/proposal.h"
#include "lib/base/log.h"

#include <errno.h>

struct call_waiter {
	struct link link;
	struct call *call; /* borrowed */
	struct reply to;
	enum waits_for what;
	ev_timer patience;
};

struct call *
call_find(struct engine *e, const struct id *execution)
{
	list_each (c, &e->calls, struct call, link)
		if (id_eq(&c->execution, execution))
			return c;
	return NULL;
}

unsigned
call_count(struct engine *e, enum call_kind kind, const char *tenant)
{
	unsigned n = 0;

	list_each (c, &e->calls, struct call, link)
		n += c->kind == kind && (tenant == NULL || strcmp(c->tenant, tenant) == 0);
	return n;
}

int
call_of(struct engine *e, const struct id *execution, const struct id *proposal, struct call **ret,
	struct err *err)
{
	struct call *c = call_find(e, execution);

	if (c == NULL) {
		c = calloc(1, sizeof(*c));
		if (c == NULL)
			return err_set(err, -ENOMEM, "no memory for an execution");
		c->engine = e;
		c->execution = *execution;
		c->proposal = *proposal;
		c->who = principal_engine;
		list_init(&c->waiters);
		buf_init(&c->settlement, 4096);
		buf_init(&c->signature, 4096);
		list_append(&e->calls, &c->link);
	}
	*ret = c;
	return 0;
}

void
call_drop(struct call *c)
{
	if (c->kind != CALL_NONE || !list_empty(&c->waiters))
		return;
	list_remove(&c->link);
	buf_done(&c->settlement);
	buf_done(&c->signature);
	free(c);
}

/* ---- who waits ---- */

void
call_show(struct engine *e, const struct id *proposal, struct reply to)
{
	auto_proposal struct proposal p;
	struct err err;
	int r;

	proposal_init(&p, e);
	r = proposal_load(&p, proposal, &err);
	if (r == 0)
		r = proposal_answer(&p, to, false, &err);
	if (r < 0)
		answer_refused(e, to, &err);
}

static void
answer_execution(struct engine *e, const struct id *id, struct reply to)
{
	auto_execution struct execution x;
	struct err err;

	execution_init(&x, e);
	if (execution_load(&x, id, &err) < 0)
		answer_refused(e, to, &err);
	else
		execution_answer(&x, to);
}

static void
answer(struct call_waiter *w)
{
	struct call *c = w->call;

	switch (w->what) {
	case WAITS_PROPOSAL:
		call_show(c->engine, &c->proposal, w->to);
		break;
	case WAITS_EXECUTION:
		answer_execution(c->engine, &c->execution, w->to);
		break;
	}
}

static void
waiter_free(struct call_waiter *w)
{
	ev_timer_stop(w->call->engine->loop, &w->patience);
	list_remove(&w->link);
	free(w);
}

/* It takes longer: what is known now is the answer, the rest is there for whoever asks again. */
static void
on_patience(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct call_waiter *w = container_of(timer, struct call_waiter, patience);
	struct call *c = w->call;

	(void)loop, (void)events;
	answer(w);
	waiter_free(w);
	call_drop(c);
}

int
call_wait(struct call *c, struct reply to, enum waits_for what, struct err *err)
{
	struct call_waiter *w;

	if (to.generation == 0)
		return 0;
	w = calloc(1, sizeof(*w));
	if (w == NULL)
		return err_set(err, -ENOMEM, "no memory for somebody who waits");
	*w = (struct call_waiter){.call = c, .to = to, .what = what};
	list_append(&c->waiters, &w->link);
	ev_now_update(c->engine->loop);
	ev_timer_init(&w->patience, on_patience, (double)LIMIT_EXECUTION_WAIT_MS / 1000, 0);
	ev_timer_start(c->engine->loop, &w->patience);
	return 0;
}

void
call_answer(struct call *c)
{
	list_each (w, &c->waiters, struct call_waiter, link) {
		answer(w);
		waiter_free(w);
	}
}

void
call_refuse(struct call *c, const struct err *why)
{
	list_each (w, &c->waiters, struct call_waiter, link) {
		answer_refused(c->engine, w->to, why);
		waiter_free(w);
	}
}
