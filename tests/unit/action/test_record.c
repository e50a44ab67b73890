/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records: writing what was read gives the same bytes, whatever bytes were accepted; each change of a byte is another digest or no record. And
 * the table of checks: each denial has exactly one row.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/action/check.h"
#include "lib/canon/read.h"
#include "tests/unit/action/parsed.h"

#include <errno.h>
#include <stdio.h>

enum { NOW = 1700000000 };

static struct catalogue catalogue;
static struct sample_proposal refund;

static int
setup(void **state)
{
	auto_fd int fd = sample_catalogue_fd(8080);
	struct id id = {{9, 8, 7, 6, 5, 4, 3, 2, 1, 0}};
	struct err err;

	(void)state;
	must(catalogue_read(fd, &catalogue, &err) == 0);
	sample_proposal(&catalogue, "refund",
		"{\"cents\":150000,\"memo\":\"a\\n\\\"b\\\"\",\"order_id\":\"48221\"}", &id, NOW,
		&refund);
	refund.record.where = view_of("order.tenant == @tenant\0cents <= 200000", 40);
	refund.record.facts = view_str("{\"order__paid_cents\":4200,\"order__tenant\":\"acme\"}");
	refund.record.provenance = view_str("{\"cents\":\"sandbox\"}");
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	sample_proposal_done(&refund);
	catalogue_done(&catalogue);
	return 0;
}

static void
proposal(struct buf *out)
{
	struct err err = {0};

	if (proposal_record_write(&refund.record, out, &err) < 0)
		fail_msg("%s", err.text);
}

static void
a_proposal_is_what_0003_says(void **state)
{
	auto_buf struct buf out = {.max = PROPOSAL_RECORD_MAX};
	static const char *const parts[] = {
		"{\"action\":\"refund\",\"actor\":\"sandbox:sb_0000000000000000\",\"adapter\":\"",
		"\"arguments\":{\"cents\":150000,\"memo\":\"a\\n\\\"b\\\"\",\"order_id\":\"48221\","
		"\"reason\":\"other\"},\"capability\":\"gr_",
		"\"decide_by_ms\":1700600000,\"defaulted\":[\"reason\"],\"dispatch_within_ms\":"
		"300000,"
		"\"effect\":\"irreversible\",\"environment\":\"test\",\"epoch\":1,\"facts\":{"
		"\"order__paid",
		"\"issued_ms\":1700000000,\"max_executions\":1,\"owner\":\"uid:1000\",\"policy\":"
		"\"",
		"\"quorum\":2,\"request\":{\"body\":\"{\\\"amount\\\":150000,",
		"\\\"memo\\\":\\\"a\\\\n\\\\\\\"b\\\\\\\"\\\"",
		"\"content_type\":\"application/json\",\"method\":\"POST\",\"url\":\"http://",
		"\"roles\":[\"lead\"],\"schema\":\"",
		"\"tenant\":\"acme\",\"v\":1,\"where\":[\"order.tenant == @tenant\",\"cents <= "
		"200000\"]}",
	};
	struct err err;

	(void)state;
	proposal(&out);
	assert_int_equal(canon_check(buf_view(&out), true, &err), 0);
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		if (memmem(out.p, out.n, parts[i], strlen(parts[i])) == NULL)
			fail_msg("part %zu is not in %.*s", i, (int)out.n, (const char *)out.p);
	}
}

static void
reading_gives_back_what_was_written(void **state)
{
	auto_buf struct buf out = {.max = PROPOSAL_RECORD_MAX},
			    room = {.max = 2 * PROPOSAL_RECORD_MAX};
	const struct proposal_record *w = &refund.record;
	struct proposal_record r;
	struct err err;

	(void)state;
	proposal(&out);
	buf_add_str(&room, "before");
	assert_int_equal(proposal_record_read(buf_view(&out), &room, &r, &err), 0);
	assert_memory_equal(room.p, "before", 6);
	assert_true(view_eq(r.action, w->action) && view_eq(r.actor, w->actor));
	assert_true(view_eq(r.body, w->body) && view_eq(r.url, w->url));
	assert_true(view_eq(r.arguments, w->arguments) && view_eq(r.facts, w->facts));
	assert_true(view_eq(r.defaulted, w->defaulted) && view_eq(r.roles, w->roles));
	assert_true(view_eq(r.where, w->where) && view_eq(r.provenance, w->provenance));
	assert_true(view_eq(r.idempotency_key, w->idempotency_key));
	assert_int_equal(r.effect, w->effect);
	assert_int_equal(r.quorum, w->quorum);
	assert_int_equal(r.epoch, w->epoch);
	assert_int_equal(r.decide_by_ms, w->decide_by_ms);
	assert_memory_equal(r.schema, w->schema, SHA256_BYTES);
	assert_memory_equal(r.catalogue, w->catalogue, SHA256_BYTES);
}

/* `read_write` reads and, when that succeeds, says whether writing gives the same bytes. */
static bool
proposal_again(struct view bytes, bool *ret_same)
{
	auto_buf struct buf room = {.max = PROPOSAL_RECORD_MAX}, out = {.max = PROPOSAL_RECORD_MAX};
	struct proposal_record r;
	struct err err;

	if (proposal_record_read(bytes, &room, &r, &err) < 0)
		return false;
	*ret_same = proposal_record_write(&r, &out, &err) == 0 && view_eq(buf_view(&out), bytes);
	return true;
}

#define AGAIN(name)                                                      \
	static bool name##_again(struct view bytes, bool *ret_same)      \
	{                                                                \
		auto_buf struct buf room = {.max = DECISION_RECORD_MAX}, \
				    out = {.max = DECISION_RECORD_MAX};  \
		struct name##_record r;                                  \
		struct err err;                                          \
                                                                         \
		if (name##_record_read(bytes, &room, &r, &err) < 0)      \
			return false;                                    \
		*ret_same = name##_record_write(&r, &out, &err) == 0 &&  \
			    view_eq(buf_view(&out), bytes);              \
		return true;                                             \
	}
AGAIN(decision)
AGAIN(settlement)
AGAIN(release)

/* Every value of every byte, and every cut. */
static void
try_all(struct buf *bytes, bool (*again)(struct view, bool *), size_t step)
{
	bool same = false;
	uint8_t was[SHA256_BYTES], is[SHA256_BYTES];

	assert_true(again(buf_view(bytes), &same) && same);
	proposal_digest(buf_view(bytes), was);
	for (size_t at = 0; at < bytes->n; at++) {
		uint8_t kept = bytes->p[at];

		assert_false(again(view_of(bytes->p, at), &same));
		for (unsigned c = 0; c < 256; c += (unsigned)step) {
			bytes->p[at] = (uint8_t)c;
			if (c == kept || !again(buf_view(bytes), &same))
				continue;
			if (!same)
				fail_msg("byte %zu, %u: %.*s", at, c, (int)bytes->n,
					(const char *)bytes->p);
			proposal_digest(buf_view(bytes), is);
			assert_memory_not_equal(was, is, SHA256_BYTES);
		}
		bytes->p[at] = kept;
	}
	buf_add_byte(bytes, ' ');
	assert_false(again(buf_view(bytes), &same));
}

static void
no_change_of_a_proposal_is_unseen(void **state)
{
	auto_buf struct buf out = {.max = PROPOSAL_RECORD_MAX};

	(void)state;
	proposal(&out);
	try_all(&out, proposal_again, 7);
}

static struct decision_record
decision(void)
{
	return (struct decision_record){.approver = view_str("anna"),
		.reason = view_str("the \"order\" is \xc3\xa9"),
		.approve = true,
		.decided_ms = NOW,
		.dispatch_by_ms = NOW + 300000,
		.proposal = {1},
		.display = {2},
		.policy = {3},
		.schema = {4}};
}

static void
no_change_of_a_signed_record_is_unseen(void **state)
{
	auto_buf struct buf d = {.max = DECISION_RECORD_MAX}, s = {.max = DECISION_RECORD_MAX},
			    r = {.max = DECISION_RECORD_MAX};
	struct decision_record decided = decision();
	struct settlement_record settled = {.approver = view_str("anna"),
		.execution = view_str("xc_0000000000000000"),
		.note = view_str("asked the bank"),
		.succeeded = true,
		.decided_ms = NOW};
	struct release_record released = {.approver = view_str("anna"),
		.note = view_str("fine"),
		.scope = view_str("tenant:acme"),
		.decided_ms = NOW};
	struct err err;

	(void)state;
	assert_int_equal(decision_record_write(&decided, &d, &err), 0);
	assert_int_equal(settlement_record_write(&settled, &s, &err), 0);
	assert_int_equal(release_record_write(&released, &r, &err), 0);
	assert_true(view_is(buf_view(&s),
		"{\"approver\":\"anna\",\"decided_ms\":1700000000,\"decision\":\"settle\","
		"\"execution\":\"xc_0000000000000000\",\"note\":\"asked the bank\","
		"\"outcome\":\"succeeded\",\"v\":1}"));
	assert_true(view_is(buf_view(&r),
		"{\"approver\":\"anna\",\"decided_ms\":1700000000,\"decision\":\"release\","
		"\"note\":\"fine\",\"scope\":\"tenant:acme\",\"v\":1}"));
	/* none is another */
	bool same;

	assert_false(decision_again(buf_view(&s), &same) || decision_again(buf_view(&r), &same));
	assert_false(
		settlement_again(buf_view(&d), &same) || settlement_again(buf_view(&r), &same));
	assert_false(release_again(buf_view(&d), &same) || release_again(buf_view(&s), &same));
	try_all(&d, decision_again, 1);
	try_all(&s, settlement_again, 1);
	try_all(&r, release_again, 1);
}

static void
A2_no_other_field_in_a_record(void **state)
{
	static const char *const more[] = {"{\"Approved\":true,", "{\"aaa\":1,"};
	auto_buf struct buf out = {.max = PROPOSAL_RECORD_MAX};
	bool same;

	(void)state;
	proposal(&out);
	for (size_t i = 0; i < ARRAY_LEN(more); i++) {
		auto_buf struct buf with = {.max = PROPOSAL_RECORD_MAX};

		buf_add_str(&with, more[i]);
		buf_add_view(&with, view_skip(buf_view(&out), 1));
		assert_false(proposal_again(buf_view(&with), &same));
	}
}

/* Each text replaced in a good proposal must make it none. */
static const struct {
	const char *from, *to;
} bad[] = {
	{"'max_executions':1", "'max_executions':2"},
	{"'v':1", "'v':2"},
	{"'quorum':2", "'quorum':6"},
	{"'quorum':2", "'quorum':-1"},
	{"'effect':'irreversible'", "'effect':'none'"},
	{"'epoch':1", "'epoch':-1"},
	{"'epoch':1", "'epoch':'1'"},
	{"'epoch':1,", ""},
	{"'actor':'sandbox:", "'actor':'sand box:"},
	{"'actor':'sandbox:sb_0000000000000000'", "'actor':''"},
	{"'owner':'uid:1000'", "'owner':'\u0430nna'"},
	{"'tenant':'acme'", "'tenant':'ACME'"},
	{"'tenant':'acme'", "'tenant':'../x'"},
	{"'task':'tk_", "'task':'sb_"},
	{"'proposal':'pr_", "'proposal':'xc_"},
	{"'capability':'gr_", "'capability':'tk_"},
	{"'idempotency_key':'dml-", "'idempotency_key':'abc-"},
	{"'idempotency_key':'dml-", "'idempotency_key':'dml-0"},
	{"'method':'POST'", "'method':'TRACE'"},
	{"'method':'POST'", "'method':'post'"},
	{"'url':'http:", "'url':'ftp:"},
	{"'url':'http:", "'url':'http: "},
	{"'content_type':'application/json'", "'content_type':'text/html'"},
	{"'content_type':'application/json'", "'content_type':''"},
	{"'action':'refund'", "'action':'re fund'"},
	{"'roles':['lead']", "'roles':['']"},
	{"'roles':['lead']", "'roles':[1]"},
	{"'roles':['lead']", "'roles':['a\\u0000b']"},
	{"'roles':['lead']", "'roles':{}"},
	{"'provenance':{'cents':'sandbox'}", "'provenance':{'cents':1}"},
	{"'provenance':{'cents':'sandbox'}", "'provenance':[]"},
	{"'order__tenant':'acme'", "'order__tenant':null"},
	{"'order__tenant':'acme'", "'order__tenant':{}"},
	{"'issued_ms':1700000000", "'issued_ms':1700600000"},
	{"'dispatch_within_ms':300000", "'dispatch_within_ms':0"},
	{"'request':{", "'request':{'amount':1,"},
};

static void
a_bad_proposal_is_none(void **state)
{
	auto_buf struct buf good = {.max = PROPOSAL_RECORD_MAX};

	(void)state;
	proposal(&good);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		auto_buf struct buf from = {.max = 256}, to = {.max = 256};
		auto_buf struct buf with = {.max = PROPOSAL_RECORD_MAX};
		const uint8_t *at;
		bool same;

		quoted(bad[i].from, &from);
		quoted(bad[i].to, &to);
		at = memmem(good.p, good.n, from.p, from.n);
		if (at == NULL)
			fail_msg("row %zu: %s is not there", i, bad[i].from);
		buf_add(&with, good.p, (size_t)(at - good.p));
		buf_add_view(&with, buf_view(&to));
		buf_add_view(&with, view_skip(buf_view(&good), (size_t)(at - good.p) + from.n));
		if (proposal_again(buf_view(&with), &same))
			fail_msg("row %zu: %s is accepted", i, bad[i].to);
	}
}

static void
what_cannot_be_read_is_not_written(void **state)
{
	auto_buf struct buf out = {.max = PROPOSAL_RECORD_MAX}, small = {.max = 100};
	struct proposal_record r = refund.record;
	struct decision_record d;
	struct release_record free_it = {.approver = view_str("anna"),
		.note = view_str("x"),
		.scope = view_str("task:tk_0000000000000000"),
		.decided_ms = NOW};
	struct err err;

	(void)state;
	buf_add_str(&out, "kept");
	r.arguments = view_str("{\"b\":1,\"a\":2}");
	assert_true(proposal_record_write(&r, &out, &err) < 0);
	r.arguments = view_str("{}},{");
	assert_true(proposal_record_write(&r, &out, &err) < 0);
	r = refund.record;
	r.where = view_str("no end");
	assert_true(proposal_record_write(&r, &out, &err) < 0);
	r = refund.record;
	r.epoch = UINT64_MAX;
	assert_true(proposal_record_write(&r, &out, &err) < 0);
	r = refund.record;
	r.owner = view_str("a\xff");
	assert_true(proposal_record_write(&r, &out, &err) < 0);
	assert_int_equal(proposal_record_write(&refund.record, &small, &err), -ENOBUFS);
	d = decision();
	d.reason = view_str("two\nlines");
	assert_true(decision_record_write(&d, &out, &err) < 0);
	d = decision();
	d.approver = view_str("Anna B");
	assert_true(decision_record_write(&d, &out, &err) < 0);
	d = decision();
	d.dispatch_by_ms = d.decided_ms;
	assert_true(decision_record_write(&d, &out, &err) < 0);
	d = decision();
	d.approve = false;
	assert_true(decision_record_write(&d, &out, &err) < 0);
	assert_true(view_is(buf_view(&out), "kept"));
	d.dispatch_by_ms = 0;
	assert_int_equal(decision_record_write(&d, &out, &err), 0);
	out.n = 0;
	assert_int_equal(release_record_write(&free_it, &out, &err), 0);
	free_it.scope = view_str("host");
	assert_int_equal(release_record_write(&free_it, &out, &err), 0);
	static const char *const scopes[] = {
		"", "hosts", "task:", "task:sb_0000000000000000", "tenant:", "tenant:A", "all"};

	for (size_t i = 0; i < ARRAY_LEN(scopes); i++) {
		free_it.scope = view_str(scopes[i]);
		assert_true(release_record_write(&free_it, &out, &err) < 0);
	}
}

static void
a_record_needs_its_room(void **state)
{
	auto_buf struct buf out = {.max = PROPOSAL_RECORD_MAX}, room = {.max = 64};
	auto_buf struct buf big = {.max = PROPOSAL_RECORD_MAX + 1}, more = {.max = 1 << 20};
	struct proposal_record r;
	struct err err;

	(void)state;
	proposal(&out);
	assert_int_equal(proposal_record_read(buf_view(&out), &room, &r, &err), -ENOBUFS);
	for (size_t i = 0; i <= PROPOSAL_RECORD_MAX; i++)
		buf_add_byte(&big, '{');
	assert_int_equal(proposal_record_read(buf_view(&big), &more, &r, &err), -EINVAL);
	assert_non_null(strstr(err.text, "more than 65536"));
	assert_int_equal(proposal_record_read(view_of(NULL, 0), &more, &r, &err), -EINVAL);
}

static void
A16_the_digest_is_of_schema_adapter_and_policy_too(void **state)
{
	static const size_t at[] = {offsetof(struct proposal_record, schema),
		offsetof(struct proposal_record, adapter), offsetof(struct proposal_record, policy),
		offsetof(struct proposal_record, catalogue)};
	auto_buf struct buf out = {.max = PROPOSAL_RECORD_MAX};
	uint8_t was[SHA256_BYTES], is[SHA256_BYTES], by_hand[SHA256_BYTES];
	auto_buf struct buf tagged = {.max = 2 * PROPOSAL_RECORD_MAX};
	struct err err;

	(void)state;
	proposal(&out);
	proposal_digest(buf_view(&out), was);
	buf_add(&tagged, "demilune-proposal-v1", 21);
	buf_add_view(&tagged, buf_view(&out));
	sha256_of(buf_view(&tagged), by_hand);
	assert_memory_equal(was, by_hand, SHA256_BYTES);
	for (size_t i = 0; i < ARRAY_LEN(at); i++) {
		struct proposal_record r = refund.record;

		((uint8_t *)&r)[at[i]] ^= 1;
		buf_clear(&out);
		assert_int_equal(proposal_record_write(&r, &out, &err), 0);
		proposal_digest(buf_view(&out), is);
		assert_memory_not_equal(was, is, SHA256_BYTES);
	}
}

static void
approvals_are_pairs(void **state)
{
	auto_buf struct buf b = {.max = 4096};
	struct view rest, d = {0}, s = {0};

	(void)state;
	approvals_put(&b, view_str("one"), view_str("sig"));
	approvals_put(&b, view_str("second"), view_str("s"));
	rest = buf_view(&b);
	assert_int_equal(approvals_take(&rest, &d, &s), 1);
	assert_true(view_is(d, "one") && view_is(s, "sig"));
	assert_int_equal(approvals_take(&rest, &d, &s), 1);
	assert_true(view_is(d, "second") && view_is(s, "s"));
	assert_int_equal(approvals_take(&rest, &d, &s), 0);
	for (size_t n = 1; n < b.n; n++) {
		rest = view_of(b.p, n);
		int e = approvals_take(&rest, &d, &s);

		assert_int_equal(e, n >= 10 ? 1 : -EINVAL);
		if (e < 0)
			assert_int_equal(rest.n, n);
		if (n > 10)
			assert_int_equal(approvals_take(&rest, &d, &s), -EINVAL);
	}
	rest = view_of("\0\0\0\1x", 5);
	assert_int_equal(approvals_take(&rest, &d, &s), -EINVAL);
}

static void
each_denial_has_exactly_one_check(void **state)
{
	(void)state;
	for (unsigned d = 0; d < DENIAL_MAX; d++) {
		bool none = d == DENIAL_NONE || d == DENIAL_PROVIDER_ANSWER;
		const struct check *c;
		unsigned n = 0;

		for (size_t i = 0; (c = check_at(i)) != NULL; i++)
			n += c->denial == d;
		if (n != (none ? 0 : 1))
			fail_msg("%s has %u rows", denial_text((enum denial)d), n);
		c = check_of((enum denial)d);
		assert_int_equal(c == NULL, none);
		assert_true(strlen(denial_sentence((enum denial)d)) > 5);
		if (c == NULL)
			continue;
		assert_int_equal(c->denial, d);
		assert_true(c->rooms >= CHECK_ENGINE && c->rooms <= (CHECK_ENGINE | CHECK_BROKER));
		assert_true(c->stages >= 1 && c->stages <= 7);
		assert_true(strlen(c->evidence) > 5);
		assert_ptr_equal(denial_sentence((enum denial)d), c->sentence);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_proposal_is_what_0003_says),
		cmocka_unit_test(reading_gives_back_what_was_written),
		cmocka_unit_test(no_change_of_a_proposal_is_unseen),
		cmocka_unit_test(no_change_of_a_signed_record_is_unseen),
		cmocka_unit_test(A2_no_other_field_in_a_record),
		cmocka_unit_test(a_bad_proposal_is_none),
		cmocka_unit_test(what_cannot_be_read_is_not_written),
		cmocka_unit_test(a_record_needs_its_room),
		cmocka_unit_test(A16_the_digest_is_of_schema_adapter_and_policy_too),
		cmocka_unit_test(approvals_are_pairs),
		cmocka_unit_test(each_denial_has_exactly_one_check),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
