/* SPDX-License-Identifier: Apache-2.0 */
/* A store that is older than what was signed; see quarantine.h. */
#include "engine/quarantine.h"

#include "engine/contain.h"
#include "engine/execution.h"
#include "engine/outbox.h"
#include "engine/proposal.h"
#include "engine/reconcile.h"
#include "engine/result.h"
#include "engine/tree.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

#include <errno.h>
#include <inttypes.h>

/* ---- what the store remembers of the broker ---- */

/* The checkpoint that the last quarantine was about, and the epoch that it ended; all zero = there was none. */
struct memory {
	uint64_t epoch, entries; /* as the broker told last; 0 = never */
	uint64_t lost_ms;        /* when its ledger was found to be an older one */
	uint64_t ended, size;
	uint8_t root[32];
};

enum { MEMORY_BYTES = 5 * 8 + 32 };

static uint64_t
get_u64(const uint8_t *p)
{
	uint64_t v = 0;

	for (int i = 0; i < 8; i++)
		v = v << 8 | p[i];
	return v;
}

static void
put_number(uint8_t *p, uint64_t v)
{
	for (int i = 7; i >= 0; i--, v >>= 8)
		p[i] = (uint8_t)v;
}

static int
memory_read(struct engine *e, struct memory *ret, struct err *err)
{
	auto_query struct query q = query_of(e->store, Q_META_GET);
	struct view v;
	int r;

	*ret = (struct memory){0};
	arg_text(&q, "ledger");
	r = query_next(&q, err);
	if (r <= 0)
		return r;
	v = col_view(&q);
	if (v.n != MEMORY_BYTES)
		return err_set(err, -EUCLEAN, "the store's memory of the broker is damaged");
	ret->epoch = get_u64(v.p);
	ret->entries = get_u64(v.p + 8);
	ret->lost_ms = get_u64(v.p + 16);
	ret->ended = get_u64(v.p + 24);
	ret->size = get_u64(v.p + 32);
	memcpy(ret->root, v.p + 40, 32);
	return 0;
}

/* Inside the open transaction. */
static int
memory_write(struct engine *e, const struct memory *m, struct err *err)
{
	auto_query struct query q = query_of(e->store, Q_META_SET);
	uint8_t b[MEMORY_BYTES];

	put_number(b, m->epoch);
	put_number(b + 8, m->entries);
	put_number(b + 16, m->lost_ms);
	put_number(b + 24, m->ended);
	put_number(b + 32, m->size);
	memcpy(b + 40, m->root, 32);
	arg_text(&q, "ledger");
	arg_blob(&q, view_of(b, sizeof(b)));
	return query_run(&q, err);
}

/* Where the broker stands now. */
static int
remember(struct engine *e, struct err *err)
{
	struct memory m;
	auto_tx struct tx tx = {0};
	int r = tx_begin(&tx, e->store, err);

	if (r == 0)
		r = memory_read(e, &m, err);
	if (r < 0 || (m.epoch == e->broker.epoch && m.entries == e->broker.ledger_entries))
		return r;
	m.epoch = e->broker.epoch;
	m.entries = e->broker.ledger_entries;
	r = memory_write(e, &m, err);
	if (r == 0)
		r = tx_commit(&tx, err);
	if (r == 0)
		store_sync(e->store);
	return r;
}

static bool
older_ledger(const struct memory *m, const struct broker *b)
{
	return b->epoch < m->epoch || b->ledger_entries < m->entries;
}

/*
 * It began an epoch that nobody here asked for: this store is older than that, or the broker found its own state older than a checkpoint
 * (src/broker/checkpoint.c). Which of both is not known, so what its ledger does not have proves nothing.
 */
static bool
moved_on(const struct memory *m, const struct broker *b)
{
	return m->epoch != 0 && b->epoch > m->epoch && (m->ended == 0 || b->epoch != m->ended + 1);
}

bool
ledger_lost_since(struct engine *e, uint64_t ms)
{
	struct memory m;
	struct err err;

	return memory_read(e, &m, &err) < 0 || (m.lost_ms != 0 && ms <= m.lost_ms);
}

/* ---- what becomes of what was under way ---- */

static int
expire_one(struct engine *e, const struct id *id, struct err *err)
{
	auto_proposal struct proposal p;
	int r;

	proposal_init(&p, e);
	r = proposal_load(&p, id, err);
	if (r < 0)
		return r;
	proposal_deny(&p, DENIAL_RESTORED, view_str("the store was restored"));
	r = proposal_step(&p, PROPOSAL_EXPIRE, err);
	if (r == 0)
		r = outbox_revoke(e, id, err);
	return r == 0 ? proposal_audit(&p, "proposal.expired", &principal_engine, view_of(NULL, 0),
				NULL, NULL, err)
		      : r;
}

static int
expire_approved(struct engine *e, struct err *err)
{
	uint64_t after = 0;

	for (;;) {
		struct id id;
		int r;

		{
			auto_query struct query q = query_of(e->store, Q_PROPOSAL_APPROVED);

			arg_u64(&q, after);
			r = query_next(&q, err);
			if (r <= 0)
				return r;
			after = col_u64(&q);
			col_id(&q, &id);
		}
		r = expire_one(e, &id, err);
		if (r < 0)
			return r;
	}
}

static void
put_lost(struct canon_writer *w, const void *arg)
{
	const struct execution *x = arg;

	put_execution(w, x);
	put_str(w, "operation", x->operation);
	put_execution_proposal(w, x);
	put_str(w, "text", x->text);
}

static int
lose_one(struct engine *e, const struct id *id, struct err *err)
{
	auto_execution struct execution x;
	int r;

	execution_init(&x, e);
	r = execution_load(&x, id, err);
	if (r < 0)
		return r;
	(void)snprintf(x.text, sizeof(x.text), "the store was restored while it was dispatching");
	x.lookup_ms = lookup_next(0, clock_real_ms(), x.lookup_until_ms);
	r = execution_move(&x, EXECUTION_LOSE, err);
	return r == 0 ? execution_audit(&x, "execution.unknown", &principal_engine,
				view_of(NULL, 0), put_lost, &x, err)
		      : r;
}

static int
lose_dispatching(struct engine *e, struct err *err)
{
	for (;;) {
		struct id id;
		int r;

		{
			auto_query struct query q = query_of(e->store, Q_EXECUTION_DISPATCHING);

			arg_u64(&q, 0);
			r = query_next(&q, err);
			if (r <= 0)
				return r;
			(void)col_u64(&q);
			col_id(&q, &id);
		}
		r = lose_one(e, &id, err);
		if (r < 0)
			return r;
	}
}

static int
stop_all(struct engine *e, struct err *err)
{
	struct memory m;
	auto_tx struct tx tx = {0};
	int r = tx_begin(&tx, e->store, err);

	if (r == 0)
		r = memory_read(e, &m, err);
	if (r < 0)
		return r;
	if (older_ledger(&m, &e->broker) || moved_on(&m, &e->broker))
		m.lost_ms = clock_real_ms();
	m.ended = e->broker.epoch;
	m.size = e->broker.checkpoint_size;
	memcpy(m.root, e->broker.checkpoint_root, 32);
	r = memory_write(e, &m, err);
	if (r == 0)
		r = outbox_contain(e, "host", err); /* the first that the broker hears */
	if (r == 0)
		r = expire_approved(e, err);
	if (r == 0)
		r = lose_dispatching(e, err);
	return r == 0 ? tx_commit(&tx, err) : r;
}

/* ---- the next epoch ---- */

struct next_epoch {
	struct broker_wait wait;
	struct engine *engine;
};

static void
on_epoch(struct broker_wait *w, const struct broker_answer *a)
{
	struct next_epoch *n = container_of(w, struct next_epoch, wait);
	struct engine *e = n->engine;
	struct err err;

	free(n);
	if (a->denial != DENIAL_NONE) {
		/* The broker's epoch is what it was: the next BROKER_READY shows that, and it is asked again. */
		log_line("the broker does not begin another epoch: %.*s", VIEW_ARGS(a->text));
		return;
	}
	e->broker.epoch = a->m.epoch_is.epoch;
	if (remember(e, &err) < 0)
		log_line("the epoch is not recorded: %s", err.text);
}

static int
ask_epoch(struct engine *e, struct err *err)
{
	struct next_epoch *n = calloc(1, sizeof(*n));
	int r;

	if (n == NULL)
		return err_set(err, -ENOMEM, "no memory for a quarantine");
	*n = (struct next_epoch){.engine = e, .wait = {.done = on_epoch}};
	r = BROKER_ASK(e, &n->wait, EPOCH_NEXT, epoch_next, EPOCH_IS, err, {0});
	if (r < 0)
		free(n);
	else
		checkpoint_line(e); /* what is asked behind it belongs to the next epoch */
	return r;
}

/* Whoever waits for the end of one of them hears that nobody knows it. */
static void
answer_waiting(struct engine *e)
{
	list_each (c, &e->calls, struct call, link)
		if (c->kind == CALL_NONE) {
			call_answer(c);
			call_drop(c);
		}
}

int
quarantine_begin(struct engine *e, const char *reason, struct err *err)
{
	const struct scope host = {.text = "host"};
	struct containment c;
	int r;

	log_line("quarantine: %s", reason);
	r = stop_all(e, err);
	if (r < 0)
		return r;
	store_sync(e->store);
	answer_waiting(e);
	r = contain(e, &host, reason, &principal_engine, view_of(NULL, 0), true, &c, err);
	return r == 0 ? ask_epoch(e, err) : r;
}

/* ---- at BROKER_READY ---- */

/* Does the store have the records that this head was signed over? */
static int
same_root(struct engine *e, bool *ret, struct err *err)
{
	const struct merkle_source nodes = tree_source(e);
	struct merkle_hash root;
	int r = merkle_root_at(&nodes, e->broker.checkpoint_size, &root, err);

	if (r == 0)
		*ret = memcmp(root.b, e->broker.checkpoint_root, 32) == 0;
	return r;
}

/* The quarantine for this checkpoint was made, and the broker went on to another epoch, in which nothing is signed yet. */
static bool
done_before(const struct memory *m, const struct broker *b)
{
	return m->ended != 0 && b->epoch == m->ended + 1 &&
	       (b->checkpoint_size == 0 || (m->size == b->checkpoint_size &&
						   memcmp(m->root, b->checkpoint_root, 32) == 0));
}

int
quarantine_check(struct engine *e, struct err *err)
{
	const struct broker *b = &e->broker;
	char reason[200];
	struct memory m;
	uint64_t records = tree_size(e->tree);
	bool same = true;
	int r = memory_read(e, &m, err);

	if (r < 0)
		return r;
	if (done_before(&m, b)) {
		checkpoint_line(e);
		return remember(e, err);
	}
	if (b->checkpoint_size != 0 && b->checkpoint_size <= records)
		r = same_root(e, &same, err);
	if (r < 0)
		return r;
	if (b->checkpoint_size > records)
		(void)snprintf(reason, sizeof(reason),
			"the store has %" PRIu64 " audit records, a signed checkpoint has %" PRIu64
			": the store was restored",
			records, b->checkpoint_size);
	else if (older_ledger(&m, b))
		(void)snprintf(reason, sizeof(reason),
			"the broker's ledger has %" PRIu64 " entries in epoch %" PRIu64
			" and had %" PRIu64 " in epoch %" PRIu64 ": the ledger was restored",
			b->ledger_entries, b->epoch, m.entries, m.epoch);
	else if (!same)
		(void)snprintf(reason, sizeof(reason),
			"the store has other records than the signed checkpoint of %" PRIu64
			": it was changed, or restored and went on",
			b->checkpoint_size);
	else if (m.epoch != 0 && m.epoch != b->epoch)
		(void)snprintf(reason, sizeof(reason),
			"the broker is in epoch %" PRIu64 ", the store in %" PRIu64
			": the store was restored",
			b->epoch, m.epoch);
	else
		return remember(e, err);
	return quarantine_begin(e, reason, err);
}
