/* SPDX-License-Identifier: Apache-2.0 */
/* The engine on its good paths: real program, real messages, played peers. */
#include "play.h"

#include "lib/base/fd.h"
#include "lib/base/hex.h"
#include "lib/base/sha256.h"

#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

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

static void
kill_it(struct play *p, const struct id *sandbox)
{
	ASK(p, SANDBOX_KILL, sandbox_kill, {.caller = as_root, .sandbox = *sandbox});
	WANT(p, p->supervisor, KILL, kill, kill);
	assert_true(id_eq(&kill.sandbox, sandbox));
	assert_int_equal(kill.reason, SANDBOX_REASON_KILLED);
	play_gone(p, sandbox, SANDBOX_REASON_KILLED);
	ANSWER(p, SANDBOX_ROW, sandbox_row, gone);
	assert_int_equal(gone.state, SANDBOX_STATE_GONE);
	assert_int_equal(gone.reason, SANDBOX_REASON_KILLED);
	assert_int_equal(gone.proof.teardown_us, 900);
}

static void
test_create_run_kill(void **state)
{
	struct play *p = *state;
	struct id sandbox, task, job;
	int relay = play_create(p, &sandbox, &task);

	play_run(p, relay, &sandbox, &job);
	play_end_job(p, relay, &job, 0);
	ANSWER(p, JOB_ROW, job_row, row);
	assert_int_equal(row.reason, JOB_REASON_EXITED);
	assert_int_equal(row.code, 0);
	assert_int_equal(row.stdout_seen, 3);
	assert_true(view_is(row.text, "true"));
	WANT(p, relay, JOB_RECORDED, job_recorded, recorded);
	assert_true(id_eq(&recorded.job, &job));
	kill_it(p, &sandbox);
	play_want_closed(p, relay);
	assert_int_equal(play_audit(p, &task), 6);
	assert_int_equal(play_events(p, "sandbox.create"), 1);
	assert_int_equal(play_events(p, "sandbox.ready"), 1);
	assert_int_equal(play_events(p, "job.start"), 1);
	assert_int_equal(play_events(p, "job.end"), 1);
	assert_int_equal(play_events(p, "sandbox.kill"), 1);
	assert_int_equal(play_events(p, "sandbox.gone"), 1);
	/* Killing again is no fault, and the row stays. */
	ASK(p, SANDBOX_KILL, sandbox_kill, {.caller = as_root, .sandbox = sandbox});
	ANSWER(p, SANDBOX_ROW, sandbox_row, again);
	assert_int_equal(again.state, SANDBOX_STATE_GONE);
	assert_int_equal(again.facts.host_pid, 4242);
	(void)close(relay);
}

/* What the relay is told is what the api asked, with the template's environment below. */
static void
test_job_fields(void **state)
{
	static const char env[] = "LANG=de\0A=1"; /* with its last NUL */
	struct play *p = *state;
	struct id sandbox;
	int relay = play_create(p, &sandbox, NULL);

	ASK(p, JOB_RUN, job_run,
		{.caller = as_root,
			.sandbox = sandbox,
			.kind = JOB_KIND_EXEC,
			.shell = true,
			.pty = true,
			.stdin_open = true,
			.live = true,
			.rows = 3,
			.columns = 4,
			.uid = 0,
			.timeout_ms = 5000,
			.keep_bytes = 1000,
			.path = view_str("/workspace"),
			.argv = view_of("echo token=abcdef", 18),
			.env = view_of(env, sizeof(env)),
			.request_id = view_str("req-1")});
	WANT(p, relay, JOB_START, job_start, m);
	assert_true(m.shell && m.pty && m.stdin_open && m.live);
	assert_int_equal(m.rows * 10 + m.columns, 34);
	assert_int_equal(m.uid, 0);
	assert_int_equal(m.timeout_ms, 5000);
	assert_int_equal(m.keep_bytes, 1000);
	assert_true(view_is(m.path, "/workspace"));
	assert_true(view_eq(m.argv, view_of("echo token=abcdef", 18)));
	assert_true(view_eq(m.env, view_of("HOME=/workspace\0LANG=de\0A=1", 28)));
	WANT(p, relay, JOB_SESSION, job_session, session);
	int relay_end = ipc_msg_take(&p->in, 0);
	ANSWER(p, JOB_OPENED, job_opened, opened);
	int api_end = ipc_msg_take(&p->in, 0);
	/* The two are the ends of one pair, and the engine keeps neither. */
	assert_int_equal(send(relay_end, "x", 1, 0), 1);
	char c;
	assert_int_equal(recv(api_end, &c, 1, 0), 1);
	(void)close(relay_end);
	struct pollfd hangup = {.fd = api_end, .events = POLLIN};
	assert_int_equal(
		poll(&hangup, 1, 5000), 1); /* the engine closes its copies when it has sent both */
	assert_int_equal(recv(api_end, &c, 1, 0), 0);
	(void)close(api_end);
	play_end_job(p, relay, &opened.job, 0);
	ANSWER(p, JOB_ROW, job_row, row);
	assert_true(view_is(row.text, "echo token=[redacted]"));
	assert_true(view_is(row.cwd, "/workspace"));
	uint8_t digest[32];
	sha256_of(view_of("echo token=abcdef", 18), digest);
	assert_memory_equal(row.argv_digest, digest, 32);
	(void)close(relay);
}

/* The reason: what relay and kernel say, never what the guest says alone. */
static void
end_with(struct play *p, int relay, const struct id *sandbox, const struct msg_job_ended *end,
	const struct usage *usage, enum job_reason want)
{
	struct msg_job_ended m = *end;

	play_run(p, relay, sandbox, &m.job);
	SAY(relay, JOB_ENDED, job_ended, m);
	if (usage != NULL) {
		WANT(p, p->supervisor, USAGE_ASK, usage_ask, ask);
		SAY(p->supervisor, USAGE, usage, {.sandbox = *sandbox, .usage = *usage});
	}
	ANSWER(p, JOB_ROW, job_row, row);
	assert_int_equal(row.reason, want);
	assert_int_equal(row.code, end->code);
	WANT(p, relay, JOB_RECORDED, job_recorded, recorded);
}

static void
test_reasons(void **state)
{
	struct play *p = *state;
	struct id sandbox;
	int relay = play_create(p, &sandbox, NULL);
	struct usage u = {.disk_free_bytes = 100, .inodes_free = 100};

	end_with(p, relay, &sandbox, &(struct msg_job_ended){.end = JOB_END_EXITED}, NULL,
		JOB_REASON_EXITED);
	end_with(p, relay, &sandbox, &(struct msg_job_ended){.end = JOB_END_EXITED, .code = 3}, &u,
		JOB_REASON_EXITED);
	end_with(p, relay, &sandbox, &(struct msg_job_ended){.end = JOB_END_SIGNALLED, .code = 11},
		&u, JOB_REASON_SIGNALLED);
	end_with(p, relay, &sandbox, &(struct msg_job_ended){.end = JOB_END_NOT_STARTED, .code = 2},
		NULL, JOB_REASON_NOT_STARTED);
	end_with(p, relay, &sandbox,
		&(struct msg_job_ended){.end = JOB_END_SIGNALLED, .code = 9, .timed_out = true},
		NULL, JOB_REASON_TIMEOUT);
	end_with(p, relay, &sandbox,
		&(struct msg_job_ended){.end = JOB_END_EXITED, .cancelled = true}, NULL,
		JOB_REASON_CANCELLED);
	u.oom_kills = 1;
	end_with(p, relay, &sandbox, &(struct msg_job_ended){.end = JOB_END_SIGNALLED, .code = 9},
		&u, JOB_REASON_OOM);
	/* The counter did not move again: this one was not it. */
	end_with(p, relay, &sandbox, &(struct msg_job_ended){.end = JOB_END_SIGNALLED, .code = 9},
		&u, JOB_REASON_SIGNALLED);
	u.pids_refused = 5;
	end_with(p, relay, &sandbox, &(struct msg_job_ended){.end = JOB_END_EXITED, .code = 1}, &u,
		JOB_REASON_PIDS);
	u.disk_free_bytes = 0;
	end_with(p, relay, &sandbox, &(struct msg_job_ended){.end = JOB_END_EXITED, .code = 1}, &u,
		JOB_REASON_DISK);
	(void)close(relay);
}

/* Cells of a code context: one at a time, recorded before DONE, an open one ended with its job. */
static void
test_cells(void **state)
{
	struct play *p = *state;
	struct id sandbox, task, job;
	int relay = play_create(p, &sandbox, &task);

#define BEGIN(text)                             \
	ASK(p, CELL_BEGIN, cell_begin,          \
		{.caller = as_root,             \
			.sandbox = sandbox,     \
			.job = job,             \
			.code = view_str(text), \
			.request_id = view_str("req-cell")})
#define FINISH(...) \
	ASK(p, CELL_END, cell_end, {.caller = as_root, .sandbox = sandbox, .job = job, __VA_ARGS__})
	play_run(p, relay, &sandbox, &job);
	uint64_t run_tag = p->tag;
	FINISH(.reason = JOB_REASON_EXITED); /* none is open */
	play_refused(p, ERROR_CONFLICT);
	BEGIN("token=abcdef\nx = 1");
	ANSWER(p, DONE, done, begun);
	assert_int_equal(play_audit(p, &task), 4);
	assert_int_equal(play_events(p, "cell.start"), 1);
	uint8_t digest[32];
	char hex[65];
	sha256_of(view_str("token=abcdef\nx = 1"), digest);
	hex_encode(digest, 32, hex);
	assert_true(play_recorded(hex) && play_recorded("\"source\":\"api\""));
	assert_true(play_recorded("req-cell") && play_recorded("token=[redacted]"));
	assert_false(play_recorded("abcdef\\n") || play_recorded("cell.end"));
	BEGIN("2"); /* the first is open still */
	play_refused(p, ERROR_CONFLICT);
	/* Why something ended is the engine's to say: no other reason is taken from the api. */
	for (enum job_reason r = JOB_REASON_RUNNING; r < JOB_REASON_MAX; r++) {
		if (r == JOB_REASON_EXITED || r == JOB_REASON_TIMEOUT || r == JOB_REASON_CANCELLED)
			continue;
		FINISH(.reason = r);
		play_refused(p, ERROR_BAD_REQUEST);
	}
	FINISH(.reason = JOB_REASON_EXITED, .code = 7, .wall_us = 1234, .stdout_seen = 56,
		.stderr_seen = UINT64_MAX);
	ANSWER(p, DONE, done, ended);
	assert_int_equal(play_audit(p, &task), 5);
	assert_true(
		play_recorded("\"cell\":1,\"code\":7,\"reason\":\"exited\",\"source\":\"api\""));
	assert_true(play_recorded("\"stdout_seen\":56,\"wall_us\":1234"));
	BEGIN("");
	ANSWER(p, DONE, done, second);
	play_want_silence(p, relay, 50); /* cells are not the relay's */
	/* The job ends with it: the engine knows why. */
	SAY(relay, JOB_ENDED, job_ended,
		{.job = job, .end = JOB_END_SIGNALLED, .code = 9, .cancelled = true});
	WANT(p, p->api, JOB_ROW, job_row, row);
	assert_int_equal(p->in.tag, run_tag);
	BEGIN("3");
	play_refused(p, ERROR_NOT_FOUND);
	FINISH(.reason = JOB_REASON_EXITED);
	play_refused(p, ERROR_NOT_FOUND);
	assert_int_equal(play_audit(p, &task), 8);
	assert_int_equal(play_events(p, "cell.start"), 2);
	assert_int_equal(play_events(p, "cell.end"), 2);
	assert_true(play_recorded("\"cell\":2,\"reason\":\"cancelled\",\"source\":\"engine\""));
	/* The same when the sandbox goes. */
	WANT(p, relay, JOB_RECORDED, job_recorded, recorded);
	play_run(p, relay, &sandbox, &job);
	BEGIN("4");
	ANSWER(p, DONE, done, fourth);
	ASK(p, SANDBOX_KILL, sandbox_kill, {.caller = as_root, .sandbox = sandbox});
	WANT(p, p->supervisor, KILL, kill, kill);
	BEGIN("5");
	play_refused(p, ERROR_SANDBOX_ENDED);
	play_gone(p, &sandbox, SANDBOX_REASON_KILLED);
	WANT(p, p->api, JOB_ROW, job_row, lost);
	assert_int_equal(lost.reason, JOB_REASON_SANDBOX_ENDED);
	assert_int_equal(lost.sandbox_reason, SANDBOX_REASON_KILLED);
	WANT(p, p->api, SANDBOX_ROW, sandbox_row, gone);
	(void)play_audit(p, &task);
	assert_true(play_recorded("\"reason\":\"sandbox_ended\",\"source\":\"engine\""));
	(void)close(relay);
}

static void
test_attach_list_signal(void **state)
{
	struct play *p = *state;
	struct id sandbox, jobs[3];
	int relay = play_create(p, &sandbox, NULL);

	for (size_t i = 0; i < 3; i++)
		play_run(p, relay, &sandbox, &jobs[i]);
	uint64_t first_tag = p->tag - 2;
	ASK(p, JOB_ATTACH, job_attach,
		{.caller = as_root,
			.sandbox = sandbox,
			.job = jobs[0],
			.stdout_from = 7,
			.stderr_from = 8});
	WANT(p, relay, JOB_SESSION, job_session, session);
	assert_int_equal(session.stdout_from * 10 + session.stderr_from, 78);
	ANSWER(p, JOB_OPENED, job_opened, opened);
	ASK(p, JOB_KILL, job_kill,
		{.caller = as_root, .sandbox = sandbox, .job = jobs[0], .signal = 15});
	WANT(p, relay, JOB_SIGNAL, job_signal, signal);
	assert_int_equal(signal.signal, 15);
	ANSWER(p, DONE, done, done);
	play_end_job(p, relay, &jobs[0], 0);
	/* Both who wait for it hear of it. */
	WANT(p, p->api, JOB_ROW, job_row, one);
	assert_int_equal(p->in.tag, first_tag);
	WANT(p, p->api, JOB_ROW, job_row, two);
	assert_int_equal(p->in.tag, first_tag + 3);
	/* One that ended: its output may still be held, then the row at once. */
	WANT(p, relay, JOB_RECORDED, job_recorded, recorded);
	ASK(p, JOB_ATTACH, job_attach, {.caller = as_root, .sandbox = sandbox, .job = jobs[0]});
	WANT(p, relay, JOB_SESSION, job_session, late);
	ANSWER(p, JOB_OPENED, job_opened, opened_late);
	ANSWER(p, JOB_ROW, job_row, row);
	ASK(p, JOB_LIST, job_list, {.caller = as_root, .sandbox = sandbox, .limit = 2});
	ANSWER(p, JOB_ROW, job_row, list0);
	assert_true(id_eq(&list0.job, &jobs[0]));
	ANSWER(p, JOB_ROW, job_row, list1);
	assert_int_equal(list1.reason, JOB_REASON_RUNNING);
	ANSWER(p, END, end, end);
	assert_true(end.more);
	ASK(p, JOB_LIST, job_list,
		{.caller = as_root, .sandbox = sandbox, .after = jobs[1], .limit = 2});
	ANSWER(p, JOB_ROW, job_row, list2);
	assert_true(id_eq(&list2.job, &jobs[2]));
	ANSWER(p, END, end, last);
	assert_false(last.more);
	/* A session of a sandbox that is gone ends at once. */
	ASK(p, SANDBOX_KILL, sandbox_kill, {.caller = as_root, .sandbox = sandbox});
	WANT(p, p->supervisor, KILL, kill, kill);
	play_gone(p, &sandbox, SANDBOX_REASON_KILLED);
	for (int i = 0; i < 2; i++) {
		WANT(p, p->api, JOB_ROW, job_row, lost);
		assert_int_equal(lost.reason, JOB_REASON_SANDBOX_ENDED);
	}
	ANSWER(p, SANDBOX_ROW, sandbox_row, gone);
	ASK(p, JOB_ATTACH, job_attach, {.caller = as_root, .sandbox = sandbox, .job = jobs[2]});
	ANSWER(p, JOB_OPENED, job_opened, closed);
	int end_fd = ipc_msg_take(&p->in, 0);
	struct pollfd hangup = {.fd = end_fd, .events = POLLIN};
	char c;
	assert_int_equal(poll(&hangup, 1, 5000), 1);
	assert_int_equal(recv(end_fd, &c, 1, 0), 0);
	(void)close(end_fd);
	ANSWER(p, JOB_ROW, job_row, after);
	assert_int_equal(after.reason, JOB_REASON_SANDBOX_ENDED);
	(void)close(relay);
}

static void
test_freeze_life_usage(void **state)
{
	struct play *p = *state;
	struct id sandbox, task;
	int relay = play_create(p, &sandbox, &task);

	ASK(p, SANDBOX_FREEZE, sandbox_freeze,
		{.caller = as_root, .sandbox = sandbox, .frozen = true});
	WANT(p, p->supervisor, FREEZE, freeze, freeze);
	assert_true(freeze.frozen);
	SAY(p->supervisor, FROZEN, frozen, {.sandbox = sandbox, .frozen = true});
	ANSWER(p, SANDBOX_ROW, sandbox_row, frozen);
	assert_int_equal(frozen.state, SANDBOX_STATE_PAUSED);
	ASK(p, JOB_RUN, job_run,
		{.caller = as_root,
			.sandbox = sandbox,
			.kind = JOB_KIND_EXEC,
			.uid = 10001,
			.argv = view_of("true", 5)});
	play_refused(p, ERROR_CONFLICT);
	ASK(p, SANDBOX_FREEZE, sandbox_freeze,
		{.caller = as_root, .sandbox = sandbox, .frozen = false});
	WANT(p, p->supervisor, FREEZE, freeze, thaw);
	SAY(p->supervisor, FROZEN, frozen,
		{.sandbox = sandbox, .frozen = true, .code = -5, .text = "no freezer"});
	play_refused(p, ERROR_CONFLICT);
	ASK(p, SANDBOX_FREEZE, sandbox_freeze,
		{.caller = as_root, .sandbox = sandbox, .frozen = false});
	WANT(p, p->supervisor, FREEZE, freeze, again);
	SAY(p->supervisor, FROZEN, frozen, {.sandbox = sandbox, .frozen = false});
	ANSWER(p, SANDBOX_ROW, sandbox_row, running);
	assert_int_equal(running.state, SANDBOX_STATE_RUNNING);

	ASK(p, SANDBOX_LIFE, sandbox_life,
		{.caller = as_root,
			.sandbox = sandbox,
			.set = 6,
			.idle_ms = 5000,
			.persistent = true});
	ANSWER(p, SANDBOX_ROW, sandbox_row, life);
	assert_true(life.persistent);
	assert_int_equal(life.idle_ms, 5000);
	ASK(p, SANDBOX_LIFE, sandbox_life,
		{.caller = as_root, .sandbox = sandbox, .set = 1, .ttl_ms = 60000});
	WANT(p, p->supervisor, TTL_SET, ttl_set, ttl);
	assert_int_equal(ttl.ttl_ms, 60000);
	SAY(p->supervisor, TTL_IS, ttl_is, {.sandbox = sandbox, .ttl_ms = 50000});
	ANSWER(p, SANDBOX_ROW, sandbox_row, longer);
	assert_int_equal(longer.ttl_ms, 50000);
	assert_in_range(longer.ttl_left_ms, 49000, 50000);

	ASK(p, SANDBOX_USAGE, sandbox_usage, {.caller = as_root, .sandbox = sandbox});
	WANT(p, p->supervisor, USAGE_ASK, usage_ask, ask);
	SAY(p->supervisor, USAGE, usage, {.sandbox = sandbox, .usage = {.pids = 9}});
	ANSWER(p, USAGE_ROW, usage_row, usage);
	assert_int_equal(usage.usage.pids, 9);
	assert_int_equal(usage.host_pid, 4242);
	(void)play_audit(p, &task);
	assert_int_equal(play_events(p, "sandbox.frozen"), 2);
	assert_int_equal(play_events(p, "sandbox.freeze"), 3);
	assert_int_equal(play_events(p, "sandbox.life"), 2);
	(void)close(relay);
}

static void
test_lists(void **state)
{
	struct play *p = *state;
	struct id ids[3];
	int relays[3];

	for (size_t i = 0; i < 3; i++) {
		ASK(p, SANDBOX_CREATE, sandbox_create,
			{.caller = as_root,
				.tenant = view_str(i == 1 ? "other" : "acme"),
				.template = view_str("code-interpreter"),
				.metadata = i == 2 ? view_of("ticket\00048221\0", 13)
						   : view_of("k\0v\0", 4)});
		relays[i] = play_spawn(p, &ids[i]);
		ANSWER(p, SANDBOX_ROW, sandbox_row, row);
		assert_true(view_is(row.template_asked, "code-interpreter"));
		assert_true(view_is(row.template, "python"));
	}
	ASK(p, SANDBOX_LIST, sandbox_list, {.caller = as_root, .limit = 2});
	ANSWER(p, SANDBOX_ROW, sandbox_row, first);
	assert_true(id_eq(&first.sandbox, &ids[0]));
	ANSWER(p, SANDBOX_ROW, sandbox_row, second);
	assert_true(id_eq(&second.sandbox, &ids[1]));
	ANSWER(p, END, end, end);
	assert_true(end.more);
	ASK(p, SANDBOX_LIST, sandbox_list, {.caller = as_root, .after = ids[1]});
	ANSWER(p, SANDBOX_ROW, sandbox_row, third);
	assert_true(id_eq(&third.sandbox, &ids[2]));
	ANSWER(p, END, end, last);
	assert_false(last.more);
	ASK(p, SANDBOX_LIST, sandbox_list,
		{.caller = as_root, .label = view_of("ticket\00048221\0", 13)});
	ANSWER(p, SANDBOX_ROW, sandbox_row, labelled);
	assert_true(id_eq(&labelled.sandbox, &ids[2]));
	ANSWER(p, END, end, one);

	ASK(p, TASK_GET, task_get, {.caller = as_root, .name = view_str("48221")});
	ANSWER(p, TASK_ROW, task_row, task);
	assert_true(id_eq(&task.live_sandbox, &ids[2]));
	assert_int_equal(task.sandboxes, 1);
	assert_int_equal(task.records, 2);
	ASK(p, TASK_LIST, task_list, {.caller = as_root, .limit = 2});
	ANSWER(p, TASK_ROW, task_row, newest);
	assert_true(id_eq(&newest.task, &task.task));
	ANSWER(p, TASK_ROW, task_row, middle);
	ANSWER(p, END, end, tasks);
	assert_true(tasks.more);
	ASK(p, TASK_LIST, task_list, {.caller = as_root, .after = middle.task});
	ANSWER(p, TASK_ROW, task_row, oldest);
	ANSWER(p, END, end, no_more);
	assert_false(no_more.more);
	ASK(p, TASK_LIST, task_list,
		{.caller = as_root, .label = view_of("ticket\00048221\0", 13)});
	ANSWER(p, TASK_ROW, task_row, by_label);
	ANSWER(p, END, end, by_label_end);

	ASK(p, TEMPLATE_LIST, template_list, {.caller = as_root});
	ANSWER(p, TEMPLATE_ROW, template_row, t);
	assert_true(view_is(t.name, "python"));
	assert_true(t.mounted);
	assert_true(view_eq(t.aliases, view_of("code-interpreter", 17)));
	ANSWER(p, END, end, templates);
	ASK(p, HEALTH, health, {0});
	ANSWER(p, HEALTH_ROW, health_row, health);
	assert_true(health.ready);
	for (size_t i = 0; i < 3; i++)
		(void)close(relays[i]);
}

/* The bytes of a stored input come into a fresh sandbox, again after the first is gone. */
static void
take_input(struct play *p, int relay, const char *path, const char *text)
{
	char got[64] = {0};
	size_t n = 0;
	struct err err;

	WANT(p, relay, JOB_START, job_start, start);
	assert_int_equal(start.kind, JOB_KIND_FILE_WRITE);
	assert_true(view_is(start.path, path));
	assert_int_equal(start.mode, 0640);
	assert_int_equal(start.size_bytes, strlen(text));
	WANT(p, relay, JOB_FEED, job_feed, feed);
	assert_true(id_eq(&start.job, &feed.job));
	int fd = ipc_msg_take(&p->in, 0);
	assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
	assert_int_equal(fd_read_upto(fd, got, sizeof(got) - 1, &n, &err), 0);
	assert_string_equal(got, text);
	(void)close(fd);
	struct msg_job_ended end = {.job = start.job, .end = JOB_END_EXITED, .stdin_bytes = n};
	sha256_of(view_str(text), end.content);
	SAY(relay, JOB_ENDED, job_ended, end);
	WANT(p, relay, JOB_RECORDED, job_recorded, recorded);
}

static void
test_inputs_resume(void **state)
{
	struct play *p = *state;
	struct id sandbox;
	struct msg_input_row row;
	uint8_t digest[32];

	ASK(p, TASK_CREATE, task_create,
		{.caller = as_root,
			.tenant = view_str("acme"),
			.template = view_str("python"),
			.ttl_ms = 77000,
			.labels = view_of("ticket\00048221\0", 13)});
	ANSWER(p, TASK_ROW, task_row, task);
	play_input(p, &task.task, "/workspace/a.eml", "Hello", &row);
	sha256_of(view_str("Hello"), digest);
	assert_memory_equal(row.content, digest, 32);
	play_input(p, &task.task, "/workspace/b.csv", "1;2;3", &row);
	play_input(p, &task.task, "/workspace/a.eml", "Hello again", &row); /* replaces the first */
	for (int round = 0; round < 2; round++) {
		ASK(p, TASK_RESUME, task_resume, {.caller = as_root, .task = task.task});
		int relay = play_spawn(p, &sandbox);
		take_input(p, relay, "/workspace/a.eml", "Hello again");
		play_want_silence(p, p->api, 50); /* not ready before all are written */
		take_input(p, relay, "/workspace/b.csv", "1;2;3");
		ANSWER(p, SANDBOX_ROW, sandbox_row, made);
		assert_int_equal(made.state, SANDBOX_STATE_RUNNING);
		assert_int_equal(made.ttl_ms, 77000);
		kill_it(p, &sandbox);
		(void)close(relay);
	}
	ASK(p, INPUT_LIST, input_list, {.caller = as_root, .task = task.task});
	ANSWER(p, INPUT_ROW, input_row, one);
	assert_true(view_is(one.path, "/workspace/a.eml"));
	ANSWER(p, INPUT_ROW, input_row, two);
	ANSWER(p, END, end, end);
	ASK(p, TASK_CLOSE, task_close, {.caller = as_root, .task = task.task});
	ANSWER(p, TASK_ROW, task_row, closed);
	assert_int_equal(closed.state, TASK_STATE_CLOSED);
	assert_int_equal(closed.inputs, 2);
	ASK(p, TASK_RESUME, task_resume, {.caller = as_root, .task = task.task});
	play_refused(p, ERROR_CONFLICT);
	(void)play_audit(p, &task.task);
	assert_int_equal(play_events(p, "input.store"), 3);
	assert_int_equal(play_events(p, "task.resume"), 2);
}

/* A relay that wrote something else than the stored input: no sandbox. */
static void
test_input_changed(void **state)
{
	struct play *p = *state;
	struct id sandbox;
	struct msg_input_row row;

	ASK(p, TASK_CREATE, task_create,
		{.caller = as_root, .tenant = view_str("acme"), .template = view_str("python")});
	ANSWER(p, TASK_ROW, task_row, task);
	play_input(p, &task.task, "/workspace/a", "Hello", &row);
	ASK(p, TASK_RESUME, task_resume, {.caller = as_root, .task = task.task});
	int relay = play_spawn(p, &sandbox);
	WANT(p, relay, JOB_START, job_start, start);
	WANT(p, relay, JOB_FEED, job_feed, feed);
	SAY(relay, JOB_ENDED, job_ended, {.job = start.job, .end = JOB_END_EXITED, .content = {1}});
	WANT(p, p->supervisor, KILL, kill, kill);
	play_gone(p, &sandbox, SANDBOX_REASON_KILLED);
	play_refused(p, ERROR_SPAWN);
	(void)close(relay);
}

/* Idempotency: the same key and body is the same sandbox, while it is made and after. */
static void
test_idempotency(void **state)
{
	struct play *p = *state;
	struct id sandbox;
	const struct msg_sandbox_create m = {.caller = as_root,
		.idempotency_key = {1},
		.idempotency_body = {2},
		.tenant = view_str("acme"),
		.template = view_str("python")};
	struct msg_sandbox_create other = m;

	ASK(p, SANDBOX_CREATE, sandbox_create, m);
	ASK(p, SANDBOX_CREATE, sandbox_create, m);
	int relay = play_spawn(p, &sandbox);
	WANT(p, p->api, SANDBOX_ROW, sandbox_row, one);
	ANSWER(p, SANDBOX_ROW, sandbox_row, two);
	assert_true(id_eq(&one.sandbox, &two.sandbox));
	ASK(p, SANDBOX_CREATE, sandbox_create, m);
	ANSWER(p, SANDBOX_ROW, sandbox_row, three);
	assert_true(id_eq(&one.sandbox, &three.sandbox));
	assert_true(three.replayed);
	other.idempotency_body[0] = 3;
	ASK(p, SANDBOX_CREATE, sandbox_create, other);
	play_refused(p, ERROR_IDEMPOTENCY);
	play_want_silence(p, p->supervisor, 50);
	/* Another tenant has its own keys. */
	other.tenant = view_str("other");
	ASK(p, SANDBOX_CREATE, sandbox_create, other);
	struct id second;
	int relay2 = play_spawn(p, &second);
	ANSWER(p, SANDBOX_ROW, sandbox_row, four);
	assert_false(id_eq(&second, &sandbox));
	/* A creation that came to nothing frees its key. */
	other.idempotency_key[0] = 9;
	ASK(p, SANDBOX_CREATE, sandbox_create, other);
	WANT(p, p->supervisor, SPAWN, spawn, failed);
	SAY(p->supervisor, SPAWN_FAILED, spawn_failed,
		{.sandbox = failed.sandbox, .code = -12, .text = "no memory"});
	play_refused(p, ERROR_SPAWN);
	ASK(p, SANDBOX_CREATE, sandbox_create, other);
	int relay3 = play_spawn(p, &second);
	ANSWER(p, SANDBOX_ROW, sandbox_row, five);
	assert_false(five.replayed);
	/* Tasks too. */
	struct msg_task_create t = {.caller = as_root,
		.idempotency_key = {5},
		.tenant = view_str("acme"),
		.template = view_str("python")};
	ASK(p, TASK_CREATE, task_create, t);
	ANSWER(p, TASK_ROW, task_row, t1);
	ASK(p, TASK_CREATE, task_create, t);
	ANSWER(p, TASK_ROW, task_row, t2);
	assert_true(id_eq(&t1.task, &t2.task));
	t.idempotency_body[3] = 1;
	ASK(p, TASK_CREATE, task_create, t);
	play_refused(p, ERROR_IDEMPOTENCY);
	(void)close(relay);
	(void)close(relay2);
	(void)close(relay3);
}

/* Something is left: the task is marked, no new sandbox; then it is at zero and all is well again. */
static void
test_residue(void **state)
{
	struct play *p = *state;
	struct id sandbox, task;
	int relay = play_create(p, &sandbox, &task);

	SAY(p->supervisor, GONE, gone,
		{.sandbox = sandbox, .reason = SANDBOX_REASON_TTL, .proof = {.mounts = 1}});
	play_want_closed(p, relay);
	ASK(p, SANDBOX_GET, sandbox_get, {.caller = as_root, .sandbox = sandbox});
	ANSWER(p, SANDBOX_ROW, sandbox_row, row);
	assert_int_equal(row.reason, SANDBOX_REASON_TTL);
	assert_int_equal(row.proof.mounts, 1);
	ASK(p, TASK_RESUME, task_resume, {.caller = as_root, .task = task});
	play_refused(p, ERROR_CONFLICT);
	SAY(p->supervisor, GONE, gone,
		{.sandbox = sandbox, .reason = SANDBOX_REASON_TTL, .proof = {.mounts = 1}});
	SAY(p->supervisor, GONE, gone, {.sandbox = sandbox, .reason = SANDBOX_REASON_TTL});
	SAY(p->supervisor, GONE, gone, {.sandbox = sandbox, .reason = SANDBOX_REASON_TTL});
	do /* supervisor and api are two sockets: the one may be heard before the other */
		(void)play_audit(p, &task);
	while (play_events(p, "task.clean") == 0);
	assert_int_equal(play_events(p, "task.marked"), 2);
	assert_int_equal(play_events(p, "sandbox.residue"), 1);
	assert_int_equal(play_events(p, "sandbox.clean"), 1);
	assert_int_equal(play_events(p, "task.clean"), 1);
	ASK(p, TASK_RESUME, task_resume, {.caller = as_root, .task = task});
	(void)close(relay);
	relay = play_spawn(p, &sandbox);
	ANSWER(p, SANDBOX_ROW, sandbox_row, again);
	(void)close(relay);
}

/* No request and no job for idle_ms: it ends; a job or a request keeps it. */
static void
test_idle(void **state)
{
	struct play *p = *state;
	struct id sandbox, job;

	ASK(p, SANDBOX_CREATE, sandbox_create,
		{.caller = as_root,
			.tenant = view_str("acme"),
			.template = view_str("python"),
			.idle_ms = 1000});
	int relay = play_spawn(p, &sandbox);
	ANSWER(p, SANDBOX_ROW, sandbox_row, row);
	play_run(p, relay, &sandbox, &job);
	play_want_silence(p, p->supervisor, 2200);
	play_end_job(p, relay, &job, 0);
	uint64_t began = clock_mono_ms();
	WANT(p, p->supervisor, KILL, kill, kill);
	assert_int_equal(kill.reason, SANDBOX_REASON_IDLE);
	assert_in_range(clock_mono_ms() - began, 900, 2500);
	(void)close(relay);
}

/* The host stops: nothing new, and STOPPED when the last one is recorded. */
static void
test_stopping(void **state)
{
	struct play *p = *state;
	struct id sandbox;
	int relay = play_create(p, &sandbox, NULL);

	SAY(p->supervisor, STOPPING, stopping, {0});
	for (bool ready = true; ready;) {
		ASK(p, HEALTH, health, {0});
		ANSWER(p, HEALTH_ROW, health_row, health);
		ready = health.ready;
	}
	ASK(p, SANDBOX_CREATE, sandbox_create, {.caller = as_root, .template = view_str("python")});
	play_refused(p, ERROR_UNAVAILABLE);
	ASK(p, TASK_CREATE, task_create, {.caller = as_root, .template = view_str("python")});
	play_refused(p, ERROR_UNAVAILABLE);
	play_want_silence(p, p->supervisor, 50);
	play_gone(p, &sandbox, SANDBOX_REASON_HOST_STOPPED);
	WANT(p, p->supervisor, STOPPED, stopped, stopped);
	(void)shutdown(p->supervisor, SHUT_RDWR);
	assert_int_equal(play_wait(p), 0);
	(void)close(relay);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(create_run_kill),
		TEST(job_fields),
		TEST(reasons),
		TEST(cells),
		TEST(attach_list_signal),
		TEST(freeze_life_usage),
		TEST(lists),
		TEST(inputs_resume),
		TEST(input_changed),
		TEST(idempotency),
		TEST(residue),
		TEST(idle),
		TEST(stopping),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
