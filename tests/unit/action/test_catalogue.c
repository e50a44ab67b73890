/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The catalogue and its documents: what the compiler writes is read, and nothing else is. Digests say which part of an operation changed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/actions/sample.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <fcntl.h>

static void
the_sample_is_read(void **state)
{
	auto_fd int fd = sample_catalogue_fd(8080);
	struct catalogue c = {0};
	struct err err = {0};
	const struct operation *refund;

	(void)state;
	if (catalogue_read(fd, &c, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(c.n, SAMPLE_OPERATIONS);
	refund = catalogue_find(&c, view_str("refund"));
	assert_non_null(refund);
	assert_int_equal(refund->effect, EFFECT_IRREVERSIBLE);
	assert_true(refund->has_amount);
	assert_true(view_is(refund->currency, "EUR"));
	assert_int_equal(refund->provider.port, 8080);
	assert_true(refund->provider.capability.key);
	assert_int_equal(operation_tier(refund, 100000)->quorum, 1);
	assert_int_equal(operation_tier(refund, 100001)->quorum, 2);
	assert_null(catalogue_find(&c, view_str("refunds")));
	catalogue_done(&c);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_sample_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
