/* SPDX-License-Identifier: Apache-2.0 */
/* See sign.h. */
#include "lib/tlog/sign.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <sys/random.h>

static void
pkey_cleanup(EVP_PKEY **p)
{
	EVP_PKEY_free(*p);
}

static void
md_ctx_cleanup(EVP_MD_CTX **p)
{
	EVP_MD_CTX_free(*p);
}

#define auto_pkey   __attribute__((cleanup(pkey_cleanup)))
#define auto_md_ctx __attribute__((cleanup(md_ctx_cleanup)))

static int
failed(const char *what, struct err *err)
{
	ERR_clear_error();
	return err_set(err, -EIO, "Ed25519: %s failed", what);
}

int
ed25519_new(uint8_t ret_seed[static ED25519_BYTES], struct err *err)
{
	if (getrandom(ret_seed, ED25519_BYTES, 0) != ED25519_BYTES)
		return err_errno(err, "randomness for a key");
	return 0;
}

int
note_key_of(const uint8_t seed[static ED25519_BYTES], struct note_key *k, struct err *err)
{
	EVP_PKEY *pkey auto_pkey = EVP_PKEY_new_raw_private_key(
		EVP_PKEY_ED25519, NULL, seed, ED25519_BYTES);
	size_t n = ED25519_BYTES;

	if (pkey == NULL || EVP_PKEY_get_raw_public_key(pkey, k->public, &n) != 1 ||
		n != ED25519_BYTES)
		return failed("the public key", err);
	note_key_seal(k);
	return 0;
}

int
note_sign(const uint8_t seed[static ED25519_BYTES], const struct note_key *k, struct view text,
	struct buf *out, struct err *err)
{
	EVP_PKEY *pkey auto_pkey = EVP_PKEY_new_raw_private_key(
		EVP_PKEY_ED25519, NULL, seed, ED25519_BYTES);
	EVP_MD_CTX *ctx auto_md_ctx = EVP_MD_CTX_new();
	uint8_t signature[ED25519_SIGNATURE];
	size_t n = sizeof(signature);

	if (pkey == NULL || ctx == NULL || EVP_DigestSignInit(ctx, NULL, NULL, NULL, pkey) != 1 ||
		EVP_DigestSign(ctx, signature, &n, text.p, text.n) != 1 || n != sizeof(signature))
		return failed("signing", err);
	buf_add_view(out, text);
	buf_add_byte(out, '\n');
	note_line_add(out, k, signature);
	return buf_check(out) < 0 ? err_set(err, -ENOMEM, "no memory for a note") : 0;
}

bool
note_signed(const struct note *n, const struct note_key *k)
{
	const struct note_signature *s = note_find(n, k);
	EVP_PKEY *pkey auto_pkey = EVP_PKEY_new_raw_public_key(
		EVP_PKEY_ED25519, NULL, k->public, ED25519_BYTES);
	EVP_MD_CTX *ctx auto_md_ctx = EVP_MD_CTX_new();
	bool good = s != NULL && pkey != NULL && ctx != NULL &&
		    EVP_DigestVerifyInit(ctx, NULL, NULL, NULL, pkey) == 1 &&
		    EVP_DigestVerify(ctx, s->bytes, s->n, n->text.p, n->text.n) == 1;

	ERR_clear_error();
	return good;
}
