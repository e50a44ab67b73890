/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lib/approval/authority: a real operation of a real catalogue, records as the engine writes them, decisions as the CLI writes them, signatures
 * of ssh-keygen. What holds, and each way in which it does not. Names begin with the case of the research list.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/actions/sample.h"
#include "keys.h"
#include "lib/action/check.h"
#include "lib/action/request.h"
#include "lib/action/schema.h"
#include "lib/approval/authority.h"
#include "lib/approval/display.h"
#include "lib/base/base64.h"

#define NOW UINT64_C(1795968784000)

enum { ISSUED_AGO_MS = 60000, PORT = 8443 };

enum person {
	ANNA,
	BOB,
	BOB_AGAIN, /* another key of the same person */
	CARL,
	PERSONS,
};
static const char *const person_name[] = {"anna", "bob", "bob", "carl"};
static const char *const person_file[] = {"anna", "bob", "bob2", "carl"};

static char dir[KEYS_PATH];
static struct buf key[PERSONS];
static struct catalogue catalogue;

static const char usual_approvers[] =
	"anna may=refund,reply,note up-to=cents:50000 principal=uid:1000 $0\n"
	"bob may=refund role=lead principal=uid:2000,token:dml_bob $1\n"
	"bob may=refund role=lead $2\n"
	"carl may=refund role=lead,release valid-until=2026-12-01T00:00:00Z $3\n";

static int
begin(void **state)
{
	int fd auto_fd = sample_catalogue_fd(PORT);
	struct err err;

	(void)state;
	keys_dir_make(dir);
	for (size_t i = 0; i < PERSONS; i++) {
		buf_init(&key[i], 1024);
		keys_generate(dir, person_file[i], i == CARL ? "ecdsa" : "ed25519", NULL, &key[i]);
	}
	return catalogue_read(fd, &catalogue, &err);
}

static int
end(void **state)
{
	(void)state;
	catalogue_done(&catalogue);
	for (size_t i = 0; i < PERSONS; i++)
		buf_done(&key[i]);
	keys_dir_remove(dir);
	return 0;
}

static void
approvers_make(const char *text, struct approvers *ret)
{
	auto_buf struct buf file = {.max = 65536};
	struct err err;

	for (; *text != '\0'; text++) {
		if (*text != '$') {
			buf_add_byte(&file, (uint8_t)*text);
			continue;
		}
		text++;
		buf_add_str(&file, *text - '0' == CARL ? "ecdsa-sha2-nistp256 " : "ssh-ed25519 ");
		base64_encode(buf_view(&key[*text - '0']), &file);
	}
	if (approvers_read(buf_view(&file), ret, &err) < 0)
		fail_msg("%s", err.text);
}

typedef void change_record(struct proposal_record *r);
typedef void change_decision(struct decision_record *d);

/* As the engine writes it. */
static void
record_make(const char *operation, const char *arguments, change_record *change, struct buf *out)
{
	const struct operation *op = catalogue_find(&catalogue, view_str(operation));
	auto_buf struct buf applied = {.max = 65536}, defaulted = {.max = 4096},
			    roles = {.max = 1024};
	struct request request;
	struct proposal_record r;
	struct err err = {0};

	if (schema_apply(op, view_str(arguments), &applied, &defaulted, &err) < 0)
		fail_msg("%s", err.text);
	const struct request_values values = {.arguments = buf_view(&applied),
		.tenant = view_str("acme"),
		.task = view_str("tk_0123456789abcdef"),
		.proposal = view_str("pr_0123456789abcdef"),
		.key = view_str("dml-0123456789abcdef0123456789abcdef01234567")};
	const struct tier *tier = operation_tier(op, schema_amount(op, buf_view(&applied)));

	for (size_t i = 0; i < tier->nroles; i++) {
		buf_add_view(&roles, tier->role[i]);
		buf_add_byte(&roles, 0);
	}
	assert_int_equal(request_render(op, &values, &request, &err), 0);
	r = (struct proposal_record){.action = op->name,
		.actor = view_str("sandbox:sb_0123456789abcdef"),
		.capability = view_str("gr_0123456789abcdef"),
		.environment = op->provider.environment,
		.idempotency_key = view_str("dml-0123456789abcdef0123456789abcdef01234567"),
		.owner = view_str("uid:3000"),
		.proposal = view_str("pr_0123456789abcdef"),
		.provider_account = op->provider.account,
		.requester = view_str("sandbox:sb_0123456789abcdef"),
		.task = view_str("tk_0123456789abcdef"),
		.tenant = view_str("acme"),
		.method = view_str(request.method),
		.url = buf_view(&request.url),
		.content_type = view_str(request.content_type),
		.body = buf_view(&request.body),
		.arguments = buf_view(&applied),
		.facts = view_str("{\"order__tenant\":\"acme\"}"),
		.provenance = view_str("{\"cents\":\"sandbox\"}"),
		.defaulted = buf_view(&defaulted),
		.roles = buf_view(&roles),
		.where = view_of("order.tenant == @tenant", 24),
		.effect = op->effect,
		.issued_ms = NOW - ISSUED_AGO_MS,
		.decide_by_ms = NOW - ISSUED_AGO_MS + op->decide_within_ms,
		.dispatch_within_ms = op->dispatch_within_ms,
		.epoch = 1,
		.quorum = tier->quorum};
	memcpy(r.schema, op->schema, SHA256_BYTES);
	memcpy(r.adapter, op->adapter, SHA256_BYTES);
	memcpy(r.policy, op->policy, SHA256_BYTES);
	if (strstr(arguments, "cents") == NULL)
		r.provenance = view_str("{}");
	if (change != NULL)
		change(&r);
	if (proposal_record_write(&r, out, &err) < 0)
		fail_msg("%s", err.text);
	request_done(&request);
}

/* As the CLI writes it. */
static void
decision_make(struct view record, enum person p, change_decision *change, struct buf *out)
{
	auto_buf struct buf text = {.max = DISPLAY_BYTES_MAX}, room = {.max = 65536};
	struct decision_record d = {.approver = view_str(person_name[p]),
		.reason = view_str("seen the order"),
		.approve = true,
		.decided_ms = NOW,
		.dispatch_by_ms = NOW + 300000};
	struct proposal_record r;
	const struct operation *op;
	struct err err;

	assert_int_equal(proposal_record_read(record, &room, &r, &err), 0);
	op = catalogue_find(&catalogue, r.action);
	proposal_digest(record, d.proposal);
	if (op != NULL && display_render(record, op, &text, &err) == 0)
		display_digest(buf_view(&text), d.display);
	memcpy(d.policy, r.policy, SHA256_BYTES);
	memcpy(d.schema, r.schema, SHA256_BYTES);
	if (change != NULL)
		change(&d);
	assert_int_equal(decision_record_write(&d, out, &err), 0);
}

static void
sign(enum person p, struct view message, struct buf *out)
{
	keys_sign(dir, person_file[p], SSHSIG_NAMESPACE, "sha512", message, out);
}

struct scene {
	const char *operation, *arguments, *approvers;
	change_record *record;
	change_decision *decision;
	enum person person;
	uint64_t now_ms; /* 0: NOW */
};

#define REFUND "{\"cents\":4200,\"order_id\":\"48221\"}"

/* One decision at DECIDE and, as the only approval, at DISPATCH. */
static void
play(const struct scene *s, enum denial decide, enum denial dispatch)
{
	auto_buf struct buf record = {.max = 65536}, decision = {.max = 4096},
			    signature = {.max = 4096}, list = {.max = 41000};
	auto_approvers struct approvers approvers = {0};
	struct authority_ask ask = {
		.now_ms = s->now_ms == 0 ? NOW : s->now_ms, .approvers = &approvers};
	const char *operation = s->operation == NULL ? "refund" : s->operation;
	struct authority_is is;

	approvers_make(s->approvers == NULL ? usual_approvers : s->approvers, &approvers);
	record_make(operation, s->arguments == NULL ? REFUND : s->arguments, s->record, &record);
	decision_make(buf_view(&record), s->person, s->decision, &decision);
	sign(s->person, buf_view(&decision), &signature);
	ask.op = catalogue_find(&catalogue, view_str(operation));
	ask.record = buf_view(&record);
	authority_decide(&ask, buf_view(&decision), buf_view(&signature), &is);
	if (is.denial != decide)
		fail_msg("decide: %s (%s), not %s", denial_text(is.denial), is.why.text,
			denial_text(decide));
	if (decide == DENIAL_NONE)
		assert_string_equal(is.approver, person_name[s->person]);
	else
		assert_true(is.why.text[0] != '\0');
	approvals_put(&list, buf_view(&decision), buf_view(&signature));
	authority_dispatch(&ask, buf_view(&list), &is);
	if (is.denial != dispatch)
		fail_msg("dispatch: %s (%s), not %s", denial_text(is.denial), is.why.text,
			denial_text(dispatch));
	assert_int_equal(is.people, dispatch == DENIAL_NONE || dispatch == DENIAL_QUORUM ? 1 : 0);
}

static void
play_both(const struct scene *s, enum denial denial)
{
	play(s, denial, denial);
}

static void
a_signed_approval_holds(void **state)
{
	(void)state;
	play_both(&(struct scene){.person = ANNA}, DENIAL_NONE);
	play_both(&(struct scene){.person = CARL}, DENIAL_NONE);
	play_both(&(struct scene){.person = ANNA,
			  .operation = "reply",
			  .arguments = "{\"body\":\"Hello\\nyou\",\"recipient\":\"a@b.example\","
				       "\"subject\":\"Re\"}"},
		DENIAL_NONE);
}

static void
rejects(struct decision_record *d)
{
	d->approve = false;
	d->dispatch_by_ms = 0;
}

static void
a_rejection_holds_and_is_no_approval(void **state)
{
	(void)state;
	play(&(struct scene){.decision = rejects}, DENIAL_NONE, DENIAL_RECORD_MALFORMED);
	/* Neither limit nor ownership keeps anybody from it. */
	play(&(struct scene){.decision = rejects,
		     .arguments = "{\"cents\":60000,\"order_id\":\"48221\"}"},
		DENIAL_NONE, DENIAL_RECORD_MALFORMED);
}

/* What the person signed against what the engine shows now. */
static enum denial
decide_other(struct view shown, struct view now)
{
	auto_buf struct buf decision = {.max = 4096}, signature = {.max = 4096};
	auto_approvers struct approvers approvers = {0};
	struct authority_ask ask = {.now_ms = NOW, .approvers = &approvers, .record = now};
	struct authority_is is;

	approvers_make(usual_approvers, &approvers);
	ask.op = catalogue_find(&catalogue, view_str("refund"));
	decision_make(shown, ANNA, NULL, &decision);
	sign(ANNA, buf_view(&decision), &signature);
	authority_decide(&ask, buf_view(&decision), buf_view(&signature), &is);
	return is.denial;
}

static void
other_owner(struct proposal_record *r)
{
	r->owner = view_str("uid:3001");
}

static void
other_id(struct proposal_record *r)
{
	r->proposal = view_str("pr_0123456789abcdeg");
}

static void
D1_an_edit_after_the_approval_is_another_proposal(void **state)
{
	auto_buf struct buf a = {.max = 65536}, b = {.max = 65536}, c = {.max = 65536};

	(void)state;
	record_make("refund", REFUND, NULL, &a);
	record_make("refund", "{\"cents\":4201,\"order_id\":\"48221\"}", NULL, &b);
	record_make("refund", REFUND, other_owner, &c);
	assert_int_equal(decide_other(buf_view(&a), buf_view(&a)), DENIAL_NONE);
	assert_int_equal(decide_other(buf_view(&a), buf_view(&b)), DENIAL_DIGEST);
	assert_int_equal(decide_other(buf_view(&a), buf_view(&c)), DENIAL_DIGEST);
}

static void
other_display(struct decision_record *d)
{
	d->display[7] ^= 1;
}

static void
other_schema(struct decision_record *d)
{
	d->schema[7] ^= 1;
}

static void
other_policy(struct decision_record *d)
{
	d->policy[7] ^= 1;
}

static void
D2_what_was_shown_must_be_what_it_says(void **state)
{
	(void)state;
	play_both(&(struct scene){.decision = other_display}, DENIAL_DIGEST);
	play_both(&(struct scene){.decision = other_schema}, DENIAL_DIGEST);
	play_both(&(struct scene){.decision = other_policy}, DENIAL_DIGEST);
}

static void
requested_by_anna(struct proposal_record *r)
{
	r->requester = view_str("uid:1000");
}

static void
owned_by_anna(struct proposal_record *r)
{
	r->owner = view_str("uid:1000");
}

static void
acted_by_anna(struct proposal_record *r)
{
	r->actor = view_str("uid:1000");
}

static void
named_anna(struct proposal_record *r)
{
	r->owner = view_str("anna");
}

static void
of_bobs_token(struct proposal_record *r)
{
	r->requester = view_str("dml_bob");
}

static void
D6_nobody_approves_what_they_asked_for(void **state)
{
	(void)state;
	play_both(&(struct scene){.record = requested_by_anna}, DENIAL_APPROVER_OWN);
	play_both(&(struct scene){.record = owned_by_anna}, DENIAL_APPROVER_OWN);
	play_both(&(struct scene){.record = acted_by_anna}, DENIAL_APPROVER_OWN);
	play_both(&(struct scene){.record = named_anna}, DENIAL_APPROVER_OWN);
	play_both(&(struct scene){.record = of_bobs_token, .person = BOB}, DENIAL_APPROVER_OWN);
	play_both(&(struct scene){.record = requested_by_anna, .person = BOB}, DENIAL_NONE);
	play(&(struct scene){.record = requested_by_anna, .decision = rejects}, DENIAL_NONE,
		DENIAL_RECORD_MALFORMED);
}

static void
says_carl(struct decision_record *d)
{
	d->approver = view_str("carl");
}

static void
D7_the_name_in_the_payload_gives_nothing(void **state)
{
	(void)state;
	play_both(&(struct scene){.decision = says_carl}, DENIAL_APPROVER_UNKNOWN);
	play_both(&(struct scene){.approvers = "carl may=refund $3\n"}, DENIAL_APPROVER_UNKNOWN);
	play_both(&(struct scene){.approvers = ""}, DENIAL_APPROVER_UNKNOWN);
}

static void
D13_the_same_action_again_needs_its_own_approval(void **state)
{
	auto_buf struct buf a = {.max = 65536}, b = {.max = 65536};

	(void)state;
	record_make("refund", REFUND, NULL, &a);
	record_make("refund", REFUND, other_id, &b);
	assert_int_equal(decide_other(buf_view(&a), buf_view(&b)), DENIAL_DIGEST);
}

static void
old_policy(struct proposal_record *r)
{
	r->policy[0] ^= 1;
}

static void
no_roles(struct proposal_record *r)
{
	r->roles = view_of(NULL, 0);
}

static void
one_person(struct proposal_record *r)
{
	r->quorum = 1;
}

static void
longer(struct proposal_record *r)
{
	r->decide_by_ms++;
}

static void
longer_dispatch(struct proposal_record *r)
{
	r->dispatch_within_ms++;
}

static void
D16_another_rule_than_the_catalogues_is_refused(void **state)
{
	static const char large[] = "{\"cents\":200000,\"order_id\":\"48221\"}";

	(void)state;
	play_both(&(struct scene){.record = old_policy}, DENIAL_POLICY_CHANGED);
	play(&(struct scene){.person = BOB, .arguments = large}, DENIAL_NONE, DENIAL_QUORUM);
	play_both(&(struct scene){.person = BOB, .arguments = large, .record = no_roles},
		DENIAL_POLICY_CHANGED);
	play_both(&(struct scene){.person = BOB, .arguments = large, .record = one_person},
		DENIAL_POLICY_CHANGED);
	play_both(&(struct scene){.record = longer}, DENIAL_POLICY_CHANGED);
	play_both(&(struct scene){.record = longer_dispatch}, DENIAL_POLICY_CHANGED);
}

static void
old_schema(struct proposal_record *r)
{
	r->schema[0] ^= 1;
}

static void
old_adapter(struct proposal_record *r)
{
	r->adapter[0] ^= 1;
}

static void
milder(struct proposal_record *r)
{
	r->effect = EFFECT_DRAFT;
}

static void
A16_schema_and_adapter_are_of_the_catalogue(void **state)
{
	(void)state;
	play_both(&(struct scene){.record = old_schema}, DENIAL_SCHEMA_CHANGED);
	play_both(&(struct scene){.record = milder}, DENIAL_SCHEMA_CHANGED);
	play_both(&(struct scene){.record = old_adapter}, DENIAL_ADAPTER_CHANGED);
}

static void
staging(struct proposal_record *r)
{
	r->environment = view_str("staging");
}

static void
other_account(struct proposal_record *r)
{
	r->provider_account = view_str("acct_2");
}

static void
D17_another_environment_or_account_is_refused(void **state)
{
	(void)state;
	play_both(&(struct scene){.record = staging}, DENIAL_ADAPTER_CHANGED);
	play_both(&(struct scene){.record = other_account}, DENIAL_ADAPTER_CHANGED);
}

static void
too_much(struct proposal_record *r)
{
	r->arguments = view_str("{\"cents\":500001,\"order_id\":\"48221\",\"reason\":\"other\"}");
}

static void
no_default(struct proposal_record *r)
{
	r->arguments = view_str("{\"cents\":4200,\"order_id\":\"48221\"}");
	r->defaulted = view_of(NULL, 0);
}

/* The model chose it, and the mark says that nobody did. */
static void
false_mark(struct proposal_record *r)
{
	r->arguments = view_str("{\"cents\":4200,\"order_id\":\"48221\",\"reason\":\"damaged\"}");
}

/* The default is there, unmarked: as if it had been asked for. That is the same to the provider, and asked for it may have been. */
static void
no_mark(struct proposal_record *r)
{
	r->defaulted = view_of(NULL, 0);
}

static void
mark_of_another(struct proposal_record *r)
{
	r->defaulted = view_of("cents\0reason", 13);
}

static void
A13_arguments_are_those_of_the_schema_with_defaults(void **state)
{
	(void)state;
	play_both(&(struct scene){.record = too_much}, DENIAL_ARGUMENTS);
	play_both(&(struct scene){.record = no_default}, DENIAL_ARGUMENTS);
	play_both(&(struct scene){.record = false_mark}, DENIAL_ARGUMENTS);
	play_both(&(struct scene){.record = mark_of_another}, DENIAL_ARGUMENTS);
	play_both(&(struct scene){.record = no_mark}, DENIAL_NONE);
}

static uint64_t
seen_at(void *arg, const uint8_t decision[static SHA256_BYTES])
{
	(void)decision;
	return *(uint64_t *)arg;
}

/* now and when the ledger saw it, with a decision dated `decided`; DISPATCH. */
static enum denial
at(uint64_t now, uint64_t seen, uint64_t decided)
{
	auto_buf struct buf record = {.max = 65536}, decision = {.max = 4096},
			    signature = {.max = 4096}, list = {.max = 41000};
	auto_approvers struct approvers approvers = {0};
	struct authority_ask ask = {
		.now_ms = now, .approvers = &approvers, .seen_ms = seen_at, .arg = &seen};
	auto_buf struct buf room = {.max = 4096};
	struct decision_record d;
	struct authority_is is;
	struct err err;

	approvers_make(usual_approvers, &approvers);
	record_make("refund", REFUND, NULL, &record);
	decision_make(buf_view(&record), ANNA, NULL, &decision);
	assert_int_equal(decision_record_read(buf_view(&decision), &room, &d, &err), 0);
	d.decided_ms = decided;
	d.dispatch_by_ms = decided + 300000;
	buf_clear(&decision);
	assert_int_equal(decision_record_write(&d, &decision, &err), 0);
	sign(ANNA, buf_view(&decision), &signature);
	approvals_put(&list, buf_view(&decision), buf_view(&signature));
	ask.op = catalogue_find(&catalogue, view_str("refund"));
	ask.record = buf_view(&record);
	authority_dispatch(&ask, buf_view(&list), &is);
	return is.denial;
}

static void
C1_at_its_millisecond_it_is_expired(void **state)
{
	uint64_t decide_by = NOW - ISSUED_AGO_MS + 600000, carl_until = 1796083200000;

	(void)state;
	assert_int_equal(at(decide_by - 1, decide_by - 1, decide_by - 1), DENIAL_NONE);
	assert_int_equal(at(decide_by, decide_by, decide_by), DENIAL_DECIDE_EXPIRED);
	assert_int_equal(at(decide_by, 0, decide_by - 1), DENIAL_DECIDE_EXPIRED);
	/* Seen in time is decided in time; then dispatch_by counts. */
	assert_int_equal(at(decide_by + 1, decide_by - 1, decide_by - 1), DENIAL_NONE);
	assert_int_equal(at(NOW + 299999, NOW, NOW), DENIAL_NONE);
	assert_int_equal(at(NOW + 300000, NOW, NOW), DENIAL_DISPATCH_EXPIRED);
	/* C6: the clock leaps forward, and all is expired. */
	assert_int_equal(at(NOW + 86400000, NOW, NOW), DENIAL_DISPATCH_EXPIRED);
	assert_int_equal(at(carl_until, 0, carl_until), DENIAL_DECIDE_EXPIRED);
}

static void
C4_dates_in_the_future_and_long_past_are_refused(void **state)
{
	uint64_t issued = NOW - ISSUED_AGO_MS;

	(void)state;
	assert_int_equal(at(NOW, 0, NOW + 5000), DENIAL_NONE);
	assert_int_equal(at(NOW, 0, NOW + 5001), DENIAL_CLOCK);
	assert_int_equal(at(NOW, NOW + 5001, NOW), DENIAL_CLOCK); /* the clock went back */
	/* The last millisecond that the clock takes is the first that is too late to be sent. */
	assert_int_equal(at(issued + 300000, 0, issued), DENIAL_DISPATCH_EXPIRED);
	assert_int_equal(at(issued + 300001, 0, issued), DENIAL_CLOCK);
	assert_int_equal(at(issued, 0, issued - 5001), DENIAL_CLOCK); /* before it was proposed */
	assert_int_equal(at(issued - 5000, 0, issued - 5000), DENIAL_NONE);
	assert_int_equal(at(issued - 5001, 0, issued - 5001), DENIAL_CLOCK);
}

static void
valid_longer(struct decision_record *d)
{
	d->dispatch_by_ms = d->decided_ms + 300001;
}

static void
an_approval_cannot_be_valid_for_longer(void **state)
{
	(void)state;
	play_both(&(struct scene){.decision = valid_longer}, DENIAL_CLOCK);
}

static void
an_expired_approver_decides_nothing(void **state)
{
	(void)state;
	play_both(&(struct scene){.approvers =
					  "anna may=refund valid-until=2026-11-29T16:13:05Z $0\n"},
		DENIAL_NONE);
	play_both(&(struct scene){.approvers =
					  "anna may=refund valid-until=2026-11-29T16:13:04Z $0\n"},
		DENIAL_APPROVER_MAY_NOT);
}

static void
who_may(void **state)
{
	(void)state;
	play_both(&(struct scene){.approvers = "anna may=reply $0\n"}, DENIAL_APPROVER_MAY_NOT);
	play_both(&(struct scene){.approvers = "anna role=release $0\n"}, DENIAL_APPROVER_MAY_NOT);
	play_both(
		&(struct scene){.approvers = "anna may=refund up-to=cents:4200 $0\n"}, DENIAL_NONE);
	play_both(&(struct scene){.approvers = "anna may=refund up-to=cents:4199 $0\n"},
		DENIAL_APPROVER_AMOUNT);
	play_both(&(struct scene){.approvers = "anna may=refund up-to=items:1 $0\n"},
		DENIAL_APPROVER_AMOUNT);
	/* The tier above 1000.00 asks for leads. */
	play_both(&(struct scene){.approvers = "anna may=refund role=support $0\n",
			  .arguments = "{\"cents\":100001,\"order_id\":\"48221\"}"},
		DENIAL_APPROVER_MAY_NOT);
	play(&(struct scene){.approvers = "anna may=refund role=lead $0\n",
		     .arguments = "{\"cents\":100001,\"order_id\":\"48221\"}"},
		DENIAL_NONE, DENIAL_QUORUM);
	play_both(&(struct scene){.approvers = "anna may=refund $0\n",
			  .arguments = "{\"cents\":100000,\"order_id\":\"48221\"}"},
		DENIAL_NONE);
}

/* DISPATCH of an amount that two leads must approve, with approvals of these people. */
static void
dispatch_of(const enum person *people, size_t n, enum denial want, uint32_t want_people)
{
	auto_buf struct buf record = {.max = 65536}, list = {.max = 41000};
	auto_approvers struct approvers approvers = {0};
	struct authority_ask ask = {.now_ms = NOW, .approvers = &approvers};
	struct authority_is is;

	approvers_make(usual_approvers, &approvers);
	record_make("refund", "{\"cents\":200000,\"order_id\":\"48221\"}", NULL, &record);
	for (size_t i = 0; i < n; i++) {
		auto_buf struct buf decision = {.max = 4096}, signature = {.max = 4096};

		decision_make(buf_view(&record), people[i], NULL, &decision);
		sign(people[i], buf_view(&decision), &signature);
		approvals_put(&list, buf_view(&decision), buf_view(&signature));
	}
	ask.op = catalogue_find(&catalogue, view_str("refund"));
	ask.record = buf_view(&record);
	authority_dispatch(&ask, buf_view(&list), &is);
	if (is.denial != want)
		fail_msg("%s: %s", denial_text(is.denial), is.why.text);
	assert_int_equal(is.people, want_people);
}

static void
D3_quorum_counts_people_and_not_approvals(void **state)
{
	(void)state;
	dispatch_of((enum person[]){BOB, CARL}, 2, DENIAL_NONE, 2);
	dispatch_of((enum person[]){BOB}, 1, DENIAL_QUORUM, 1);
	dispatch_of(NULL, 0, DENIAL_QUORUM, 0);
	dispatch_of((enum person[]){BOB, BOB}, 2, DENIAL_QUORUM, 1);
	dispatch_of(
		(enum person[]){BOB, BOB_AGAIN}, 2, DENIAL_QUORUM, 1); /* two keys, one person */
	dispatch_of((enum person[]){BOB, BOB_AGAIN, CARL}, 3, DENIAL_NONE, 2);
	dispatch_of((enum person[]){ANNA, BOB}, 2, DENIAL_APPROVER_MAY_NOT, 1); /* no lead */
	dispatch_of((enum person[]){ANNA, BOB, CARL}, 3, DENIAL_NONE, 2);
}

static void
a_list_of_approvals_is_whole(void **state)
{
	auto_buf struct buf record = {.max = 65536}, list = {.max = 41000},
			    decision = {.max = 4096}, signature = {.max = 4096};
	auto_approvers struct approvers approvers = {0};
	struct authority_ask ask = {.now_ms = NOW, .approvers = &approvers};
	struct authority_is is;

	(void)state;
	approvers_make(usual_approvers, &approvers);
	record_make("refund", REFUND, NULL, &record);
	decision_make(buf_view(&record), ANNA, NULL, &decision);
	sign(ANNA, buf_view(&decision), &signature);
	approvals_put(&list, buf_view(&decision), buf_view(&signature));
	ask.op = catalogue_find(&catalogue, view_str("refund"));
	ask.record = buf_view(&record);
	for (size_t n = 1; n < list.n; n++) {
		authority_dispatch(&ask, view_of(list.p, n), &is);
		assert_int_equal(is.denial, DENIAL_RECORD_MALFORMED);
	}
	for (unsigned i = 1; i < AUTHORITY_APPROVALS_MAX; i++)
		approvals_put(&list, buf_view(&decision), buf_view(&signature));
	authority_dispatch(&ask, buf_view(&list), &is);
	assert_int_equal(is.denial, DENIAL_NONE);
	assert_int_equal(is.people, 1);
	approvals_put(&list, buf_view(&decision), buf_view(&signature));
	authority_dispatch(&ask, buf_view(&list), &is);
	assert_int_equal(is.denial, DENIAL_RECORD_MALFORMED);
}

static void
where_nobody_is_asked_none_is_needed(void **state)
{
	auto_buf struct buf record = {.max = 65536};
	struct authority_ask ask = {.now_ms = NOW};
	struct authority_is is;

	(void)state;
	record_make("note", "{\"text\":\"hello\"}", NULL, &record);
	ask.op = catalogue_find(&catalogue, view_str("note"));
	ask.record = buf_view(&record);
	authority_dispatch(&ask, view_of(NULL, 0), &is);
	if (is.denial != DENIAL_NONE)
		fail_msg("%s: %s", denial_text(is.denial), is.why.text);
	ask.op = catalogue_find(&catalogue, view_str("refund"));
	authority_dispatch(&ask, view_of(NULL, 0), &is);
	assert_int_equal(is.denial, DENIAL_OPERATION_UNKNOWN);
	ask.op = NULL;
	authority_dispatch(&ask, view_of(NULL, 0), &is);
	assert_int_equal(is.denial, DENIAL_OPERATION_UNKNOWN);
}

static void
what_the_broker_found_takes_its_place_in_the_order(void **state)
{
	static const struct {
		enum denial own;
		change_decision *decision;
		enum denial want;
	} rows[] = {
		{DENIAL_NONE, NULL, DENIAL_NONE},
		{DENIAL_CONTAINED, NULL, DENIAL_CONTAINED},
		{DENIAL_EPOCH, other_display, DENIAL_EPOCH},
		{DENIAL_REVOKED, other_display, DENIAL_DIGEST},
		{DENIAL_REVOKED, valid_longer, DENIAL_REVOKED},
		{DENIAL_SPENT, says_carl, DENIAL_SPENT},
		{DENIAL_REQUEST_DIFFERENT, says_carl, DENIAL_REQUEST_DIFFERENT},
		{DENIAL_RELEASE_BLOCKED, says_carl, DENIAL_APPROVER_UNKNOWN},
		{DENIAL_RELEASE_BLOCKED, NULL, DENIAL_RELEASE_BLOCKED},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		auto_buf struct buf record = {.max = 65536}, decision = {.max = 4096},
				    signature = {.max = 4096};
		auto_approvers struct approvers approvers = {0};
		struct authority_ask ask = {.now_ms = NOW, .approvers = &approvers};
		struct authority_is is;

		approvers_make(usual_approvers, &approvers);
		record_make("refund", REFUND, NULL, &record);
		decision_make(buf_view(&record), ANNA, rows[i].decision, &decision);
		sign(ANNA, buf_view(&decision), &signature);
		ask.op = catalogue_find(&catalogue, view_str("refund"));
		ask.record = buf_view(&record);
		ask.failed = rows[i].own == DENIAL_NONE ? 0 : AUTHORITY_BIT(rows[i].own);
		authority_decide(&ask, buf_view(&decision), buf_view(&signature), &is);
		if (is.denial != rows[i].want)
			fail_msg("row %zu: %s", i, denial_text(is.denial));
		if (is.denial != DENIAL_NONE)
			assert_true(is.why.text[0] != '\0');
	}
}

static void
without_a_usable_file_nothing_is_decided(void **state)
{
	auto_buf struct buf record = {.max = 65536}, decision = {.max = 4096},
			    signature = {.max = 4096};
	struct authority_ask ask = {.now_ms = NOW};
	struct authority_is is;

	(void)state;
	record_make("refund", REFUND, NULL, &record);
	decision_make(buf_view(&record), ANNA, NULL, &decision);
	sign(ANNA, buf_view(&decision), &signature);
	ask.op = catalogue_find(&catalogue, view_str("refund"));
	ask.record = buf_view(&record);
	authority_decide(&ask, buf_view(&decision), buf_view(&signature), &is);
	assert_int_equal(is.denial, DENIAL_APPROVERS_UNREADABLE);
	assert_int_equal(is.quorum, 1);
}

/* A signature of the right person over the right bytes, but for something else or with another digest. */
static void
other_signatures(void **state)
{
	auto_buf struct buf record = {.max = 65536}, decision = {.max = 4096};
	auto_approvers struct approvers approvers = {0};
	struct authority_ask ask = {.now_ms = NOW, .approvers = &approvers};
	struct authority_is is;

	(void)state;
	approvers_make(usual_approvers, &approvers);
	record_make("refund", REFUND, NULL, &record);
	decision_make(buf_view(&record), ANNA, NULL, &decision);
	ask.op = catalogue_find(&catalogue, view_str("refund"));
	ask.record = buf_view(&record);
	for (size_t i = 0; i < 4; i++) {
		auto_buf struct buf signature = {.max = 4096};

		keys_sign(dir, i == 3 ? "bob" : "anna", i == 1 ? "git" : SSHSIG_NAMESPACE,
			i == 2 ? "sha256" : "sha512", buf_view(&decision), &signature);
		authority_decide(&ask, buf_view(&decision), buf_view(&signature), &is);
		assert_int_equal(is.denial, ((enum denial[]){DENIAL_NONE, DENIAL_SIGNATURE,
						    DENIAL_SIGNATURE, DENIAL_APPROVER_UNKNOWN})[i]);
		if (i == 0)
			assert_true(memcmp(is.key, "SHA256:", 7) == 0);
	}
	authority_decide(&ask, buf_view(&decision), view_str(""), &is);
	assert_int_equal(is.denial, DENIAL_SIGNATURE);
	authority_decide(&ask, view_str(""), view_str(""), &is);
	assert_int_equal(is.denial, DENIAL_RECORD_MALFORMED);
}

static void
no_bit_may_turn(void **state)
{
	auto_buf struct buf record = {.max = 65536}, decision = {.max = 4096},
			    signature = {.max = 4096};
	auto_approvers struct approvers approvers = {0};
	struct authority_ask ask = {.now_ms = NOW, .approvers = &approvers};
	struct buf *const all[] = {&record, &decision, &signature};
	struct authority_is is;

	(void)state;
	approvers_make(usual_approvers, &approvers);
	record_make("refund", REFUND, NULL, &record);
	decision_make(buf_view(&record), CARL, NULL, &decision);
	sign(CARL, buf_view(&decision), &signature);
	ask.op = catalogue_find(&catalogue, view_str("refund"));
	ask.record = buf_view(&record);
	authority_decide(&ask, buf_view(&decision), buf_view(&signature), &is);
	assert_int_equal(is.denial, DENIAL_NONE);
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		for (size_t bit = 0; bit < all[i]->n * 8; bit++) {
			all[i]->p[bit / 8] ^= (uint8_t)(1 << bit % 8);
			authority_decide(&ask, buf_view(&decision), buf_view(&signature), &is);
			if (is.denial == DENIAL_NONE)
				fail_msg("part %zu, bit %zu", i, bit);
			all[i]->p[bit / 8] ^= (uint8_t)(1 << bit % 8);
		}
	}
	authority_decide(&ask, buf_view(&decision), buf_view(&signature), &is);
	assert_int_equal(is.denial, DENIAL_NONE);
}

#define EXECUTION "xc_0123456789abcdef"

static enum denial
settle(enum person p, const char *execution, change_record *change, uint64_t decided_ms)
{
	auto_buf struct buf record = {.max = 65536}, bytes = {.max = 4096},
			    signature = {.max = 4096};
	auto_approvers struct approvers approvers = {0};
	struct authority_ask ask = {.now_ms = NOW, .approvers = &approvers};
	const struct settlement_record s = {.approver = view_str(person_name[p]),
		.execution = view_str(execution),
		.note = view_str("the provider's list has it"),
		.succeeded = true,
		.decided_ms = decided_ms};
	struct authority_is is;
	struct err err;

	approvers_make(usual_approvers, &approvers);
	record_make("refund", REFUND, change, &record);
	assert_int_equal(settlement_record_write(&s, &bytes, &err), 0);
	sign(p, buf_view(&bytes), &signature);
	ask.record = buf_view(&record);
	authority_settle(&ask, view_str(EXECUTION), buf_view(&bytes), buf_view(&signature), &is);
	/* One record is never taken for another. */
	if (is.denial == DENIAL_NONE) {
		struct authority_is other;

		authority_release(&ask, buf_view(&bytes), buf_view(&signature), &other);
		assert_int_equal(other.denial, DENIAL_RECORD_MALFORMED);
		authority_decide(&ask, buf_view(&bytes), buf_view(&signature), &other);
		assert_int_equal(other.denial, DENIAL_RECORD_MALFORMED);
	}
	return is.denial;
}

static void
settlements(void **state)
{
	(void)state;
	assert_int_equal(settle(ANNA, EXECUTION, NULL, NOW), DENIAL_NONE);
	assert_int_equal(settle(ANNA, EXECUTION, old_policy, NOW),
		DENIAL_NONE); /* whatever the rule is now */
	assert_int_equal(settle(ANNA, "xc_0123456789abcdeg", NULL, NOW), DENIAL_DIGEST);
	assert_int_equal(settle(ANNA, EXECUTION, owned_by_anna, NOW), DENIAL_APPROVER_OWN);
	assert_int_equal(settle(ANNA, EXECUTION, NULL, NOW + 5001), DENIAL_CLOCK);
	assert_int_equal(settle(ANNA, EXECUTION, NULL, NOW - 300001), DENIAL_CLOCK);
}

static enum denial
release_of(const char *people, const char *scope, enum person p, uint64_t now_ms)
{
	auto_buf struct buf bytes = {.max = 4096}, signature = {.max = 4096};
	auto_approvers struct approvers approvers = {0};
	struct authority_ask ask = {.now_ms = now_ms, .approvers = &approvers};
	const struct release_record r = {.approver = view_str(person_name[p]),
		.note = view_str("looked at it"),
		.scope = view_str(scope),
		.decided_ms = NOW};
	struct authority_is is;
	struct err err;

	approvers_make(people, &approvers);
	assert_int_equal(release_record_write(&r, &bytes, &err), 0);
	sign(p, buf_view(&bytes), &signature);
	authority_release(&ask, buf_view(&bytes), buf_view(&signature), &is);
	return is.denial;
}

static enum denial
release(enum person p, uint64_t now_ms)
{
	return release_of(usual_approvers, "host", p, now_ms);
}

static void
releases_need_their_role(void **state)
{
	static const char of_acme[] = "carl role=release tenant=acme $3\n";

	(void)state;
	assert_int_equal(release(CARL, NOW), DENIAL_NONE);
	assert_int_equal(release(BOB, NOW), DENIAL_APPROVER_MAY_NOT);
	assert_int_equal(release(CARL, NOW + 300001), DENIAL_CLOCK);
	assert_int_equal(release_of(of_acme, "tenant:acme", CARL, NOW), DENIAL_NONE);
	assert_int_equal(release_of(of_acme, "tenant:acme2", CARL, NOW), DENIAL_APPROVER_MAY_NOT);
	assert_int_equal(release_of(of_acme, "host", CARL, NOW), DENIAL_APPROVER_MAY_NOT);
	assert_int_equal(release_of(of_acme, "task:tk_0123456789abcdef", CARL, NOW),
		DENIAL_APPROVER_MAY_NOT);
}

/* The record of these tests is about acme. */
static void
some_decide_about_their_tenants_only(void **state)
{
	(void)state;
	play_both(&(struct scene){.approvers = "anna may=refund tenant=globex,acme $0\n"},
		DENIAL_NONE);
	play_both(&(struct scene){.approvers = "anna may=refund tenant=globex $0\n"},
		DENIAL_APPROVER_MAY_NOT);
	play_both(&(struct scene){.approvers = "anna may=refund tenant=acme2,acm $0\n"},
		DENIAL_APPROVER_MAY_NOT);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_signed_approval_holds),
		cmocka_unit_test(a_rejection_holds_and_is_no_approval),
		cmocka_unit_test(D1_an_edit_after_the_approval_is_another_proposal),
		cmocka_unit_test(D2_what_was_shown_must_be_what_it_says),
		cmocka_unit_test(D6_nobody_approves_what_they_asked_for),
		cmocka_unit_test(D7_the_name_in_the_payload_gives_nothing),
		cmocka_unit_test(D13_the_same_action_again_needs_its_own_approval),
		cmocka_unit_test(D16_another_rule_than_the_catalogues_is_refused),
		cmocka_unit_test(A16_schema_and_adapter_are_of_the_catalogue),
		cmocka_unit_test(D17_another_environment_or_account_is_refused),
		cmocka_unit_test(A13_arguments_are_those_of_the_schema_with_defaults),
		cmocka_unit_test(C1_at_its_millisecond_it_is_expired),
		cmocka_unit_test(C4_dates_in_the_future_and_long_past_are_refused),
		cmocka_unit_test(an_approval_cannot_be_valid_for_longer),
		cmocka_unit_test(an_expired_approver_decides_nothing),
		cmocka_unit_test(who_may),
		cmocka_unit_test(D3_quorum_counts_people_and_not_approvals),
		cmocka_unit_test(a_list_of_approvals_is_whole),
		cmocka_unit_test(where_nobody_is_asked_none_is_needed),
		cmocka_unit_test(what_the_broker_found_takes_its_place_in_the_order),
		cmocka_unit_test(without_a_usable_file_nothing_is_decided),
		cmocka_unit_test(other_signatures),
		cmocka_unit_test(no_bit_may_turn),
		cmocka_unit_test(settlements),
		cmocka_unit_test(releases_need_their_role),
		cmocka_unit_test(some_decide_about_their_tenants_only),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
