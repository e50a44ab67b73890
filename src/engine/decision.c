/* SPDX-License-Identifier: Apache-2.0 */
/* Decisions; see decision.h. */
#include "engine/decision.h"

#include "engine/begin.h"
#include "engine/contain.h"
#include "engine/expiry.h"
#include "engine/limits.h"
#include "engine/propose.h"
#include "lib/action/check.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

#include <errno.h>

/* One that waits for the broker. */
struct deciding {
	struct broker_wait wait;
	struct engine *engine;
	struct id proposal;
	char tenant[TENANT_BYTES]; /* of the proposal */
	struct reply to;
	struct principal who;
	char request_id[REQUEST_ID_BYTES];
	bool approve;
	uint64_t dispatch_by_ms;
	struct buf decision, signature;
};

static void
deciding_free(struct deciding *d)
{
	buf_done(&d->decision);
	buf_done(&d->signature);
	free(d);
}

static void
deciding_cleanup(struct deciding **d)
{
	if (*d != NULL)
		deciding_free(*d);
}
#define auto_deciding __attribute__((cleanup(deciding_cleanup)))

/* ---- what is tested before the broker is asked, and again when it has answered ---- */

static int
already(struct proposal *p, struct err *err)
{
	auto_query struct query q = query_of(p->engine->store, Q_DECISION_LAST);
	char approver[64];
	int r;

	arg_id(&q, &p->id);
	r = query_next(&q, err);
	if (r < 0)
		return r;
	if (r == 0)
		return REFUSE(err, CONFLICT, "the proposal is %s; nothing can be decided any more",
			proposal_state_text(p->state));
	col_text(&q, approver, sizeof(approver));
	return REFUSE(err, CONFLICT, "already decided by %s: the proposal is %s", approver,
		proposal_state_text(p->state));
}

/* Inside the open transaction, whose beginning is older than `now_ms`. 1: its time is over, and the row says so now. */
static int
check(struct proposal *p, uint64_t now_ms, struct err *err)
{
	int r;

	if (p->state != PROPOSAL_STATE_PENDING)
		return already(p, err);
	if (now_ms >= p->decide_by_ms) {
		r = expiry_step(p, DENIAL_DECIDE_EXPIRED, err);
		return r < 0 ? r : 1;
	}
	return contain_refuse(p->engine, p->tenant, &p->task, err);
}

static int
expired(struct err *err)
{
	return DENY(err, DECIDE_EXPIRED, "%s", denial_sentence(DENIAL_DECIDE_EXPIRED));
}

/* ---- records ---- */

static void
put_asked(struct canon_writer *w, const void *arg)
{
	const struct deciding *d = arg;
	uint8_t digest[32];

	sha256_of(buf_view(&d->decision), digest);
	put_bool(w, "approve", d->approve);
	put_digest(w, "decision_digest", digest);
}

struct refusal {
	const struct deciding *d;
	const struct err *why;
};

static void
put_refused(struct canon_writer *w, const void *arg)
{
	const struct refusal *r = arg;
	uint8_t digest[32];

	sha256_of(buf_view(&r->d->decision), digest);
	put_bool(w, "approve", r->d->approve);
	put_digest(w, "decision_digest", digest);
	if (r->why->code < -DENIAL_BASE)
		put_str(w, "denial", denial_text(denial_of(r->why)));
	put_str(w, "text", r->why->text);
}

struct acceptance {
	const struct deciding *d;
	const struct msg_decision_is *m;
	uint64_t approvals, quorum;
};

static void
put_accepted(struct canon_writer *w, const void *arg)
{
	const struct acceptance *a = arg;
	uint8_t digest[32];

	sha256_of(buf_view(&a->d->decision), digest);
	put_u64(w, "approvals", a->approvals);
	put_bool(w, "approve", a->d->approve);
	put_view(w, "approver", a->m->approver);
	put_digest(w, "decision_digest", digest);
	put_view(w, "key", a->m->key);
	put_u64(w, "quorum", a->quorum);
	put_u64(w, "seen_ms", a->m->seen_ms);
}

static int
audit(struct proposal *p, const struct deciding *d, const char *event,
	void (*data)(struct canon_writer *, const void *), const void *arg, struct err *err)
{
	return proposal_audit(p, event, &d->who, view_str(d->request_id), data, arg, err);
}

/* Refused, and recorded; the answer says why. */
static void
refuse(struct deciding *d, const struct err *why)
{
	const struct refusal data = {.d = d, .why = why};
	auto_proposal struct proposal p;
	auto_tx struct tx tx = {0};
	struct err err;
	int r;

	proposal_init(&p, d->engine);
	r = tx_begin(&tx, d->engine->store, &err);
	if (r == 0)
		r = proposal_load(&p, &d->proposal, &err);
	if (r == 0)
		r = audit(&p, d, "decision.refused", put_refused, &data, &err);
	if (r == 0)
		r = tx_commit(&tx, &err);
	if (r < 0)
		log_line("a refused decision is not recorded: %s", err.text);
	answer_refused(d->engine, d->to, why);
}

/* ---- the answer of the broker ---- */

static int
insert(const struct deciding *d, const struct msg_decision_is *m, struct err *err)
{
	auto_query struct query q = query_of(d->engine->store, Q_DECISION_INSERT);
	int r;

	arg_id(&q, &d->proposal);
	arg_view(&q, m->approver);
	arg_view(&q, m->key);
	arg_u64(&q, d->approve);
	arg_blob(&q, buf_view(&d->decision));
	arg_blob(&q, buf_view(&d->signature));
	arg_u64(&q, m->seen_ms > INT64_MAX ? INT64_MAX : m->seen_ms);
	r = query_run(&q, err);
	if (r == -EEXIST)
		return REFUSE(err, CONFLICT, "%.*s has decided this proposal already",
			VIEW_ARGS(m->approver));
	return r;
}

static int
approvals(struct proposal *p, uint64_t *ret, struct err *err)
{
	auto_query struct query q = query_of(p->engine->store, Q_DECISION_APPROVALS);
	int r;

	arg_id(&q, &p->id);
	r = query_one(&q, err);
	if (r == 0)
		*ret = col_u64(&q);
	return r;
}

/* Rejected, approved, or waiting for one more. All approvals must be fresh when it leaves: the earliest dispatch_by holds. */
static int
transition(struct proposal *p, struct acceptance *a, struct err *err)
{
	const struct deciding *d = a->d;
	int r = approvals(p, &a->approvals, err);

	a->quorum = a->m->quorum > p->quorum ? a->m->quorum : p->quorum;
	if (r < 0)
		return r;
	if (!d->approve) {
		proposal_deny(p, DENIAL_NONE, view_str("a person rejected it"));
		return proposal_step(p, PROPOSAL_REJECT, err);
	}
	if (p->dispatch_by_ms == 0 || d->dispatch_by_ms < p->dispatch_by_ms)
		p->dispatch_by_ms = d->dispatch_by_ms;
	return proposal_step(p, a->approvals >= a->quorum ? PROPOSAL_APPROVE : PROPOSAL_JOIN, err);
}

/* 1: its time was over. */
static int
take(struct proposal *p, struct deciding *d, const struct msg_decision_is *m, struct err *err)
{
	struct acceptance data = {.d = d, .m = m};
	auto_tx struct tx tx = {0};
	int late = 0, r = tx_begin(&tx, d->engine->store, err);
	uint64_t now = clock_real_ms(); /* after the lock */

	if (r == 0)
		r = proposal_load(p, &d->proposal, err);
	if (r == 0)
		r = late = check(p, now, err);
	if (r == 0)
		r = insert(d, m, err);
	if (r == 0)
		r = transition(p, &data, err);
	if (r == 0)
		r = audit(p, d, "decision.accepted", put_accepted, &data, err);
	if (r < 0)
		return r;
	r = tx_commit(&tx, err);
	return r < 0 ? r : late;
}

static void
decided(struct broker_wait *w, const struct broker_answer *a)
{
	auto_deciding struct deciding *d = container_of(w, struct deciding, wait);
	const struct msg_decision_is *m = &a->m.decision_is;
	auto_proposal struct proposal p;
	struct err err = {0};
	int r;

	proposal_init(&p, d->engine);
	if (a->denial != DENIAL_NONE)
		err_denied(&err, a->denial, a->text);
	else if (m->denial != DENIAL_NONE)
		err_denied(&err, m->denial, m->text);
	r = err.code == 0 ? take(&p, d, m, &err) : err.code;
	if (r > 0)
		r = expired(&err);
	if (r < 0) {
		refuse(d, &err);
		return;
	}
	store_sync(d->engine->store);
	if (p.state == PROPOSAL_STATE_APPROVED) {
		expiry_wake(d->engine);
		execution_begin(d->engine, &p.id, d->to, &d->who, view_str(d->request_id));
		return;
	}
	if (proposal_answer(&p, d->to, false, &err) < 0)
		answer_refused(d->engine, d->to, &err);
}

/* ---- the request ---- */

/* What can be seen without the broker. 1: its time was over. */
static int
receive(struct proposal *p, struct deciding *d, struct err *err)
{
	auto_tx struct tx tx = {0};
	int late = 0, r = tx_begin(&tx, d->engine->store, err);
	uint64_t now = clock_real_ms(); /* after the lock */

	if (r == 0)
		r = proposal_load(p, &d->proposal, err);
	if (r == 0)
		r = late = check(p, now, err);
	if (r == 0)
		r = audit(p, d, "decision.asked", put_asked, d, err);
	if (r < 0)
		return r;
	r = tx_commit(&tx, err);
	return r < 0 ? r : late;
}

/* The decision says about which bytes; that they are these is the engine's check, that it is signed the broker's. */
static int
read_decision(struct deciding *d, const struct proposal *p, struct err *err)
{
	struct decision_record record;
	auto_buf struct buf room;
	struct err why;

	buf_init(&room, DECISION_RECORD_MAX);
	if (decision_record_read(buf_view(&d->decision), &room, &record, &why) < 0)
		return DENY(err, RECORD_MALFORMED, "%s: %s",
			denial_sentence(DENIAL_RECORD_MALFORMED), why.text);
	if (memcmp(record.proposal, p->digest, SHA256_BYTES) != 0)
		return DENY(err, DIGEST, "%s", denial_sentence(DENIAL_DIGEST));
	d->approve = record.approve;
	d->dispatch_by_ms = record.dispatch_by_ms > INT64_MAX ? INT64_MAX : record.dispatch_by_ms;
	return 0;
}

/* So that what waits for a broker that is slow stays small. */
static int
check_room(const struct engine *e, const char *tenant, struct err *err)
{
	unsigned n = 0, of_tenant = 0;

	list_each (w, &e->broker.waits, struct broker_wait, link)
		if (w->done == decided) {
			const struct deciding *d = container_of(w, struct deciding, wait);

			n++;
			of_tenant += strcmp(d->tenant, tenant) == 0;
		}
	if (e->stopping)
		return REFUSE(err, UNAVAILABLE, "the host is stopping; nothing is decided now");
	if (n >= LIMIT_DECISIONS || of_tenant >= LIMIT_DECISIONS_PER_TENANT)
		return REFUSE(err, UNAVAILABLE,
			"as many decisions are being checked as may be at the same time; try again "
			"in a moment");
	return 0;
}

static int
deciding_new(struct engine *e, struct reply to, const struct msg_proposal_decide *m,
	struct deciding **ret, struct err *err)
{
	auto_deciding struct deciding *d = calloc(1, sizeof(*d));

	if (d == NULL)
		return err_set(err, -ENOMEM, "no memory for a decision");
	d->engine = e;
	d->to = to;
	d->proposal = m->proposal;
	d->wait.done = decided;
	(void)snprintf(d->request_id, sizeof(d->request_id), "%.*s", VIEW_ARGS(m->request_id));
	buf_init(&d->decision, DECISION_RECORD_MAX);
	buf_init(&d->signature, DECISION_RECORD_MAX);
	buf_add_view(&d->decision, m->decision);
	buf_add_view(&d->signature, m->signature);
	if (buf_check(&d->decision) < 0 || buf_check(&d->signature) < 0)
		return err_set(err, -ENOMEM, "no memory for a decision");
	*ret = take_ptr(d);
	return 0;
}

int
on_proposal_decide(
	struct engine *e, struct reply to, const struct msg_proposal_decide *m, struct err *err)
{
	auto_deciding struct deciding *d = NULL;
	auto_proposal struct proposal p;
	struct err why;
	int r = deciding_new(e, to, m, &d, err);

	proposal_init(&p, e);
	if (r == 0)
		r = caller_find(e, &m->caller, &d->who, err);
	if (r == 0)
		r = proposal_find(&p, &d->who, &m->proposal, err);
	if (r == 0)
		r = check_room(e, p.tenant, err);
	if (r == 0 && p.state == PROPOSAL_STATE_PENDING && memcmp(m->shown, p.digest, 32) != 0)
		r = REFUSE(err, CONFLICT,
			"what was shown is not this proposal; look at it again and decide then");
	if (r < 0)
		return r;
	(void)snprintf(d->tenant, sizeof(d->tenant), "%s", p.tenant);
	r = p.state == PROPOSAL_STATE_PENDING ? read_decision(d, &p, &why) : 0;
	if (r == 0)
		r = receive(&p, d, &why);
	if (r > 0)
		r = expired(&why);
	if (r == 0 && BROKER_ASK(e, &d->wait, DECISION_ASK, decision_ask, DECISION_IS, &why,
			      {.proposal = p.id,
				      .record = buf_view(&p.record),
				      .decision = buf_view(&d->decision),
				      .signature = buf_view(&d->signature)}) < 0)
		r = DENY(
			&why, BROKER_UNAVAILABLE, "%s", denial_sentence(DENIAL_BROKER_UNAVAILABLE));
	if (r < 0)
		refuse(d, &why);
	else
		(void)take_ptr(d);
	return 0;
}
