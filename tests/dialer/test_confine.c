/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is left to a dialer that was taken over: this program enters the dialer's own jail and tries. It starts itself as the supervisor
 * starts a dialer, with the name of one attempt.
 */
#include "dialer/confine.h"

#include "supervisor/program.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cmocka.h>

enum {
	UID = 77178,
	LISTED = 4433,
	SERVER = 5300,
	TOLD = 4500,
	CONFINE_FAILED = 77,
	SUCCEEDED = 100
};

static int
try_connect(uint16_t port)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return connect(fd, (struct sockaddr *)&at, sizeof(at));
}

static int
try_bind(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET};

	return bind(
		socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), (struct sockaddr *)&at, sizeof(at));
}

static int
try_listen(void)
{
	return listen(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), 1);
}

static int
try_accept(void)
{
	return accept(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), NULL, NULL);
}

static int
try_open(void)
{
	return open("/etc/passwd", O_RDONLY | O_CLOEXEC);
}

static int
try_unix(void)
{
	return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

static int
try_raw(void)
{
	return socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP);
}

static int
try_ping(void)
{
	return socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_ICMPV6);
}

static int
try_netlink(void)
{
	return socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0);
}

static int
try_option(void)
{
	int on = 1;

	return setsockopt(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), SOL_SOCKET, SO_REUSEADDR,
		&on, sizeof(on));
}

static int
try_fork(void)
{
	return fork();
}

static int
try_exec(void)
{
	return execl("/bin/true", "true", NULL);
}

static int
try_listed(void)
{
	return try_connect(LISTED);
}

static int
try_server(void)
{
	return try_connect(SERVER);
}

static int
try_told(void)
{
	return try_connect(TOLD);
}

static int
try_other_port(void)
{
	return try_connect(LISTED + 1);
}

static int
try_question(void)
{
	return socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/* The end: a signal as a negative number, SUCCEEDED, or errno. */
static const struct {
	const char *name;
	int (*attempt)(void);
	int end;
} rows[] = {{"bind", try_bind, -SIGSYS}, {"listen", try_listen, -SIGSYS},
	{"accept", try_accept, -SIGSYS}, {"open", try_open, -SIGSYS}, {"unix", try_unix, -SIGSYS},
	{"raw", try_raw, -SIGSYS}, {"ping", try_ping, -SIGSYS}, {"netlink", try_netlink, -SIGSYS},
	{"option", try_option, -SIGSYS}, {"fork", try_fork, -SIGSYS}, {"exec", try_exec, -SIGSYS},
	{"listed", try_listed, ECONNREFUSED}, {"server", try_server, ECONNREFUSED},
	{"told", try_told, ECONNREFUSED}, {"other port", try_other_port, EACCES},
	{"question", try_question, SUCCEEDED}};

static int
confined(const char *name)
{
	struct origin row = {.host = "a.test", .port = LISTED};
	struct dialer d = {
		.origins = {.row = &row, .n = 1}, .servers = {.row = {{.port = SERVER}}, .n = 1}};
	struct err err = {0};

	port_tell(d.told, TOLD);
	if (confine(&d, &err) < 0)
		return CONFINE_FAILED;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (strcmp(rows[i].name, name) == 0)
			return rows[i].attempt() < 0 ? errno : SUCCEEDED;
	return CONFINE_FAILED;
}

static int
end_of(const char *name)
{
	static const int no_fds[1];
	const struct program_start start = {
		.path = "/proc/self/exe", .argument = name, .uid = UID, .fds = no_fds};
	siginfo_t info = {0};
	struct err err = {0};
	int pidfd = -1;

	if (program_start(&start, &pidfd, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED), 0);
	(void)close(pidfd);
	return info.si_code == CLD_EXITED ? info.si_status : -info.si_status;
}

static void
what_is_left_to_it(void **state)
{
	/* Before Linux 6.7 Landlock knows no ports; the filter does not see them. */
	bool ports = syscall(SYS_landlock_create_ruleset, NULL, 0, 1) >= 4;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int end = end_of(rows[i].name);
		int wanted = rows[i].end == EACCES && !ports ? ECONNREFUSED : rows[i].end;

		if (end != wanted)
			fail_msg("%s: %d, not %d", rows[i].name, end, wanted);
	}
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_left_to_it)};

	if (argc == 2)
		return confined(argv[1]);
	if (geteuid() != 0)
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
