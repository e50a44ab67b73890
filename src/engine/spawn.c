/* SPDX-License-Identifier: Apache-2.0 */
/* From SPAWN to the first command; see create.h. */
#include "engine/spawn.h"

#include "engine/gate.h"
#include "engine/gone.h"
#include "engine/input.h"
#include "engine/limits.h"
#include "engine/policy.h"
#include "engine/serve.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

#include <errno.h>

static void
spawn(struct sandbox *s)
{
	struct msg_spawn m = {
		.sandbox = s->id, .task = s->task, .limits = s->limits, .ttl_ms = s->ttl_ms};

	memcpy(m.template, s->digest, 32);
	memcpy(m.policy, s->policy_digest, 32);
	s->asked = true;
	s->deadline_ms = clock_mono_ms() + LIMIT_STEP_MS;
	IPC_SEND(s->engine->supervisor, 0, SPAWN, spawn, m);
}

void
spawn_or_wait(struct sandbox *s, struct template *t)
{
	s->deadline_ms = clock_mono_ms() + LIMIT_TEMPLATE_MS;
	if (t->state == TEMPLATE_MOUNTED)
		spawn(s);
	else if (t->state == TEMPLATE_KNOWN)
		template_prepare(s->engine, t);
}

static void
fail(struct sandbox *s, enum sandbox_reason reason, const char *why)
{
	(void)snprintf(s->refusal, sizeof(s->refusal), "%s", why);
	sandbox_kill(s, reason, &principal_engine, view_of(NULL, 0));
}

void
create_template_done(struct engine *e, const struct template *t)
{
	list_each (s, &e->sandboxes, struct sandbox, link) {
		if (s->state != SANDBOX_STATE_CREATING || s->asked ||
			memcmp(s->digest, t->digest, 32) != 0)
			continue;
		if (t->state == TEMPLATE_MOUNTED)
			spawn(s);
		else
			fail(s, SANDBOX_REASON_SPAWN_FAILED, t->fault);
	}
}

/* ---- SPAWNED ---- */

struct differences {
	const struct sandbox *s;
	uint64_t bits;
};

static void
put_differences(struct canon_writer *w, const void *arg)
{
	const struct differences *d = arg;

	canon_key(w, view_str("differences"));
	canon_array_begin(w);
	for (unsigned i = 0; i < POLICY_MAX; i++)
		if ((d->bits & UINT64_C(1) << i) != 0) {
			canon_object_begin(w);
			put_str(w, "fact", policy_info[i].name);
			put_str(w, "wanted", policy_info[i].sentence);
			canon_object_end(w);
		}
	canon_array_end(w);
	put_facts(w, "facts", &d->s->facts);
}

static bool
uids_shared(const struct sandbox *s)
{
	const struct facts *a = &s->facts;

	list_each (other, &s->engine->sandboxes, struct sandbox, link) {
		const struct facts *b = &other->facts;

		if (other != s && b->uid_count != 0 &&
			(uint64_t)a->uid_base < (uint64_t)b->uid_base + b->uid_count &&
			(uint64_t)b->uid_base < (uint64_t)a->uid_base + a->uid_count)
			return true;
	}
	return false;
}

/* The pools, or with `capture` everything, and an address of lo each; on a host without IPv6 only those of IPv4 (proto/messages.def). */
static void
want_captured(const struct sandbox *s, struct wanted *w)
{
	const struct policy *p = s->gate != NULL ? s->gate->policy : NULL;

	if (p == NULL)
		return;
	w->captured = 48 | (p->capture ? 12 : 3);
	w->captured_v4 = p->ipv6 ? w->captured : 16 | (p->capture ? 4 : 1);
}

static uint64_t
compare(const struct sandbox *s)
{
	const struct settings *c = &s->engine->settings;
	const struct template *t = template_by_digest(s->engine, s->digest);
	struct wanted w = {.limits = s->limits,
		.uid_first = c->sandbox_uid_base,
		.uid_slots = c->sandbox_uid_slots,
		.uid_shared = uids_shared(s),
		.places = 16};

	memcpy(w.template, s->digest, 32);
	want_captured(s, &w);
	if (t != NULL) {
		w.places = 0;
		for (size_t i = 0; i < t->places.n; i++)
			w.places = (uint16_t)(w.places + (t->places.p[i] == 0));
	}
	return policy_differences(&s->facts, &w);
}

static int
record_mismatch(struct sandbox *s, uint64_t bits, struct err *err)
{
	const struct differences d = {.s = s, .bits = bits};
	auto_tx struct tx tx = {0};
	int r = tx_begin(&tx, s->engine->store, err);

	if (r == 0)
		r = sandbox_audit(s, "sandbox.mismatch", &principal_engine, view_of(NULL, 0),
			put_differences, &d, err);
	return r == 0 ? tx_commit(&tx, err) : r;
}

bool
create_facts_right(struct sandbox *s)
{
	uint64_t bits = compare(s);
	char why[200];
	struct err err;
	unsigned first = 0;

	if (bits == 0)
		return true;
	while ((bits & UINT64_C(1) << first) == 0)
		first++;
	(void)snprintf(why, sizeof(why),
		"the sandbox was not as its policy asks (%s: %s) and was ended",
		policy_info[first].name, policy_info[first].sentence);
	log_line("%s", why);
	if (record_mismatch(s, bits, &err) < 0)
		log_line("a mismatch is not recorded: %s", err.text);
	fail(s, SANDBOX_REASON_MEASURED_DIFFERENT, why);
	return false;
}

int
on_spawned(struct engine *e, struct ipc_msg *in, const struct msg_spawned *m, struct err *err)
{
	struct sandbox *s = sandbox_live(e, &m->sandbox);
	int r;

	if (s == NULL || !s->asked || s->spawned)
		return err_set(err, -EPROTO, "SPAWNED for a sandbox that was not asked for");
	s->spawned = true;
	s->facts = m->facts;
	s->timings = m->timings;
	if (s->state != SANDBOX_STATE_CREATING)
		return 0; /* it took too long or was killed meanwhile: GONE follows */
	if (!create_facts_right(s))
		return 0;
	r = serve_relay(s, ipc_msg_take(in, 0), RELAY_STARTS, err);
	if (r < 0) {
		log_line("no edge to a relay: %s", err->text);
		fail(s, SANDBOX_REASON_RELAY_LOST, "the engine has no room for another sandbox");
	}
	return 0;
}

int
on_spawn_failed(struct engine *e, const struct msg_spawn_failed *m, struct err *err)
{
	struct sandbox *s = sandbox_live(e, &m->sandbox);
	const struct msg_gone gone = {
		.sandbox = m->sandbox, .reason = SANDBOX_REASON_SPAWN_FAILED, .proof = m->proof};

	if (s == NULL || !s->asked || s->spawned)
		return err_set(err, -EPROTO, "SPAWN_FAILED for a sandbox that was not asked for");
	log_line("a sandbox was not built: %s", m->text);
	if (s->state == SANDBOX_STATE_CREATING)
		(void)snprintf(s->refusal, sizeof(s->refusal), "%.*s", (int)sizeof(s->refusal) - 1,
			m->text);
	sandbox_ended(s, &gone, true);
	return 0;
}

/* ---- RELAY_READY ---- */

static void
put_ready(struct canon_writer *w, const void *arg)
{
	const struct sandbox *s = arg;

	put_u64(w, "boot_us", s->boot_us);
	put_facts(w, "facts", &s->facts);
	canon_key(w, view_str("timings"));
	canon_object_begin(w);
	put_u64(w, "cloned_us", s->timings.cloned_us);
	put_u64(w, "measured_us", s->timings.measured_us);
	put_u64(w, "mounted_us", s->timings.mounted_us);
	put_u64(w, "started_us", s->timings.started_us);
	canon_object_end(w);
}

static int
ready_row(struct sandbox *s, struct err *err)
{
	const struct msg_spawned m = {.sandbox = s->id, .facts = s->facts, .timings = s->timings};
	auto_buf struct buf spawned;
	auto_query struct query q = query_of(s->engine->store, Q_SANDBOX_READY);

	buf_init(&spawned, 4096);
	msg_spawned_put(&spawned, &m);
	must(buf_check(&spawned) == 0);
	arg_text(&q, sandbox_state_text(s->state));
	arg_u64(&q, s->boot_us);
	arg_blob(&q, buf_view(&spawned));
	arg_id(&q, &s->id);
	return query_run(&q, err);
}

static int
record_ready(struct sandbox *s, struct err *err)
{
	auto_tx struct tx tx = {0};
	int r = tx_begin(&tx, s->engine->store, err);

	if (r == 0)
		r = ready_row(s, err);
	if (r == 0)
		r = sandbox_audit(
			s, "sandbox.ready", &principal_engine, view_of(NULL, 0), put_ready, s, err);
	return r == 0 ? tx_commit(&tx, err) : r;
}

static void
ready(struct sandbox *s)
{
	enum sandbox_state before = s->state;
	uint64_t took = clock_mono_us() - s->begun_us;
	struct err err;

	must(sandbox_step(s, SANDBOX_READY, &err) == 0);
	s->boot_us = took > UINT32_MAX ? UINT32_MAX : (uint32_t)took;
	s->deadline_ms = 0;
	if (record_ready(s, &err) < 0) {
		log_line("a sandbox that is ready is not recorded: %s", err.text);
		s->state = before;
		s->boot_us = 0;
		fail(s, SANDBOX_REASON_SPAWN_FAILED,
			"the sandbox could not be recorded and was ended");
		return;
	}
	sandbox_touch(s);
	wait_answer(s, WAIT_READY, NULL);
}

/* The next stored input, or ready. */
static void
go_on(struct sandbox *s)
{
	struct err err;
	int r = input_feed_next(s, &err);

	if (r < 0) {
		log_line("a stored input is not written: %s", err.text);
		fail(s, SANDBOX_REASON_SPAWN_FAILED,
			"a stored input of the task could not be written into the sandbox");
	} else if (r == 0) {
		ready(s);
	}
}

/* Both are there: what programs must trust stands before anything else is written or runs. */
static void
begin(struct sandbox *s)
{
	bool relay = s->relay != NULL && s->relay->state == RELAY_LIVE;

	if (s->state != SANDBOX_STATE_CREATING || !relay)
		return;
	if (s->gate != NULL) {
		if (!gate_ready(s->gate))
			return;
		gate_trust(s->gate);
	}
	go_on(s);
}

int
on_relay_ready(struct sandbox *s, const struct msg_relay_ready *m, struct err *err)
{
	(void)m, (void)err;
	s->relay->state = RELAY_LIVE;
	begin(s);
	return 0;
}

void
create_gateway_ready(struct sandbox *s)
{
	begin(s);
}

void
create_input_done(struct sandbox *s, bool good)
{
	if (s->state != SANDBOX_STATE_CREATING)
		return;
	if (good)
		go_on(s);
	else
		fail(s, SANDBOX_REASON_SPAWN_FAILED,
			"a stored input of the task could not be written into the sandbox");
}
