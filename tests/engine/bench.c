/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the engine itself costs: CPU time of the real program per exec and per create + kill, between played
 * peers. Not a test; run it by hand: DEMILUNE_ENGINE=... bench_engine [rounds].
 */
#include "play.h"

#include "lib/base/num.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>

#include <cmocka.h>

/* Nanoseconds on a processor. */
static uint64_t
cpu_ns(struct play *p)
{
	char name[64], text[128] = {0};
	unsigned long long ns = 0;
	int fd;

	(void)snprintf(name, sizeof(name), "/proc/%d/schedstat", p->engine);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0);
	(void)close(fd);
	assert_int_equal(sscanf(text, "%llu", &ns), 1);
	return ns;
}

int
main(int argc, char **argv)
{
	struct play p;
	struct id sandbox, job;
	uint64_t rounds = 2000, cpu, wall;
	int relay;

	if (argc > 1 && num_u64(view_str(argv[1]), 1000000, &rounds) < 0)
		return 2;
	play_open(&p);
	p.settings.tenant_creates_per_minute = 1000000;
	play_start(&p);
	relay = play_create(&p, &sandbox, NULL);
	cpu = cpu_ns(&p);
	wall = clock_mono_us();
	for (uint64_t i = 0; i < rounds; i++) {
		play_run(&p, relay, &sandbox, &job);
		play_end_job(&p, relay, &job, 0);
		play_want(&p, p.api, MSG_JOB_ROW);
		play_want(&p, relay, MSG_JOB_RECORDED);
	}
	(void)printf("exec           %7.1f us cpu %7.1f us wall\n",
		(double)(cpu_ns(&p) - cpu) / 1e3 / (double)rounds,
		(double)(clock_mono_us() - wall) / (double)rounds);
	cpu = cpu_ns(&p);
	wall = clock_mono_us();
	rounds /= 4;
	for (uint64_t i = 0; i < rounds; i++) {
		struct id id;
		int r = play_create(&p, &id, NULL);

		ASK(&p, SANDBOX_KILL, sandbox_kill, {.caller = as_root, .sandbox = id});
		play_want(&p, p.supervisor, MSG_KILL);
		play_gone(&p, &id, SANDBOX_REASON_KILLED);
		play_want(&p, p.api, MSG_SANDBOX_ROW);
		(void)close(r);
		p.uid_next = 0x80010000;
	}
	(void)printf("create + kill  %7.1f us cpu %7.1f us wall (three syncs)\n",
		(double)(cpu_ns(&p) - cpu) / 1e3 / (double)rounds,
		(double)(clock_mono_us() - wall) / (double)rounds);
	(void)close(relay);
	play_close(&p);
	return 0;
}
