/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sandboxes with a policy, as the engine and as programs inside see them: what their network has and has not, what a gateway is given, that
 * the one ends with the other, and what stays of it. Gateway, dialer and broker are stand-ins that say what they got.
 */
#include "rig.h"

#include "lib/base/clock.h"
#include "supervisor/measure.h"
#include "supervisor/ns.h"
#include "supervisor/plumbing.h"
#include "supervisor/text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#define PLAIN   "web - 80,443"
#define PINNED  "carrier b 443,8443 one,two"
#define CAPTURE "everything c 80"
#define DEAF    "deaf - 443"
#define ALL     PLAIN "\n" PINNED "\n" CAPTURE "\n" DEAF "\n"
#define PORTS   ",80,443,8443"

static struct rig rig;
static struct greeting greeting;

static int
setup(void **state)
{
	(void)state;
	rig_init(&rig);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	if (rig.pid != 0)
		rig_kill(&rig);
	rig_done(&rig);
	return 0;
}

static void
make_file(const char *name, const char *text, mode_t mode)
{
	char path[300];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/trust", rig.dir);
	assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
	(void)snprintf(path, sizeof(path), "%s/%s", rig.dir, name);
	f = fopen(path, "we");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(path, mode), 0);
}

static void
up_with(const char *policies)
{
	rig_policies(&rig, policies);
	make_file("trust/one.pem", "the-first", 0644);
	make_file("trust/two.pem", "the-second", 0644);
	rig_start(&rig);
	rig_greeting(&rig, &greeting);
	rig_template(&rig);
}

static void
down(void)
{
	assert_int_equal(rig_stop(&rig), 0);
	host_is_clean(&rig);
}

static void
ended(struct box *b, enum sandbox_reason reason)
{
	struct msg_gone gone;
	struct ipc_msg in;
	struct err err;

	rig_expect(&rig, MSG_GONE, &in);
	assert_int_equal(msg_gone_get(in.body, &gone, &err), 0);
	assert_true(id_eq(&gone.sandbox, &b->id));
	assert_int_equal(gone.reason, reason);
	proof_is_zero(&gone.proof);
	assert_false(process_lives((pid_t)b->facts.host_pid));
	box_close(b);
}

static void
end(struct box *b)
{
	struct msg_gone gone;

	rig_kill_box(&rig, b, &gone);
	assert_int_equal(gone.reason, SANDBOX_REASON_KILLED);
	proof_is_zero(&gone.proof);
}

static void
refused(const char *line, const char *about)
{
	struct msg_spawn_failed m;
	struct ipc_msg in;
	struct err err;
	struct box b;

	rig_spawn_policy_ask(&rig, &b, line);
	rig_expect(&rig, MSG_SPAWN_FAILED, &in);
	assert_int_equal(msg_spawn_failed_get(in.body, &m, &err), 0);
	assert_true(m.code < 0);
	if (strstr(m.text, about) == NULL)
		fail_msg("refused with: %s", m.text);
	proof_is_zero(&m.proof);
}

/* These words are among the next that come from the gateway, in whatever order. */
static void
hears(int edge, const char *const *want, size_t n)
{
	bool found[8] = {false};
	size_t left = n;

	assert_true(n <= ARRAY_LEN(found));
	while (left > 0) {
		char said[2048];
		bool known = false;

		rig_broker_says(edge, said, sizeof(said));
		for (size_t i = 0; i < n; i++)
			if (!found[i] && strcmp(said, want[i]) == 0) {
				found[i] = known = true;
				left--;
				break;
			}
		if (!known)
			fail_msg("the gateway says: %s", said);
	}
}

#define HEARS(edge, ...)                                              \
	do {                                                          \
		const char *const want_[] = {__VA_ARGS__};            \
		hears(edge, want_, sizeof(want_) / sizeof(want_[0])); \
	} while (0)

static uint32_t
gateway_uid(const struct box *b)
{
	return rig.settings.gateway_uid_base +
	       (b->facts.uid_base - rig.settings.sandbox_uid_base) / 65536;
}

/* In the order in which it is told: it has its policy long before it has a socket. */
static const char *
gateway_is(const struct box *b, const char *policy, const char *pinned, const char *ports)
{
	static char text[2048];

	(void)snprintf(text, sizeof(text),
		"gateway uid=%u gid=%u policy=%s roots=of-the-system%s udp:53 tcp:53 proxy:3128 %s",
		gateway_uid(b), gateway_uid(b), policy, pinned, ports);
	return text;
}

static const char *
plain_is(const struct box *b)
{
	return gateway_is(b, PLAIN, "", "port:80 port:443");
}

/* Calls for each process with a uid of this range; their number. */
static size_t
processes_of(uint32_t first, uint32_t n, pid_t *ret_one, bool *ret_twice)
{
	static uint8_t seen[4096];
	DIR *proc = opendir("/proc");
	struct dirent *e;
	size_t found = 0;

	memset(seen, 0, sizeof(seen));
	assert_non_null(proc);
	while ((e = readdir(proc)) != NULL) {
		struct stat st;
		unsigned pid = 0;

		if (sscanf(e->d_name, "%u", &pid) != 1 ||
			fstatat(dirfd(proc), e->d_name, &st, 0) < 0 || st.st_uid < first ||
			st.st_uid - first >= n || !process_lives((pid_t)pid))
			continue;
		found++;
		if (ret_one != NULL)
			*ret_one = (pid_t)pid;
		if (ret_twice != NULL && seen[st.st_uid - first]++ != 0)
			*ret_twice = true;
	}
	(void)closedir(proc);
	return found;
}

static pid_t
gateway_of(const struct box *b)
{
	pid_t pid = 0;

	assert_int_equal(processes_of(gateway_uid(b), 1, &pid, NULL), 1);
	return pid;
}

static pid_t
pid_of_uid(uint32_t uid)
{
	pid_t pid = 0;

	for (int i = 0; processes_of(uid, 1, &pid, NULL) == 0 && i < 500; i++)
		pause_ms(10);
	assert_true(pid > 0);
	return pid;
}

/* ---- what a gateway and its neighbours are given ---- */

static void
test_what_it_is_given(void **state)
{
	struct box b;

	(void)state;
	up_with(ALL);
	rig_spawn_policy(&rig, &b, PLAIN);
	HEARS(b.gateway_edge, plain_is(&b), "dialer ports=" PORTS " policy=" PLAIN);
	end(&b);
	rig_spawn_policy(&rig, &b, PINNED);
	HEARS(b.gateway_edge,
		gateway_is(&b, PINNED, " roots-one=the-first roots-two=the-second",
			"port:443 port:8443"),
		"dialer ports=" PORTS " policy=" PINNED, "broker policy=" PINNED);
	end(&b);
	down();
}

/* The engine has all of them in one file that nobody can change. */
static void
test_all_for_the_engine(void **state)
{
	const int seals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
	char text[256] = "";

	(void)state;
	up_with(ALL);
	assert_int_equal(fcntl(rig.policies, F_GET_SEALS), seals);
	assert_int_equal(fcntl(rig.policies, F_GETFL) & O_ACCMODE, O_RDONLY);
	assert_int_equal(read(rig.policies, text, sizeof(text) - 1), strlen(ALL));
	assert_string_equal(text, ALL);
	down();
}

/* Every gateway has the uid of its own slot, spares' too. */
static void
test_uids_are_their_own(void **state)
{
	struct box boxes[6];
	bool twice = false;

	(void)state;
	up_with(ALL);
	for (size_t i = 0; i < ARRAY_LEN(boxes); i++) {
		rig_spawn_policy(&rig, &boxes[i], PLAIN);
		HEARS(boxes[i].gateway_edge, plain_is(&boxes[i]),
			"dialer ports=" PORTS " policy=" PLAIN);
		(void)gateway_of(&boxes[i]);
	}
	pause_ms(300); /* spares are there again */
	assert_int_equal(processes_of(rig.settings.gateway_uid_base, rig.settings.sandbox_uid_slots,
				 NULL, &twice),
		ARRAY_LEN(boxes) + 4);
	assert_false(twice);
	for (size_t i = 0; i < ARRAY_LEN(boxes); i++)
		end(&boxes[i]);
	down();
}

/* ---- what programs reach ---- */

struct errand {
	const char *what, *to;
	unsigned port;
	int n, code; /* n 1: the gateway heard of this very address */
};

static void
errands(struct box *b, const struct errand *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct said s = box_say(b, "%s %s %u", rows[i].what, rows[i].to, rows[i].port);

		if (s.n != rows[i].n || s.code != rows[i].code)
			fail_msg("%s %s %u: %lld, %s", rows[i].what, rows[i].to, rows[i].port, s.n,
				strerror(s.code));
	}
}

/* The same whoever asks: as the user and as root of the sandbox. */
static void
test_J1_J3_J4_only_the_pool_is_there(void **state)
{
	static const struct errand rows[] = {
		{"connect", "198.18.0.7", 443, 1, 0},
		{"connect", "198.18.0.0", 80, 1, 0},
		{"connect", "198.19.255.255", 80, 1, 0},
		{"connect", "fd00:5eed::7", 443, 1, 0},
		{"connect", "fd00:5eed::ffff:ffff:ffff:ffff", 80, 1, 0},
		{"connect", "127.0.0.1", 3128, 1, 0},
		{"connect", "127.0.0.1", 53, 1, 0},
		{"ask", "127.0.0.1", 53, 1, 0},
		{"ask", "198.18.0.53", 53, 1, 0},
		{"ask", "198.19.1.1", 53, 1, 0},
		{"ask", "fd00:5eed::53", 53, 1, 0},
		{"ask", "::1", 53, 1, 0},
		/* a port that no rule names, and the proxy elsewhere than on loopback */
		{"connect", "198.18.0.7", 444, 0, ECONNREFUSED},
		{"connect", "198.18.0.7", 8443, 0, ECONNREFUSED},
		{"connect", "fd00:5eed::7", 8443, 0, ECONNREFUSED},
		{"connect", "198.18.0.7", 3128, 0, ECONNREFUSED},
		{"connect", "::1", 3128, 0, ECONNREFUSED},
		/* QUIC, and time */
		{"ask", "198.18.0.7", 443, 0, ECONNREFUSED},
		{"ask", "198.18.0.7", 123, 0, ECONNREFUSED},
		{"ask", "8.8.8.8", 53, 0, ENETUNREACH},
		{"ask", "8.8.8.8", 443, 0, ENETUNREACH},
		{"ask", "8.8.8.8", 123, 0, ENETUNREACH},
		{"connect", "8.8.8.8", 53, 0, ENETUNREACH},
		{"connect", "169.254.169.254", 80, 0, ENETUNREACH},
		{"connect", "10.0.0.1", 443, 0, ENETUNREACH},
		{"connect", "172.17.0.1", 443, 0, ENETUNREACH},
		{"connect", "192.168.0.1", 443, 0, ENETUNREACH},
		{"connect", "198.17.255.255", 443, 0, ENETUNREACH},
		{"connect", "198.20.0.0", 443, 0, ENETUNREACH},
		{"connect", "2001:4860:4860::8888", 443, 0, ENETUNREACH},
		{"connect", "fd00:ec2::254", 80, 0, ENETUNREACH},
		{"connect", "fd00:5eed:0:1::", 443, 0, ENETUNREACH},
		{"connect", "fd00:5eec:ffff:ffff::1", 443, 0, ENETUNREACH},
		{"connect", "64:ff9b::808:808", 443, 0, ENETUNREACH},
		{"ask", "ff02::1", 53, 0, ENETUNREACH},
	};
	struct box b;

	(void)state;
	up_with(ALL);
	rig_spawn_policy(&rig, &b, PLAIN);
	assert_int_equal(b.facts.captured, 51);
	assert_int_equal(b.facts.routes, 0);
	assert_int_equal(b.facts.interfaces, 1);
	errands(&b, rows, ARRAY_LEN(rows));
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char root[32];
		struct errand row = rows[i];

		(void)snprintf(root, sizeof(root), "root-%s", rows[i].what);
		row.what = root;
		errands(&b, &row, 1);
	}
	end(&b);
	down();
}

/* In a new namespace, without a moment in between. */
static int
captured_at_once(void)
{
	static char room[8192];
	const struct plumbing p = {.wanted = true, .ipv6 = true};
	struct facts f = {0};
	struct err err;
	struct view text;

	if (unshare(CLONE_NEWNET) < 0 || ns_lo_up(&err) < 0 || plumbing_routes(&p, &err) < 0)
		return -1;
	if (text_file(AT_FDCWD, "/proc/self/net/ipv6_route", room, sizeof(room), &text) < 0)
		return -1;
	measure_routes6(text, &f);
	if (text_file(AT_FDCWD, "/proc/self/net/fib_trie", room, sizeof(room), &text) < 0)
		return -1;
	measure_routes4(text, &f);
	return f.routes == 0 ? f.captured : -1;
}

/* The kernel finishes an IPv6 address in a thread of its own; nothing that is measured waits for it. */
static void
test_what_leads_to_it_is_there_at_once(void **state)
{
	enum { TRIES = 50 };

	(void)state;
	for (int i = 0; i < TRIES; i++) {
		pid_t pid = fork();
		int status;

		if (pid == 0)
			_exit(captured_at_once());
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 51);
	}
}

static void
test_J3_capture_hears_of_everything(void **state)
{
	static const struct errand rows[] = {
		{"connect", "169.254.169.254", 80, 1, 0},
		{"connect", "8.8.8.8", 80, 1, 0},
		{"connect", "198.18.0.7", 80, 1, 0},
		{"connect", "2001:4860:4860::8888", 80, 1, 0},
		{"ask", "8.8.8.8", 53, 1, 0},
		{"ask", "2001:4860:4860::8888", 53, 1, 0},
		{"connect", "8.8.8.8", 443, 0, ECONNREFUSED},
		{"ask", "8.8.8.8", 443, 0, ECONNREFUSED},
	};
	struct box b;

	(void)state;
	up_with(ALL);
	rig_spawn_policy(&rig, &b, CAPTURE);
	assert_int_equal(b.facts.captured, 60);
	assert_int_equal(b.facts.routes, 0);
	errands(&b, rows, ARRAY_LEN(rows));
	end(&b);
	down();
}

/* Beside others that have one: nothing is there, and nobody waits for it. */
static void
test_without_a_policy(void **state)
{
	static const struct errand rows[] = {
		{"connect", "198.18.0.7", 443, 0, ENETUNREACH},
		{"connect", "fd00:5eed::7", 443, 0, ENETUNREACH},
		{"connect", "127.0.0.1", 3128, 0, ECONNREFUSED},
		{"connect", "127.0.0.1", 443, 0, ECONNREFUSED},
		{"ask", "127.0.0.1", 53, 0, ECONNREFUSED},
	};
	struct box a, b;

	(void)state;
	up_with(ALL);
	rig_spawn_policy(&rig, &a, PLAIN);
	rig_spawn(&rig, &b);
	assert_int_equal(b.facts.captured, 0);
	assert_int_equal(b.facts.routes, 0);
	errands(&b, rows, ARRAY_LEN(rows));
	for (int i = 0; processes_of(gateway_uid(&b), 1, NULL, NULL) != 0 && i < 100; i++)
		pause_ms(10);
	assert_int_equal(processes_of(gateway_uid(&b), 1, NULL, NULL), 0);
	end(&b);
	end(&a);
	down();
}

/* A host without policies has no gateways at all. */
static void
test_no_policies(void **state)
{
	struct box b;

	(void)state;
	rig_start(&rig);
	rig_greeting(&rig, &greeting);
	rig_template(&rig);
	rig_spawn(&rig, &b);
	pause_ms(200);
	assert_int_equal(processes_of(rig.settings.gateway_uid_base, rig.settings.sandbox_uid_slots,
				 NULL, NULL),
		0);
	end(&b);
	refused(PLAIN, "does not hold");
	down();
}

static void
test_J11_J12_J14_nothing_is_the_sandboxs(void **state)
{
	static const struct errand rows[] = {
		{"route", "add", 0, 0, EPERM},
		{"route", "delete", 1, 0, EPERM},
		{"root-route", "add", 0, 0, EPERM},
		{"root-route", "delete", 1, 0, EPERM},
		{"bind", "127.0.0.1", 443, 0, EACCES},
		{"bind", "127.0.0.1", 53, 0, EACCES},
		{"bind", "198.18.0.7", 444, 0, EACCES},
		{"root-bind", "127.0.0.1", 443, 0, EACCES},
		{"root-bind", "198.18.0.7", 444, 0, EACCES},
		{"bind", "127.0.0.1", 8443, 0, EADDRINUSE},
		{"bind", "198.18.0.7", 8443, 0, EADDRINUSE},
		{"bind", "127.0.0.1", 3128, 0, EADDRINUSE},
		{"root-bind", "198.18.0.7", 8443, 0, EADDRINUSE},
		{"root-bind", "127.0.0.1", 3128, 0, EADDRINUSE},
		/* where nobody listens it fools only itself */
		{"bind", "198.18.0.7", 9443, 0, 0},
	};
	static const char *const sysctls[] = {"/proc/sys/net/ipv4/ip_unprivileged_port_start",
		"/proc/sys/net/ipv4/ip_forward", "/proc/sys/net/ipv4/conf/lo/route_localnet",
		"/proc/sys/net/ipv6/conf/lo/disable_ipv6"};
	struct box b;

	(void)state;
	up_with(ALL);
	rig_spawn_policy(&rig, &b, PINNED);
	errands(&b, rows, ARRAY_LEN(rows));
	for (size_t i = 0; i < ARRAY_LEN(sysctls); i++)
		for (int root = 0; root < 2; root++) {
			struct said s = box_say(&b, "%sopen %s 1", root ? "root-" : "", sysctls[i]);

			if (s.code != EROFS && s.code != EACCES && s.code != EPERM)
				fail_msg("%s: %lld %d", sysctls[i], s.n, s.code);
		}
	assert_int_equal(box_say(&b, "connect 198.18.0.7 8443").n, 1);
	end(&b);
	down();
}

/* ---- one end is the other's ---- */

static void
test_a_lost_gateway_takes_its_sandbox(void **state)
{
	struct box a, b;

	(void)state;
	up_with(ALL);
	rig_spawn_policy(&rig, &a, PLAIN);
	rig_spawn_policy(&rig, &b, PLAIN);
	assert_int_equal(kill(gateway_of(&b), SIGKILL), 0);
	ended(&b, SANDBOX_REASON_GATEWAY_LOST);
	assert_int_equal(box_say(&a, "connect 198.18.0.7 443").n, 1);
	end(&a);
	down();
}

static void
test_it_ends_with_its_sandbox(void **state)
{
	uint64_t at;
	struct box b;
	pid_t gateway;

	(void)state;
	up_with(ALL);
	rig_spawn_policy(&rig, &b, PLAIN);
	gateway = gateway_of(&b);
	end(&b);
	assert_false(process_lives(gateway));
	/* One that does not end is not waited for longer than it takes to flush. */
	rig_spawn_policy(&rig, &b, DEAF);
	gateway = gateway_of(&b);
	at = clock_mono_ms();
	end(&b);
	assert_false(process_lives(gateway));
	assert_in_range(clock_mono_ms() - at, 40, 1000);
	/* And of a sandbox that ends by itself. */
	rig_spawn_policy(&rig, &b, PLAIN);
	gateway = gateway_of(&b);
	assert_int_equal(kill((pid_t)b.facts.host_pid, SIGKILL), 0);
	ended(&b, SANDBOX_REASON_AGENT_LOST);
	assert_false(process_lives(gateway));
	down();
}

static void
test_it_ends_with_the_supervisor(void **state)
{
	struct box b;
	pid_t gateway;

	(void)state;
	up_with(ALL);
	rig_spawn_policy(&rig, &b, PLAIN);
	gateway = gateway_of(&b);
	rig_kill(&rig);
	for (int i = 0; process_lives(gateway) && i < 200; i++)
		pause_ms(10);
	assert_false(process_lives(gateway));
	box_close(&b);
	rig_start(&rig);
	rig_greeting(&rig, &greeting);
	assert_int_equal(greeting.nleft, 1);
	proof_is_zero(&greeting.left[0].proof);
	down();
}

/* A spare's gateway that died is nobody's loss. */
static void
test_a_spare_gets_another(void **state)
{
	struct box b, plain;
	pid_t gateway = 0;

	(void)state;
	up_with(ALL);
	pause_ms(300);
	for (int i = 0; i < 4; i++) {
		if (processes_of(rig.settings.gateway_uid_base, rig.settings.sandbox_uid_slots,
			    &gateway, NULL) == 0)
			break;
		assert_int_equal(kill(gateway, SIGKILL), 0);
		for (int k = 0; process_lives(gateway) && k < 100; k++)
			pause_ms(5);
	}
	rig_spawn(&rig, &plain);
	rig_spawn_policy(&rig, &b, PLAIN);
	HEARS(b.gateway_edge, plain_is(&b), "dialer ports=" PORTS " policy=" PLAIN);
	assert_int_equal(box_say(&b, "connect 198.18.0.7 443").n, 1);
	end(&b);
	end(&plain);
	down();
}

/* ---- engine, dialer and broker come and go ---- */

static void
test_engine_restarts(void **state)
{
	struct box b, none;
	pid_t gateway;

	(void)state;
	up_with(ALL);
	rig_spawn_policy(&rig, &b, PLAIN);
	rig_spawn(&rig, &none);
	gateway = gateway_of(&b);
	assert_int_equal(kill(rig.engine_pid, SIGKILL), 0);
	rig_engine_accept(&rig);
	rig_greeting(&rig, &greeting);
	assert_int_equal(greeting.nheld, 2);
	for (size_t i = 0; i < 2; i++) {
		const struct held *h = &greeting.held[i];

		(void)close(h->edge);
		if (id_eq(&h->m.sandbox, &none.id)) {
			assert_int_equal(h->gateway, -1);
			continue;
		}
		HEARS(h->gateway, plain_is(&b));
		(void)close(h->gateway);
	}
	assert_int_equal(gateway_of(&b), gateway);
	assert_int_equal(box_say(&b, "connect 198.18.0.7 443").n, 1);
	end(&b);
	end(&none);
	down();
}

static void
test_dialer_and_broker_restart(void **state)
{
	struct box a, b, none;
	struct ipc_msg in;

	(void)state;
	up_with(ALL);
	rig_spawn_policy(&rig, &a, PLAIN);
	rig_spawn_policy(&rig, &b, PINNED);
	rig_spawn(&rig, &none);
	HEARS(a.gateway_edge, plain_is(&a), "dialer ports=" PORTS " policy=" PLAIN);
	HEARS(b.gateway_edge,
		gateway_is(&b, PINNED, " roots-one=the-first roots-two=the-second",
			"port:443 port:8443"),
		"dialer ports=" PORTS " policy=" PINNED, "broker policy=" PINNED);
	assert_int_equal(kill(pid_of_uid(rig.settings.dialer_uid), SIGKILL), 0);
	HEARS(a.gateway_edge, "dialer ports=" PORTS " policy=" PLAIN);
	HEARS(b.gateway_edge, "dialer ports=" PORTS " policy=" PINNED);
	assert_int_equal(kill(pid_of_uid(rig.settings.broker_uid), SIGKILL), 0);
	HEARS(b.gateway_edge, "broker policy=" PINNED);
	rig_expect(&rig, MSG_BROKER_EDGE, &in);
	ipc_msg_done(&in);
	end(&a);
	end(&b);
	end(&none);
	down();
}

/* One that is made while there is no dialer gets its edge when there is one. */
static void
test_made_while_the_dialer_is_away(void **state)
{
	struct box b;
	pid_t dialer;

	(void)state;
	up_with(ALL);
	dialer = pid_of_uid(rig.settings.dialer_uid);
	assert_int_equal(kill(rig.pid, SIGSTOP), 0); /* it sees the order and the end at once */
	rig_spawn_policy_ask(&rig, &b, PLAIN);
	assert_int_equal(kill(dialer, SIGKILL), 0);
	assert_int_equal(kill(rig.pid, SIGCONT), 0);
	rig_spawned(&rig, &b);
	HEARS(b.gateway_edge, plain_is(&b), "dialer ports=" PORTS " policy=" PLAIN);
	end(&b);
	down();
}

/*
 * A dialer that does not read for a while, and more edges than its socket has room for: all get theirs, it is not started again for it, and
 * one that is new gets them all.
 */
static void
test_more_edges_than_there_is_room_for(void **state)
{
	enum { BEFORE = 80, N = 220 };
	static struct box boxes[N];
	pid_t dialer;
	struct box b;

	(void)state;
	up_with(ALL);
	dialer = pid_of_uid(rig.settings.dialer_uid);
	assert_int_equal(kill(dialer, SIGSTOP), 0);
	for (size_t i = 0; i < BEFORE; i++) {
		rig_spawn_policy(&rig, &b, PLAIN);
		end(&b);
	}
	for (size_t i = 0; i < N; i++)
		rig_spawn_policy(&rig, &boxes[i], PLAIN);
	assert_int_equal(kill(dialer, SIGCONT), 0);
	for (size_t i = 0; i < N; i++)
		HEARS(boxes[i].gateway_edge, plain_is(&boxes[i]),
			"dialer ports=" PORTS " policy=" PLAIN);
	assert_int_equal(pid_of_uid(rig.settings.dialer_uid), dialer);
	assert_int_equal(kill(dialer, SIGKILL), 0);
	for (size_t i = 0; i < N; i++)
		HEARS(boxes[i].gateway_edge, "dialer ports=" PORTS " policy=" PLAIN);
	for (size_t i = 0; i < N; i++)
		end(&boxes[i]);
	down();
}

/* One that never reads is started again. */
static void
test_a_deaf_dialer_is_started_again(void **state)
{
	enum { N = 300 };
	uint64_t began;
	pid_t dialer;
	struct box b;

	(void)state;
	up_with(ALL);
	dialer = pid_of_uid(rig.settings.dialer_uid);
	assert_int_equal(kill(dialer, SIGSTOP), 0);
	for (size_t i = 0; i < N; i++) {
		rig_spawn_policy(&rig, &b, PLAIN);
		if (i + 1 < N)
			end(&b);
	}
	began = clock_mono_ms();
	HEARS(b.gateway_edge, plain_is(&b), "dialer ports=" PORTS " policy=" PLAIN);
	assert_in_range(clock_mono_ms() - began, 1000, 9000);
	assert_int_not_equal(pid_of_uid(rig.settings.dialer_uid), dialer);
	end(&b);
	down();
}

/* ---- the table of policies ---- */

static void
test_no_policies_are_compiled(void **state)
{
	static const struct {
		const char *text;
	} rows[] = {{"faults"}, {"die"}, {"unsealed - 80\n"}, {"large - 80\n"}, {"plain - 80\n"},
		{"few - 80\n"}, {"more - 80\n"}, {"twice - 80\ntwice - 80\n"}, {"a - 80\na - 81\n"},
		{"a - 53\n"}, {"a - 3128\n"}, {"a - 443,80\n"}, {"a - 80,80\n"}, {"a - 0,80\n"},
		{"a/b - 80\n"}, {"a - 80 ../x\n"}, {"a - 80 .x\n"}};
	char path[300];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		rig_policies(&rig, rows[i].text);
		if (rig_start_fails(&rig, NULL) != 3)
			fail_msg("taken: %s", rows[i].text);
	}
	rig_policies(&rig, ALL);
	(void)snprintf(path, sizeof(path), "%s/policies", rig.dir);
	assert_int_equal(chmod(path, 0777), 0);
	assert_int_equal(rig_start_fails(&rig, NULL), 3);
	assert_int_equal(chmod(path, 0755), 0);
	assert_int_equal(chown(path, rig.settings.engine_uid, 0), 0);
	assert_int_equal(rig_start_fails(&rig, NULL), 3);
	assert_int_equal(chown(path, 0, 0), 0);
	up_with(ALL);
	down();
}

static void
hang_up(void)
{
	assert_int_equal(kill(rig.pid, SIGHUP), 0);
	rig_engine_accept(&rig);
	rig_greeting(&rig, &greeting);
}

static void
held_close(void)
{
	for (size_t i = 0; i < greeting.nheld; i++) {
		(void)close(greeting.held[i].edge);
		if (greeting.held[i].gateway >= 0)
			(void)close(greeting.held[i].gateway);
	}
}

/* A sandbox keeps the revision it was created with; the next one gets the new one. */
static void
test_reload_keeps_what_is_used(void **state)
{
	struct box old, new;
	pid_t engine;
	size_t fds;

	(void)state;
	up_with("a - 80\n");
	pause_ms(300);
	fds = process_fds(rig.pid);
	rig_spawn_policy(&rig, &old, "a - 80");
	HEARS(old.gateway_edge, gateway_is(&old, "a - 80", "", "port:80"),
		"dialer ports=,80 policy=a - 80");
	/* Either all is right or nothing is new. */
	engine = rig.engine_pid;
	rig_policies(&rig, "a - 53\n");
	assert_int_equal(kill(rig.pid, SIGHUP), 0);
	pause_ms(300);
	rig_policies(&rig, "a - 81\n");
	rig_operations(&rig, "faults");
	assert_int_equal(kill(rig.pid, SIGHUP), 0);
	pause_ms(300);
	assert_true(process_lives(engine));
	refused("a - 81", "does not hold");
	rig_operations(&rig, "fine");
	hang_up();
	assert_int_equal(greeting.nheld, 1);
	HEARS(greeting.held[0].gateway, gateway_is(&old, "a - 80", "", "port:80"),
		"dialer ports=,80,81 policy=a - 80");
	refused("a - 80", "does not hold");
	rig_spawn_policy(&rig, &new, "a - 81");
	HEARS(new.gateway_edge, gateway_is(&new, "a - 81", "", "port:81"),
		"dialer ports=,80,81 policy=a - 81");
	assert_int_equal(box_say(&old, "connect 198.18.0.7 80").n, 1);
	assert_int_equal(box_say(&old, "connect 198.18.0.7 81").code, ECONNREFUSED);
	assert_int_equal(box_say(&new, "connect 198.18.0.7 81").n, 1);
	end(&old);
	end(&new);
	held_close();
	/* No document of a revision that nobody has is open. */
	pause_ms(300);
	assert_int_equal(process_fds(rig.pid), fds);
	/* All are gone from the host: spares have a gateway that none needs, and lose it. */
	rig_policies(&rig, NULL);
	hang_up();
	refused("a - 81", "does not hold");
	rig_spawn(&rig, &new);
	end(&new);
	down();
}

/* A host that gets its first policy while spares without a gateway wait. */
static void
test_the_first_policy(void **state)
{
	struct box b;

	(void)state;
	rig_start(&rig);
	rig_greeting(&rig, &greeting);
	rig_template(&rig);
	pause_ms(200);
	rig_policies(&rig, PLAIN "\n");
	hang_up();
	for (int i = 0; i < 6; i++) {
		rig_spawn_policy(&rig, &b, PLAIN);
		HEARS(b.gateway_edge, plain_is(&b), "dialer ports=,80,443 policy=" PLAIN);
		assert_int_equal(box_say(&b, "connect 198.18.0.7 443").n, 1);
		end(&b);
	}
	down();
}

static void
test_roots(void **state)
{
	char trust[300], two[340];
	struct box b;

	(void)state;
	up_with(ALL);
	(void)snprintf(trust, sizeof(trust), "%s/trust", rig.dir);
	(void)snprintf(two, sizeof(two), "%s/two.pem", trust);
	assert_int_equal(unlink(two), 0);
	refused(PINNED, "two.pem");
	assert_int_equal(symlink("one.pem", two), 0);
	refused(PINNED, "two.pem");
	assert_int_equal(unlink(two), 0);
	make_file("trust/two.pem", "x", 0666);
	refused(PINNED, "belongs to root");
	make_file("trust/two.pem", "x", 0644);
	assert_int_equal(chown(two, 1000, 0), 0);
	refused(PINNED, "belongs to root");
	assert_int_equal(chown(two, 0, 0), 0);
	assert_int_equal(chmod(trust, 0777), 0);
	refused(PINNED, "pinned certificates");
	assert_int_equal(chmod(trust, 0755), 0);
	rig_spawn_policy(&rig, &b, PINNED);
	end(&b);
	assert_int_equal(unlink(rig.settings.roots), 0);
	refused(PLAIN, "egress.roots");
	assert_int_equal(mkfifo(rig.settings.roots, 0600), 0);
	refused(PLAIN, "belongs to root");
	rig_spawn(&rig, &b);
	end(&b);
	down();
}

static void
test_bad_uids(void **state)
{
	const struct settings good = rig.settings;
	const uint32_t bases[] = {0, good.sandbox_uid_base, good.sandbox_uid_base - 1,
		good.sandbox_uid_base + 300 * 65536 - 1, good.sandbox_uid_base - 299,
		UINT32_MAX - 299, good.relay_uid, good.engine_uid - 299};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bases); i++) {
		rig.settings = good;
		rig.settings.gateway_uid_base = bases[i];
		if (rig_start_fails(&rig, NULL) != 3)
			fail_msg("base %u was taken", bases[i]);
	}
	rig.settings = good;
}

/* ---- many ---- */

static void
test_storm(void **state)
{
	enum { N = 200, MORE = 200 };
	static struct box boxes[N];
	static const char *const lines[] = {PLAIN, PINNED, CAPTURE, NULL};
	size_t fds;
	unsigned seed = 1;

	(void)state;
	up_with(ALL);
	pause_ms(300);
	fds = process_fds(rig.pid);
	for (size_t i = 0; i < N; i++)
		rig_spawn_policy(&rig, &boxes[i], lines[i % 3]);
	for (size_t i = 0; i < MORE; i++) {
		struct box *b = &boxes[(size_t)rand_r(&seed) % N];
		const char *line = lines[(size_t)rand_r(&seed) % 4];

		if (i % 7 == 0) {
			assert_int_equal(kill((pid_t)b->facts.host_pid, SIGKILL), 0);
			ended(b, SANDBOX_REASON_AGENT_LOST);
		} else if (i % 11 == 0 && b->gateway_edge >= 0) {
			assert_int_equal(kill(gateway_of(b), SIGKILL), 0);
			ended(b, SANDBOX_REASON_GATEWAY_LOST);
		} else {
			end(b);
		}
		if (line == NULL)
			rig_spawn(&rig, b);
		else
			rig_spawn_policy(&rig, b, line);
	}
	for (size_t i = 0; i < N; i++)
		end(&boxes[i]);
	pause_ms(500);
	assert_int_equal(process_fds(rig.pid), fds);
	down();
}

int
main(int argc, char **argv)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {TEST(test_what_it_is_given),
		TEST(test_all_for_the_engine), TEST(test_uids_are_their_own),
		TEST(test_J1_J3_J4_only_the_pool_is_there),
		TEST(test_what_leads_to_it_is_there_at_once),
		TEST(test_J3_capture_hears_of_everything), TEST(test_without_a_policy),
		TEST(test_no_policies), TEST(test_J11_J12_J14_nothing_is_the_sandboxs),
		TEST(test_a_lost_gateway_takes_its_sandbox), TEST(test_it_ends_with_its_sandbox),
		TEST(test_it_ends_with_the_supervisor), TEST(test_a_spare_gets_another),
		TEST(test_engine_restarts), TEST(test_dialer_and_broker_restart),
		TEST(test_made_while_the_dialer_is_away),
		TEST(test_more_edges_than_there_is_room_for),
		TEST(test_a_deaf_dialer_is_started_again), TEST(test_no_policies_are_compiled),
		TEST(test_reload_keeps_what_is_used), TEST(test_the_first_policy), TEST(test_roots),
		TEST(test_bad_uids), TEST(test_storm)};

	if (geteuid() != 0)
		return 77;
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
