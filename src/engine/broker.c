/* SPDX-License-Identifier: Apache-2.0 */
/* The edge to the broker; see broker.h. */
#include "engine/broker.h"

#include "engine/audit.h"
#include "engine/limits.h"
#include "engine/result.h"
#include "engine/serve.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

#include <errno.h>

/* ---- asking ---- */

bool
broker_there(const struct engine *e)
{
	return e->broker.peer != NULL && e->broker.peer->state == BROKER_LIVE;
}

int
broker_ask(struct engine *e, struct broker_wait *w, enum msg_type type, struct view body,
	enum msg_type expected, struct err *err)
{
	struct broker *b = &e->broker;

	if (!broker_there(e))
		return err_set(err, -ENOTCONN,
			"the broker, which checks and carries out actions, is not there at the "
			"moment; nothing was done");
	w->engine = e;
	w->tag = ++b->tag;
	w->expected = expected;
	w->deadline_ms = clock_mono_ms() + LIMIT_BROKER_MS;
	list_append(&b->waits, &w->link);
	ipc_peer_send(b->peer, type, w->tag, body, NULL, 0);
	if (!ev_is_active(&e->actions))
		ev_timer_again(e->loop, &e->actions);
	return 0;
}

static struct broker_wait *
take(struct broker *b, uint64_t tag)
{
	list_each (w, &b->waits, struct broker_wait, link)
		if (w->tag == tag) {
			list_remove(&w->link);
			return w;
		}
	return NULL;
}

int
broker_answered(
	struct engine *e, const struct ipc_msg *in, const struct broker_answer *a, struct err *err)
{
	struct broker_wait *w = take(&e->broker, in->tag);

	if (w == NULL)
		return err_set(err, -EPROTO, "an answer to nothing that was asked");
	if (in->type != w->expected && in->type != MSG_BROKER_REFUSED) {
		list_append(&e->broker.waits, &w->link); /* told when the edge is given up */
		return err_set(
			err, -EPROTO, "%s is no answer to this question", msg_info[in->type].name);
	}
	w->done(w, a);
	return 0;
}

/* Nobody is asked again: the edge is gone while they are told. */
static void
drop(struct engine *e)
{
	const struct broker_answer a = {.lost = true,
		.denial = DENIAL_BROKER_UNAVAILABLE,
		.text = view_str(
			"the broker, which checks and carries out actions, was lost before "
			"it answered")};
	struct broker *b = &e->broker;

	if (b->peer != NULL)
		ipc_peer_close(take_ptr(b->peer));
	b->told = false;
	while (!list_empty(&b->waits)) {
		struct broker_wait *w = container_of(b->waits.next, struct broker_wait, link);

		list_remove(&w->link);
		w->done(w, &a);
	}
}

void
broker_tick(struct engine *e, uint64_t now_ms)
{
	struct broker *b = &e->broker;

	if (list_empty(&b->waits) ||
		now_ms < container_of(b->waits.next, struct broker_wait, link)->deadline_ms)
		return;
	log_line("the broker does not answer: its edge is given up");
	drop(e);
}

/* ---- its life ---- */

static void
record(struct engine *e, const char *event, void (*data)(struct canon_writer *, const void *),
	const void *arg)
{
	const struct audit_event ev = {
		.event = event, .tenant = "", .who = &principal_engine, .data = data, .arg = arg};
	struct err err;
	auto_tx struct tx tx = {0};
	int r = tx_begin(&tx, e->store, &err);

	if (r == 0)
		r = audit_append(e, &ev, &err);
	if (r == 0)
		r = tx_commit(&tx, &err);
	if (r < 0)
		log_line("%s is not recorded: %s", event, err.text);
}

static void
keep(char *ret, size_t size, struct view v)
{
	size_t n = v.n < size - 1 ? v.n : size - 1;

	if (n > 0)
		memcpy(ret, v.p, n);
	ret[n] = '\0';
}

static void
put_ready(struct canon_writer *w, const void *arg)
{
	const struct msg_broker_ready *m = arg;

	put_view(w, "audit_key", m->audit_key);
	put_digest(w, "catalogue", m->catalogue);
	put_u64(w, "checkpoint_size", m->checkpoint_size);
	put_u64(w, "epoch", m->epoch);
	put_u64(w, "ledger_entries", m->ledger_entries);
}

/* One that has other operations than this engine would deny everything; better to say so once. */
int
on_broker_ready(struct engine *e, const struct msg_broker_ready *m, struct err *err)
{
	struct broker *b = &e->broker;

	if (memcmp(m->catalogue, e->catalogue.digest, 32) != 0)
		return err_set(err, -EPROTO, "the broker has another catalogue of operations");
	b->epoch = m->epoch;
	b->ledger_entries = m->ledger_entries;
	b->checkpoint_size = m->checkpoint_size;
	memcpy(b->checkpoint_root, m->checkpoint_root, 32);
	keep(b->audit_key, sizeof(b->audit_key), m->audit_key);
	keep(b->note, sizeof(b->note), m->note);
	record(e, "broker.ready", put_ready, m);
	checkpoint_told(e, m);
	b->told = true;
	executions_resume(e);
	return 0;
}

static void
put_approvers(struct canon_writer *w, const void *arg)
{
	const struct msg_approvers_loaded *m = arg;

	put_digest(w, "digest", m->digest);
	put_view(w, "fault", m->fault);
	put_u64(w, "keys", m->keys);
	put_u64(w, "people", m->people);
}

int
on_approvers_loaded(struct engine *e, const struct msg_approvers_loaded *m, struct err *err)
{
	struct broker *b = &e->broker;

	(void)err;
	memcpy(b->approvers, m->digest, 32);
	keep(b->approvers_fault, sizeof(b->approvers_fault), m->fault);
	record(e, "approvers.loaded", put_approvers, m);
	return 0;
}

/* The supervisor starts it again and brings the new edge. Until then every action is denied. */
void
lost_broker(struct ipc_peer *peer, const struct err *why)
{
	struct engine *e = peer->owner;

	if (!e->stopping) {
		log_line("the broker is lost: %s", why->text);
		if (e->broker.peer->state == BROKER_LIVE)
			record(e, "broker.lost", NULL, NULL);
	}
	drop(e);
}

int
on_broker_edge(
	struct engine *e, struct ipc_msg *in, const struct msg_broker_edge *m, struct err *err)
{
	(void)m;
	drop(e);
	return serve_broker(e, ipc_msg_take(in, 0), err);
}
