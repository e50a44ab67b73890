/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is left to a gateway that was taken over: this program enters the gateway's own jail and tries. It starts itself as the supervisor
 * starts a gateway, with the name of one attempt. The sockets that a gateway has by messages are made before the jail.
 */
#include "gateway/confine.h"

#include "lib/base/attr.h"
#include "supervisor/program.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cmocka.h>

enum { UID = 77179, CONFINE_FAILED = 77, SUCCEEDED = 100, SET_UP_FAILED = 78 };

/* A socket as the dialer makes them, whose server reset it; a listening one; another server. */
static int dialled = -1, listening = -1, elsewhere = -1;
static struct sockaddr_in elsewhere_at;

static int
listen_any(struct sockaddr_in *ret)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(fd, 4) < 0 ||
		getsockname(fd, (struct sockaddr *)&at, &n) < 0)
		_exit(SET_UP_FAILED);
	*ret = at;
	return fd;
}

static void
sockets_make(void)
{
	const struct linger now = {.l_onoff = 1};
	struct sockaddr_in at;
	struct pollfd p;
	int server;

	elsewhere = listen_any(&elsewhere_at);
	listening = listen_any(&at);
	dialled = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (connect(dialled, (struct sockaddr *)&at, sizeof(at)) == 0 || errno != EINPROGRESS)
		_exit(SET_UP_FAILED);
	p = (struct pollfd){.fd = listening, .events = POLLIN};
	(void)poll(&p, 1, 1000);
	server = accept(listening, NULL, NULL);
	if (server < 0)
		_exit(SET_UP_FAILED);
	(void)setsockopt(server, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	(void)close(server);
	p = (struct pollfd){.fd = dialled, .events = POLLIN};
	(void)poll(&p, 1, 1000);
}

static int
try_connect(void)
{
	return connect(dialled, (struct sockaddr *)&elsewhere_at, sizeof(elsewhere_at));
}

/* The first call clears the reset, the second connects. */
static int
try_fast_open(void)
{
	for (int i = 0; i < 3; i++)
		if (sendto(dialled, "x", 1, MSG_FASTOPEN, (struct sockaddr *)&elsewhere_at,
			    sizeof(elsewhere_at)) == 1)
			return 0;
	return -1;
}

static int
try_fast_open_message(void)
{
	char byte = 0;
	struct iovec io = {.iov_base = &byte, .iov_len = 1};
	struct msghdr m = {.msg_name = &elsewhere_at,
		.msg_namelen = sizeof(elsewhere_at),
		.msg_iov = &io,
		.msg_iovlen = 1};

	return (int)sendmsg(dialled, &m, MSG_FASTOPEN | MSG_NOSIGNAL);
}

static int
try_bind(void)
{
	return bind(dialled, (struct sockaddr *)&elsewhere_at, sizeof(elsewhere_at));
}

static int
try_listen(void)
{
	return listen(listening, 1);
}

static int
try_tcp(void)
{
	return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

static int
try_udp(void)
{
	return socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

static int
try_unix(void)
{
	return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

static int
try_pair(void)
{
	int fds[2];

	return socketpair(AF_UNIX, SOCK_STREAM, 0, fds);
}

static int
try_open(void)
{
	return open("/etc/passwd", O_RDONLY | O_CLOEXEC);
}

static int
try_beneath(void)
{
	return (int)syscall(SYS_openat2, AT_FDCWD, "/etc", NULL, 0);
}

static int
try_stat(void)
{
	struct stat st;

	return stat("/etc/passwd", &st);
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
try_kill(void)
{
	return kill(1, 0);
}

static int
try_trace(void)
{
	return (int)ptrace(PTRACE_ATTACH, 1, NULL, NULL);
}

static int
try_namespace(void)
{
	return (int)syscall(SYS_setns, listening, 0);
}

static int
try_code(void)
{
	return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
			       MAP_FAILED
		       ? -1
		       : 0;
}

static int
try_uring(void)
{
	return (int)syscall(SYS_io_uring_setup, 1, NULL);
}

static int
try_option(void)
{
	return setsockopt(listening, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
}

/* As many descriptors as it may have, and then no more. */
static int
try_descriptors(void)
{
	int n = 0;

	while (fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) >= 0)
		n++;
	return n > 1000 && n < 2048 && errno == EMFILE ? 0 : -1;
}

/* What it lives of. */
static int
try_accept(void)
{
	int fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	return fd < 0 && errno == EAGAIN ? 0 : -1;
}

static int
try_tunnel(void)
{
	const struct linger now = {.l_onoff = 1};
	struct sockaddr_in at;
	socklen_t n = sizeof(at);
	int pipes[2];

	return pipe2(pipes, O_CLOEXEC | O_NONBLOCK) == 0 &&
			       fcntl(pipes[1], F_SETPIPE_SZ, 262144) > 0 &&
			       write(pipes[1], "x", 1) == 1 &&
			       splice(pipes[0], NULL, dialled, NULL, 1,
				       SPLICE_F_MOVE | SPLICE_F_NONBLOCK) < 0 &&
			       errno != ENOSYS &&
			       setsockopt(dialled, IPPROTO_TCP, TCP_NODELAY, &(int){1},
				       sizeof(int)) == 0 &&
			       setsockopt(dialled, IPPROTO_TCP, TCP_QUICKACK, &(int){1},
				       sizeof(int)) == 0 &&
			       setsockopt(dialled, SOL_SOCKET, SO_LINGER, &now, sizeof(now)) == 0 &&
			       getsockname(dialled, (struct sockaddr *)&at, &n) == 0
		       ? 0
		       : -1;
}

/* The end: a signal as a negative number, SUCCEEDED, or errno. */
static const struct {
	const char *name;
	int (*attempt)(void);
	int end;
} rows[] = {{"connect", try_connect, -SIGSYS}, {"fast open", try_fast_open, -SIGSYS},
	{"fast open message", try_fast_open_message, -SIGSYS}, {"bind", try_bind, -SIGSYS},
	{"listen", try_listen, -SIGSYS}, {"tcp", try_tcp, -SIGSYS}, {"udp", try_udp, -SIGSYS},
	{"unix", try_unix, -SIGSYS}, {"pair", try_pair, -SIGSYS}, {"open", try_open, -SIGSYS},
	{"beneath", try_beneath, -SIGSYS}, {"stat", try_stat, -SIGSYS}, {"fork", try_fork, -SIGSYS},
	{"exec", try_exec, -SIGSYS}, {"kill", try_kill, -SIGSYS}, {"trace", try_trace, -SIGSYS},
	{"namespace", try_namespace, -SIGSYS}, {"code", try_code, -SIGSYS},
	{"uring", try_uring, -SIGSYS}, {"option", try_option, -SIGSYS},
	{"descriptors", try_descriptors, SUCCEEDED}, {"accept", try_accept, SUCCEEDED},
	{"tunnel", try_tunnel, SUCCEEDED}};

static int
attempt_of(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (strcmp(rows[i].name, name) == 0)
			return rows[i].attempt() < 0 ? errno : SUCCEEDED;
	return CONFINE_FAILED;
}

static int
confined(const char *name)
{
	struct err err = {0};

	(void)signal(SIGPIPE, SIG_IGN);
	sockets_make();
	return confine(&err) < 0 ? CONFINE_FAILED : attempt_of(name);
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
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int end = end_of(rows[i].name);

		if (end != rows[i].end)
			fail_msg("%s: %d, not %d", rows[i].name, end, rows[i].end);
	}
}

/* Without the jail the kernel does lead a reset socket elsewhere: the row above is about something real. */
static void
a_reset_socket_can_be_led_elsewhere_by_fast_open(void **state)
{
	struct pollfd p;

	(void)state;
	sockets_make();
	(void)try_fast_open();
	p = (struct pollfd){.fd = elsewhere, .events = POLLIN};
	assert_int_equal(poll(&p, 1, 2000), 1);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_left_to_it),
		cmocka_unit_test(a_reset_socket_can_be_led_elsewhere_by_fast_open)};

	if (argc == 2)
		return confined(argv[1]);
	if (geteuid() != 0)
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
