/* SPDX-License-Identifier: Apache-2.0 */
/*
 * L4: when there is no descriptor for a connection. The real accept.c and its listeners in a network namespace of the test's; what would
 * become of a connection is in this file, so that it can hold as many as there are descriptors.
 */
#include "gateway/accept.h"
#include "gateway/allotment.h"
#include "gateway/conn.h"
#include "gateway/limits.h"
#include "gateway/names.h"
#include "gateway/verdict.h"

#include "lib/base/fd.h"
#include "lib/loop/loop.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>

#include <cmocka.h>

enum { LIMIT_FDS = 64, CLIENTS = 96, CLIENTS_FROM = 1000 };

static struct gateway gateway;
static int taken[CLIENTS]; /* what conn_new() was given */
static size_t ntaken, ntold;
static int client[CLIENTS];

void
conn_new(struct gateway *g, int fd, const struct meant *to)
{
	must(to->proxy && to->name.n == 0);
	taken[ntaken++] = fd;
	g->nconns++;
}

void
verdict_tell(struct gateway *g, const struct verdict_of *v)
{
	(void)g, (void)v;
	ntold++;
}

bool
allotment_name(struct gateway *g, struct view name)
{
	(void)g, (void)name;
	return true;
}

bool
allotment_coming(const struct gateway *g)
{
	(void)g;
	return false;
}

static int
listen_here(uint16_t *ret_port)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(fd, CLIENTS), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &n), 0);
	*ret_port = ntohs(at.sin_port);
	return fd;
}

static void
lo_up(void)
{
	auto_fd int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq lo = {.ifr_name = "lo"};

	assert_int_equal(ioctl(fd, SIOCGIFFLAGS, &lo), 0);
	lo.ifr_flags |= IFF_UP;
	assert_int_equal(ioctl(fd, SIOCSIFFLAGS, &lo), 0);
}

/* Clients are above the limit, so that they do not count. */
static void
clients_dial(uint16_t port, size_t n)
{
	const struct sockaddr_in at = {.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	for (size_t i = 0; i < n; i++) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

		client[i] = fcntl(fd, F_DUPFD_CLOEXEC, CLIENTS_FROM);
		(void)close(fd);
		assert_int_equal(connect(client[i], (const struct sockaddr *)&at, sizeof(at)), 0);
	}
}

static void
descriptors_limit(rlim_t n)
{
	struct rlimit r;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &r), 0);
	r.rlim_cur = n;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &r), 0);
}

static void
on_over(struct ev_loop *loop, ev_timer *w, int events)
{
	(void)w, (void)events;
	ev_break(loop, EVBREAK_ALL);
}

static void
run_ms(unsigned ms)
{
	ev_timer over;

	ev_now_update(gateway.loop); /* else what was done since the last turn counts */
	ev_timer_init(&over, on_over, ms / 1000.0, 0.0);
	ev_timer_start(gateway.loop, &over);
	(void)ev_run(gateway.loop, 0);
}

static uint64_t
cpu_us(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static size_t
reset_clients(void)
{
	size_t n = 0;
	char byte;

	for (size_t i = 0; i < CLIENTS; i++)
		n += recv(client[i], &byte, 1, MSG_DONTWAIT) < 0 && errno == ECONNRESET;
	return n;
}

static void
L4_without_descriptors_connections_are_reset_and_nothing_spins(void **state)
{
	struct err err = {0};
	uint16_t port;
	uint64_t before;
	int fd;

	(void)state;
	descriptors_limit(CLIENTS_FROM + CLIENTS + 16);
	assert_int_equal(unshare(CLONE_NEWNET), 0);
	lo_up();
	list_init(&gateway.listeners);
	list_init(&gateway.askers);
	list_init(&gateway.held);
	gateway.loop = loop_new();
	fd = listen_here(&port);
	assert_int_equal(listener_add(&gateway, fd, SOCKET_KIND_PROXY, port, &err), 0);
	listeners_begin(&gateway);
	clients_dial(port, CLIENTS);
	descriptors_limit(LIMIT_FDS);

	before = cpu_us();
	run_ms(500);
	assert_in_range(ntaken, LIMIT_FDS / 2, LIMIT_FDS);
	assert_int_equal(reset_clients(), CLIENTS - ntaken); /* none waits for ever */
	assert_in_range(cpu_us() - before, 0, 200000);
	assert_int_equal(ntold, 0);

	/* Not even the reserve: it rests, and goes on when there is one. */
	descriptors_limit((rlim_t)gateway.reserve);
	for (size_t i = 0; i < CLIENTS; i++)
		(void)close(client[i]);
	descriptors_limit(CLIENTS_FROM + CLIENTS + 16);
	clients_dial(port, 1);
	descriptors_limit((rlim_t)gateway.reserve);
	before = cpu_us();
	run_ms(500);
	assert_in_range(cpu_us() - before, 0, 100000);
	descriptors_limit(CLIENTS_FROM + CLIENTS + 16);
	before = ntaken;
	run_ms(300);
	assert_int_equal(ntaken, before + 1);
	assert_true(gateway.reserve >= 0);

	listeners_end(&gateway);
	for (size_t i = 0; i < ntaken; i++)
		(void)close(taken[i]);
	(void)close(client[0]);
	loop_free(gateway.loop);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(L4_without_descriptors_connections_are_reset_and_nothing_spins)};

	if (geteuid() != 0)
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
