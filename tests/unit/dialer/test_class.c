/* SPDX-License-Identifier: Apache-2.0 */
/* Which addresses are public: every vector, what is carried inside others, the host's own, and the one form of an address in text. */
#include "dialer/class.h"

#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const struct own nobody;

/* B11 of vectors are in the text of one form only; here the form is what inet_pton takes. */
static struct address
any_form(const char *text)
{
	struct address a = {.family = strchr(text, ':') != NULL ? AF_INET6 : AF_INET};

	if (inet_pton(a.family, text, a.b) != 1)
		fail_msg("%s", text);
	return a;
}

static int
judge(const char *text, struct err *err)
{
	struct address a = any_form(text);

	*err = (struct err){0};
	return class_check(&a, &nobody, err);
}

static void
every_vector(void **state)
{
	static const struct {
		const char *address;
		bool public;
		const char *near;
	} rows[] = {
#define VECTOR(address, public, near) {address, public, near},
#include "vectors.def"
#undef VECTOR
	};
	struct err err;

	(void)state;
	assert_int_equal(ARRAY_LEN(rows), 115);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (judge(rows[i].address, &err) != (rows[i].public ? 0 : -EACCES))
			fail_msg("%s (%s): %s", rows[i].address, rows[i].near, err.text);
}

/* B9 B11 B12 B13 B14 B18: the sentence names the address inside and what it is. */
static void
B9_what_is_inside_is_named(void **state)
{
	static const struct {
		const char *address, *says;
	} rows[] = {
		{"::ffff:127.0.0.1", "IPv4-mapped of 127.0.0.1 (loopback)"},
		{"::ffff:0:10.0.0.1", "IPv4-translated of 10.0.0.1 (private)"},
		{"64:ff9b::a9fe:a9fe", "NAT64 of 169.254.169.254 (link-local"},
		{"64:ff9b:1::a9fe:a9fe", "local NAT64 of 169.254.169.254 (link-local"},
		{"2002:a9fe:a9fe::1", "6to4 of 169.254.169.254 (link-local"},
		{"2001:0:4136:e378:8000:63bf:5601:5601", "Teredo of 169.254.169.254 (link-local"},
		{"64:ff9b::102:304", "NAT64 of 1.2.3.4 (public)"},
		{"2607:f8b0::5efe:10.0.0.1", "ISATAP"},
		{"2607:f8b0:1:2:200:5efe:808:808", "ISATAP"},
		{"::7f00:1", "IPv4-compatible"},
		{"::1", "loopback"},
		{"::", "unspecified"},
		{"4000::1", "outside of 2000::/3"},
	};
	struct err err;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(judge(rows[i].address, &err), -EACCES);
		if (strstr(err.text, rows[i].says) == NULL)
			fail_msg("%s: %s", rows[i].address, err.text);
	}
}

/* B22: public addresses that are this host's, and the network around them. */
static void
B22_own_networks(void **state)
{
	struct own own = {.n = 3};
	struct address a;
	struct err err;

	(void)state;
	own.net[0] = (struct network){any_form("93.184.216.34"), 28};
	own.net[1] = (struct network){any_form("2606:4700:1:2::3"), 64};
	own.net[2] = (struct network){any_form("140.82.112.3"), 32};
	static const struct {
		const char *address;
		int is;
	} rows[] = {{"93.184.216.32", -EACCES}, {"93.184.216.47", -EACCES}, {"93.184.216.31", 0},
		{"93.184.216.48", 0}, {"2606:4700:1:2::1", -EACCES}, {"2606:4700:1:3::1", 0},
		{"140.82.112.3", -EACCES}, {"140.82.112.2", 0}, {"140.82.112.4", 0}};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		a = any_form(rows[i].address);
		if (class_check(&a, &own, &err) != rows[i].is)
			fail_msg("%s", rows[i].address);
	}
}

static void
own_is_learned(void **state)
{
	struct own own;
	struct err err = {0};
	bool loopback = false;

	(void)state;
	assert_int_equal(own_learn(&own, &err), 0);
	for (size_t i = 0; i < own.n; i++) {
		assert_true(own.net[i].bits > 0);
		loopback |= own.net[i].first.family == AF_INET && own.net[i].first.b[0] == 127 &&
			    own.net[i].bits == 8;
	}
	assert_true(loopback);
}

static void
sockets_and_back(void **state)
{
	static const char *const rows[] = {"1.2.3.4", "2606:4700::1"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct address a = any_form(rows[i]), b;
		struct sockaddr_storage at;
		uint16_t port;

		assert_int_equal(address_sock(&a, 4433, &at),
			a.family == AF_INET ? sizeof(struct sockaddr_in)
					    : sizeof(struct sockaddr_in6));
		assert_true(address_of_sock(&at, &b, &port));
		assert_true(address_eq(&a, &b));
		assert_int_equal(port, 4433);
		b.b[3] ^= 1;
		assert_false(address_eq(&a, &b));
		at.ss_family = AF_UNIX;
		assert_false(address_of_sock(&at, &b, &port));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(every_vector),
		cmocka_unit_test(B9_what_is_inside_is_named), cmocka_unit_test(B22_own_networks),
		cmocka_unit_test(own_is_learned), cmocka_unit_test(sockets_and_back)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
