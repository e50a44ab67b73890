/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stored inputs: what is on disk is what open tasks have, and no more; which paths are taken; how one is
 * taken back. The test looks into inputs/ of the state directory itself.
 */
#include "play.h"

#include "lib/base/hex.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
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

/* Files below inputs/ now. */
static unsigned
stored(struct play *p)
{
	int fd = openat(p->state, "engine/inputs", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fdopendir(fd);
	unsigned n = 0;

	assert_non_null(dir);
	for (struct dirent *d = readdir(dir); d != NULL; d = readdir(dir))
		n += d->d_name[0] != '.';
	(void)closedir(dir);
	return n;
}

static void
close_task(struct play *p, const struct id *task)
{
	ASK(p, TASK_CLOSE, task_close, {.caller = as_root, .task = *task});
	ANSWER(p, TASK_ROW, task_row, closed);
	assert_int_equal(closed.state, TASK_STATE_CLOSED);
}

/* A path that is written again and again has one file; two tasks with the same bytes have one. */
static void
test_no_more_than_needed(void **state)
{
	struct play *p = *state;
	struct id one = play_task(p, "acme"), two = play_task(p, "other");
	struct msg_input_row row;
	char text[32];

	for (int i = 0; i < 20; i++) {
		(void)snprintf(text, sizeof(text), "version %d", i);
		play_input(p, &one, "/workspace/a", text, &row);
		assert_int_equal(stored(p), 1);
	}
	play_input(p, &one, "/workspace/a", text, &row); /* the same again */
	play_input(p, &one, "/workspace/b", text, &row);
	play_input(p, &two, "/workspace/a", text, &row);
	assert_int_equal(stored(p), 1);
	play_input(p, &one, "/workspace/a", "something else", &row);
	assert_int_equal(stored(p), 2);
	close_task(p, &one);
	assert_int_equal(stored(p), 1); /* the other task's */
	close_task(p, &two);
	assert_int_equal(stored(p), 0);
	/* What there was is still told. */
	ASK(p, INPUT_LIST, input_list, {.caller = as_root, .task = two});
	ANSWER(p, INPUT_ROW, input_row, told);
	assert_int_equal(told.size_bytes, strlen(text));
	ANSWER(p, END, end, end);
}

/* A path at which no sandbox could be made is not taken. */
static void
test_places(void **state)
{
	static const char *const bad[] = {"/etc/x", "/workspace", "/workspace/", "/workspaces/x",
		"/workspace/../etc/x", "/workspace/..", "/workspace/./x", "/workspace//x",
		"//workspace/x", "/", "", "workspace/x", "/tmp"};
	struct play *p = *state;
	struct id task = play_task(p, "acme");
	struct msg_input_row row;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		ASK(p, INPUT_OPEN, input_open,
			{.caller = as_root, .task = task, .path = view_str(bad[i])});
		play_refused(p, ERROR_BAD_REQUEST);
	}
	play_input(p, &task, "/tmp/..a", "x", &row);
	play_input(p, &task, "/workspace/a/b", "x", &row);
	ASK(p, INPUT_OPEN, input_open,
		{.caller = as_root, .task = task, .path = view_str("/workspace/a")});
	play_refused(p, ERROR_CONFLICT);
	ASK(p, INPUT_OPEN, input_open,
		{.caller = as_root, .task = task, .path = view_str("/workspace/a/b/c")});
	play_refused(p, ERROR_CONFLICT);
	play_input(p, &task, "/workspace/a/c", "x", &row);
}

static void
test_delete(void **state)
{
	struct play *p = *state;
	struct id task = play_task(p, "acme"), other = play_task(p, "acme");
	struct msg_input_row row;

	play_input(p, &task, "/workspace/a", "Hello", &row);
	play_input(p, &other, "/workspace/a", "Hello", &row);
	for (int i = 0; i < 2; i++) {
		ASK(p, INPUT_DELETE, input_delete,
			{.caller = as_root,
				.task = task,
				.path = view_str("/workspace/a"),
				.request_id = view_str("req-delete")});
		if (i > 0) {
			play_refused(p, ERROR_NOT_FOUND);
			break;
		}
		ANSWER(p, DONE, done, done);
	}
	assert_int_equal(stored(p), 1); /* the other task's */
	ASK(p, INPUT_LIST, input_list, {.caller = as_root, .task = task});
	ANSWER(p, END, end, none);
	(void)play_audit(p, &task);
	assert_int_equal(play_events(p, "input.delete"), 1);
	assert_true(play_record(p, "input.delete", "\"path\":\"/workspace/a\""));
	assert_true(play_record(p, "input.delete", "req-delete"));
	play_input(p, &task, "/workspace/b", "its own", &row);
	assert_int_equal(stored(p), 2);
	ASK(p, INPUT_DELETE, input_delete,
		{.caller = as_root, .task = task, .path = view_str("/workspace/b")});
	ANSWER(p, DONE, done, own);
	assert_int_equal(stored(p), 1);
	close_task(p, &other);
	ASK(p, INPUT_DELETE, input_delete,
		{.caller = as_root, .task = other, .path = view_str("/workspace/a")});
	play_refused(p, ERROR_CONFLICT);
	assert_int_equal(stored(p), 0);
}

/* A tenant that opens and never closes keeps nobody else from storing. */
static void
test_share(void **state)
{
	struct play *p = *state;
	struct id task = play_task(p, "acme"), other = play_task(p, "other");
	struct msg_input_row row;
	char path[32];

	for (int i = 0; i <= 8; i++) {
		(void)snprintf(path, sizeof(path), "/workspace/%d", i);
		ASK(p, INPUT_OPEN, input_open,
			{.caller = as_root, .task = task, .path = view_str(path)});
		if (i == 8)
			play_refused(p, ERROR_RATE);
		else
			play_want(p, p->api, MSG_INPUT_FILE);
	}
	play_input(p, &other, "/workspace/a", "x", &row);
}

/* What an engine that died left behind goes at the next start; what is needed stays. */
static void
test_sweep(void **state)
{
	struct play *p = *state;
	struct id task = play_task(p, "acme");
	struct msg_input_row row;
	char name[96], digest[65];

	play_input(p, &task, "/workspace/a", "Hello", &row);
	(void)snprintf(name, sizeof(name), "engine/inputs/%064d", 7);
	(void)close(openat(p->state, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0400));
	(void)close(openat(p->state, "engine/inputs/tmp_0", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	assert_int_equal(stored(p), 3);
	hex_encode(row.content, 32, digest);
	play_kill(p);
	play_start(p);
	assert_int_equal(stored(p), 1);
	(void)snprintf(name, sizeof(name), "engine/inputs/%s", digest);
	assert_int_equal(faccessat(p->state, name, F_OK, 0), 0);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(no_more_than_needed),
		TEST(places),
		TEST(delete),
		TEST(share),
		TEST(sweep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
