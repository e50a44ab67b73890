/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Actions as the stand-in plays them. Operations: refund (waits for a decision), drops (its execution is unknown), no_grant (refused), late_denial
 * (becomes a row that is denied), twice (an earlier one is the answer), echo (told back and
 * not kept). A signature that begins with "bad" does not hold. What the
 * api made of a body is told back: the record of a proposal is its canonical bytes, its text the provenance.
 */
#include "fake_actions.h"

#include "lib/base/clock.h"
#include "lib/base/sha256.h"

#include <stdio.h>

enum { PROPOSALS = 256, EXECUTIONS = 256, RECORD_MAX = 65536 };

struct fake_proposal {
	struct id id, task, execution;
	char operation[64], task_name[257], text[513];
	struct buf record, note, decisions;
	uint8_t digest[SHA256_BYTES];
	enum proposal_state state;
};

struct fake_execution {
	struct id id, proposal;
	enum execution_state state;
	struct buf settlement;
};

static struct fake_proposal proposals[PROPOSALS];
static struct fake_execution executions[EXECUTIONS];
static size_t nproposals, nexecutions;
static struct id grant_id;
static bool grant_revoked;
static struct msg_containment_row contained;
static char contained_scope[265];

#define HANDLER(name)                                                   \
	static int on_##name(struct ipc_peer *peer, struct ipc_msg *in, \
		const struct msg_##name *m, struct err *err);           \
	IPC_HANDLER(name, on_##name)                                    \
	static int on_##name(struct ipc_peer *peer, struct ipc_msg *in, \
		const struct msg_##name *m, struct err *err)

/* Whether the question goes on: a known caller, and not of another tenant. */
static bool
own(struct ipc_peer *peer, uint64_t tag, const struct caller *c)
{
	if (!fake_known(peer, tag, c))
		return false;
	if (!fake_other_tenant(peer, c))
		return true;
	fake_refused(peer, tag, ERROR_NOT_FOUND, "no such object");
	return false;
}

static void
denied(struct ipc_peer *peer, uint64_t tag, enum error error, enum denial denial, const char *text)
{
	IPC_SEND(peer, tag, REFUSED, refused,
		{.error = (uint16_t)error, .denial = denial, .text = view_str(text)});
}

static void
operation_row(struct ipc_peer *peer, uint64_t tag)
{
	IPC_SEND(peer, tag, OPERATION_ROW, operation_row,
		{.name = view_str("refund"),
			.version = 3,
			.effect = EFFECT_IRREVERSIBLE,
			.operation = {0xaa},
			.catalogue = {0xbb},
			.document = view_str("{\"effect\":\"irreversible\",\"name\":\"refund\"}")});
}

HANDLER(operation_list)
{
	(void)err;
	if (!fake_known(peer, in->tag, &m->caller))
		return 0;
	operation_row(peer, in->tag);
	IPC_SEND(peer, in->tag, END, end, {0});
	return 0;
}

HANDLER(operation_get)
{
	(void)err;
	if (!fake_known(peer, in->tag, &m->caller))
		return 0;
	if (view_is(m->name, "refund"))
		operation_row(peer, in->tag);
	else
		fake_refused(peer, in->tag, ERROR_NOT_FOUND, "no such operation");
	return 0;
}

static void
grant_row(struct ipc_peer *peer, uint64_t tag, const struct msg_grant_issue *m)
{
	static const char where[] = "order.tenant == @tenant";

	if (id_is_zero(&grant_id))
		id_new(&grant_id);
	IPC_SEND(peer, tag, GRANT_ROW, grant_row,
		{.grant = grant_id,
			.task = grant_id,
			.tenant = view_str("acme"),
			.operation = m == NULL ? view_str("refund") : m->operation,
			.version = 1,
			.where = m == NULL ? view_of(where, sizeof(where)) : m->where,
			.uses = m == NULL ? 1 : m->uses,
			.created_ms = 1700000000000,
			.expires_ms = 1700000000000 + (m == NULL ? 600000 : m->ttl_ms),
			.revoked_ms = grant_revoked ? 1700000000001 : 0,
			.changed = m == NULL,
			.issuer = view_str("uid:0")});
}

HANDLER(grant_issue)
{
	(void)err;
	if (!own(peer, in->tag, &m->caller))
		return 0;
	grant_revoked = false;
	grant_row(peer, in->tag, m);
	return 0;
}

HANDLER(grant_list)
{
	(void)err;
	if (!own(peer, in->tag, &m->caller))
		return 0;
	grant_row(peer, in->tag, NULL);
	IPC_SEND(peer, in->tag, END, end, {0});
	return 0;
}

HANDLER(budget_list)
{
	(void)err;
	if (!own(peer, in->tag, &m->caller))
		return 0;
	IPC_SEND(peer, in->tag, BUDGET_ROW, budget_row,
		{.counter = COUNTER_PROPOSALS, .used = 3, .limit = 100});
	IPC_SEND(peer, in->tag, BUDGET_ROW, budget_row,
		{.of_tenant = true,
			.operation = view_str("refund"),
			.counter = COUNTER_MONEY,
			.unit = view_str("EUR"),
			.reserved = 4200,
			.used = 100,
			.limit = 50000});
	IPC_SEND(peer, in->tag, END, end, {0});
	return 0;
}

/* ---- proposals ---- */

static void
proposal_row(struct ipc_peer *peer, uint64_t tag, const struct fake_proposal *p, bool duplicate)
{
	struct msg_proposal_row row = {.proposal = p->id,
		.task = p->task,
		.tenant = view_str("acme"),
		.operation = view_str(p->operation),
		.state = p->state,
		.denial = p->state == PROPOSAL_STATE_DENIED ? DENIAL_VERIFY_FAILED : DENIAL_NONE,
		.text = view_str(p->text),
		.duplicate = duplicate,
		.quorum = 1,
		.created_ms = 1700000000000,
		.decide_by_ms = 1700000600000,
		.execution = p->execution,
		.record = buf_view(&p->record),
		.note = buf_view(&p->note),
		.decisions = buf_view(&p->decisions)};

	memcpy(row.digest, p->digest, sizeof(row.digest));
	IPC_SEND(peer, tag, PROPOSAL_ROW, proposal_row, row);
}

static struct fake_proposal *
proposal_find(struct ipc_peer *peer, uint64_t tag, const struct id *id)
{
	for (size_t i = 0; i < nproposals; i++)
		if (id_eq(&proposals[i].id, id))
			return &proposals[i];
	fake_refused(peer, tag, ERROR_NOT_FOUND, "no such proposal");
	return NULL;
}

/* The value behind "operation":" in canonical bytes, which is the last member. */
static void
operation_of(struct view proposal, char ret[64])
{
	size_t n = proposal.n - 2, at = n;

	while (at > 0 && proposal.p[at - 1] != '"')
		at--;
	(void)snprintf(ret, 64, "%.*s", (int)(n - at), (const char *)proposal.p + at);
}

HANDLER(proposal_create)
{
	struct fake_proposal *p = &proposals[nproposals];
	char operation[64];

	(void)err;
	if (!own(peer, in->tag, &m->caller))
		return 0;
	operation_of(m->proposal, operation);
	if (strcmp(operation, "no_grant") == 0) {
		denied(peer, in->tag, ERROR_DENIED, DENIAL_NO_GRANT,
			"the task has no grant for this operation");
		return 0;
	}
	if (strcmp(operation, "echo") == 0) {
		IPC_SEND(peer, in->tag, PROPOSAL_ROW, proposal_row,
			{.proposal = {{1}},
				.task = {{1}},
				.operation = view_str(operation),
				.record = m->proposal});
		return 0;
	}
	for (size_t i = 0; strcmp(operation, "twice") == 0 && i < nproposals; i++)
		if (strcmp(proposals[i].operation, "twice") == 0) {
			proposal_row(peer, in->tag, &proposals[i], true);
			return 0;
		}
	must(nproposals++ < PROPOSALS);
	*p = (struct fake_proposal){.state = strcmp(operation, "late_denial") == 0
						     ? PROPOSAL_STATE_DENIED
						     : PROPOSAL_STATE_PENDING};
	id_new(&p->id);
	id_new(&p->task);
	(void)snprintf(p->operation, sizeof(p->operation), "%s", operation);
	(void)snprintf(p->task_name, sizeof(p->task_name), "%.*s", VIEW_ARGS(m->task));
	for (size_t i = 0; i < m->provenance.n && i < 500; i++)
		p->text[i] = m->provenance.p[i] == 0 ? '/' : (char)m->provenance.p[i];
	buf_init(&p->record, RECORD_MAX);
	buf_init(&p->note, 2048);
	buf_init(&p->decisions, 41000);
	buf_add_view(&p->record, m->proposal);
	buf_add_str(&p->note, "words of a model\n<b>");
	sha256_of(m->proposal, p->digest);
	proposal_row(peer, in->tag, p, false);
	return 0;
}

HANDLER(proposal_list)
{
	size_t sent = 0, i = nproposals;

	(void)err;
	if (!own(peer, in->tag, &m->caller))
		return 0;
	while (!id_is_zero(&m->after) && i > 0 && !id_eq(&proposals[--i].id, &m->after))
		;
	while (i > 0 && sent < m->limit) {
		struct fake_proposal *p = &proposals[--i];

		if ((m->open && p->state != PROPOSAL_STATE_PENDING) ||
			(m->task.n > 0 && !view_is(m->task, p->task_name)))
			continue;
		proposal_row(peer, in->tag, p, false);
		sent++;
	}
	IPC_SEND(peer, in->tag, END, end, {.more = i > 0});
	return 0;
}

HANDLER(proposal_get)
{
	struct fake_proposal *p;

	(void)err;
	if (own(peer, in->tag, &m->caller) &&
		(p = proposal_find(peer, in->tag, &m->proposal)) != NULL)
		proposal_row(peer, in->tag, p, false);
	return 0;
}

static void
sized_put(struct buf *b, struct view v)
{
	buf_add_byte(b, (uint8_t)(v.n >> 8));
	buf_add_byte(b, (uint8_t)v.n);
	buf_add_view(b, v);
}

static void
execute(struct fake_proposal *p)
{
	struct fake_execution *x = &executions[nexecutions];
	bool drops = strcmp(p->operation, "drops") == 0;

	must(nexecutions++ < EXECUTIONS);
	*x = (struct fake_execution){.proposal = p->id,
		.state = drops ? EXECUTION_STATE_UNKNOWN : EXECUTION_STATE_SUCCEEDED};
	id_new(&x->id);
	buf_init(&x->settlement, 4096);
	p->execution = x->id;
	p->state = drops ? PROPOSAL_STATE_UNKNOWN : PROPOSAL_STATE_SUCCEEDED;
}

HANDLER(proposal_decide)
{
	struct fake_proposal *p;

	(void)err;
	if (!own(peer, in->tag, &m->caller) ||
		(p = proposal_find(peer, in->tag, &m->proposal)) == NULL)
		return 0;
	if (memcmp(m->shown, p->digest, sizeof(p->digest)) != 0) {
		fake_refused(peer, in->tag, ERROR_CONFLICT, "the proposal is not what was shown");
		return 0;
	}
	if (p->state != PROPOSAL_STATE_PENDING) {
		fake_refused(peer, in->tag, ERROR_CONFLICT, "it was decided already, by anna");
		return 0;
	}
	if (view_starts(m->signature, "bad")) {
		denied(peer, in->tag, ERROR_DENIED, DENIAL_SIGNATURE,
			"the signature does not hold");
		return 0;
	}
	sized_put(&p->decisions, m->decision);
	sized_put(&p->decisions, m->signature);
	execute(p);
	proposal_row(peer, in->tag, p, false);
	return 0;
}

/* ---- executions ---- */

static void
execution_row(struct ipc_peer *peer, uint64_t tag, const struct fake_execution *x)
{
	IPC_SEND(peer, tag, EXECUTION_ROW, execution_row,
		{.execution = x->id,
			.proposal = x->proposal,
			.task = x->proposal,
			.tenant = view_str("acme"),
			.operation = view_str("refund"),
			.state = x->state,
			.settled = ATTEMPT_SUCCEEDED,
			.status = x->state == EXECUTION_STATE_UNKNOWN ? 0 : 200,
			.sends = 1,
			.key = view_str("dml-00"),
			.provider_account = view_str("acct"),
			.started_ms = 1700000000000,
			.ended_ms = 1700000000100,
			.first_byte_us = 4200,
			.response = {1},
			.text = buf_view(&x->settlement),
			.receipt = view_str("{\"refund_id\":\"re_1\"}")});
}

static struct fake_execution *
execution_find(struct ipc_peer *peer, uint64_t tag, const struct id *id)
{
	for (size_t i = 0; i < nexecutions; i++)
		if (id_eq(&executions[i].id, id))
			return &executions[i];
	fake_refused(peer, tag, ERROR_NOT_FOUND, "no such execution");
	return NULL;
}

HANDLER(execution_get)
{
	struct fake_execution *x;

	(void)err;
	if (own(peer, in->tag, &m->caller) &&
		(x = execution_find(peer, in->tag, &m->execution)) != NULL)
		execution_row(peer, in->tag, x);
	return 0;
}

HANDLER(execution_list)
{
	(void)err;
	if (!own(peer, in->tag, &m->caller))
		return 0;
	for (size_t i = nexecutions; i > 0; i--)
		if (!m->open || executions[i - 1].state == EXECUTION_STATE_UNKNOWN)
			execution_row(peer, in->tag, &executions[i - 1]);
	IPC_SEND(peer, in->tag, END, end, {0});
	return 0;
}

HANDLER(reconcile)
{
	struct fake_execution *x;

	(void)err;
	if (!own(peer, in->tag, &m->caller) ||
		(x = execution_find(peer, in->tag, &m->execution)) == NULL)
		return 0;
	must((m->settlement.n > 0) == (m->signature.n > 0));
	buf_clear(&x->settlement);
	buf_add_view(&x->settlement, m->settlement);
	if (x->state == EXECUTION_STATE_UNKNOWN && m->settlement.n > 0)
		x->state = EXECUTION_STATE_MANUAL;
	execution_row(peer, in->tag, x);
	return 0;
}

/* ---- incidents ---- */

HANDLER(authority_revoke)
{
	char grant[ID_TEXT];

	(void)err;
	if (!own(peer, in->tag, &m->caller))
		return 0;
	id_text(&grant_id, ID_GRANT, grant);
	if (m->kind == AUTHORITY_GRANT && !view_is(m->name, grant)) {
		fake_refused(peer, in->tag, ERROR_NOT_FOUND, "no such grant");
		return 0;
	}
	grant_revoked = grant_revoked || m->kind == AUTHORITY_GRANT;
	IPC_SEND(peer, in->tag, DONE, done, {0});
	return 0;
}

static void
containment_row(struct ipc_peer *peer, uint64_t tag)
{
	IPC_SEND(peer, tag, CONTAINMENT_ROW, containment_row, contained);
}

HANDLER(contain)
{
	(void)err;
	if (!own(peer, in->tag, &m->caller))
		return 0;
	if (view_is(m->scope, "nothing")) {
		fake_refused(peer, in->tag, ERROR_BAD_REQUEST, "nothing is no scope");
		return 0;
	}
	(void)snprintf(contained_scope, sizeof(contained_scope), "%.*s", VIEW_ARGS(m->scope));
	contained = (struct msg_containment_row){.scope = view_str(contained_scope),
		.reason = view_str("leak"),
		.by = view_str("uid:0"),
		.since_ms = 1700000000000,
		.sandboxes_ended = 2,
		.grants_revoked = 1,
		.executions_open = 1};
	containment_row(peer, in->tag);
	for (size_t i = 0; i < nexecutions; i++)
		if (executions[i].state == EXECUTION_STATE_UNKNOWN)
			execution_row(peer, in->tag, &executions[i]);
	IPC_SEND(peer, in->tag, END, end, {0});
	return 0;
}

HANDLER(containment_list)
{
	(void)err;
	if (!own(peer, in->tag, &m->caller))
		return 0;
	if (contained.scope.n > 0)
		containment_row(peer, in->tag);
	IPC_SEND(peer, in->tag, END, end, {0});
	return 0;
}

HANDLER(release)
{
	(void)err;
	if (!own(peer, in->tag, &m->caller))
		return 0;
	if (view_starts(m->signature, "bad")) {
		denied(peer, in->tag, ERROR_DENIED, DENIAL_SIGNATURE,
			"the signature does not hold");
		return 0;
	}
	contained.released_ms = 1700000000002;
	containment_row(peer, in->tag);
	return 0;
}

/* ---- the tree ---- */

HANDLER(checkpoint_get)
{
	(void)err;
	if (fake_known(peer, in->tag, &m->caller))
		IPC_SEND(peer, in->tag, CHECKPOINT_ROW, checkpoint_row,
			{.size = m->fresh ? 451 : 400,
				.note = view_str("demilune.local/audit\n400\nAAAA\n\n\xe2\x80\x94 "
						 "demilune.local/audit AAAA\n"),
				.audit_key = view_str("demilune.local/audit+00000000+AAAA")});
	return 0;
}

HANDLER(inclusion_get)
{
	(void)err;
	if (!own(peer, in->tag, &m->caller))
		return 0;
	for (size_t i = 0; i + 8 <= m->leaves.n; i += 8) {
		uint64_t leaf = 0;

		for (size_t k = 0; k < 8; k++)
			leaf = leaf << 8 | m->leaves.p[i + k];
		IPC_SEND(peer, in->tag, PROOF_ROW, proof_row,
			{.leaf = leaf,
				.size = m->size,
				.hashes = view_of("0123456789abcdef0123456789abcdefABCDEF0123456789"
						  "ABCDEF0123456789",
					64)});
	}
	IPC_SEND(peer, in->tag, END, end, {0});
	return 0;
}

HANDLER(consistency_get)
{
	(void)err;
	if (fake_known(peer, in->tag, &m->caller))
		IPC_SEND(peer, in->tag, PROOF_ROW, proof_row,
			{.leaf = m->from,
				.size = m->size,
				.hashes = view_of("0123456789abcdef0123456789abcdef", 32)});
	return 0;
}

const struct ipc_row fake_action_rows[] = {
	IPC_ROW(OPERATION_LIST, IN_ANY, on_operation_list),
	IPC_ROW(OPERATION_GET, IN_ANY, on_operation_get),
	IPC_ROW(GRANT_ISSUE, IN_ANY, on_grant_issue),
	IPC_ROW(GRANT_LIST, IN_ANY, on_grant_list),
	IPC_ROW(BUDGET_LIST, IN_ANY, on_budget_list),
	IPC_ROW(PROPOSAL_CREATE, IN_ANY, on_proposal_create),
	IPC_ROW(PROPOSAL_LIST, IN_ANY, on_proposal_list),
	IPC_ROW(PROPOSAL_GET, IN_ANY, on_proposal_get),
	IPC_ROW(PROPOSAL_DECIDE, IN_ANY, on_proposal_decide),
	IPC_ROW(EXECUTION_LIST, IN_ANY, on_execution_list),
	IPC_ROW(EXECUTION_GET, IN_ANY, on_execution_get),
	IPC_ROW(RECONCILE, IN_ANY, on_reconcile),
	IPC_ROW(AUTHORITY_REVOKE, IN_ANY, on_authority_revoke),
	IPC_ROW(CONTAIN, IN_ANY, on_contain),
	IPC_ROW(CONTAINMENT_LIST, IN_ANY, on_containment_list),
	IPC_ROW(RELEASE, IN_ANY, on_release),
	IPC_ROW(CHECKPOINT_GET, IN_ANY, on_checkpoint_get),
	IPC_ROW(INCLUSION_GET, IN_ANY, on_inclusion_get),
	IPC_ROW(CONSISTENCY_GET, IN_ANY, on_consistency_get),
};
const size_t fake_action_rows_n = ARRAY_LEN(fake_action_rows);
