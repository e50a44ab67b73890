/* SPDX-License-Identifier: Apache-2.0 */
/* Notes and checkpoints: the example of the format's authors, what is written is read, and everything else is refused. */
#include "lib/tlog/sign.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define TEXT                                                                                       \
	"If you think cryptography is the answer to your problem,\nthen you don't know what your " \
	"problem is.\n"
#define KEY "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
#define LINE                         \
	"\xe2\x80\x94 PeterNeumann " \
	"x08go/ZJkuBS9UG/"           \
	"SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n"

static void
the_example_of_the_format(void **state)
{
	char bytes[] = TEXT "\n" LINE, text[NOTE_KEY_TEXT];
	struct note_key k;
	struct note n;
	struct err err;

	(void)state;
	assert_int_equal(note_key_read(view_str(KEY), &k, &err), 0);
	note_key_write(&k, text);
	assert_string_equal(text, KEY);
	assert_int_equal(note_read(view_str(bytes), &n, &err), 0);
	assert_int_equal(n.n, 1);
	assert_true(view_is(n.text, TEXT));
	assert_true(note_signed(&n, &k));
	bytes[3] ^= 1;
	assert_int_equal(note_read(view_str(bytes), &n, &err), 0);
	assert_false(note_signed(&n, &k));
}

static void
bad_notes(void **state)
{
	static const char *const bad[] = {"", "\n", "\n\n", TEXT, TEXT "\n", TEXT LINE, "\n\n" LINE,
		"a\n\n\n", TEXT "\n" LINE "x", TEXT "\n" LINE "\n",
		TEXT "\n\xe2\x80\x94 PeterNeumann x08g\n",
		TEXT "\n\xe2\x80\x94 PeterNeumann x08go/==\n", TEXT "\n- PeterNeumann x08go/ZJ\n",
		TEXT "\n\xe2\x80\x94  PeterNeumann x08go/ZJ\n",
		TEXT "\n\xe2\x80\x94 Peter+Neumann x08go/ZJ\n",
		TEXT "\n\xe2\x80\x94 PeterNeumann x08go/ZJ \n",
		TEXT "\n\xe2\x80\x94 PeterNeumann x08go/ZJ\r\n", "a\tb\n\n" LINE, "a\xff\n\n" LINE,
		TEXT "\n" LINE LINE LINE LINE LINE LINE LINE LINE LINE};
	struct note n = {.n = 77};
	struct err err;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (note_read(view_str(bad[i]), &n, &err) != -EBADMSG)
			fail_msg("bad note %zu was taken", i);
	assert_int_equal(n.n, 77);
	assert_int_equal(
		note_read(view_of("a\n\0\n\n" LINE, 5 + sizeof(LINE) - 1), &n, &err), -EBADMSG);
}

static void
bad_keys(void **state)
{
	static const char *const bad[] = {"", "+", "++", "PeterNeumann", "PeterNeumann+c74f20a3",
		"PeterNeumann+c74f20a4+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/"
		"LDE4izWy10TW", /* another hash */
		"PeterNeumenn+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/"
		"LDE4izWy10TW", /* another name */
		"PeterNeumann+C74F20A3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/"
		"LDE4izWy10TW",
		"PeterNeumann+c74f20a3+AhpC2QcUPDhMQegwxbzhKqiBfsVkmqq/"
		"LDE4izWy10TW", /* another kind */
		"PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/"
		"LDE4izWy10TW\n",
		"Peter "
		"Neumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
		"+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
		"PeterNeumann+c74f20a3+ARpc2QcUPDhMQegw"};
	struct note_key k;
	struct err err;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (note_key_read(view_str(bad[i]), &k, &err) != -EBADMSG)
			fail_msg("bad key %zu was taken", i);
}

static void
H3_a_checkpoint_is_three_lines(void **state)
{
	static const char *const bad[] = {"", "o\n", "o\n1\n", "o\n1\nAAAA\n",
		"o\n01\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n",
		"o\n-1\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n",
		"o\n9223372036854775808\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n",
		"\n1\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n",
		"o o\n1\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n",
		"o\n1\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
		"o\n1\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAB=\n",
		"o\n1\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\nmore\n",
		"o\n1\r\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n"};
	auto_buf struct buf b = {.max = 4096};
	struct checkpoint c = {.origin = view_str("host.example/audit/2"), .size = 12345}, back;
	struct err err;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (checkpoint_read(view_str(bad[i]), &back, &err) != -EBADMSG)
			fail_msg("bad checkpoint %zu was taken", i);
	c.root = merkle_empty();
	checkpoint_write(&c, &b);
	assert_true(view_is(buf_view(&b),
		"host.example/audit/2\n12345\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n"));
	assert_int_equal(checkpoint_read(buf_view(&b), &back, &err), 0);
	assert_true(view_eq(back.origin, c.origin));
	assert_int_equal(back.size, 12345);
	assert_true(merkle_eq(&back.root, &c.root));
}

/* Signed, read and verified; no bit of the note can be changed. */
static void
every_bit_of_a_note_is_signed(void **state)
{
	auto_buf struct buf text = {.max = 4096}, out = {.max = 4096};
	struct checkpoint c = {.origin = view_str("host.example/audit"), .size = 7};
	struct note_key k = {.name = "host.example/audit"}, other = {.name = "host.example/audit"};
	uint8_t seed[ED25519_BYTES], other_seed[ED25519_BYTES];
	struct note n;
	struct err err;

	(void)state;
	assert_int_equal(ed25519_new(seed, &err), 0);
	assert_int_equal(ed25519_new(other_seed, &err), 0);
	assert_int_equal(note_key_of(seed, &k, &err), 0);
	assert_int_equal(note_key_of(other_seed, &other, &err), 0);
	checkpoint_write(&c, &text);
	assert_int_equal(note_sign(seed, &k, buf_view(&text), &out, &err), 0);
	assert_int_equal(note_read(buf_view(&out), &n, &err), 0);
	assert_true(note_signed(&n, &k));
	assert_false(note_signed(&n, &other));
	other.hash = k.hash; /* says it is the same key */
	assert_false(note_signed(&n, &other));
	for (size_t bit = 0; bit < out.n * 8; bit++) {
		out.p[bit / 8] ^= (uint8_t)(1 << bit % 8);
		if (note_read(buf_view(&out), &n, &err) == 0 && note_signed(&n, &k))
			fail_msg("bit %zu is not signed", bit);
		out.p[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_example_of_the_format),
		cmocka_unit_test(bad_notes),
		cmocka_unit_test(bad_keys),
		cmocka_unit_test(H3_a_checkpoint_is_three_lines),
		cmocka_unit_test(every_bit_of_a_note_is_signed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
