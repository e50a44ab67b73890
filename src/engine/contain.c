/* SPDX-License-Identifier: Apache-2.0 */
/* Containment; see contain.h. Release: release.c. */
#include "engine/contain.h"

#include "engine/authority.h"
#include "engine/execution.h"
#include "engine/gone.h"
#include "engine/limits.h"
#include "engine/outbox.h"
#include "engine/task.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/name.h"

#include <errno.h>

/* ---- the check ---- */

int
contained(struct engine *e, const char *tenant, const struct id *task, enum denial *ret,
	char ret_scope[SCOPE_TEXT], struct err *err)
{
	auto_query struct query q = query_of(e->store, Q_CONTAINED);
	char id[ID_TEXT] = "";
	int r;

	if (task != NULL)
		id_text(task, ID_TASK, id);
	arg_text(&q, tenant);
	arg_text(&q, id);
	r = query_next(&q, err);
	if (r < 0)
		return r;
	*ret = DENIAL_NONE;
	if (r == 0)
		return 0;
	col_text(&q, ret_scope, SCOPE_TEXT);
	*ret = col_u64(&q) != 0 ? DENIAL_RESTORED : DENIAL_CONTAINED;
	return 0;
}

int
contain_refuse(struct engine *e, const char *tenant, const struct id *task, struct err *err)
{
	char scope[SCOPE_TEXT];
	enum denial denial;
	int r = contained(e, tenant, task, &denial, scope, err);

	if (r < 0 || denial == DENIAL_NONE)
		return r;
	if (denial == DENIAL_RESTORED)
		return DENY(err, RESTORED,
			"the store was restored: nothing new begins before a person who may "
			"release "
			"signs that");
	return DENY(err, CONTAINED,
		"%s is contained: nothing new begins before a person who may release signs that",
		scope);
}

/* ---- scopes ---- */

bool
scope_has(const struct scope *s, const char *tenant, const struct id *task)
{
	if (!id_is_zero(&s->task))
		return id_eq(&s->task, task);
	return s->tenant[0] == '\0' || strcmp(s->tenant, tenant) == 0;
}

static int
scope_of_tenant(const struct principal *p, struct view name, struct scope *ret, struct err *err)
{
	if (!name_ok(name))
		return REFUSE(err, BAD_REQUEST,
			"a tenant has 1 to 63 of a-z 0-9 . _ - and starts with a letter or digit");
	if (!p->admin && (!view_is(name, p->tenant) || p->template[0] != '\0'))
		return REFUSE(err, FORBIDDEN, "the token may not contain this tenant");
	(void)snprintf(ret->tenant, sizeof(ret->tenant), "%.*s", VIEW_ARGS(name));
	(void)snprintf(ret->text, sizeof(ret->text), "tenant:%s", ret->tenant);
	return 0;
}

static int
scope_of_task(struct engine *e, const struct principal *p, struct view name, struct scope *ret,
	struct err *err)
{
	auto_task struct task t;
	char id[ID_TEXT];
	int r;

	task_init(&t, e);
	r = task_find_name(&t, p, name, err);
	if (r < 0)
		return r;
	ret->task = t.id;
	(void)snprintf(ret->tenant, sizeof(ret->tenant), "%s", t.tenant);
	id_text(&t.id, ID_TASK, id);
	(void)snprintf(ret->text, sizeof(ret->text), "task:%s", id);
	return 0;
}

static bool
after(struct view v, const char *prefix, struct view *ret)
{
	size_t n = strlen(prefix);

	if (v.n <= n || memcmp(v.p, prefix, n) != 0)
		return false;
	*ret = view_skip(v, n);
	return true;
}

int
scope_read(struct engine *e, const struct principal *p, struct view text, struct scope *ret,
	struct err *err)
{
	struct view name;

	*ret = (struct scope){0};
	if (after(text, "tenant:", &name))
		return scope_of_tenant(p, name, ret, err);
	if (after(text, "task:", &name))
		return scope_of_task(e, p, name, ret, err);
	if (!view_is(text, "host"))
		return REFUSE(err, BAD_REQUEST, "a scope is host, tenant:NAME or task:NAME");
	if (!p->admin)
		return REFUSE(err, FORBIDDEN, "only an administrator may contain the host");
	(void)snprintf(ret->text, sizeof(ret->text), "host");
	return 0;
}

/* ---- rows ---- */

static void
read_row(struct containment *c, struct query *q)
{
	c->seq = col_u64(q);
	col_text(q, c->scope.text, sizeof(c->scope.text));
	col_text(q, c->reason, sizeof(c->reason));
	col_text(q, c->by, sizeof(c->by));
	c->since_ms = col_u64(q);
	c->released_ms = col_u64(q);
	c->restored = col_u64(q) != 0;
	c->sandboxes_ended = (uint32_t)col_u64(q);
	c->grants_revoked = (uint32_t)col_u64(q);
	c->proposals_stopped = (uint32_t)col_u64(q);
}

/* 1 with the one that holds for exactly this scope, else 0. */
int
containment_load(struct engine *e, const struct scope *s, struct containment *ret, struct err *err)
{
	auto_query struct query q = query_of(e->store, Q_CONTAINMENT_OPEN);
	int r;

	arg_text(&q, s->text);
	r = query_next(&q, err);
	if (r <= 0)
		return r;
	read_row(ret, &q);
	ret->scope = *s;
	return 1;
}

static int
insert(struct engine *e, const struct containment *c, struct err *err)
{
	auto_query struct query q = query_of(e->store, Q_CONTAINMENT_INSERT);

	arg_text(&q, c->scope.text);
	arg_text(&q, c->reason);
	arg_text(&q, c->by);
	arg_u64(&q, c->since_ms);
	arg_u64(&q, c->restored);
	return query_run(&q, err);
}

static int
write_counts(struct engine *e, const struct containment *c, struct err *err)
{
	auto_query struct query q = query_of(e->store, Q_CONTAINMENT_COUNTS);

	arg_u64(&q, c->sandboxes_ended);
	arg_u64(&q, c->grants_revoked);
	arg_u64(&q, c->proposals_stopped);
	arg_u64(&q, c->seq);
	return query_run(&q, err);
}

int
scope_open(struct engine *e, const struct scope *s, uint32_t *ret, struct err *err)
{
	auto_query struct query q = query_of(e->store, Q_EXECUTION_OPEN_COUNT);
	int r;

	arg_text(&q, s->tenant);
	arg_id(&q, &s->task);
	r = query_one(&q, err);
	if (r == 0)
		*ret = (uint32_t)col_u64(&q);
	return r;
}

/* ---- containing ---- */

static void
put_containment(struct canon_writer *w, const void *arg)
{
	const struct containment *c = arg;

	put_u64(w, "grants_revoked", c->grants_revoked);
	put_u64(w, "proposals_stopped", c->proposals_stopped);
	put_str(w, "reason", c->reason);
	put_bool(w, "restored", c->restored);
	put_str(w, "scope", c->scope.text);
}

int
containment_audit(struct engine *e, const struct containment *c, const char *event,
	const struct principal *who, struct view request_id, struct err *err)
{
	const struct audit_event ev = {.event = event,
		.tenant = c->scope.tenant,
		.task = id_is_zero(&c->scope.task) ? NULL : &c->scope.task,
		.who = who,
		.request_id = request_id,
		.data = put_containment,
		.arg = c};

	return audit_append(e, &ev, err);
}

static int
write_new(struct engine *e, struct containment *c, const struct principal *who,
	struct view request_id, struct err *err)
{
	int r = insert(e, c, err);

	if (r < 0)
		return r;
	c->seq = store_last_row(e->store);
	return audit_refuse(
		containment_audit(e, c, "contain", who, request_id, err), "a reason", err);
}

/* The row, on disk before anything else happens: from now on the check says no. */
static int
begin(struct engine *e, struct containment *c, const struct principal *who, struct view request_id,
	struct err *err)
{
	struct containment before;
	auto_tx struct tx tx = {0};
	int r = tx_begin(&tx, e->store, err);

	if (r == 0)
		r = containment_load(e, &c->scope, &before, err);
	if (r > 0) {
		*c = before;
		r = 0;
	} else if (r == 0) {
		r = write_new(e, c, who, request_id, err);
	}
	/* Also when it holds already: whoever asks again wants to know that the broker has it. */
	if (r == 0)
		r = outbox_contain(e, c->scope.text, err);
	if (r == 0)
		r = tx_commit(&tx, err);
	if (r == 0)
		store_sync(e->store);
	return r;
}

int
containment_take(struct engine *e, struct containment *c, const struct principal *who,
	struct view request_id, struct err *err)
{
	struct taken taken = {0};
	char why[SCOPE_TEXT + 32];
	int r;

	(void)snprintf(why, sizeof(why), "%s is contained", c->scope.text);
	r = authority_take(e, &c->scope, NULL, who, request_id, why, &taken, err);
	if (r < 0)
		return r;
	c->grants_revoked += taken.grants;
	c->proposals_stopped += taken.proposals;
	return write_counts(e, c, err);
}

static uint32_t
end_sandboxes(struct engine *e, const struct scope *s, const struct principal *who,
	struct view request_id)
{
	uint32_t n = 0;

	list_each (b, &e->sandboxes, struct sandbox, link)
		if (scope_has(s, b->tenant, &b->task) && b->state != SANDBOX_STATE_STOPPING) {
			sandbox_kill(b, SANDBOX_REASON_KILLED, who, request_id);
			n++;
		}
	return n;
}

/* Everything that follows from the row; done again when it is not done yet. */
static int
follow(struct engine *e, struct containment *c, const struct principal *who, struct view request_id,
	struct err *err)
{
	auto_tx struct tx tx = {0};
	int r = tx_begin(&tx, e->store, err);

	if (r == 0)
		r = containment_take(e, c, who, request_id, err);
	if (r == 0)
		r = tx_commit(&tx, err);
	return r;
}

static int
count_ended(struct engine *e, struct containment *c, uint32_t ended, struct err *err)
{
	auto_tx struct tx tx = {0};
	int r;

	if (ended == 0)
		return 0;
	c->sandboxes_ended += ended;
	r = tx_begin(&tx, e->store, err);
	if (r == 0)
		r = write_counts(e, c, err);
	return r == 0 ? tx_commit(&tx, err) : r;
}

int
contain(struct engine *e, const struct scope *s, const char *reason, const struct principal *who,
	struct view request_id, bool restored, struct containment *ret, struct err *err)
{
	struct containment c = {.scope = *s, .since_ms = clock_real_ms(), .restored = restored};
	uint32_t ended;
	int r;

	(void)snprintf(c.reason, sizeof(c.reason), "%s", reason);
	principal_text(who, c.by);
	r = begin(e, &c, who, request_id, err);
	if (r < 0)
		return r;
	outbox_tell(e); /* while the rest is written */
	r = follow(e, &c, who, request_id, err);
	/* Also when that could not be written: the row holds. */
	ended = end_sandboxes(e, s, who, request_id);
	if (r == 0)
		r = count_ended(e, &c, ended, err);
	if (r < 0)
		return r;
	store_sync(e->store);
	outbox_tell(e);
	*ret = c;
	return 0;
}

/* ---- after a restart ---- */

void
contain_resume(struct engine *e)
{
	list_each (s, &e->sandboxes, struct sandbox, link) {
		char scope[SCOPE_TEXT];
		enum denial denial;
		struct err err;

		if (contained(e, s->tenant, &s->task, &denial, scope, &err) < 0)
			log_line("whether a sandbox is contained is not known: %s", err.text);
		else if (denial != DENIAL_NONE)
			sandbox_kill(s, SANDBOX_REASON_KILLED, &principal_engine, view_of(NULL, 0));
	}
}

/* ---- CONTAIN ---- */

void
containment_row(const struct containment *c, uint32_t open, struct msg_containment_row *ret)
{
	*ret = (struct msg_containment_row){.scope = view_str(c->scope.text),
		.reason = view_str(c->reason),
		.by = view_str(c->by),
		.since_ms = c->since_ms,
		.released_ms = c->released_ms,
		.sandboxes_ended = c->sandboxes_ended,
		.grants_revoked = c->grants_revoked,
		.proposals_stopped = c->proposals_stopped,
		.executions_open = open};
}

static int
next_open(struct engine *e, const struct scope *s, uint64_t *seq, struct id *ret, struct err *err)
{
	auto_query struct query q = query_of(e->store, Q_EXECUTION_OPEN_SCOPE);
	int r;

	arg_text(&q, s->tenant);
	arg_id(&q, &s->task);
	arg_u64(&q, *seq);
	arg_u64(&q, 1);
	r = query_next(&q, err);
	if (r <= 0)
		return r;
	*seq = col_u64(&q);
	col_id(&q, ret);
	return 1;
}

/* What may have had an effect and is not settled: a person must look at each. */
static int
send_open(struct engine *e, const struct scope *s, struct reply to, bool *ret_more, struct err *err)
{
	auto_execution struct execution x;
	uint64_t seq = 0;
	size_t bytes = 0;
	unsigned n = 0;
	struct id id;
	int r;

	execution_init(&x, e);
	while ((r = next_open(e, s, &seq, &id, err)) > 0 && n < LIMIT_PAGE_ROWS &&
		bytes < LIMIT_PAGE_BYTES) {
		r = execution_load(&x, &id, err);
		if (r < 0)
			return r;
		execution_answer(&x, to);
		bytes += sizeof(struct msg_execution_row) + x.receipt.n;
		n++;
	}
	*ret_more = r > 0;
	return r < 0 ? r : 0;
}

struct contain_waiter {
	struct outbox_waiter wait;
	struct engine *engine;
	struct reply to;
	struct containment contained;
};

/* The broker has it, or is not there: then it sends nothing either, and is told before it is asked for anything. */
static void
on_containment_told(struct outbox_waiter *w, enum told told)
{
	struct contain_waiter *v = container_of(w, struct contain_waiter, wait);
	struct msg_containment_row row;
	bool more = false;
	uint32_t open = 0;
	struct err err;
	int r = scope_open(v->engine, &v->contained.scope, &open, &err);

	(void)told;
	if (r == 0) {
		containment_row(&v->contained, open, &row);
		REPLY(v->engine, v->to, CONTAINMENT_ROW, containment_row, row);
		r = send_open(v->engine, &v->contained.scope, v->to, &more, &err);
	}
	if (r < 0)
		answer_refused(v->engine, v->to, &err);
	else
		REPLY(v->engine, v->to, END, end, {.more = more});
	free(v);
}

int
on_contain(struct engine *e, struct reply to, const struct msg_contain *m, struct err *err)
{
	char reason[sizeof((struct containment){0}.reason)];
	struct principal p;
	struct contain_waiter *w;
	struct scope s;
	int r = caller_find(e, &m->caller, &p, err);

	if (r == 0)
		r = scope_read(e, &p, m->scope, &s, err);
	if (r < 0)
		return r;
	(void)snprintf(reason, sizeof(reason), "%.*s", VIEW_ARGS(m->reason));
	w = calloc(1, sizeof(*w));
	if (w == NULL)
		return err_set(err, -ENOMEM, "no memory for a containment");
	r = contain(e, &s, reason, &p, m->request_id, false, &w->contained, err);
	if (r < 0) {
		free(w);
		return r;
	}
	w->engine = e;
	w->to = to;
	w->wait.done = on_containment_told;
	(void)snprintf(w->wait.scope, sizeof(w->wait.scope), "%s", s.text);
	outbox_wait(&e->outbox, &w->wait);
	outbox_tell(e);
	return 0;
}

/* ---- CONTAINMENT_LIST ---- */

static int
next_row(struct engine *e, uint64_t before, struct containment *ret, struct err *err)
{
	auto_query struct query q = query_of(e->store, Q_CONTAINMENT_NEXT);
	int r;

	arg_u64(&q, before);
	r = query_next(&q, err);
	if (r > 0)
		read_row(ret, &q);
	return r;
}

/* Of the rows that a token may see: its tenant's and those of its tasks. */
static bool
sees(struct engine *e, const struct principal *p, struct containment *c)
{
	char text[SCOPE_TEXT];
	struct err err;

	memcpy(text, c->scope.text, sizeof(text));
	return scope_read(e, p, view_str(text), &c->scope, &err) == 0;
}

int
on_containment_list(
	struct engine *e, struct reply to, const struct msg_containment_list *m, struct err *err)
{
	struct containment c = {.seq = INT64_MAX};
	struct principal p;
	unsigned n = 0;
	int r = caller_find(e, &m->caller, &p, err);

	if (r < 0)
		return r;
	while ((r = next_row(e, c.seq, &c, err)) > 0 && n < LIMIT_PAGE_ROWS) {
		struct msg_containment_row row;
		uint32_t open = 0;

		if (!sees(e, &p, &c))
			continue;
		r = scope_open(e, &c.scope, &open, err);
		if (r < 0)
			return r;
		containment_row(&c, open, &row);
		REPLY(e, to, CONTAINMENT_ROW, containment_row, row);
		n++;
	}
	if (r >= 0)
		REPLY(e, to, END, end, {.more = r > 0});
	return r < 0 ? r : 0;
}
