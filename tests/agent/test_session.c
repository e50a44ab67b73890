/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions and edges of the relay, with a real agent: slow readers, detaching, attaching again, a new engine, feeds. */
#include "world.h"

#include "lib/base/clock.h"
#include "lib/base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static struct world world;

#define auto_result __attribute__((cleanup(result_done)))

static void
detach(struct result *r)
{
	(void)close(r->session);
	r->session = -1;
}

static void
recorded(const struct result *r)
{
	SEND(&world, JOB_RECORDED, job_recorded, -1, {.job = r->job});
}

/* What was read up to a cut, and what a second session reads from there, are the whole. */
static void
attach_again_where_one_was(void **state)
{
	auto_buf struct buf room = {.max = 4096};
	auto_result struct result r, all;
	struct msg_job_start m = start_shell(&world, &room,
		"for i in $(seq 1 3000); do echo line $i; done; sleep 0.2; echo err >&2");

	(void)state;
	world_begin(&world, &m, true, &r);
	while (r.out_at < 5000 && !r.closed)
		(void)world_until(&world, &r, is_complete, 2);
	detach(&r);
	(void)usleep(50000);
	world_attach(&world, &r, r.out_at, r.err_at);
	assert_true(world_until(&world, &r, is_complete, 5000));
	assert_int_equal(r.ngaps, 0);
	assert_int_equal(r.out_at, r.end.stdout_seen);
	recorded(&r);
	/* Ended and recorded: it can still be read from the start. */
	result_init(&all);
	all.job = r.job;
	world_attach(&world, &all, 0, 0);
	for (int i = 0; i < 100 && !all.closed; i++)
		(void)world_until(&world, &all, is_complete, 20);
	assert_true(all.out_end);
	assert_true(view_eq(buf_view(&all.out), buf_view(&r.out)));
	assert_true(view_is(buf_view(&all.err), "err\n"));
}

static void
a_gap_is_told(void **state)
{
	auto_buf struct buf room = {.max = 4096};
	auto_result struct result r;
	struct msg_job_start m = start_shell(&world, &room, "echo first; sleep 0.3; seq 1 200000");

	(void)state;
	m.keep_bytes = 20000;
	world_begin(&world, &m, true, &r);
	while (r.out_at < 6)
		(void)world_until(&world, &r, is_complete, 5);
	detach(&r);
	assert_true(world_until(&world, &r, is_ended, 5000)); /* nobody reads, and it goes on */
	assert_int_equal(r.end.code, 0);
	world_attach(&world, &r, 6, 0);
	for (int i = 0; i < 100 && !r.closed; i++)
		(void)world_until(&world, &r, is_complete, 20);
	assert_true(r.out_end);
	assert_int_equal(r.ngaps, 1);
	assert_int_equal(r.gaps[0].from, 10000);
	assert_int_equal(r.out_at, r.end.stdout_seen);
	assert_memory_equal(r.out.p, "first\n1\n2\n", 10);
	assert_memory_equal(r.out.p + r.out.n - 7, "200000\n", 7);
	recorded(&r);
}

/* A live session that does not read holds the command up; nothing is lost, nothing is piled up. */
static void
slow_reader_is_waited_for(void **state)
{
	auto_buf struct buf room = {.max = 4096};
	auto_result struct result r;
	struct msg_job_start m = start_shell(
		&world, &room, "head -c 5000000 /dev/zero | tr '\\0' z; echo done >/tmp/done");

	(void)state;
	world_begin(&world, &m, true, &r);
	(void)usleep(500000);
	assert_int_equal(r.ended, 0);
	assert_true(world_until(&world, &r, is_complete, 10000));
	assert_int_equal(r.out.n, 5000000);
	assert_int_equal(r.ngaps, 0);
	assert_true(r.end.wall_us > 400000);
	recorded(&r);
}

static void
two_jobs_do_not_hold_each_other_up(void **state)
{
	auto_buf struct buf room = {.max = 4096};
	auto_result struct result slow, quick;
	struct msg_job_start m = start_shell(&world, &room, "yes");
	uint64_t start;

	(void)state;
	m.timeout_ms = 1500;
	world_begin(&world, &m, true, &slow); /* and nobody reads it */
	(void)usleep(50000);
	start = clock_mono_ms();
	world_shell(&world, "echo quick", &quick);
	assert_true(clock_mono_ms() - start < 1000);
	assert_true(view_is(buf_view(&quick.out), "quick\n"));
	SEND(&world, JOB_SIGNAL, job_signal, -1, {.job = slow.job});
	detach(&slow);
	assert_true(world_until(&world, &slow, is_ended, 3000));
	recorded(&slow);
}

static void
caller_that_goes_does_not_end_a_command(void **state)
{
	auto_buf struct buf room = {.max = 4096};
	auto_result struct result r, check;
	struct msg_job_start m = start_shell(
		&world, &room, "echo a; sleep 0.3; echo b; echo over >/tmp/over");

	(void)state;
	world_begin(&world, &m, true, &r);
	detach(&r);
	assert_true(world_until(&world, &r, is_ended, 3000));
	assert_int_equal(r.end.end, JOB_END_EXITED);
	assert_int_equal(r.end.stdout_seen, 4);
	assert_false(r.end.cancelled);
	recorded(&r);
	world_shell(&world, "cat /tmp/over", &check);
	assert_true(view_is(buf_view(&check.out), "over\n"));
}

static void
newest_caller_has_it(void **state)
{
	auto_buf struct buf room = {.max = 4096};
	auto_result struct result a, b;
	struct msg_job_start m = start_shell(&world, &room, "sleep 0.3; echo x");

	(void)state;
	world_begin(&world, &m, true, &a);
	result_init(&b);
	b.job = a.job;
	world_attach(&world, &b, 0, 0);
	assert_true(world_until(&world, &b, is_complete, 3000));
	assert_true(view_is(buf_view(&b.out), "x\n"));
	(void)world_until(&world, &a, is_complete, 50);
	assert_true(a.closed && !a.out_end);
	recorded(&b);
}

static void
unknown_job_has_no_session(void **state)
{
	auto_result struct result r;

	(void)state;
	result_init(&r);
	r.job.b[0] = 99;
	world_attach(&world, &r, 0, 0);
	for (int i = 0; i < 50 && !r.closed; i++)
		(void)world_until(&world, &r, is_complete, 20);
	assert_true(r.closed && !r.out_end);
}

/* What a session may not say is the end of the session, not of the job. */
static void
session_that_breaks_the_table(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		auto_buf struct buf room = {.max = 4096};
		auto_result struct result r;
		struct msg_job_start m = start_shell(&world, &room, "sleep 0.2; echo x");

		m.stdin_open = i == 2 || i == 3;
		world_begin(&world, &m, true, &r);
		if (i == 0)
			SESSION_SEND(&r, IN, in, {.data = view_str("x")});
		if (i == 1)
			SESSION_SEND(&r, IN_RESIZE, in_resize, {.rows = 1, .columns = 1});
		if (i == 2) {
			SESSION_SEND(&r, IN_END, in_end, {0});
			SESSION_SEND(&r, IN, in, {.data = view_str("x")});
		}
		if (i == 3)
			assert_int_equal(send(r.session, "junk", 4, 0), 4);
		assert_true(world_until(&world, &r, is_ended, 3000));
		(void)world_until(&world, &r, is_complete, 100);
		assert_true(r.closed && !r.out_end);
		assert_int_equal(r.end.end, JOB_END_EXITED);
		recorded(&r);
	}
}

static int
file_with(const char *text, size_t times)
{
	int fd = memfd_create("feed", MFD_CLOEXEC);
	struct err err = {0};

	assert_true(fd >= 0);
	for (size_t i = 0; i < times; i++)
		assert_int_equal(fd_write_all(fd, text, strlen(text), &err), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

static void
feed(void **state)
{
	struct msg_job_start m = start_file(&world, JOB_KIND_FILE_WRITE, "/tmp/fed");
	auto_result struct result r, check;
	auto_fd int fd = file_with("0123456789abcdef", 200000);

	(void)state;
	m.size_bytes = 3200000;
	world_begin(&world, &m, false, &r);
	SEND(&world, JOB_FEED, job_feed, fd, {.job = r.job});
	assert_true(world_until(&world, &r, is_ended, 5000));
	assert_int_equal(r.end.end, JOB_END_EXITED);
	assert_int_equal(r.end.stdin_bytes, 3200000);
	recorded(&r);
	world_shell(&world, "wc -c </tmp/fed; tail -c 16 /tmp/fed", &check);
	assert_true(view_is(buf_view(&check.out), "3200000\n0123456789abcdef"));
}

static void
new_engine_hears_of_all(void **state)
{
	auto_buf struct buf room = {.max = 4096};
	auto_result struct result running, ended, done;
	struct msg_job_start m;
	struct ipc_msg in;
	struct err err = {0};
	int pair[2];

	(void)state;
	m = start_shell(&world, &room, "sleep 0.6; echo late");
	world_begin(&world, &m, true, &running);
	m = start_shell(&world, &room, "exit 9");
	world_begin(&world, &m, true, &ended);
	assert_true(world_until(&world, &ended, is_complete, 3000));
	/* The engine dies without having recorded; the sandbox goes on. */
	(void)close(world.engine);
	assert_int_equal(ipc_pair(pair, &err), 0);
	world.engine = pair[0];
	SEND(&world, ENGINE_EDGE, engine_edge, pair[1], {0});
	(void)close(pair[1]);
	assert_true(engine_next(&world, &in, 3000));
	assert_int_equal(in.type, MSG_RELAY_JOB);
	assert_true(engine_next(&world, &in, 3000));
	assert_int_equal(in.type, MSG_RELAY_JOBS_END);
	assert_true(engine_next(&world, &in, 3000));
	assert_int_equal(in.type, MSG_JOB_ENDED);
	recorded(&ended);
	assert_true(world_until(&world, &running, is_complete, 3000));
	assert_true(view_is(buf_view(&running.out), "late\n"));
	recorded(&running);
	world_shell(&world, "echo again", &done);
	assert_true(view_is(buf_view(&done.out), "again\n"));
}

static void
ended_jobs_are_bounded(void **state)
{
	static struct id first;
	auto_result struct result r;

	(void)state;
	for (int i = 0; i < 70; i++) {
		auto_result struct result each;

		world_shell(&world, "echo x", &each);
		if (i == 0)
			first = each.job;
	}
	result_init(&r);
	r.job = first;
	world_attach(&world, &r, 0, 0);
	for (int i = 0; i < 50 && !r.closed; i++)
		(void)world_until(&world, &r, is_complete, 20);
	assert_true(r.closed && !r.out_end); /* forgotten */
}

/* C22: the agent itself stands still; the caller has an answer by its deadline. */
static void
c22_agent_that_stands_still(void **state)
{
	auto_buf struct buf room = {.max = 4096};
	auto_result struct result r;
	struct msg_job_start m = start_shell(&world, &room, "sleep 100");
	uint64_t start = clock_mono_ms();

	(void)state;
	m.timeout_ms = 500;
	world_begin(&world, &m, true, &r);
	(void)usleep(100000);
	assert_int_equal(kill(world.agent, SIGSTOP), 0);
	assert_false(world_until(&world, &r, is_complete, 6000));
	assert_int_equal(world.lost_count, 1);
	assert_in_range(clock_mono_ms() - start, 2400, 3600);
	assert_int_equal(relay_wait(&world, 2000), 3);
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
		cmocka_unit_test(attach_again_where_one_was),
		cmocka_unit_test(a_gap_is_told),
		cmocka_unit_test(slow_reader_is_waited_for),
		cmocka_unit_test(two_jobs_do_not_hold_each_other_up),
		cmocka_unit_test(caller_that_goes_does_not_end_a_command),
		cmocka_unit_test(newest_caller_has_it),
		cmocka_unit_test(unknown_job_has_no_session),
		cmocka_unit_test(session_that_breaks_the_table),
		cmocka_unit_test(feed),
		cmocka_unit_test(new_engine_hears_of_all),
		cmocka_unit_test(ended_jobs_are_bounded),
		cmocka_unit_test(c22_agent_that_stands_still),
	};

	if (getuid() != 0)
		return 77; /* skipped: namespaces and uids need root */
	return cmocka_run_group_tests(tests, open_world, close_world);
}
