/* SPDX-License-Identifier: Apache-2.0 */
/* From a request to SPAWN; see create.h. The answers of supervisor and relay: spawn.c. */
#include "engine/create.h"

#include "engine/contain.h"
#include "engine/gone.h"
#include "engine/gate.h"
#include "engine/key.h"
#include "engine/labels.h"
#include "engine/limit.h"
#include "engine/limits.h"
#include "engine/loan.h"
#include "engine/revision.h"
#include "engine/spawn.h"
#include "engine/task.h"
#include "lib/base/clock.h"

#include <errno.h>

/* A creation after its request was read. */
struct ask {
	const struct principal *who;
	struct task *task; /* an old one, or a new one to be inserted */
	bool new_task;
	struct view template;     /* name or alias */
	const char *policy;       /* "" = none */
	struct limits limits;     /* asked for, zeros = default */
	uint64_t ttl_ms, idle_ms; /* the same */
	bool persistent;
	struct view metadata, request_id;
	const uint8_t *key, *body; /* 32 bytes */
	const char *event;
};

static void
put_create(struct canon_writer *w, const void *arg)
{
	const struct sandbox *s = arg;

	put_u64(w, "idle_ms", s->persistent ? 0 : s->idle_ms);
	put_limits(w, "limits", &s->limits);
	/* A label is for people; the record names small ones and the digest of large ones. */
	if (s->metadata.n <= 2048) {
		put_strings(w, "metadata", buf_view(&s->metadata));
	} else {
		uint8_t digest[32];

		sha256_of(buf_view(&s->metadata), digest);
		put_digest(w, "metadata_digest", digest);
	}
	put_bool(w, "persistent", s->persistent);
	if (s->gate != NULL) {
		put_str(w, "policy", s->policy);
		put_digest(w, "policy_digest", s->policy_digest);
	}
	put_str(w, "template", s->template);
	put_str(w, "template_asked", s->template_asked);
	put_digest(w, "template_digest", s->digest);
	put_u64(w, "ttl_ms", s->ttl_ms);
}

static int
record(struct sandbox *s, const struct ask *a, struct err *err)
{
	struct engine *e = s->engine;
	auto_tx struct tx tx = {0};
	int r = tx_begin(&tx, e->store, err);

	if (r == 0 && a->new_task) {
		principal_text(a->who, a->task->owner);
		r = task_insert(a->task, err);
	}
	s->task = a->task->id;
	if (r == 0 && s->gate != NULL)
		r = revision_keep(e, s->gate->policy, err);
	if (r == 0)
		r = sandbox_insert(s, err);
	if (r == 0 && s->gate != NULL)
		r = loan_begin(s, err);
	if (r == 0)
		r = key_insert(e, s->tenant, a->key, a->body, &s->id, err);
	if (r == 0)
		r = audit_refuse(
			sandbox_audit(s, a->event, a->who, a->request_id, put_create, s, err),
			"metadata", err);
	return r == 0 ? tx_commit(&tx, err) : r;
}

/* The revision that is the policy's now: its own for life. */
static int
pin(struct sandbox *s, const char *name, struct err *err)
{
	const struct policy *policy;

	if (name[0] == '\0')
		return 0;
	if (revision_now(s->engine, s->tenant, name, &policy, err) < 0)
		return err->code;
	(void)snprintf(s->policy, sizeof(s->policy), "%s", name);
	memcpy(s->policy_digest, policy->digest, 32);
	return gate_new(s, policy, err);
}

/* Template, limits, times and policy of the new sandbox. */
static int
resolve(struct sandbox *s, const struct ask *a, struct template **ret, struct err *err)
{
	struct engine *e = s->engine;
	struct template *t;
	int r = template_find(e, a->template, &t, err);

	if (r < 0)
		return r;
	if (a->who->template[0] != '\0' && strcmp(a->who->template, t->name) != 0)
		return REFUSE(
			err, FORBIDDEN, "the token is for the template %s only", a->who->template);
	r = limits_resolve(&e->settings, &a->limits, &a->task->limits, &s->limits, err);
	if (r == 0)
		r = ttl_resolve(&e->settings, a->ttl_ms, a->task->ttl_ms, &s->ttl_ms, err);
	if (r == 0)
		r = idle_resolve(a->idle_ms, a->task->idle_ms, &s->idle_ms, err);
	if (r == 0)
		r = labels_check(a->metadata, err);
	if (r == 0)
		r = pin(s, a->policy, err);
	if (r < 0)
		return r;
	memcpy(s->template_asked, a->template.p, a->template.n); /* a name: at most 63 bytes */
	(void)snprintf(s->template, sizeof(s->template), "%s", t->name);
	memcpy(s->digest, t->digest, 32);
	buf_add_view(&s->metadata, a->metadata);
	if (buf_check(&s->metadata) < 0)
		return err_set(err, -ENOMEM, "no memory for a sandbox");
	s->persistent = a->persistent;
	*ret = t;
	return 0;
}

/* A new task gets what its first sandbox got. */
static void
inherit(struct task *task, const struct sandbox *s)
{
	(void)snprintf(task->template, sizeof(task->template), "%s", s->template);
	task->limits = s->limits;
	task->ttl_ms = s->ttl_ms;
	task->idle_ms = s->idle_ms;
}

static int
create(struct engine *e, const struct ask *a, struct reply to, struct err *err)
{
	auto_sandbox struct sandbox *s = sandbox_new(e, err);
	struct template *t = NULL;
	struct waiter *w;
	struct sandbox *made;
	int r;

	if (s == NULL)
		return err->code;
	(void)snprintf(s->tenant, sizeof(s->tenant), "%s", a->task->tenant);
	id_new(&s->id);
	s->begun_us = clock_mono_us();
	s->created_ms = clock_real_ms();
	r = resolve(s, a, &t, err);
	if (r == 0)
		r = quota_check(e, s->tenant, s->limits.memory_bytes, err);
	if (r == 0)
		r = rate_take(e, s->tenant, clock_mono_ms(), err);
	if (r < 0)
		return r;
	s->ttl_until_ms = s->created_ms + s->ttl_ms;
	if (a->new_task)
		inherit(a->task, s);
	r = record(s, a, err);
	if (r < 0)
		return r;
	made = take_ptr(s);
	sandbox_link(made);
	sandbox_touch(made);
	r = wait_add(made, WAIT_READY, to, &w, err);
	if (r < 0) {
		sandbox_kill(
			made, SANDBOX_REASON_SPAWN_FAILED, &principal_engine, view_of(NULL, 0));
		return r;
	}
	spawn_or_wait(made, t);
	store_sync(e->store); /* while the supervisor works */
	return 0;
}

/* The same request again: what the first one made, or makes. */
static int
replay(struct engine *e, const struct principal *p, const struct id *id, struct reply to,
	struct err *err)
{
	auto_sandbox struct sandbox *loaded = NULL;
	struct sandbox *s;
	struct waiter *w;
	int r = sandbox_find(e, p, id, &s, &loaded, err);

	if (r < 0)
		return r;
	if (s->state == SANDBOX_STATE_CREATING)
		return wait_add(s, WAIT_READY, to, &w, err);
	sandbox_answer(s, to, true);
	return 0;
}

static int
refuse_while_stopping(const struct engine *e, struct err *err)
{
	return e->stopping ? REFUSE(err, UNAVAILABLE, "the host is stopping; nothing new is made")
			   : 0;
}

/* The task that a creation names, or a new one like the request. */
static int
find_task(struct engine *e, const struct msg_sandbox_create *m, const struct principal *p,
	struct task *task, struct err *err)
{
	int r = caller_tenant(p, m->tenant, task->tenant, err);

	if (r == 0 && id_is_zero(&m->task))
		r = policy_choose(e, task->tenant, m->policy, task->policy, err);
	if (r < 0 || id_is_zero(&m->task)) {
		task->implicit = true;
		task->limits = e->settings.default_limits;
		task->ttl_ms = e->settings.default_ttl_ms;
		task->idle_ms = e->settings.default_idle_ms;
		buf_add_view(&task->labels, m->metadata);
		return r;
	}
	r = task_find(task, p, &m->task, err);
	if (r == 0 && m->tenant.n != 0 && !view_is(m->tenant, task->tenant))
		return REFUSE(err, NOT_FOUND, "no such task of this tenant");
	if (r == 0 && m->policy.n != 0 &&
		!view_is(m->policy, task->policy[0] != '\0' ? task->policy : "none"))
		return REFUSE(err, CONFLICT,
			"the task has another policy (%s); make another task for this one",
			task->policy[0] != '\0' ? task->policy : "none");
	return r == 0 ? task_check_open(task, err) : r;
}

int
on_sandbox_create(
	struct engine *e, struct reply to, const struct msg_sandbox_create *m, struct err *err)
{
	auto_task struct task task;
	struct principal p;
	struct ask a;
	struct id made;
	int r;

	task_init(&task, e);
	r = refuse_while_stopping(e, err);
	if (r == 0)
		r = caller_find(e, &m->caller, &p, err);
	if (r == 0)
		r = find_task(e, m, &p, &task, err);
	if (r == 0)
		r = key_find(e, task.tenant, m->idempotency_key, m->idempotency_body, &made, err);
	if (r != 0)
		return r < 0 ? r : replay(e, &p, &made, to, err);
	r = contain_refuse(e, task.tenant, id_is_zero(&m->task) ? NULL : &task.id, err);
	if (r < 0)
		return r;
	a = (struct ask){.who = &p,
		.task = &task,
		.new_task = id_is_zero(&m->task),
		.template = m->template.n != 0 ? m->template : view_str(task.template),
		.policy = task.policy,
		.limits = m->limits,
		.ttl_ms = m->ttl_ms,
		.idle_ms = m->idle_ms,
		.persistent = m->persistent,
		.metadata = m->metadata,
		.request_id = m->request_id,
		.key = m->idempotency_key,
		.body = m->idempotency_body,
		.event = "sandbox.create"};
	return create(e, &a, to, err);
}

int
on_task_resume(struct engine *e, struct reply to, const struct msg_task_resume *m, struct err *err)
{
	static const uint8_t no_key[32];
	auto_task struct task task;
	struct principal p;
	struct ask a;
	int r;

	task_init(&task, e);
	r = refuse_while_stopping(e, err);
	if (r == 0)
		r = caller_find(e, &m->caller, &p, err);
	if (r == 0)
		r = task_find(&task, &p, &m->task, err);
	if (r == 0)
		r = task_check_open(&task, err);
	if (r == 0)
		r = contain_refuse(e, task.tenant, &task.id, err);
	if (r < 0)
		return r;
	a = (struct ask){.who = &p,
		.task = &task,
		.template = view_str(task.template),
		.policy = task.policy,
		.metadata = buf_view(&task.labels),
		.request_id = m->request_id,
		.key = no_key,
		.body = no_key,
		.event = "task.resume"};
	return create(e, &a, to, err);
}
