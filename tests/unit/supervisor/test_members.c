/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of processes as control groups give them, played by files: long ones, broken ones, and one that changes while it is read. */
#include "supervisor/cgroup.h"
#include "supervisor/members.h"

#include "lib/base/err.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char place[] = "/tmp/members-XXXXXX";
static int dir = -1;

static int
setup(void **state)
{
	(void)state;
	if (mkdtemp(place) == NULL)
		return -1;
	dir = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dir < 0 || mkdirat(dir, "g", 0700) < 0 ? -1 : 0;
}

static int
teardown(void **state)
{
	(void)state;
	(void)unlinkat(dir, "g/cgroup.procs", 0);
	(void)unlinkat(dir, "g/other", 0);
	(void)unlinkat(dir, "g", AT_REMOVEDIR);
	return rmdir(place);
}

static void
list_is(const char *name, const char *text, size_t n)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, n), (ssize_t)n);
	assert_int_equal(close(fd), 0);
}

#define LIST(text) list_is("g/cgroup.procs", text, sizeof(text) - 1)

static unsigned
counted(void)
{
	const struct cgroups c = {.h[0] = {.version = 1, .own = -1, .parent = dir}, .n = 1};

	return cgroup_processes(&c, "g");
}

static void
test_counts(void **state)
{
	(void)state;
	assert_int_equal(counted(), 0); /* no such group */
	LIST("");
	assert_int_equal(counted(), 0);
	LIST("1\n");
	assert_int_equal(counted(), 1);
	LIST("2147483647\n7\n");
	assert_int_equal(counted(), 2);
}

/* Half a megabyte, so that lines are cut at every place of a piece. */
static void
test_counts_many(void **state)
{
	enum { MANY = 70000 };
	char *text = malloc(MANY * 8);
	size_t n = 0;

	(void)state;
	assert_non_null(text);
	for (unsigned i = 1; i <= MANY; i++)
		n += (size_t)snprintf(text + n, 9, "%u\n", i);
	list_is("g/cgroup.procs", text, n);
	free(text);
	assert_int_equal(counted(), MANY);
}

static void
test_not_known_is_not_zero(void **state)
{
	static const char *const broken[] = {"12", "1\n2", "x\n", "\n", "1\n\n2\n", "-1\n",
		"2147483648\n", "111111111111111111111111", "1 \n"};

	(void)state;
	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
		list_is("g/cgroup.procs", broken[i], strlen(broken[i]));
		assert_int_equal(counted(), MEMBERS_UNKNOWN);
	}
	assert_int_equal(unlinkat(dir, "g/cgroup.procs", 0), 0);
	assert_int_equal(mkdirat(dir, "g/cgroup.procs", 0700), 0); /* opens, and cannot be read */
	assert_int_equal(counted(), MEMBERS_UNKNOWN);
	assert_int_equal(unlinkat(dir, "g/cgroup.procs", AT_REMOVEDIR), 0);
	assert_int_equal(symlinkat("cgroup.procs", dir, "g/cgroup.procs"), 0); /* does not open */
	assert_int_equal(counted(), MEMBERS_UNKNOWN);
	assert_int_equal(unlinkat(dir, "g/cgroup.procs", 0), 0);
}

/* ---- killing ---- */

static pid_t
sleeper(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		(void)alarm(30);
		(void)pause();
		_exit(0);
	}
	assert_true(pid > 0);
	return pid;
}

static void
assert_killed(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void
assert_lives(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
	assert_int_equal(kill(pid, SIGTERM), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

/* More than are held at a time. */
static void
test_kills_all(void **state)
{
	enum { MANY = 150 };
	pid_t pids[MANY];
	char text[MANY * 12];
	size_t n = 0;

	(void)state;
	for (size_t i = 0; i < MANY; i++) {
		pids[i] = sleeper();
		n += (size_t)snprintf(text + n, 12, "%d\n", pids[i]);
	}
	list_is("g/cgroup.procs", text, n);
	members_kill(dir, "g/cgroup.procs");
	for (size_t i = 0; i < MANY; i++)
		assert_killed(pids[i]);
	assert_int_equal(unlinkat(dir, "g/cgroup.procs", 0), 0);
}

struct change {
	char text[64];
};

/* The reader has the pipe open: its next look finds the other list. */
static void *
change_while_read(void *arg)
{
	const struct change *c = arg;
	int fd = openat(dir, "g/cgroup.procs", O_WRONLY | O_CLOEXEC);
	bool fine = fd >= 0 && renameat(dir, "g/other", dir, "g/cgroup.procs") == 0 &&
		    write(fd, c->text, strlen(c->text)) == (ssize_t)strlen(c->text);

	return close(fd) == 0 && fine ? NULL : arg;
}

/* A number that the first look saw and the second does not is another process by now, or one that left. */
static void
test_kills_no_stranger(void **state)
{
	pid_t member = sleeper(), stranger = sleeper();
	struct change c;
	char second[16];
	pthread_t thread;
	void *failed;

	(void)state;
	(void)snprintf(c.text, sizeof(c.text), "%d\n%d\n", stranger, member);
	list_is("g/other", second, (size_t)snprintf(second, sizeof(second), "%d\n", member));
	assert_int_equal(mkfifoat(dir, "g/cgroup.procs", 0600), 0);
	assert_int_equal(pthread_create(&thread, NULL, change_while_read, &c), 0);
	members_kill(dir, "g/cgroup.procs");
	assert_int_equal(pthread_join(thread, &failed), 0);
	assert_null(failed);
	assert_killed(member);
	assert_lives(stranger);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_counts),
		cmocka_unit_test(test_counts_many), cmocka_unit_test(test_not_known_is_not_zero),
		cmocka_unit_test(test_kills_all), cmocka_unit_test(test_kills_no_stranger)};

	(void)alarm(60);
	return cmocka_run_group_tests(tests, setup, teardown);
}
