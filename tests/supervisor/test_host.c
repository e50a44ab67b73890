/* SPDX-License-Identifier: Apache-2.0 */
/* What the supervisor asks of the kernel, piece by piece, as root: ways that this host does not take by itself. */
#include "rig.h"

#include "lib/base/hex.h"
#include "supervisor/cgroup.h"
#include "supervisor/image.h"
#include "supervisor/mount.h"
#include "supervisor/measure.h"
#include "supervisor/ns.h"
#include "supervisor/plumbing.h"
#include "supervisor/text.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#include <cmocka.h>

/* How many loop devices show this file. */
static unsigned
loops_of(const char *about)
{
	unsigned n = 0;

	for (int i = 0; i < 64; i++) {
		char path[64], text[512] = "";
		FILE *f;

		(void)snprintf(path, sizeof(path), "/sys/block/loop%d/loop/backing_file", i);
		f = fopen(path, "re");
		if (f == NULL)
			continue;
		n += fgets(text, sizeof(text), f) != NULL && strstr(text, about) != NULL;
		(void)fclose(f);
	}
	return n;
}

static void
mounts_and_goes(int (*way)(int, struct err *), unsigned loops)
{
	char name[512], text[65];
	struct err err = {0};
	struct statfs fs;
	struct stat st;
	struct rig r;
	int image, fd;

	rig_init(&r);
	hex_encode(r.image, 32, text);
	(void)snprintf(name, sizeof(name), "%s/templates/%s.erofs", r.settings.state_dir, text);
	image = open(name, O_RDONLY | O_CLOEXEC);
	assert_true(image >= 0);
	fd = way(image, &err);
	if (fd < 0)
		fail_msg("%s", err.text);
	assert_int_equal(loops_of(r.dir), loops);
	assert_int_equal(fstatfs(fd, &fs), 0);
	assert_int_equal(
		fs.f_flags & (ST_RDONLY | ST_NOSUID | ST_NODEV), ST_RDONLY | ST_NOSUID | ST_NODEV);
	assert_int_equal(fstatat(fd, "bin/busybox", &st, 0), 0);
	(void)close(image);
	(void)close(fd);
	for (int i = 0; loops_of(r.dir) != 0 && i < 100; i++)
		pause_ms(20);
	assert_int_equal(loops_of(r.dir), 0); /* it went with the mount */
	rig_done(&r);
}

static void
test_image_by_file(void **state)
{
	(void)state;
	mounts_and_goes(image_mount, 0);
}

static void
test_image_by_loop(void **state)
{
	(void)state;
	mounts_and_goes(image_mount_loop, 1);
}

/* Without a hierarchy that can limit memory there is no start, and the sentence says what is missing. */
static void
test_no_memory_limit(void **state)
{
	struct cgroups c;
	struct err err = {0};

	(void)state;
	if (cgroups_find(&c, CGROUP_V2, &err) == 0) {
		cgroups_end(&c);
		skip(); /* a host with everything on version 2 */
	}
	assert_non_null(strstr(err.text, "memory limit"));
	assert_non_null(strstr(err.text, "controller memory"));
	cgroups_end(&c);
}

/* Swap that no control group limits is memory beside the limit. */
static void
test_swap(void **state)
{
	static const char none[] = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n";
	static const char some[] = "Filename\tType\tSize\tUsed\tPriority\n"
				   "/swapfile file 1048572 0 -2\n";
	struct err err = {0};

	(void)state;
	assert_int_equal(cgroup_swap_check(false, view_str(none), &err), 0);
	assert_int_equal(cgroup_swap_check(true, view_str(some), &err), 0);
	assert_int_equal(cgroup_swap_check(false, view_str(some), &err), -ENOTSUP);
	assert_non_null(strstr(err.text, "swapaccount"));
}

/*
 * A host without IPv6: all of IPv4, nothing of IPv6. In a network namespace of a child's own; what it finds comes back as its exit status, so
 * that no assertion is lost there.
 */
enum { FINE, NO_NAMESPACE, NO_ROUTES, NO_SOCKETS, WRONG_SOCKET, WRONG_ROUTES, NOT_TWICE };

static bool
socket_is(int fd, const struct plumbing_socket *s)
{
	struct sockaddr_in at;
	socklen_t len = sizeof(at), n = sizeof(int);
	int in = 0, out = 0;

	/* Bounded, on each side: else the kernel lets it grow. */
	if (s->kind != SOCKET_KIND_DNS_UDP &&
		(getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &in, &n) < 0 ||
			getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &out, &n) < 0 || in != 2 * 131072 ||
			out != 2 * 131072))
		return false;
	return getsockname(fd, (struct sockaddr *)&at, &len) == 0 && at.sin_family == AF_INET &&
	       ntohs(at.sin_port) == s->port &&
	       at.sin_addr.s_addr ==
		       htonl(s->kind == SOCKET_KIND_PROXY ? INADDR_LOOPBACK : INADDR_ANY);
}

static int
plumb_alone(const struct plumbing *p, uint8_t captured)
{
	static char room[65536];
	int fds[PLUMBING_SOCKETS_MAX];
	struct facts f = {0};
	struct err err = {0};
	struct view text;

	if (unshare(CLONE_NEWNET) < 0 || ns_lo_up(&err) < 0)
		return NO_NAMESPACE;
	if (plumbing_routes(p, &err) < 0)
		return NO_ROUTES;
	if (plumbing_sockets(p, fds, &err) < 0)
		return NO_SOCKETS;
	for (size_t i = 0; i < plumbing_count(p); i++) {
		const struct plumbing_socket s = plumbing_socket(p, i);

		if (!socket_is(fds[i], &s))
			return WRONG_SOCKET;
	}
	if (text_file(AT_FDCWD, "/proc/self/net/fib_trie", room, sizeof(room), &text) < 0)
		return WRONG_ROUTES;
	measure_routes4(text, &f);
	if (text_file(AT_FDCWD, "/proc/self/net/ipv6_route", room, sizeof(room), &text) == 0)
		measure_routes6(text, &f);
	if (f.captured != captured || f.routes != 0)
		return WRONG_ROUTES;
	/* What is there already is an error, and nothing stays open of it. */
	int next = dup(0);

	(void)close(next);
	if (plumbing_routes(p, &err) == 0 || plumbing_sockets(p, fds, &err) == 0 || dup(0) != next)
		return NOT_TWICE;
	return FINE;
}

static void
test_plumbing_without_ipv6(void **state)
{
	const struct plumbing rows[] = {
		{.wanted = true, .ports = {80, 443}}, {.wanted = true, .capture = true}};
	const uint8_t captured[] = {
		CAPTURED_POOL4 | CAPTURED_DUMMY4, CAPTURED_ALL4 | CAPTURED_DUMMY4};

	(void)state;
	assert_int_equal(plumbing_count(&rows[0]), 5);
	assert_int_equal(plumbing_count(&(struct plumbing){.ports = {80}}), 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		pid_t pid = fork();
		int status;

		if (pid == 0)
			_exit(plumb_alone(&rows[i], captured[i]));
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, W_EXITCODE(FINE, 0));
	}
}

static void
test_user_namespace(void **state)
{
	struct err err = {0};
	int fd;

	(void)state;
	fd = ns_user_make(3000000000U, 65536, &err);
	if (fd < 0)
		fail_msg("%s", err.text);
	(void)close(fd);
	assert_true(ns_user_make(UINT32_MAX, 65536, &err) <
		    0); /* the kernel refuses, and nothing stays */
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_image_by_file),
		cmocka_unit_test(test_image_by_loop), cmocka_unit_test(test_no_memory_limit),
		cmocka_unit_test(test_swap), cmocka_unit_test(test_user_namespace),
		cmocka_unit_test(test_plumbing_without_ipv6)};

	if (geteuid() != 0)
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
