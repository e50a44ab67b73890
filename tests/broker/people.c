/* SPDX-License-Identifier: Apache-2.0 */
/* The people of the play: keys, records, signatures. */
#include "play.h"

#include "lib/action/request.h"
#include "lib/action/schema.h"
#include "lib/approval/display.h"
#include "lib/approval/sshsig.h"
#include "lib/base/base64.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

static const char *const names[PEOPLE] = {"anna", "ben", "carl"};
static const char *const usual[PEOPLE] = {
	"may=refund,reply up-to=cents:200000 role=lead principal=uid:1001",
	"may=refund,reply role=lead,release principal=uid:1002", "may=reply principal=uid:1003"};

static void
key_make(struct person *who)
{
	EVP_PKEY *key = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
	uint8_t head[] = {
		0, 0, 0, 11, 's', 's', 'h', '-', 'e', 'd', '2', '5', '5', '1', '9', 0, 0, 0, 32};
	size_t n = 32;

	assert_non_null(key);
	memcpy(who->blob, head, sizeof(head));
	assert_int_equal(EVP_PKEY_get_raw_public_key(key, who->blob + sizeof(head), &n), 1);
	who->key = key;
}

void
play_approvers(struct play *p, const char *const options[PEOPLE])
{
	auto_buf struct buf b = {.max = 65536};

	buf_add_str(&b, "# who may\n");
	for (size_t i = 0; i < PEOPLE; i++) {
		buf_addf(&b, "%s %s ssh-ed25519 ", names[i],
			options == NULL || options[i] == NULL ? usual[i] : options[i]);
		base64_encode(view_of(p->person[i].blob, sizeof(p->person[i].blob)), &b);
		buf_add_str(&b, "\n");
	}
	buf_add_byte(&b, 0);
	/* As the CLI does it: another file under the name. */
	play_write(p->trust, "approvers.new", (const char *)b.p);
	assert_int_equal(renameat(p->trust, "approvers.new", p->trust, "approvers"), 0);
}

void
play_people(struct play *p)
{
	for (size_t i = 0; i < PEOPLE; i++) {
		p->person[i].name = names[i];
		key_make(&p->person[i]);
	}
	play_approvers(p, NULL);
}

void
play_people_done(struct play *p)
{
	for (size_t i = 0; i < PEOPLE; i++)
		EVP_PKEY_free(p->person[i].key);
}

void
play_sign(struct play *p, unsigned person, struct view message, struct buf *out)
{
	auto_buf struct buf due = {.max = 65536};
	uint8_t blob[83] = {
		0, 0, 0, 11, 's', 's', 'h', '-', 'e', 'd', '2', '5', '5', '1', '9', 0, 0, 0, 64};
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	size_t n = 64;

	sshsig_signed(SSHSIG_NAMESPACE, SSHSIG_SHA512, message, &due);
	assert_int_equal(buf_check(&due), 0);
	assert_int_equal(EVP_DigestSignInit(ctx, NULL, NULL, NULL, p->person[person].key), 1);
	assert_int_equal(EVP_DigestSign(ctx, blob + 19, &n, due.p, due.n), 1);
	EVP_MD_CTX_free(ctx);
	sshsig_write(view_of(p->person[person].blob, sizeof(p->person[person].blob)),
		SSHSIG_NAMESPACE, view_of(blob, sizeof(blob)), out);
	assert_int_equal(buf_check(out), 0);
}

/* ---- records ---- */

void
action_make_edited(struct play *p, struct action *a, const char *operation, const char *arguments,
	struct action_edit edit)
{
	const struct operation *op = catalogue_find(&p->catalogue, view_str(operation));
	auto_buf struct buf args = {.max = ARGUMENTS_BYTES_MAX}, defaulted = {.max = 4096},
			    roles = {.max = 4096};
	char task[ID_TEXT], proposal[ID_TEXT], key[REQUEST_KEY_MAX + 1], grant[ID_TEXT], facts[160];
	struct request q = {0};
	struct err err = {0};
	const struct tier *tier;
	struct id capability;

	*a = (struct action){0};
	assert_non_null(op);
	id_new(&a->proposal);
	if (p->again != NULL)
		a->proposal = *p->again;
	id_new(&a->execution);
	id_new(&a->task);
	id_new(&capability);
	id_text(&a->proposal, ID_PROPOSAL, proposal);
	id_text(&a->task, ID_TASK, task);
	id_text(&capability, ID_GRANT, grant);
	request_key(p->epoch, &a->proposal, 0, key);
	if (schema_apply(op, view_str(arguments), &args, &defaulted, &err) < 0)
		fail_msg("%s", err.text);
	const struct request_values v = {.arguments = buf_view(&args),
		.tenant = view_str("acme"),
		.task = view_str(task),
		.proposal = view_str(proposal),
		.key = view_str(key)};

	if (request_render(op, &v, &q, &err) < 0)
		fail_msg("%s", err.text);
	tier = operation_tier(op, schema_amount(op, buf_view(&args)));
	for (size_t i = 0; i < tier->nroles; i++) {
		buf_add_view(&roles, tier->role[i]);
		buf_add_byte(&roles, 0);
	}
	(void)snprintf(facts, sizeof(facts),
		"{\"order__paid_cents\":%llu,\"order__status\":\"paid\",\"order__tenant\":"
		"\"acme\"}",
		(unsigned long long)(p->paid_cents != 0 ? p->paid_cents : 9000));
	if (op->verify.n == 0)
		(void)snprintf(facts, sizeof(facts), "{}");
	struct proposal_record r = {.action = op->name,
		.actor = view_str("sandbox:sb_0123456789abcdef"),
		.capability = view_str(grant),
		.environment = op->provider.environment,
		.idempotency_key = view_str(key),
		.owner = view_str("uid:1900"),
		.proposal = view_str(proposal),
		.provider_account = op->provider.account,
		.requester = view_str("uid:1900"),
		.task = view_str(task),
		.tenant = view_str("acme"),
		.method = view_str(q.method),
		.url = buf_view(&q.url),
		.content_type = view_str(q.content_type),
		.body = buf_view(&q.body),
		.arguments = buf_view(&args),
		.facts = view_str(facts),
		.provenance = view_str("{}"),
		.defaulted = buf_view(&defaulted),
		.roles = buf_view(&roles),
		.effect = op->effect,
		.issued_ms = clock_real_ms(),
		.dispatch_within_ms = op->dispatch_within_ms,
		.epoch = p->epoch,
		.quorum = tier->quorum};

	r.decide_by_ms = p->decide_by_ms != 0 ? p->decide_by_ms
					      : r.issued_ms + op->decide_within_ms;
	memcpy(r.schema, op->schema, SHA256_BYTES);
	memcpy(r.adapter, op->adapter, SHA256_BYTES);
	memcpy(r.policy, op->policy, SHA256_BYTES);
	memcpy(r.catalogue, p->catalogue.digest, SHA256_BYTES);
	if (edit.edit != NULL)
		edit.edit(&r, edit.arg);
	buf_init(&a->record, PROPOSAL_RECORD_MAX);
	buf_init(&a->approvals, 65536);
	if (proposal_record_write(&r, &a->record, &err) < 0)
		fail_msg("%s", err.text);
	request_done(&q);
}

void
action_make(struct play *p, struct action *a, const char *operation, const char *arguments)
{
	action_make_edited(p, a, operation, arguments, (struct action_edit){0});
}

void
action_done(struct action *a)
{
	buf_done(&a->record);
	buf_done(&a->approvals);
}

void
action_sign(struct play *p, struct action *a, unsigned person, bool approve, uint64_t decided_ms,
	uint64_t dispatch_by_ms)
{
	auto_buf struct buf room = {.max = 4 * PROPOSAL_RECORD_MAX},
			    text = {.max = DISPLAY_BYTES_MAX},
			    decision = {.max = DECISION_RECORD_MAX}, signature = {.max = 4096};
	struct proposal_record r;
	struct err err = {0};

	if (proposal_record_read(buf_view(&a->record), &room, &r, &err) < 0)
		fail_msg("%s", err.text);
	struct decision_record d = {.approver = view_str(p->person[person].name),
		.reason = view_str("seen and right"),
		.approve = approve,
		.decided_ms = decided_ms,
		.dispatch_by_ms = dispatch_by_ms};

	if (display_render(
		    buf_view(&a->record), catalogue_find(&p->catalogue, r.action), &text, &err) < 0)
		fail_msg("%s", err.text);
	display_digest(buf_view(&text), d.display);
	proposal_digest(buf_view(&a->record), d.proposal);
	memcpy(d.policy, r.policy, SHA256_BYTES);
	memcpy(d.schema, r.schema, SHA256_BYTES);
	if (decision_record_write(&d, &decision, &err) < 0)
		fail_msg("%s", err.text);
	play_sign(p, person, buf_view(&decision), &signature);
	approvals_put(&a->approvals, buf_view(&decision), buf_view(&signature));
	assert_int_equal(buf_check(&a->approvals), 0);
}

enum denial
action_decide(struct play *p, struct action *a)
{
	struct view rest = buf_view(&a->approvals), decision, signature, d, s;

	while (approvals_take(&rest, &d, &s) == 1) {
		decision = d;
		signature = s;
	}
	ASK(p, DECISION_ASK, decision_ask,
		{.proposal = a->proposal,
			.record = buf_view(&a->record),
			.decision = decision,
			.signature = signature});
	WANT(p, DECISION_IS, decision_is, m);
	assert_int_equal(p->in.tag, p->tag);
	return m.denial;
}

void
action_approve(struct play *p, struct action *a, unsigned person)
{
	uint64_t now = clock_real_ms();

	action_sign(p, a, person, true, now, now + 300000);
	assert_int_equal(action_decide(p, a), DENIAL_NONE);
}

/* ---- questions ---- */

void
action_send(struct play *p, const struct action *a)
{
	ASK(p, EXECUTE, execute,
		{.execution = a->execution,
			.proposal = a->proposal,
			.record = buf_view(&a->record),
			.approvals = buf_view(&a->approvals)});
}

struct msg_executed
action_executed(struct play *p)
{
	WANT(p, EXECUTED, executed, m);
	return m;
}

struct msg_executed
action_execute(struct play *p, const struct action *a)
{
	action_send(p, a);
	return action_executed(p);
}

struct msg_executed
action_ask(struct play *p, const struct action *a)
{
	ASK(p, EXECUTION_ASK, execution_ask, {.execution = a->execution, .proposal = a->proposal});
	return action_executed(p);
}

struct msg_executed
action_lookup(struct play *p, const struct action *a)
{
	ASK(p, LOOKUP_ASK, lookup_ask, {.execution = a->execution, .record = buf_view(&a->record)});
	return action_executed(p);
}

void
action_refund(struct play *p, struct action *a)
{
	action_make(p, a, "refund", PLAY_REFUND);
	action_approve(p, a, 0);
}

void
action_is(const struct msg_executed *m, enum attempt attempt, enum denial denial)
{
	if (m->attempt != attempt || m->denial != denial)
		fail_msg("%s %s came, %s %s is due: %.*s", attempt_text(m->attempt),
			denial_text(m->denial), attempt_text(attempt), denial_text(denial),
			VIEW_ARGS(m->text));
}
