/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Brokered requests against the real broker and a real provider with TLS. The test is engine, supervisor, dialer and the gateways, also ones
 * that were taken over. What counts: what came to the provider, what came back, and that the credential is in neither more than it should.
 * Names are those of research: egress, sections D, I and K.
 */
#include "gate.h"

#include "lib/ipc/reach_bounds.h"

#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

static int
open_only(void **state)
{
	(void)state;
	gate.fd = -1;
	play_open(&play);
	play_tls(&play);
	play_shell(&play, "cp ca.pem ../trust/carrier.pem && chmod 644 ../trust/carrier.pem");
	policy_make();
	return 0;
}

static int
begin(void **state)
{
	(void)open_only(state);
	play_start(&play);
	gate = gate_new();
	return 0;
}

static int
end(void **state)
{
	(void)state;
	gate_end(&gate);
	play_close(&play);
	return 0;
}

#define KIM "{\"customer\":\"kim\",\"paid_cents\":9000,\"status\":\"paid\"}"

/* ---- what is sent ---- */

static void
a_leased_request_is_carried_out(void **state)
{
	struct wish w = ORDER;

	(void)state;
	answered(&w, 200, KIM);
	assert_int_equal(provider_requests(&play, "GET /v1/orders/48221\n"), 1);
	/* K9: one credential, in the rule's header, whole. */
	assert_int_equal(headers_with("\"Authorization\""), 1);
	assert_int_equal(
		headers_with("\"Authorization\", \"Bearer sk_live_CANARY/7f3a+9c\\\"quoted"), 1);
	assert_int_equal(headers_with("CANARY"), 1);
	assert_int_equal(headers_with("Cookie"), 0);
	/* The dialer heard by which rule. */
	assert_memory_equal(play.dial.policy, policy, SHA256_BYTES);
	assert_int_equal(play.dial.rule, ORDERS);
	/* Parameters as they were decoded; a status that is no success, too. */
	w.query = "lang=de;%25 x/\xc3\xbc+?#&number=";
	answered(&w, 200, KIM);
	assert_int_equal(
		provider_requests(&play,
			"GET /v1/orders/48221?lang=de%3B%2525%20x%2F%C3%BC%2B%3F%23&number=\n"),
		1);
	w = (struct wish){ORDERS, "provider.test", "/v1/orders/none", ""};
	answered(&w, 404, "{}");
	w = (struct wish){WILD, "provider.test", "/v1/wild/48221", ""};
	answered(&w, 200, "{\"status\":\"paid\"}");
	assert_false(play_leaked(&play, "CANARY"));
}

static void
a_lease_is_good_once(void **state)
{
	struct wish w = ORDER;
	struct id lease = leased(&gate, &w);
	struct said s = with_lease(&gate, &lease, &w);

	(void)state;
	is(&s, EGRESS_REASON_NONE, 200);
	s = with_lease(&gate, &lease, &w);
	refused(&s, EGRESS_REASON_BROKER, 1, 1);
	assert_non_null(strstr(s.text, "was used"));
	/* Nor does the engine get it back by giving it again. */
	assert_int_equal(lease_try(&gate, &w, 30000, &lease), DENIAL_SPENT);
	s = with_lease(&gate, &lease, &w);
	refused(&s, EGRESS_REASON_BROKER, 1, 1);
	/* Two at the same time: one. */
	lease = leased(&gate, &w);
	(void)send_wish(&gate, &lease, &w);
	(void)send_wish(&gate, &lease, &w);
	s = hear(&gate);
	is(&s, EGRESS_REASON_BROKER, 0);
	s = hear(&gate);
	is(&s, EGRESS_REASON_NONE, 200);
	assert_int_equal(provider_requests(&play, ""), 2);
}

static void
a_lease_of_another_sandbox(void **state)
{
	struct gate other = gate_new();
	struct wish w = ORDER;
	struct id lease = leased(&gate, &w);
	struct said s = with_lease(&other, &lease, &w);

	(void)state;
	refused(&s, EGRESS_REASON_BROKER, 0, 0);
	s = with_lease(&gate, &lease, &w); /* which has lost nothing */
	is(&s, EGRESS_REASON_NONE, 200);
	gate_end(&other);
}

static void
no_lease_or_an_old_one(void **state)
{
	struct id lease = {0}, none = {0};
	struct wish w = ORDER;
	struct said s = with_lease(&gate, &none, &w);

	(void)state;
	refused(&s, EGRESS_REASON_BROKER, 0, 0);
	id_new(&none);
	s = with_lease(&gate, &none, &w);
	refused(&s, EGRESS_REASON_BROKER, 0, 0);
	assert_int_equal(lease_try(&gate, &w, 20, &lease), DENIAL_NONE);
	play_turn(&play, 40);
	(void)poll(NULL, 0, 40);
	s = with_lease(&gate, &lease, &w);
	refused(&s, EGRESS_REASON_BROKER, 0, 0);
	/* What a broker that ended was told is void. */
	lease = leased(&gate, &w);
	gate_end(&gate);
	play_restart(&play);
	gate = gate_new();
	s = with_lease(&gate, &lease, &w);
	refused(&s, EGRESS_REASON_BROKER, 0, 0);
	answered(&w, 200, KIM);
}

static void
leases_are_bounded(void **state)
{
	struct gate other = gate_new();
	struct wish w = ORDER;
	struct id lease;

	(void)state;
	lease = (struct id){0};
	assert_int_equal(lease_try(&gate, &w, 0, &lease), DENIAL_RECORD_MALFORMED);
	assert_int_equal(lease_try(&gate, &w, 30001, &lease), DENIAL_RECORD_MALFORMED);
	for (int i = 0; i < 32; i++)
		(void)leased(&gate, &w);
	lease = (struct id){0};
	assert_int_equal(lease_try(&gate, &w, 30000, &lease), DENIAL_BROKER_UNAVAILABLE);
	lease = leased(&other, &w);
	gate_end(&other);
}

/* The gateway asks for other things than those that are on record. */
static void
another_request_than_the_leased_one(void **state)
{
	static const struct wish rows[] = {
		{ORDERS, "provider.test", "/v1/orders/777", ""},
		{ORDERS, "provider.test", "/v1/orders/48221", "lang=de"},
		{ORDERS, "provider.test", "/v1/orders/48221/", ""},
		{ORDERS, "provider.test", "/v1/orders/4822%31", ""},
	};
	struct wish w = ORDER;
	struct said s;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct id lease = leased(&gate, &w);

		s = with_lease(&gate, &lease, &rows[i]);
		if (s.reason == EGRESS_REASON_NONE)
			fail_msg("%s?%s", rows[i].path, rows[i].query);
		refused(&s, s.reason, 0, 0);
		/* It is spent all the same. */
		s = with_lease(&gate, &lease, &w);
		refused(&s, EGRESS_REASON_BROKER, 0, 0);
	}
	/* By another rule: no lease. */
	{
		struct id lease = leased(&gate, &w);

		w.rule = WILD;
		s = with_lease(&gate, &lease, &w);
		refused(&s, EGRESS_REASON_BROKER, 0, 0);
	}
}

/* The engine leases it, and the broker's own copy of the policy says no. */
static void
what_the_rule_does_not_take(void **state)
{
	(void)state;
	refused_wish((struct wish){FETCH, "docs.test", "/x", ""}, EGRESS_REASON_NO_RULE);
	refused_wish(
		(struct wish){RULES, "provider.test", "/v1/orders/1", ""}, EGRESS_REASON_NO_RULE);
	refused_wish(
		(struct wish){0xffff, "provider.test", "/v1/orders/1", ""}, EGRESS_REASON_NO_RULE);
	refused_wish(
		(struct wish){ORDERS, "provider.test", "/v2/orders/1", ""}, EGRESS_REASON_PATH);
	refused_wish(
		(struct wish){ORDERS, "provider.test", "/v1/orders/a/b", ""}, EGRESS_REASON_PATH);
	refused_wish(
		(struct wish){ORDERS, "provider.test", "/v1/orders/..", ""}, EGRESS_REASON_PATH);
	refused_wish((struct wish){ORDERS, "provider.test", "/v1/orders/%2e%2e", ""},
		EGRESS_REASON_PATH);
	refused_wish(
		(struct wish){ORDERS, "provider.test", "/v1/orders/a%2fb", ""}, EGRESS_REASON_PATH);
	refused_wish(
		(struct wish){ORDERS, "provider.test", "/v1/orders/a?b=c", ""}, EGRESS_REASON_PATH);
	refused_wish(
		(struct wish){ORDERS, "provider.test", "/v1/orders/a b", ""}, EGRESS_REASON_PATH);
	refused_wish((struct wish){ORDERS, "provider.test", "/v1/orders/a\r\nX: y", ""},
		EGRESS_REASON_PATH);
	refused_wish((struct wish){ORDERS, "provider.test", "", ""}, EGRESS_REASON_PATH);
	refused_wish((struct wish){ORDERS, "provider.test", "@evil.test/v1/orders/1", ""},
		EGRESS_REASON_PATH);
	refused_wish((struct wish){ORDERS, "provider.test", "/v1/orders/1", "other=1"},
		EGRESS_REASON_QUERY);
	refused_wish((struct wish){SMALL, "provider.test", "/v1/small/1", "lang=1"},
		EGRESS_REASON_QUERY);
}

static void
K7_the_credential_goes_to_no_other_host(void **state)
{
	static const char *const names[] = {"evil.test", "provider.test.", "Provider.test", "",
		"x.provider.test", "provider.test:443", "provider.test@evil.test", "127.0.0.1"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		refused_wish((struct wish){ORDERS, names[i], "/v1/orders/48221", ""},
			EGRESS_REASON_NO_RULE);
	refused_wish((struct wish){WILD, "a.b.test", "/v1/wild/1", ""}, EGRESS_REASON_NO_RULE);
	refused_wish((struct wish){WILD, "test", "/v1/wild/1", ""}, EGRESS_REASON_NO_RULE);
}

/* K6: there is nothing that would be replaced by the credential, wherever it stands. */
static void
K6_no_text_becomes_the_credential(void **state)
{
	struct wish w = {
		ORDERS, "provider.test", "/v1/orders/48221", "lang={{shop-key}}&number=$shop-key"};

	(void)state;
	answered(&w, 200, KIM);
	assert_int_equal(
		provider_requests(&play,
			"GET /v1/orders/48221?lang=%7B%7Bshop-key%7D%7D&number=%24shop-key\n"),
		1);
	assert_int_equal(headers_with("CANARY"), 1);
	assert_int_equal(provider_requests(&play, "GET /v1/orders/48221?lang=sk_live"), 0);
}

/* ---- what comes back ---- */

/* D8 I13: the provider repeats the credential. */
static void
I13_a_reflected_credential_is_redacted(void **state)
{
	struct wish w = ORDER;

	(void)state;
	provider_script(&play, "read echo\n");
	answered(&w, 200, "{\"customer\":\"kim\",\"paid_cents\":9000,\"status\":\"[redacted]\"}");
	assert_false(play_leaked(&play, "CANARY"));
	assert_false(play_leaked(&play, "sk_live"));
}

static void
D1_a_redirect_is_not_followed(void **state)
{
	static const unsigned codes[] = {301, 302, 303, 307, 308};
	struct wish w = ORDER;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
		char line[64];
		struct said s;

		(void)snprintf(line, sizeof(line), "read redirect %u\n", codes[i]);
		provider_script(&play, line);
		s = request(&gate, &w);
		is(&s, EGRESS_REASON_ANSWER, 0);
		assert_string_equal(s.answer, "");
	}
	assert_int_equal(provider_requests(&play, ""), 5);
	assert_int_equal(provider_requests(&play, "GET /v1/orders/777"), 0);
	assert_int_equal(play.dialled, 5);
	assert_false(play_leaked(&play, "CANARY")); /* D8: it stood in the query of Location */
}

static void
I_answers_that_are_none(void **state)
{
	struct wish w = ORDER, small = {SMALL, "provider.test", "/v1/small/48221", ""};
	struct said s;

	(void)state;
	provider_script(&play, "read garbage\n");
	s = request(&gate, &w);
	is(&s, EGRESS_REASON_ANSWER, 0);
	provider_script(&play, "read drop\n");
	s = request(&gate, &w);
	is(&s, EGRESS_REASON_ANSWER, 0);
	provider_script(&play, "read huge\n"); /* I9 */
	s = request(&gate, &w);
	is(&s, EGRESS_REASON_RESP_LIMIT, 0);
	s = request(&gate, &small);
	is(&s, EGRESS_REASON_RESP_LIMIT, 0);
	provider_script(&play, "read failed 500\n");
	answered(&w, 500, "{}");
	provider_script(&play, "read status 403\n");
	answered(&w, 403, "{}");
	provider_script(&play, "read wide\n");
	s = request(&gate, &w);
	is(&s, EGRESS_REASON_NONE, 200);
	assert_null(strstr(s.answer, "zzz")); /* no field of the rule */
	assert_non_null(strstr(s.answer, "yyy"));
	/* A client could take an answer twice; this one asks once. */
	assert_int_equal(provider_requests(&play, ""), 7);
}

static void
I9_a_provider_that_is_slow(void **state)
{
	struct wish w = ORDER;
	uint64_t began = clock_mono_ms();
	struct said s;

	(void)state;
	provider_script(&play, "read stall 25\n");
	s = request(&gate, &w);
	is(&s, EGRESS_REASON_TIMEOUT, 0);
	assert_in_range(clock_mono_ms() - began, 19000, 24000);
}

/* ---- what is not there ---- */

static void
without_its_secret_nothing_is_dialled(void **state)
{
	struct wish w = {MISSING, "provider.test", "/v1/missing/1", ""};
	struct said s = request(&gate, &w);

	(void)state;
	refused(&s, EGRESS_REASON_BROKER, 0, 0);
	assert_non_null(strstr(s.text, "credential"));
	assert_null(strstr(s.text, "nothing"));
	assert_true(play_leaked(&play, "the secret nothing")); /* the log has its name */
}

static void
verified_with_the_rules_roots(void **state)
{
	struct wish w = ORDER;
	struct said s;

	(void)state;
	play_shell(&play,
		"cp ../trust/shop.pem good.pem && openssl req -x509 -newkey ec -pkeyopt "
		"ec_paramgen_curve:prime256v1 -nodes -keyout other.key -out ../trust/shop.pem "
		"-days 2 -subj /CN=test 2>/dev/null && chmod 644 ../trust/shop.pem");
	play_start(&play);
	gate = gate_new();
	s = request(&gate, &w);
	refused(&s, EGRESS_REASON_TLS_VERIFY, 0, 1);
	gate_end(&gate);
	play_kill(&play);
	/* No roots: refused before anything is sent. */
	play_shell(&play, "rm ../trust/shop.pem");
	play_start(&play);
	gate = gate_new();
	s = request(&gate, &w);
	assert_true(s.reason == EGRESS_REASON_TLS_VERIFY || s.reason == EGRESS_REASON_BROKER);
	assert_int_equal(provider_requests(&play, ""), 0);
	gate_end(&gate);
	play_kill(&play);
	play_shell(&play, "cp good.pem ../trust/shop.pem && chmod 644 ../trust/shop.pem");
	play_start(&play);
	gate = gate_new();
	answered(&w, 200, KIM);
}

static void
the_dialer_says_no(void **state)
{
	struct wish w = ORDER;
	struct said s;

	(void)state;
	play.dials = DIALER_REFUSES;
	s = request(&gate, &w);
	refused(&s, EGRESS_REASON_UNREACHABLE, 0, 1);
	play.dials = DIALER_CONNECTS;
	answered(&w, 200, KIM);
	(void)close(take_fd(&play.dialer));
	s = request(&gate, &w);
	is(&s, EGRESS_REASON_BROKER, 0);
}

static void
a_contained_host_sends_nothing(void **state)
{
	struct wish w = ORDER;
	struct id before = leased(&gate, &w), after = {0};
	struct said s;

	(void)state;
	ASK(&play, BROKER_CONTAIN, broker_contain, {.scope = view_str("host")});
	play_want(&play, MSG_BROKER_DONE);
	s = with_lease(&gate, &before, &w);
	refused(&s, EGRESS_REASON_CONTAINED, 0, 0);
	assert_int_equal(lease_try(&gate, &w, 30000, &after), DENIAL_CONTAINED);
	gate_end(&gate);
	play_restart(&play);
	gate = gate_new();
	id_new(&after);
	s = with_lease(&gate, &after, &w);
	refused(&s, EGRESS_REASON_CONTAINED, 0, 0);
}

/* No audit, no request: until a head is signed again. */
static void
after_a_refused_head_nothing_is_sent(void **state)
{
	struct wish w = ORDER;
	struct said s;

	(void)state;
	ASK(&play, CHECKPOINT_ASK, checkpoint_ask, {.size = 5, .root = {1}});
	play_want(&play, MSG_CHECKPOINT_IS);
	ASK(&play, CHECKPOINT_ASK, checkpoint_ask, {.size = 5, .root = {2}});
	play_want(&play, MSG_BROKER_REFUSED);
	s = request(&gate, &w);
	refused(&s, EGRESS_REASON_AUDIT, 0, 0);
	ASK(&play, CHECKPOINT_ASK, checkpoint_ask, {.size = 5, .root = {1}});
	play_want(&play, MSG_CHECKPOINT_IS);
	answered(&w, 200, KIM);
}

/* ---- bounds ---- */

static void
ask_many(const struct gate *g, unsigned n)
{
	struct wish w = ORDER;

	for (unsigned i = 0; i < n; i++) {
		struct id lease = leased(g, &w);

		(void)send_wish(g, &lease, &w);
	}
}

static void
so_many_at_a_time_and_executions_go_on(void **state)
{
	struct gate other[2] = {gate_new(), gate_new()}, late = gate_new();
	struct action a;
	struct msg_executed m;
	struct said s;

	(void)state;
	play.dials = DIALER_HOLDS;
	ask_many(&gate, BROKERED_LIVE_MAX);
	play_until_dialled(&play, BROKERED_LIVE_MAX);
	ask_many(&gate, 1);
	s = hear(&gate);
	is(&s, EGRESS_REASON_BROKER, 0);
	assert_non_null(strstr(s.text, "too many"));
	/* With half of the whole taken the others get two each. */
	ask_many(&other[0], BROKERED_LIVE_MAX);
	play_until_dialled(&play, 2 * BROKERED_LIVE_MAX);
	ask_many(&late, 2);
	play_until_dialled(&play, 2 * BROKERED_LIVE_MAX + 2);
	ask_many(&late, 1);
	s = hear(&late);
	is(&s, EGRESS_REASON_BROKER, 0);
	/* An approved action is not kept waiting. */
	play.dials = DIALER_CONNECTS;
	action_refund(&play, &a);
	m = action_execute(&play, &a);
	action_is(&m, ATTEMPT_SUCCEEDED, DENIAL_NONE);
	action_done(&a);
	play_dial_now(&play);
	for (unsigned i = 0; i < BROKERED_LIVE_MAX; i++) {
		s = hear(&gate);
		is(&s, EGRESS_REASON_NONE, 200);
		s = hear(&other[0]);
		is(&s, EGRESS_REASON_NONE, 200);
	}
	gate_end(&other[0]);
	gate_end(&other[1]);
	gate_end(&late);
}

/* A sandbox that ends takes what it has in flight with it: no request is sent for it any more. */
static void
the_end_of_a_gateway(void **state)
{
	struct gate other = gate_new();
	struct wish w = ORDER;

	(void)state;
	play.dials = DIALER_HOLDS;
	ask_many(&other, 4);
	play_until_dialled(&play, 4);
	gate_end(&other);
	play_turn(&play, 50);
	play.dials = DIALER_CONNECTS;
	answered(&w, 200, KIM); /* the broker has seen the end before this */
	play_dial_now(&play);
	answered(&w, 200, KIM);
	assert_int_equal(provider_requests(&play, ""), 2);
}

static void
a_gateway_that_breaks_the_protocol_loses_its_edge_alone(void **state)
{
	static const enum msg_type types[] = {
		MSG_LEASE, MSG_SECRET, MSG_BROKERED_DONE, MSG_DIALED, MSG_EXECUTE, MSG_BROKERED};
	struct wish w = ORDER;
	auto_buf struct buf body;

	(void)state;
	buf_init(&body, 4096);
	buf_add_str(&body, "no message at all");
	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		struct gate taken = gate_new();
		struct pollfd p = {.fd = taken.fd, .events = POLLIN};

		play_send(taken.fd, types[i], 1, &body, -1);
		assert_int_equal(poll(&p, 1, 5000), 1);
		assert_true((p.revents & POLLHUP) != 0);
		gate_end(&taken);
	}
	answered(&w, 200, KIM);
}

static void
hostile_words(void **state)
{
	struct wish w = ORDER;
	auto_buf struct buf big = {.max = 8192};
	struct said s;

	(void)state;
	while (big.n < 4096)
		buf_add_byte(&big, 'a');
	for (unsigned i = 0; i < 4; i++) {
		static const char *const bad[] = {"no end", "", "a\0b", "\0x\0"};
		static const size_t lengths[] = {6, 0, 3, 3};
		struct id lease = leased(&gate, &w);

		if (lengths[i] == 0) {
			SAY_TAG(gate.fd, ++gate_tag, BROKERED, brokered, -1,
				{.lease = lease,
					.rule = ORDERS,
					.name = view_str("provider.test"),
					.path = buf_view(&big),
					.query = buf_view(&big)});
		} else {
			SAY_TAG(gate.fd, ++gate_tag, BROKERED, brokered, -1,
				{.lease = lease,
					.rule = ORDERS,
					.name = view_str("provider.test"),
					.path = view_str(w.path),
					.query = view_of(bad[i], lengths[i])});
		}
		s = hear(&gate);
		if (s.reason == EGRESS_REASON_NONE)
			fail_msg("%u", i);
		assert_int_equal(provider_requests(&play, ""), 0);
		assert_int_equal(play.dialled, 0);
	}
	answered(&w, 200, KIM);
}

static void
a_policy_that_is_not_what_was_told(void **state)
{
	uint8_t wrong[SHA256_BYTES] = {1};
	struct wish w = ORDER;

	(void)state;
	gate_end(&gate);
	play_restart(&play);
	for (int missing = 1; missing <= 8; missing *= 2) {
		struct gate g = gate_with(document, SEALS & ~missing, policy);
		struct pollfd p = {.fd = g.fd, .events = POLLIN};

		assert_int_equal(poll(&p, 1, 5000), 1);
		assert_true((p.revents & POLLHUP) != 0);
		gate_end(&g);
	}
	{
		struct gate g = gate_with(document, SEALS, wrong);
		struct pollfd p = {.fd = g.fd, .events = POLLIN};

		assert_int_equal(poll(&p, 1, 5000), 1);
		assert_true((p.revents & POLLHUP) != 0);
		gate_end(&g);
	}
	gate = gate_new();
	answered(&w, 200, KIM);
}

/* A restart of the engine takes no lease away; brokered requests do not keep a broker from ending. */
static void
restarts(void **state)
{
	struct wish w = ORDER;
	struct id lease = leased(&gate, &w);
	struct said s;

	(void)state;
	play_engine_again(&play);
	s = with_lease(&gate, &lease, &w);
	is(&s, EGRESS_REASON_NONE, 200);
	answered(&w, 200, KIM);
	/* While the end of an execution is waited for, no brokered request is taken; when there is none, nothing is waited for. */
	play.dials = DIALER_HOLDS;
	ask_many(&gate, 2);
	play_until_dialled(&play, 4);
	gate_end(&gate);
	assert_int_equal(kill(play.broker, SIGTERM), 0);
	assert_int_equal(play_wait(&play), 0);
	assert_int_equal(provider_requests(&play, ""), 2);
}

static void
nothing_is_taken_while_the_broker_ends(void **state)
{
	struct wish w = ORDER;
	struct id lease = leased(&gate, &w);
	struct action a;
	struct said s;

	(void)state;
	provider_script(&play, "effect slow 2\n");
	action_refund(&play, &a);
	action_send(&play, &a);
	for (int i = 0; i < 200 && provider_requests(&play, "POST") == 0; i++)
		play_turn(&play, 10);
	assert_int_equal(provider_requests(&play, "POST"), 1);
	assert_int_equal(kill(play.broker, SIGTERM), 0);
	(void)poll(NULL, 0, 100);
	(void)send_wish(&gate, &lease, &w);
	s = hear(&gate);
	is(&s, EGRESS_REASON_BROKER, 0);
	assert_non_null(strstr(s.text, "ends"));
	assert_int_equal(play_wait(&play), 0);
	assert_int_equal(
		provider_requests(&play, "GET /v1/orders/48221\n"), 1); /* of the execution */
	assert_int_equal(provider_effects(&play), 1);
	action_done(&a);
}

int
main(int argc, char **argv)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
#define COLD(f) cmocka_unit_test_setup_teardown(f, open_only, end)
	const struct CMUnitTest tests[] = {TEST(a_leased_request_is_carried_out),
		TEST(a_lease_is_good_once), TEST(a_lease_of_another_sandbox),
		TEST(no_lease_or_an_old_one), TEST(leases_are_bounded),
		TEST(another_request_than_the_leased_one), TEST(what_the_rule_does_not_take),
		TEST(K7_the_credential_goes_to_no_other_host),
		TEST(K6_no_text_becomes_the_credential),
		TEST(I13_a_reflected_credential_is_redacted), TEST(D1_a_redirect_is_not_followed),
		TEST(I_answers_that_are_none), TEST(I9_a_provider_that_is_slow),
		TEST(without_its_secret_nothing_is_dialled), COLD(verified_with_the_rules_roots),
		TEST(the_dialer_says_no), TEST(a_contained_host_sends_nothing),
		TEST(after_a_refused_head_nothing_is_sent),
		TEST(so_many_at_a_time_and_executions_go_on), TEST(the_end_of_a_gateway),
		TEST(a_gateway_that_breaks_the_protocol_loses_its_edge_alone), TEST(hostile_words),
		TEST(a_policy_that_is_not_what_was_told), TEST(restarts),
		TEST(nothing_is_taken_while_the_broker_ends)};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
