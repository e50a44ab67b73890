/* SPDX-License-Identifier: Apache-2.0 */
/* Who is at the local socket: what an api that was taken over hands to the engine instead of somebody's connection. */
#include "play.h"

#include "lib/base/fd.h"
#include "lib/ipc/local_bounds.h"

#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/fsuid.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

enum { MINE = 3 };

static int
setup(void **state)
{
	static struct play play;

	play_open(&play);
	play_start(&play);
	*state = &play;
	return 0;
}

static int
teardown(void **state)
{
	play_close(*state);
	return 0;
}

static struct caller
caller_of(uint16_t local)
{
	return (struct caller){.kind = CALLER_KIND_LOCAL, .local = local};
}

static void
who_is(struct play *p, uint16_t local, const char *name)
{
	ASK(p, WHOAMI, whoami, {.caller = caller_of(local)});
	ANSWER(p, PRINCIPAL, principal, who);
	assert_true(view_is(who.name, name));
}

static void
nobody_is(struct play *p, uint16_t local)
{
	ASK(p, WHOAMI, whoami, {.caller = caller_of(local)});
	play_refused(p, ERROR_FORBIDDEN);
}

static void
open_with(struct play *p, uint16_t number, int fd)
{
	SAY_FD(p->api, LOCAL_OPEN, local_open, fd, {.local = number});
}

/* Such a descriptor is the end of this api, and nothing else. Takes fd. */
static void
api_ends(struct play *p, int fd)
{
	assert_true(fd >= 0);
	open_with(p, MINE, fd);
	(void)close(fd);
	play_want_closed(p, p->api);
	play_api_new(p);
	who_is(p, 0, "uid:0");
	nobody_is(p, MINE);
}

/* Such a connection is nobody's. Takes fd. */
static void
is_nobody(struct play *p, int fd)
{
	assert_true(fd >= 0);
	open_with(p, MINE, fd);
	(void)close(fd);
	nobody_is(p, MINE);
	who_is(p, 0, "uid:0");
	SAY(p->api, LOCAL_CLOSE, local_close, {.local = MINE});
}

static struct sockaddr_un
address(const char *dir, const char *name)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};

	(void)snprintf(at.sun_path, sizeof(at.sun_path), "%.60s/%.20s", dir, name);
	return at;
}

/* The path of the local socket is free for another, as it is in a mount namespace of somebody's own. */
static void
path_free(struct play *p)
{
	struct sockaddr_un at = address(p->dir, "api.sock"), aside = address(p->dir, "aside");

	assert_int_equal(rename(at.sun_path, aside.sun_path), 0);
}

static void
path_back(struct play *p)
{
	struct sockaddr_un at = address(p->dir, "api.sock"), aside = address(p->dir, "aside");

	assert_int_equal(rename(aside.sun_path, at.sun_path), 0);
}

static void
named(int fd, const char *dir, const char *name)
{
	struct sockaddr_un at = address(dir, name);

	(void)unlink(at.sun_path);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
}

/* A socket that the api made. */
static int
of_api(struct play *p, int family, int type)
{
	int fd;

	(void)setfsuid(p->settings.api_uid);
	fd = socket(family, type | SOCK_CLOEXEC, 0);
	(void)setfsuid(0);
	assert_true(fd >= 0);
	return fd;
}

static void
test_kernel_says_who(void **state)
{
	struct play *p = *state;

	who_is(p, 0, "uid:0");
	nobody_is(p, MINE);
	(void)play_local(p, MINE, 1000);
	who_is(p, MINE, "uid:1000");
	(void)play_local(p, 4, 4711);
	nobody_is(p, 4);
	nobody_is(p, LOCAL_BOUND - 1);
	nobody_is(p, LOCAL_BOUND);
	nobody_is(p, UINT16_MAX);
}

static void
test_numbers(void **state)
{
	struct play *p = *state;
	int client;

	(void)play_local(p, MINE, 1000);
	SAY(p->api, LOCAL_CLOSE, local_close, {.local = MINE});
	nobody_is(p, MINE);
	(void)play_local(p, MINE, 0);
	who_is(p, MINE, "uid:0");

	/* One that is open, or none, or not open: the end of the api. */
	api_ends(p, play_connect(p, 0, &client));
	(void)close(client);
	(void)play_local(p, MINE, 1000);
	api_ends(p, play_connect(p, 0, &client));
	(void)close(client);
	SAY_FD(p->api, LOCAL_OPEN, local_open, p->local, {.local = LOCAL_BOUND});
	play_want_closed(p, p->api);
	play_api_new(p);
	SAY(p->api, LOCAL_CLOSE, local_close, {.local = MINE});
	play_want_closed(p, p->api);
	play_api_new(p);
	SAY(p->api, LOCAL_CLOSE, local_close, {.local = UINT16_MAX});
	play_want_closed(p, p->api);
	play_api_new(p);
	who_is(p, 0, "uid:0");
}

/* Numbers are of one edge. */
static void
test_new_api_has_nobody(void **state)
{
	struct play *p = *state;

	(void)play_local(p, MINE, 1000);
	who_is(p, MINE, "uid:1000");
	play_api_new(p);
	nobody_is(p, MINE);
	(void)play_local(p, MINE, 1000);
	who_is(p, MINE, "uid:1000");
}

/* The supervisor made it, so its peer is root. */
static void
test_not_an_edge(void **state)
{
	struct play *p = *state;
	int pair[2];

	api_ends(p, fcntl(p->api, F_DUPFD_CLOEXEC, 0));
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	api_ends(p, pair[1]);
	(void)close(pair[0]);

	/* The same with the right name, as PID 1 of a sandbox could give it to its channel. */
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	path_free(p);
	named(pair[1], p->dir, "api.sock");
	path_back(p);
	api_ends(p, pair[1]);
	(void)close(pair[0]);
}

static void
test_not_the_listener(void **state)
{
	struct play *p = *state;
	int fd;

	api_ends(p, fcntl(p->local, F_DUPFD_CLOEXEC, 0));

	/* Nor one of its own. */
	fd = of_api(p, AF_UNIX, SOCK_STREAM);
	path_free(p);
	named(fd, p->dir, "api.sock");
	path_back(p);
	assert_int_equal(listen(fd, 1), 0);
	api_ends(p, fd);
}

static void
test_not_a_pair_of_its_own(void **state)
{
	struct play *p = *state;
	int pair[2], r;

	(void)setfsuid(p->settings.api_uid);
	r = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair);
	(void)setfsuid(0);
	assert_int_equal(r, 0);
	api_ends(p, pair[1]);
	(void)close(pair[0]);

	/* An edge with the right name. */
	(void)setfsuid(p->settings.api_uid);
	r = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair);
	(void)setfsuid(0);
	assert_int_equal(r, 0);
	path_free(p);
	named(pair[1], p->dir, "api.sock");
	path_back(p);
	api_ends(p, pair[1]);
	(void)close(pair[0]);
}

static void
test_not_another_socket(void **state)
{
	struct play *p = *state;
	static const char *const names[] = {"other", "api.sock2", "api.soc"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct sockaddr_un at = address(p->dir, names[i]);
		int listener = of_api(p, AF_UNIX, SOCK_STREAM),
		    client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), fd;

		named(listener, p->dir, names[i]);
		assert_int_equal(listen(listener, 1), 0);
		assert_int_equal(connect(client, (struct sockaddr *)&at, sizeof(at)), 0);
		(void)setfsuid(p->settings.api_uid);
		fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		(void)setfsuid(0);
		api_ends(p, fd);
		(void)close(client);
		(void)close(listener);
	}
}

/* Whoever else accepts there, it is not the api. */
static void
test_not_accepted_by_another(void **state)
{
	struct play *p = *state;
	struct sockaddr_un at = address(p->dir, "api.sock");
	int client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), fd;

	assert_int_equal(connect(client, (struct sockaddr *)&at, sizeof(at)), 0);
	fd = accept4(p->local, NULL, NULL, SOCK_CLOEXEC);
	api_ends(p, fd);
	(void)close(client);
}

/* A caller's own end shows who made the listener: root. */
static void
test_not_the_callers_end(void **state)
{
	struct play *p = *state;
	struct sockaddr_un aside = address(p->dir, "aside");
	int fd = of_api(p, AF_UNIX, SOCK_STREAM);

	path_free(p);
	named(fd, p->dir, "api.sock");
	assert_int_equal(connect(fd, (struct sockaddr *)&aside, sizeof(aside)), 0);
	path_back(p);
	is_nobody(p, fd);
	(void)close(accept4(p->local, NULL, NULL, SOCK_CLOEXEC));
}

static void
test_not_without_a_peer(void **state)
{
	struct play *p = *state;
	int fd = of_api(p, AF_UNIX, SOCK_STREAM);

	path_free(p);
	named(fd, p->dir, "api.sock");
	path_back(p);
	api_ends(p, fd);
}

static void
test_no_other_kind(void **state)
{
	struct play *p = *state;
	int pipes[2];

	api_ends(p, of_api(p, AF_UNIX, SOCK_DGRAM));
	api_ends(p, of_api(p, AF_UNIX, SOCK_SEQPACKET));
	api_ends(p, of_api(p, AF_INET, SOCK_STREAM));
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	api_ends(p, pipes[0]);
	(void)close(pipes[1]);
	api_ends(p, open(p->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	api_ends(p, open("/dev/null", O_RDWR | O_CLOEXEC));
}

static void
test_left(void **state)
{
	struct play *p = *state;
	int client, fd = play_connect(p, 0, &client);

	(void)close(client);
	is_nobody(p, fd);

	/* One that said all it has to say still waits for its answer. */
	fd = play_connect(p, 1000, &client);
	assert_int_equal(shutdown(client, SHUT_WR), 0);
	open_with(p, MINE, fd);
	who_is(p, MINE, "uid:1000");
	(void)close(fd);
	(void)close(client);
}

static void
test_named_caller(void **state)
{
	struct play *p = *state;
	struct sockaddr_un at = address(p->dir, "api.sock");
	int client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), fd;

	named(client, p->dir, "mine");
	assert_int_equal(connect(client, (struct sockaddr *)&at, sizeof(at)), 0);
	(void)setfsuid(p->settings.api_uid);
	fd = accept4(p->local, NULL, NULL, SOCK_CLOEXEC);
	(void)setfsuid(0);
	is_nobody(p, fd);
	(void)close(client);
}

static unsigned
descriptors(const struct play *p)
{
	char path[64];
	unsigned n = 0;
	DIR *d;

	(void)snprintf(path, sizeof(path), "/proc/%d/fd", p->engine);
	d = opendir(path);
	assert_non_null(d);
	while (readdir(d) != NULL)
		n++;
	(void)closedir(d);
	return n;
}

/* Nothing of a connection stays but its uid: its end is seen by the caller at once. */
static void
test_nothing_kept(void **state)
{
	struct play *p = *state;
	unsigned before;
	char byte;
	int client, fd;

	who_is(p, 0, "uid:0");
	before = descriptors(p);
	for (unsigned i = 1; i < LOCAL_BOUND; i++) {
		fd = play_connect(p, 1000, &client);
		open_with(p, (uint16_t)i, fd);
		who_is(p, (uint16_t)i, "uid:1000");
		(void)close(fd);
		(void)close(client);
	}
	who_is(p, 1, "uid:1000");
	assert_int_equal(descriptors(p), before);
	SAY(p->api, LOCAL_CLOSE, local_close, {.local = 1});
	fd = play_connect(p, 1000, &client);
	open_with(p, 1, fd);
	who_is(p, 1, "uid:1000");
	(void)close(fd);
	assert_int_equal(read(client, &byte, 1), 0);
	(void)close(client);
}

int
main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {CASE(test_kernel_says_who), CASE(test_numbers),
		CASE(test_new_api_has_nobody), CASE(test_not_an_edge), CASE(test_not_the_listener),
		CASE(test_not_a_pair_of_its_own), CASE(test_not_another_socket),
		CASE(test_not_accepted_by_another), CASE(test_not_the_callers_end),
		CASE(test_not_without_a_peer), CASE(test_no_other_kind), CASE(test_left),
		CASE(test_named_caller), CASE(test_nothing_kept)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
