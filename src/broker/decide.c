/* SPDX-License-Identifier: Apache-2.0 */
/* What is answered at once: decisions, settlements, releases, revocations, containments and epochs. Each is on disk before its answer. */
#include "broker/check.h"
#include "broker/work.h"

#include "lib/action/check.h"
#include "lib/base/clock.h"
#include "lib/base/name.h"

#include <errno.h>

/* `seen_ms`: when the ledger has it. */
static void
tell_decision(struct broker *b, struct ask ask, const struct authority_is *is, enum denial denial,
	const char *text, uint64_t seen_ms)
{
	char room[TEXT_BYTES];

	if (text[0] == '\0')
		text = denial_sentence(denial);
	TELL(b, ask, DECISION_IS, decision_is,
		{.denial = denial,
			.text = view_str(denial == DENIAL_NONE ? "" : broker_text(b, text, room)),
			.approver = view_str(is->approver),
			.key = view_str(is->key),
			.seen_ms = seen_ms,
			.quorum = is->quorum});
}

void
decision_ask(struct broker *b, struct ask ask, const struct msg_decision_ask *m)
{
	char proposal[ID_TEXT];
	struct record_check c = {.b = b, .record = m->record, .proposal = proposal};
	struct authority_is is = {.denial = DENIAL_RECORD_MALFORMED};
	struct entry e = {.kind = ENTRY_ACCEPTED};
	struct authority_ask question;
	struct err err = {0};
	uint64_t seen;

	id_text(&m->proposal, ID_PROPOSAL, proposal);
	approvers_look(b);
	check_record(&c, false);
	question = check_ask(&c);
	authority_decide(&question, m->decision, m->signature, &is);
	if (is.denial == DENIAL_NONE && c.failed != 0)
		is.denial =
			DENIAL_RECORD_MALFORMED; /* a bit that nobody asked for is no permission */
	authority_digest(m->decision, e.decision);
	seen = ledger_accepted_ms(b->ledger, e.decision);
	if (seen == 0)
		seen = question.now_ms;
	if (is.denial == DENIAL_NONE && is.approve && seen == question.now_ms) {
		e.ms = seen;
		e.approver = view_str(is.approver);
		e.key = view_str(is.key);
		e.proposal = view_str(proposal);
		memcpy(e.record, c.digest, SHA256_BYTES);
		if (ledger_add(b->ledger, &e, &err) < 0) {
			is.denial = DENIAL_AUDIT_UNAVAILABLE;
			is.why = err;
		}
	}
	tell_decision(b, ask, &is, is.denial, is.why.text, is.denial == DENIAL_NONE ? seen : 0);
	check_done(&c);
}

/* ---- settlement ---- */

static enum denial
settle_check(struct broker *b, const struct spent *s, const struct msg_settle_ask *m,
	const char *execution, struct err *err)
{
	uint8_t digest[SHA256_BYTES];

	proposal_digest(m->record, digest);
	if (s == NULL) {
		(void)err_set(err, -ENOENT, "the ledger does not have this execution");
		return DENIAL_STATE;
	}
	if (memcmp(digest, s->record, SHA256_BYTES) != 0) {
		(void)err_set(err, -EPERM, "this is not the record that was sent");
		return DENIAL_DIGEST;
	}
	if (work_of_execution(b, execution) != NULL ||
		(s->outcome != OUTCOME_OPEN && s->outcome != OUTCOME_UNKNOWN)) {
		(void)err_set(err, -EPERM, "only an unknown execution can be settled");
		return DENIAL_STATE;
	}
	return DENIAL_NONE;
}

void
settle_ask(struct broker *b, struct ask ask, const struct msg_settle_ask *m)
{
	auto_buf struct buf room = {.max = 4 * PROPOSAL_RECORD_MAX},
			    settled_room = {.max = 4 * DECISION_RECORD_MAX};
	struct authority_is is = {.denial = DENIAL_RECORD_MALFORMED};
	struct entry e = {.kind = ENTRY_SETTLED, .ms = clock_real_ms()};
	struct settlement_record settlement;
	struct proposal_record record;
	char execution[ID_TEXT];
	const struct spent *s;
	enum denial denial;
	struct err err = {0};

	id_text(&m->execution, ID_EXECUTION, execution);
	s = ledger_by_execution(b->ledger, view_str(execution));
	approvers_look(b);
	denial = settle_check(b, s, m, execution, &err);
	if (denial == DENIAL_NONE && (proposal_record_read(m->record, &room, &record, &err) < 0 ||
					     settlement_record_read(m->settlement, &settled_room,
						     &settlement, &err) < 0))
		denial = DENIAL_RECORD_MALFORMED;
	if (denial == DENIAL_NONE) {
		const struct authority_ask question = {
			.op = catalogue_find(&b->catalogue, record.action),
			.approvers = approval_now(&b->approval),
			.record = m->record,
			.now_ms = e.ms,
		};

		authority_settle(&question, view_str(execution), m->settlement, m->signature, &is);
		denial = is.denial;
		err = is.why;
	}
	if (denial == DENIAL_NONE) {
		e.approver = view_str(is.approver);
		e.execution = view_str(execution);
		e.key = view_str(is.key);
		e.outcome = view_str(settlement.succeeded ? "succeeded" : "failed");
		sha256_of(m->settlement, e.record);
		if (ledger_add(b->ledger, &e, &err) < 0)
			denial = DENIAL_AUDIT_UNAVAILABLE;
	}
	tell_decision(b, ask, &is, denial, err.text, denial == DENIAL_NONE ? e.ms : 0);
}

/* ---- release ---- */

void
release_ask(struct broker *b, struct ask ask, const struct msg_release_ask *m)
{
	auto_buf struct buf room = {.max = 4 * DECISION_RECORD_MAX};
	struct authority_is is = {.denial = DENIAL_RECORD_MALFORMED};
	struct entry e = {.kind = ENTRY_RELEASED, .ms = clock_real_ms()};
	struct authority_ask question = {.now_ms = e.ms};
	struct release_record release;
	struct err err = {0};
	const struct spent *open = NULL;
	enum denial denial;

	approvers_look(b);
	question.approvers = approval_now(&b->approval);
	sha256_of(m->release, e.record);
	if (release_record_read(m->release, &room, &release, &err) < 0) {
		tell_decision(b, ask, &is, DENIAL_RECORD_MALFORMED, err.text, 0);
		return;
	}
	open = ledger_open_in(b->ledger, release.scope);
	/* Signed once, for the containment that was: it does not end a later one. */
	if (ledger_released(b->ledger, e.record))
		question.failed |= AUTHORITY_BIT(DENIAL_SPENT);
	if (open != NULL)
		question.failed |= AUTHORITY_BIT(DENIAL_RELEASE_BLOCKED);
	authority_release(&question, m->release, m->signature, &is);
	denial = is.denial;
	err = is.why;
	if (denial == DENIAL_NONE && question.failed != 0)
		denial = DENIAL_RELEASE_BLOCKED;
	if (denial == DENIAL_RELEASE_BLOCKED && open != NULL)
		(void)err_set(&err, -EPERM, "%s is not settled", open->execution);
	if (denial == DENIAL_NONE) {
		e.approver = view_str(is.approver);
		e.key = view_str(is.key);
		e.scope = release.scope;
		if (ledger_add(b->ledger, &e, &err) < 0)
			denial = DENIAL_AUDIT_UNAVAILABLE;
	}
	tell_decision(b, ask, &is, denial, err.text, denial == DENIAL_NONE ? e.ms : 0);
}

/* ---- taking authority away needs no person ---- */

void
revoke_ask(struct broker *b, struct ask ask, const struct msg_revoke *m)
{
	char proposal[ID_TEXT];
	struct entry e = {.kind = ENTRY_REVOKED, .ms = clock_real_ms()};
	struct err err = {0};

	id_text(&m->proposal, ID_PROPOSAL, proposal);
	e.proposal = view_str(proposal);
	if (!ledger_revoked(b->ledger, e.proposal) && ledger_add(b->ledger, &e, &err) < 0) {
		tell_refused(b, ask, DENIAL_AUDIT_UNAVAILABLE, err.text);
		return;
	}
	TELL(b, ask, REVOKED, revoked,
		{.spent = ledger_by_proposal(b->ledger, e.proposal) != NULL});
}

static bool
scope_ok(struct view scope)
{
	struct id id;

	if (view_starts(scope, "tenant:"))
		return name_ok(view_skip(scope, 7));
	if (view_starts(scope, "task:"))
		return id_parse(view_skip(scope, 5), ID_TASK, &id) == 0;
	return view_is(scope, "host");
}

void
contain(struct broker *b, struct ask ask, const struct msg_broker_contain *m)
{
	struct entry e = {.kind = ENTRY_CONTAINED, .ms = clock_real_ms(), .scope = m->scope};
	struct err err = {0};

	if (!scope_ok(m->scope)) {
		tell_refused(b, ask, DENIAL_RECORD_MALFORMED,
			"a scope is host, tenant:NAME or task:tk_...");
		return;
	}
	if (!ledger_scope_contained(b->ledger, m->scope) && ledger_add(b->ledger, &e, &err) < 0) {
		tell_refused(b, ask, DENIAL_AUDIT_UNAVAILABLE, err.text);
		return;
	}
	TELL(b, ask, BROKER_DONE, broker_done, {0});
}

/* Containment first: between the two nothing may be sent under either epoch. */
void
epoch_next(struct broker *b, struct ask ask)
{
	struct entry host = {
		.kind = ENTRY_CONTAINED, .ms = clock_real_ms(), .scope = view_str("host")};
	struct entry next = {
		.kind = ENTRY_EPOCH, .ms = host.ms, .epoch = ledger_epoch(b->ledger) + 1};
	struct err err = {0};

	if ((!ledger_scope_contained(b->ledger, host.scope) &&
		    ledger_add(b->ledger, &host, &err) < 0) ||
		ledger_add(b->ledger, &next, &err) < 0) {
		tell_refused(b, ask, DENIAL_AUDIT_UNAVAILABLE, err.text);
		return;
	}
	checkpoint_epoch(b);
	TELL(b, ask, EPOCH_IS, epoch_is, {.epoch = ledger_epoch(b->ledger)});
}
