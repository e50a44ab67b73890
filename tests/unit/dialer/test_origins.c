/* SPDX-License-Identifier: Apache-2.0 */
/* The dialer's table and its name servers: what is read, what is refused, what is found. */
#include "dialer/origins.h"
#include "dialer/servers.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>

#include <cmocka.h>

static int
read_text(const char *text, struct origins *ret)
{
	struct err err = {0};

	return origins_read(view_str(text), ret, &err);
}

static void
rows_are_found(void **state)
{
	struct origins o;
	const struct origin *row;

	(void)state;
	assert_int_equal(
		read_text("{\"origins\":[{\"host\":\"1.1.1.1\",\"port\":443},"
			  "{\"address\":\"10.0.0.5\",\"host\":\"billing.example\",\"port\":8443},"
			  "{\"host\":\"pay.example\",\"port\":80},"
			  "{\"host\":\"pay.example\",\"port\":443}]}",
			&o),
		0);
	assert_int_equal(o.n, 4);
	row = origins_find(&o, view_str("pay.example"), 443);
	assert_true(row != NULL && !row->literal && !row->exact && row->port == 443);
	row = origins_find(&o, view_str("billing.example"), 8443);
	assert_true(row != NULL && row->literal && row->exact && row->address.b[0] == 10);
	row = origins_find(&o, view_str("1.1.1.1"), 443);
	assert_true(row != NULL && row->literal && !row->exact);
	/* C16: nothing beside them, in no other form. */
	static const struct {
		const char *host;
		uint16_t port;
	} no[] = {{"pay.example", 444}, {"pay.example", 0}, {"PAY.example", 443},
		{"pay.example.", 443}, {"ay.example", 443}, {"pay.exampl", 443}, {"", 443},
		{"10.0.0.5", 8443}, {"x.pay.example", 443}, {"localhost", 443}, {"1.1.1.1", 80}};

	for (size_t i = 0; i < ARRAY_LEN(no); i++)
		assert_null(origins_find(&o, view_str(no[i].host), no[i].port));
	origins_done(&o);
	assert_int_equal(read_text("{\"origins\":[]}", &o), 0);
	assert_int_equal(o.n, 0);
	assert_null(origins_find(&o, view_str("pay.example"), 443));
	origins_done(&o);
}

#define ROW(text) "{\"origins\":[" text "]}"

static void
documents_that_are_none(void **state)
{
	static const char *const bad[] = {"", "{}", "[]", "{\"origins\":{}}", "{\"origins\":[]} ",
		"{\"origins\":[],\"x\":1}", "{\"origin\":[]}", ROW("1"), ROW("{}"),
		ROW("{\"host\":\"a.b\"}"), ROW("{\"port\":1}"),
		ROW("{\"host\":\"a.b\",\"port\":0}"), ROW("{\"host\":\"a.b\",\"port\":65536}"),
		ROW("{\"host\":\"a.b\",\"port\":-1}"), ROW("{\"host\":\"a.b\",\"port\":\"1\"}"),
		ROW("{\"host\":1,\"port\":1}"), ROW("{\"host\":\"a.b\",\"port\":1,\"tls\":true}"),
		ROW("{\"host\":\"\",\"port\":1}"), ROW("{\"host\":\"A.b\",\"port\":1}"),
		ROW("{\"host\":\"a.b.\",\"port\":1}"), ROW("{\"host\":\"a.1\",\"port\":1}"),
		ROW("{\"host\":\"127.1\",\"port\":1}"), ROW("{\"host\":\"2130706433\",\"port\":1}"),
		ROW("{\"host\":\"010.0.0.1\",\"port\":1}"), ROW("{\"host\":\"a\\\\b\",\"port\":1}"),
		ROW("{\"address\":\"10.1\",\"host\":\"a.b\",\"port\":1}"),
		ROW("{\"address\":\"\",\"host\":\"a.b\",\"port\":1}"),
		ROW("{\"address\":\"10.0.0.1\",\"host\":\"10.0.0.2\",\"port\":1}"),
		ROW("{\"host\":\"b.c\",\"port\":1},{\"host\":\"a.c\",\"port\":1}"),
		ROW("{\"host\":\"a.c\",\"port\":1},{\"host\":\"a.c\",\"port\":1}"),
		ROW("{\"host\":\"a.c\",\"port\":2},{\"host\":\"a.c\",\"port\":1}")};
	struct origins o = {.n = 77};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (read_text(bad[i], &o) == 0)
			fail_msg("taken: %s", bad[i]);
	assert_int_equal(o.n, 77);
}

static void
no_more_than_512(void **state)
{
	static char text[ORIGINS_BYTES_MAX];
	struct origins o;

	(void)state;
	for (unsigned rows = ORIGINS_MAX; rows <= ORIGINS_MAX + 1; rows++) {
		size_t n = (size_t)snprintf(text, sizeof(text), "{\"origins\":[");

		for (unsigned i = 0; i < rows; i++)
			n += (size_t)snprintf(text + n, sizeof(text) - n,
				"%s{\"host\":\"h%04u.example\",\"port\":1}", i == 0 ? "" : ",", i);
		(void)snprintf(text + n, sizeof(text) - n, "]}");
		if (rows > ORIGINS_MAX) {
			assert_true(read_text(text, &o) < 0);
			continue;
		}
		assert_int_equal(read_text(text, &o), 0);
		for (unsigned i = 0; i < rows; i++) {
			char host[32];

			(void)snprintf(host, sizeof(host), "h%04u.example", i);
			assert_non_null(origins_find(&o, view_str(host), 1));
		}
		origins_done(&o);
	}
}

static void
files_that_can_change(void **state)
{
	static const int seals[] = {F_SEAL_WRITE, F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_SEAL};
	const int all = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
	struct origins o;
	struct err err;

	(void)state;
	for (size_t i = 0; i <= ARRAY_LEN(seals); i++) {
		auto_fd int fd = memfd_create("o", MFD_CLOEXEC | MFD_ALLOW_SEALING);
		int without = i < ARRAY_LEN(seals) ? seals[i] : 0;

		assert_int_equal(write(fd, "{\"origins\":[]}", 14), 14);
		assert_int_equal(fcntl(fd, F_ADD_SEALS, all & ~without), 0);
		assert_int_equal(origins_load(fd, &o, &err), without == 0 ? 0 : -EPROTO);
	}
	origins_done(&o);
	auto_fd int plain = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_int_equal(origins_load(plain, &o, &err), -EPROTO);
}

/* ---- name servers ---- */

static void
servers_of_the_system(void **state)
{
	struct servers s;
	char text[ADDRESS_TEXT];

	(void)state;
	servers_of_conf(view_str("# nameserver 1.1.1.1\nsearch example\nnameserver\t192.0.2.1 \r\n"
				 "nameservers 192.0.2.9\nnameserver fe80::1%eth0\n"
				 " nameserver 192.0.2.8\nnameserver 192.0.2.2\n"
				 "nameserver 2001:db8::1\nnameserver 192.0.2.3"),
		&s);
	assert_int_equal(s.n, 3);
	address_text(&s.row[0].address, text);
	assert_string_equal(text, "192.0.2.1");
	address_text(&s.row[2].address, text);
	assert_string_equal(text, "2001:db8::1");
	assert_int_equal(s.row[2].port, 53);
	servers_of_conf(view_str("nameserver"), &s);
	assert_int_equal(s.n, 0);
	servers_of_conf(view_of(NULL, 0), &s);
	assert_int_equal(s.n, 0);
}

static void
servers_of_the_message(void **state)
{
	struct msg_dialer_begin m = {.resolvers = {"127.0.0.1:5300", "", "::1"}};
	struct servers s;
	struct err err;

	(void)state;
	assert_int_equal(servers_find(&m, &s, &err), 0);
	assert_int_equal(s.n, 2);
	assert_int_equal(s.row[0].port, 5300);
	(void)snprintf(m.resolvers[1], sizeof(m.resolvers[1]), "system");
	assert_int_equal(servers_find(&m, &s, &err), -EINVAL);
	m = (struct msg_dialer_begin){0};
	assert_int_equal(servers_find(&m, &s, &err), 0);
	assert_int_equal(s.n, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(rows_are_found),
		cmocka_unit_test(documents_that_are_none), cmocka_unit_test(no_more_than_512),
		cmocka_unit_test(files_that_can_change), cmocka_unit_test(servers_of_the_system),
		cmocka_unit_test(servers_of_the_message)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
