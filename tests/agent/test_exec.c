/* SPDX-License-Identifier: Apache-2.0 */
/* Commands in a real agent behind a real relay. Names of cases: research list, section 2. */
#include "world.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

static struct world world;

static void
hello(void **state)
{
	struct result r;

	(void)state;
	world_shell(&world, "echo hello; echo oops >&2; exit 7", &r);
	assert_int_equal(r.end.end, JOB_END_EXITED);
	assert_int_equal(r.end.code, 7);
	assert_true(view_is(buf_view(&r.out), "hello\n"));
	assert_true(view_is(buf_view(&r.err), "oops\n"));
	result_done(&r);
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
		cmocka_unit_test(hello),
	};

	if (getuid() != 0)
		return 77; /* skipped: namespaces and uids need root */
	return cmocka_run_group_tests(tests, open_world, close_world);
}
