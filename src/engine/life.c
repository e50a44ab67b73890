/* SPDX-License-Identifier: Apache-2.0 */
/* Requests about living sandboxes; see life.h. The clock stands in tick.c. */
#include "engine/life.h"

#include "engine/gone.h"
#include "engine/job.h"
#include "engine/labels.h"
#include "engine/limit.h"
#include "engine/limits.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

#include <errno.h>

enum { SET_TTL = 1, SET_IDLE = 2, SET_PERSISTENT = 4 };

/* ---- looking ---- */

static bool
listed(const struct sandbox *s, const struct principal *p, const struct msg_sandbox_list *m)
{
	if (!caller_sees(p, s->tenant, s->template) || s->state == SANDBOX_STATE_CREATING)
		return false;
	return labels_match(buf_view(&s->metadata), m->label);
}

int
on_sandbox_list(
	struct engine *e, struct reply to, const struct msg_sandbox_list *m, struct err *err)
{
	struct principal p;
	uint64_t limit = m->limit == 0 || m->limit > LIMIT_PAGE_ROWS ? LIMIT_PAGE_ROWS : m->limit;
	auto_sandbox struct sandbox *loaded = NULL;
	struct sandbox *last = NULL; /* it may have ended since */
	bool more = false;
	size_t bytes = 0;
	int r = caller_find(e, &m->caller, &p, err);

	if (r == 0 && !id_is_zero(&m->after))
		r = sandbox_find(e, &p, &m->after, &last, &loaded, err);
	if (r < 0)
		return r;
	list_each (s, &e->sandboxes, struct sandbox, link) {
		if ((last != NULL && s->seq <= last->seq) || !listed(s, &p, m))
			continue;
		more = limit == 0 || bytes > LIMIT_PAGE_BYTES;
		if (!more) {
			sandbox_answer(s, to, false);
			bytes += 1024 + s->metadata.n;
			limit--;
		}
	}
	REPLY(e, to, END, end, {.more = more});
	return 0;
}

int
on_sandbox_get(struct engine *e, struct reply to, const struct msg_sandbox_get *m, struct err *err)
{
	auto_sandbox struct sandbox *loaded = NULL;
	struct sandbox *s;
	struct principal p;
	int r = caller_find(e, &m->caller, &p, err);

	if (r == 0)
		r = sandbox_find(e, &p, &m->sandbox, &s, &loaded, err);
	if (r == 0)
		sandbox_answer(s, to, false);
	return r;
}

/* ---- kill ---- */

int
on_sandbox_kill(
	struct engine *e, struct reply to, const struct msg_sandbox_kill *m, struct err *err)
{
	auto_sandbox struct sandbox *loaded = NULL;
	struct sandbox *s;
	struct principal p;
	struct waiter *w;
	int r = caller_find(e, &m->caller, &p, err);

	if (r == 0)
		r = sandbox_find(e, &p, &m->sandbox, &s, &loaded, err);
	if (r < 0)
		return r;
	if (loaded != NULL) {
		sandbox_answer(s, to, false); /* killing twice is no fault */
		return 0;
	}
	r = wait_add(s, WAIT_GONE, to, &w, err);
	if (r < 0)
		return r;
	w->deadline_ms = clock_mono_ms() + LIMIT_STEP_MS;
	sandbox_kill(s, SANDBOX_REASON_KILLED, &p, view_of(NULL, 0));
	return 0;
}

/* ---- freeze ---- */

static void
put_frozen(struct canon_writer *w, const void *arg)
{
	put_bool(w, "frozen", *(const bool *)arg);
}

static int
record_asked(struct sandbox *s, const struct principal *p, bool frozen, struct err *err)
{
	auto_tx struct tx tx = {0};
	int r = tx_begin(&tx, s->engine->store, err);

	if (r == 0)
		r = sandbox_audit(
			s, "sandbox.freeze", p, view_of(NULL, 0), put_frozen, &frozen, err);
	return r == 0 ? tx_commit(&tx, err) : r;
}

static int
check_usable(const struct sandbox *s, struct err *err)
{
	if (s->state == SANDBOX_STATE_CREATING)
		return REFUSE(err, CONFLICT,
			"the sandbox is being made; its creation answers when it is ready");
	if (s->state == SANDBOX_STATE_STOPPING)
		return REFUSE(err, SANDBOX_ENDED, "the sandbox is ending (%s)",
			sandbox_reason_text(s->reason));
	return 0;
}

int
on_sandbox_freeze(
	struct engine *e, struct reply to, const struct msg_sandbox_freeze *m, struct err *err)
{
	struct principal p;
	struct sandbox *s = NULL;
	struct waiter *w;
	int r = caller_find(e, &m->caller, &p, err);

	if (r == 0)
		r = sandbox_find_live(e, &p, &m->sandbox, &s, err);
	if (r == 0)
		r = check_usable(s, err);
	if (r == 0)
		r = record_asked(s, &p, m->frozen, err);
	if (r == 0)
		r = wait_add(s, WAIT_FROZEN, to, &w, err);
	if (r < 0)
		return r;
	w->frozen = m->frozen;
	w->deadline_ms = clock_mono_ms() + LIMIT_STEP_MS;
	sandbox_touch(s);
	IPC_SEND(e->supervisor, 0, FREEZE, freeze, {.sandbox = s->id, .frozen = m->frozen});
	return 0;
}

int
frozen_audit(struct sandbox *s, struct err *err)
{
	return sandbox_audit(s, "sandbox.frozen", &principal_engine, view_of(NULL, 0), put_frozen,
		&s->frozen, err);
}

static int
record_frozen(struct sandbox *s, struct err *err)
{
	auto_tx struct tx tx = {0};
	int r = tx_begin(&tx, s->engine->store, err);

	if (r < 0)
		return r;
	auto_query struct query q = query_of(s->engine->store, Q_SANDBOX_STATE);
	arg_text(&q, sandbox_state_text(s->state));
	arg_text(&q, sandbox_reason_text(s->reason));
	arg_id(&q, &s->id);
	r = query_run(&q, err);
	query_cleanup(&q);
	if (r == 0)
		r = frozen_audit(s, err);
	return r == 0 ? tx_commit(&tx, err) : r;
}

void
frozen_again(struct sandbox *s)
{
	struct err err;
	int r = record_frozen(s, &err);

	if (r < 0 && !s->frozen_due)
		log_line("a freeze is not recorded yet: %s", err.text);
	s->frozen_due = r < 0;
}

int
on_frozen(struct engine *e, const struct msg_frozen *m, struct err *err)
{
	struct sandbox *s = sandbox_live(e, &m->sandbox);
	struct waiter *w = s != NULL ? wait_take(s, WAIT_FROZEN) : NULL;
	struct err why = {0};

	if (w == NULL)
		return err_set(err, -EPROTO, "FROZEN that nobody asked for");
	if (s->state == SANDBOX_STATE_STOPPING) {
		(void)REFUSE(&why, SANDBOX_ENDED, "the sandbox is ending (%s)",
			sandbox_reason_text(s->reason));
	} else if (m->code < 0 || m->frozen != w->frozen) {
		(void)REFUSE(&why, CONFLICT, "the kernel did not do it: %.150s", m->text);
	} else {
		must(sandbox_step(s, m->frozen ? SANDBOX_FREEZE : SANDBOX_THAW, &why) == 0);
		/* The kernel has done it; a record that fails now is tried again by the tick. */
		s->frozen = m->frozen;
		frozen_again(s);
	}
	if (why.code < 0)
		answer_refused(e, w->to, &why);
	else
		sandbox_answer(s, w->to, false);
	free(w);
	return 0;
}

/* ---- times ---- */

static void
put_life(struct canon_writer *w, const void *arg)
{
	const struct msg_sandbox_life *m = arg;

	if ((m->set & SET_IDLE) != 0)
		put_u64(w, "idle_ms", m->idle_ms);
	if ((m->set & SET_PERSISTENT) != 0)
		put_bool(w, "persistent", m->persistent);
	if ((m->set & SET_TTL) != 0)
		put_u64(w, "ttl_ms", m->ttl_ms);
}

/* What the supervisor made of it. */
static void
put_granted(struct canon_writer *w, const void *arg)
{
	const struct sandbox *s = arg;

	put_u64(w, "ttl_ms", s->ttl_ms);
}

static int
life_row(struct sandbox *s, struct err *err)
{
	auto_query struct query q = query_of(s->engine->store, Q_SANDBOX_LIFE);

	arg_u64(&q, s->ttl_ms);
	arg_u64(&q, s->ttl_until_ms);
	arg_u64(&q, s->idle_ms);
	arg_u64(&q, s->persistent);
	arg_id(&q, &s->id);
	return query_run(&q, err);
}

static int
change_life(struct sandbox *s, const struct principal *p, const struct msg_sandbox_life *m,
	struct err *err)
{
	uint64_t old_idle = s->idle_ms;
	bool old_persistent = s->persistent;
	auto_tx struct tx tx = {0};
	int r = tx_begin(&tx, s->engine->store, err);

	if ((m->set & SET_IDLE) != 0)
		s->idle_ms = m->idle_ms;
	if ((m->set & SET_PERSISTENT) != 0)
		s->persistent = m->persistent;
	if (r == 0)
		r = life_row(s, err);
	if (r == 0)
		r = sandbox_audit(s, "sandbox.life", p, view_of(NULL, 0), put_life, m, err);
	if (r == 0)
		r = tx_commit(&tx, err);
	if (r < 0) {
		s->idle_ms = old_idle;
		s->persistent = old_persistent;
	}
	return r;
}

static int
check_life(const struct engine *e, const struct msg_sandbox_life *m, struct err *err)
{
	uint64_t unused;
	int r = 0;

	if (m->set == 0 || m->set > (SET_TTL | SET_IDLE | SET_PERSISTENT))
		return REFUSE(err, BAD_REQUEST,
			"nothing to change: ttl_seconds, idle_limit_seconds or persistent");
	if ((m->set & SET_TTL) != 0) {
		r = m->ttl_ms == 0 ? REFUSE(err, BAD_REQUEST, "ttl: at least a second")
				   : ttl_resolve(&e->settings, m->ttl_ms, 0, &unused, err);
	}
	if (r == 0 && (m->set & SET_IDLE) != 0)
		r = idle_resolve(m->idle_ms, 0, &unused, err);
	return r;
}

int
on_sandbox_life(
	struct engine *e, struct reply to, const struct msg_sandbox_life *m, struct err *err)
{
	struct principal p;
	struct sandbox *s = NULL;
	struct waiter *w;
	int r = caller_find(e, &m->caller, &p, err);

	if (r == 0)
		r = sandbox_find_live(e, &p, &m->sandbox, &s, err);
	if (r == 0)
		r = check_usable(s, err);
	if (r == 0)
		r = check_life(e, m, err);
	if (r == 0)
		r = change_life(s, &p, m, err);
	if (r < 0)
		return r;
	sandbox_touch(s);
	if ((m->set & SET_TTL) == 0) {
		sandbox_answer(s, to, false);
		return 0;
	}
	r = wait_add(s, WAIT_TTL, to, &w, err);
	if (r < 0)
		return r;
	w->deadline_ms = clock_mono_ms() + LIMIT_STEP_MS;
	IPC_SEND(e->supervisor, 0, TTL_SET, ttl_set, {.sandbox = s->id, .ttl_ms = m->ttl_ms});
	return 0;
}

int
on_ttl_is(struct engine *e, const struct msg_ttl_is *m, struct err *err)
{
	struct sandbox *s = sandbox_live(e, &m->sandbox);
	struct waiter *w = s != NULL ? wait_take(s, WAIT_TTL) : NULL;
	auto_tx struct tx tx = {0};
	struct err why;
	int r;

	if (w == NULL)
		return err_set(err, -EPROTO, "TTL_IS that nobody asked for");
	/* The supervisor's clock ends it; what stands here is for people. */
	s->ttl_ms = m->ttl_ms;
	s->ttl_until_ms = clock_real_ms() +
			  (m->ttl_ms > INT32_MAX * UINT64_C(1000) ? 0 : m->ttl_ms);
	r = tx_begin(&tx, e->store, &why);
	if (r == 0)
		r = life_row(s, &why);
	if (r == 0)
		r = sandbox_audit(s, "sandbox.ttl", &principal_engine, view_of(NULL, 0),
			put_granted, s, &why);
	if (r == 0)
		r = tx_commit(&tx, &why);
	if (r < 0)
		log_line("a life is not recorded: %s", why.text);
	sandbox_answer(s, w->to, false);
	free(w);
	return 0;
}

/* ---- usage ---- */

int
on_sandbox_usage(
	struct engine *e, struct reply to, const struct msg_sandbox_usage *m, struct err *err)
{
	struct principal p;
	struct sandbox *s = NULL;
	struct waiter *w;
	int r = caller_find(e, &m->caller, &p, err);

	if (r == 0)
		r = sandbox_find_live(e, &p, &m->sandbox, &s, err);
	if (r == 0)
		r = check_usable(s, err);
	if (r == 0)
		r = wait_add(s, WAIT_USAGE, to, &w, err);
	if (r < 0)
		return r;
	w->deadline_ms = clock_mono_ms() + LIMIT_STEP_MS;
	IPC_SEND(e->supervisor, 0, USAGE_ASK, usage_ask, {.sandbox = s->id});
	return 0;
}

int
on_usage(struct engine *e, const struct msg_usage *m, struct err *err)
{
	struct sandbox *s = sandbox_live(e, &m->sandbox);
	struct waiter *w = s != NULL ? wait_take(s, WAIT_USAGE) : NULL;
	uint64_t now = clock_real_ms();

	if (w == NULL)
		return err_set(err, -EPROTO, "USAGE that nobody asked for");
	REPLY(e, w->to, USAGE_ROW, usage_row,
		{.usage = m->usage,
			.uptime_ms = now > s->created_ms ? now - s->created_ms : 0,
			.host_pid = s->facts.host_pid});
	if (w->job != NULL)
		job_usage(w->job, &m->usage);
	s->usage = m->usage;
	free(w);
	return 0;
}
