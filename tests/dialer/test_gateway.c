/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the real dialer does for gateways. The test is their supervisor and the gateways themselves, also ones that were taken over: it sends
 * what it likes. What is refused must show in three places: the answer, the questions, the listeners. Names are those of research: egress,
 * sections B, C and K.
 */
#include "gate.h"

#include "lib/base/clock.h"
#include "lib/base/id.h"
#include "lib/base/sha256.h"
#include "lib/ipc/reach_bounds.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>

#include <cmocka.h>

/* ---- addresses: B ---- */

static void
B1_literal_addresses(void **state)
{
	(void)state;
	refused("10.0.0.7", DIAL_ADDRESS, "private");
	reached("93.184.216.99", "93.184.216.99"); /* B24 */
	assert_int_equal(world.asked->n, 0);
	reached_by(gate, RULE_EXACT, "exact.test", "10.0.0.5");
	assert_int_equal(world.asked->n, 0); /* nothing is resolved */
}

static void
B18_to_B23_answers_that_no_registry_knows(void **state)
{
	(void)state;
	refused("isatap.test", DIAL_ADDRESS, "ISATAP"); /* B18 */
	refused("nat64.test", DIAL_MIXED, "NAT64");     /* B12 */
	refused("own6.test", DIAL_ADDRESS,
		"of this host"); /* B19: a prefix of the host's own network */
	refused("azure.test", DIAL_ADDRESS, "host agent of a cloud"); /* B21 */
	refused("own.test", DIAL_ADDRESS, "of this host");            /* B22 */
	refused("pool.test", DIAL_MIXED, "names of sandboxes");       /* B23 */
}

/* All of egress-ip-vectors.tsv, as literal rules of two sandboxes: what is not public gets no packet. */
static void
every_vector(void **state)
{
	static const struct {
		const char *address;
		bool public;
		const char *near;
	} rows[] = {
#define VECTOR(address, public, near) {address, public, near},
#include "../unit/dialer/vectors.def"
#undef VECTOR
	};
	enum { EACH = 60 };
	char text[ARRAY_LEN(rows)][INET6_ADDRSTRLEN];

	(void)state;
	for (size_t from = 0; from < ARRAY_LEN(rows); from += EACH) {
		size_t n = ARRAY_LEN(rows) - from < EACH ? ARRAY_LEN(rows) - from : EACH;
		struct document d;
		int edge;

		document_begin(&d);
		for (size_t i = from; i < from + n; i++) {
			int family = strchr(rows[i].address, ':') != NULL ? AF_INET6 : AF_INET;
			uint8_t b[16];

			assert_int_equal(inet_pton(family, rows[i].address, b), 1);
			assert_non_null(inet_ntop(family, b, text[i], sizeof(text[i])));
			(void)document_host(&d, text[i], NOBODY_PORT);
		}
		edge = gateway_new(document_end(&d));
		buf_done(&d.text);
		for (size_t i = from; i < from + n; i++) {
			struct said s;

			(void)ask(edge, (unsigned)(i - from), text[i], NOBODY_PORT, 300);
			s = hear(edge, 5000);
			if (strstr(s.text, "of this host") != NULL)
				continue; /* this world's own network: B22 */
			if ((s.reason == DIAL_ADDRESS) == rows[i].public ||
				(rows[i].public && s.reason != DIAL_UNREACHABLE &&
					s.reason != DIAL_TIMEOUT))
				fail_msg("%s: %d %s", text[i], (int)s.reason, s.text);
		}
		(void)close(edge);
	}
}

/* ---- answers: C ---- */

static void
C1_addresses_that_are_not_public(void **state)
{
	(void)state;
	refused("private.test", DIAL_ADDRESS, "10.0.0.5 is no public address: private");
	refused("metadata.test", DIAL_ADDRESS, "link-local");
	refused("loopback.test", DIAL_ADDRESS, "loopback");
}

static void
C2_C3_mixed_answers(void **state)
{
	(void)state;
	refused("mixed.test", DIAL_MIXED, "10.0.0.5");
	refused("mixed6.test", DIAL_MIXED, "loopback");
	refused("nat64.test", DIAL_MIXED, "NAT64 of 10.0.0.5 (private)");
}

static void
C4_C6_C11_aliases(void **state)
{
	(void)state;
	refused("to-private.test", DIAL_ADDRESS, "10.0.0.5");
	reached("to-public.test", "93.184.216.34");
	refused("loop.test", DIAL_NO_NAME, "circle");
	refused("other.test", DIAL_NO_NAME, "no address");
}

/* C7 C8: each connection asks once, and is judged by what it got. */
static void
C7_C8_rebinding(void **state)
{
	(void)state;
	reached("rebind.test", "93.184.216.34");
	assert_int_equal(questions("rebind.test", 1), 1);
	assert_int_equal(questions("rebind.test", 28), 1);
	refused("rebind.test", DIAL_ADDRESS, "loopback");
	assert_int_equal(questions("rebind.test", 1), 2);
}

/* A connection is handed to whoever asked for it, and to nobody else. */
static void
C9_each_its_own_connection(void **state)
{
	int other = gateway_new(usual);
	uint64_t a = ask(gate, rule_of("public.test"), "public.test", PORT, 5000);
	uint64_t b = ask(other, rule_of("public.test"), "public.test", PORT, 5000);
	struct said mine = hear(gate, 6000), theirs = hear(other, 6000);

	(void)state;
	assert_int_equal(mine.tag, a);
	assert_int_equal(theirs.tag, b);
	assert_true(mine.fd >= 0 && theirs.fd >= 0);
	assert_int_equal(connections(world.listener), 2);
	(void)close(mine.fd);
	(void)close(theirs.fd);
	(void)close(other);
}

static void
C12_truncated_answers(void **state)
{
	(void)state;
	reached("truncated.test", "93.184.216.34");
	refused("truncated-twice.test", DIAL_NO_NAME, "cut");
	refused("tcp-cut.test", DIAL_NO_NAME, "middle of its answer");
	refused("cut-short.test", DIAL_NO_NAME, "cut");
	refused("garbage.test", DIAL_NO_NAME, "follows");
}

static void
C13_too_many_addresses(void **state)
{
	(void)state;
	refused("too-many.test", DIAL_NO_NAME, "more than 64 addresses");
	refused("huge.test", DIAL_NO_NAME, "4000 records");
	reached("most.test", "93.184.216.34");
}

static void
C14_no_answer(void **state)
{
	(void)state;
	refused("nx.test", DIAL_NO_NAME, "no such name");
	refused("nodata.test", DIAL_NO_NAME, "no address");
	refused("servfail.test", DIAL_NO_NAME, "code 2");
	refused("refused.test", DIAL_NO_NAME, "code 5");
	(void)ask(gate, rule_of("silent.test"), "silent.test", PORT, 400);
	assert_int_equal(hear(gate, 5000).reason, DIAL_TIMEOUT);
	/* Nothing is remembered: the next one asks again. */
	refused("servfail.test", DIAL_NO_NAME, "code 2");
	assert_int_equal(questions("servfail.test", 1), 4);
}

static void
C16_C17_names_that_other_resolvers_answer(void **state)
{
	static const char *const rows[] = {"x.localhost", "host.docker.internal",
		"kubernetes.default.svc", "metadata", "metadata.google.internal"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		for (unsigned rule = 0; rule < RULES; rule++)
			not_listed(gate, rule, rows[i], PORT);
	reached("localhost", "93.184.216.34"); /* of the name server, not of a hosts file */
	assert_int_equal(questions("localhost", 1), 1);
}

static void
C18_only_addresses_are_asked_for(void **state)
{
	(void)state;
	reached("public.test", "93.184.216.34");
	reached("v6.test", "2606:4700::1");
	for (int i = 0; i < world.asked->n; i++)
		assert_true(world.asked->row[i].type == 1 || world.asked->row[i].type == 28);
}

static void
C19_the_far_end_is_the_one_that_was_judged(void **state)
{
	struct said s = reach_at(gate, rule_of("public.test"), "public.test", PORT);
	struct sockaddr_in far = {0};
	socklen_t len = sizeof(far);

	(void)state;
	assert_int_equal(getpeername(s.fd, (struct sockaddr *)&far, &len), 0);
	assert_int_equal(ntohs(far.sin_port), PORT);
	assert_memory_equal(&far.sin_addr, "\x5d\xb8\xd8\x22", 4);
	(void)close(s.fd);
}

/* ---- its own rules and nobody else's ---- */

static void
what_its_rules_do_not_name(void **state)
{
	static const struct {
		unsigned rule;
		const char *host;
		uint16_t port;
	} rows[] = {
		{0, "unlisted.test", PORT}, /* no rule */
		{0, "private.test", PORT},  /* another rule's */
		{1, "public.test", PORT},
		{RULE_SECOND, "public.test", SECOND_PORT}, /* another rule's port */
		{0, "public.test", SECOND_PORT}, {0, "public.test", 0}, {0, "public.test.", PORT},
		{0, "PUBLIC.test", PORT}, {0, "x.public.test", PORT},
		{0, "93.184.216.34", PORT}, /* the address of its own name */
		{0, "127.0.0.1", PORT}, {0, "", PORT},
		{RULES, "public.test", PORT}, /* no such rule */
		{0xffff, "public.test", PORT},
		{RULE_BROKERED, "brokered.test", PORT}, /* the broker's */
		{RULE_BROKERED_EXACT, "brokered-exact.test", PORT},
		{RULE_WILD, "wild.test", PORT}, /* A29 */
		{RULE_WILD, "a.b.wild.test", PORT}, {RULE_WILD, "xwild.test", PORT},
		{RULE_WILD, ".wild.test", PORT}, {RULE_WILD, "A.wild.test", PORT},
		{RULE_WILD, "a_b.wild.test", PORT}, {RULE_WILD, "-a.wild.test", PORT},
		{RULE_WILD, "a b.wild.test", PORT}, {RULE_DEEP, "deep.test", PORT},
		{RULE_DEEP, "a..deep.test", PORT},
		{RULE_EXACT, "10.0.0.5", PORT}, /* the address itself is no name */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		not_listed(gate, rows[i].rule, rows[i].host, rows[i].port);
	assert_int_equal(world.asked->n, 0);
}

static void
names_of_patterns(void **state)
{
	(void)state;
	reached_by(gate, RULE_WILD, "public.wild.test", "93.184.216.34");
	reached_by(gate, RULE_DEEP, "public.deep.test", "93.184.216.34");
	reached_by(gate, RULE_DEEP, "public.a.b.deep.test", "93.184.216.34");
	not_listed(gate, RULE_WILD, "public.a.wild.test", PORT);
}

static void
another_sandboxs_names(void **state)
{
	struct document d;
	int other;

	(void)state;
	document_begin(&d);
	(void)document_host(&d, "v6.test", PORT);
	other = gateway_new(document_end(&d));
	buf_done(&d.text);
	reached_by(other, 0, "v6.test", "2606:4700::1");
	for (unsigned rule = 0; rule < RULES; rule++)
		not_listed(other, rule, "public.test", PORT);
	not_listed(other, rule_of("v6.test"), "v6.test", PORT); /* the index is of its own table */
	reached("public.test", "93.184.216.34");
	(void)close(other);
}

/* ---- the broker ---- */

static void
broker_refused(const uint8_t *policy, unsigned rule, const char *host)
{
	struct said s = broker_dials(policy, rule, host);

	if (s.reason != DIAL_NOT_LISTED)
		fail_msg("%u %s: %d", rule, host, (int)s.reason);
}

static void
brokered_places_are_the_brokers_as_long_as_a_sandbox_has_them(void **state)
{
	uint8_t other[SHA256_BYTES] = {1};
	struct said s;

	(void)state;
	reached("public.test", "93.184.216.34"); /* the edge is served */
	s = broker_dials(usual_digest, RULE_BROKERED_EXACT, "brokered-exact.test");
	assert_int_equal(s.reason, DIAL_CONNECTED);
	(void)close(s.fd);
	assert_int_equal(broker_dials(usual_digest, RULE_BROKERED, "brokered.test").reason,
		DIAL_NO_NAME); /* asked for, and not there */
	assert_int_equal(questions("brokered.test", 1), 1);
	broker_refused(NULL, RULE_BROKERED, "brokered.test"); /* no origin of the catalogue */
	broker_refused(other, RULE_BROKERED, "brokered.test");
	broker_refused(usual_digest, 0, "public.test"); /* not a brokered rule */
	broker_refused(usual_digest, RULE_BROKERED, "brokered-exact.test");
	broker_refused(usual_digest, RULES, "brokered.test");
	(void)close(take_fd(&gate));
	for (int i = 0; i < 100; i++) { /* until the dialer has seen the end */
		s = broker_dials(usual_digest, RULE_BROKERED_EXACT, "brokered-exact.test");
		if (s.reason == DIAL_NOT_LISTED)
			break;
		(void)close(s.fd);
		(void)poll(NULL, 0, 10);
	}
	assert_int_equal(s.reason, DIAL_NOT_LISTED);
	s = broker_dials(NULL, 0, "public.test");
	assert_int_equal(s.reason, DIAL_CONNECTED);
	(void)close(s.fd);
}

/* ---- bounds ---- */

static void
K1_new_names_of_a_pattern_come_at_a_rate(void **state)
{
	int before, other = gateway_new(usual);
	char name[64];

	(void)state;
	for (unsigned i = 0; i < 16; i++) {
		(void)snprintf(name, sizeof(name), "secret-%u.wild.test", i);
		assert_int_equal(reach_at(gate, RULE_WILD, name, PORT).reason, DIAL_NO_NAME);
	}
	(void)poll(NULL, 0, 100); /* the second question of the last one comes, too */
	before = world.asked->n;
	for (unsigned i = 16; i < 64; i++) {
		struct said s;

		(void)snprintf(name, sizeof(name), "secret-%u.a.deep.test", i);
		s = reach_at(gate, RULE_DEEP, name, PORT);
		assert_int_equal(s.reason, DIAL_BUSY);
		assert_non_null(strstr(s.text, "at a rate"));
	}
	assert_int_equal(world.asked->n, before);
	/* Known names, names without a pattern and other sandboxes go on. */
	assert_int_equal(
		reach_at(gate, RULE_WILD, "secret-3.wild.test", PORT).reason, DIAL_NO_NAME);
	reached("public.test", "93.184.216.34");
	reached_by(other, RULE_WILD, "public.wild.test", "93.184.216.34");
	(void)close(other);
}

static void
L2_a_thousand_at_once(void **state)
{
	int other = gateway_new(usual), busy = 0, late = 0;
	struct said s;

	(void)state;
	reached("public.test", "93.184.216.34");
	for (int sent = 0; sent < 1000; sent++) {
		(void)ask(gate, rule_of("silent.test"), "silent.test", PORT, 1500);
		while (busy < 1000 &&
			poll(&(struct pollfd){.fd = gate, .events = POLLIN}, 1, 0) == 1)
			busy += hear(gate, 0).reason == DIAL_BUSY;
	}
	/* The others have theirs in the meantime, and the broker. */
	reached_by(other, 0, "public.test", "93.184.216.34");
	s = broker_dials(NULL, 0, "public.test");
	assert_int_equal(s.reason, DIAL_CONNECTED);
	(void)close(s.fd);
	(void)connections(world.listener);
	while (busy + late < 1000) {
		s = hear(gate, 5000);
		busy += s.reason == DIAL_BUSY;
		late += s.reason == DIAL_TIMEOUT;
	}
	assert_int_equal(late, REACH_LIVE_MAX);
	reached("public.test", "93.184.216.34");
	(void)close(other);
}

/* As many sandboxes as fill the half of the whole: one more still has its share, and the broker its own. */
static void
L2_many_that_take_all_they_can(void **state)
{
	enum { GREEDY = 512 / REACH_LIVE_MAX };
	int greedy[GREEDY];
	struct said s;

	(void)state;
	for (int i = 0; i < GREEDY; i++) {
		greedy[i] = gateway_new(usual);
		for (int k = 0; k < REACH_LIVE_MAX; k++)
			(void)ask(greedy[i], rule_of("silent.test"), "silent.test", PORT, 8000);
	}
	for (int i = 0; i < 500 && descriptors() < 2 * GREEDY * REACH_LIVE_MAX; i++)
		(void)poll(NULL, 0, 10); /* two questions each */
	for (int k = 0; k < 4; k++)
		(void)ask(gate, rule_of("silent.test"), "silent.test", PORT, 8000);
	(void)ask(gate, rule_of("silent.test"), "silent.test", PORT, 8000);
	s = hear(gate, 3000);
	assert_int_equal(s.reason, DIAL_BUSY); /* the fifth */
	assert_int_equal(s.tag, tag);
	s = broker_dials(NULL, 0, "public.test");
	assert_int_equal(s.reason, DIAL_CONNECTED);
	(void)close(s.fd);
	(void)connections(world.listener);
	/* Their end is the end of what they asked for. */
	for (int i = 0; i < GREEDY; i++)
		(void)close(greedy[i]);
	(void)close(take_fd(&gate));
	gate = gateway_new(usual);
	for (int k = 0; k < REACH_LIVE_MAX; k++)
		(void)ask(gate, rule_of("silent.test"), "silent.test", PORT, 300);
	for (int k = 0; k < REACH_LIVE_MAX; k++)
		assert_int_equal(hear(gate, 3000).reason, DIAL_TIMEOUT);
}

/* One that asks and never takes its connections: what waits for it is bounded, and nobody else waits. */
static void
a_gateway_that_does_not_read(void **state)
{
	struct msg_reach m = {.rule = 0, .host = "public.test", .port = PORT, .timeout_ms = 5000};
	int other = gateway_new(usual), sent = 0;
	size_t before;

	(void)state;
	reached_by(other, 0, "public.test", "93.184.216.34");
	before = settled();
	for (int i = 0; i < 20; i++) {
		struct pollfd p = {.fd = gate, .events = POLLOUT};

		while (sent < 5000 && poll(&p, 1, 50) == 1) {
			SAY(gate, ++tag, REACH, reach, NULL, 0, m);
			sent++;
		}
	}
	assert_true(sent < 5000); /* it is not read any more */
	assert_in_range(descriptors(), before, before + REACH_LIVE_MAX + 4);
	assert_in_range(connections(world.listener), 1, 2 * REACH_LIVE_MAX);
	reached_by(other, 0, "public.test", "93.184.216.34");
	(void)close(take_fd(&gate));
	for (int i = 0; i < 200 && descriptors() >= before; i++)
		(void)poll(NULL, 0, 10);
	assert_in_range(descriptors(), 1, before - 1);
	(void)close(other);
}

/* ---- edges ---- */

static void
a_gateway_that_breaks_the_protocol_loses_its_edge_alone(void **state)
{
	static const enum msg_type types[] = {MSG_DIAL, MSG_DIALER_GATEWAY, MSG_REACHED, MSG_LEASE};
	auto_buf struct buf body;

	(void)state;
	buf_init(&body, 4096);
	for (size_t i = 0; i <= ARRAY_LEN(types); i++) {
		int taken = gateway_new(usual);

		if (i < ARRAY_LEN(types))
			say(taken, types[i], 1, &body, NULL, 0);
		else
			(void)ask(taken, 0, "public.test", PORT, 0); /* no time */
		assert_true(closed(taken));
		(void)close(taken);
	}
	{
		int taken = gateway_new(usual), passed[2];

		/* Descriptors that no message of its has, and half a message. */
		pair(&passed[0], &passed[1]);
		say(taken, MSG_REACH, 1, &body, passed, 1);
		assert_true(closed(taken));
		(void)close(taken);
		(void)close(passed[0]);
		(void)close(passed[1]);
	}
	reached("public.test", "93.184.216.34");
	assert_int_equal(questions("public.test", 1), 1);
}

static void
its_end_is_the_end_of_its_dials(void **state)
{
	size_t before;

	(void)state;
	reached("public.test", "93.184.216.34");
	before = settled();
	for (int i = 0; i < 8; i++)
		(void)ask(gate, rule_of("silent.test"), "silent.test", PORT, 20000);
	for (int i = 0; i < 200 && descriptors() < before + 16; i++)
		(void)poll(NULL, 0, 10);
	assert_int_equal(descriptors(), before + 16);
	(void)close(take_fd(&gate));
	for (int i = 0; i < 200 && descriptors() >= before; i++)
		(void)poll(NULL, 0, 10);
	assert_int_equal(descriptors(), before - 1);
}

static void
a_policy_that_is_not_what_was_told_is_no_table(void **state)
{
	uint8_t digest[SHA256_BYTES], wrong[SHA256_BYTES] = {7};
	struct document d;
	int edge;

	(void)state;
	edge = gateway_with(
		usual, SEALS & ~1, usual_digest); /* held already: its memory is not looked at */
	reached_by(edge, 0, "public.test", "93.184.216.34");
	(void)close(edge);
	document_begin(&d);
	(void)document_host(&d, "public.test", PORT);
	digest_of(document_end(&d), digest);
	for (int missing = 1; missing <= 8; missing *= 2) { /* each seal */
		edge = gateway_with((const char *)d.text.p, SEALS & ~missing, digest);
		assert_true(closed(edge));
		(void)close(edge);
	}
	edge = gateway_with((const char *)d.text.p, SEALS, wrong);
	assert_true(closed(edge));
	(void)close(edge);
	edge = gateway_with("{}", SEALS, digest);
	assert_true(closed(edge));
	(void)close(edge);
	/* A port that the jail was not made for. */
	buf_done(&d.text);
	document_begin(&d);
	(void)document_host(&d, "public.test", 4999);
	edge = gateway_new(document_end(&d));
	assert_true(closed(edge));
	(void)close(edge);
	buf_done(&d.text);
	reached("public.test", "93.184.216.34");
}

static void
two_hundred_sandboxes_come_and_go(void **state)
{
	int edge[200];
	size_t before;

	(void)state;
	reached("public.test", "93.184.216.34");
	before = settled();
	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < ARRAY_LEN(edge); i++)
			edge[i] = gateway_new(usual);
		for (size_t i = 0; i < ARRAY_LEN(edge); i += 13)
			reached_by(edge[i], 0, "public.test", "93.184.216.34");
		for (size_t i = 0; i < ARRAY_LEN(edge); i++)
			(void)close(edge[i]);
	}
	for (int i = 0; i < 200 && descriptors() > before; i++)
		(void)poll(NULL, 0, 10);
	assert_in_range(descriptors(), 1, before);
}

int
main(int argc, char **argv)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, gate_setup, gate_teardown)
	const struct CMUnitTest tests[] = {TEST(B1_literal_addresses),
		TEST(B18_to_B23_answers_that_no_registry_knows), TEST(every_vector),
		TEST(C1_addresses_that_are_not_public), TEST(C2_C3_mixed_answers),
		TEST(C4_C6_C11_aliases), TEST(C7_C8_rebinding), TEST(C9_each_its_own_connection),
		TEST(C12_truncated_answers), TEST(C13_too_many_addresses), TEST(C14_no_answer),
		TEST(C16_C17_names_that_other_resolvers_answer),
		TEST(C18_only_addresses_are_asked_for),
		TEST(C19_the_far_end_is_the_one_that_was_judged), TEST(what_its_rules_do_not_name),
		TEST(names_of_patterns), TEST(another_sandboxs_names),
		TEST(brokered_places_are_the_brokers_as_long_as_a_sandbox_has_them),
		TEST(K1_new_names_of_a_pattern_come_at_a_rate), TEST(L2_a_thousand_at_once),
		TEST(L2_many_that_take_all_they_can), TEST(a_gateway_that_does_not_read),
		TEST(a_gateway_that_breaks_the_protocol_loses_its_edge_alone),
		TEST(its_end_is_the_end_of_its_dials),
		TEST(a_policy_that_is_not_what_was_told_is_no_table),
		TEST(two_hundred_sandboxes_come_and_go)};

	if (geteuid() != 0)
		return 77;
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, world_setup, world_teardown);
}
