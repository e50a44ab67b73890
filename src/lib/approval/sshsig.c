/* SPDX-License-Identifier: Apache-2.0 */
/* Signatures of people; see sshsig.h. */
#include "lib/approval/sshsig.h"

#include "lib/approval/sshkey.h"
#include "lib/approval/sshwire.h"

#define MAGIC "SSHSIG"

enum {
	VERSION = 1,
	NAMESPACE_MAX = 255,
	FLAG_PRESENT = 0x01,
	FLAG_VERIFIED = 0x04,
	SHA512_BYTES = 64
};

static const char *const hashes[] = {[SSHSIG_SHA256] = "sha256", [SSHSIG_SHA512] = "sha512"};

static size_t
sha512_of(struct view v, uint8_t ret[static SHA512_BYTES])
{
	SHA2_CTX ctx;

	SHA512Init(&ctx);
	SHA512Update(&ctx, v.p, v.n);
	SHA512Final(ret, &ctx);
	return SHA512_BYTES;
}

static int
hash_of(struct view name, enum sshsig_hash *ret)
{
	for (unsigned i = 0; i < ARRAY_LEN(hashes); i++) {
		if (!view_is(name, hashes[i]))
			continue;
		*ret = (enum sshsig_hash)i;
		return 0;
	}
	return -ENOTSUP;
}

int
sshsig_read(struct view blob, struct sshsig *ret, struct err *err)
{
	struct sshsig s = {0};
	struct view rest = view_skip(blob, strlen(MAGIC)), key, reserved, hash;
	uint32_t version;

	if (blob.n > SSHSIG_BYTES_MAX || !view_starts(blob, MAGIC))
		return err_set(err, -EINVAL, "this is no signature of SSH");
	if (ssh_take_u32(&rest, &version) < 0 || version != VERSION)
		return err_set(err, -ENOTSUP, "the signature is of another version than 1");
	if (ssh_take(&rest, &key) < 0 || ssh_take(&rest, &s.name_space) < 0 ||
		ssh_take(&rest, &reserved) < 0 || ssh_take(&rest, &hash) < 0 ||
		ssh_take(&rest, &s.signature) < 0)
		return err_set(err, -EINVAL, "the signature is cut off");
	if (rest.n != 0)
		return err_set(err, -EINVAL, "something stands behind the signature");
	if (reserved.n != 0)
		return err_set(err, -ENOTSUP, "the signature has a field that is not known");
	if (s.name_space.n == 0 || s.name_space.n > NAMESPACE_MAX)
		return err_set(err, -EINVAL, "the signature has no namespace");
	if (hash_of(hash, &s.hash) < 0)
		return err_set(err, -ENOTSUP,
			"the signature is over another digest than sha256 or sha512");
	if (sshkey_read(key, &s.key, err) < 0)
		return err_context(err, "the signature");
	*ret = s;
	return 0;
}

void
sshsig_signed(const char *name_space, enum sshsig_hash hash, struct view message, struct buf *out)
{
	uint8_t digest[SHA512_BYTES];
	size_t n = SHA256_BYTES;

	if (hash == SSHSIG_SHA256)
		sha256_of(message, digest);
	else
		n = sha512_of(message, digest);
	buf_add_str(out, MAGIC);
	ssh_put(out, view_str(name_space));
	ssh_put(out, view_of(NULL, 0));
	ssh_put(out, view_str(hashes[hash]));
	ssh_put(out, view_of(digest, n));
}

void
sshsig_write(struct view key_blob, const char *name_space, struct view signature, struct buf *out)
{
	buf_add_str(out, MAGIC);
	ssh_put_u32(out, VERSION);
	ssh_put(out, key_blob);
	ssh_put(out, view_str(name_space));
	ssh_put(out, view_of(NULL, 0));
	ssh_put(out, view_str(hashes[SSHSIG_SHA512]));
	ssh_put(out, signature);
}

/* What a FIDO key signs (PROTOCOL.u2f): digest of the application, flags, counter, digest of the bytes that it was asked for. */
static void
fido_signed(struct view application, struct view flags_counter, struct view asked, struct buf *out)
{
	uint8_t digest[SHA256_BYTES];

	sha256_of(application, digest);
	buf_add(out, digest, sizeof(digest));
	buf_add_view(out, flags_counter);
	sha256_of(asked, digest);
	buf_add(out, digest, sizeof(digest));
}

/* Flags (u8) and counter (u32) stand behind the value. */
static int
verify_fido(const struct sshsig *s, struct view rest, struct view value, struct view asked,
	bool user_verified, struct err *err)
{
	auto_buf struct buf message = {.max = 2 * SHA256_BYTES + 5};

	if (rest.n != 5)
		return err_set(
			err, -EKEYREJECTED, "the signature of the hardware key has a wrong length");
	if ((rest.p[0] & FLAG_PRESENT) == 0)
		return err_set(err, -EKEYREJECTED, "nobody touched the hardware key");
	if (user_verified && (rest.p[0] & FLAG_VERIFIED) == 0)
		return err_set(err, -EKEYREJECTED,
			"the hardware key did not verify its owner, which this approver must do");
	fido_signed(s->key.application, rest, asked, &message);
	if (buf_check(&message) < 0 || !sshkey_signed(&s->key, buf_view(&message), value))
		return err_set(err, -EKEYREJECTED, "the signature is not of these bytes");
	return 0;
}

int
sshsig_verify(const struct sshsig *s, struct view message, const char *name_space,
	bool user_verified, struct err *err)
{
	struct view rest = s->signature, type, value;
	auto_buf struct buf asked = {.max = SSHSIG_BYTES_MAX};

	if (!view_is(s->name_space, name_space))
		return err_set(err, -EKEYREJECTED,
			"the signature was made for another purpose than %s", name_space);
	if (ssh_take(&rest, &type) < 0 || !view_is(type, sshkey_type(s->key.kind)) ||
		ssh_take(&rest, &value) < 0)
		return err_set(err, -EKEYREJECTED, "the signature is not of the kind of its key");
	sshsig_signed(name_space, s->hash, message, &asked);
	if (buf_check(&asked) < 0)
		return err_set(err, -ENOMEM, "no memory for the signed bytes");
	if (sshkey_rows[s->key.kind].fido)
		return verify_fido(s, rest, value, buf_view(&asked), user_verified, err);
	if (user_verified)
		return err_set(err, -EKEYREJECTED, "only a hardware key can verify its owner");
	if (rest.n != 0 || !sshkey_signed(&s->key, buf_view(&asked), value))
		return err_set(err, -EKEYREJECTED, "the signature is not of these bytes");
	return 0;
}
