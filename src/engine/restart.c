/* SPDX-License-Identifier: Apache-2.0 */
/* After a start; see restart.h. */
#include "engine/restart.h"

#include "engine/contain.h"
#include "engine/create.h"
#include "engine/expiry.h"
#include "engine/gate.h"
#include "engine/gone.h"
#include "engine/input.h"
#include "engine/job.h"
#include "engine/limits.h"
#include "engine/revision.h"
#include "engine/serve.h"
#include "engine/tree.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

#include <errno.h>

/* ---- SETTINGS: the store ---- */

static int
boot_of_before(struct engine *e, bool *ret_same, struct err *err)
{
	auto_query struct query q = query_of(e->store, Q_META_GET);
	uint8_t boot[32];
	int r;

	arg_text(&q, "boot");
	r = query_next(&q, err);
	if (r > 0)
		col_digest(&q, boot);
	*ret_same = r > 0 && memcmp(boot, e->boot, 32) == 0;
	return r < 0 ? r : 0;
}

static void
put_boot(struct canon_writer *w, const void *arg)
{
	const struct engine *e = arg;

	put_digest(w, "boot", e->boot);
	put_bool(w, "restarted", e->restarted);
}

static int
record_start(struct engine *e, struct err *err)
{
	const struct audit_event ev = {.event = "engine.start",
		.tenant = "",
		.who = &principal_engine,
		.data = put_boot,
		.arg = e};
	auto_tx struct tx tx = {0};
	int r = tx_begin(&tx, e->store, err);

	if (r < 0)
		return r;
	{
		auto_query struct query q = query_of(e->store, Q_META_SET);

		arg_text(&q, "boot");
		arg_digest(&q, e->boot);
		r = query_run(&q, err);
	}
	if (r == 0)
		r = audit_append(e, &ev, err);
	return r == 0 ? tx_commit(&tx, err) : r;
}

static int
load_jobs(struct sandbox *s, struct err *err)
{
	auto_query struct query q = query_of(s->engine->store, Q_JOB_RUNNING);
	int r;

	arg_id(&q, &s->id);
	for (r = query_next(&q, err); r > 0; r = query_next(&q, err)) {
		struct view kind;
		enum job_kind parsed;
		struct job *j;
		struct id id;

		col_id(&q, &id);
		kind = col_view(&q);
		if (job_kind_parse(kind, &parsed) < 0)
			return err_set(err, -EUCLEAN, "a job without a kind");
		if (job_new(s, &id, parsed, &j, err) < 0)
			return err->code;
	}
	return r;
}

/* Of one with a policy: the revision that it was created with. */
static int
load_gate(struct sandbox *s, struct err *err)
{
	const struct policy *policy;
	int r;

	if (s->policy[0] == '\0')
		return 0;
	r = revision_find(s->engine, s->policy_digest, &policy, err);
	return r == 0 ? gate_new(s, policy, err) : r;
}

/* What the database says should live. It is held when the supervisor says so too. */
static int
load_living(struct engine *e, struct err *err)
{
	auto_query struct query q = query_of(e->store, Q_SANDBOX_LIVE);
	int r;

	for (r = query_next(&q, err); r > 0; r = query_next(&q, err)) {
		struct sandbox *s;
		struct id id;

		col_id(&q, &id);
		s = sandbox_load(e, &id, err);
		if (s == NULL)
			return err->code;
		sandbox_link(s);
		sandbox_touch(s);
		r = load_jobs(s, err);
		if (r >= 0)
			r = load_gate(s, err);
		if (r < 0)
			return r;
	}
	return r;
}

int
on_settings(struct engine *e, const struct msg_settings *m, struct err *err)
{
	int r;

	e->settings = m->settings;
	memcpy(e->boot, m->boot, 32);
	e->store = store_open(e->loop, e->engine_fd, err);
	if (e->store == NULL)
		log_exit(3, "%s", err->text);
	r = inputs_open(e, err);
	if (r == 0)
		r = boot_of_before(e, &e->restarted, err);
	if (r == 0)
		r = tree_open(e, err);
	if (r == 0)
		r = record_start(e, err);
	if (r == 0)
		r = proposals_restart(e, err);
	if (r == 0)
		r = load_living(e, err);
	if (r < 0)
		log_exit(3, "the store cannot be used: %s", err->text);
	template_scan(e); /* the policy asks for the places of their templates */
	e->supervisor->state = SUPERVISOR_HOLDS;
	return 0;
}

/* ---- HELD ---- */

static void
refuse_held(struct engine *e, const struct id *id)
{
	char text[ID_TEXT];

	id_text(id, ID_SANDBOX, text);
	log_line("%s is held but should not live: ending it", text);
	IPC_SEND(e->supervisor, 0, KILL, kill,
		{.sandbox = *id, .reason = SANDBOX_REASON_ENGINE_RESTART});
}

int
on_held(struct engine *e, struct ipc_msg *in, const struct msg_held *m, struct err *err)
{
	struct sandbox *s = sandbox_live(e, &m->sandbox);

	if (s == NULL || !id_eq(&s->task, &m->task)) {
		refuse_held(e, &m->sandbox);
		return 0;
	}
	if (s->held)
		return err_set(err, -EPROTO, "HELD twice for one sandbox");
	s->held = s->asked = s->spawned = true;
	s->facts = m->facts;
	s->ttl_until_ms = clock_real_ms() +
			  (m->ttl_left_ms > INT32_MAX * UINT64_C(1000) ? 0 : m->ttl_left_ms);
	if (s->state == SANDBOX_STATE_STOPPING) {
		s->deadline_ms = clock_mono_ms() + LIMIT_STEP_MS;
		IPC_SEND(e->supervisor, 0, KILL, kill, {.sandbox = s->id, .reason = s->reason});
		return 0;
	}
	if (s->state == SANDBOX_STATE_CREATING) {
		/* Nobody waits for it any more. */
		sandbox_kill(s, SANDBOX_REASON_ENGINE_RESTART, &principal_engine, view_of(NULL, 0));
		return 0;
	}
	if (!create_facts_right(s))
		return 0;
	if (serve_relay(s, ipc_msg_take(in, 0), RELAY_RESYNCS, err) < 0)
		return err->code;
	return 0;
}

int
on_leftover(struct engine *e, const struct msg_leftover *m, struct err *err)
{
	const struct msg_gone gone = {
		.sandbox = m->sandbox, .reason = SANDBOX_REASON_HOST_STOPPED, .proof = m->proof};
	struct sandbox *s = sandbox_live(e, &m->sandbox);
	struct err why;

	if (s != NULL && s->held)
		return err_set(err, -EPROTO, "LEFTOVER for a sandbox that is held");
	if (s != NULL)
		sandbox_ended(s, &gone, true);
	else if (gone_again(e, &gone, &why) < 0 && why.code != -ENOENT)
		log_line("a leftover is not recorded: %s", why.text);
	return 0;
}

int
on_held_end(struct engine *e, struct err *err)
{
	(void)err;
	e->supervisor->state = SUPERVISOR_LIVE;
	e->ready = true;
	list_each (s, &e->sandboxes, struct sandbox, link) {
		const struct msg_gone gone = {.sandbox = s->id,
			.reason = e->restarted ? SANDBOX_REASON_ENGINE_RESTART
					       : SANDBOX_REASON_HOST_STOPPED};

		if (!s->held)
			sandbox_ended(s, &gone, false);
	}
	contain_resume(e);
	gates_resume(e);
	template_prepare_all(e);
	if (e->api != NULL)
		ipc_peer_pause(e->api, false);
	if (e->broker.peer != NULL)
		ipc_peer_pause(e->broker.peer, false);
	return 0;
}

/* ---- the relays ---- */

int
on_relay_job(struct sandbox *s, const struct msg_relay_job *m, struct err *err)
{
	struct job *j = job_live(s, &m->job);

	(void)err;
	if (j != NULL) {
		j->told = true;
		return 0;
	}
	/* Not recorded as running: its start was never committed, or its end was. It may not go on. */
	IPC_SEND(s->relay, 0, JOB_SIGNAL, job_signal, {.job = m->job, .signal = 0});
	return 0;
}

int
on_relay_jobs_end(struct sandbox *s, struct err *err)
{
	(void)err;
	s->relay->state = RELAY_LIVE;
	s->resync_ms = clock_mono_ms() + LIMIT_RESYNC_MS;
	return 0;
}
