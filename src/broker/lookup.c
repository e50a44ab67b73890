/* SPDX-License-Identifier: Apache-2.0 */
/*
 * EXECUTION_ASK: what the ledger has. LOOKUP_ASK: what the provider says became of an unknown execution, where its capability record has a
 * way to ask. A look-up never sends the effect again; that something is not found proves nothing before the provider's own time for it.
 */
#include "broker/answer.h"
#include "broker/member.h"
#include "broker/receipt.h"
#include "broker/work.h"

#include "lib/base/clock.h"
#include "lib/json/parse.h"

#include <errno.h>

static enum attempt
attempt_of(enum outcome outcome)
{
	switch (outcome) {
	case OUTCOME_OPEN:
	case OUTCOME_UNKNOWN:
		return ATTEMPT_UNKNOWN;
	case OUTCOME_SUCCEEDED:
		return ATTEMPT_SUCCEEDED;
	case OUTCOME_FAILED:
		return ATTEMPT_FAILED;
	}
	return ATTEMPT_UNKNOWN;
}

/* `says`: instead of the ledger's text; NULL: the ledger's. */
static void
tell(struct broker *b, struct ask ask, const struct spent *s, const char *says, uint32_t calls,
	uint64_t bytes)
{
	auto_buf struct buf room = {.max = 4 * LIMIT_ENTRY_BYTES};
	struct entry e = {.receipt = view_str("{}")};
	struct msg_executed m = {.attempt = attempt_of(s->outcome), .calls = calls, .bytes = bytes};
	char text[TEXT_BYTES], clean[TEXT_BYTES];
	struct err err;

	if (ledger_ended(b->ledger, s, &room, &e, &err) < 0)
		e.text = view_str("it was sent, and the broker ended before the answer came");
	if (s->settled) {
		(void)snprintf(text, sizeof(text), "settled by %s", s->settled_by);
		e.text = view_str(text);
	}
	if (says != NULL)
		e.text = view_str(broker_text(b, says, clean));
	must(id_parse(view_str(s->execution), ID_EXECUTION, &m.execution) == 0);
	m.denial = m.attempt == ATTEMPT_SUCCEEDED ? DENIAL_NONE : DENIAL_PROVIDER_ANSWER;
	m.incident = e.incident;
	m.status = (uint16_t)e.status;
	m.sends = (uint32_t)e.sends;
	m.spent_ms = s->ms;
	m.ended_ms = s->ended_ms;
	m.first_byte_us = (uint32_t)e.first_byte_us;
	memcpy(m.response, e.response, SHA256_BYTES);
	m.text = e.text;
	m.receipt = e.receipt;
	if (b->engine != NULL && ask.engine == b->engine_number)
		IPC_SEND(b->engine, ask.tag, EXECUTED, executed, m);
}

void
tell_spent(struct broker *b, struct ask ask, const struct spent *s, uint32_t calls, uint64_t bytes)
{
	tell(b, ask, s, NULL, calls, bytes);
}

static void
tell_unseen(struct broker *b, struct ask ask, const struct id *execution)
{
	TELL(b, ask, EXECUTED, executed,
		{.execution = *execution,
			.attempt = ATTEMPT_UNSEEN,
			.text = view_str("it was never sent, and never will be"),
			.receipt = view_str("{}")});
}

/* In flight and spent: its end is the answer. */
static bool
joined(struct broker *b, struct ask ask, const char *execution)
{
	struct work *w = work_of_execution(b, execution);

	if (w == NULL || ledger_by_execution(b->ledger, view_str(execution)) == NULL)
		return false;
	if (!work_join(w, ask))
		tell_refused(b, ask, DENIAL_BROKER_UNAVAILABLE,
			"too many wait for the end of this execution");
	return true;
}

/* What is not spent is shut out, so that UNSEEN stays true: the request may still be under way (docs/decisions/0003-actions.md). */
void
execution_ask(struct broker *b, struct ask ask, const struct msg_execution_ask *m)
{
	char execution[ID_TEXT], proposal[ID_TEXT];
	struct entry e = {.kind = ENTRY_REVOKED, .ms = clock_real_ms()};
	const struct spent *s;
	struct err err = {0};

	id_text(&m->execution, ID_EXECUTION, execution);
	id_text(&m->proposal, ID_PROPOSAL, proposal);
	if (joined(b, ask, execution))
		return;
	s = ledger_by_execution(b->ledger, view_str(execution));
	if (s != NULL) {
		tell_spent(b, ask, s, 0, 0);
		return;
	}
	e.proposal = view_str(proposal);
	if (!ledger_revoked(b->ledger, e.proposal) &&
		ledger_by_proposal(b->ledger, e.proposal) == NULL &&
		ledger_add(b->ledger, &e, &err) < 0) {
		tell_refused(b, ask, DENIAL_AUDIT_UNAVAILABLE, err.text);
		return;
	}
	tell_unseen(b, ask, &m->execution);
}

/* ---- look-ups ---- */

static void
lookup_end(struct work *w, const char *says)
{
	const struct spent *s = ledger_by_execution(w->b->ledger, view_str(w->execution));

	must(s != NULL);
	tell(w->b, w->ask[0], s, says, w->calls, w->bytes_used);
	work_free(w);
}

/* The ledger learns what the look-up found. */
static void
lookup_found(struct work *w, const struct receipt *r)
{
	struct entry e = {.kind = ENTRY_ENDED,
		.ms = clock_real_ms(),
		.bytes = w->bytes_used,
		.calls = w->calls,
		.execution = view_str(w->execution),
		.incident = r->means.incident,
		.outcome = view_str(r->means.class == CLASS_SUCCEEDED ? "succeeded"
				    : r->means.class == CLASS_FAILED  ? "failed"
								      : "unknown"),
		.receipt = r->kept.n == 0 ? view_str("{}") : buf_view(&r->kept),
		.sends = w->sends,
		.first_byte_us = w->first_byte_us,
		.status = r->status,
		.text = view_str(r->text)};
	struct err err = {0};

	memcpy(e.response, r->response, SHA256_BYTES);
	if (ledger_add(w->b->ledger, &e, &err) < 0) {
		/* A person may have settled it meanwhile: then that stands. */
		broker_log(
			w->b, "%s: the look-up could not be recorded: %s", w->execution, err.text);
	}
	lookup_end(w, NULL);
}

static void
not_found(struct work *w, struct receipt *r)
{
	const struct capability *cap = &w->op->provider.capability;
	const struct spent *s = ledger_by_execution(w->b->ledger, view_str(w->execution));
	uint64_t now = clock_real_ms(), proof = s->ended_ms + cap->consistency_ms;

	/* The broker that sent it ended without an answer: the provider may be at it for as long as an answer was waited for. */
	if (s->ended_at == 0)
		proof = s->ms + w->op->provider.timeout_ms + cap->consistency_ms;
	if (now < proof) {
		(void)snprintf(r->text, sizeof(r->text),
			"the provider does not know it; that proves nothing for %llu s more",
			(unsigned long long)((proof - now + 999) / 1000));
		lookup_end(w, r->text);
		return;
	}
	if (cap->lookup == LOOKUP_KEY && cap->key_window_ms != 0 &&
		now + LIMIT_KEY_MARGIN_MS >= s->ms + cap->key_window_ms) {
		lookup_end(w, "the provider does not know it, but may have forgotten the key: a "
			      "person must settle it");
		return;
	}
	r->means = (struct answer_means){.class = CLASS_FAILED};
	(void)snprintf(r->text, sizeof(r->text), "the provider does not know it: it was not done");
	lookup_found(w, r);
}

/* One thing was found; its state decides. */
static void
found(struct work *w, const struct lookup_rule *rule, const json_t *thing, struct receipt *r)
{
	const json_t *state = answer_at(thing, rule->field);
	struct view word = json_is_string(state)
				   ? view_of(json_string_value(state), json_string_length(state))
				   : view_of(NULL, 0);

	if (lookup_rule_has(rule->succeeded, word)) {
		r->means = (struct answer_means){.class = CLASS_SUCCEEDED};
		(void)snprintf(r->text, sizeof(r->text), "the provider says that it was done");
		receipt_judge(w, thing, r);
		lookup_found(w, r);
	} else if (rule->failed.n != 0 && lookup_rule_has(rule->failed, word)) {
		r->means = (struct answer_means){.class = CLASS_FAILED};
		(void)snprintf(r->text, sizeof(r->text), "the provider says that it was not done");
		lookup_found(w, r);
	} else {
		lookup_end(w, "the provider knows it and has not finished");
	}
}

static void
lookup_read(struct work *w, const json_t *root, struct receipt *r)
{
	struct lookup_rule rule;
	const json_t *all;

	must(request_lookup_rule(w->op, &rule));
	if (rule.list.n == 0) {
		found(w, &rule, root, r);
		return;
	}
	all = answer_at(root, rule.list);
	if (!json_is_array(all)) {
		lookup_end(w, "the answer to the look-up has no list where one should be");
	} else if (json_array_size(all) == 0) {
		not_found(w, r);
	} else if (json_array_size(all) == 1) {
		found(w, &rule, json_array_get(all, 0), r);
	} else {
		r->means = (struct answer_means){.class = CLASS_UNKNOWN, .incident = true};
		(void)snprintf(r->text, sizeof(r->text),
			"the provider has %zu effects with this key: a person must look",
			json_array_size(all));
		lookup_found(w, r);
	}
}

static void
on_done(struct call *c)
{
	struct work *w = c->owner;
	const struct spent *s = ledger_by_execution(w->b->ledger, view_str(w->execution));
	struct receipt r = {.status = (unsigned)c->status};
	auto_json json_t *root = NULL;
	struct err err = c->why;

	w->calls += c->sent;
	w->bytes_used += c->bytes;
	buf_init(&r.kept, LIMIT_FACTS_BYTES + 8);
	sha256_of(buf_view(&c->body), r.response);
	must(s != NULL);
	if (s->outcome == OUTCOME_SUCCEEDED || s->outcome == OUTCOME_FAILED) {
		lookup_end(w, NULL); /* settled, or found by another look-up */
	} else if (c->end != CALL_ANSWERED) {
		(void)err_context(&err, "look-up");
		lookup_end(w, err.text);
	} else if (c->status == 404) {
		not_found(w, &r);
	} else if (c->status < 200 || c->status > 299) {
		(void)err_set(&err, -EIO, "the provider answered the look-up with %ld", c->status);
		lookup_end(w, err.text);
	} else if (answer_parse(buf_view(&c->body), &root, &err) < 0) {
		(void)err_context(&err, "the answer to the look-up");
		lookup_end(w, err.text);
	} else {
		lookup_read(w, root, &r);
	}
	receipt_done(&r);
}

/* The record is the one that was sent, and the operation still means the same requests. */
static enum denial
check(struct work *w, const struct spent *s, struct view record, struct err *err)
{
	uint8_t digest[SHA256_BYTES];

	proposal_digest(record, digest);
	if (memcmp(digest, s->record, SHA256_BYTES) != 0) {
		(void)err_set(err, -EPERM, "this is not the record that was sent");
		return DENIAL_DIGEST;
	}
	if (work_keep(w, record, view_of(NULL, 0), err) < 0)
		return DENIAL_BROKER_UNAVAILABLE;
	if (proposal_record_read(w->record, &w->room, &w->r, err) < 0)
		return DENIAL_RECORD_MALFORMED;
	w->op = catalogue_find(&w->b->catalogue, w->r.action);
	if (w->op == NULL) {
		(void)err_set(err, -ENOENT,
			"there is no such operation any more: a person must settle it");
		return DENIAL_OPERATION_UNKNOWN;
	}
	if (memcmp(w->op->adapter, w->r.adapter, SHA256_BYTES) != 0) {
		(void)err_set(err, -EPERM,
			"the operation's provider changed since it was sent: a person must settle "
			"it");
		return DENIAL_ADAPTER_CHANGED;
	}
	return DENIAL_NONE;
}

/* The look-up's values: the key, or the reference that the provider gave. false: there is no way to ask. */
static bool
values(struct work *w, const struct spent *s, struct request_values *v, struct buf *reference)
{
	auto_buf struct buf room = {.max = 4 * LIMIT_ENTRY_BYTES};
	struct entry e;
	struct view id;
	struct err err;

	*v = (struct request_values){.arguments = w->r.arguments,
		.tenant = w->r.tenant,
		.task = w->r.task,
		.proposal = w->r.proposal,
		.key = w->r.idempotency_key};
	if (ledger_ended(w->b->ledger, s, &room, &e, &err) == 0) {
		w->sends = (uint32_t)e.sends;
		w->first_byte_us = e.first_byte_us;
		id = member(e.receipt, view_str("reference"));
		if (id.n != 0 && !string_of(id, reference))
			buf_add_view(reference, id);
		v->reference = buf_view(reference);
	}
	switch (w->op->provider.capability.lookup) {
	case LOOKUP_NONE:
		return false;
	case LOOKUP_KEY:
		return true;
	case LOOKUP_REFERENCE:
		return reference->n != 0;
	}
	return false;
}

static void
begin(struct work *w, const struct spent *s)
{
	auto_buf struct buf reference = {.max = 4096};
	struct request q = {0};
	struct request_values v;
	struct err err = {0};

	if (!values(w, s, &v, &reference)) {
		lookup_end(w,
			"the provider cannot be asked what became of it: a person must settle it");
		return;
	}
	if (request_render_lookup(w->op, &v, &q, &err) < 0) {
		request_done(&q);
		lookup_end(w, err.text);
		return;
	}
	w->call = call_new(w->b, &w->op->provider, &q, &err);
	request_done(&q);
	if (w->call == NULL) {
		lookup_end(w, err.text);
		return;
	}
	w->call->owner = w;
	w->call->done = on_done;
	call_start(w->call);
}

void
lookup_ask(struct broker *b, struct ask ask, const struct msg_lookup_ask *m)
{
	char execution[ID_TEXT];
	const struct spent *s;
	struct err err = {0};
	struct work *w;
	enum denial denial;

	id_text(&m->execution, ID_EXECUTION, execution);
	if (joined(b, ask, execution))
		return;
	s = ledger_by_execution(b->ledger, view_str(execution));
	if (s == NULL) {
		tell_refused(b, ask, DENIAL_STATE, "the ledger does not have this execution");
		return;
	}
	if (s->outcome == OUTCOME_SUCCEEDED || s->outcome == OUTCOME_FAILED) {
		tell_spent(b, ask, s, 0, 0);
		return;
	}
	w = work_new(b, WORK_LOOKUP, ask);
	if (w == NULL)
		return;
	memcpy(w->execution, execution, ID_TEXT);
	denial = check(w, s, m->record, &err);
	if (denial != DENIAL_NONE) {
		tell_refused(b, ask, denial, err.text);
		work_free(w);
		return;
	}
	begin(w, s);
}
