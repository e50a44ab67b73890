/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The real dialer in a network namespace of the test's, with a name server that lies and with listeners at public, private and loopback
 * addresses that write down each connection. The test is its broker and its supervisor. What is refused must show in three
 * places: the answer, the questions, the listeners. Names are those of research: egress, section C.
 */
#include "name_server.h"

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

enum { PORT = 4433, FULL_PORT = 4434, SECOND_PORT = 4435, NOBODY_PORT = 4436, UID = 77177 };

static struct question_log *asked;
static pid_t server;
static int listener, full, fillers[8]; /* [::]:PORT, and one whose queue is full */
static int second;                     /* 93.184.216.35:SECOND_PORT only */

static int broker, supervisor, pidfd;
static pid_t dialer;
static uint64_t tag;
static uint8_t room[65536];

/* ---- the world ---- */

static void
run(const char *command)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		(void)execl("/bin/sh", "sh", "-c", command, NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (status != 0)
		fail_msg("%s", command);
}

static int
listen_at(const char *address, uint16_t port, int queue)
{
	struct sockaddr_in6 at = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1;

	assert_int_equal(inet_pton(AF_INET6, address, &at.sin6_addr), 1);
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	(void)setsockopt(fd, IPPROTO_IPV6, IPV6_FREEBIND, &on, sizeof(on));
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(fd, queue), 0);
	return fd;
}

static int
world_setup(void **state)
{
	(void)state;
	/* Loopback alone; whole networks are local to it without being an address of an interface. */
	if (unshare(CLONE_NEWNET) < 0)
		return -1;
	run("busybox ip link set lo up"
	    " && for n in 93.184.216.0/24 10.0.0.0/8 169.254.0.0/16 140.82.112.0/24; do"
	    " busybox ip route add local $n dev lo table local || exit 1; done"
	    " && busybox ip -6 route add local 2606:4700::/32 dev lo table local"
	    " && busybox ip -6 route add local 64:ff9b::/96 dev lo table local"
	    " && busybox ip addr add 140.82.112.1/24 dev lo");
	asked = mmap(
		NULL, sizeof(*asked), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(asked != MAP_FAILED);
	asked->n = -1;
	listener = listen_at("::", PORT, 256);
	second = listen_at("::ffff:93.184.216.35", SECOND_PORT, 16);
	full = listen_at("::", FULL_PORT, 0);
	for (size_t i = 0; i < ARRAY_LEN(fillers); i++) {
		struct sockaddr_in at = {.sin_family = AF_INET,
			.sin_port = htons(FULL_PORT),
			.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

		fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		(void)connect(
			fillers[i], (struct sockaddr *)&at, sizeof(at)); /* it stays in the queue */
	}
	server = fork();
	if (server == 0)
		name_server_run(asked);
	for (int i = 0; i < 1000 && *(volatile int *)&asked->n < 0; i++)
		(void)poll(NULL, 0, 5);
	return asked->n == 0 ? 0 : -1;
}

static int
world_teardown(void **state)
{
	(void)state;
	(void)kill(server, SIGKILL);
	(void)waitpid(server, NULL, 0);
	return 0;
}

/* ---- a dialer ---- */

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

static void
pair(int *mine, int *theirs)
{
	struct err err;
	int both[2];

	assert_int_equal(ipc_pair(both, &err), 0);
	*mine = both[0];
	*theirs = both[1];
}

static void
say(int edge, enum msg_type type, const struct buf *body, const int *fds, size_t nfds)
{
	auto_buf struct buf packed;
	struct err err = {0};

	buf_init(&packed, IPC_MAX);
	ipc_pack(&packed, type, tag, buf_view(body));
	if (ipc_write(edge, buf_view(&packed), fds, nfds, &err) < 0)
		fail_msg("%s", err.text);
}

static void
start_with(const char *origins, const char *first, const char *next)
{
	struct msg_dialer_begin begin = {0};
	auto_fd int memory = memfd_create("origins", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	auto_fd int theirs_broker = -1, theirs_supervisor = -1;
	auto_buf struct buf body;
	struct err err = {0};

	assert_int_equal(write(memory, origins, strlen(origins)), (ssize_t)strlen(origins));
	assert_int_equal(fcntl(memory, F_ADD_SEALS,
				 F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL),
		0);
	pair(&broker, &theirs_broker);
	pair(&supervisor, &theirs_supervisor);
	const int fds[] = {[FD_DIALER_BROKER - 3] = theirs_broker,
		[FD_DIALER_SUPERVISOR - 3] = theirs_supervisor,
		[FD_DIALER_ORIGINS - 3] = memory};
	const struct program_start start = {
		.path = DIALER, .uid = UID, .fds = fds, .nfds = ARRAY_LEN(fds)};

	dialer = program_start(&start, &pidfd, &err);
	if (dialer < 0)
		fail_msg("%s", err.text);
	(void)snprintf(begin.resolvers[0], sizeof(begin.resolvers[0]), "%s", first);
	(void)snprintf(begin.resolvers[1], sizeof(begin.resolvers[1]), "%s", next);
	buf_init(&body, IPC_MAX);
	msg_dialer_begin_put(&body, &begin);
	say(supervisor, MSG_DIALER_BEGIN, &body, NULL, 0);
}

static int
setup(void **state)
{
	(void)state;
	asked->n = 0;
	start_with(table, "127.0.0.1:5300", "");
	return 0;
}

static void
close_kept(int *fd)
{
	if (*fd >= 0)
		(void)close(take_fd(fd));
}

static int
teardown(void **state)
{
	(void)state;
	program_end(&pidfd);
	close_kept(&broker);
	close_kept(&supervisor);
	return 0;
}

static uint64_t
ask(const char *host, uint16_t port, uint32_t timeout_ms)
{
	struct msg_dial m = {.port = port, .timeout_ms = timeout_ms};
	auto_buf struct buf body;

	(void)snprintf(m.host, sizeof(m.host), "%s", host);
	tag++;
	buf_init(&body, IPC_MAX);
	msg_dial_put(&body, &m);
	say(broker, MSG_DIAL, &body, NULL, 0);
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
	struct pollfd p = {.fd = broker, .events = POLLIN};
	struct said s = {.reason = DIAL_CONNECTED, .fd = -1};
	struct msg_dial_failed failed;
	struct msg_dialed dialed;
	struct ipc_msg in;
	struct err err = {0};

	assert_int_equal(poll(&p, 1, timeout_ms), 1);
	if (ipc_read(broker, EDGE_BROKER_DIALER, ROOM_DIALER, room, sizeof(room), &in, &err) < 0)
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

static int
questions(const char *host, int type)
{
	int n = 0;

	for (int i = 0; i < asked->n; i++)
		n += strcasecmp(asked->row[i].name, host) == 0 &&
		     (type == 0 || asked->row[i].type == type);
	return n;
}

/* Connections that came to the listener since the last look. */
static int
connections(int fd)
{
	int n = 0, c;

	while ((c = accept4(fd, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		(void)close(c);
		n++;
	}
	return n;
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
	assert_int_equal(connections(listener), 0);
}

static void
dialled(const char *host, uint16_t port, const char *address)
{
	struct said s = dial(host, port);

	if (s.reason != DIAL_CONNECTED || strcmp(s.text, address) != 0)
		fail_msg("%s: %d %s", host, (int)s.reason, s.text);
	assert_int_equal(connections(port == PORT ? listener : second), 1);
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
	c = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(c >= 0);
	assert_int_equal(send(s.fd, "x", 1, MSG_NOSIGNAL), 1);
	assert_int_equal(recv(c, &byte, 1, 0), 1);
	/* The dialer has no copy: the far end sees the end when ours is closed. */
	(void)close(s.fd);
	assert_int_equal(recv(c, &byte, 1, 0), 0);
	(void)close(c);
	assert_int_equal(questions("public.test", 1), 1);
	assert_int_equal(questions("public.test", 28), 1);
	assert_int_equal(asked->n, 2);
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
	assert_int_equal(asked->n, 0);
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
	start_with(table, "127.0.0.1:5399", "127.0.0.1:5300"); /* nobody is at the first one */
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
	assert_int_equal(asked->n, 16);
	for (int i = 1; i < asked->n; i++) {
		ids += asked->row[i].id != asked->row[i - 1].id;
		ports += asked->row[i].port != asked->row[i - 1].port;
		cases += strcmp(asked->row[i].name, asked->row[i - 1].name) != 0;
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
	refused("mixed.test", DIAL_ADDRESS, "10.0.0.5");
	refused("mixed6.test", DIAL_ADDRESS, "loopback");
	refused("nat64.test", DIAL_ADDRESS, "NAT64 of 10.0.0.5 (private)");
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
	assert_int_equal(asked->n, 0);
	assert_int_equal(connections(listener), 0);
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
not_more_than_64(void **state)
{
	struct said s;

	(void)state;
	for (int i = 0; i < 64; i++)
		(void)ask("silent.test", PORT, 2000);
	(void)ask("public.test", PORT, 3000);
	s = hear(2000);
	assert_int_equal(s.reason, DIAL_BUSY);
	assert_int_equal(s.tag, tag);
	for (int i = 0; i < 64; i++)
		assert_int_equal(hear(10000).reason, DIAL_TIMEOUT);
	dialled("public.test", PORT, "93.184.216.34");
}

/* ---- the process ---- */

static bool
closed(int edge)
{
	struct pollfd p = {.fd = edge, .events = POLLIN};

	return poll(&p, 1, 5000) == 1 && (p.revents & POLLHUP) != 0;
}

static void
a_broker_that_breaks_the_protocol(void **state)
{
	auto_buf struct buf none;
	int theirs;

	(void)state;
	(void)ask("silent.test", PORT, 5000);
	(void)ask("public.test", PORT, 0); /* no time */
	assert_true(closed(broker));
	close_kept(&broker);
	/* The next broker's edge, by the supervisor; what the last one asked for is not answered to it. */
	pair(&broker, &theirs);
	buf_init(&none, 64);
	say(supervisor, MSG_DIALER_BROKER, &none, &theirs, 1);
	(void)close(theirs);
	dialled("public.test", PORT, "93.184.216.34");
}

static int
ended(void)
{
	siginfo_t info = {0};
	struct pollfd p = {.fd = pidfd, .events = POLLIN};

	assert_int_equal(poll(&p, 1, 15000), 1);
	assert_int_equal(waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED | WNOWAIT), 0);
	return info.si_code == CLD_EXITED ? info.si_status : -info.si_status;
}

static void
it_ends_with_the_supervisor(void **state)
{
	(void)state;
	dialled("public.test", PORT, "93.184.216.34");
	close_kept(&supervisor);
	assert_int_equal(ended(), 0);
}

static void
no_table_no_dialer(void **state)
{
	(void)teardown(state);
	start_with("{\"origins\":[{\"host\":\"a.1\",\"port\":1}]}", "127.0.0.1:5300", "");
	assert_int_equal(ended(), 1);
	(void)teardown(state);
	start_with(table, "not-an-address", "");
	assert_int_equal(ended(), 1);
}

static unsigned long long
status_of(const char *field)
{
	char path[64], line[256];
	unsigned long long value = 99;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", dialer);
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
	(void)snprintf(path, sizeof(path), "/proc/%d/fd", dialer);
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
		TEST(C16_what_is_not_listed), TEST(nobody_there), TEST(not_more_than_64),
		TEST(a_broker_that_breaks_the_protocol), TEST(it_ends_with_the_supervisor),
		TEST(no_table_no_dialer), TEST(it_is_confined)};

	if (geteuid() != 0)
		return 77;
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, world_setup, world_teardown);
}
