/* SPDX-License-Identifier: Apache-2.0 */
/* The broker does what it is for: verify, decide, execute once, tell. */
#include "play.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct play play;

static int
begin(void **state)
{
	(void)state;
	play_open(&play);
	play_start(&play);
	return 0;
}

static int
end(void **state)
{
	(void)state;
	play_close(&play);
	return 0;
}

static struct msg_verified
verify(const char *operation, const char *arguments, struct view where)
{
	const struct operation *op = catalogue_find(&play.catalogue, view_str(operation));
	struct msg_verify_ask m = {.name = view_str(operation),
		.tenant = view_str("acme"),
		.arguments = view_str(arguments),
		.where = where};

	id_new(&m.task);
	id_new(&m.proposal);
	memcpy(m.operation, op->digest, SHA256_BYTES);
	SAY_TAG(play.engine, ++play.tag, VERIFY_ASK, verify_ask, -1, m);
	WANT(&play, VERIFIED, verified, answer);
	assert_int_equal(play.in.tag, play.tag);
	return answer;
}

static const char refund[] = "{\"cents\":4200,\"order_id\":\"48221\",\"reason\":\"other\"}";

static void
a_verify_reads_the_facts_and_tests_them(void **state)
{
	struct msg_verified v = verify("refund", refund, view_of(NULL, 0));

	(void)state;
	assert_int_equal(v.denial, DENIAL_NONE);
	assert_true(view_is(v.facts, "{\"order__paid_cents\":9000,\"order__status\":\"paid\","
				     "\"order__tenant\":\"acme\"}"));
	assert_int_equal(v.calls, 1);
	v = verify("refund", "{\"cents\":4200,\"order_id\":\"777\",\"reason\":\"other\"}",
		view_of(NULL, 0));
	assert_int_equal(v.denial, DENIAL_VERIFY_FAILED);
	v = verify("refund", "{\"cents\":9001,\"order_id\":\"48221\",\"reason\":\"other\"}",
		view_of(NULL, 0));
	assert_int_equal(v.denial, DENIAL_VERIFY_FAILED);
	v = verify("refund", refund, view_of("order.status == shipped", 24));
	assert_int_equal(v.denial, DENIAL_GRANT_CONDITION);
	v = verify("refund", "{\"cents\":4200,\"order_id\":\"48221\"}", view_of(NULL, 0));
	assert_int_equal(v.denial, DENIAL_ARGUMENTS);
}

static void
an_approved_refund_is_done_once(void **state)
{
	struct msg_executed m;
	struct action a;

	(void)state;
	action_make(&play, &a, "refund", "{\"cents\":4200,\"order_id\":\"48221\"}");
	action_approve(&play, &a, 0);
	m = action_execute(&play, &a);
	if (m.attempt != ATTEMPT_SUCCEEDED)
		fail_msg("%s %s: %.*s", attempt_text(m.attempt), denial_text(m.denial),
			VIEW_ARGS(m.text));
	assert_true(view_is(m.receipt, "{\"reference\":\"re_1\",\"status\":\"succeeded\"}"));
	assert_int_equal(m.status, 201);
	assert_int_equal(m.sends, 1);
	assert_true(m.spent_ms != 0 && m.ended_ms >= m.spent_ms && m.first_byte_us != 0);
	assert_int_equal(provider_effects(&play), 1);
	/* Again: the earlier result, and nothing at the provider. */
	m = action_execute(&play, &a);
	assert_int_equal(m.attempt, ATTEMPT_SUCCEEDED);
	assert_int_equal(provider_effects(&play), 1);
	assert_int_equal(provider_requests(&play, "POST"), 1);
	/* As another execution: spent. */
	id_new(&a.execution);
	m = action_execute(&play, &a);
	assert_int_equal(m.attempt, ATTEMPT_DENIED);
	assert_int_equal(m.denial, DENIAL_SPENT);
	assert_int_equal(provider_requests(&play, "POST"), 1);
	action_done(&a);
}

static void
a_read_needs_nobody_and_changes_nothing(void **state)
{
	const struct operation *op = catalogue_find(&play.catalogue, view_str("order_status"));
	struct msg_read_ask m = {.name = view_str("order_status"),
		.tenant = view_str("acme"),
		.arguments = view_str("{\"order_id\":\"48221\"}")};

	(void)state;
	memcpy(m.operation, op->digest, SHA256_BYTES);
	SAY_TAG(play.engine, ++play.tag, READ_ASK, read_ask, -1, m);
	WANT(&play, READ_DONE, read_done, r);
	assert_int_equal(r.denial, DENIAL_NONE);
	assert_true(view_is(r.answer, "{\"paid_cents\":9000,\"status\":\"paid\"}"));
	assert_int_equal(r.calls, 1);
	/* What changes something is no read. */
	op = catalogue_find(&play.catalogue, view_str("note"));
	m.name = view_str("note");
	m.arguments = view_str("{\"text\":\"x\"}");
	memcpy(m.operation, op->digest, SHA256_BYTES);
	SAY_TAG(play.engine, ++play.tag, READ_ASK, read_ask, -1, m);
	WANT(&play, READ_DONE, read_done, not );
	assert_int_equal(not .denial, DENIAL_QUORUM);
	assert_int_equal(provider_requests(&play, "POST"), 0);
}

/* A taken-over engine reads nothing for whom a person has contained. */
static void
nothing_is_read_for_whom_is_contained(void **state)
{
	const struct operation *op = catalogue_find(&play.catalogue, view_str("order_status"));
	struct msg_read_ask m = {.name = view_str("order_status"),
		.tenant = view_str("acme"),
		.arguments = view_str("{\"order_id\":\"48221\"}")};

	(void)state;
	ASK(&play, BROKER_CONTAIN, broker_contain, {.scope = view_str("tenant:acme")});
	play_want(&play, MSG_BROKER_DONE);
	assert_int_equal(verify("refund", refund, view_of(NULL, 0)).denial, DENIAL_CONTAINED);
	memcpy(m.operation, op->digest, SHA256_BYTES);
	SAY_TAG(play.engine, ++play.tag, READ_ASK, read_ask, -1, m);
	WANT(&play, READ_DONE, read_done, r);
	assert_int_equal(r.denial, DENIAL_CONTAINED);
	assert_int_equal(provider_requests(&play, ""), 0);
}

static int
begin_guarded(void **state)
{
	(void)state;
	play_open(&play);
	play_edit(&play, "'quorum':0},'describe':'Read", "'quorum':1},'describe':'Read");
	play_start(&play);
	return 0;
}

static void
a_read_that_needs_a_person_is_not_done_without(void **state)
{
	const struct operation *op = catalogue_find(&play.catalogue, view_str("order_status"));
	struct msg_read_ask m = {.name = view_str("order_status"),
		.tenant = view_str("acme"),
		.arguments = view_str("{\"order_id\":\"48221\"}")};
	struct msg_executed x;
	struct action a;

	(void)state;
	memcpy(m.operation, op->digest, SHA256_BYTES);
	SAY_TAG(play.engine, ++play.tag, READ_ASK, read_ask, -1, m);
	WANT(&play, READ_DONE, read_done, r);
	assert_int_equal(r.denial, DENIAL_QUORUM);
	play_approvers(&play, (const char *const[]){"may=order_status", NULL, NULL});
	play_want(&play, MSG_APPROVERS_LOADED);
	action_make(&play, &a, "order_status", "{\"order_id\":\"48221\"}");
	action_approve(&play, &a, 0);
	x = action_execute(&play, &a);
	action_is(&x, ATTEMPT_SUCCEEDED, DENIAL_NONE);
	assert_true(view_is(x.receipt, "{\"paid_cents\":9000,\"status\":\"paid\"}"));
	action_done(&a);
}

static void
a_draft_needs_nobody(void **state)
{
	struct msg_executed m;
	struct action a;

	(void)state;
	action_make(&play, &a, "note", "{\"text\":\"call them\"}");
	m = action_execute(&play, &a);
	assert_int_equal(m.attempt, ATTEMPT_SUCCEEDED);
	assert_int_equal(provider_effects(&play), 1);
	action_done(&a);
}

static int
by_size(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* EXECUTE to the first byte at the provider, the ledger on disk. */
static void
the_first_byte_leaves_soon(void **state)
{
	uint32_t us[51];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(us); i++) {
		struct msg_executed m;
		struct action a;

		action_make(&play, &a, "reply",
			"{\"body\":\"hello\",\"recipient\":\"kim@example.org\",\"subject\":"
			"\"order\"}");
		action_approve(&play, &a, 2);
		m = action_execute(&play, &a);
		action_is(&m, ATTEMPT_SUCCEEDED, DENIAL_NONE);
		us[i] = m.first_byte_us;
		action_done(&a);
	}
	qsort(us, ARRAY_LEN(us), sizeof(*us), by_size);
	print_message("# first byte after %u us (median), %u us (worst)\n", us[25], us[50]);
	assert_true(us[25] <= 50000); /* the goal of 10 ms is for the bench, on an idle host */
}

/* ---- starts that are none ---- */

static int
open_only(void **state)
{
	(void)state;
	play_open(&play);
	return 0;
}

static void
ends_with(int code, const char *says)
{
	int status = play_wait(&play);

	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), code);
	assert_true(play_leaked(&play, says));
}

static void
a_damaged_ledger_keeps_it_from_starting(void **state)
{
	auto_buf struct buf b = {.max = 65536};
	int fd;

	(void)state;
	play_start(&play);
	play_kill(&play);
	play_read(&play, play.state, "ledger", &b);
	b.p[10] ^= 1;
	fd = openat(play.state, "ledger", O_WRONLY | O_CLOEXEC);
	assert_int_equal(pwrite(fd, b.p, b.n, 0), (ssize_t)b.n);
	(void)close(fd);
	play_launch(&play);
	ends_with(2, "the ledger is damaged in entry 1");
}

static void
without_the_supervisor_it_ends(void **state)
{
	(void)state;
	play_start(&play);
	(void)close(take_fd(&play.supervisor));
	assert_int_equal(play_wait(&play), 0);
	/* Before it said how to start, too. */
	play_launch_only(&play);
	(void)close(take_fd(&play.supervisor));
	ends_with(1, "the supervisor does not say how to start");
}

static void
what_the_supervisor_does_not_say_in_its_time_ends_it(void **state)
{
	(void)state;
	play_start(&play);
	SAY_TAG(play.supervisor, 0, BROKER_BEGIN, broker_begin, -1, {.origin = "again"});
	assert_int_equal(play_wait(&play), 0);
	assert_true(play_leaked(&play, "BROKER_BEGIN in state"));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_verify_reads_the_facts_and_tests_them),
		TEST(an_approved_refund_is_done_once),
		TEST(a_read_needs_nobody_and_changes_nothing),
		TEST(nothing_is_read_for_whom_is_contained),
		cmocka_unit_test_setup_teardown(
			a_read_that_needs_a_person_is_not_done_without, begin_guarded, end),
		TEST(a_draft_needs_nobody),
		TEST(the_first_byte_leaves_soon),
		cmocka_unit_test_setup_teardown(
			a_damaged_ledger_keeps_it_from_starting, open_only, end),
		cmocka_unit_test_setup_teardown(without_the_supervisor_it_ends, open_only, end),
		cmocka_unit_test_setup_teardown(
			what_the_supervisor_does_not_say_in_its_time_ends_it, open_only, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
