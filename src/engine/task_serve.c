/* SPDX-License-Identifier: Apache-2.0 */
/* Requests about tasks and their audit; see task.h. */
#include "engine/contain.h"
#include "engine/gone.h"
#include "engine/input.h"
#include "engine/key.h"
#include "engine/labels.h"
#include "engine/limit.h"
#include "engine/limits.h"
#include "engine/revision.h"
#include "engine/task.h"
#include "engine/template.h"

#include <errno.h>

static int
numbers(struct task *t, struct msg_task_row *row, struct err *err)
{
	auto_query struct query q = query_of(t->engine->store, Q_TASK_NUMBERS);
	int r;

	arg_id(&q, &t->id);
	r = query_one(&q, err);
	if (r < 0)
		return r;
	row->sandboxes = (uint32_t)col_u64(&q);
	row->jobs = (uint32_t)col_u64(&q);
	row->inputs = (uint32_t)col_u64(&q);
	row->records = col_u64(&q);
	return 0;
}

static int
answer(struct task *t, struct reply to, struct err *err)
{
	struct msg_task_row row = {.task = t->id,
		.tenant = view_str(t->tenant),
		.template = view_str(t->template),
		.state = t->state,
		.created_ms = t->created_ms,
		.closed_ms = t->closed_ms,
		.policy = view_str(t->policy),
		.labels = buf_view(&t->labels)};
	int r = numbers(t, &row, err);

	if (r < 0)
		return r;
	list_each (s, &t->engine->sandboxes, struct sandbox, link)
		if (id_eq(&s->task, &t->id)) {
			row.sandboxes_live++;
			row.live_sandbox = s->id; /* the newest */
		}
	REPLY(t->engine, to, TASK_ROW, task_row, row);
	return 0;
}

/* ---- create ---- */

static void
put_task(struct canon_writer *w, const void *arg)
{
	const struct task *t = arg;

	put_u64(w, "idle_ms", t->idle_ms);
	if (t->labels.n <= 2048) {
		put_strings(w, "labels", buf_view(&t->labels));
	} else {
		uint8_t digest[32];

		sha256_of(buf_view(&t->labels), digest);
		put_digest(w, "labels_digest", digest);
	}
	put_limits(w, "limits", &t->limits);
	if (t->policy[0] != '\0')
		put_str(w, "policy", t->policy);
	put_str(w, "template", t->template);
	put_u64(w, "ttl_ms", t->ttl_ms);
}

static int
check_count(struct engine *e, const char *tenant, struct err *err)
{
	auto_query struct query q = query_of(e->store, Q_TASK_COUNT_EXPLICIT);
	int r;

	arg_text(&q, tenant);
	r = query_one(&q, err);
	if (r == 0 && col_u64(&q) >= e->settings.tenant_max_tasks)
		return REFUSE(err, QUOTA, "the tenant has %u open tasks; close one first",
			e->settings.tenant_max_tasks);
	return r;
}

static int
compose(struct task *t, const struct principal *p, const struct msg_task_create *m, struct err *err)
{
	const struct settings *c = &t->engine->settings;
	struct template *template;
	int r = labels_check(m->labels, err);

	if (r == 0)
		r = template_find(t->engine, m->template, &template, err);
	if (r == 0 && p->template[0] != '\0' && strcmp(p->template, template->name) != 0)
		r = REFUSE(err, FORBIDDEN, "the token is for the template %s only", p->template);
	if (r == 0)
		r = limits_resolve(c, &m->limits, &c->default_limits, &t->limits, err);
	if (r == 0)
		r = ttl_resolve(c, m->ttl_ms, c->default_ttl_ms, &t->ttl_ms, err);
	if (r == 0)
		r = idle_resolve(m->idle_ms, c->default_idle_ms, &t->idle_ms, err);
	if (r == 0)
		r = policy_choose(t->engine, t->tenant, m->policy, t->policy, err);
	if (r == 0)
		r = check_count(t->engine, t->tenant, err);
	if (r < 0)
		return r;
	(void)snprintf(t->template, sizeof(t->template), "%s", template->name);
	buf_add_view(&t->labels, m->labels);
	return buf_check(&t->labels) < 0 ? err_set(err, -ENOMEM, "no memory for a task") : 0;
}

static int
audit_of(struct task *t, const char *event, const struct principal *who, struct view request_id,
	void (*data)(struct canon_writer *, const void *), struct err *err)
{
	const struct audit_event ev = {.event = event,
		.tenant = t->tenant,
		.task = &t->id,
		.who = who,
		.request_id = request_id,
		.data = data,
		.arg = t};

	return audit_append(t->engine, &ev, err);
}

static int
make(struct task *t, const struct principal *p, const struct msg_task_create *m, struct err *err)
{
	auto_tx struct tx tx = {0};
	int r = tx_begin(&tx, t->engine->store, err);

	principal_text(p, t->owner);
	if (r == 0)
		r = task_insert(t, err);
	if (r == 0)
		r = key_insert(
			t->engine, t->tenant, m->idempotency_key, m->idempotency_body, &t->id, err);
	if (r == 0)
		r = audit_refuse(
			audit_of(t, "task.create", p, m->request_id, put_task, err), "labels", err);
	return r == 0 ? tx_commit(&tx, err) : r;
}

int
on_task_create(struct engine *e, struct reply to, const struct msg_task_create *m, struct err *err)
{
	auto_task struct task t;
	struct principal p;
	struct id made;
	int r;

	task_init(&t, e);
	if (e->stopping)
		return REFUSE(err, UNAVAILABLE, "the host is stopping; nothing new is made");
	r = caller_find(e, &m->caller, &p, err);
	if (r == 0)
		r = caller_tenant(&p, m->tenant, t.tenant, err);
	if (r == 0)
		r = key_find(e, t.tenant, m->idempotency_key, m->idempotency_body, &made, err);
	if (r > 0) {
		r = task_find(&t, &p, &made, err);
		return r == 0 ? answer(&t, to, err) : r;
	}
	if (r == 0)
		r = contain_refuse(e, t.tenant, NULL, err);
	if (r == 0)
		r = compose(&t, &p, m, err);
	if (r == 0)
		r = make(&t, &p, m, err);
	if (r < 0)
		return r;
	store_sync(e->store);
	return answer(&t, to, err);
}

/* ---- looking ---- */

/* The query of one page, its arguments bound. */
static struct query
page_query(struct engine *e, const struct principal *p, const struct msg_task_list *m,
	uint64_t before, uint64_t limit)
{
	struct view label = m->label, key = view_of(NULL, 0), value = view_of(NULL, 0);
	struct query q;

	if (labels_next(&label, &key, &value)) {
		q = query_of(e->store, Q_TASK_PAGE_LABEL);
		arg_view(&q, key);
		arg_view(&q, value);
		arg_text(&q, p->tenant);
		arg_text(&q, p->template);
	} else if (p->admin) {
		q = query_of(e->store, Q_TASK_PAGE_ALL);
	} else {
		q = query_of(e->store, Q_TASK_PAGE);
		arg_text(&q, p->tenant);
		arg_text(&q, p->template);
	}
	arg_u64(&q, before);
	arg_u64(&q, limit);
	return q;
}

int
on_task_list(struct engine *e, struct reply to, const struct msg_task_list *m, struct err *err)
{
	uint64_t limit = m->limit == 0 || m->limit > LIMIT_PAGE_ROWS ? LIMIT_PAGE_ROWS : m->limit,
		 n = 0;
	uint64_t before = INT64_MAX;
	size_t bytes = 0;
	auto_task struct task t;
	struct principal p;
	int r;

	task_init(&t, e);
	r = caller_find(e, &m->caller, &p, err);
	if (r == 0 && !id_is_zero(&m->after)) {
		r = task_find(&t, &p, &m->after, err);
		before = t.seq;
	}
	if (r < 0)
		return r;
	auto_query struct query q = page_query(e, &p, m, before, limit + 1);
	for (r = query_next(&q, err); r > 0 && n < limit && bytes < LIMIT_PAGE_BYTES;
		r = query_next(&q, err), n++) {
		struct id id;

		col_id(&q, &id);
		r = task_load(&t, &id, err);
		if (r == 0)
			r = answer(&t, to, err);
		if (r < 0)
			return r;
		bytes += 512 + t.labels.n;
	}
	if (r >= 0)
		REPLY(e, to, END, end, {.more = r > 0});
	return r < 0 ? r : 0;
}

int
on_task_get(struct engine *e, struct reply to, const struct msg_task_get *m, struct err *err)
{
	auto_task struct task t;
	struct principal p;
	int r;

	task_init(&t, e);
	r = caller_find(e, &m->caller, &p, err);
	if (r == 0)
		r = task_find_name(&t, &p, m->name, err);
	return r == 0 ? answer(&t, to, err) : r;
}

/* ---- close ---- */

int
on_task_close(struct engine *e, struct reply to, const struct msg_task_close *m, struct err *err)
{
	auto_task struct task t;
	struct principal p;
	auto_tx struct tx tx = {0};
	int r;

	task_init(&t, e);
	r = caller_find(e, &m->caller, &p, err);
	if (r == 0)
		r = task_find(&t, &p, &m->task, err);
	if (r < 0)
		return r;
	if (t.closed_ms == 0) {
		r = tx_begin(&tx, e->store, err);
		if (r == 0)
			r = task_step(&t, TASK_CLOSE, err);
		if (r == 0)
			r = audit_of(&t, "task.close", &p, view_of(NULL, 0), NULL, err);
		if (r == 0)
			r = tx_commit(&tx, err);
		if (r < 0)
			return r;
		inputs_forget(e, &t.id);
	}
	list_each (s, &e->sandboxes, struct sandbox, link)
		if (id_eq(&s->task, &t.id))
			sandbox_kill(s, SANDBOX_REASON_TASK_CLOSED, &p, view_of(NULL, 0));
	checkpoint_soon(e);
	store_sync(e->store);
	return answer(&t, to, err);
}

/* ---- audit ---- */

static int
send_records(struct engine *e, struct reply to, const struct id *chain,
	const struct msg_audit_read *m, struct err *err)
{
	uint64_t limit = m->limit == 0 || m->limit > LIMIT_PAGE_ROWS ? LIMIT_PAGE_ROWS : m->limit,
		 n = 0;
	size_t bytes = 0;
	auto_query struct query q = query_of(e->store, Q_AUDIT_PAGE);
	int r;

	arg_id(&q, chain);
	arg_u64(&q, m->after > INT64_MAX ? INT64_MAX : m->after);
	arg_u64(&q, limit + 1);
	for (r = query_next(&q, err); r > 0 && n < limit && bytes < LIMIT_PAGE_BYTES;
		r = query_next(&q, err), n++) {
		struct msg_audit_row row = {.number = col_u64(&q)};

		row.leaf = col_u64(&q) - 1;
		col_digest(&q, row.previous);
		col_digest(&q, row.record_digest);
		row.record = col_view(&q);
		bytes += row.record.n;
		REPLY(e, to, AUDIT_ROW, audit_row, row);
	}
	if (r >= 0)
		REPLY(e, to, END, end, {.more = r > 0});
	return r < 0 ? r : 0;
}

int
on_audit_read(struct engine *e, struct reply to, const struct msg_audit_read *m, struct err *err)
{
	static const struct id host_chain;
	auto_task struct task t;
	struct principal p;
	int r;

	task_init(&t, e);
	r = caller_find(e, &m->caller, &p, err);
	if (r == 0 && p.admin && view_is(m->name, "host"))
		return send_records(e, to, &host_chain, m, err);
	if (r == 0)
		r = task_find_name(&t, &p, m->name, err);
	return r == 0 ? send_records(e, to, &t.id, m, err) : r;
}
