/* SPDX-License-Identifier: Apache-2.0 */
/* Leases: each once, of one sandbox and rule, until its time; bounded in all and of each sandbox. */
#include "broker/lease.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct leases all;
static struct err err;

static struct lease
lease_of(const struct id *sandbox, uint16_t rule, uint64_t until_ms)
{
	struct lease l = {.sandbox = *sandbox, .rule = rule, .until_ms = until_ms, .digest = {9}};

	id_new(&l.id);
	return l;
}

static int
setup(void **state)
{
	(void)state;
	all = (struct leases){.n = 0};
	return 0;
}

static void
each_is_good_once(void **state)
{
	uint8_t digest[SHA256_BYTES] = {0};
	struct id sandbox;
	struct lease l;

	(void)state;
	id_new(&sandbox);
	l = lease_of(&sandbox, 3, 100);
	assert_int_equal(leases_add(&all, &l, 10, &err), 0);
	assert_int_equal(leases_spend(&all, &l.id, &sandbox, 3, 99, digest, &err), 0);
	assert_int_equal(digest[0], 9);
	assert_int_equal(leases_spend(&all, &l.id, &sandbox, 3, 99, digest, &err), -EALREADY);
	/* Nor is a spent one given again, as long as it is known. */
	assert_int_equal(leases_add(&all, &l, 99, &err), -EEXIST);
}

static void
of_its_sandbox_rule_and_time(void **state)
{
	uint8_t digest[SHA256_BYTES];
	struct id sandbox, other, unknown;
	struct lease l;

	(void)state;
	id_new(&sandbox);
	id_new(&other);
	id_new(&unknown);
	l = lease_of(&sandbox, 3, 100);
	assert_int_equal(leases_add(&all, &l, 10, &err), 0);
	assert_int_equal(leases_spend(&all, &unknown, &sandbox, 3, 11, digest, &err), -ENOENT);
	assert_int_equal(leases_spend(&all, &l.id, &other, 3, 11, digest, &err), -ENOENT);
	assert_int_equal(leases_spend(&all, &l.id, &sandbox, 4, 11, digest, &err), -ENOENT);
	assert_int_equal(leases_spend(&all, &l.id, &sandbox, 3, 100, digest, &err), -ETIME);
	/* What others tried took nothing from it. */
	assert_int_equal(leases_spend(&all, &l.id, &sandbox, 3, 99, digest, &err), 0);
}

static void
bounded(void **state)
{
	struct id sandbox;
	struct lease l;

	(void)state;
	id_new(&sandbox);
	for (int i = 0; i < LEASES_OF_ONE; i++) {
		l = lease_of(&sandbox, 0, 100);
		assert_int_equal(leases_add(&all, &l, 10, &err), 0);
	}
	l = lease_of(&sandbox, 0, 200);
	assert_int_equal(leases_add(&all, &l, 99, &err), -E2BIG);
	assert_int_equal(leases_add(&all, &l, 100, &err), 0); /* the old ones are over */
	assert_int_equal(all.n, 1);
	while (all.n < LEASES_MAX) {
		id_new(&sandbox);
		l = lease_of(&sandbox, 0, 200);
		assert_int_equal(leases_add(&all, &l, 100, &err), 0);
	}
	id_new(&sandbox);
	l = lease_of(&sandbox, 0, 200);
	assert_int_equal(leases_add(&all, &l, 100, &err), -ENOSPC);
	assert_int_equal(leases_add(&all, &l, 200, &err), 0);
}

/* A sandbox that uses what it is given may have many, one after the other, and takes no place from others. */
static void
spent_ones_are_in_nobodys_way(void **state)
{
	uint8_t digest[SHA256_BYTES];
	struct id sandbox;
	struct lease l;

	(void)state;
	id_new(&sandbox);
	for (int i = 0; i < 2 * LEASES_MAX; i++) {
		l = lease_of(&sandbox, 0, 100);
		assert_int_equal(leases_add(&all, &l, 10, &err), 0);
		assert_int_equal(leases_spend(&all, &l.id, &sandbox, 0, 10, digest, &err), 0);
		assert_int_not_equal(leases_spend(&all, &l.id, &sandbox, 0, 10, digest, &err), 0);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test_setup(each_is_good_once, setup),
		cmocka_unit_test_setup(of_its_sandbox_rule_and_time, setup),
		cmocka_unit_test_setup(bounded, setup),
		cmocka_unit_test_setup(spent_ones_are_in_nobodys_way, setup)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
