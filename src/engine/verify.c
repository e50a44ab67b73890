/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the system of record says about a proposal, and its record; see propose.h. The broker reads and tests; the engine tests the same
 * conditions over the facts that it was told, writes them into the record, and from then on the bytes stand.
 */
#include "engine/begin.h"
#include "engine/expiry.h"
#include "engine/propose.h"
#include "lib/action/check.h"
#include "lib/action/condition.h"
#include "lib/canon/form.h"
#include "lib/action/request.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

#include <errno.h>

/* All that a record is made of, while it is written. */
struct showing {
	struct asked *a;
	struct proposal p;
	struct task task;
	struct grant grant;
	struct view facts;
	struct request request;
	struct request_room room;
	struct buf provenance, roles;
};

static void
showing_init(struct showing *s, struct asked *a)
{
	struct engine *e = a->asker.engine;

	*s = (struct showing){.a = a};
	proposal_init(&s->p, e);
	task_init(&s->task, e);
	grant_init(&s->grant, e);
	buf_init(&s->provenance, 4096);
	buf_init(&s->roles, 1024);
}

static void
showing_done(struct showing *s)
{
	proposal_done(&s->p);
	task_done(&s->task);
	grant_done(&s->grant);
	request_done(&s->request);
	buf_done(&s->provenance);
	buf_done(&s->roles);
}
#define auto_showing __attribute__((cleanup(showing_done)))

/* ---- provenance ---- */

static int
provenance(struct showing *s, struct err *err)
{
	struct canon_reader r;
	struct canon_writer w;
	struct canon_token t = {0}, label = {0};
	int e;

	canon_reader_init(&r, buf_view(&s->p.provenance), false);
	canon_begin(&w, &s->provenance);
	canon_object_begin(&w);
	e = canon_want(&r, CANON_OBJECT_BEGIN, &t, err);
	while (e == 0 && (e = canon_next(&r, &t, err)) == 0 && t.type == CANON_KEY) {
		e = canon_want(&r, CANON_STR, &label, err);
		canon_key(&w, t.raw);
		canon_str(
			&w, condition_verifies(s->a->op, t.raw) ? view_str("verified") : label.raw);
	}
	canon_object_end(&w);
	return e == 0 ? canon_end(&w, err) : e;
}

/* ---- the record ---- */

static void
put_roles(struct showing *s, const struct tier *tier)
{
	for (size_t i = 0; i < tier->nroles; i++) {
		buf_add_view(&s->roles, tier->role[i]);
		buf_add_byte(&s->roles, 0);
	}
}

static struct proposal_record
record_of(struct showing *s, uint64_t now_ms, char grant[static ID_TEXT])
{
	const struct operation *op = s->a->op;
	struct engine *e = s->p.engine;
	struct proposal_record r = {.action = op->name,
		.actor = view_str(s->p.actor),
		.capability = view_str(grant),
		.environment = op->provider.environment,
		.idempotency_key = view_str(s->room.key),
		.owner = view_str(s->task.owner),
		.proposal = view_str(s->room.proposal),
		.provider_account = op->provider.account,
		.requester = view_str(s->p.requester),
		.task = view_str(s->room.task),
		.tenant = view_str(s->p.tenant),
		.method = view_str(s->request.method),
		.url = buf_view(&s->request.url),
		.content_type = view_str(s->request.content_type),
		.body = buf_view(&s->request.body),
		.arguments = buf_view(&s->p.arguments),
		.facts = s->facts,
		.provenance = buf_view(&s->provenance),
		.defaulted = buf_view(&s->p.defaulted),
		.roles = buf_view(&s->roles),
		.where = buf_view(&s->grant.where),
		.effect = op->effect,
		.issued_ms = now_ms,
		.decide_by_ms = s->p.decide_by_ms,
		.dispatch_within_ms = op->dispatch_within_ms,
		.epoch = e->broker.epoch,
		.quorum = s->p.quorum};

	memcpy(r.schema, op->schema, SHA256_BYTES);
	memcpy(r.adapter, op->adapter, SHA256_BYTES);
	memcpy(r.policy, op->policy, SHA256_BYTES);
	memcpy(r.catalogue, e->catalogue.digest, SHA256_BYTES);
	return r;
}

/* What was read must hold here too; the broker's word alone is not the engine's check. */
static int
conditions(struct showing *s, struct err *err)
{
	const struct condition_world w = {.op = s->a->op,
		.arguments = buf_view(&s->p.arguments),
		.facts = s->facts,
		.tenant = view_str(s->p.tenant),
		.task = view_str(s->room.task)};
	struct err why;

	if (conditions_hold(&w, &why) < 0)
		return DENY(err, VERIFY_FAILED, "%s: %s", denial_sentence(DENIAL_VERIFY_FAILED),
			why.text);
	if (conditions_hold_text(&w, buf_view(&s->grant.where), &why) < 0)
		return DENY(err, GRANT_CONDITION, "%s: %s", denial_sentence(DENIAL_GRANT_CONDITION),
			why.text);
	return 0;
}

static int
compose(struct showing *s, uint64_t now_ms, struct err *err)
{
	const struct operation *op = s->a->op;
	const struct tier *tier = operation_tier(op, s->p.amount);
	struct request_values values;
	struct proposal_record record;
	char grant[ID_TEXT];
	struct err why;
	int r;

	id_text(&s->p.grant, ID_GRANT, grant);
	s->p.quorum = tier->quorum;
	s->p.decide_by_ms = now_ms + op->decide_within_ms;
	request_values_of(s->p.engine, s->p.tenant, &s->p.task, &s->p.id, buf_view(&s->p.arguments),
		&s->room, &values);
	r = conditions(s, err);
	if (r == 0)
		r = provenance(s, err);
	if (r < 0)
		return r;
	put_roles(s, tier);
	if (request_render(op, &values, &s->request, &why) < 0)
		return DENY(err, ARGUMENTS, "%s: %s", denial_sentence(DENIAL_ARGUMENTS), why.text);
	record = record_of(s, now_ms, grant);
	if (proposal_record_write(&record, &s->p.record, &why) < 0)
		return DENY(err, RECORD_MALFORMED, "%s: %s",
			denial_sentence(DENIAL_RECORD_MALFORMED), why.text);
	proposal_digest(buf_view(&s->p.record), s->p.digest);
	return 0;
}

/* ---- its end ---- */

static void
put_pending(struct canon_writer *w, const void *arg)
{
	const struct showing *s = arg;
	uint8_t facts[32];

	sha256_of(s->facts, facts);
	put_i64(w, "amount", s->p.amount);
	put_str(w, "currency", s->p.currency);
	put_u64(w, "decide_by_ms", s->p.decide_by_ms);
	put_digest(w, "digest", s->p.digest);
	put_u64(w, "epoch", s->p.engine->broker.epoch);
	put_digest(w, "facts_digest", facts);
	put_u64(w, "quorum", s->p.quorum);
	put_strings(w, "roles", buf_view(&s->roles));
}

static void
put_denied(struct canon_writer *w, const void *arg)
{
	const struct proposal *p = arg;

	put_str(w, "denial", denial_text(p->denial));
	put_str(w, "text", p->text);
}

static int
audit(struct showing *s, const char *event, void (*data)(struct canon_writer *, const void *),
	const void *arg, struct err *err)
{
	const struct asker *a = &s->a->asker;

	return proposal_audit(&s->p, event, &a->who, view_str(a->request_id), data, arg, err);
}

/* -EALREADY: somebody took it back meanwhile. */
static int
begin(struct showing *s, struct tx *tx, struct err *err)
{
	int r = tx_begin(tx, s->p.engine->store, err);

	if (r == 0)
		r = proposal_load(&s->p, &s->a->proposal, err);
	if (r == 0 && s->p.state != PROPOSAL_STATE_PROPOSED)
		r = err_set(err, -EALREADY, "it is %s", proposal_state_text(s->p.state));
	return r;
}

/* The row becomes pending (or approved when nobody must approve it), with its record. */
static int
show(struct showing *s, uint32_t calls, uint64_t bytes, struct err *err)
{
	auto_tx struct tx tx = {0};
	uint64_t now;
	int r = begin(s, &tx, err);

	now = clock_real_ms(); /* after the lock */
	if (r == 0)
		r = task_load(&s->task, &s->p.task, err);
	if (r == 0)
		r = principal_first(s->p.engine, s->task.owner, s->task.owner, err);
	if (r == 0)
		r = grant_load(&s->grant, &s->p.grant, err);
	if (r == 0)
		r = compose(s, now, err);
	if (r < 0)
		return r;
	if (s->p.quorum == 0 && s->a->op->effect != EFFECT_DRAFT)
		return DENY(err, QUORUM, "%s", denial_sentence(DENIAL_QUORUM));
	if (s->p.quorum == 0)
		s->p.dispatch_by_ms = now + s->a->op->dispatch_within_ms;
	r = proposal_step(&s->p, s->p.quorum == 0 ? PROPOSAL_FREE : PROPOSAL_SHOW, err);
	if (r == 0)
		r = asked_settle(s->a, calls, bytes, err);
	if (r == 0)
		r = audit(s, s->p.quorum == 0 ? "proposal.free" : "proposal.pending", put_pending,
			s, err);
	return r == 0 ? tx_commit(&tx, err) : r;
}

static int
deny(struct showing *s, const struct err *why, uint32_t calls, uint64_t bytes, struct err *err)
{
	auto_tx struct tx tx = {0};
	int r = begin(s, &tx, err);

	if (r < 0)
		return r;
	buf_clear(&s->p.record);
	memset(s->p.digest, 0, sizeof(s->p.digest));
	s->p.decide_by_ms = 0;
	proposal_deny(&s->p, denial_of(why), view_str(why->text));
	r = proposal_step(&s->p, PROPOSAL_DENY, err);
	if (r == 0)
		r = asked_settle(s->a, calls, bytes, err);
	if (r == 0)
		r = audit(s, "proposal.denied", put_denied, &s->p, err);
	return r == 0 ? tx_commit(&tx, err) : r;
}

/* It was taken back while it was checked: only what was reserved is given back. */
static int
settle(struct showing *s, uint32_t calls, uint64_t bytes, struct err *err)
{
	auto_tx struct tx tx = {0};
	int r = tx_begin(&tx, s->p.engine->store, err);

	if (r == 0)
		r = asked_settle(s->a, calls, bytes, err);
	return r == 0 ? tx_commit(&tx, err) : r;
}

/* What stands is told; for the api the row says it all, for a sandbox a denial is a sentence. */
static void
tell(struct showing *s, const struct err *why)
{
	const struct asker *a = &s->a->asker;

	if (why != NULL && (!id_is_zero(&a->sandbox) || s->p.state != PROPOSAL_STATE_DENIED))
		asker_denied(a, &s->p.id, why);
	else
		asker_proposed(a, &s->p, false);
}

static void
end(struct showing *s, uint32_t calls, uint64_t bytes, struct err *why)
{
	struct engine *e = s->p.engine;
	struct err err = {0};
	int r = why->code == 0 ? show(s, calls, bytes, why) : why->code;

	if (r == 0) {
		store_sync(e->store);
		expiry_wake(e);
		if (s->p.state == PROPOSAL_STATE_APPROVED && id_is_zero(&s->a->asker.sandbox)) {
			execution_begin(e, &s->p.id, s->a->asker.to, &s->a->asker.who,
				view_str(s->a->asker.request_id));
			return;
		}
		tell(s, NULL);
		if (s->p.state == PROPOSAL_STATE_APPROVED)
			execution_begin(
				e, &s->p.id, (struct reply){0}, &s->a->asker.who, view_of(NULL, 0));
		return;
	}
	if (r != -EALREADY)
		r = deny(s, why, calls, bytes, &err);
	if (r == -EALREADY) {
		(void)DENY(why, REVOKED, "%s", denial_sentence(DENIAL_REVOKED));
		r = settle(s, calls, bytes, &err);
	}
	if (r < 0)
		log_line("a denial is not recorded: %s", err.text);
	tell(s, why);
}

/* ---- the question ---- */

static void
verified(struct broker_wait *w, const struct broker_answer *a)
{
	auto_free struct asked *asked = container_of(w, struct asked, wait);
	const struct msg_verified *m = &a->m.verified;
	auto_showing struct showing s;
	struct err why = {0};
	uint32_t calls = 1;
	uint64_t bytes = asked->bytes;

	showing_init(&s, asked);
	s.p.id = asked->proposal;
	if (a->denial != DENIAL_NONE) {
		err_denied(&why, a->denial, a->text); /* what it cost is not known: all of it */
	} else {
		calls = m->calls;
		bytes = m->bytes;
		s.facts = m->facts;
		if (m->denial != DENIAL_NONE)
			err_denied(&why, m->denial, m->text);
		else if (canon_check(m->facts, true, &why) < 0)
			(void)DENY(&why, VERIFY_UNAVAILABLE, "%s",
				denial_sentence(DENIAL_VERIFY_UNAVAILABLE));
	}
	end(&s, calls, bytes, &why);
}

void
verify_begin(struct asked *asked, struct proposal *p, struct view where)
{
	auto_free struct asked *a = asked;
	struct engine *e = a->asker.engine;
	auto_showing struct showing s;
	struct err why = {0};

	showing_init(&s, a);
	s.p.id = a->proposal;
	a->wait.done = verified;
	if (a->op->verify.n != 0) {
		struct msg_verify_ask m = {.name = a->op->name,
			.tenant = view_str(a->tenant),
			.task = a->task,
			.proposal = a->proposal,
			.arguments = buf_view(&p->arguments),
			.where = where};

		memcpy(m.operation, a->op->digest, 32);
		if (BROKER_ASK(e, &a->wait, VERIFY_ASK, verify_ask, VERIFIED, &why, m) == 0) {
			(void)take_ptr(a);
			return;
		}
		err_denied(&why, DENIAL_BROKER_UNAVAILABLE,
			view_str(denial_sentence(DENIAL_BROKER_UNAVAILABLE)));
	}
	/* Nothing is read before: only what stands in the arguments can be tested. */
	s.facts = view_str("{}");
	end(&s, 0, 0, &why);
}
