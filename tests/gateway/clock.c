/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A clock that a test can put forward, preloaded into the gateway (rig.py): to both clocks of the system it adds the seconds that stand in
 * the file that GATEWAY_CLOCK names. So deadlines of minutes are tested in moments, and the program under test is the real one. A loop that
 * sleeps looks again 50 times a second.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { PIECE_MS = 20 };

static const volatile int64_t *forward_s;
static int (*real_gettime)(clockid_t, struct timespec *);
static int (*real_timeofday)(struct timeval *, void *);
static int (*real_wait)(int, struct epoll_event *, int, int);

__attribute__((constructor)) static void
begin(void)
{
	const char *path = getenv("GATEWAY_CLOCK");
	int fd = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
	void *at = mmap(NULL, sizeof(*forward_s), PROT_READ, MAP_SHARED, fd, 0);

	*(void **)&real_gettime = dlsym(RTLD_NEXT, "clock_gettime");
	*(void **)&real_timeofday = dlsym(RTLD_NEXT, "gettimeofday");
	*(void **)&real_wait = dlsym(RTLD_NEXT, "epoll_wait");
	if (at == MAP_FAILED)
		abort();
	forward_s = at;
	(void)close(fd);
}

int
clock_gettime(clockid_t which, struct timespec *ret)
{
	int r = real_gettime(which, ret);

	if (r == 0 && (which == CLOCK_MONOTONIC || which == CLOCK_REALTIME))
		ret->tv_sec += *forward_s;
	return r;
}

int
gettimeofday(struct timeval *restrict ret, void *restrict zone)
{
	int r = real_timeofday(ret, zone);

	if (r == 0)
		ret->tv_sec += *forward_s;
	return r;
}

int
epoll_wait(int fd, struct epoll_event *events, int n, int timeout_ms)
{
	bool longer = timeout_ms < 0 || timeout_ms > PIECE_MS;

	return real_wait(fd, events, n, longer ? PIECE_MS : timeout_ms);
}
