/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The real dialer in a network namespace of the test's, with a name server that lies and with listeners at public, private and loopback
 * addresses that write down each connection. The test is its broker and its supervisor. What is refused must show in three
 * places: the answer, the questions, the listeners. Names are those of research: egress, section C.
 */
#include "world.h"

#include "lib/base/clock.h"
#include "lib/ipc/datagram.h"
#include "supervisor/program.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include <cmocka.h>

static uint64_t tag;
static uint8_t room[65536];

static const char table[] = "{\"origins\":["
			    "{\"host\":\"10.0.0.7\",\"port\":4433},"
			    "{\"host\":\"93.184.216.99\",\"port\":4433},"
			    "{\"host\":\"cut-short.test\",\"port\":4433},"
			    "{\"address\":\"10.0.0.5\",\"host\":\"exact.test\",\"port\":4433},"
			    "{\"host\":\"flat.test\",\"port\":4433},"
			    "{\"address\":\"127.0.0.1\",\"host\":\"full.test\",\"port\":4434},"
			    "{\"host\":\"garbage.test\",\"port\":4433},"
			    "{\"host\":\"huge.test\",\"port\":4433},"
			    "{\"host\":\"localhost\",\"port\":4433},"
			    "{\"host\":\"loop.test\",\"port\":4433},"
			    "{\"host\":\"loopback.test\",\"port\":4433},"
			    "{\"host\":\"metadata.test\",\"port\":4433},"
			    "{\"host\":\"mixed.test\",\"port\":4433},"
			    "{\"host\":\"mixed6.test\",\"port\":4433},"
			    "{\"host\":\"most.test\",\"port\":4433},"
			    "{\"host\":\"nat64.test\",\"port\":4433},"
			    "{\"host\":\"nodata.test\",\"port\":4433},"
			    "{\"host\":\"nx.test\",\"port\":4433},"
			    "{\"host\":\"other.test\",\"port\":4433},"
			    "{\"host\":\"own.test\",\"port\":4433},"
			    "{\"host\":\"private.test\",\"port\":4433},"
			    "{\"host\":\"public.test\",\"port\":4433},"
			    "{\"host\":\"public.test\",\"port\":4436},"
			    "{\"host\":\"rebind.test\",\"port\":4433},"
			    "{\"host\":\"refused.test\",\"port\":4433},"
			    "{\"host\":\"servfail.test\",\"port\":4433},"
			    "{\"host\":\"silent.test\",\"port\":4433},"
			    "{\"host\":\"spoofed.test\",\"port\":4433},"
			    "{\"host\":\"tcp-cut.test\",\"port\":4433},"
			    "{\"host\":\"to-private.test\",\"port\":4433},"
			    "{\"host\":\"to-public.test\",\"port\":4433},"
			    "{\"host\":\"too-many.test\",\"port\":4433},"
			    "{\"host\":\"truncated-twice.test\",\"port\":4433},"
			    "{\"host\":\"truncated.test\",\"port\":4433},"
			    "{\"host\":\"two.test\",\"port\":4435},"
			    "{\"host\":\"v6.test\",\"port\":4433},"
			    "{\"host\":\"wrong-id.test\",\"port\":4433}"
			    "]}";

static int
setup(void **state)
{
	(void)state;
	world.asked->n = 0;
	dialer_start(table, NULL, "127.0.0.1:5300", "");
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	dialer_end();
	return 0;
}

static uint64_t
ask(const char *host, uint16_t port, uint32_t timeout_ms)
{
	struct msg_dial m = {.port = port, .timeout_ms = timeout_ms};

	(void)snprintf(m.host, sizeof(m.host), "%s", host);
	SAY(world.broker, ++tag, DIAL, dial, NULL, 0, m);
	return tag;
}

struct said {
	enum dial reason;
	int fd;
	uint64_t tag;
	char text[224]; /* the address, or why not */
};

static struct said
hear(int timeout_ms)
{
	struct pollfd p = {.fd = world.broker, .events = POLLIN};
	struct said s = {.reason = DIAL_CONNECTED, .fd = -1};
	struct msg_dial_failed failed;
	struct msg_dialed dialed;
	struct ipc_msg in;
	struct err err = {0};

	assert_int_equal(poll(&p, 1, timeout_ms), 1);
	if (ipc_read(world.broker, EDGE_BROKER_DIALER, ROOM_DIALER, room, sizeof(room), &in, &err) <
		0)
		fail_msg("%s", err.text);
	s.tag = in.tag;
	if (in.type == MSG_DIALED) {
		assert_int_equal(msg_dialed_get(in.body, &dialed, &err), 0);
		(void)snprintf(s.text, sizeof(s.text), "%s", dialed.address);
		s.fd = ipc_msg_take(&in, 0);
	} else {
		assert_int_equal(msg_dial_failed_get(in.body, &failed, &err), 0);
		s.reason = failed.reason;
		(void)snprintf(s.text, sizeof(s.text), "%s", failed.text);
	}
	return s;
}

static struct said
dial(const char *host, uint16_t port)
{
	uint64_t of = ask(host, port, 10000);
	struct said s = hear(12000);

	assert_int_equal(s.tag, of);
	return s;
}

/* Answered with this reason and sentence; no connection was made anywhere. */
static void
refused(const char *host, enum dial reason, const char *about)
{
	struct said s = dial(host, PORT);

	if (s.reason != reason || strstr(s.text, about) == NULL)
		fail_msg("%s: %d %s", host, (int)s.reason, s.text);
	assert_int_equal(s.fd, -1);
	assert_int_equal(connections(world.listener), 0);
}

static void
dialled(const char *host, uint16_t port, const char *address)
{
	struct said s = dial(host, port);

	if (s.reason != DIAL_CONNECTED || strcmp(s.text, address) != 0)
		fail_msg("%s: %d %s", host, (int)s.reason, s.text);
	assert_int_equal(connections(port == PORT ? world.listener : world.second), 1);
	(void)close(s.fd);
}

/* ---- what is dialled ---- */

static void
a_public_name(void **state)
{
	struct sockaddr_in far = {0};
	socklen_t len = sizeof(far);
	struct said s;
	char byte = 0;
	int on = 0, c;

	(void)state;
	s = dial("public.test", PORT);
	assert_string_equal(s.text, "93.184.216.34");
	assert_int_equal(getpeername(s.fd, (struct sockaddr *)&far, &len), 0);
	assert_int_equal(ntohs(far.sin_port), PORT);
	assert_memory_equal(&far.sin_addr, "\x5d\xb8\xd8\x22", 4);
	len = sizeof(on);
	assert_int_equal(getsockopt(s.fd, IPPROTO_TCP, TCP_NODELAY, &on, &len), 0);
	assert_int_equal(on, 1);
	c = accept4(world.listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(c >= 0);
	assert_int_equal(send(s.fd, "x", 1, MSG_NOSIGNAL), 1);
	assert_int_equal(recv(c, &byte, 1, 0), 1);
	/* The dialer has no copy: the far end sees the end when ours is closed. */
	(void)close(s.fd);
	assert_int_equal(recv(c, &byte, 1, 0), 0);
	(void)close(c);
	assert_int_equal(questions("public.test", 1), 1);
	assert_int_equal(questions("public.test", 28), 1);
	assert_int_equal(world.asked->n, 2);
}

static void
other_ways_to_a_connection(void **state)
{
	(void)state;
	dialled("v6.test", PORT, "2606:4700::1");
	dialled("to-public.test", PORT, "93.184.216.34");
	dialled("most.test", PORT, "93.184.216.34");
	/* The first address has nobody at this port. */
	dialled("two.test", SECOND_PORT, "93.184.216.35");
	/* A name that is an address is not asked for. */
	dialled("93.184.216.99", PORT, "93.184.216.99");
	assert_int_equal(questions("93.184.216.99", 0), 0);
}

static void
an_exact_address(void **state)
{
	(void)state;
	dialled("exact.test", PORT, "10.0.0.5");
	assert_int_equal(world.asked->n, 0);
}

/* C16 C17: names that other resolvers answer by themselves. */
static void
C17_no_hosts_file(void **state)
{
	(void)state;
	dialled("localhost", PORT, "93.184.216.34");
	assert_int_equal(questions("localhost", 1), 1);
}

static void
the_next_name_server(void **state)
{
	(void)teardown(state);
	dialer_start(
		table, NULL, "127.0.0.1:5399", "127.0.0.1:5300"); /* nobody is at the first one */
	dialled("public.test", PORT, "93.184.216.34");
}

/* Each question has an id, a mix of cases and a port of its own. */
static void
questions_cannot_be_guessed(void **state)
{
	int ids = 0, ports = 0, cases = 0;

	(void)state;
	for (int i = 0; i < 8; i++)
		dialled("public.test", PORT, "93.184.216.34");
	assert_int_equal(world.asked->n, 16);
	for (int i = 1; i < world.asked->n; i++) {
		ids += world.asked->row[i].id != world.asked->row[i - 1].id;
		ports += world.asked->row[i].port != world.asked->row[i - 1].port;
		cases += strcmp(world.asked->row[i].name, world.asked->row[i - 1].name) != 0;
	}
	assert_true(ids >= 13 && ports >= 13 && cases >= 12);
}

/* ---- what is not ---- */

static void
C1_addresses_that_are_not_public(void **state)
{
	(void)state;
	refused("private.test", DIAL_ADDRESS, "10.0.0.5 is no public address: private");
	refused("metadata.test", DIAL_ADDRESS, "link-local");
	refused("loopback.test", DIAL_ADDRESS, "loopback");
	refused("own.test", DIAL_ADDRESS, "of this host");
	refused("10.0.0.7", DIAL_ADDRESS, "private");
	assert_int_equal(questions("10.0.0.7", 0), 0);
}

static void
C2_mixed_answers(void **state)
{
	(void)state;
	refused("mixed.test", DIAL_MIXED, "10.0.0.5");
	refused("mixed6.test", DIAL_MIXED, "loopback");
	refused("nat64.test", DIAL_MIXED, "NAT64 of 10.0.0.5 (private)");
}

static void
C4_an_alias_to_a_private_address(void **state)
{
	(void)state;
	refused("to-private.test", DIAL_ADDRESS, "10.0.0.5");
	assert_int_equal(questions("x.test", 0), 0); /* the answer has it */
}

static void
C6_circles_and_other_names(void **state)
{
	(void)state;
	refused("loop.test", DIAL_NO_NAME, "circle");
	refused("other.test", DIAL_NO_NAME, "no address"); /* C11 */
}

/* One question for one connection: the second answer is not asked for until the next one. */
static void
C7_rebinding(void **state)
{
	(void)state;
	dialled("rebind.test", PORT, "93.184.216.34");
	assert_int_equal(questions("rebind.test", 1), 1);
	assert_int_equal(questions("rebind.test", 28), 1);
	refused("rebind.test", DIAL_ADDRESS, "loopback");
	assert_int_equal(questions("rebind.test", 1), 2);
}

static void
C12_truncated_answers(void **state)
{
	(void)state;
	dialled("truncated.test", PORT, "93.184.216.34");
	assert_int_equal(questions("truncated.test", 1), 2);
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
}

static void
C14_no_answer(void **state)
{
	(void)state;
	refused("nx.test", DIAL_NO_NAME, "no such name");
	refused("nodata.test", DIAL_NO_NAME, "no address");
	refused("servfail.test", DIAL_NO_NAME, "code 2");
	refused("refused.test", DIAL_NO_NAME, "code 5");
}

/* Answers of somebody who does not see the questions. */
static void
answers_of_others(void **state)
{
	(void)state;
	dialled("spoofed.test", PORT, "93.184.216.34");
	refused("wrong-id.test", DIAL_NO_NAME, "no name server answers");
	refused("flat.test", DIAL_NO_NAME, "no name server answers");
}

/* C16: nothing is asked and nothing connected for what is not in the table. */
static void
C16_what_is_not_listed(void **state)
{
	static const struct {
		const char *host;
		uint16_t port;
	} rows[] = {{"unlisted.test", PORT}, {"public.test", PORT + 100}, {"public.test.", PORT},
		{"PUBLIC.test", PORT}, {"", PORT}, {"public.test", 0}, {"127.0.0.1", PORT},
		{"10.0.0.5", PORT}, {"x.public.test", PORT}, {"public", PORT}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct said s = dial(rows[i].host, rows[i].port);

		if (s.reason != DIAL_NOT_LISTED)
			fail_msg("%s: %d %s", rows[i].host, (int)s.reason, s.text);
	}
	assert_int_equal(world.asked->n, 0);
	assert_int_equal(connections(world.listener), 0);
}

static void
nobody_there(void **state)
{
	struct said s;
	uint64_t began;

	(void)state;
	s = dial("public.test", NOBODY_PORT);
	assert_int_equal(s.reason, DIAL_UNREACHABLE);
	assert_non_null(strstr(s.text, "93.184.216.34"));
	/* One that does not answer, and a name server that does not: the time that was given, and no more. */
	began = clock_mono_ms();
	(void)ask("full.test", FULL_PORT, 400);
	assert_int_equal(hear(5000).reason, DIAL_TIMEOUT);
	(void)ask("silent.test", PORT, 400);
	assert_int_equal(hear(5000).reason, DIAL_TIMEOUT);
	assert_true(clock_mono_ms() - began >= 800 && clock_mono_ms() - began < 3000);
}

static void
not_more_than_96(void **state)
{
	struct said s;

	(void)state;
	for (int i = 0; i < 96; i++)
		(void)ask("silent.test", PORT, 2000);
	(void)ask("public.test", PORT, 3000);
	s = hear(2000);
	assert_int_equal(s.reason, DIAL_BUSY);
	assert_int_equal(s.tag, tag);
	for (int i = 0; i < 96; i++)
		assert_int_equal(hear(10000).reason, DIAL_TIMEOUT);
	dialled("public.test", PORT, "93.184.216.34");
}

/* ---- the process ---- */

static void
a_broker_that_breaks_the_protocol(void **state)
{
	int theirs;

	(void)state;
	(void)ask("silent.test", PORT, 5000);
	(void)ask("public.test", PORT, 0); /* no time */
	assert_true(closed(world.broker));
	(void)close(world.broker);
	/* The next broker's edge, by the supervisor; what the last one asked for is not answered to it. */
	pair(&world.broker, &theirs);
	SAY(world.supervisor, 0, DIALER_BROKER, dialer_broker, &theirs, 1, {0});
	(void)close(theirs);
	dialled("public.test", PORT, "93.184.216.34");
}

static void
it_ends_with_the_supervisor(void **state)
{
	(void)state;
	dialled("public.test", PORT, "93.184.216.34");
	(void)close(take_fd(&world.supervisor));
	assert_int_equal(dialer_ended(), 0);
}

static void
no_table_no_dialer(void **state)
{
	(void)teardown(state);
	dialer_start("{\"origins\":[{\"host\":\"a.1\",\"port\":1}]}", NULL, "127.0.0.1:5300", "");
	assert_int_equal(dialer_ended(), 1);
	(void)teardown(state);
	dialer_start(table, NULL, "not-an-address", "");
	assert_int_equal(dialer_ended(), 1);
}

static unsigned long long
status_of(const char *field)
{
	char path[64], line[256];
	unsigned long long value = 99;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", world.dialer);
	f = fopen(path, "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f) != NULL)
		if (strncmp(line, field, strlen(field)) == 0)
			(void)sscanf(line + strlen(field), ":%llx", &value);
	(void)fclose(f);
	return value;
}

static void
it_is_confined(void **state)
{
	char path[64];
	size_t n = 0;
	DIR *d;

	(void)state;
#ifdef NO_JAIL
	skip();
#endif
	dialled("public.test", PORT, "93.184.216.34");
	assert_int_equal(status_of("Seccomp"), 2);
	assert_int_equal(status_of("NoNewPrivs"), 1);
	assert_int_equal(status_of("CapEff"), 0);
	assert_int_equal(status_of("CapBnd"), 0);
	/* 0 1 2, two edges and the loop: no socket is left of what it did. */
	(void)snprintf(path, sizeof(path), "/proc/%d/fd", world.dialer);
	d = opendir(path);
	assert_non_null(d);
	while (readdir(d) != NULL)
		n++;
	(void)closedir(d);
	assert_in_range(n - 2, 6, 8);
}

int
main(int argc, char **argv)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {TEST(a_public_name), TEST(other_ways_to_a_connection),
		TEST(an_exact_address), TEST(C17_no_hosts_file), TEST(the_next_name_server),
		TEST(questions_cannot_be_guessed), TEST(C1_addresses_that_are_not_public),
		TEST(C2_mixed_answers), TEST(C4_an_alias_to_a_private_address),
		TEST(C6_circles_and_other_names), TEST(C7_rebinding), TEST(C12_truncated_answers),
		TEST(C13_too_many_addresses), TEST(C14_no_answer), TEST(answers_of_others),
		TEST(C16_what_is_not_listed), TEST(nobody_there), TEST(not_more_than_96),
		TEST(a_broker_that_breaks_the_protocol), TEST(it_ends_with_the_supervisor),
		TEST(no_table_no_dialer), TEST(it_is_confined)};

	if (geteuid() != 0)
		return 77;
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, world_setup, world_teardown);
}
