/* SPDX-License-Identifier: Apache-2.0 */
/* Revocations; see authority.h. */
#include "engine/authority.h"

#include "engine/execution.h"
#include "engine/gate.h"
#include "engine/outbox.h"
#include "engine/proposal.h"
#include "engine/result.h"
#include "lib/base/clock.h"

#include <errno.h>

/* Who takes it back, and why. */
struct taking {
	struct engine *engine;
	const struct scope *scope;
	const struct principal *who;
	struct view request_id;
	const char *why;
};

static void
put_why(struct canon_writer *w, const void *arg)
{
	const struct taking *t = arg;

	put_str(w, "reason", t->why);
}

/* ---- grants ---- */

struct grant_row {
	uint64_t expires_ms, seq;
	struct id id, task;
	char tenant[TENANT_BYTES];
	const struct taking *taking;
};

static void
put_grant(struct canon_writer *w, const void *arg)
{
	const struct grant_row *g = arg;
	char id[ID_TEXT];

	id_text(&g->id, ID_GRANT, id);
	put_str(w, "grant", id);
	put_str(w, "reason", g->taking->why);
}

static int
next_grant(const struct taking *t, struct grant_row *g, struct err *err)
{
	auto_query struct query q = query_of(t->engine->store, Q_GRANT_SCOPE);
	int r;

	arg_u64(&q, g->expires_ms);
	arg_u64(&q, g->seq);
	arg_text(&q, t->scope->tenant);
	arg_id(&q, &t->scope->task);
	r = query_next(&q, err);
	if (r <= 0)
		return r;
	g->expires_ms = col_u64(&q);
	g->seq = col_u64(&q);
	col_id(&q, &g->id);
	col_id(&q, &g->task);
	col_text(&q, g->tenant, sizeof(g->tenant));
	return 1;
}

static int
take_grant(const struct taking *t, struct grant_row *g, uint64_t now, struct err *err)
{
	const struct audit_event ev = {.event = "grant.revoke",
		.tenant = g->tenant,
		.task = &g->task,
		.who = t->who,
		.request_id = t->request_id,
		.data = put_grant,
		.arg = g};

	{
		auto_query struct query q = query_of(t->engine->store, Q_GRANT_TAKE);
		int r;

		arg_u64(&q, now);
		arg_id(&q, &g->id);
		r = query_run(&q, err);
		if (r < 0)
			return r;
	}
	g->taking = t;
	return audit_append(t->engine, &ev, err);
}

/* ---- proposals ---- */

enum { PAGE = 64 }; /* as the query has it */

/* The next of them; how many. */
static int
next_proposals(const struct taking *t, const struct id *grant, uint64_t *seq,
	struct id ret[static PAGE], struct err *err)
{
	static const struct id any;
	auto_query struct query q = query_of(t->engine->store, Q_PROPOSAL_SCOPE);
	int r, n = 0;

	arg_text(&q, t->scope->tenant);
	arg_id(&q, &t->scope->task);
	arg_id(&q, grant != NULL ? grant : &any);
	arg_u64(&q, *seq);
	for (r = query_next(&q, err); r > 0 && n < PAGE; r = query_next(&q, err)) {
		*seq = col_u64(&q);
		col_id(&q, &ret[n++]);
	}
	return r < 0 ? r : n;
}

/* What is dispatching is not stopped here: only the broker knows whether it was sent. */
static int
take_proposal(const struct taking *t, struct proposal *p, struct err *err)
{
	int r = 0;

	if (p->state != PROPOSAL_STATE_DISPATCHING) {
		proposal_deny(p, DENIAL_REVOKED, view_str(t->why));
		r = proposal_step(p, PROPOSAL_REVOKE, err);
	}
	if (r == 0)
		r = outbox_revoke(t->engine, &p->id, err);
	if (r == 0)
		r = proposal_audit(p, "proposal.revoke", t->who, t->request_id, put_why, t, err);
	return r;
}

static int
take_proposals(const struct taking *t, const struct id *grant, uint32_t *ret_n, struct err *err)
{
	auto_proposal struct proposal p;
	struct id ids[PAGE];
	uint64_t seq = 0;
	int n;

	proposal_init(&p, t->engine);
	while ((n = next_proposals(t, grant, &seq, ids, err)) > 0)
		for (int i = 0; i < n; i++) {
			int r = proposal_load(&p, &ids[i], err);

			if (r == 0)
				r = take_proposal(t, &p, err);
			if (r < 0)
				return r;
			*ret_n += p.state == PROPOSAL_STATE_REVOKED;
		}
	return n;
}

int
authority_take(struct engine *e, const struct scope *s, const struct id *grant,
	const struct principal *who, struct view request_id, const char *why, struct taken *ret,
	struct err *err)
{
	const struct taking t = {
		.engine = e, .scope = s, .who = who, .request_id = request_id, .why = why};
	uint64_t now = clock_real_ms();
	struct grant_row g = {.expires_ms = now, .seq = INT64_MAX};
	int r;

	while ((r = next_grant(&t, &g, err)) > 0) {
		if (grant != NULL && !id_eq(&g.id, grant))
			continue;
		r = take_grant(&t, &g, now, err);
		if (r < 0)
			return r;
		ret->grants++;
	}
	return r < 0 ? r : take_proposals(&t, grant, &ret->proposals, err);
}

/* ---- AUTHORITY_REVOKE ---- */

/* Why, as the rows and the records have it. */
static int
reason_of(struct view asked, char *ret, size_t size, struct err *err)
{
	if (asked.n >= size)
		return REFUSE(err, BAD_REQUEST, "a reason has at most %zu bytes", size - 1);
	(void)snprintf(ret, size, "%.*s", VIEW_ARGS(asked));
	if (ret[0] == '\0')
		(void)snprintf(ret, size, "it was taken back");
	return 0;
}

struct revocation {
	struct engine *engine;
	struct principal who;
	struct view request_id;
	char reason[257];
	struct scope scope;
};

/* The scope of one task. */
static int
scope_of_task(struct revocation *v, const struct task *t)
{
	char id[ID_TEXT];

	id_text(&t->id, ID_TASK, id);
	(void)snprintf(v->scope.text, sizeof(v->scope.text), "task:%s", id);
	(void)snprintf(v->scope.tenant, sizeof(v->scope.tenant), "%s", t->tenant);
	v->scope.task = t->id;
	return 0;
}

static int
find_grant(struct revocation *v, struct view name, struct id *ret, struct err *err)
{
	auto_task struct task t;
	struct id task;
	int r;

	if (id_parse(name, ID_GRANT, ret) < 0)
		return REFUSE(err, NOT_FOUND, "no such grant");
	{
		auto_query struct query q = query_of(v->engine->store, Q_GRANT_ONE);

		arg_id(&q, ret);
		r = query_one(&q, err);
		if (r == -ENOENT)
			return REFUSE(err, NOT_FOUND, "no such grant");
		if (r < 0)
			return r;
		col_id(&q, &task);
	}
	task_init(&t, v->engine);
	r = task_load(&t, &task, err);
	if (r < 0)
		return r;
	if (!caller_sees(&v->who, t.tenant, t.template))
		return REFUSE(err, NOT_FOUND, "no such grant");
	return scope_of_task(v, &t);
}

static void
put_reason(struct canon_writer *w, const void *arg)
{
	const struct revocation *v = arg;

	put_str(w, "reason", v->reason);
}

/* What its policy gives is authority too: nothing of it leaves any more. Inside the open transaction. */
static int
take_egress(struct revocation *v, struct err *err)
{
	const struct audit_event ev = {.event = "egress.revoke",
		.tenant = v->scope.tenant,
		.task = &v->scope.task,
		.who = &v->who,
		.request_id = v->request_id,
		.data = put_reason,
		.arg = v};
	auto_query struct query q = query_of(v->engine->store, Q_EGRESS_REVOKE);
	int r;

	arg_u64(&q, clock_real_ms());
	arg_id(&q, &v->scope.task);
	r = query_run(&q, err);
	query_cleanup(&q);
	return r == 0 ? audit_append(v->engine, &ev, err) : r;
}

static int
take_all(struct revocation *v, const struct id *grant, bool egress, struct err *err)
{
	struct taken taken = {0};
	auto_tx struct tx tx = {0};
	int r = tx_begin(&tx, v->engine->store, err);

	if (r == 0)
		r = audit_refuse(authority_take(v->engine, &v->scope, grant, &v->who, v->request_id,
					 v->reason, &taken, err),
			"a reason", err);
	if (r == 0 && egress)
		r = take_egress(v, err);
	if (r == 0)
		r = tx_commit(&tx, err);
	if (r < 0)
		return r;
	store_sync(v->engine->store);
	outbox_tell(v->engine);
	if (egress)
		gates_end(v->engine, &v->scope.task);
	return 0;
}

static int
revoke_grant(struct revocation *v, struct view name, struct err *err)
{
	struct id grant;
	int r = find_grant(v, name, &grant, err);

	return r == 0 ? take_all(v, &grant, false, err) : r;
}

static int
revoke_task(struct revocation *v, struct view name, struct err *err)
{
	auto_task struct task t;
	int r;

	task_init(&t, v->engine);
	r = task_find_name(&t, &v->who, name, err);
	if (r == 0)
		r = scope_of_task(v, &t);
	return r == 0 ? take_all(v, NULL, t.policy[0] != '\0', err) : r;
}

/* ---- one proposal ---- */

struct revoke_waiter {
	struct outbox_waiter wait;
	struct engine *engine;
	struct reply to;
	bool dispatching; /* then only the broker can say whether it was stopped */
};

static void
on_revocation_told(struct outbox_waiter *w, enum told told)
{
	struct revoke_waiter *v = container_of(w, struct revoke_waiter, wait);
	struct err err;

	switch (told) {
	case TOLD_DONE:
		REPLY(v->engine, v->to, DONE, done, {0});
		break;
	case TOLD_TOO_LATE:
		(void)REFUSE(&err, CONFLICT,
			"too late: it was sent or is being sent; the revocation is recorded, and "
			"nothing of it is sent again");
		answer_refused(v->engine, v->to, &err);
		break;
	case TOLD_AWAY:
		if (!v->dispatching) {
			/* Here it holds already; the broker is told when it is there again. */
			REPLY(v->engine, v->to, DONE, done, {0});
			break;
		}
		(void)REFUSE(&err, UNAVAILABLE,
			"the revocation is recorded, but the broker, which alone knows whether it "
			"was sent, is not there; see what becomes of the execution");
		answer_refused(v->engine, v->to, &err);
		break;
	}
	free(v);
}

static int
write_revocation(struct revocation *v, struct proposal *p, struct err *err)
{
	const struct taking t = {
		.engine = v->engine, .who = &v->who, .request_id = v->request_id, .why = v->reason};
	auto_tx struct tx tx = {0};
	int r = tx_begin(&tx, v->engine->store, err);

	if (r == 0)
		r = proposal_load(p, &p->id, err);
	if (r == 0)
		r = audit_refuse(take_proposal(&t, p, err), "a reason", err);
	if (r == 0)
		r = tx_commit(&tx, err);
	if (r == 0)
		store_sync(v->engine->store);
	return r;
}

static bool
revocable(enum proposal_state s)
{
	return s == PROPOSAL_STATE_PROPOSED || s == PROPOSAL_STATE_PENDING ||
	       s == PROPOSAL_STATE_APPROVED || s == PROPOSAL_STATE_DISPATCHING;
}

static int
revoke_proposal(struct revocation *v, struct view name, struct reply to, struct err *err)
{
	auto_proposal struct proposal p;
	struct revoke_waiter *w;
	struct id id;
	int r;

	if (id_parse(name, ID_PROPOSAL, &id) < 0)
		return REFUSE(err, NOT_FOUND, "no such proposal");
	proposal_init(&p, v->engine);
	r = proposal_find(&p, &v->who, &id, err);
	if (r < 0)
		return r;
	if (p.state == PROPOSAL_STATE_REVOKED) {
		REPLY(v->engine, to, DONE, done, {0});
		return 0;
	}
	if (!revocable(p.state))
		return REFUSE(err, CONFLICT, "the proposal is %s: there is nothing to take back",
			proposal_state_text(p.state));
	w = calloc(1, sizeof(*w));
	if (w == NULL)
		return err_set(err, -ENOMEM, "no memory for a revocation");
	r = write_revocation(v, &p, err);
	if (r < 0) {
		free(w);
		return r;
	}
	*w = (struct revoke_waiter){.engine = v->engine,
		.to = to,
		.dispatching = p.state == PROPOSAL_STATE_DISPATCHING,
		.wait = {.proposal = id, .done = on_revocation_told}};
	outbox_wait(&v->engine->outbox, &w->wait);
	outbox_tell(v->engine);
	return 0;
}

int
on_authority_revoke(
	struct engine *e, struct reply to, const struct msg_authority_revoke *m, struct err *err)
{
	struct revocation v = {.engine = e, .request_id = m->request_id};
	int r = caller_find(e, &m->caller, &v.who, err);

	if (r == 0)
		r = reason_of(m->reason, v.reason, sizeof(v.reason), err);
	if (r < 0)
		return r;
	switch (m->kind) {
	case AUTHORITY_PROPOSAL:
		return revoke_proposal(&v, m->name, to, err);
	case AUTHORITY_GRANT:
		r = revoke_grant(&v, m->name, err);
		break;
	case AUTHORITY_TASK:
		r = revoke_task(&v, m->name, err);
		break;
	case AUTHORITY_MAX:
		must(false);
	}
	if (r == 0)
		REPLY(e, to, DONE, done, {0});
	return r;
}
