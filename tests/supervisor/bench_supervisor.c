/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long SPAWN to SPAWNED and KILL to GONE take, seen by the engine: bench_supervisor [ROUNDS [LIVE]]. LIVE sandboxes
 * stand meanwhile. With RIG_LIBEXEC set to a directory with the real programs it uses them.
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

static void
bench(void **state)
{
	static uint64_t spawn[ROUNDS_MAX], gone[ROUNDS_MAX], steps[5][ROUNDS_MAX];
	static struct box boxes[LIVE_MAX];
	static const char *const names[] = {"  order sent", "  mounted", "  about to execute",
		"  measured", "  teardown (its own clock)"};
	static struct greeting greeting;
	struct rig r;

	(void)state;
	rig_init(&r);
	rig_start(&r);
	rig_greeting(&r, &greeting);
	rig_template(&r);
	for (size_t i = 0; i < live; i++)
		rig_spawn(&r, &boxes[i]);
	pause_ms(200);
	for (size_t i = 0; i < rounds; i++) {
		struct msg_gone m;
		struct box b;
		uint64_t at = clock_mono_us();

		rig_spawn(&r, &b);
		spawn[i] = clock_mono_us() - at;
		steps[0][i] = b.timings.cloned_us;
		steps[1][i] = b.timings.mounted_us;
		steps[2][i] = b.timings.started_us;
		steps[3][i] = b.timings.measured_us;
		if (getenv("RIG_PAUSE") != NULL)
			pause_ms(30);
		at = clock_mono_us();
		rig_kill_box(&r, &b, &m);
		gone[i] = clock_mono_us() - at;
		steps[4][i] = m.proof.teardown_us;
		if (getenv("RIG_PAUSE") != NULL)
			pause_ms(30);
	}
	(void)printf("%llu rounds, %llu other sandboxes\n", (unsigned long long)rounds,
		(unsigned long long)live);
	row("SPAWN to SPAWNED", spawn, rounds);
	for (size_t i = 0; i < 4; i++)
		row(names[i], steps[i], rounds);
	row("KILL to GONE", gone, rounds);
	row(names[4], steps[4], rounds);
	assert_int_equal(rig_stop(&r), 0);
	rig_done(&r);
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
