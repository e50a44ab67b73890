/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a signature is worth; see authority.h. Each step establishes one denial of check.def, or an earlier one when its evidence turns up
 * late. Whatever cannot be established (no memory too) is a refusal.
 */
#include "lib/approval/authority.h"

#include "lib/action/check.h"
#include "lib/action/condition.h"
#include "lib/action/schema.h"
#include "lib/approval/display.h"
#include "lib/approval/split.h"
#include "lib/canon/read.h"

#include <errno.h>

enum kind {
	RECORD = 1, /* the proposal alone */
	DECISION = 2,
	SETTLEMENT = 4,
	RELEASE = 8,
	SIGNED = DECISION | SETTLEMENT | RELEASE,
};

/* One record of a person and all that is known of it so far. */
struct work {
	const struct authority_ask *ask;
	enum kind kind;
	enum authority_stage stage;
	struct view bytes, signature;
	struct view execution; /* of a settlement: the one that is asked about */

	struct proposal_record record;
	struct decision_record decision;
	struct settlement_record settlement;
	struct release_record release;
	struct buf record_room, room; /* owned */

	struct view approver; /* as the record says */
	uint64_t decided_ms, seen_ms;
	const struct tier *tier;
	struct sshsig sig;
	const struct approver *who;
	struct authority_is *ret;
};

static void
work_done(struct work *w)
{
	buf_done(&w->record_room);
	buf_done(&w->room);
}
#define auto_work __attribute__((cleanup(work_done)))

typedef enum denial step_fn(struct work *w, struct err *err);

static enum denial
deny(enum denial denial, struct err *err, const char *why)
{
	(void)err_set(err, -EPERM, "%s", why);
	return denial;
}

void
authority_digest(struct view decision, uint8_t ret[static SHA256_BYTES])
{
	static const char tag[] = "demilune-decision-v1"; /* with its NUL */
	struct sha256 h;

	sha256_init(&h);
	sha256_add(&h, tag, sizeof(tag));
	sha256_add(&h, decision.p, decision.n);
	sha256_end(&h, ret);
}

/* ---- what the records say ---- */

static int
read_signed(struct work *w, struct err *err)
{
	switch (w->kind) {
	case DECISION:
		if (decision_record_read(w->bytes, &w->room, &w->decision, err) < 0)
			return err->code;
		w->approver = w->decision.approver;
		w->decided_ms = w->decision.decided_ms;
		w->ret->approve = w->decision.approve;
		break;
	case SETTLEMENT:
		if (settlement_record_read(w->bytes, &w->room, &w->settlement, err) < 0)
			return err->code;
		w->approver = w->settlement.approver;
		w->decided_ms = w->settlement.decided_ms;
		break;
	case RELEASE:
		if (release_record_read(w->bytes, &w->room, &w->release, err) < 0)
			return err->code;
		w->approver = w->release.approver;
		w->decided_ms = w->release.decided_ms;
		break;
	case RECORD:
	case SIGNED:
		break;
	}
	w->ret->decided_ms = w->decided_ms;
	return 0;
}

static enum denial
step_record(struct work *w, struct err *err)
{
	buf_init(&w->record_room, PROPOSAL_RECORD_MAX);
	buf_init(&w->room, DECISION_RECORD_MAX);
	if (w->ask->record.n > PROPOSAL_RECORD_MAX || w->bytes.n > DECISION_RECORD_MAX)
		return deny(DENIAL_RECORD_MALFORMED, err, "the record is too large");
	if (w->kind != RELEASE &&
		proposal_record_read(w->ask->record, &w->record_room, &w->record, err) < 0)
		return DENIAL_RECORD_MALFORMED;
	if (read_signed(w, err) < 0)
		return DENIAL_RECORD_MALFORMED;
	if (w->stage == AUTHORITY_DISPATCH && w->kind == DECISION && !w->decision.approve)
		return deny(DENIAL_RECORD_MALFORMED, err, "a rejection is no approval");
	return DENIAL_NONE;
}

/* ---- the proposal against the own catalogue ---- */

static enum denial
step_operation(struct work *w, struct err *err)
{
	if (w->ask->op == NULL || !view_eq(w->ask->op->name, w->record.action))
		return deny(DENIAL_OPERATION_UNKNOWN, err, "there is no such operation");
	return DENIAL_NONE;
}

static enum denial
step_schema(struct work *w, struct err *err)
{
	const struct operation *op = w->ask->op;

	if (memcmp(op->schema, w->record.schema, SHA256_BYTES) != 0 ||
		op->effect != w->record.effect)
		return deny(DENIAL_SCHEMA_CHANGED, err,
			"the operation's parameters changed since this was proposed");
	return DENIAL_NONE;
}

static enum denial
step_adapter(struct work *w, struct err *err)
{
	const struct operation *op = w->ask->op;

	if (memcmp(op->adapter, w->record.adapter, SHA256_BYTES) != 0 ||
		!view_eq(op->provider.account, w->record.provider_account) ||
		!view_eq(op->provider.environment, w->record.environment))
		return deny(DENIAL_ADAPTER_CHANGED, err,
			"the operation's provider or request changed since this was proposed");
	return DENIAL_NONE;
}

/* Times in the record may be shorter than the policy's, never longer: an engine cannot lengthen a validity. */
static enum denial
step_policy(struct work *w, struct err *err)
{
	const struct operation *op = w->ask->op;
	const struct proposal_record *r = &w->record;

	if (memcmp(op->policy, r->policy, SHA256_BYTES) != 0)
		return deny(DENIAL_POLICY_CHANGED, err,
			"the operation's approval rule changed since this was proposed");
	if (r->decide_by_ms > r->issued_ms + op->decide_within_ms ||
		r->dispatch_within_ms > op->dispatch_within_ms)
		return deny(DENIAL_POLICY_CHANGED, err,
			"the record is valid for longer than the operation's approval rule says");
	return DENIAL_NONE;
}

static bool
same_roles(const struct tier *tier, struct view roles)
{
	for (size_t i = 0; i < tier->nroles; i++) {
		size_t n = tier->role[i].n;

		if (roles.n < n + 1 || !view_eq(view_of(roles.p, n), tier->role[i]) ||
			roles.p[n] != 0)
			return false;
		roles = view_skip(roles, n + 1);
	}
	return roles.n == 0;
}

/* NUL-terminated names. */
static bool
names_have(struct view names, struct view name)
{
	while (names.n != 0) {
		struct view one;

		if (!take_until(&names, 0, &one))
			return false;
		if (view_eq(one, name))
			return true;
	}
	return false;
}

/* The arguments as they were asked for: without those that are marked as defaults. */
static int
without_defaults(const struct proposal_record *record, struct buf *out, struct err *err)
{
	struct canon_reader r;
	struct canon_token t;

	canon_reader_init(&r, record->arguments, true);
	if (canon_want(&r, CANON_OBJECT_BEGIN, &t, err) < 0)
		return err->code;
	buf_add_byte(out, '{');
	while (canon_next(&r, &t, err) == 0 && t.type == CANON_KEY) {
		size_t at = r.at;

		if (canon_skip(&r, err) < 0)
			return err->code;
		if (names_have(record->defaulted, t.raw))
			continue;
		buf_addf(out, "%s\"%.*s\":", out->n > 1 ? "," : "", VIEW_ARGS(t.raw));
		buf_add(out, record->arguments.p + at, r.at - at);
	}
	buf_add_byte(out, '}');
	return buf_check(out);
}

/* Of where an argument came from the engine is believed, but for what the operation itself knows: which are defaults, which are verified. */
static bool
labels_true(const struct operation *op, const struct proposal_record *record)
{
	struct canon_reader r;
	struct canon_token name, label;
	struct err err;

	canon_reader_init(&r, record->provenance, true);
	if (canon_want(&r, CANON_OBJECT_BEGIN, &name, &err) < 0)
		return false;
	while (canon_next(&r, &name, &err) == 0 && name.type == CANON_KEY) {
		if (canon_want(&r, CANON_STR, &label, &err) < 0)
			return false;
		if (view_is(label.raw, "verified") && !condition_verifies(op, name.raw))
			return false;
		if (view_is(label.raw, "default") && !names_have(record->defaulted, name.raw))
			return false;
	}
	return name.type == CANON_OBJECT_END;
}

/*
 * The schema makes the arguments out of what was asked for, with the same marks: what a person sees as `default` is one. The amount is known only
 * of arguments that hold, and with it the tier that the record must name.
 */
static enum denial
step_arguments(struct work *w, struct err *err)
{
	auto_buf struct buf asked = {.max = ARGUMENTS_BYTES_MAX},
			    out = {.max = ARGUMENTS_BYTES_MAX},
			    defaulted = {.max = ARGUMENTS_BYTES_MAX};

	if (without_defaults(&w->record, &asked, err) < 0 ||
		schema_apply(w->ask->op, buf_view(&asked), &out, &defaulted, err) < 0)
		return DENIAL_ARGUMENTS;
	if (buf_check(&out) < 0 || !view_eq(buf_view(&out), w->record.arguments) ||
		!view_eq(buf_view(&defaulted), w->record.defaulted))
		return deny(DENIAL_ARGUMENTS, err,
			"the arguments or their defaults are not those of the operation");
	if (!labels_true(w->ask->op, &w->record))
		return deny(DENIAL_ARGUMENTS, err,
			"the record says of an argument that it is verified or a default, which it "
			"is not");
	w->tier = operation_tier(w->ask->op, schema_amount(w->ask->op, w->record.arguments));
	if (w->tier->quorum != w->record.quorum || !same_roles(w->tier, w->record.roles))
		return deny(DENIAL_POLICY_CHANGED, err,
			"the record asks for other people than the operation does at this amount");
	w->ret->quorum = w->tier->quorum;
	return DENIAL_NONE;
}

/* ---- the decision against the proposal ---- */

/* The text that the person says to have seen is the text of these bytes. */
static enum denial
check_display(struct work *w, struct err *err)
{
	auto_buf struct buf text;
	uint8_t digest[SHA256_BYTES];

	buf_init(&text, DISPLAY_BYTES_MAX);
	if (display_render(w->ask->record, w->ask->op, &text, err) < 0)
		return DENIAL_DIGEST;
	display_digest(buf_view(&text), digest);
	if (memcmp(digest, w->decision.display, SHA256_BYTES) != 0)
		return deny(DENIAL_DIGEST, err, "what was shown is not what this proposal says");
	return DENIAL_NONE;
}

static enum denial
step_digest(struct work *w, struct err *err)
{
	uint8_t digest[SHA256_BYTES];

	if (w->kind == SETTLEMENT && !view_eq(w->settlement.execution, w->execution))
		return deny(DENIAL_DIGEST, err, "the settlement is about another execution");
	if (w->kind != DECISION)
		return DENIAL_NONE;
	proposal_digest(w->ask->record, digest);
	if (memcmp(digest, w->decision.proposal, SHA256_BYTES) != 0 ||
		memcmp(w->record.policy, w->decision.policy, SHA256_BYTES) != 0 ||
		memcmp(w->record.schema, w->decision.schema, SHA256_BYTES) != 0)
		return deny(DENIAL_DIGEST, err, "the decision is about other bytes");
	return check_display(w, err);
}

/* ---- time ---- */

/* All times are below 2^53, so sums do not wrap. */
static enum denial
step_clock(struct work *w, struct err *err)
{
	uint64_t now = w->ask->now_ms;
	uint8_t digest[SHA256_BYTES];

	if (w->kind != RELEASE && w->record.issued_ms > now + AUTHORITY_AHEAD_MS)
		return deny(DENIAL_CLOCK, err, "the proposal is dated in the future");
	if (w->kind == RECORD)
		return DENIAL_NONE;
	authority_digest(w->bytes, digest);
	if (w->ask->seen_ms != NULL)
		w->seen_ms = w->ask->seen_ms(w->ask->arg, digest);
	if (w->seen_ms == 0)
		w->seen_ms = now;
	if (w->seen_ms > now + AUTHORITY_AHEAD_MS ||
		w->decided_ms > w->seen_ms + AUTHORITY_AHEAD_MS)
		return deny(DENIAL_CLOCK, err, "the decision is dated in the future");
	if (w->decided_ms + AUTHORITY_BEHIND_MS < w->seen_ms)
		return deny(DENIAL_CLOCK, err, "the decision was made too long before it came");
	if (w->kind != RELEASE && w->decided_ms + AUTHORITY_AHEAD_MS < w->record.issued_ms)
		return deny(DENIAL_CLOCK, err, "the decision is older than the proposal");
	if (w->kind == DECISION &&
		w->decision.dispatch_by_ms > w->decided_ms + w->record.dispatch_within_ms)
		return deny(DENIAL_CLOCK, err,
			"the approval is valid for longer than the proposal allows");
	return DENIAL_NONE;
}

static enum denial
step_decide_expired(struct work *w, struct err *err)
{
	if (w->seen_ms >= w->record.decide_by_ms)
		return deny(DENIAL_DECIDE_EXPIRED, err, "it was not decided in time");
	return DENIAL_NONE;
}

static enum denial
step_dispatch_expired(struct work *w, struct err *err)
{
	if (w->stage == AUTHORITY_DISPATCH && w->ask->now_ms >= w->decision.dispatch_by_ms)
		return deny(
			DENIAL_DISPATCH_EXPIRED, err, "the approval is too old to be carried out");
	w->ret->dispatch_by_ms = w->decision.dispatch_by_ms;
	return DENIAL_NONE;
}

/* ---- the person ---- */

static enum denial
step_approvers(struct work *w, struct err *err)
{
	if (w->ask->approvers == NULL)
		return deny(
			DENIAL_APPROVERS_UNREADABLE, err, "the file of approvers cannot be used");
	return DENIAL_NONE;
}

/* The name comes from the file by the key; what the record says must be the same. */
static enum denial
step_approver(struct work *w, struct err *err)
{
	if (sshsig_read(w->signature, &w->sig, err) < 0)
		return DENIAL_SIGNATURE;
	sshkey_fingerprint(w->sig.key.blob, w->ret->key);
	w->who = approvers_find(w->ask->approvers, w->sig.key.blob);
	if (w->who == NULL)
		return deny(DENIAL_APPROVER_UNKNOWN, err, "the key belongs to no approver");
	if (!view_eq(w->who->name, w->approver))
		return deny(DENIAL_APPROVER_UNKNOWN, err,
			"the key belongs to somebody else than the decision says");
	return DENIAL_NONE;
}

static enum denial
step_signature(struct work *w, struct err *err)
{
	if (w->sig.hash != SSHSIG_SHA512)
		return deny(DENIAL_SIGNATURE, err, "the signature is not over sha512");
	if (sshsig_verify(&w->sig, w->bytes, SSHSIG_NAMESPACE, w->who->verify_required, err) < 0)
		return DENIAL_SIGNATURE;
	memcpy(w->ret->approver, w->who->name.p, w->who->name.n);
	w->ret->approver[w->who->name.n] = '\0';
	return DENIAL_NONE;
}

/* Whoever is there for some tenants gives authority back to them as a whole, and to nobody else. */
static bool
may_release(const struct approver *a, struct view scope)
{
	static const char tenant[] = "tenant:";

	return a->tenant.n == 0 ||
	       (view_starts(scope, tenant) && approver_for(a, view_skip(scope, strlen(tenant))));
}

static enum denial
step_may(struct work *w, struct err *err)
{
	const struct view release = view_str(APPROVER_ROLE_RELEASE);
	bool may;

	if (!approver_valid(w->who, w->ask->now_ms))
		return deny(DENIAL_APPROVER_MAY_NOT, err, "the approver's key has expired");
	if (w->kind == RELEASE)
		may = approver_has_role(w->who, &release, 1);
	else
		may = approver_may(w->who, w->record.action);
	if (!may)
		return deny(DENIAL_APPROVER_MAY_NOT, err,
			w->kind == RELEASE ? "a release needs an approver with the role release"
					   : "the approver may not decide this operation");
	if (w->kind == RELEASE ? !may_release(w->who, w->release.scope)
			       : !approver_for(w->who, w->record.tenant))
		return deny(
			DENIAL_APPROVER_MAY_NOT, err, "the approver decides about other tenants");
	if (w->kind == DECISION && !approver_has_role(w->who, w->tier->role, w->tier->nroles))
		return deny(DENIAL_APPROVER_MAY_NOT, err,
			"the approver has none of the roles that this operation asks for");
	return DENIAL_NONE;
}

/* No limit keeps anybody from a rejection. */
static enum denial
step_amount(struct work *w, struct err *err)
{
	const struct operation *op = w->ask->op;
	struct view amount = op->has_amount ? op->amount_argument : view_of(NULL, 0);

	if (w->decision.approve && !approver_within(w->who, w->record.arguments, amount))
		return deny(
			DENIAL_APPROVER_AMOUNT, err, "the amount is above the approver's limit");
	return DENIAL_NONE;
}

static enum denial
step_own(struct work *w, struct err *err)
{
	const struct proposal_record *r = &w->record;

	if (w->kind == DECISION && !w->decision.approve)
		return DENIAL_NONE;
	if (approver_is(w->who, r->actor) || approver_is(w->who, r->requester) ||
		approver_is(w->who, r->owner))
		return deny(DENIAL_APPROVER_OWN, err, "nobody approves what they asked for");
	return DENIAL_NONE;
}

static const struct {
	enum denial denial;
	unsigned kinds;
	step_fn *run;
} steps[] = {
	{DENIAL_RECORD_MALFORMED, RECORD | SIGNED, step_record},
	{DENIAL_OPERATION_UNKNOWN, RECORD | DECISION, step_operation},
	{DENIAL_SCHEMA_CHANGED, RECORD | DECISION, step_schema},
	{DENIAL_ADAPTER_CHANGED, RECORD | DECISION, step_adapter},
	{DENIAL_POLICY_CHANGED, RECORD | DECISION, step_policy},
	{DENIAL_ARGUMENTS, RECORD | DECISION, step_arguments},
	{DENIAL_DIGEST, SIGNED, step_digest},
	{DENIAL_CLOCK, RECORD | SIGNED, step_clock},
	{DENIAL_DECIDE_EXPIRED, DECISION, step_decide_expired},
	{DENIAL_DISPATCH_EXPIRED, DECISION, step_dispatch_expired},
	{DENIAL_APPROVERS_UNREADABLE, SIGNED, step_approvers},
	{DENIAL_APPROVER_UNKNOWN, SIGNED, step_approver},
	{DENIAL_SIGNATURE, SIGNED, step_signature},
	{DENIAL_APPROVER_MAY_NOT, SIGNED, step_may},
	{DENIAL_APPROVER_AMOUNT, DECISION, step_amount},
	{DENIAL_APPROVER_OWN, DECISION | SETTLEMENT, step_own},
};

static step_fn *
step_of(enum denial denial, enum kind kind)
{
	for (size_t i = 0; i < ARRAY_LEN(steps); i++)
		if (steps[i].denial == denial && (steps[i].kinds & kind) != 0)
			return steps[i].run;
	return NULL;
}

/* All steps of this kind in the order of check.def, up to the first that fails. */
static void
run(struct work *w)
{
	const struct check *c;

	*w->ret = (struct authority_is){.denial = DENIAL_NONE};
	for (size_t i = 0; (c = check_at(i)) != NULL; i++) {
		step_fn *step = step_of(c->denial, w->kind);

		if (step == NULL)
			continue;
		w->ret->denial = step(w, &w->ret->why);
		if (w->ret->denial != DENIAL_NONE)
			return;
	}
	w->ret->why = (struct err){0};
}

/* The first in the order of check.def of what was found here and what the caller found. */
static void
settle_denial(const struct authority_ask *ask, struct authority_is *ret)
{
	const struct check *c;

	for (size_t i = 0; (c = check_at(i)) != NULL && c->denial != ret->denial; i++) {
		if ((ask->failed & AUTHORITY_BIT(c->denial)) == 0)
			continue;
		ret->denial = deny(c->denial, &ret->why, c->sentence);
		return;
	}
}

void
authority_decide(const struct authority_ask *ask, struct view decision, struct view signature,
	struct authority_is *ret)
{
	auto_work struct work w = {.ask = ask,
		.kind = DECISION,
		.stage = AUTHORITY_DECIDE,
		.bytes = decision,
		.signature = signature,
		.ret = ret};

	run(&w);
	settle_denial(ask, ret);
}

void
authority_settle(const struct authority_ask *ask, struct view execution, struct view settlement,
	struct view signature, struct authority_is *ret)
{
	auto_work struct work w = {.ask = ask,
		.kind = SETTLEMENT,
		.stage = AUTHORITY_DECIDE,
		.bytes = settlement,
		.signature = signature,
		.execution = execution,
		.ret = ret};

	run(&w);
	settle_denial(ask, ret);
}

void
authority_release(const struct authority_ask *ask, struct view release, struct view signature,
	struct authority_is *ret)
{
	auto_work struct work w = {.ask = ask,
		.kind = RELEASE,
		.stage = AUTHORITY_DECIDE,
		.bytes = release,
		.signature = signature,
		.ret = ret};

	run(&w);
	settle_denial(ask, ret);
}

/* ---- quorum ---- */

struct people {
	char name[AUTHORITY_APPROVALS_MAX][APPROVER_NAME_MAX + 1];
	uint32_t n;
};

static void
count(struct people *p, const char *name)
{
	for (uint32_t i = 0; i < p->n; i++)
		if (strcmp(p->name[i], name) == 0)
			return;
	must(p->n < AUTHORITY_APPROVALS_MAX);
	memcpy(p->name[p->n++], name, APPROVER_NAME_MAX + 1);
}

/* One approval: counts, or is the first that did not. */
static void
add_approval(const struct authority_ask *ask, struct view decision, struct view signature,
	struct people *people, struct authority_is *total, struct authority_is *first_bad)
{
	struct authority_is one;
	auto_work struct work w = {.ask = ask,
		.kind = DECISION,
		.stage = AUTHORITY_DISPATCH,
		.bytes = decision,
		.signature = signature,
		.ret = &one};

	run(&w);
	if (one.denial != DENIAL_NONE) {
		if (first_bad->denial == DENIAL_NONE)
			*first_bad = one;
		return;
	}
	if (people->n == 0 || one.dispatch_by_ms < total->dispatch_by_ms) {
		uint32_t quorum = total->quorum;

		*total = one;
		total->quorum = quorum;
	}
	count(people, one.approver);
}

void
authority_dispatch(const struct authority_ask *ask, struct view approvals, struct authority_is *ret)
{
	auto_work struct work w = {
		.ask = ask, .kind = RECORD, .stage = AUTHORITY_DISPATCH, .ret = ret};
	struct authority_is first_bad = {.denial = DENIAL_NONE};
	struct people people = {.n = 0};
	struct view decision, signature;
	size_t n = 0;
	int more = 0;

	run(&w);
	while (ret->denial == DENIAL_NONE && n <= AUTHORITY_APPROVALS_MAX &&
		(more = approvals_take(&approvals, &decision, &signature)) == 1) {
		if (++n <= AUTHORITY_APPROVALS_MAX)
			add_approval(ask, decision, signature, &people, ret, &first_bad);
	}
	ret->people = people.n;
	if (ret->denial == DENIAL_NONE && (more < 0 || n > AUTHORITY_APPROVALS_MAX)) {
		ret->denial = deny(
			DENIAL_RECORD_MALFORMED, &ret->why, "the list of approvals is malformed");
	} else if (ret->denial == DENIAL_NONE && people.n < ret->quorum) {
		if (first_bad.denial != DENIAL_NONE) {
			first_bad.people = people.n;
			*ret = first_bad;
		} else {
			ret->denial = deny(DENIAL_QUORUM, &ret->why, "more people must approve");
		}
	}
	settle_denial(ask, ret);
}
