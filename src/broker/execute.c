/* SPDX-License-Identifier: Apache-2.0 */
/*
 * EXECUTE: an approved proposal is carried out, once. All that can be tested is tested when it comes and again in the very turn in which
 * `spent` is written, which is the one before the first byte (call.h: permit). execution.fsm has the steps.
 */
#include "broker/check.h"
#include "broker/classify.h"
#include "broker/receipt.h"
#include "broker/work.h"

#include "lib/action/check.h"
#include "lib/base/clock.h"

#include <errno.h>

enum execution_event {
#define STATE(name)
#define EVENT(name) EVENT_##name,
#define STEP(state, event, next)
#include "broker/execution.fsm"
#undef STATE
#undef EVENT
#undef STEP
};

static const struct {
	enum execution_phase phase;
	enum execution_event event;
	enum execution_phase next;
} steps[] = {
#define STATE(name)
#define EVENT(name)
#define STEP(state, event, next) {PHASE_##state, EVENT_##event, PHASE_##next},
#include "broker/execution.fsm"
#undef STATE
#undef EVENT
#undef STEP
};

static void
execution_step(struct work *w, enum execution_event event)
{
	for (size_t i = 0; i < ARRAY_LEN(steps); i++)
		if (steps[i].phase == w->phase && steps[i].event == event) {
			w->phase = steps[i].next;
			return;
		}
	must(false);
}

/* ---- the end ---- */

/* Nothing left: the ledger knows nothing of it. */
static void
tell_not_sent(struct broker *b, struct ask ask, const struct id *execution, enum attempt attempt,
	enum denial denial, const char *text, uint32_t calls, uint64_t bytes)
{
	char room[TEXT_BYTES];

	TELL(b, ask, EXECUTED, executed,
		{.execution = *execution,
			.attempt = attempt,
			.denial = denial,
			.calls = calls,
			.bytes = bytes,
			.text = view_str(broker_text(b, text, room)),
			.receipt = view_str("{}")});
}

static void
deny(struct work *w, enum attempt attempt, enum denial denial, const char *text)
{
	execution_step(w, EVENT_DENY);
	for (size_t i = 0; i < w->nasks; i++)
		tell_not_sent(w->b, w->ask[i], &w->execution_id, attempt, denial, text,
			w->calls + w->reading.calls, w->bytes_used + w->reading.bytes);
	work_free(w);
}

static const char *outcome_word(enum answer_class class)
{
	switch (class) {
	case CLASS_SUCCEEDED:
		return "succeeded";
	case CLASS_FAILED:
	case CLASS_NOT_PROCESSED:
		return "failed";
	case CLASS_UNKNOWN:
		return "unknown";
	}
	return "unknown";
}

/* It was spent: the ledger gets the end first, then all who asked hear what the ledger has. */
static void
finish(struct work *w, const struct receipt *r, enum execution_event event)
{
	struct entry e = {.kind = ENTRY_ENDED,
		.ms = clock_real_ms(),
		.bytes = w->bytes_used + w->reading.bytes,
		.calls = w->calls + w->reading.calls,
		.execution = view_str(w->execution),
		.first_byte_us = w->first_byte_us,
		.incident = r->means.incident,
		.outcome = view_str(outcome_word(r->means.class)),
		.receipt = r->kept.n == 0 ? view_str("{}") : buf_view(&r->kept),
		.sends = w->sends,
		.status = r->status,
		.text = view_str(r->text)};
	const struct spent *s = ledger_by_execution(w->b->ledger, e.execution);
	struct err err = {0};

	must(s != NULL);
	execution_step(w, event);
	memcpy(e.response, r->response, SHA256_BYTES);
	/* What is not in the ledger is not known, after a restart nor now. */
	if (ledger_add(w->b->ledger, &e, &err) < 0)
		broker_log(w->b, "%s: its end could not be recorded: %s", w->execution, err.text);
	for (size_t i = 0; i < w->nasks; i++)
		tell_spent(w->b, w->ask[i], s, w->calls + w->reading.calls,
			w->bytes_used + w->reading.bytes);
	work_free(w);
}

/* ---- sending ---- */

/* All checks, now. DENIAL_NONE: it may be sent. *why has the sentence. */
static enum denial
check_all(struct work *w, bool again, struct err *why)
{
	struct record_check c = {.b = w->b, .record = w->record, .proposal = w->proposal};
	struct authority_is is = {.denial = DENIAL_RECORD_MALFORMED};
	struct authority_ask ask;

	approvers_look(w->b);
	check_record(&c, !again);
	ask = check_ask(&c);
	authority_dispatch(&ask, w->approvals, &is);
	w->checked_ms = ask.now_ms;
	w->dispatch_by_ms = is.dispatch_by_ms;
	if (is.denial == DENIAL_NONE && is.quorum == 0) {
		/* Nobody decides: the record's own times hold, one after the other. */
		w->dispatch_by_ms = c.r.decide_by_ms + c.r.dispatch_within_ms;
		if (ask.now_ms >= w->dispatch_by_ms)
			is.denial = DENIAL_DISPATCH_EXPIRED;
	}
	if (is.denial == DENIAL_NONE && c.failed != 0)
		is.denial =
			DENIAL_RECORD_MALFORMED; /* a bit that nobody asked for is no permission */
	if (is.denial != DENIAL_NONE)
		(void)err_set(why, -EPERM, "%s",
			is.why.text[0] != '\0' ? is.why.text : denial_sentence(is.denial));
	check_done(&c);
	if (is.denial == DENIAL_NONE && ledger_usable(w->b->ledger, why) < 0)
		is.denial = DENIAL_AUDIT_UNAVAILABLE;
	return is.denial;
}

static int
spend(struct work *w, struct err *err)
{
	struct entry e = {.kind = ENTRY_SPENT,
		.ms = w->checked_ms,
		.account = w->op->provider.account,
		.epoch = w->r.epoch,
		.execution = view_str(w->execution),
		.key = w->r.idempotency_key,
		.proposal = w->r.proposal,
		.provider = w->op->provider.name,
		.task = w->r.task,
		.tenant = w->r.tenant};

	memcpy(e.record, w->digest, SHA256_BYTES);
	return ledger_add(w->b->ledger, &e, err);
}

/* The last moment: checks and entry are one turn, so nothing comes between. */
static int
on_permit(struct call *c, struct err *err)
{
	struct work *w = c->owner;
	bool again = w->phase == PHASE_RECONNECTING;

	if (!again && ending(w->b)) {
		w->denial = DENIAL_BROKER_UNAVAILABLE;
		return err_set(err, -ECANCELED, "the broker ends, and begins nothing");
	}
	w->denial = check_all(w, again, err);
	if (w->denial != DENIAL_NONE)
		return -EPERM;
	if (!again && spend(w, err) < 0) {
		w->denial = DENIAL_AUDIT_UNAVAILABLE;
		return -EIO;
	}
	execution_step(w, again ? EVENT_RESEND : EVENT_SPEND);
	w->sends++;
	if (w->first_byte_us == 0)
		w->first_byte_us = clock_mono_us() - w->begun_us;
	return 0;
}

static void on_done(struct call *c);

/* 0, or the call cannot be made. */
static int
send_it(struct work *w, struct err *err)
{
	const struct request_values v = {.arguments = w->r.arguments,
		.tenant = w->r.tenant,
		.task = w->r.task,
		.proposal = w->r.proposal,
		.key = w->r.idempotency_key};
	const struct capability *cap = &w->op->provider.capability;
	struct request q = {0};

	if (request_render(w->op, &v, &q, err) < 0) {
		request_done(&q);
		return err->code;
	}
	w->call = call_new(w->b, &w->op->provider, &q, err);
	request_done(&q);
	if (w->call == NULL)
		return err->code;
	if (cap->key)
		(void)snprintf(w->call->key, sizeof(w->call->key),
			cap->key_structured ? "\"%.*s\"" : "%.*s", VIEW_ARGS(v.key));
	w->call->owner = w;
	w->call->permit = on_permit;
	w->call->done = on_done;
	call_start(w->call);
	return 0;
}

static void
give_up(struct work *w, const char *why)
{
	struct receipt r = {.means = {.class = CLASS_NOT_PROCESSED}};

	(void)snprintf(r.text, sizeof(r.text),
		"the provider did not process it, and it was not sent again: %.200s", why);
	finish(w, &r, EVENT_GIVE_UP);
}

static void
on_again(struct ev_loop *loop, ev_timer *t, int events)
{
	struct work *w = container_of(t, struct work, again);
	struct err err = {0};

	(void)loop, (void)events;
	execution_step(w, EVENT_AGAIN);
	if (send_it(w, &err) < 0)
		give_up(w, err.text);
}

/* The same key once more, if there is time for it; else how it stands. */
static void
not_processed(struct work *w, const struct call *c, struct receipt *r)
{
	uint64_t wait = c->retry_after_ms > LIMIT_RESEND_MS ? c->retry_after_ms : LIMIT_RESEND_MS;
	uint64_t now = clock_real_ms();

	if (w->sends > LIMIT_RESENDS || wait > LIMIT_RESEND_MAX_MS ||
		now + wait >= w->dispatch_by_ms) {
		finish(w, r, EVENT_ANSWER);
		return;
	}
	execution_step(w, EVENT_REFUSED);
	call_free(w->call);
	w->call = NULL;
	ev_timer_init(&w->again, on_again, (double)wait / 1000.0, 0);
	ev_timer_start(w->b->loop, &w->again);
}

static void
on_done(struct call *c)
{
	struct work *w = c->owner;
	struct receipt r = {0};

	w->calls += c->sent;
	w->bytes_used += c->bytes;
	if (c->end == CALL_NOT_SENT) {
		if (w->phase == PHASE_RECONNECTING)
			give_up(w, c->why.text);
		else if (c->denied)
			deny(w, ATTEMPT_DENIED, w->denial, c->why.text);
		else
			deny(w, ATTEMPT_NOT_SENT, DENIAL_DIAL_REFUSED, c->why.text);
		return;
	}
	receipt_read(w, c, &r);
	if (r.means.class == CLASS_NOT_PROCESSED)
		not_processed(w, c, &r);
	else
		finish(w, &r, EVENT_ANSWER);
	receipt_done(&r);
}

/* ---- begin ---- */

static void
on_facts(struct reading *f)
{
	struct work *w = f->owner;
	struct err err = {0};

	if (f->denial != DENIAL_NONE) {
		deny(w, ATTEMPT_DENIED, f->denial, f->why.text);
		return;
	}
	/* What a person took for verified, for their decision: the engine wrote it, this is what there is. */
	if (!view_eq(w->r.facts, buf_view(&f->read))) {
		deny(w, ATTEMPT_DENIED, DENIAL_VERIFY_FAILED,
			"the facts that were shown are not those of the system of record now");
		return;
	}
	execution_step(w, EVENT_VERIFIED);
	if (send_it(w, &err) < 0)
		deny(w, ATTEMPT_DENIED, DENIAL_SECRET_MISSING, err.text);
}

/* Views of the record for as long as the work lives. */
static int
keep_record(struct work *w, struct err *err)
{
	if (proposal_record_read(w->record, &w->room, &w->r, err) < 0)
		return err->code;
	w->op = catalogue_find(&w->b->catalogue, w->r.action);
	if (w->op == NULL)
		return err_set(err, -ENOENT, "there is no such operation");
	proposal_digest(w->record, w->digest);
	w->reading = (struct reading){.b = w->b,
		.op = w->op,
		.values = {.arguments = w->r.arguments,
			.tenant = w->r.tenant,
			.task = w->r.task,
			.proposal = w->r.proposal,
			.key = w->r.idempotency_key},
		.where = w->r.where,
		.done = on_facts,
		.owner = w};
	return 0;
}

static void
begin(struct work *w, const struct msg_execute *m)
{
	struct err err = {0};
	enum denial denial;

	if (work_keep(w, m->record, m->approvals, &err) < 0) {
		deny(w, ATTEMPT_DENIED, DENIAL_BROKER_UNAVAILABLE, err.text);
		return;
	}
	denial = check_all(w, false, &err);
	if (denial == DENIAL_NONE && keep_record(w, &err) < 0)
		denial = DENIAL_RECORD_MALFORMED;
	if (denial == DENIAL_NONE && reading_secrets(w->b, w->op, &err) < 0)
		denial = DENIAL_SECRET_MISSING;
	if (denial != DENIAL_NONE) {
		deny(w, ATTEMPT_DENIED, denial, err.text);
		return;
	}
	execution_step(w, EVENT_CHECKED);
	reading_start(&w->reading);
}

/* The same execution again: its earlier result, or it waits for it; with other bytes it is a conflict. */
static bool
repeated(struct broker *b, struct ask ask, const struct msg_execute *m, const char *execution,
	const char *proposal)
{
	const struct spent *s = ledger_by_execution(b->ledger, view_str(execution));
	struct work *w = work_of_execution(b, execution);
	uint8_t digest[SHA256_BYTES];

	proposal_digest(m->record, digest);
	if (s != NULL && memcmp(s->record, digest, SHA256_BYTES) != 0) {
		tell_not_sent(b, ask, &m->execution, ATTEMPT_DENIED, DENIAL_KEY_CONFLICT,
			"this execution carried out another record", 0, 0);
		return true;
	}
	if (w != NULL && !view_eq(w->record, m->record)) {
		tell_not_sent(b, ask, &m->execution, ATTEMPT_DENIED, DENIAL_KEY_CONFLICT,
			"this execution is carrying out another record", 0, 0);
		return true;
	}
	if (w != NULL) {
		if (!work_join(w, ask))
			tell_refused(b, ask, DENIAL_BROKER_UNAVAILABLE,
				"too many wait for the end of this execution");
		return true;
	}
	if (s != NULL) {
		tell_spent(b, ask, s, 0, 0);
		return true;
	}
	if (work_of_proposal(b, proposal) != NULL) {
		tell_not_sent(b, ask, &m->execution, ATTEMPT_DENIED, DENIAL_SPENT,
			"it is being carried out as another execution", 0, 0);
		return true;
	}
	return false;
}

void
execute(struct broker *b, struct ask ask, const struct msg_execute *m)
{
	char execution[ID_TEXT], proposal[ID_TEXT];
	struct work *w;

	id_text(&m->execution, ID_EXECUTION, execution);
	id_text(&m->proposal, ID_PROPOSAL, proposal);
	if (repeated(b, ask, m, execution, proposal))
		return;
	w = work_new(b, WORK_EXECUTE, ask);
	if (w == NULL)
		return;
	w->begun_us = clock_mono_us();
	w->execution_id = m->execution;
	memcpy(w->execution, execution, ID_TEXT);
	memcpy(w->proposal, proposal, ID_TEXT);
	begin(w, m);
}
