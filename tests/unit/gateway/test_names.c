/* SPDX-License-Identifier: Apache-2.0 */
/* Fake addresses: the same name has the same, another name never has it, and there is an end to them. */
#include "gateway/limits.h"
#include "gateway/names.h"

#include "lib/base/buf.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>

#include <cmocka.h>

static const uint8_t key[16] = {1, 2, 3}, other_key[16] = {1, 2, 4};

static struct address
address(struct names *n, const char *name)
{
	struct err err = {0};
	struct address a;

	if (names_address(n, view_str(name), &a, &err) < 0)
		fail_msg("%s: %s", name, err.text);
	return a;
}

static struct address
parse(const char *text)
{
	struct address a;

	assert_int_equal(address_parse(view_str(text), &a), 0);
	return a;
}

static void
a_name_keeps_its_address_and_is_found_by_it(void **state)
{
	struct names *n = names_new(false, key);
	struct address a = address(n, "docs.example"), b = address(n, "api.example"), again;

	(void)state;
	again = address(n, "docs.example");
	assert_true(address_eq(&a, &again));
	assert_false(address_eq(&a, &b));
	assert_int_equal(a.family, AF_INET);
	assert_true(names_pool_has(n, &a));
	assert_true(view_is(names_find(n, &a), "docs.example"));
	assert_true(view_is(names_find(n, &b), "api.example"));
	assert_true(names_has(n, view_str("api.example")));
	assert_false(names_has(n, view_str("api.exampl")));
	assert_int_equal(names_count(n), 2);
	names_free(n);
	names_free(NULL);
}

static void
where_it_lands_is_the_sandbox_own_secret(void **state)
{
	struct names *n = names_new(false, key), *m = names_new(false, other_key),
		     *same = names_new(false, key);
	struct address a = address(n, "docs.example"), b = address(m, "docs.example"),
		       c = address(same, "docs.example");

	(void)state;
	assert_false(address_eq(&a, &b));
	assert_true(address_eq(&a, &c));
	names_free(n);
	names_free(m);
	names_free(same);
}

static void
what_is_of_the_pool_and_what_is_not(void **state)
{
	static const char *const in4[] = {"198.18.0.0", "198.18.0.1", "198.19.255.255"},
				 *const out4[] = {"198.17.255.255", "198.20.0.0", "0.0.0.0",
					 "127.0.0.1", "10.0.0.1", "169.254.169.254", "fd00:5eed::1",
					 "::ffff:198.18.0.1"};
	static const char *const in6[] = {"fd00:5eed::", "fd00:5eed::1",
		"fd00:5eed::ffff:ffff:ffff:ffff"},
				 *const out6[] = {"fd00:5eed:0:1::1", "fd00:5eec::1", "::1",
					 "198.18.0.1", "fe80::1"};
	struct names *n = names_new(false, key), *m = names_new(true, key);
	struct address a;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(in4); i++) {
		a = parse(in4[i]);
		assert_true(names_pool_has(n, &a));
		assert_int_equal(names_find(n, &a).n, 0); /* nobody asked */
	}
	for (size_t i = 0; i < ARRAY_LEN(out4); i++) {
		a = parse(out4[i]);
		assert_false(names_pool_has(n, &a));
		assert_int_equal(names_find(n, &a).n, 0);
	}
	for (size_t i = 0; i < ARRAY_LEN(in6); i++) {
		a = parse(in6[i]);
		assert_true(names_pool_has(m, &a));
		assert_int_equal(names_find(m, &a).n, 0);
	}
	for (size_t i = 0; i < ARRAY_LEN(out6); i++) {
		a = parse(out6[i]);
		assert_false(names_pool_has(m, &a));
		assert_int_equal(names_find(m, &a).n, 0);
	}
	names_free(n);
	names_free(m);
}

static void
of_the_large_pool_only_the_exact_address_is_a_name(void **state)
{
	struct names *n = names_new(true, key);
	struct address a = address(n, "docs.example"), near;

	(void)state;
	assert_int_equal(a.family, AF_INET6);
	assert_true(view_is(names_find(n, &a), "docs.example"));
	for (size_t bit = 0; bit < 128; bit++) {
		near = a;
		near.b[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_int_equal(names_find(n, &near).n, 0);
	}
	names_free(n);
}

/* L7: at its end nothing more is given out, nothing is taken away, and no two names ever had one address. */
static void
L7_full_is_full_and_no_address_is_ever_reused(void **state)
{
	static uint32_t owner[1 << 17];
	struct names *n = names_new(false, key);
	struct err err = {0};
	char name[64];
	struct address a;

	(void)state;
	for (uint32_t i = 0; i < LIMIT_NAMES; i++) {
		uint32_t place;

		(void)snprintf(name, sizeof(name), "n%u.example", i);
		a = address(n, name);
		assert_true(names_pool_has(n, &a));
		place = (uint32_t)(a.b[1] - 18) << 16 | (uint32_t)a.b[2] << 8 | a.b[3];
		assert_true(place != 0 && place != (1 << 17) - 1);
		if (owner[place] != 0)
			fail_msg("%s has the address of name %u", name, owner[place] - 1);
		owner[place] = i + 1;
	}
	assert_int_equal(names_count(n), LIMIT_NAMES);
	a = parse("10.9.8.7");
	assert_int_equal(names_address(n, view_str("one-more.example"), &a, &err), -ENOSPC);
	assert_int_equal(a.b[0], 10); /* untouched */
	assert_false(names_has(n, view_str("one-more.example")));
	for (uint32_t i = 0; i < LIMIT_NAMES; i += 97) {
		(void)snprintf(name, sizeof(name), "n%u.example", i);
		a = address(n, name);
		assert_true(view_is(names_find(n, &a), name));
	}
	names_free(n);
}

static void
the_longest_name_is_kept_whole(void **state)
{
	struct names *n = names_new(false, key);
	char name[254];
	struct address a;

	(void)state;
	for (size_t i = 0; i < 253; i++)
		name[i] = i % 64 == 63 ? '.' : 'a';
	name[253] = '\0';
	a = address(n, name);
	assert_true(view_is(names_find(n, &a), name));
	names_free(n);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_keeps_its_address_and_is_found_by_it),
		cmocka_unit_test(where_it_lands_is_the_sandbox_own_secret),
		cmocka_unit_test(what_is_of_the_pool_and_what_is_not),
		cmocka_unit_test(of_the_large_pool_only_the_exact_address_is_a_name),
		cmocka_unit_test(L7_full_is_full_and_no_address_is_ever_reused),
		cmocka_unit_test(the_longest_name_is_kept_whole)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
