/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands in a real agent behind a real relay. A number in a name is that of the field's list of failures
 * (C18: a background child blocks the call, ...), which this suite follows.
 */
#include "world.h"

#include "lib/base/clock.h"

#include <errno.h>
#include <fcntl.h>
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

static void
assert_exit(const struct result *r, int code)
{
	assert_int_equal(r->end.end, JOB_END_EXITED);
	assert_int_equal(r->end.code, code);
}

static void
assert_signal(const struct result *r, int signal)
{
	assert_int_equal(r->end.end, JOB_END_SIGNALLED);
	assert_int_equal(r->end.code, signal);
}

static void
assert_not_started(const struct result *r, int code)
{
	assert_int_equal(r->end.end, JOB_END_NOT_STARTED);
	assert_int_equal(r->end.code, code);
}

static void
exit_code_and_both_outputs(void **state)
{
	auto_result struct result r;

	(void)state;
	world_shell(&world, "echo hello; echo oops >&2; exit 7", &r);
	assert_exit(&r, 7);
	assert_out(&r, "hello\n");
	assert_true(view_is(buf_view(&r.err), "oops\n"));
	assert_true(r.out_end);
	assert_int_equal(r.end.stdout_seen, 6);
	assert_int_equal(r.end.stderr_seen, 5);
	assert_false(r.end.holders);
	assert_true(r.end.wall_us > 0 && r.end.memory_peak_bytes > 100000);
}

/* Jobs are born to go first when memory runs out; PID 1 has its own score again, and no job has its descriptor. */
static void
jobs_go_first(void **state)
{
	auto_result struct result r;
	char path[64], score[16] = "";
	FILE *f;

	(void)state;
	world_shell(&world, "cat /proc/self/oom_score_adj; ls /proc/self/fd | tr '\\n' ' '", &r);
	assert_out(&r, "1000\n0 1 2 3 "); /* 3 is the directory that ls reads */
	(void)snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", world.agent);
	f = fopen(path, "re");
	assert_non_null(f);
	assert_non_null(fgets(score, sizeof(score), f));
	(void)fclose(f);
	f = fopen("/proc/self/oom_score_adj", "re");
	assert_non_null(f);
	assert_non_null(fgets(path, sizeof(path), f));
	(void)fclose(f);
	assert_string_equal(score, path); /* the world's agent inherited ours */
	assert_string_not_equal(score, "1000\n");
}

static void
signalled_is_told(void **state)
{
	auto_result struct result r;

	(void)state;
	world_shell(&world, "kill -SEGV $$", &r);
	assert_signal(&r, SIGSEGV);
}

static void
words_not_shell(void **state)
{
	const char *args[] = {"printf", "%s|%s", "a b", "$HOME;*", NULL};
	auto_buf struct buf room = {.max = 4096};
	auto_result struct result r;
	struct msg_job_start m = start_argv(&world, &room, args);

	(void)state;
	world_run(&world, &m, NULL, &r);
	assert_exit(&r, 0);
	assert_out(&r, "a b|$HOME;*");
}

static void
environment_is_what_start_carried(void **state)
{
	const char *args[] = {"/usr/bin/env", NULL};
	auto_buf struct buf room = {.max = 4096};
	auto_result struct result r;
	struct msg_job_start m = start_argv(&world, &room, args);

	(void)state;
	m.env = view_of("A=1\0B=\xff\xfe", 9);
	world_run(&world, &m, NULL, &r);
	assert_exit(&r, 0);
	assert_out(&r, "A=1\nB=\xff\xfe\n");
}

static void
not_started_says_why(void **state)
{
	static const struct {
		const char *word, *cwd;
		int code;
	} cases[] = {
		{"no-such-program", "/tmp", ENOENT},
		{"/no/such", "/tmp", ENOENT},
		{"/etc/passwd", "/tmp", EACCES},
		{"/tmp", "/tmp", EACCES},
		{"", "/tmp", ENOENT},
		{"true", "/no/such/dir", ENOENT},
		{"true", "/etc/passwd", ENOTDIR},
		{"true", "/root", EACCES},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *args[] = {cases[i].word, NULL};
		auto_buf struct buf room = {.max = 4096};
		auto_result struct result r;
		struct msg_job_start m = start_argv(&world, &room, args);

		m.path = view_str(cases[i].cwd);
		world_run(&world, &m, NULL, &r);
		assert_not_started(&r, cases[i].code);
	}
}

static void
bad_argv_is_refused(void **state)
{
	static const struct {
		const char *argv;
		size_t n;
	} cases[] = {{"", 0}, {"true", 4}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *args[] = {"true", NULL};
		auto_buf struct buf room = {.max = 4096};
		auto_result struct result r;
		struct msg_job_start m = start_argv(&world, &room, args);

		m.argv = view_of(cases[i].argv, cases[i].n);
		world_run(&world, &m, NULL, &r);
		assert_not_started(&r, EINVAL);
	}
}

static void
long_argv_passes(void **state)
{
	auto_buf struct buf command = {.max = 1 << 18}, room = {.max = 1 << 18};
	auto_result struct result r;
	struct msg_job_start m;

	(void)state;
	buf_add_str(&command, "printf %s ");
	for (int i = 0; i < 130000; i++)
		buf_add_byte(&command, 'x');
	buf_add_str(&command, " | wc -c");
	buf_add_byte(&command, 0);
	m = start_shell(&world, &room, (const char *)command.p);
	world_run(&world, &m, NULL, &r);
	/* One word of more than 128 KiB is the kernel's own limit. */
	assert_exit(&r, 0);
	assert_out(&r, "130000\n");
}

static void
users(void **state)
{
	static const uint32_t uids[] = {10001, 0};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(uids); i++) {
		auto_buf struct buf room = {.max = 4096};
		auto_result struct result r;
		char expected[256];
		struct msg_job_start m = start_shell(&world, &room,
			"id -u; id -g; id -G; grep -E '^(Cap(Inh|Prm|Eff|Bnd|Amb)|NoNewPrivs)' "
			"/proc/self/status | tr -d '\\t'; umask");

		m.uid = uids[i];
		world_run(&world, &m, NULL, &r);
		(void)snprintf(expected, sizeof(expected),
			"%u\n%u\n%u\nCapInh:0000000000000000\nCapPrm:0000000000000000\nCapEff:"
			"0000000000000000\n"
			"CapBnd:0000000000000000\nCapAmb:0000000000000000\nNoNewPrivs:1\n0022\n",
			uids[i], uids[i], uids[i]);
		assert_out(&r, expected);
	}
}

static void
nothing_of_the_agent_is_inherited(void **state)
{
	auto_result struct result r;

	(void)state;
	world_shell(&world, "ls /proc/self/fd | tr '\\n' ' '; readlink /proc/self/fd/0", &r);
	assert_out(&r, "0 1 2 3 /dev/null\n"); /* 3 is ls's own */
}

static void
f34_signals_are_reset(void **state)
{
	auto_result struct result r, pipe;

	(void)state;
	world_shell(&world, "grep -E '^Sig(Ign|Blk)' /proc/self/status | tr -d '\\t'", &r);
	assert_out(&r, "SigBlk:0000000000000000\nSigIgn:0000000000000000\n");
	world_shell(&world, "yes | head -2; echo ${PIPESTATUS[0]}", &pipe);
	assert_out(&pipe, "y\ny\n141\n");
}

static void
c18_background_child_does_not_block(void **state)
{
	auto_result struct result r;
	uint64_t start = clock_mono_ms();

	(void)state;
	world_shell(&world, "sleep 60 & echo $!", &r);
	assert_exit(&r, 0);
	assert_true(clock_mono_ms() - start < 1000);
	assert_true(r.end.holders);
	assert_true(r.out.n > 0);
}

static void
background_server_lives_on(void **state)
{
	auto_result struct result r, again, end;

	(void)state;
	/* It writes to the output that nobody reads any more, and must not die of it. */
	world_shell(&world,
		"setsid sh -c 'while :; do echo tick; echo tick >>/tmp/ticks; sleep 0.02; done' & "
		"echo $! >/tmp/pid",
		&r);
	assert_exit(&r, 0);
	assert_true(r.end.holders);
	world_shell(&world,
		"a=$(wc -c </tmp/ticks); sleep 0.4; b=$(wc -c </tmp/ticks); test $b -gt $a && echo "
		"alive",
		&again);
	assert_out(&again, "alive\n");
	world_shell(&world,
		"kill -9 $(cat /tmp/pid); sleep 0.1; kill -0 $(cat /tmp/pid) 2>&1 | grep -c 'No "
		"such'",
		&end);
	assert_out(&end, "1\n");
}

static void
c19_both_outputs_at_once(void **state)
{
	auto_result struct result r;

	(void)state;
	world_shell(&world,
		"(head -c 10000000 /dev/zero | tr '\\0' x) & (head -c 10000000 /dev/zero | tr "
		"'\\0' y >&2); wait",
		&r);
	assert_exit(&r, 0);
	assert_int_equal(r.out.n, 10000000);
	assert_int_equal(r.err.n, 10000000);
	for (size_t i = 0; i < r.out.n; i += 4099)
		assert_true(r.out.p[i] == 'x' && r.err.p[i] == 'y');
	assert_int_equal(r.ngaps, 0);
}

static void
c21_c23_no_input_is_end_of_file(void **state)
{
	static const char *const commands[] = {
		"cat", "grep x; true", "python3 -c 'input()' 2>/dev/null; true", "read x; true"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
		auto_result struct result r;

		world_shell(&world, commands[i], &r);
		assert_exit(&r, 0);
		assert_int_equal(r.out.n, 0);
	}
	for (int i = 0; i < 10; i++) {
		auto_result struct result r;

		world_shell(&world, "echo next", &r);
		assert_out(&r, "next\n");
	}
}

static void
stdin_small_and_large(void **state)
{
	static const size_t sizes[] = {0, 1, 32768, 65536, 3000000};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		auto_buf struct buf room = {.max = 4096}, data = {.max = 4000000};
		auto_result struct result r;
		struct msg_job_start m = start_shell(&world, &room, "cat");
		uint8_t digest[SHA256_BYTES] = {0};
		struct view in;

		for (size_t k = 0; k < sizes[i]; k++)
			buf_add_byte(&data, (uint8_t)(k * 7 + k / 251));
		in = buf_view(&data);
		m.stdin_open = true;
		world_run(&world, &m, &in, &r);
		assert_exit(&r, 0);
		assert_true(view_eq(buf_view(&r.out), in));
		assert_int_equal(r.end.stdin_bytes, sizes[i]);
		/* Its digest, so that the record knows it; nothing when nothing came. */
		if (sizes[i] != 0)
			sha256_of(in, digest);
		assert_memory_equal(r.end.content, digest, SHA256_BYTES);
	}
}

static void
stdin_that_nobody_reads(void **state)
{
	auto_buf struct buf room = {.max = 4096}, data = {.max = 4000000};
	auto_result struct result r;
	struct msg_job_start m = start_shell(&world, &room, "exec <&-; sleep 0.2; echo done");
	struct view in;

	(void)state;
	for (size_t k = 0; k < 1000000; k++)
		buf_add_byte(&data, 'x');
	in = buf_view(&data);
	m.stdin_open = true;
	world_run(&world, &m, &in, &r);
	assert_exit(&r, 0);
	assert_out(&r, "done\n");
}

static void
p65_bytes_round_trip(void **state)
{
	auto_result struct result r;
	uint8_t digest[SHA256_BYTES];
	char text[SHA256_TEXT];

	(void)state;
	world_shell(&world,
		"head -c 1000000 /dev/urandom >/tmp/r; cat /tmp/r; sha256sum </tmp/r | cut -c1-64 "
		"| tr -d '\\n' >&2",
		&r);
	assert_int_equal(r.out.n, 1000000);
	sha256_of(buf_view(&r.out), digest);
	for (size_t i = 0; i < SHA256_BYTES; i++)
		(void)snprintf(text + 2 * i, 3, "%02x", digest[i]);
	assert_true(view_is(buf_view(&r.err), text));
}

static void
p68_flood_is_counted(void **state)
{
	auto_buf struct buf room = {.max = 4096};
	auto_result struct result r;
	struct msg_job_start m = start_shell(&world, &room,
		"for i in $(seq 1 20); do seq $((i*100000)) $((i*100000+99999)); done");

	(void)state;
	m.live = false;
	m.keep_bytes = 100000;
	world_run(&world, &m, NULL, &r);
	assert_exit(&r, 0);
	assert_int_equal(r.end.stdout_kept, 100000);
	assert_int_equal(r.out.n, 100000);
	assert_int_equal(r.end.stdout_seen, r.out_at);
	assert_int_equal(r.ngaps, 1);
	assert_int_equal(r.gaps[0].from, 50000);
	assert_int_equal(r.gaps[0].to - r.gaps[0].from, r.end.stdout_seen - 100000);
	assert_memory_equal(r.out.p, "100000\n100001\n", 14);
	assert_memory_equal(r.out.p + r.out.n - 8, "2099999\n", 8);
}

static void
nothing_dropped_below_the_cap(void **state)
{
	auto_buf struct buf room = {.max = 4096};
	auto_result struct result r;
	struct msg_job_start m = start_shell(&world, &room, "seq 1 20000");

	(void)state;
	m.live = false;
	world_run(&world, &m, NULL, &r);
	assert_int_equal(r.ngaps, 0);
	assert_int_equal(r.out.n, 108894);
	assert_int_equal(r.end.stdout_kept, 108894);
}

static void
exit_code_is_never_stolen(void **state)
{
	(void)state;
	for (int i = 0; i < 50; i++) {
		auto_result struct result r;

		world_shell(&world, "(exit 3) & (true &) ; (sleep 0.001 &); exit 42", &r);
		assert_exit(&r, 42);
	}
}

static void
cpu_and_memory(void **state)
{
	auto_result struct result r;

	(void)state;
	world_shell(
		&world, "python3 -c 'x = b\"x\" * 60000000\nfor i in range(3000000): pass'", &r);
	assert_exit(&r, 0);
	assert_true(r.end.cpu_us > 50000 && r.end.cpu_us < 10000000);
	assert_true(r.end.memory_peak_bytes > 60000000 && r.end.memory_peak_bytes < 200000000);
}

static void
terminal(void **state)
{
	auto_buf struct buf room = {.max = 4096};
	auto_result struct result r;
	struct msg_job_start m = start_shell(&world, &room,
		"tty; stty size; stat -c '%u' $(tty); test -t 0 && test -t 1 && test -t 2 && echo "
		"all; ps -o tty= -p $$ >/dev/null; "
		"echo ready; read line; echo got $line; stty size; exec 3<>/dev/tty && echo ctty");

	(void)state;
	m.pty = m.stdin_open = true;
	m.rows = 33;
	m.columns = 111;
	world_begin(&world, &m, true, &r);
	for (int i = 0; i < 100 && (r.out.n == 0 || memmem(r.out.p, r.out.n, "ready", 5) == NULL);
		i++)
		(void)world_until(&world, &r, is_complete, 50);
	SESSION_SEND(&r, IN_RESIZE, in_resize, {.rows = 44, .columns = 122});
	SESSION_SEND(&r, IN, in, {.data = view_str("word\n")});
	assert_true(world_until(&world, &r, is_complete, 5000));
	assert_exit(&r, 0);
	assert_out(&r, "/dev/pts/0\r\n33 111\r\n10001\r\nall\r\nready\r\nword\r\ngot word\r\n44 "
		       "122\r\nctty\r\n");
}

static void
terminal_end_of_input(void **state)
{
	auto_buf struct buf room = {.max = 4096};
	auto_result struct result r;
	struct msg_job_start m = start_shell(&world, &room, "stty size; cat; echo over");
	struct view in = view_str("a\n");

	(void)state;
	m.pty = m.stdin_open = true;
	world_run(&world, &m, &in, &r);
	assert_exit(&r, 0);
	/* 0 means the usual size; the echo of "a" may come before or after. */
	assert_non_null(memmem(r.out.p, r.out.n, "24 80", 5));
	assert_non_null(memmem(r.out.p, r.out.n, "over", 4));
}

static void
signals_reach_the_group(void **state)
{
	auto_buf struct buf room = {.max = 4096};
	auto_result struct result r;
	struct msg_job_start m = start_shell(&world, &room,
		"trap 'echo usr1; exit 5' USR1; echo ready; while :; do sleep 0.05; done");

	(void)state;
	world_begin(&world, &m, true, &r);
	while (r.out.n < 6)
		(void)world_until(&world, &r, is_complete, 20);
	SEND(&world, JOB_SIGNAL, job_signal, -1, {.job = r.job, .signal = SIGUSR1});
	assert_true(world_until(&world, &r, is_complete, 5000));
	assert_exit(&r, 5);
	assert_out(&r, "ready\nusr1\n");
	assert_false(r.end.cancelled);
	SEND(&world, JOB_SIGNAL, job_signal, -1,
		{.job = r.job, .signal = SIGUSR1}); /* it ended: nothing */
}

static void
many_at_once(void **state)
{
	enum { N = 40 };
	static struct result results[N];
	auto_buf struct buf room = {.max = 4096};

	(void)state;
	for (size_t i = 0; i < N; i++) {
		struct msg_job_start m = start_shell(
			&world, &room, "sleep 0.2; echo $PPID >/dev/null; seq 1 1000 | tail -1");

		world_begin(&world, &m, false, &results[i]);
	}
	for (size_t i = 0; i < N; i++)
		world_attach(&world, &results[i], 0, 0);
	/* Each is asked in turn; ends of others are seen by their sessions only. */
	for (size_t i = 0; i < N; i++) {
		for (int k = 0; k < 200 && results[i].session >= 0; k++)
			(void)world_until(&world, &results[i], is_complete, 50);
		assert_int_equal(results[i].session, -1);
		assert_out(&results[i], "1000\n");
		result_done(&results[i]);
	}
}

static void
more_jobs_than_may_be(void **state)
{
	enum { N = 70 };
	static struct result results[N];
	auto_buf struct buf room = {.max = 4096};
	unsigned refused = 0;
	struct ipc_msg in;

	(void)state;
	for (size_t i = 0; i < N; i++) {
		struct msg_job_start m = start_shell(&world, &room, "sleep 0.5");

		world_begin(&world, &m, false, &results[i]);
	}
	for (size_t i = 0; i < N; i++) {
		struct msg_job_ended m;
		struct err err = {0};

		assert_true(engine_next(&world, &in, 5000));
		assert_int_equal(in.type, MSG_JOB_ENDED);
		assert_int_equal(msg_job_ended_get(in.body, &m, &err), 0);
		if (m.end == JOB_END_NOT_STARTED) {
			assert_int_equal(m.code, EAGAIN);
			refused++;
		}
	}
	assert_int_equal(refused, N - 64);
	for (size_t i = 0; i < N; i++) {
		SEND(&world, JOB_RECORDED, job_recorded, -1, {.job = results[i].job});
		result_done(&results[i]);
	}
}

static void
idle_cost(void **state)
{
	char path[64], line[256];
	unsigned long total = 0, kib;

	(void)state;
	for (int i = 0; i < 2; i++) {
		FILE *f;

		(void)snprintf(path, sizeof(path), "/proc/%d/smaps_rollup",
			i == 0 ? world.agent : world.relay);
		f = fopen(path, "re");
		assert_non_null(f);
		while (fgets(line, sizeof(line), f) != NULL)
			if (sscanf(line, "Pss: %lu kB", &kib) == 1) {
				print_message("%s: %lu KiB\n", i == 0 ? "agent" : "relay", kib);
				total += kib;
			}
		(void)fclose(f);
	}
	if (!SANITIZED)
		assert_true(total > 0 && total < 3072);
}

static void
round_trip(void **state)
{
	enum { N = 200 };
	uint64_t start = clock_mono_us(), each;

	(void)state;
	for (int i = 0; i < N; i++) {
		const char *args[] = {"/bin/true", NULL};
		auto_buf struct buf room = {.max = 4096};
		auto_result struct result r;
		struct msg_job_start m = start_argv(&world, &room, args);

		world_run(&world, &m, NULL, &r);
		assert_exit(&r, 0);
	}
	each = (clock_mono_us() - start) / N;
	print_message("%llu us from JOB_START to JOB_ENDED\n", (unsigned long long)each);
}

static int
open_world(void **state)
{
	(void)state;
	world_start(&world, &(struct world_options){.pids = 512});
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
		cmocka_unit_test(exit_code_and_both_outputs),
		cmocka_unit_test(idle_cost),
		cmocka_unit_test(round_trip),
		cmocka_unit_test(jobs_go_first),
		cmocka_unit_test(signalled_is_told),
		cmocka_unit_test(words_not_shell),
		cmocka_unit_test(environment_is_what_start_carried),
		cmocka_unit_test(not_started_says_why),
		cmocka_unit_test(bad_argv_is_refused),
		cmocka_unit_test(long_argv_passes),
		cmocka_unit_test(users),
		cmocka_unit_test(nothing_of_the_agent_is_inherited),
		cmocka_unit_test(f34_signals_are_reset),
		cmocka_unit_test(c18_background_child_does_not_block),
		cmocka_unit_test(background_server_lives_on),
		cmocka_unit_test(c19_both_outputs_at_once),
		cmocka_unit_test(c21_c23_no_input_is_end_of_file),
		cmocka_unit_test(stdin_small_and_large),
		cmocka_unit_test(stdin_that_nobody_reads),
		cmocka_unit_test(p65_bytes_round_trip),
		cmocka_unit_test(p68_flood_is_counted),
		cmocka_unit_test(nothing_dropped_below_the_cap),
		cmocka_unit_test(exit_code_is_never_stolen),
		cmocka_unit_test(cpu_and_memory),
		cmocka_unit_test(terminal),
		cmocka_unit_test(terminal_end_of_input),
		cmocka_unit_test(signals_reach_the_group),
		cmocka_unit_test(many_at_once),
		cmocka_unit_test(more_jobs_than_may_be),
	};

	if (getuid() != 0)
		return 77; /* skipped: namespaces and uids need root */
	return cmocka_run_group_tests(tests, open_world, close_world);
}
