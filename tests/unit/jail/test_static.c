/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A static executable enters and proves its jail, many times in children, and prints the
 * time. Passes when each of them did; the time is for a reader.
 */
#include "lib/jail/jail.h"

#include "test-syscalls.h"

#include <stdio.h>
#include <sys/wait.h>
#include <time.h>

enum { ROUNDS = 200, SKIPPED = 77 };

static const struct jail_rlimit limits[] = {{RLIMIT_NOFILE, 64}};
static const struct jail jail = {
	.uid = 64321,
	.gid = 64321,
	.rlimits = limits,
	.rlimits_n = ARRAY_LEN(limits),
	.filter = test_syscalls,
	.filter_n = ARRAY_LEN(test_syscalls),
};

static int64_t
now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void
child(int out)
{
	int64_t t[2] = {now_ns()};
	struct err err;

	if (jail_enter(&jail, &err) != 0 || jail_prove(&jail, &err) != 0) {
		(void)fprintf(stderr, "%s\n", err.text);
		_exit(1);
	}
	t[1] = now_ns();
	_exit(write(out, t, sizeof(t)) == sizeof(t) ? 0 : 1);
}

static int
order(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

int
main(void)
{
	static int64_t took[ROUNDS];
	int p[2];

	if (getuid() != 0)
		return SKIPPED;
	if (pipe(p) != 0)
		return 1;
	for (int i = 0; i < ROUNDS; i++) {
		int64_t t[2];
		int status = 0;
		pid_t pid = fork();

		if (pid == 0)
			child(p[1]);
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0 ||
			read(p[0], t, sizeof(t)) != sizeof(t)) {
			(void)fprintf(stderr, "round %d: status 0x%x\n", i, (unsigned int)status);
			return 1;
		}
		took[i] = t[1] - t[0];
	}
	qsort(took, ROUNDS, sizeof(took[0]), order);
	(void)printf("jail_enter + jail_prove, static, %zu instructions, %d rounds: p50 %lld us, "
		     "p99 %lld us\n",
		jail.filter_n, ROUNDS, (long long)took[ROUNDS / 2] / 1000,
		(long long)took[ROUNDS * 99 / 100] / 1000);
	return 0;
}
