/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Timeouts, cancellation and what becomes of descendants, in a real agent behind a real relay. A number in a
 * name is that of the field's list of failures.
 */
#include "world.h"

#include "lib/base/clock.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static struct world world;

#define auto_result __attribute__((cleanup(result_done)))

static void
assert_out(const struct result *r, const char *text)
{
	if (!view_is(buf_view(&r->out), text))
		fail_msg("output is \"%.*s\", not \"%s\"", VIEW_ARGS(buf_view(&r->out)), text);
}

/* Runs it with this timeout and says how long it took, in ms. */
static uint64_t
run_for(const char *command, uint64_t timeout_ms, uint32_t uid, struct result *r)
{
	auto_buf struct buf room = {.max = 1 << 17};
	struct msg_job_start m = start_shell(&world, &room, command);
	uint64_t start = clock_mono_ms();

	m.timeout_ms = timeout_ms;
	m.uid = uid;
	world_run(&world, &m, NULL, r);
	return clock_mono_ms() - start;
}

/* How many processes there are in the sandbox, as the host sees them: PID 1 and this many more. */
static unsigned
processes(void)
{
	char path[128], line[64];
	unsigned n = 0;
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/cgroup.procs", world.cgroup);
	f = fopen(path, "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f) != NULL)
		n++;
	(void)fclose(f);
	return n;
}

/* Nothing but PID 1 within this time. */
static void
assert_alone(unsigned ms)
{
	uint64_t end = clock_mono_ms() + ms;

	while (processes() > 1 && clock_mono_ms() < end)
		(void)usleep(2000);
	assert_int_equal(processes(), 1);
}

static void
assert_timeout(const struct result *r, uint64_t took, uint64_t timeout, uint64_t slack)
{
	assert_true(r->end.timed_out);
	assert_false(r->end.cancelled);
	assert_int_equal(r->end.end, JOB_END_SIGNALLED);
	assert_int_equal(r->end.code, SIGKILL);
	if (took < timeout || took > timeout + slack)
		fail_msg("a timeout of %u ms took %u ms", (unsigned)timeout, (unsigned)took);
	assert_alone(50); /* the reaper reports before it is gone itself */
}

static void
d26_d29_timeout_ends_all(void **state)
{
	static const char *const commands[] = {
		"sleep 300",
		"sleep 300 & wait",
		"sh -c 'python3 -m http.server 8099 & wait'",
		"setsid sleep 300 & setsid -f sleep 301; sleep 300",
		"(setsid sh -c '(sleep 300 &) ; sleep 301' &) ; sleep 302",
		"trap '' TERM INT HUP; while :; do sleep 1; done",
		"kill -STOP $$",
		"sleep 300 & kill -STOP $!; wait",
		"for i in $(seq 100); do sleep 300 & done; wait",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		for (uint32_t uid = 0; uid <= 10001; uid += 10001) {
			auto_result struct result r;
			uint64_t took = run_for(commands[i], 300, uid, &r);

			assert_timeout(&r, took, 300, 1000);
		}
}

static void
d25_port_is_closed(void **state)
{
	auto_result struct result r, probe;
	uint64_t took;

	(void)state;
	took = run_for("sh -c 'python3 -m http.server 8098 & wait'", 1500, 10001, &r);
	assert_timeout(&r, took, 1500, 1000);
	world_shell(&world,
		"python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", 8098))' 2>&1 "
		"| grep -c refused",
		&probe);
	assert_out(&probe, "1\n");
}

static void
d27_setsid_writer_stops(void **state)
{
	auto_result struct result r, after;
	uint64_t took;

	(void)state;
	took = run_for("setsid sh -c 'while :; do date >>/tmp/f; sleep 0.01; done' & sleep 100",
		300, 10001, &r);
	assert_timeout(&r, took, 300, 1000);
	world_shell(&world,
		"a=$(wc -c </tmp/f); sleep 0.3; b=$(wc -c </tmp/f); test $a -gt 0 && echo $((b - "
		"a))",
		&after);
	assert_out(&after, "0\n");
}

/* What forks as fast as it can, in several shapes, and hides from /proc where it can. */
static void
racers_are_ended(void **state)
{
	static const char *const commands[] = {
		"while :; do setsid sleep 100 & done 2>/dev/null",
		"f() { f | f & }; f; sleep 100",
		/* A chain: each link forks the next and ends at once. */
		"python3 -c 'import os\nwhile 1:\n  try:\n    if os.fork(): os._exit(0)\n    "
		"os.setsid()\n  except OSError: pass' & sleep 100",
		/* The same, many of them, not dumpable and so not to be seen by others of the uid. */
		"python3 -c 'import os, ctypes\nctypes.CDLL(None).prctl(4, 0)\nfor i in range(5): "
		"os.fork()\n"
		"while 1:\n  try:\n    if os.fork(): os._exit(0)\n    os.setsid()\n  except "
		"OSError: pass' & sleep 100",
		/* A tree 200 deep, each of its own session. */
		"python3 -c 'import os, time\nfor i in range(200):\n  if os.fork(): "
		"time.sleep(1000)\n  os.setsid()\ntime.sleep(1000)' & sleep 100",
		/* One that reaps its own children, so that no zombie of them stays. */
		"python3 -c 'import os\nwhile 1:\n  try:\n    p = os.fork()\n    if p == 0:\n      "
		"os.setsid()\n      if os.fork(): os._exit(0)\n"
		"      continue\n    os.waitpid(p, 0)\n  except OSError: pass' & sleep 100",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
		auto_result struct result r;
		uint64_t took = run_for(commands[i], 600, 10001, &r);

		print_message("racer %zu: %u ms over\n", i, (unsigned)(took - 600));
		/* The machine that runs this does other things too; what counts is to be in time for the relay. */
		assert_timeout(&r, took, 600, 1900);
	}
}

static void
reaper_cannot_be_harmed(void **state)
{
	static const uint32_t uids[] = {10001, 0};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(uids); i++) {
		auto_result struct result r, t;
		uint64_t took = run_for(
			"kill -9 $PPID && echo killed; kill -STOP $PPID && echo stopped; kill -9 "
			"1; "
			"for p in $(seq 2 60); do test $p != $$ && test -e /proc/$p/mem && : "
			"</proc/$p/mem && echo mem $p; done; "
			"kill -TERM 1; kill -INT 1; kill -CHLD 1; kill -PIPE 1; echo over",
			5000, uids[i], &r);

		assert_true(took < 5000);
		assert_out(&r, "over\n");
		/* All that may be signalled is: the reaper and PID 1 are not among it. */
		took = run_for("kill -9 -1; sleep 100 & setsid sleep 100 & wait", 300, uids[i], &t);
		assert_true(took < 1300);
		assert_alone(50); /* the reaper reports before it is gone itself */
	}
}

static void
cancel_ends_all(void **state)
{
	auto_buf struct buf room = {.max = 4096};
	auto_result struct result r;
	struct msg_job_start m = start_shell(
		&world, &room, "setsid sleep 300 & echo ready; sleep 300");
	uint64_t start;

	(void)state;
	m.timeout_ms = 0;
	world_begin(&world, &m, true, &r);
	while (r.out.n < 6)
		(void)world_until(&world, &r, is_complete, 20);
	start = clock_mono_ms();
	SEND(&world, JOB_SIGNAL, job_signal, -1, {.job = r.job, .signal = 0});
	SEND(&world, JOB_SIGNAL, job_signal, -1, {.job = r.job, .signal = 0});
	assert_true(world_until(&world, &r, is_complete, 5000));
	assert_true(clock_mono_ms() - start < 1000);
	assert_true(r.end.cancelled && !r.end.timed_out && !r.end.holders);
	assert_int_equal(r.end.end, JOB_END_SIGNALLED);
	assert_alone(50); /* the reaper reports before it is gone itself */
	SEND(&world, JOB_RECORDED, job_recorded, -1, {.job = r.job});
}

static void
flood_can_be_cancelled(void **state)
{
	auto_buf struct buf room = {.max = 4096};
	auto_result struct result r;
	struct msg_job_start m = start_shell(&world, &room, "yes");
	uint64_t took;

	(void)state;
	m.timeout_ms = 400;
	m.live = false;
	world_run(&world, &m, NULL, &r);
	took = r.end.wall_us / 1000;
	assert_true(r.end.timed_out && took < 1400);
	assert_true(r.end.stdout_seen > (1 << 20) && r.end.stdout_kept <= 1 << 20);
	/* A caller that reads nothing holds nobody up either. */
	m = start_shell(&world, &room, "yes");
	m.timeout_ms = 400;
	result_done(&r);
	world_begin(&world, &m, false, &r);
	assert_true(world_until(&world, &r, is_ended, 3000));
	assert_true(r.end.timed_out);
	SEND(&world, JOB_RECORDED, job_recorded, -1, {.job = r.job});
}

static void
e30_e31_no_zombies(void **state)
{
	auto_result struct result r, count;
	unsigned zombies = 0, n = 0;
	char path[128], line[256];
	FILE *procs;

	(void)state;
	world_shell(&world,
		"for i in $(seq 500); do (true &); done; for i in $(seq 50); do (setsid sleep 0.01 "
		"&); done; echo made",
		&r);
	assert_out(&r, "made\n");
	(void)usleep(300000);
	(void)snprintf(path, sizeof(path), "%s/cgroup.procs", world.cgroup);
	procs = fopen(path, "re");
	assert_non_null(procs);
	while (fgets(line, sizeof(line), procs) != NULL)
		n++;
	(void)fclose(procs);
	assert_int_equal(n, 1);
	/* cgroup.procs lists no zombies; the limit's counter does. */
	(void)snprintf(path, sizeof(path), "%s/pids.current", world.cgroup);
	procs = fopen(path, "re");
	assert_non_null(procs);
	assert_non_null(fgets(line, sizeof(line), procs));
	(void)fclose(procs);
	assert_int_equal(sscanf(line, "%u", &zombies), 1);
	assert_int_equal(zombies, 1);
	world_shell(&world, "echo fine", &count);
	assert_out(&count, "fine\n");
}

static void
no_process_left_is_told(void **state)
{
	auto_result struct result r, after;
	auto_buf struct buf room = {.max = 4096};
	const char *args[] = {"true", NULL};
	struct msg_job_start m;
	bool told = false;

	(void)state;
	/* Takes each slot that falls free, for two seconds, and is itself in the background. */
	world_shell(&world,
		"setsid python3 -c 'import os, time\nend = time.time() + 2\nwhile time.time() < "
		"end:\n  try:\n"
		"    if os.fork() == 0:\n      time.sleep(2)\n      os._exit(0)\n  except OSError: "
		"time.sleep(0.0001)' "
		">/dev/null 2>&1 & sleep 0.7",
		&r);
	for (int i = 0; i < 20 && !told; i++) {
		auto_result struct result refused;

		m = start_argv(&world, &room, args);
		world_run(&world, &m, NULL, &refused);
		told = refused.end.end == JOB_END_NOT_STARTED;
		if (told)
			assert_int_equal(refused.end.code, EAGAIN);
	}
	assert_true(told);
	assert_alone(4000);
	world_shell(&world, "echo fine", &after);
	assert_out(&after, "fine\n");
}

static int
open_world(void **state)
{
	(void)state;
	world_start(&world, &(struct world_options){.pids = 400});
	world_open(&world);
	return 0;
}

static int
close_world(void **state)
{
	(void)state;
	world_stop(&world);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(d26_d29_timeout_ends_all),
		cmocka_unit_test(d25_port_is_closed),
		cmocka_unit_test(d27_setsid_writer_stops),
		cmocka_unit_test(racers_are_ended),
		cmocka_unit_test(reaper_cannot_be_harmed),
		cmocka_unit_test(cancel_ends_all),
		cmocka_unit_test(flood_can_be_cancelled),
		cmocka_unit_test(e30_e31_no_zombies),
		cmocka_unit_test(no_process_left_is_told),
	};

	if (getuid() != 0)
		return 77; /* skipped: namespaces and uids need root */
	return cmocka_run_group_tests(tests, open_world, close_world);
}
