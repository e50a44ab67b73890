/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the engine itself costs: CPU time of the real program per exec, per create + kill, per verdict, proposal and decision, between played
 * peers. Not a test; run it by hand: DEMILUNE_ENGINE=... bench_engine [rounds].
 */
#include "acts.h"
#include "gates.h"

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

/* One that is read about and shown, and one that is approved and carried out. */
static void
bench_actions(uint64_t rounds)
{
	struct acts a;
	uint64_t cpu, wall;

	acts_open(&a);
	a.p.settings.actions.pending_max = 1000000;
	a.p.settings.actions.task = (struct budgets){1000000, 1000000, 1000000, UINT64_C(1) << 40};
	a.p.settings.actions.tenant_day = a.p.settings.actions.task;
	acts_start(&a);
	for (uint64_t i = 0; i < rounds; i += 10000)
		(void)acts_grant(&a, "refund", NULL, 10000);
	(void)acts_grant(&a, "reply", NULL, 10000);
	cpu = cpu_ns(&a.p);
	wall = clock_mono_us();
	for (uint64_t i = 0; i < rounds; i++) {
		char order[16];

		(void)snprintf(order, sizeof(order), "%u", (unsigned)i);
		(void)acts_pending(&a, order, 1);
	}
	(void)printf("proposal       %7.1f us cpu %7.1f us wall (one sync)\n",
		(double)(cpu_ns(&a.p) - cpu) / 1e3 / (double)rounds,
		(double)(clock_mono_us() - wall) / (double)rounds);
	cpu = cpu_ns(&a.p);
	wall = clock_mono_us();
	for (uint64_t i = 0; i < rounds; i++) {
		char text[128];
		struct id id;

		(void)snprintf(text, sizeof(text),
			"{\"body\":\"b %u\",\"recipient\":\"a@b.example\",\"subject\":\"s\"}",
			(unsigned)i);
		acts_ask(&a, i, "reply", text);
		id = acts_proposed(&a, i, false);
		acts_decide(&a, &id, "anna", true);
		acts_decided(&a, acts_decision(&a), DENIAL_NONE, "anna", 1);
		acts_executed(&a, acts_execute(&a), ATTEMPT_SUCCEEDED);
		play_want(&a.p, a.p.api, MSG_PROPOSAL_ROW);
	}
	(void)printf("whole action   %7.1f us cpu %7.1f us wall (four syncs)\n",
		(double)(cpu_ns(&a.p) - cpu) / 1e3 / (double)rounds,
		(double)(clock_mono_us() - wall) / (double)rounds);
	acts_close(&a);
}

static int
by_time(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* One gateway, one verdict after the other; then eight gateways with 16 under way each. */
static void
bench_verdicts(void)
{
	enum { BOXES = 8, EACH = 960, DEPTH = 16 };
	static struct gates g;
	static uint64_t took[EACH];
	struct msg_verdict m = good_verdict();
	struct boxed b[BOXES];
	uint64_t cpu, wall;

	gates_open(&g);
	gates_start(&g);
	boxed_create(&g, &g.task, &b[0]);
	for (size_t i = 0; i < EACH; i++) {
		took[i] = clock_mono_us();
		(void)verdict_say(&g, &b[0], i, &m);
		took[i] = clock_mono_us() - took[i];
	}
	qsort(took, EACH, sizeof(took[0]), by_time);
	(void)printf("verdict        %7lu us p50 %7lu us p99 round trip\n",
		(unsigned long)took[EACH / 2], (unsigned long)took[EACH * 99 / 100]);
	for (size_t i = 0; i < BOXES; i++)
		boxed_create(&g, &g.task, &b[i]);
	cpu = cpu_ns(&g.p);
	wall = clock_mono_us();
	for (size_t n = 0; n < EACH; n += DEPTH) {
		for (size_t i = 0; i < BOXES; i++)
			for (size_t k = 0; k < DEPTH; k++)
				SAY_TAG(b[i].gateway, k, VERDICT, verdict, -1, m);
		for (size_t i = 0; i < BOXES; i++)
			for (size_t k = 0; k < DEPTH; k++)
				play_want(&g.p, b[i].gateway, MSG_VERDICT_KEPT);
	}
	wall = clock_mono_us() - wall;
	(void)printf("verdicts       %7.1f us cpu %7.0f a second\n",
		(double)(cpu_ns(&g.p) - cpu) / 1e3 / (BOXES * EACH),
		BOXES * EACH * 1e6 / (double)wall);
	gates_close(&g);
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
	bench_verdicts();
	bench_actions(rounds);
	return 0;
}
