/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What OpenSSL does for lib/approval: loads a point, and says whether a value is a signature. It sees only lengths that were checked before
 * and never a private key. Whatever it cannot do (no memory too) is a signature that does not hold.
 */
#include "lib/approval/sshkey.h"
#include "lib/approval/sshwire.h"

#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#define CLEANUP(name, type, done)            \
	static void name##_cleanup(type **p) \
	{                                    \
		done(*p);                    \
	}
CLEANUP(pkey, EVP_PKEY, EVP_PKEY_free)
CLEANUP(pkey_ctx, EVP_PKEY_CTX, EVP_PKEY_CTX_free)
CLEANUP(md_ctx, EVP_MD_CTX, EVP_MD_CTX_free)
CLEANUP(ecdsa_sig, ECDSA_SIG, ECDSA_SIG_free)
#undef CLEANUP
#define AUTO(name) __attribute__((cleanup(name##_cleanup)))

/* Uncompressed only: the curve equation is tested when the point is loaded. NULL: no point. */
static EVP_PKEY *
load_ec(const struct sshkey *key)
{
	const struct sshkey_row *row = &sshkey_rows[key->kind];
	EVP_PKEY_CTX *ctx AUTO(pkey_ctx) = EVP_PKEY_CTX_new_from_name(NULL, "EC", NULL);
	EVP_PKEY_CTX *check AUTO(pkey_ctx) = NULL;
	EVP_PKEY *pkey AUTO(pkey) = NULL;
	OSSL_PARAM params[] = {
		OSSL_PARAM_construct_utf8_string(
			OSSL_PKEY_PARAM_GROUP_NAME, (char *)(uintptr_t)row->group, 0),
		OSSL_PARAM_construct_octet_string(
			OSSL_PKEY_PARAM_PUB_KEY, (void *)(uintptr_t)key->point.p, key->point.n),
		OSSL_PARAM_construct_end(),
	};

	if (key->point.p[0] != 0x04 || ctx == NULL || EVP_PKEY_fromdata_init(ctx) != 1 ||
		EVP_PKEY_fromdata(ctx, &pkey, EVP_PKEY_PUBLIC_KEY, params) != 1)
		return NULL;
	check = EVP_PKEY_CTX_new_from_pkey(NULL, pkey, NULL);
	if (check == NULL || EVP_PKEY_public_check_quick(check) != 1)
		return NULL;
	return take_ptr(pkey);
}

static EVP_PKEY *
load(const struct sshkey *key)
{
	if (sshkey_rows[key->kind].number != 0)
		return load_ec(key);
	return EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, key->point.p, key->point.n);
}

bool
sshkey_point_ok(const struct sshkey *key)
{
	EVP_PKEY *pkey AUTO(pkey) = load(key);

	ERR_clear_error();
	return pkey != NULL;
}

/* A positive number in its one form (RFC 4251): no sign bit, no leading zero but before a set top bit, at most `most` bytes. */
static BIGNUM *
take_number(struct view *rest, size_t most)
{
	struct view v;

	if (ssh_take(rest, &v) < 0 || v.n == 0 || (v.p[0] & 0x80) != 0)
		return NULL;
	if (v.p[0] == 0 && (v.n == 1 || (v.p[1] & 0x80) == 0))
		return NULL;
	if (v.p[0] == 0)
		v = view_skip(v, 1);
	return v.n > most ? NULL : BN_bin2bn(v.p, (int)v.n, NULL);
}

/* SSH's r and s as the DER that OpenSSL verifies; NULL: they are none. */
static uint8_t *
to_der(struct view value, size_t number, size_t *ret_n)
{
	ECDSA_SIG *sig AUTO(ecdsa_sig) = ECDSA_SIG_new();
	BIGNUM *r = take_number(&value, number), *s = take_number(&value, number);
	uint8_t *der = NULL;
	int n;

	if (sig == NULL || r == NULL || s == NULL || value.n != 0 ||
		ECDSA_SIG_set0(sig, r, s) != 1) {
		BN_free(r);
		BN_free(s);
		return NULL;
	}
	n = i2d_ECDSA_SIG(sig, &der);
	if (n <= 0)
		return NULL;
	*ret_n = (size_t)n;
	return der;
}

static bool
verify(EVP_PKEY *pkey, const char *digest, struct view message, struct view value)
{
	EVP_MD_CTX *ctx AUTO(md_ctx) = EVP_MD_CTX_new();

	return ctx != NULL &&
	       EVP_DigestVerifyInit_ex(ctx, NULL, digest, NULL, NULL, pkey, NULL) == 1 &&
	       EVP_DigestVerify(ctx, value.p, value.n, message.p, message.n) == 1;
}

bool
sshkey_signed(const struct sshkey *key, struct view message, struct view value)
{
	const struct sshkey_row *row = &sshkey_rows[key->kind];
	EVP_PKEY *pkey AUTO(pkey) = load(key);
	uint8_t *der = NULL;
	size_t n = 0;
	bool good = false;

	if (pkey == NULL) {
		good = false;
	} else if (row->number == 0) {
		good = value.n == 64 && verify(pkey, NULL, message, value);
	} else {
		der = to_der(value, row->number, &n);
		good = der != NULL && verify(pkey, row->digest, message, view_of(der, n));
		OPENSSL_free(der);
	}
	ERR_clear_error();
	return good;
}
