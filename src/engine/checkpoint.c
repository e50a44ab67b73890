/* SPDX-License-Identifier: Apache-2.0 */
/* See checkpoint.h. */
#include "engine/checkpoint.h"

#include "engine/audit.h"
#include "engine/limits.h"
#include "engine/proof.h"
#include "engine/tree.h"
#include "lib/base/log.h"

#include <errno.h>
#include <inttypes.h>

/* A head that the broker was asked to sign. */
struct head {
	struct broker_wait wait;
	struct engine *engine;
	uint64_t size;
	struct merkle_hash root;
};

/* A caller who asked for a head of all records. */
struct waiter {
	struct link link;
	struct reply to;
	uint64_t size;
};

/* ---- who waits ---- */

static void
answer(struct engine *e, struct reply to)
{
	const struct checkpoints *c = &e->checkpoints;

	REPLY(e, to, CHECKPOINT_ROW, checkpoint_row,
		{.size = c->signed_size,
			.note = view_str(c->note),
			.audit_key = view_str(e->broker.audit_key)});
}

static void
answer_waiters(struct engine *e, const struct err *why)
{
	list_each (w, &e->checkpoints.waiters, struct waiter, link) {
		if (why == NULL && w->size > e->checkpoints.signed_size)
			continue;
		if (why != NULL)
			answer_refused(e, w->to, why);
		else
			answer(e, w->to);
		list_remove(&w->link);
		free(w);
	}
}

/* ---- what came of it ---- */

static void
put_mirrors(struct canon_writer *w, const void *arg)
{
	const uint32_t *failed = arg;

	put_u64(w, "failed", *failed);
}

/* Told once, and once more when it is over. */
static void
record_mirrors(struct engine *e, uint32_t failed)
{
	const struct audit_event ev = {.event = "checkpoint.mirrors",
		.tenant = "",
		.who = &principal_engine,
		.data = put_mirrors,
		.arg = &failed};
	struct err err;
	auto_tx struct tx tx = {0};
	int r;

	if (failed == e->checkpoints.mirrors_failed)
		return;
	e->checkpoints.mirrors_failed = failed;
	r = tx_begin(&tx, e->store, &err);
	if (r == 0)
		r = audit_append(e, &ev, &err);
	if (r == 0)
		r = tx_commit(&tx, &err);
	if (r < 0)
		log_line("mirrors of checkpoints that failed are not recorded: %s", err.text);
}

/* A copy among the records: the truth about the newest one is the broker's. */
static int
keep(struct engine *e, struct err *err)
{
	auto_tx struct tx tx = {0};
	int r = tx_begin(&tx, e->store, err);

	if (r < 0)
		return r;
	{
		auto_query struct query q = query_of(e->store, Q_META_SET);

		arg_text(&q, "checkpoint");
		arg_blob(&q, view_str(e->checkpoints.note));
		r = query_run(&q, err);
	}
	return r == 0 ? tx_commit(&tx, err) : r;
}

/* Is it the head that was asked for? Whose signature it is the readers test. */
static int
take(struct engine *e, const struct head *h, const struct msg_checkpoint_is *m, struct err *err)
{
	struct checkpoints *c = &e->checkpoints;
	struct checkpoint is;
	struct note note;

	if (note_read(m->note, &note, err) < 0 || checkpoint_read(note.text, &is, err) < 0)
		return err->code;
	if (m->size != h->size || is.size != h->size || !merkle_eq(&is.root, &h->root))
		return err_set(err, -EPROTO, "it is of another head");
	c->signed_size = h->size;
	must(m->note.n < sizeof(c->note));
	memcpy(c->note, m->note.p, m->note.n);
	c->note[m->note.n] = '\0';
	return keep(e, err);
}

static void
arm(struct engine *e, uint64_t ms)
{
	struct checkpoints *c = &e->checkpoints;

	ev_timer_stop(e->loop, &c->timer);
	ev_now_update(e->loop);
	ev_timer_set(&c->timer, (double)ms / 1000, 0);
	ev_timer_start(e->loop, &c->timer);
}

static void
on_head(struct broker_wait *w, const struct broker_answer *a)
{
	struct head *h = container_of(w, struct head, wait);
	struct engine *e = h->engine;
	struct err err;
	int r = 0;

	if (a->denial != DENIAL_NONE)
		r = REFUSE(&err, UNAVAILABLE, "the broker does not sign the audit: %.*s",
			VIEW_ARGS(a->text));
	else
		r = take(e, h, &a->m.checkpoint_is, &err);
	free(h);
	if (r == 0) {
		answer_waiters(e, NULL);
		record_mirrors(e, a->m.checkpoint_is.mirrors_failed);
		return;
	}
	log_line("a checkpoint of the audit failed: %s", err.text);
	answer_waiters(e, &err);
	e->checkpoints.asked = e->checkpoints.signed_size;
	arm(e, LIMIT_CHECKPOINT_AGAIN_MS);
}

/* ---- asking ---- */

static int
ask(struct engine *e, struct err *err)
{
	const struct merkle_source nodes = tree_source(e);
	struct checkpoints *c = &e->checkpoints;
	uint64_t size = tree_size(e->tree);
	struct merkle_proof proof;
	struct head *h;
	int r;

	ev_timer_stop(e->loop, &c->timer);
	if (!broker_there(e) || c->asked >= size)
		return 0;
	r = merkle_consistency(&nodes, c->asked, size, &proof, err);
	if (r < 0)
		return r;
	h = calloc(1, sizeof(*h));
	if (h == NULL)
		return err_set(err, -ENOMEM, "no memory for a checkpoint");
	*h = (struct head){
		.engine = e, .size = size, .root = tree_root(e->tree), .wait = {.done = on_head}};
	struct msg_checkpoint_ask m = {.size = size, .proof = merkle_proof_view(&proof)};
	memcpy(m.root, h->root.b, SHA256_BYTES);
	r = BROKER_ASK(e, &h->wait, CHECKPOINT_ASK, checkpoint_ask, CHECKPOINT_IS, err, m);
	if (r < 0)
		free(h);
	else
		c->asked = size;
	return r;
}

static void
on_timer(struct ev_loop *loop, ev_timer *t, int events)
{
	struct engine *e = container_of(t, struct engine, checkpoints.timer);
	struct err err;

	(void)loop, (void)events;
	if (ask(e, &err) < 0) {
		log_line("a checkpoint of the audit failed: %s", err.text);
		arm(e, LIMIT_CHECKPOINT_AGAIN_MS);
	}
}

void
checkpoint_init(struct engine *e)
{
	ev_timer_init(&e->checkpoints.timer, on_timer, 0, 0);
	list_init(&e->checkpoints.waiters);
}

void
checkpoint_due(struct engine *e)
{
	struct checkpoints *c = &e->checkpoints;

	if (!ev_is_active(&c->timer))
		arm(e, LIMIT_CHECKPOINT_MS);
	else if (tree_size(e->tree) % LIMIT_CHECKPOINT_RECORDS == 0)
		arm(e, 0);
}

void
checkpoint_soon(struct engine *e)
{
	arm(e, 0);
}

void
checkpoint_before(struct engine *e)
{
	struct err err;

	if (e->checkpoints.turn == ev_iteration(e->loop))
		return;
	e->checkpoints.turn = ev_iteration(e->loop);
	if (ask(e, &err) < 0)
		log_line("a checkpoint of the audit failed: %s", err.text);
}

void
checkpoint_told(struct engine *e, const struct msg_broker_ready *m)
{
	struct checkpoints *c = &e->checkpoints;

	c->asked = c->signed_size = m->checkpoint_size;
	must(m->note.n < sizeof(c->note));
	if (m->note.n > 0)
		memcpy(c->note, m->note.p, m->note.n);
	c->note[m->note.n] = '\0';
	checkpoint_due(e);
}

void
checkpoint_line(struct engine *e)
{
	struct checkpoints *c = &e->checkpoints;

	c->asked = c->signed_size = 0;
	c->note[0] = '\0';
	checkpoint_due(e);
}

/* ---- the api ---- */

int
on_checkpoint_get(
	struct engine *e, struct reply to, const struct msg_checkpoint_get *m, struct err *err)
{
	struct principal p;
	struct waiter *w;
	int r = caller_find(e, &m->caller, &p, err);

	if (r < 0)
		return r;
	if (!m->fresh && e->checkpoints.note[0] == '\0')
		return REFUSE(err, NOT_FOUND, "there is no checkpoint yet; ask for a fresh one");
	if (!m->fresh || e->checkpoints.signed_size == tree_size(e->tree)) {
		answer(e, to);
		return 0;
	}
	if (!broker_there(e) || e->checkpoints.asked > tree_size(e->tree))
		return REFUSE(err, UNAVAILABLE,
			"the broker, which signs checkpoints, is not there at the moment");
	r = ask(e, err);
	if (r < 0)
		return r;
	w = calloc(1, sizeof(*w));
	if (w == NULL)
		return err_set(err, -ENOMEM, "no memory for somebody who waits");
	*w = (struct waiter){.to = to, .size = tree_size(e->tree)};
	list_append(&e->checkpoints.waiters, &w->link);
	return 0;
}
