/* SPDX-License-Identifier: Apache-2.0 */
/* See world.h. */
#include "world.h"

#include "supervisor/program.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
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

#include <cmocka.h>

struct world world;

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

int
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
	    " && busybox ip addr add 140.82.112.1/24 dev lo"
	    " && busybox ip -6 addr add 2606:4700:99::1/96 dev lo");
	world.asked = mmap(NULL, sizeof(*world.asked), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(world.asked != MAP_FAILED);
	world.asked->n = -1;
	world.listener = listen_at("::", PORT, 256);
	world.second = listen_at("::ffff:93.184.216.35", SECOND_PORT, 16);
	world.full = listen_at("::", FULL_PORT, 0);
	for (size_t i = 0; i < ARRAY_LEN(world.fillers); i++) {
		struct sockaddr_in at = {.sin_family = AF_INET,
			.sin_port = htons(FULL_PORT),
			.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

		world.fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		(void)connect(world.fillers[i], (struct sockaddr *)&at,
			sizeof(at)); /* it stays in the queue */
	}
	world.server = fork();
	if (world.server == 0)
		name_server_run(world.asked);
	for (int i = 0; i < 1000 && *(volatile int *)&world.asked->n < 0; i++)
		(void)poll(NULL, 0, 5);
	return world.asked->n == 0 ? 0 : -1;
}

int
world_teardown(void **state)
{
	(void)state;
	(void)kill(world.server, SIGKILL);
	(void)waitpid(world.server, NULL, 0);
	return 0;
}

/* ---- a dialer ---- */

void
pair(int *mine, int *theirs)
{
	struct err err;
	int both[2];

	assert_int_equal(ipc_pair(both, &err), 0);
	*mine = both[0];
	*theirs = both[1];
}

void
say(int edge, enum msg_type type, uint64_t tag, const struct buf *body, const int *fds, size_t nfds)
{
	auto_buf struct buf packed;
	struct err err = {0};
	int r;

	buf_init(&packed, IPC_MAX);
	ipc_pack(&packed, type, tag, buf_view(body));
	do {
		struct pollfd p = {.fd = edge, .events = POLLOUT};

		r = poll(&p, 1, 5000) == 1 ? ipc_write(edge, buf_view(&packed), fds, nfds, &err)
					   : err_set(&err, -ETIMEDOUT, "nothing is taken");
	} while (r == -EAGAIN);
	if (r < 0)
		fail_msg("%s", err.text);
}

int
sealed(const char *text, int seals)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

void
dialer_start(const char *origins, const uint16_t *ports, const char *first, const char *next)
{
	struct msg_dialer_begin begin = {0};
	auto_fd int memory = sealed(origins, SEALS);
	auto_fd int theirs_broker = -1, theirs_supervisor = -1;
	struct err err = {0};

	pair(&world.broker, &theirs_broker);
	pair(&world.supervisor, &theirs_supervisor);
	const int fds[] = {[FD_DIALER_BROKER - 3] = theirs_broker,
		[FD_DIALER_SUPERVISOR - 3] = theirs_supervisor,
		[FD_DIALER_ORIGINS - 3] = memory};
	const struct program_start start = {
		.path = DIALER, .uid = UID, .fds = fds, .nfds = ARRAY_LEN(fds)};

	world.dialer = program_start(&start, &world.pidfd, &err);
	if (world.dialer < 0)
		fail_msg("%s", err.text);
	for (; ports != NULL && *ports != 0; ports++)
		SAY(world.supervisor, 0, DIALER_PORTS, dialer_ports, NULL, 0, {.ports = {*ports}});
	(void)snprintf(begin.resolvers[0], sizeof(begin.resolvers[0]), "%s", first);
	(void)snprintf(begin.resolvers[1], sizeof(begin.resolvers[1]), "%s", next);
	SAY(world.supervisor, 0, DIALER_BEGIN, dialer_begin, NULL, 0, begin);
}

static void
close_kept(int *fd)
{
	if (*fd >= 0)
		(void)close(take_fd(fd));
}

void
dialer_end(void)
{
	program_end(&world.pidfd);
	close_kept(&world.broker);
	close_kept(&world.supervisor);
}

int
dialer_ended(void)
{
	siginfo_t info = {0};
	struct pollfd p = {.fd = world.pidfd, .events = POLLIN};

	assert_int_equal(poll(&p, 1, 15000), 1);
	assert_int_equal(waitid(P_PIDFD, (id_t)world.pidfd, &info, WEXITED | WNOWAIT), 0);
	return info.si_code == CLD_EXITED ? info.si_status : -info.si_status;
}

/* ---- what was seen ---- */

int
questions(const char *host, int type)
{
	int n = 0;

	for (int i = 0; i < world.asked->n; i++)
		n += strcasecmp(world.asked->row[i].name, host) == 0 &&
		     (type == 0 || world.asked->row[i].type == type);
	return n;
}

int
connections(int fd)
{
	int n = 0, c;

	while ((c = accept4(fd, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		(void)close(c);
		n++;
	}
	return n;
}

bool
closed(int edge)
{
	struct pollfd p = {.fd = edge, .events = POLLIN};

	return poll(&p, 1, 5000) == 1 && (p.revents & POLLHUP) != 0;
}
