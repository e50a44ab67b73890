/* SPDX-License-Identifier: Apache-2.0 */
/* Sandboxes as objects and rows; see sandbox.h. */
#include "engine/sandbox.h"

#include "engine/gate.h"
#include "engine/limits.h"
#include "lib/base/clock.h"
#include "lib/loop/loop.h"

#include <errno.h>

struct sandbox *
sandbox_new(struct engine *e, struct err *err)
{
	struct sandbox *s = calloc(1, sizeof(*s));

	if (s == NULL) {
		(void)err_set(err, -ENOMEM, "no memory for a sandbox");
		return NULL;
	}
	s->engine = e;
	list_init(&s->link);
	list_init(&s->bucket);
	list_init(&s->jobs);
	list_init(&s->waiters);
	buf_init(&s->metadata, 16384);
	return s;
}

static struct link *
bucket_of(struct engine *e, const struct id *id)
{
	return &e->buckets[id->b[0]];
}

void
sandbox_link(struct sandbox *s)
{
	struct engine *e = s->engine;

	list_append(&e->sandboxes, &s->link);
	list_append(bucket_of(e, &s->id), &s->bucket);
	e->sandboxes_n++;
	e->memory_bytes += s->limits.memory_bytes;
	if (!ev_is_active(&e->tick))
		ev_timer_again(e->loop, &e->tick);
}

void
sandbox_free(struct sandbox *s)
{
	struct engine *e = s->engine;

	must(list_empty(&s->jobs) && list_empty(&s->waiters));
	if (!list_empty(&s->link)) {
		e->sandboxes_n--;
		e->memory_bytes -= s->limits.memory_bytes;
	}
	list_remove(&s->link);
	list_remove(&s->bucket);
	ipc_peer_close(s->relay);
	gate_free(s->gate);
	buf_done(&s->metadata);
	loop_free_later(e->loop, s);
}

struct sandbox *
sandbox_live(struct engine *e, const struct id *id)
{
	list_each (s, bucket_of(e, id), struct sandbox, bucket)
		if (id_eq(&s->id, id))
			return s;
	return NULL;
}

bool
sandbox_lives(enum sandbox_state state)
{
	return state != SANDBOX_STATE_GONE && state != SANDBOX_STATE_FAILED;
}

int
sandbox_step(struct sandbox *s, enum sandbox_event event, struct err *err)
{
	return sandbox_next(s->state, event, &s->state, err);
}

/* ---- rows ---- */

static void
arg_limits(struct query *q, const struct limits *l)
{
	arg_u64(q, l->memory_bytes);
	arg_u64(q, l->disk_bytes);
	arg_u64(q, l->disk_inodes);
	arg_u64(q, l->pids);
	arg_u64(q, l->cpu_milli);
	arg_u64(q, l->open_files);
}

int
sandbox_insert(struct sandbox *s, struct err *err)
{
	auto_query struct query q = query_of(s->engine->store, Q_SANDBOX_INSERT);

	arg_id(&q, &s->id);
	arg_id(&q, &s->task);
	arg_text(&q, s->tenant);
	arg_text(&q, s->template_asked);
	arg_text(&q, s->template);
	arg_digest(&q, s->digest);
	arg_limits(&q, &s->limits);
	arg_u64(&q, s->ttl_ms);
	arg_u64(&q, s->ttl_until_ms);
	arg_u64(&q, s->idle_ms);
	arg_u64(&q, s->persistent);
	arg_u64(&q, s->created_ms);
	arg_blob(&q, buf_view(&s->metadata));
	arg_text(&q, s->policy);
	arg_digest(&q, s->policy_digest);
	int r = query_run(&q, err);

	if (r == 0)
		s->seq = store_last_row(s->engine->store);
	return r;
}

/* What SPAWNED and GONE said, kept for display; an old layout shows as nothing. */
static void
read_told(struct sandbox *s, struct view spawned, struct view gone)
{
	struct msg_spawned up;
	struct msg_gone end;
	struct err err;

	if (spawned.n != 0 && msg_spawned_get(spawned, &up, &err) == 0) {
		s->facts = up.facts;
		s->timings = up.timings;
	}
	if (gone.n != 0 && msg_gone_get(gone, &end, &err) == 0) {
		s->proof = end.proof;
		s->usage = end.usage;
	}
}

static int
col_state(struct query *q, struct sandbox *s, struct err *err)
{
	struct view state = col_view(q), reason = col_view(q);

	if (sandbox_state_parse(state, &s->state) < 0 ||
		sandbox_reason_parse(reason, &s->reason) < 0)
		return err_set(err, -EUCLEAN, "a sandbox without a state");
	return 0;
}

struct sandbox *
sandbox_load(struct engine *e, const struct id *id, struct err *err)
{
	auto_sandbox struct sandbox *s = sandbox_new(e, err);
	auto_query struct query q = query_of(e->store, Q_SANDBOX_GET);
	struct view spawned, gone;

	if (s == NULL)
		return NULL;
	arg_id(&q, id);
	if (query_one(&q, err) < 0)
		return NULL;
	col_id(&q, &s->id);
	col_id(&q, &s->task);
	col_text(&q, s->tenant, sizeof(s->tenant));
	col_text(&q, s->template_asked, sizeof(s->template_asked));
	col_text(&q, s->template, sizeof(s->template));
	col_digest(&q, s->digest);
	if (col_state(&q, s, err) < 0)
		return NULL;
	s->limits.memory_bytes = col_u64(&q);
	s->limits.disk_bytes = col_u64(&q);
	s->limits.disk_inodes = (uint32_t)col_u64(&q);
	s->limits.pids = (uint32_t)col_u64(&q);
	s->limits.cpu_milli = (uint32_t)col_u64(&q);
	s->limits.open_files = (uint32_t)col_u64(&q);
	s->ttl_ms = col_u64(&q);
	s->ttl_until_ms = col_u64(&q);
	s->idle_ms = col_u64(&q);
	s->persistent = col_u64(&q) != 0;
	s->created_ms = col_u64(&q);
	s->ended_ms = col_u64(&q);
	s->boot_us = (uint32_t)col_u64(&q);
	s->residue = col_u64(&q) != 0;
	buf_add_view(&s->metadata, col_view(&q));
	spawned = col_view(&q);
	gone = col_view(&q);
	read_told(s, spawned, gone);
	s->seq = col_u64(&q);
	col_text(&q, s->policy, sizeof(s->policy));
	col_digest(&q, s->policy_digest);
	if (buf_check(&s->metadata) < 0) {
		(void)err_set(err, -ENOMEM, "no memory for a sandbox");
		return NULL;
	}
	return take_ptr(s);
}

int
sandbox_find(struct engine *e, const struct principal *p, const struct id *id, struct sandbox **ret,
	struct sandbox **ret_loaded, struct err *err)
{
	struct sandbox *s = sandbox_live(e, id);
	auto_sandbox struct sandbox *loaded = NULL;

	if (s == NULL) {
		loaded = sandbox_load(e, id, err);
		if (loaded == NULL && err->code != -ENOENT)
			return err->code;
		s = loaded;
	}
	if (s == NULL || !caller_sees(p, s->tenant, s->template))
		return REFUSE(err, NOT_FOUND,
			"no such sandbox; `demilune sandbox list` (GET /v1/sandboxes) has what "
			"lives");
	*ret = s;
	*ret_loaded = take_ptr(loaded);
	return 0;
}

int
sandbox_find_live(struct engine *e, const struct principal *p, const struct id *id,
	struct sandbox **ret, struct err *err)
{
	auto_sandbox struct sandbox *loaded = NULL;
	struct sandbox *s;
	int r = sandbox_find(e, p, id, &s, &loaded, err);

	if (r < 0)
		return r;
	if (loaded != NULL)
		return REFUSE(err, SANDBOX_ENDED,
			"the sandbox ended (%s); make another one for its task",
			sandbox_reason_text(s->reason));
	*ret = s;
	return 0;
}

void
sandbox_touch(struct sandbox *s)
{
	s->touched_ms = clock_mono_ms();
}

int
sandbox_audit(struct sandbox *s, const char *event, const struct principal *who,
	struct view request_id, void (*data)(struct canon_writer *, const void *), const void *arg,
	struct err *err)
{
	const struct audit_event ev = {.event = event,
		.tenant = s->tenant,
		.task = &s->task,
		.sandbox = &s->id,
		.who = who,
		.request_id = request_id,
		.data = data,
		.arg = arg};

	return audit_append(s->engine, &ev, err);
}

void
sandbox_answer(struct sandbox *s, struct reply to, bool replayed)
{
	uint64_t now = clock_real_ms(), mono = clock_mono_ms();
	bool lives = sandbox_lives(s->state);
	struct msg_sandbox_row row = {.sandbox = s->id,
		.task = s->task,
		.tenant = view_str(s->tenant),
		.template_asked = view_str(s->template_asked),
		.template = view_str(s->template),
		.state = s->state,
		.reason = s->reason,
		.boundary = BOUNDARY_CONTAINER,
		.limits = s->limits,
		.facts = s->facts,
		.proof = s->proof,
		.usage = s->usage,
		.created_ms = s->created_ms,
		.ended_ms = s->ended_ms,
		.ttl_ms = s->ttl_ms,
		.ttl_left_ms = lives && s->ttl_until_ms > now ? s->ttl_until_ms - now : 0,
		.idle_ms = s->idle_ms,
		.idle_since_ms = lives ? now - (mono - s->touched_ms) : 0,
		.persistent = s->persistent,
		.boot_us = s->boot_us,
		.timings = s->timings,
		.replayed = replayed,
		.policy = view_str(s->policy),
		.metadata = buf_view(&s->metadata)};

	memcpy(row.template_digest, s->digest, 32);
	memcpy(row.policy_digest, s->policy_digest, 32);
	REPLY(s->engine, to, SANDBOX_ROW, sandbox_row, row);
}

/* ---- waiters ---- */

int
wait_add(struct sandbox *s, enum wait_kind kind, struct reply to, struct waiter **ret,
	struct err *err)
{
	struct waiter *w = calloc(1, sizeof(*w));

	if (w == NULL)
		return err_set(err, -ENOMEM, "no memory for a request");
	w->kind = kind;
	w->to = to;
	list_append(&s->waiters, &w->link);
	*ret = w;
	return 0;
}

struct waiter *
wait_take(struct sandbox *s, enum wait_kind kind)
{
	list_each (w, &s->waiters, struct waiter, link)
		if (w->kind == kind) {
			list_remove(&w->link);
			return w;
		}
	return NULL;
}

void
wait_answer(struct sandbox *s, enum wait_kind kind, const struct err *why)
{
	for (struct waiter *w = wait_take(s, kind); w != NULL; w = wait_take(s, kind)) {
		if (why != NULL)
			answer_refused(s->engine, w->to, why);
		else
			sandbox_answer(s, w->to, false);
		free(w);
	}
}

void
wait_expire(struct sandbox *s, uint64_t now_ms)
{
	struct err err;

	/* The supervisor may still answer, so a waiter stays in the list for the order; its request ends. */
	(void)REFUSE(&err, UNAVAILABLE,
		"the host did not do it within %llu s; look again in a moment",
		(unsigned long long)(LIMIT_STEP_MS / 1000));
	list_each (w, &s->waiters, struct waiter, link)
		if (w->deadline_ms != 0 && now_ms >= w->deadline_ms && w->to.generation != 0) {
			answer_refused(s->engine, w->to, &err);
			w->to.generation = 0;
		}
}
