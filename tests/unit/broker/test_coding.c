/* SPDX-License-Identifier: Apache-2.0 */
/* A secret is found in every coding, wherever it stands in a text, and nothing else is taken for it. */
#include "broker/coding.h"
#include "broker/secret.h"

#include "lib/base/base64.h"
#include "lib/base/fd.h"
#include "lib/base/hex.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

static int
file_of(const char *text, size_t n)
{
	int fd = memfd_create("secret", MFD_CLOEXEC);
	struct err err;

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, n, &err), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

static struct vault *
vault_with(const char *const *secrets, size_t n)
{
	struct vault *v = NULL;
	struct err err = {0};

	assert_int_equal(vault_new(&v, &err), 0);
	for (size_t i = 0; i < n; i++) {
		char name[24];
		int fd = file_of(secrets[i], strlen(secrets[i]));

		(void)snprintf(name, sizeof(name), "s%zu", i);
		if (vault_add(v, name, fd, &err) < 0)
			fail_msg("%s", err.text);
		(void)close(fd);
	}
	return v;
}

static const char *const secrets[] = {
	"sk_live_7f3a9c", "pass word/with+all=\"kinds\"\\&<>'~!*()", "Zm9vYmFyYmF6"};

static void
found(struct vault *v, const struct buf *b, const char *how)
{
	assert_int_equal(buf_check(b), 0);
	if (!vault_leaks(v, buf_view(b)))
		fail_msg("%s: %.*s", how, VIEW_ARGS(buf_view(b)));
}

static void
it_is_found_as_it_is(void **state)
{
	struct vault *v = vault_with(secrets, ARRAY_LEN(secrets));

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(secrets); i++) {
		auto_buf struct buf b = {.max = 4096};

		buf_addf(&b, "before%safter", secrets[i]);
		found(v, &b, "as it is");
	}
	assert_false(vault_leaks(v, view_str("")));
	assert_false(vault_leaks(v, view_str("sk_live_7f3a9d and other text")));
	vault_free(v);
}

static void
it_is_found_in_base_64_at_every_offset(void **state)
{
	struct vault *v = vault_with(secrets, ARRAY_LEN(secrets));

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(secrets); i++)
		for (size_t before = 0; before < 12; before++)
			for (size_t after = 0; after < 4; after++) {
				auto_buf struct buf plain = {.max = 4096}, b = {.max = 4096};

				buf_add(&plain, "\xff\xfe@@@@>>>>~~", before);
				buf_add_str(&plain, secrets[i]);
				buf_add(&plain, "\x01\xff??", after);
				base64_encode(buf_view(&plain), &b);
				found(v, &b, "base 64");
				for (size_t k = 0; k < b.n; k++)
					b.p[k] = b.p[k] == '+' ? '-' : b.p[k] == '/' ? '_' : b.p[k];
				found(v, &b, "base 64 of URLs");
			}
	vault_free(v);
}

static void
it_is_found_in_hexadecimal(void **state)
{
	struct vault *v = vault_with(secrets, ARRAY_LEN(secrets));

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(secrets); i++) {
		char hex[256];
		auto_buf struct buf b = {.max = 4096};

		hex_encode((const uint8_t *)secrets[i], strlen(secrets[i]), hex);
		buf_add_str(&b, hex);
		found(v, &b, "hex");
		for (size_t k = 0; k < b.n; k++)
			if (b.p[k] >= 'a')
				b.p[k] ^= 0x20;
		found(v, &b, "HEX");
	}
	vault_free(v);
}

static void
it_is_found_with_escapes(void **state)
{
	/* The second secret, as other programs write it. */
	static const char *const written[] = {
		"pass%20word%2Fwith%2Ball%3D%22kinds%22%5C%26%3C%3E%27~%21%2A%28%29",
		"pass%20word%2fwith%2ball%3d%22kinds%22%5c%26%3c%3e%27~%21%2a%28%29",
		"pass+word%2Fwith%2Ball%3D%22kinds%22%5C%26%3C%3E%27~%21%2A%28%29",
		"pass%20word%2Fwith%2Ball%3D%22kinds%22%5C%26%3C%3E'~!*()",
		"pass word/with+all=\\\"kinds\\\"\\\\&<>'~!*()",
		"pass word\\/with+all=\\\"kinds\\\"\\\\&<>'~!*()",
		"pass word/with+all=\\\"kinds\\\"\\\\\\u0026\\u003c\\u003e\\u0027~!*()"};
	struct vault *v = vault_with(secrets, ARRAY_LEN(secrets));

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(written); i++) {
		auto_buf struct buf b = {.max = 4096};

		buf_addf(&b, "<%s>", written[i]);
		found(v, &b, "escaped");
	}
	vault_free(v);
}

static void
what_is_no_secret_is_not_taken(void **state)
{
	static const char *const bad[] = {"", "\n", "seven77", "seven77\n", "with\nnewline inside",
		"with\rreturn", "with\ttab and more"};
	struct vault *v = NULL;
	struct err err = {0};
	char big[8194];
	int fd;

	(void)state;
	assert_int_equal(vault_new(&v, &err), 0);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		fd = file_of(bad[i], strlen(bad[i]));
		assert_int_equal(vault_add(v, "x", fd, &err), -EINVAL);
		(void)close(fd);
	}
	memset(big, 'x', sizeof(big));
	big[8192] = '\n';
	fd = file_of(big, 8193); /* 8192 and a newline */
	assert_int_equal(vault_add(v, "x", fd, &err), 0);
	(void)close(fd);
	big[8192] = 'x';
	fd = file_of(big, 8193);
	assert_int_equal(vault_add(v, "y", fd, &err), -EINVAL);
	(void)close(fd);
	fd = file_of("good enough", 11);
	assert_int_equal(vault_add(v, "x", fd, &err), -EEXIST);
	(void)close(fd);
	assert_int_equal(vault_count(v), 1);
	assert_null(vault_find(v, view_str("y")));
	vault_free(v);
}

static void
one_more_than_64_is_refused(void **state)
{
	struct vault *v = NULL;
	struct err err = {0};

	(void)state;
	assert_int_equal(vault_new(&v, &err), 0);
	for (unsigned i = 0; i < 65; i++) {
		int fd = file_of("good enough", 11);
		char name[8];

		(void)snprintf(name, sizeof(name), "s%u", i);
		assert_int_equal(vault_add(v, name, fd, &err), i < 64 ? 0 : -E2BIG);
		(void)close(fd);
	}
	vault_free(v);
}

static void
a_header_has_prefix_and_secret(void **state)
{
	struct vault *v = vault_with(secrets, 1);
	char *h = secret_header(
		vault_find(v, view_str("s0")), view_str("Authorization"), view_str("Bearer "));

	(void)state;
	assert_string_equal(h, "Authorization: Bearer sk_live_7f3a9c");
	secret_header_free(h);
	vault_free(v);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_found_as_it_is),
		cmocka_unit_test(it_is_found_in_base_64_at_every_offset),
		cmocka_unit_test(it_is_found_in_hexadecimal),
		cmocka_unit_test(it_is_found_with_escapes),
		cmocka_unit_test(what_is_no_secret_is_not_taken),
		cmocka_unit_test(one_more_than_64_is_refused),
		cmocka_unit_test(a_header_has_prefix_and_secret),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
