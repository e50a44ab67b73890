/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lib/canon: what only a bug of ours can ask of the writer (keys out of order, a value
 * without a key, two documents) ends the process, so that no other form is ever signed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/canon/write.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

/* Runs it in a child; true when must() ended that. */
static bool
dies(void (*misuse)(struct canon_writer *w))
{
	pid_t pid = fork();
	int status = 0;

	assert_true(pid >= 0);
	if (pid == 0) {
		auto_buf struct buf out = {.max = 1000};
		struct canon_writer w;
		int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

		(void)dup2(null, STDERR_FILENO);
		canon_begin(&w, &out);
		misuse(&w);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

/* The result is no matter: misuse does not come back. */
static void
end(struct canon_writer *w)
{
	struct err err;

	if (canon_end(w, &err) < 0)
		_exit(1);
}

static void
well_made(struct canon_writer *w)
{
	canon_object_begin(w);
	canon_key(w, view_str("a"));
	canon_null(w);
	canon_key(w, view_str("b"));
	canon_null(w);
	canon_object_end(w);
	end(w);
}

static void
keys_descend(struct canon_writer *w)
{
	canon_object_begin(w);
	canon_key(w, view_str("b"));
	canon_null(w);
	canon_key(w, view_str("a"));
}

static void
a_key_twice(struct canon_writer *w)
{
	canon_object_begin(w);
	canon_key(w, view_str("a"));
	canon_null(w);
	canon_key(w, view_str("a"));
}

static void
a_bad_key(struct canon_writer *w)
{
	canon_object_begin(w);
	canon_key(w, view_str("a-b"));
}

static void
a_key_in_an_array(struct canon_writer *w)
{
	canon_array_begin(w);
	canon_key(w, view_str("a"));
}

static void
two_keys_in_a_row(struct canon_writer *w)
{
	canon_object_begin(w);
	canon_key(w, view_str("a"));
	canon_key(w, view_str("b"));
}

static void
no_key(struct canon_writer *w)
{
	canon_object_begin(w);
	canon_null(w);
}

static void
a_key_without_value(struct canon_writer *w)
{
	canon_object_begin(w);
	canon_key(w, view_str("a"));
	canon_object_end(w);
}

static void
the_wrong_end(struct canon_writer *w)
{
	canon_object_begin(w);
	canon_array_end(w);
}

static void
an_end_too_many(struct canon_writer *w)
{
	canon_array_begin(w);
	canon_array_end(w);
	canon_array_end(w);
}

static void
two_documents(struct canon_writer *w)
{
	canon_null(w);
	canon_null(w);
}

static void
not_ended(struct canon_writer *w)
{
	canon_array_begin(w);
	end(w);
}

static void
nothing_written(struct canon_writer *w)
{
	end(w);
}

static void
misuse_is_a_bug_of_ours(void **state)
{
	void (*const misuses[])(struct canon_writer * w) = {keys_descend, a_key_twice, a_bad_key,
		a_key_in_an_array, two_keys_in_a_row, no_key, a_key_without_value, the_wrong_end,
		an_end_too_many, two_documents, not_ended, nothing_written};

	(void)state;
	assert_false(dies(well_made));
	for (size_t i = 0; i < ARRAY_LEN(misuses); i++)
		if (!dies(misuses[i]))
			fail_msg("misuse %zu was let through", i);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(misuse_is_a_bug_of_ours),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
