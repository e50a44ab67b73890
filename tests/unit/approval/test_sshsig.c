/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lib/approval/sshsig: what ssh-keygen signs holds here, what this composes holds for ssh-keygen; any other byte, purpose, digest, kind of key
 * or touch does not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "keys.h"
#include "lib/approval/sshkey.h"
#include "lib/approval/sshsig.h"
#include "lib/approval/sshwire.h"
#include "lib/base/base64.h"
#include "lib/base/hex.h"

static const struct {
	const char *name, *type, *bits;
	enum sshkey_kind kind;
} kinds[] = {
	{"ed", "ed25519", NULL, SSHKEY_ED25519},
	{"p256", "ecdsa", "256", SSHKEY_ECDSA_256},
	{"p384", "ecdsa", "384", SSHKEY_ECDSA_384},
	{"p521", "ecdsa", "521", SSHKEY_ECDSA_521},
};

static char dir[KEYS_PATH];
static struct buf key[ARRAY_LEN(kinds)];
static const char message[] = "{\"approver\":\"anna\",\"decision\":\"approve\"}";

static int
begin(void **state)
{
	(void)state;
	keys_dir_make(dir);
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		buf_init(&key[i], 4096);
		keys_generate(dir, kinds[i].name, kinds[i].type, kinds[i].bits, &key[i]);
	}
	return 0;
}

static int
end(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		buf_done(&key[i]);
	keys_dir_remove(dir);
	return 0;
}

static bool
holds(struct view blob, struct view text, const char *name_space, bool user_verified,
	struct view of_key)
{
	struct sshsig s;
	struct err err;

	return sshsig_read(blob, &s, &err) == 0 &&
	       sshsig_verify(&s, text, name_space, user_verified, &err) == 0 &&
	       view_eq(s.key.blob, of_key);
}

static void
signatures_of_ssh_keygen_hold(void **state)
{
	static const char *const hashes[] = {"sha256", "sha512"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(kinds) * 2; i++) {
		auto_buf struct buf blob = {.max = 4096};
		const char *name = kinds[i / 2].name;

		keys_sign(dir, name, SSHSIG_NAMESPACE, hashes[i % 2], view_str(message), &blob);
		if (!holds(buf_view(&blob), view_str(message), SSHSIG_NAMESPACE, false,
			    buf_view(&key[i / 2])))
			fail_msg("%s with %s", name, hashes[i % 2]);
		assert_false(holds(buf_view(&blob), view_str("{}"), SSHSIG_NAMESPACE, false,
			buf_view(&key[i / 2])));
		/* No signature without a device says that it verified its owner. */
		assert_false(holds(buf_view(&blob), view_str(message), SSHSIG_NAMESPACE, true,
			buf_view(&key[i / 2])));
	}
}

/* Taken apart and composed again; the armour is ours. The digest is the one that sshsig_write names. */
static void
what_is_composed_here_holds_for_ssh_keygen(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		auto_buf struct buf blob = {.max = 4096}, again = {.max = 4096};
		const char *name = kinds[i].name;
		struct sshsig s;
		struct err err;

		keys_sign(dir, name, SSHSIG_NAMESPACE, "sha512", view_str(message), &blob);
		assert_int_equal(sshsig_read(buf_view(&blob), &s, &err), 0);
		assert_int_equal(s.key.kind, kinds[i].kind);
		sshsig_write(s.key.blob, SSHSIG_NAMESPACE, s.signature, &again);
		assert_true(view_eq(buf_view(&blob), buf_view(&again)));
		assert_true(keys_verify(
			dir, name, SSHSIG_NAMESPACE, view_str(message), buf_view(&again)));
		assert_false(
			keys_verify(dir, name, SSHSIG_NAMESPACE, view_str("{}"), buf_view(&again)));
		assert_false(keys_verify(dir, name, "git", view_str(message), buf_view(&again)));
	}
}

static void
another_purpose_is_refused(void **state)
{
	static const char *const others[] = {
		"git", "file", "demilune-approva", "demilune-approval2", "Demilune-approval"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		auto_buf struct buf blob = {.max = 4096};

		keys_sign(dir, "ed", others[i], "sha512", view_str(message), &blob);
		assert_true(holds(
			buf_view(&blob), view_str(message), others[i], false, buf_view(&key[0])));
		assert_false(holds(buf_view(&blob), view_str(message), SSHSIG_NAMESPACE, false,
			buf_view(&key[0])));
	}
}

/* Every bit of the blob, of the message; every shorter and longer blob. */
static void
no_bit_may_turn(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		auto_buf struct buf blob = {.max = 4096};
		char text[sizeof(message)];

		keys_sign(dir, kinds[i].name, SSHSIG_NAMESPACE, "sha512", view_str(message), &blob);
		for (size_t bit = 0; bit < blob.n * 8; bit++) {
			blob.p[bit / 8] ^= (uint8_t)(1 << bit % 8);
			if (holds(buf_view(&blob), view_str(message), SSHSIG_NAMESPACE, false,
				    buf_view(&key[i])))
				fail_msg("%s: bit %zu of the signature", kinds[i].name, bit);
			blob.p[bit / 8] ^= (uint8_t)(1 << bit % 8);
		}
		memcpy(text, message, sizeof(message));
		for (size_t bit = 0; bit < strlen(message) * 8; bit++) {
			text[bit / 8] = (char)(text[bit / 8] ^ (1 << bit % 8));
			if (holds(buf_view(&blob), view_of(text, strlen(message)), SSHSIG_NAMESPACE,
				    false, buf_view(&key[i])))
				fail_msg("%s: bit %zu of the message", kinds[i].name, bit);
			text[bit / 8] = (char)(text[bit / 8] ^ (1 << bit % 8));
		}
		for (size_t n = 0; n < blob.n; n++)
			assert_false(holds(view_of(blob.p, n), view_str(message), SSHSIG_NAMESPACE,
				false, buf_view(&key[i])));
		assert_true(holds(buf_view(&blob), view_str(message), SSHSIG_NAMESPACE, false,
			buf_view(&key[i])));
		buf_add_byte(&blob, 0);
		assert_false(holds(buf_view(&blob), view_str(message), SSHSIG_NAMESPACE, false,
			buf_view(&key[i])));
	}
}

static void
no_bit_of_a_key_may_turn(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		auto_buf struct buf blob = {.max = 4096}, other = {.max = 4096};
		struct sshsig s;
		struct err err;

		keys_sign(dir, kinds[i].name, SSHSIG_NAMESPACE, "sha512", view_str(message), &blob);
		assert_int_equal(sshsig_read(buf_view(&blob), &s, &err), 0);
		buf_add_view(&other, s.key.blob);
		for (size_t bit = 0; bit < other.n * 8; bit++) {
			struct sshsig with = s;

			other.p[bit / 8] ^= (uint8_t)(1 << bit % 8);
			if (sshkey_read(buf_view(&other), &with.key, &err) == 0 &&
				sshsig_verify(&with, view_str(message), SSHSIG_NAMESPACE, false,
					&err) == 0)
				fail_msg("%s: bit %zu of the key", kinds[i].name, bit);
			other.p[bit / 8] ^= (uint8_t)(1 << bit % 8);
		}
	}
}

struct parts {
	const char *magic;
	uint32_t version;
	struct view key, name_space, reserved, hash, signature;
	const char *behind;
};

static void
put_parts(const struct parts *p, struct buf *out)
{
	buf_add_str(out, p->magic);
	ssh_put_u32(out, p->version);
	ssh_put(out, p->key);
	ssh_put(out, p->name_space);
	ssh_put(out, p->reserved);
	ssh_put(out, p->hash);
	ssh_put(out, p->signature);
	buf_add_str(out, p->behind);
}

static void
shape(void **state)
{
	auto_buf struct buf blob = {.max = 4096};
	struct parts good, bad[9];
	struct sshsig s;
	struct err err;

	(void)state;
	keys_sign(dir, "ed", SSHSIG_NAMESPACE, "sha512", view_str(message), &blob);
	assert_int_equal(sshsig_read(buf_view(&blob), &s, &err), 0);
	good = (struct parts){"SSHSIG", 1, s.key.blob, s.name_space, view_str(""),
		view_str("sha512"), s.signature, ""};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		bad[i] = good;
	bad[0].magic = "SSHSIg";
	bad[1].version = 2;
	bad[2].version = 0;
	bad[3].reserved = view_str("x");
	bad[4].hash = view_str("sha1");
	bad[5].hash = view_str("sha384");
	bad[6].hash = view_str("");
	bad[7].name_space = view_str("");
	bad[8].behind = "x";
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		auto_buf struct buf b = {.max = 4096};

		put_parts(&bad[i], &b);
		if (sshsig_read(buf_view(&b), &s, &err) >= 0)
			fail_msg("part %zu was taken", i);
	}
	blob.n = 0;
	put_parts(&good, &blob);
	assert_int_equal(sshsig_read(buf_view(&blob), &s, &err), 0);
	/* The other digest's name over a signature of this one. */
	good.hash = view_str("sha256");
	blob.n = 0;
	put_parts(&good, &blob);
	assert_int_equal(sshsig_read(buf_view(&blob), &s, &err), 0);
	assert_int_equal(
		sshsig_verify(&s, view_str(message), SSHSIG_NAMESPACE, false, &err), -EKEYREJECTED);
}

/* The inner blob with other numbers: signs, leading zeros, too long, zero, a third one. */
static void
numbers_have_one_form(void **state)
{
	auto_buf struct buf blob = {.max = 4096};
	struct view rest, type = {0}, value = {0}, r = {0}, sn = {0};
	struct sshsig s;
	struct err err;

	(void)state;
	keys_sign(dir, "p256", SSHSIG_NAMESPACE, "sha512", view_str(message), &blob);
	assert_int_equal(sshsig_read(buf_view(&blob), &s, &err), 0);
	rest = s.signature;
	assert_int_equal(ssh_take(&rest, &type) | ssh_take(&rest, &value), 0);
	rest = value;
	assert_int_equal(ssh_take(&rest, &r) | ssh_take(&rest, &sn), 0);
	for (unsigned way = 0; way < 8; way++) {
		auto_buf struct buf number = {.max = 512}, numbers = {.max = 1024},
				    sig = {.max = 2048}, all = {.max = 4096};
		struct sshsig with;
		int want = way == 0 ? 0 : -EKEYREJECTED;

		if (way == 1 || way == 2)
			buf_add(&number, "\0\0", way);
		buf_add_view(&number, way == 3 && r.p[0] == 0 ? view_skip(r, 1) : r);
		if (way == 3 && r.p[0] != 0)
			number.p[0] |= 0x80; /* a negative one */
		if (way == 4)
			buf_clear(&number); /* zero */
		if (way == 5)
			for (unsigned i = 0; i < 34; i++)
				buf_add_byte(&number, 1);
		ssh_put(&numbers, buf_view(&number));
		ssh_put(&numbers, sn);
		if (way == 6)
			ssh_put(&numbers, sn);
		ssh_put(&sig, way == 7 ? view_str("ecdsa-sha2-nistp384") : type);
		ssh_put(&sig, buf_view(&numbers));
		sshsig_write(s.key.blob, SSHSIG_NAMESPACE, buf_view(&sig), &all);
		assert_int_equal(sshsig_read(buf_view(&all), &with, &err), 0);
		if (sshsig_verify(&with, view_str(message), SSHSIG_NAMESPACE, false, &err) != want)
			fail_msg("way %u", way);
	}
}

static void
other_keys_are_refused(void **state)
{
	auto_buf struct buf rsa = {.max = 4096}, b = {.max = 4096};
	struct sshkey k;
	struct err err;

	(void)state;
	keys_generate(dir, "rsa", "rsa", "2048", &rsa);
	assert_int_equal(sshkey_read(buf_view(&rsa), &k, &err), -ENOTSUP);
	keys_sign(dir, "rsa", SSHSIG_NAMESPACE, "sha512", view_str(message), &b);
	assert_false(
		holds(buf_view(&b), view_str(message), SSHSIG_NAMESPACE, false, buf_view(&rsa)));

	for (size_t i = 1; i < ARRAY_LEN(kinds); i++) {
		uint8_t *last = key[i].p + key[i].n - 1;
		size_t point = key[i].n - 1;

		*last ^= 1; /* off its curve */
		assert_int_equal(sshkey_read(buf_view(&key[i]), &k, &err), -EINVAL);
		*last ^= 1;
		assert_int_equal(sshkey_read(buf_view(&key[i]), &k, &err), 0);
		point = key[i].n - k.point.n;
		key[i].p[point] = 0x06; /* the hybrid form */
		assert_int_equal(sshkey_read(buf_view(&key[i]), &k, &err), -EINVAL);
		key[i].p[point] = 0x04;
	}
	/* A curve name that is not the type's. */
	buf_clear(&b);
	ssh_put(&b, view_str("ecdsa-sha2-nistp384"));
	ssh_put(&b, view_str("nistp256"));
	ssh_put(&b, view_of(key[1].p + key[1].n - 65, 65));
	assert_int_equal(sshkey_read(buf_view(&b), &k, &err), -EINVAL);
	/* The point at infinity. */
	buf_clear(&b);
	ssh_put(&b, view_str("ecdsa-sha2-nistp256"));
	ssh_put(&b, view_str("nistp256"));
	ssh_put(&b, view_of("\0", 1));
	assert_int_equal(sshkey_read(buf_view(&b), &k, &err), -EINVAL);
}

/* Keys with which a value that nobody signed holds for some message, and with the second for every one: OpenSSL has no objection. */
static void
keys_that_anybody_can_sign_with_are_refused(void **state)
{
	static const char *const heights[] = {
		"0000000000000000000000000000000000000000000000000000000000000000",
		"0100000000000000000000000000000000000000000000000000000000000000",
		"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
		"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
		"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"};
	struct err err;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(heights) * 4; i++) {
		auto_buf struct buf blob = {.max = 1024};
		struct sshkey k = {.kind = SSHKEY_ED25519};
		uint8_t point[32], value[64] = {1}; /* R: the neutral point; s: 0 */
		bool held = false, fido = i % 4 > 1;

		assert_int_equal(hex_decode(view_str(heights[i / 4]), point, 32), 0);
		point[31] |= (uint8_t)(i % 2 << 7);
		ssh_put(&blob, view_str(fido ? "sk-ssh-ed25519@openssh.com" : "ssh-ed25519"));
		ssh_put(&blob, view_of(point, 32));
		if (fido)
			ssh_put(&blob, view_str("ssh:"));
		assert_int_equal(sshkey_read(buf_view(&blob), &k, &err), -EINVAL);
		/* That they are what the table says: one message in at most eight holds. */
		k.point = view_of(point, 32);
		for (uint8_t text = 0; text < 200; text++)
			held = held || sshkey_signed(&k, view_of(&text, 1), view_of(value, 64));
		if (i % 2 == 0)
			assert_true(held);
	}
}

static void
fingerprints_as_ssh_keygen(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		char text[SSHKEY_FINGERPRINT], pub[KEYS_PATH];
		const char *const argv[] = {"ssh-keygen", "-l", "-f", pub, NULL};
		auto_buf struct buf out = {.max = 4096};

		keys_path(pub, dir, kinds[i].name, ".pub");
		assert_int_equal(program_run(argv, NULL, &out), 0);
		sshkey_fingerprint(buf_view(&key[i]), text);
		assert_non_null(memmem(out.p, out.n, text, strlen(text)));
	}
}

enum { PRESENT = 1, VERIFIED = 4 };

static void
hardware_keys(void **state)
{
	static const struct {
		uint8_t flags, told;
		bool user_verified, good;
	} rows[] = {
		{PRESENT, PRESENT, false, true},
		{PRESENT | VERIFIED, PRESENT | VERIFIED, true, true},
		{PRESENT | VERIFIED, PRESENT | VERIFIED, false, true},
		{0, 0, false, false}, /* nobody touched it */
		{VERIFIED, VERIFIED, false, false},
		{VERIFIED, VERIFIED, true, false},
		{PRESENT, PRESENT, true, false}, /* touched, but by whom */
		{0, PRESENT, false, false},      /* says what it did not sign */
		{PRESENT, PRESENT | VERIFIED, true, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows) * 2; i++) {
		auto_buf struct buf blob = {.max = 4096}, pub = {.max = 1024};
		struct fido *f = fido_new(i % 2 == 1, "ssh:");
		size_t row = i / 2;

		fido_blob(f, &pub);
		fido_sign(f, SSHSIG_NAMESPACE, view_str(message), rows[row].flags, rows[row].told,
			7, &blob);
		if (holds(buf_view(&blob), view_str(message), SSHSIG_NAMESPACE,
			    rows[row].user_verified, buf_view(&pub)) != rows[row].good)
			fail_msg("row %zu, ecdsa %zu", row, i % 2);
		fido_free(f);
	}
}

static void
hardware_keys_bits_and_applications(void **state)
{
	static const char *const others[] = {
		"", "ssh", "https://example.com", "SSH:", "ssh:a b", "ssh:\n"};
	struct sshkey k;
	struct err err;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		auto_buf struct buf blob = {.max = 4096}, pub = {.max = 1024};
		struct fido *f = fido_new(i == 1, "ssh:work");

		fido_blob(f, &pub);
		fido_sign(f, SSHSIG_NAMESPACE, view_str(message), PRESENT, PRESENT, 1, &blob);
		for (size_t bit = 0; bit < blob.n * 8; bit++) {
			blob.p[bit / 8] ^= (uint8_t)(1 << bit % 8);
			if (holds(buf_view(&blob), view_str(message), SSHSIG_NAMESPACE, false,
				    buf_view(&pub)))
				fail_msg("bit %zu, ecdsa %zu", bit, i);
			blob.p[bit / 8] ^= (uint8_t)(1 << bit % 8);
		}
		fido_free(f);
	}
	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		auto_buf struct buf pub = {.max = 1024};
		struct fido *f = fido_new(false, others[i]);

		fido_blob(f, &pub);
		assert_int_equal(sshkey_read(buf_view(&pub), &k, &err), -EINVAL);
		fido_free(f);
	}
}

/* The device is played here, so that its bytes are right is for OpenSSH to say. */
static void
hardware_keys_hold_for_ssh_keygen(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2; i++) {
		auto_buf struct buf blob = {.max = 4096}, pub = {.max = 1024}, line = {.max = 4096};
		struct fido *f = fido_new(i == 1, "ssh:");
		char path[KEYS_PATH];

		fido_blob(f, &pub);
		buf_addf(&line, "%s ",
			i == 1 ? "sk-ecdsa-sha2-nistp256@openssh.com"
			       : "sk-ssh-ed25519@openssh.com");
		base64_encode(buf_view(&pub), &line);
		buf_add_str(&line, " test\n");
		keys_path(path, dir, "fido", ".pub");
		file_write(path, buf_view(&line));
		fido_sign(f, SSHSIG_NAMESPACE, view_str(message), PRESENT, PRESENT, 3, &blob);
		assert_true(keys_verify(
			dir, "fido", SSHSIG_NAMESPACE, view_str(message), buf_view(&blob)));
		fido_free(f);
	}
}

static void
armour(void **state)
{
	static const char *const bad[] = {"", "-----BEGIN SSH SIGNATURE-----\n",
		"-----BEGIN SSH SIGNATURE-----\nU1NI\n-----END SSH SIGNATURE-----",
		"-----BEGIN SSH SIGNATURE-----\nU1NI-----END SSH SIGNATURE-----\n",
		"-----BEGIN SSH SIGNATURE-----\n\nU1NI\n-----END SSH SIGNATURE-----\n",
		"-----BEGIN SSH SIGNATURE-----\nU1N\n-----END SSH SIGNATURE-----\n",
		"-----BEGIN SSH SIGNATURE-----\nU1NI\n-----END SSH SIGNATURE-----\nx",
		" -----BEGIN SSH SIGNATURE-----\nU1NI\n-----END SSH SIGNATURE-----\n",
		"-----BEGIN SSH SIGNATURE-----\n-----END SSH SIGNATURE-----"};
	auto_buf struct buf out = {.max = 4096};
	struct err err;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (sshsig_dearmour(view_str(bad[i]), &out, &err) != -EINVAL)
			fail_msg("armour %zu was taken", i);
	assert_int_equal(out.n, 0);
	assert_int_equal(sshsig_dearmour(view_str("-----BEGIN SSH SIGNATURE-----\nU1NI\n-----END "
						  "SSH SIGNATURE-----\n"),
				 &out, &err),
		0);
	assert_true(view_is(buf_view(&out), "SSH"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(signatures_of_ssh_keygen_hold),
		cmocka_unit_test(what_is_composed_here_holds_for_ssh_keygen),
		cmocka_unit_test(another_purpose_is_refused),
		cmocka_unit_test(no_bit_may_turn),
		cmocka_unit_test(no_bit_of_a_key_may_turn),
		cmocka_unit_test(shape),
		cmocka_unit_test(numbers_have_one_form),
		cmocka_unit_test(other_keys_are_refused),
		cmocka_unit_test(keys_that_anybody_can_sign_with_are_refused),
		cmocka_unit_test(fingerprints_as_ssh_keygen),
		cmocka_unit_test(hardware_keys),
		cmocka_unit_test(hardware_keys_bits_and_applications),
		cmocka_unit_test(hardware_keys_hold_for_ssh_keygen),
		cmocka_unit_test(armour),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
