/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ClientHellos: built byte by byte, made by OpenSSL in each of its shapes, put into records in different ways and cut at each place. What was
 * read of a hello of OpenSSL is what OpenSSL's own server reads of it.
 */
#include "gateway/hello.h"

#include "lib/base/buf.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static struct buf message; /* without the header of the record */
static struct buf bytes;

static void
put(struct buf *b, size_t v, size_t n)
{
	while (n-- > 0)
		buf_add_byte(b, (uint8_t)(v >> 8 * n));
}

static void
set(struct buf *b, size_t at, size_t v, size_t n)
{
	while (n-- > 0)
		b->p[at++] = (uint8_t)(v >> 8 * n);
}

/* Up to the length of the extensions, which end() fills in. */
static void
begin(void)
{
	buf_clear(&message);
	put(&message, 1, 1);
	put(&message, 0, 3);
	put(&message, 0x0303, 2);
	for (int i = 0; i < 32; i++)
		put(&message, 0xaa, 1);
	put(&message, 0, 1);
	put(&message, 2, 2);
	put(&message, 0x1301, 2);
	put(&message, 1, 1);
	put(&message, 0, 1);
	put(&message, 0, 2);
}

enum { EXTENSIONS_AT = 4 + 2 + 32 + 1 + 4 + 2 };

static void
end(void)
{
	set(&message, EXTENSIONS_AT, message.n - EXTENSIONS_AT - 2, 2);
	set(&message, 1, message.n - 4, 3);
}

static void
extension(size_t type, const void *p, size_t n)
{
	put(&message, type, 2);
	put(&message, n, 2);
	buf_add(&message, p, n);
}

static void
server_name(const char *name, size_t n)
{
	put(&message, 0, 2);
	put(&message, n + 5, 2);
	put(&message, n + 3, 2);
	put(&message, 0, 1);
	put(&message, n, 2);
	buf_add(&message, name, n);
}

/* The message in records of so many bytes. */
static void
records(size_t each)
{
	buf_clear(&bytes);
	for (size_t at = 0; at < message.n; at += each) {
		size_t n = message.n - at < each ? message.n - at : each;

		put(&bytes, 22, 1);
		put(&bytes, 0x0301, 2);
		put(&bytes, n, 2);
		buf_add(&bytes, message.p + at, n);
	}
	assert_int_equal(buf_check(&bytes), 0);
}

/* One verdict, and before it only MORE. Each prefix is in memory of its own, so that a read behind it is found. */
static enum hello_verdict
read_cut(struct hello *ret)
{
	struct hello h, untouched;
	enum hello_verdict v = HELLO_MORE, all;

	memset(&untouched, 0x55, sizeof(untouched));
	all = hello_read(buf_view(&bytes), ret);
	for (size_t n = 0; n < bytes.n && v == HELLO_MORE; n++) {
		uint8_t *copy = malloc(n + 1);

		memcpy(copy + 1, bytes.p, n);
		h = untouched;
		v = hello_read(view_of(copy + 1, n), &h);
		assert_true(v == HELLO_MORE || v == all);
		if (v == HELLO_DONE)
			assert_memory_equal(&h, ret, sizeof(h));
		else
			assert_memory_equal(&h, &untouched, sizeof(h));
		free(copy);
	}
	return all;
}

static enum hello_verdict
read_now(struct hello *ret)
{
	records(16384);
	return read_cut(ret);
}

static struct hello
good(void)
{
	struct hello h = {0};

	end();
	assert_int_equal(read_now(&h), HELLO_DONE);
	return h;
}

static void
a_name_is_read(void **state)
{
	struct hello h;

	(void)state;
	begin();
	server_name("allowed.test", 12);
	h = good();
	assert_true(h.has_name && !h.name_bad && !h.ech && h.http1);
	assert_int_equal(h.name_n, 12);
	assert_memory_equal(h.name, "allowed.test", 12);
	begin();
	h = good();
	assert_true(!h.has_name && !h.name_bad && h.http1);
	/* no extensions at all, not even their length */
	begin();
	message.n -= 2;
	set(&message, 1, message.n - 4, 3);
	assert_int_equal(read_now(&h), HELLO_DONE);
	assert_false(h.has_name);
}

static void
G7_one_canonical_name(void **state)
{
	static const struct {
		const char *said;
		size_t n;
		const char *name; /* NULL: bad */
	} rows[] = {
		{"ALLOWED.Test", 12, "allowed.test"},
		{"xn--bcher-kva.test", 18, "xn--bcher-kva.test"},
		{"allowed.test.", 13, NULL},
		{".allowed.test", 13, NULL},
		{"allowed..test", 13, NULL},
		{"192.0.2.7", 9, NULL},
		{"2001:db8::7", 11, NULL},
		{"[::1]", 5, NULL},
		{"0x7f.1", 6, NULL},
		{"allowed.test\0", 13, NULL},
		{"allowed.test\0.evil.test", 23, NULL},
		{"allowed.test ", 13, NULL},
		{"allowed.test:443", 16, NULL},
		{"user@allowed.test", 17, NULL},
		{"*.allowed.test", 14, NULL},
		{"-a.test", 7, NULL},
		{"a-.test", 7, NULL},
		{"b\xc3\xbc.test", 8, NULL},
		{"", 0, NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct hello h;

		begin();
		server_name(rows[i].said, rows[i].n);
		h = good();
		assert_true(h.has_name);
		assert_int_equal(h.name_bad, rows[i].name == NULL);
		assert_int_equal(h.name_n, rows[i].name == NULL ? 0 : strlen(rows[i].name));
		if (rows[i].name != NULL)
			assert_memory_equal(h.name, rows[i].name, h.name_n);
	}
}

static void
G7_as_long_as_a_name_can_be(void **state)
{
	char name[300];

	(void)state;
	for (size_t n = 250; n <= 260; n++) {
		struct hello h;

		for (size_t i = 0; i < n; i++)
			name[i] = i % 50 == 49 && i + 1 < n ? '.' : 'a';
		begin();
		server_name(name, n);
		h = good();
		assert_int_equal(h.name_bad, n > 253);
		assert_int_equal(h.name_n, n > 253 ? 0 : n);
	}
}

static void
G7_two_names_none_or_another_kind(void **state)
{
	struct hello h;

	(void)state;
	begin();
	extension(0,
		"\0\x0c\0\0\x03"
		"a.b"
		"\0\0\x03"
		"a.b",
		14);
	h = good();
	assert_true(h.has_name && h.name_bad && h.name_n == 0);
	begin();
	extension(0, "\0\0", 2);
	h = good();
	assert_true(h.has_name && h.name_bad);
	begin();
	extension(0,
		"\0\x06\x01\0\x03"
		"a.b",
		8);
	h = good();
	assert_true(h.has_name && h.name_bad);
}

static void
lengths_that_contradict_each_other(void **state)
{
	static const struct {
		size_t type;
		const char *p;
		size_t n;
	} rows[] = {
		{0, "", 0},
		{0, "\0", 1},
		{0,
			"\0\x06\0\0\x03"
			"a.bx",
			9},
		{0,
			"\0\x07\0\0\x03"
			"a.b",
			8},
		{0,
			"\0\x06\0\0\x04"
			"a.b",
			8},
		{0,
			"\0\x06\0\0\x02"
			"a.b",
			8},
		{0, "\0\x01\0", 3},
		{0, "\0\x02\0\0", 4},
		{16, "", 0},
		{16, "\0\0", 2},
		{16, "\0\x01\0", 3},
		{16, "\0\x03\x03h2", 5},
		{16, "\0\x03\x01h2", 5},
		{16, "\0\x02\x02h2", 5},
		{16, "\0\x03\x02h2x", 6},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct hello h;

		begin();
		extension(rows[i].type, rows[i].p, rows[i].n);
		end();
		assert_int_equal(read_now(&h), HELLO_NOT_TLS);
	}
}

/* Each number of bytes of the fixed part: one more or one less, and the hello is none. */
static void
a_hello_that_is_cut_or_goes_on_against_its_length(void **state)
{
	struct hello h;
	size_t n;

	(void)state;
	begin();
	server_name("allowed.test", 12);
	end();
	n = message.n;
	for (size_t less = 1; less < n - 4; less++) {
		message.n = n - less;
		set(&message, 1, message.n - 4, 3);
		/* Exactly without extensions it is one again. */
		assert_int_equal(
			read_now(&h), message.n == EXTENSIONS_AT ? HELLO_DONE : HELLO_NOT_TLS);
	}
	message.n = n;
	put(&message, 0, 1);
	set(&message, 1, message.n - 4, 3);
	assert_int_equal(read_now(&h), HELLO_NOT_TLS);
	message.n = n;
	set(&message, 1, n - 4, 3);
	put(&message, 0, 1); /* the record is longer than its message */
	assert_int_equal(read_now(&h), HELLO_NOT_TLS);
	message.n = n;
	set(&message, EXTENSIONS_AT - 7, 33, 1); /* a session of 33 bytes */
	assert_int_equal(read_now(&h), HELLO_NOT_TLS);
}

static void
an_extension_twice(void **state)
{
	struct hello h;

	(void)state;
	begin();
	server_name("allowed.test", 12);
	server_name("evil.test", 9);
	end();
	assert_int_equal(read_now(&h), HELLO_NOT_TLS);
	begin();
	extension(0xfafa, "", 0);
	extension(0xfafa, "", 0);
	end();
	assert_int_equal(read_now(&h), HELLO_NOT_TLS);
}

static void
G8_encrypted_hellos_are_seen(void **state)
{
	static const size_t types[] = {0xfe0d, 0xffce};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		struct hello h;

		begin();
		server_name("outer.test", 10);
		extension(types[i], "\0\0\1\0\1\x7f\0\0\0\0", 10);
		h = good();
		assert_true(h.ech && h.has_name && !h.name_bad);
	}
}

static void
protocols_that_are_offered(void **state)
{
	struct hello h;

	(void)state;
	begin();
	extension(16, "\0\x0c\x02h2\x08http/1.1", 14);
	h = good();
	assert_true(h.http1);
	begin();
	extension(16, "\0\x03\x02h2", 5);
	h = good();
	assert_false(h.http1);
	begin();
	extension(16, "\0\x09\x08http/1.0", 11);
	h = good();
	assert_false(h.http1);
}

static void
G9_over_many_records_and_cut_anywhere(void **state)
{
	(void)state;
	for (size_t each = 1; each < 200; each++) {
		struct hello h;

		begin();
		extension(0xfafa, "1234567890", 10);
		server_name("allowed.test", 12);
		end();
		records(each);
		assert_int_equal(read_cut(&h), HELLO_DONE);
		assert_int_equal(h.name_n, 12);
		assert_memory_equal(h.name, "allowed.test", 12);
		buf_add(&bytes, "\x14\x03\x03\0\1\1", 6); /* what follows is not looked at */
		assert_int_equal(hello_read(buf_view(&bytes), &h), HELLO_DONE);
	}
}

/* The limit counts what came, headers of records too. */
static void
G9_too_long(void **state)
{
	static uint8_t filler[HELLO_MAX];

	(void)state;
	for (size_t each = 7; each <= 16384; each = each == 7      ? 5000
						    : each == 5000 ? 16384
								   : 20000) {
		for (size_t n = 12000 * (each != 7); n<16400; n += n> 16200 ? 1 : 400) {
			struct hello h;
			enum hello_verdict v;

			begin();
			extension(0xfafa, filler, n);
			end();
			records(each);
			v = hello_read(buf_view(&bytes), &h);
			assert_int_equal(v, bytes.n > HELLO_MAX ? HELLO_LONG : HELLO_DONE);
			if (v == HELLO_LONG)
				assert_int_equal(hello_read(view_of(bytes.p, HELLO_MAX), &h), v);
		}
	}
	begin();
	set(&message, 1, 0xffffff, 3);
	message.n = 4;
	records(16384);
	assert_int_equal(hello_read(buf_view(&bytes), &(struct hello){0}), HELLO_LONG);
}

static void
G11_what_is_not_TLS(void **state)
{
	static const struct {
		const char *p;
		size_t n;
	} rows[] = {
		{"SSH-2.0-OpenSSH_9.2\r\n", 21}, {"EHLO me\r\n", 9}, {"GET / HTTP/1.1\r\n\r\n", 18},
		{"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24},
		{"PROXY TCP4 10.0.0.1 10.0.0.2 1 443\r\n", 36},
		{"\r\n\r\n\0\r\nQUIT\n", 12}, /* PROXY protocol, version 2 */
		{"\0\0\0\0\0\0\0\0", 8}, {"\x80\x2e\x01\x03\x01", 5}, /* a hello of SSL 2 */
		{"\x16\x02\x00\0\x10\1", 6},                          /* another major version */
		{"\x16\x03\x05\0\x10\1", 6}, {"\x16\x03\x01\0\0", 5}, /* a record without bytes */
		{"\x16\x03\x01\x40\x01\1", 6}, /* a record of more than 2^14 */
		{"\x16\x03\x01\0\x10\2", 6},   /* a hello of a server */
		{"\x16\x03\x01\0\x10\0", 6}, {"\x15\x03\x01\0\2\2\x28", 7}, /* an alert */
		{"\x17\x03\x03\0\x10", 5}, {"\x14\x03\x03\0\1\1", 6},
		{"\x16\x03\x01\0\1\1\x15\x03\x01\0\2", 11}, /* an alert in the middle */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct hello h;

		buf_clear(&bytes);
		buf_add(&bytes, rows[i].p, rows[i].n);
		assert_int_equal(read_cut(&h), HELLO_NOT_TLS);
	}
	assert_int_equal(hello_read(view_of(NULL, 0), &(struct hello){0}), HELLO_MORE);
}

/* ---- of OpenSSL ---- */

/* Taken from real clients (fuzz/hello/seeds, behind one byte for the harness). */
static void
hellos_of_real_clients_say_what_they_said(void **state)
{
	static const char *const clients[] = {
		"curl", "git", "go", "node", "openssl", "openssl12", "python"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(clients); i++) {
		uint8_t room[4096];
		struct hello h;
		char path[256];
		size_t n;
		FILE *f;

		(void)snprintf(path, sizeof(path), SEEDS "/%s", clients[i]);
		f = fopen(path, "rb");
		assert_non_null(f);
		n = fread(room, 1, sizeof(room), f);
		(void)fclose(f);
		buf_clear(&bytes);
		buf_add(&bytes, room + 1, n - 1);
		assert_int_equal(read_cut(&h), HELLO_DONE);
		assert_true(h.has_name && !h.name_bad && !h.ech && h.http1);
		assert_int_equal(h.name_n, 12);
		assert_memory_equal(h.name, "allowed.test", 12);
	}
}

/* What OpenSSL's server reads of the same bytes. */
static int
note_name(SSL *ssl, int *alert, void *arg)
{
	const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);

	(void)alert;
	*(const char **)arg = name == NULL ? "" : strdup(name);
	return SSL_TLSEXT_ERR_ALERT_FATAL;
}

static char *
name_by_openssl(void)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
	BIO *in = BIO_new_mem_buf(bytes.p, (int)bytes.n), *out = BIO_new(BIO_s_mem());
	char *name = NULL;
	SSL *ssl;

	SSL_CTX_set_tlsext_servername_callback(ctx, note_name);
	SSL_CTX_set_tlsext_servername_arg(ctx, &name);
	ssl = SSL_new(ctx);
	SSL_set_bio(ssl, in, out);
	(void)SSL_accept(ssl);
	ERR_clear_error();
	SSL_free(ssl);
	SSL_CTX_free(ctx);
	return name;
}

/* The first flight of a client that is set up like that. */
static void
hello_by_openssl(const char *name, int from, int to, const char *groups, bool alpn)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());
	char server[64], list[64]; /* OpenSSL's macros cast const away */
	SSL *ssl;
	char *p;
	long n;

	assert_in_range(snprintf(list, sizeof(list), "%s", groups), 1, sizeof(list) - 1);
	(void)SSL_CTX_set_min_proto_version(ctx, from);
	(void)SSL_CTX_set_max_proto_version(ctx, to);
	assert_int_equal(SSL_CTX_set1_groups_list(ctx, list), 1);
	if (alpn)
		(void)SSL_CTX_set_alpn_protos(ctx, (const uint8_t *)"\x02h2\x08http/1.1", 12);
	ssl = SSL_new(ctx);
	SSL_set_bio(ssl, in, out);
	if (name != NULL) {
		assert_in_range(
			snprintf(server, sizeof(server), "%s", name), 1, sizeof(server) - 1);
		assert_int_equal(SSL_set_tlsext_host_name(ssl, server), 1);
	}
	(void)SSL_connect(ssl);
	ERR_clear_error();
	n = BIO_get_mem_data(out, &p);
	buf_clear(&bytes);
	buf_add(&bytes, p, (size_t)n);
	buf_clear(&message);
	buf_add(&message, p + 5, (size_t)n - 5);
	SSL_free(ssl);
	SSL_CTX_free(ctx);
}

static void
hellos_of_OpenSSL_say_the_same_to_us_and_to_OpenSSL(void **state)
{
	static const char *const names[] = {
		"allowed.test", "a.b.c.allowed.test", "ALLOWED.test", NULL};
	static const char *const groups[] = {"P-256", "X25519:P-384:P-521:X448"};

	(void)state;
	for (size_t i = 0; i < 4 * 2 * 2 * 2; i++) {
		const char *name = names[i & 3];
		struct hello h;
		char *said;

		hello_by_openssl(name, TLS1_2_VERSION,
			(i & 4) != 0 ? TLS1_3_VERSION : TLS1_2_VERSION, groups[i >> 3 & 1],
			(i & 16) != 0);
		assert_int_equal(read_cut(&h), HELLO_DONE);
		said = name_by_openssl();
		assert_non_null(said);
		assert_int_equal(h.has_name, name != NULL);
		assert_false(h.name_bad || h.ech);
		assert_int_equal(strncasecmp(said, h.name, h.name_n), 0);
		assert_int_equal(strlen(said), h.name_n);
		assert_true(h.http1);
		if (said[0] != '\0')
			free(said);
		for (size_t each = 1; each < 60; each += 7) {
			struct hello again;

			records(each);
			assert_int_equal(hello_read(buf_view(&bytes), &again), HELLO_DONE);
			assert_memory_equal(&again, &h, sizeof(h));
		}
	}
}

/* Any one byte of a hello changed: never a name that OpenSSL does not read too. */
static void
no_change_of_a_byte_makes_us_read_another_name(void **state)
{
	struct hello h;
	size_t n;

	(void)state;
	hello_by_openssl("allowed.test", TLS1_2_VERSION, TLS1_3_VERSION, "P-256", true);
	n = bytes.n;
	for (size_t at = 0; at < n; at++) {
		uint8_t was = bytes.p[at];

		for (unsigned bit = 0; bit < 8; bit++) {
			char *said;

			bytes.p[at] = (uint8_t)(was ^ 1U << bit);
			memset(&h, 0, sizeof(h));
			if (hello_read(buf_view(&bytes), &h) != HELLO_DONE || h.name_bad)
				continue;
			said = name_by_openssl();
			if (said == NULL) /* it refuses what we leave to it */
				continue;
			assert_int_equal(strlen(said), h.name_n);
			assert_int_equal(strncasecmp(said, h.name, h.name_n), 0);
			if (said[0] != '\0')
				free(said);
		}
		bytes.p[at] = was;
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_is_read),
		cmocka_unit_test(G7_one_canonical_name),
		cmocka_unit_test(G7_as_long_as_a_name_can_be),
		cmocka_unit_test(G7_two_names_none_or_another_kind),
		cmocka_unit_test(lengths_that_contradict_each_other),
		cmocka_unit_test(a_hello_that_is_cut_or_goes_on_against_its_length),
		cmocka_unit_test(an_extension_twice),
		cmocka_unit_test(G8_encrypted_hellos_are_seen),
		cmocka_unit_test(protocols_that_are_offered),
		cmocka_unit_test(G9_over_many_records_and_cut_anywhere),
		cmocka_unit_test(G9_too_long),
		cmocka_unit_test(G11_what_is_not_TLS),
		cmocka_unit_test(hellos_of_real_clients_say_what_they_said),
		cmocka_unit_test(hellos_of_OpenSSL_say_the_same_to_us_and_to_OpenSSL),
		cmocka_unit_test(no_change_of_a_byte_makes_us_read_another_name),
	};
	int r;

	(void)OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
	buf_init(&message, 65536);
	buf_init(&bytes, 1 << 20);
	r = cmocka_run_group_tests(tests, NULL, NULL);
	buf_done(&message);
	buf_done(&bytes);
	return r;
}
