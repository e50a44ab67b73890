/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts in text: one form of each address and name, none of what some program takes for an address. */
#include "lib/base/host.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* B2 B3 B4 B6 B7 B16: one form, or none. */
static void
B3_one_form_of_an_address(void **state)
{
	static const char *const bad[] = {"", "127.1", "127.0.1", "2130706433", "0x7f000001",
		"0177.0.0.1", "010.0.0.1", "1.2.3", "1.2.3.4.5", "1.2.3.256", "127.0.0.1.",
		"127.0.0.1 ", " 127.0.0.1", "127.0.0.1\n", "::ffff:7f00:1", "0:0:0:0:0:0:0:1",
		"2606:4700:0::1", "2606:4700::1%lo", "fe80::1%25lo", "[::1]", "2606:4700::00AB",
		"2606:4700::AB", ":", ":::", "g::1", "1:2:3:4:5:6:7:8:9"};
	static const char *const good[] = {
		"127.0.0.1", "0.0.0.0", "::1", "::", "2606:4700::ab", "::ffff:127.0.0.1"};
	struct address a;
	char text[ADDRESS_TEXT];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (address_parse(view_str(bad[i]), &a) == 0)
			fail_msg("%s was taken", bad[i]);
	assert_int_equal(address_parse(view_of("1.1.1.1\0", 8), &a), -EINVAL);
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		if (address_parse(view_str(good[i]), &a) < 0)
			fail_msg("%s was refused", good[i]);
		address_text(&a, text);
		assert_string_equal(text, good[i]);
	}
}

static void
addresses_with_ports(void **state)
{
	static const struct {
		const char *text, *address;
		uint16_t port;
	} good[] = {{"192.0.2.1", "192.0.2.1", 53}, {"192.0.2.1:5353", "192.0.2.1", 5353},
		{"2001:db8::1", "2001:db8::1", 53}, {"[2001:db8::1]:5353", "2001:db8::1", 5353}};
	static const char *const bad[] = {"", ":", "192.0.2.1:", "192.0.2.1:0", "192.0.2.1:65536",
		"192.0.2.1:053", "192.0.2.1:+53", "[192.0.2.1]:53", "[2001:db8::1]", "[]:53",
		"[:53", "2001:db8::1:99999", "2001:DB8::1", "name.example", "name.example:53",
		"127.1:53", "fe80::1%lo", "system"};
	struct address a;
	uint16_t port;
	char text[ADDRESS_TEXT];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		assert_int_equal(address_port_parse(view_str(good[i].text), 53, &a, &port), 0);
		address_text(&a, text);
		assert_string_equal(text, good[i].address);
		assert_int_equal(port, good[i].port);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (address_port_parse(view_str(bad[i]), 53, &a, &port) == 0)
			fail_msg("taken: %s", bad[i]);
}

/* A17 A18 A22 A23 */
static void
A23_names(void **state)
{
	static const char *const good[] = {"a", "pay.example", "xn--bcher-kva.test", "1.example",
		"a-b.c-d", "127.0.0.x", "0x7f.a1", "0x7g", "x0x7f", "0x7f-a", "00x1a", "xa",
		"0xa.0y"};
	static const char *const bad[] = {"", ".", "a.", ".a", "a..b", "-a", "a-", "a-.b", "a.-b",
		"A", "a b", "a/b", "a\tb", "b\xc3\xbc", "a:b", "a@b", "a%b", "*.a", "a_b", "1",
		"127.1", "2130706433", "a.1", "a.0-0", "10.0.0.1", "0x", "0x7f000001", "0xdeadbeef",
		"a.0x", "127.0.0.0x1", "1.0xf"};
	char name[HOST_NAME_MAX_BYTES + 2];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		if (!host_name_ok(view_str(good[i])))
			fail_msg("%s was refused", good[i]);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (host_name_ok(view_str(bad[i])))
			fail_msg("%s was taken", bad[i]);
	assert_false(host_name_ok(view_of("a\0b", 3)));
	memset(name, 'a', sizeof(name));
	assert_true(host_name_ok(view_of(name, 63)));
	assert_false(host_name_ok(view_of(name, 64)));
	for (size_t i = 49; i < sizeof(name); i += 50)
		name[i] = '.';
	assert_true(host_name_ok(view_of(name, 253)));
	assert_false(host_name_ok(view_of(name, 254)));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(B3_one_form_of_an_address),
		cmocka_unit_test(addresses_with_ports), cmocka_unit_test(A23_names)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
