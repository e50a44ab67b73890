/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gateways that were taken over: each field of each message with what an honest one cannot say, messages in the wrong state or order, floods. The
 * gateway is lost and its sandbox ended with it; nothing of what it said is on record; everybody else goes on.
 */
#include "gates.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

static struct gates gates;

static int
setup(void **state)
{
	gates_open(&gates);
	gates.p.settings.tenant_creates_per_minute = 1000000;
	gates_start(&gates);
	*state = &gates;
	return 0;
}

/* What was said last ended the gateway and its sandbox. */
static void
lost(struct gates *g, struct boxed *b, const char *what)
{
	struct play *p = &g->p;

	play_want_any(p, p->supervisor);
	if (p->in.type != MSG_KILL)
		fail_msg("%s: %s came", what, msg_info[p->in.type].name);
	struct msg_kill kill;
	play_decoded(msg_kill_get(p->in.body, &kill, &(struct err){0}), "KILL");
	assert_int_equal(kill.reason, SANDBOX_REASON_GATEWAY_LOST);
	assert_true(id_eq(&kill.sandbox, &b->sandbox));
	play_want_closed(p, b->gateway);
	gateway_close(g, b);
	play_gone(p, &b->sandbox, SANDBOX_REASON_GATEWAY_LOST);
	play_want_closed(p, b->relay);
	(void)close(b->relay);
}

static void
bad_verdict(struct gates *g, const char *what, struct msg_verdict m)
{
	struct boxed b;

	boxed_create(g, &g->task, &b);
	SAY_TAG(b.gateway, 1, VERDICT, verdict, -1, m);
	lost(g, &b, what);
}

#define BAD(g, ...)                                    \
	do {                                           \
		struct msg_verdict m = good_verdict(); \
		__VA_ARGS__;                           \
		bad_verdict(g, #__VA_ARGS__, m);       \
	} while (0)

static void
test_each_field_of_a_verdict(void **state)
{
	struct gates *g = *state;
	static const char nul_inside[] = "a\0b";
	char path[1025];

	/* allowed, and by which rule */
	BAD(g, m.reason = EGRESS_REASON_NO_RULE);
	BAD(g, m.verdict = VERDICT_REFUSED);
	BAD(g, m.verdict = VERDICT_ABORTED);
	BAD(g, m.rule = EGRESS_NO_RULE);
	BAD(g, m.rule = 5);
	BAD(g, m.rule = 0xfffe);
	BAD(g, m.verdict = VERDICT_REFUSED, m.reason = EGRESS_REASON_PATH, m.rule = 5);
	BAD(g, m.rule = CARRIER);
	BAD(g, m.rule = MIRROR);
	BAD(g, m.port = 80);
	BAD(g, m.port = 0);
	BAD(g, m.scheme = EGRESS_SCHEME_HTTP);
	BAD(g, m.scheme = EGRESS_SCHEME_TCP);
	BAD(g, m.scheme = EGRESS_SCHEME_DNS);
	BAD(g, m.scheme = EGRESS_SCHEME_NONE);
	BAD(g, m.name = view_str("evil.example"));
	BAD(g, m.name = view_of(NULL, 0));
	BAD(g, m.rule = WILD, m.port = 80, m.scheme = EGRESS_SCHEME_HTTP,
		m.name = view_str("wild.example"));
	BAD(g, m.rule = WILD, m.port = 80, m.scheme = EGRESS_SCHEME_HTTP,
		m.name = view_str("a.b.wild.example"));
	/* names */
	BAD(g, m.name = view_str("Docs.example"));
	BAD(g, m.name = view_str("docs.example."));
	BAD(g, m.name = view_str("docs..example"));
	BAD(g, m.name = view_str("docs.example\n"));
	BAD(g, m.verdict = VERDICT_REFUSED, m.reason = EGRESS_REASON_IP_LITERAL,
		m.name = view_str("127.1"));
	BAD(g, m.verdict = VERDICT_REFUSED, m.reason = EGRESS_REASON_IP_LITERAL,
		m.name = view_str("010.0.0.1"));
	/* addresses */
	BAD(g, m.address = view_str("docs.example"));
	BAD(g, m.address = view_str("203.0.113.7:443"));
	BAD(g, m.address = view_str("2001:DB8::1"));
	BAD(g, m.address = view_str("fe80::1%lo"));
	/* methods */
	BAD(g, m.method = view_str("GET "));
	BAD(g, m.method = view_str("G\"T"));
	BAD(g, m.method = view_str("\xc3\xa4"));
	BAD(g, m.method = view_str("A\x01"));
	/* paths */
	BAD(g, m.path = view_str("help"));
	BAD(g, m.path = view_str("https://docs.example/"));
	BAD(g, m.path = view_str("/a b"));
	BAD(g, m.path = view_str("/a?b"));
	BAD(g, m.path = view_str("/a#b"));
	BAD(g, m.path = view_str("/a\\b"));
	BAD(g, m.path = view_str("/\xc3\xa4"));
	BAD(g, m.path = view_str("/\x7f"));
	BAD(g, m.path = view_str("/%"));
	BAD(g, m.path = view_str("/%4"));
	BAD(g, m.path = view_str("/%4g"));
	memset(path, 'a', sizeof(path));
	path[0] = '/';
	path[1023] = '%'; /* the escape would go on behind the end */
	BAD(g, m.path = view_of(path, 1024));
	/* names of parameters */
	BAD(g, m.query = view_of("lang", 4));
	BAD(g, m.query = view_of(nul_inside, 3));
	BAD(g, m.query = view_of("\xff", 2));
	(void)play_audit(&g->p, &g->task);
	assert_int_equal(play_events(&g->p, "egress.verdict"), 0);
}

static void
bad_flow(struct gates *g, const char *what, struct msg_flow m)
{
	struct boxed b;

	boxed_create(g, &g->task, &b);
	SAY(b.gateway, FLOW, flow, m);
	lost(g, &b, what);
}

static struct msg_flow
good_flow(void)
{
	return (struct msg_flow){.verdict = VERDICT_ALLOWED,
		.scheme = EGRESS_SCHEME_HTTPS,
		.rule = DOCS,
		.port = 443,
		.name = view_str("docs.example"),
		.count = 1,
		.bytes_out = 10,
		.bytes_in = 10};
}

#define BAD_FLOW(g, ...)                         \
	do {                                     \
		struct msg_flow m = good_flow(); \
		__VA_ARGS__;                     \
		bad_flow(g, #__VA_ARGS__, m);    \
	} while (0)

static void
test_each_field_of_a_flow(void **state)
{
	struct gates *g = *state;

	BAD_FLOW(g, m.reason = EGRESS_REASON_PATH);
	BAD_FLOW(g, m.verdict = VERDICT_REFUSED);
	BAD_FLOW(g, m.rule = 5);
	BAD_FLOW(g, m.rule = EGRESS_NO_RULE);
	BAD_FLOW(g, m.rule = CARRIER);
	BAD_FLOW(g, m.port = 444);
	BAD_FLOW(g, m.scheme = EGRESS_SCHEME_NONE);
	BAD_FLOW(g, m.name = view_str("evil.example"));
	BAD_FLOW(g, m.name = view_str("DOCS.example"));
	BAD_FLOW(g, m.bytes_out = (UINT64_C(1) << 50) + 1);
	BAD_FLOW(g, m.bytes_in = UINT64_MAX);
	/* The sum of what is not counted each by itself has no place. */
	BAD_FLOW(g, m = (struct msg_flow){.rule = EGRESS_NO_RULE, .port = 443});
}

/* Bytes that overflow nothing, however often they are told. */
static void
test_sums_do_not_overflow(void **state)
{
	struct gates *g = *state;
	struct msg_flow m = good_flow(),
			rest = {.verdict = VERDICT_ALLOWED, .rule = EGRESS_NO_RULE};
	struct msg_net_budget budget;
	struct msg_net_row rows[4];
	size_t n = 4;
	struct boxed b;

	boxed_create(g, &g->task, &b);
	m.count = UINT32_MAX;
	m.bytes_out = m.bytes_in = UINT64_C(1) << 50;
	for (unsigned i = 0; i < 2000; i++) {
		SAY(b.gateway, FLOW, flow, m);
		if (i % 50 == 0)
			(void)allot(g, &b, &(struct egress){0});
	}
	SAY(b.gateway, FLOW, flow, rest);
	(void)allot(g, &b, &(struct egress){0});
	gates_net(g, &g->task, &budget, rows, &n);
	assert_int_equal(n, 2);
	const struct msg_net_row *docs = &rows[rows[0].name.n != 0 ? 0 : 1];
	assert_int_equal(docs->bytes_in, UINT64_C(2000) << 50);
	assert_int_equal(docs->count, UINT64_C(2000) * UINT32_MAX);
	/* Its end records the rest as a sum, and the used bytes are at most what it had. */
	boxed_end(g, &b, SANDBOX_REASON_KILLED);
	(void)play_audit(&g->p, &g->task);
	assert_true(play_events(&g->p, "egress.flows") >= 1);
	assert_true(play_events(&g->p, "egress.flow") < 400);
	gates_net(g, &g->task, &budget, NULL, NULL);
	assert_int_equal(budget.used.bytes_out, 1000000); /* one slice */
	assert_int_equal(budget.lent.bytes_out, 0);
}

static void
test_each_message_in_the_wrong_state(void **state)
{
	struct gates *g = *state;
	struct msg_verdict v = good_verdict();
	struct msg_flow f = good_flow();
	struct boxed b;

	/* Before it is ready. */
	boxed_begin(g, &g->task, &b);
	SAY(b.gateway, VERDICT, verdict, v);
	lost(g, &b, "VERDICT first");
	play_refused(&g->p, ERROR_SPAWN);
	boxed_begin(g, &g->task, &b);
	SAY(b.gateway, FLOW, flow, f);
	lost(g, &b, "FLOW first");
	play_refused(&g->p, ERROR_SPAWN);
	boxed_begin(g, &g->task, &b);
	SAY(b.gateway, ALLOTMENT_ASK, allotment_ask, {0});
	lost(g, &b, "ALLOTMENT_ASK first");
	play_refused(&g->p, ERROR_SPAWN);
	boxed_begin(g, &g->task, &b);
	SAY(b.gateway, LEASE_ASK, lease_ask, {.rule = CARRIER});
	lost(g, &b, "LEASE_ASK first");
	play_refused(&g->p, ERROR_SPAWN);
	/* Ready twice. */
	boxed_create(g, &g->task, &b);
	gateway_ready(&b);
	lost(g, &b, "GATEWAY_READY twice");
	/* Half of what is to be trusted. */
	boxed_begin(g, &g->task, &b);
	SAY(b.gateway, GATEWAY_READY, gateway_ready, {.certificate = view_str("x")});
	lost(g, &b, "a certificate without a key store");
	play_refused(&g->p, ERROR_SPAWN);
	boxed_begin(g, &g->task, &b);
	SAY(b.gateway, GATEWAY_READY, gateway_ready, {.keystore = view_str("x")});
	lost(g, &b, "a key store without a certificate");
	play_refused(&g->p, ERROR_SPAWN);
}

/* Every message of every edge that a gateway may not send here. */
static void
test_messages_of_others(void **state)
{
	struct gates *g = *state;

	for (unsigned type = 0; type < MSG_MAX; type++) {
		struct buf b;
		struct boxed box;

		if (msg_info[type].edge == EDGE_GATEWAY_ENGINE &&
			msg_info[type].from == ROOM_GATEWAY)
			continue;
		boxed_create(g, &g->task, &box);
		buf_init(&b, 4096);
		if (msg_info[type].fixed && msg_info[type].body_max <= 4096 &&
			msg_info[type].body_max > 0) {
			uint8_t *room = buf_room(&b, msg_info[type].body_max);

			memset(room, 0, msg_info[type].body_max);
			buf_grew(&b, msg_info[type].body_max);
		}
		play_send(box.gateway, (enum msg_type)type, 1, &b, -1);
		buf_done(&b);
		lost(g, &box, msg_info[type].name);
	}
}

static void
test_leases_that_nobody_may_ask_for(void **state)
{
	struct gates *g = *state;
	static const uint16_t rules[] = {DOCS, MIRROR, WILD, 5, EGRESS_NO_RULE};

	for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
		struct boxed b;

		boxed_create(g, &g->task, &b);
		SAY(b.gateway, LEASE_ASK, lease_ask, {.rule = rules[i]});
		lost(g, &b, "a lease of no brokered rule");
	}
}

/* More than a gateway has to say: it is lost, and others were answered all the time. */
static void
test_a_flood_of_flows(void **state)
{
	struct gates *g = *state;
	struct msg_flow m = good_flow();
	struct msg_verdict v = good_verdict();
	struct boxed b, other;

	boxed_create(g, &g->task, &b);
	boxed_create(g, &g->task, &other);
	for (unsigned i = 0; i < 40000; i++) {
		struct buf body, packed;
		struct err err;
		int r;

		buf_init(&body, IPC_MAX);
		buf_init(&packed, IPC_MAX + IPC_HEADER_BYTES);
		msg_flow_put(&body, &m);
		ipc_pack(&packed, MSG_FLOW, 0, buf_view(&body));
		r = ipc_write(b.gateway, buf_view(&packed), NULL, 0, &err);
		buf_done(&body);
		buf_done(&packed);
		if (r < 0 && r != -EAGAIN)
			break;
		if (r == -EAGAIN)
			(void)poll(&(struct pollfd){.fd = b.gateway, .events = POLLOUT}, 1, 100);
		if (i % 1000 == 0)
			assert_int_equal(verdict_say(g, &other, i, &v), EGRESS_REASON_NONE);
	}
	lost(g, &b, "a flood of flows");
	assert_int_equal(verdict_say(g, &other, 1, &v), EGRESS_REASON_NONE);
	(void)play_audit(&g->p, &g->task);
	assert_true(play_events(&g->p, "egress.flow") < 600);
}

/* It may tell a thousand verdicts at once; after that it is read as fast as they may be recorded, and others are not slower for it. */
static void
test_a_flood_of_verdicts(void **state)
{
	struct gates *g = *state;
	struct play *p = &g->p;
	struct msg_verdict m = good_verdict();
	uint64_t until, answered = 0;
	struct boxed b, other;

	boxed_create(g, &g->task, &b);
	boxed_create(g, &g->task, &other);
	m.verdict = VERDICT_REFUSED;
	m.reason = EGRESS_REASON_PATH;
	for (uint64_t i = 0; i < 1024; i++) {
		SAY_TAG(b.gateway, i, VERDICT, verdict, -1, m);
		play_want(p, b.gateway, MSG_VERDICT_KEPT);
	}
	until = clock_mono_ms() + 2000;
	while (clock_mono_ms() < until) {
		SAY_TAG(b.gateway, 1, VERDICT, verdict, -1, m);
		play_want(p, b.gateway, MSG_VERDICT_KEPT);
		answered++;
		if (answered % 16 == 0) {
			uint64_t begun = clock_mono_us();

			assert_int_equal(verdict_say(g, &other, 1, &m), EGRESS_REASON_NONE);
			assert_true(clock_mono_us() - begun < 200000);
		}
	}
	assert_in_range(answered, 64, 300); /* 64 a second, and what was left of the burst */
	boxed_end(g, &b, SANDBOX_REASON_KILLED);
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, gates_teardown)
	const struct CMUnitTest tests[] = {
		T(test_each_field_of_a_verdict),
		T(test_each_field_of_a_flow),
		T(test_sums_do_not_overflow),
		T(test_each_message_in_the_wrong_state),
		T(test_messages_of_others),
		T(test_leases_that_nobody_may_ask_for),
		T(test_a_flood_of_flows),
		T(test_a_flood_of_verdicts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
