/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long SPAWN to SPAWNED and KILL to GONE take, seen by the engine: bench_supervisor [ROUNDS [LIVE]]. LIVE sandboxes
 * stand meanwhile. First on a host without policies, then on one with, where sandboxes without and with a policy take turns. With RIG_LIBEXEC
 * set to a directory with the real programs it uses them.
 */
#include "rig.h"

#include "lib/base/clock.h"
#include "lib/base/num.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { ROUNDS_MAX = 10000, LIVE_MAX = 256 };

static uint64_t rounds = 200, live;

static int
compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void
row(const char *what, uint64_t *us, size_t n)
{
	qsort(us, n, sizeof(*us), compare);
	(void)printf("%-28s p50 %6.2f ms   p90 %6.2f   p99 %6.2f   max %6.2f\n", what,
		(double)us[n / 2] / 1000, (double)us[n * 9 / 10] / 1000,
		(double)us[n * 99 / 100] / 1000, (double)us[n - 1] / 1000);
}

enum { STEPS = 5 };

struct series {
	const char *title;
	uint64_t spawn[ROUNDS_MAX], gone[ROUNDS_MAX], steps[STEPS][ROUNDS_MAX];
};

static void
print(struct series *s)
{
	static const char *const names[] = {"  order sent", "  mounted", "  about to execute",
		"  measured", "  teardown (its own clock)"};

	(void)printf("%s: %llu rounds, %llu other sandboxes\n", s->title,
		(unsigned long long)rounds, (unsigned long long)live);
	row("SPAWN to SPAWNED", s->spawn, rounds);
	for (size_t i = 0; i < STEPS - 1; i++)
		row(names[i], s->steps[i], rounds);
	row("KILL to GONE", s->gone, rounds);
	row(names[STEPS - 1], s->steps[STEPS - 1], rounds);
}

static void
calm(void)
{
	if (getenv("RIG_PAUSE") != NULL)
		pause_ms(30);
}

static void
one(struct rig *r, const char *policy, struct series *s, size_t i)
{
	struct msg_gone m;
	struct box b;
	uint64_t at = clock_mono_us();

	if (policy == NULL)
		rig_spawn(r, &b);
	else
		rig_spawn_policy(r, &b, policy);
	s->spawn[i] = clock_mono_us() - at;
	s->steps[0][i] = b.timings.cloned_us;
	s->steps[1][i] = b.timings.mounted_us;
	s->steps[2][i] = b.timings.started_us;
	s->steps[3][i] = b.timings.measured_us;
	calm();
	at = clock_mono_us();
	rig_kill_box(r, &b, &m);
	s->gone[i] = clock_mono_us() - at;
	s->steps[4][i] = m.proof.teardown_us;
	calm();
}

static void
host(const char *policy, struct series *without, struct series *with)
{
	static struct box boxes[LIVE_MAX];
	static struct greeting greeting;
	char line[64];
	struct rig r;

	rig_init(&r);
	if (policy != NULL) {
		(void)snprintf(line, sizeof(line), "%s\n", policy);
		rig_policies(&r, line);
	}
	rig_start(&r);
	rig_greeting(&r, &greeting);
	rig_template(&r);
	for (size_t i = 0; i < live; i++)
		rig_spawn(&r, &boxes[i]);
	pause_ms(200);
	for (size_t i = 0; i < rounds; i++) {
		one(&r, NULL, without, i);
		if (policy != NULL)
			one(&r, policy, with, i);
	}
	assert_int_equal(rig_stop(&r), 0);
	rig_done(&r);
}

static void
bench(void **state)
{
	static struct series none = {.title = "no policies"},
			     without = {.title = "none of the host's policies"},
			     with = {.title = "with a policy"};

	(void)state;
	host(NULL, &none, NULL);
	host("web - 80,443", &without, &with);
	print(&none);
	print(&without);
	print(&with);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(bench)};

	if ((argc > 1 && num_u64(view_str(argv[1]), ROUNDS_MAX, &rounds) < 0) ||
		(argc > 2 && num_u64(view_str(argv[2]), LIVE_MAX, &live) < 0))
		return 2;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
