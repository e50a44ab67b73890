/* SPDX-License-Identifier: Apache-2.0 */
/* Public keys; see sshsig.h. The arithmetic is OpenSSL's (libcrypto only), in openssl.c. */
#include "lib/approval/sshkey.h"

#include "lib/approval/sshwire.h"
#include "lib/base/base64.h"
#include "lib/base/hex.h"

const struct sshkey_row sshkey_rows[] = {
#define SSHKEY(kind, type, curve, group, digest, point, number, fido) \
	[SSHKEY_##kind] = {type, curve, group, digest, point, number, fido},
#include "lib/approval/sshkey.def"
#undef SSHKEY
};

enum { KINDS = ARRAY_LEN(sshkey_rows) };

const char *
sshkey_type(enum sshkey_kind kind)
{
	return sshkey_rows[kind].type;
}

static int
kind_of(struct view type, enum sshkey_kind *ret)
{
	for (unsigned i = 0; i < KINDS; i++) {
		if (!view_is(type, sshkey_rows[i].type))
			continue;
		*ret = (enum sshkey_kind)i;
		return 0;
	}
	return -ENOTSUP;
}

/* A FIDO application is a short name of printable ASCII; "ssh:" keeps keys of web sites out. */
static bool
application_ok(struct view v)
{
	if (!view_starts(v, "ssh:") || v.n > 255)
		return false;
	for (size_t i = 0; i < v.n; i++)
		if (v.p[i] <= ' ' || v.p[i] >= 0x7f)
			return false;
	return true;
}

/*
 * Keys of Ed25519 whose multiples are few: whoever has one can say of a signature by anybody that it is theirs, and anybody can make one. The
 * heights of the eight points, and the two that are written beyond the prime; either sign.
 */
static bool
is_small(struct view point)
{
	static const char *const small[] = {
		"0000000000000000000000000000000000000000000000000000000000000000",
		"0100000000000000000000000000000000000000000000000000000000000000",
		"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
		"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
		"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
	};
	uint8_t height[32];
	char text[65];

	memcpy(height, point.p, sizeof(height));
	height[31] &= 0x7f;
	hex_encode(height, sizeof(height), text);
	for (size_t i = 0; i < ARRAY_LEN(small); i++)
		if (strcmp(text, small[i]) == 0)
			return true;
	return false;
}

int
sshkey_read(struct view blob, struct sshkey *ret, struct err *err)
{
	struct sshkey key = {.blob = blob};
	struct view rest = blob, type, curve;
	const struct sshkey_row *row;

	if (blob.n > SSHKEY_BYTES_MAX || ssh_take(&rest, &type) < 0)
		return err_set(err, -EINVAL, "this is no public key of SSH");
	if (kind_of(type, &key.kind) < 0)
		return err_set(err, -ENOTSUP,
			"keys of this type are not taken; make one with ssh-keygen -t ed25519");
	row = &sshkey_rows[key.kind];
	if (row->number != 0 && (ssh_take(&rest, &curve) < 0 || !view_is(curve, row->curve)))
		return err_set(err, -EINVAL, "the public key names another curve");
	if (ssh_take(&rest, &key.point) < 0 || key.point.n != row->point)
		return err_set(err, -EINVAL, "the public key has a wrong length");
	if (row->fido &&
		(ssh_take(&rest, &key.application) < 0 || !application_ok(key.application)))
		return err_set(err, -EINVAL, "the key was made for another application than ssh:");
	if (rest.n != 0)
		return err_set(err, -EINVAL, "something stands behind the public key");
	if (row->number == 0 && is_small(key.point))
		return err_set(err, -EINVAL, "with this public key anybody could sign");
	if (!sshkey_point_ok(&key))
		return err_set(err, -EINVAL, "the public key is no point of its curve");
	*ret = key;
	return 0;
}

void
sshkey_fingerprint(struct view blob, char ret[static SSHKEY_FINGERPRINT])
{
	auto_buf struct buf text;
	uint8_t digest[SHA256_BYTES];

	sha256_of(blob, digest);
	buf_init(&text, SSHKEY_FINGERPRINT);
	buf_add_str(&text, "SHA256:");
	base64_encode(view_of(digest, sizeof(digest)), &text);
	must(buf_check(&text) == 0 && text.n == SSHKEY_FINGERPRINT - 1);
	memcpy(ret, text.p, text.n - 1); /* without the padding */
	ret[text.n - 1] = '\0';
}
