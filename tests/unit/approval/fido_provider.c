/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hardware key without hardware, for tests: what OpenSSH loads as a provider of security keys (PROTOCOL.u2f, SSH_SK_VERSION 10), so that the
 * real ssh-keygen, ssh-agent and ssh-sk-helper are used. The handle of a key is its seed. The file FIDO_FLAGS_FILE has the flags that the
 * device reports, as one digit; without it the key was touched.
 */
#include <openssl/evp.h>
#include <openssl/sha.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	API_VERSION = 0x000a0000,
	ALG_ED25519 = 1,
	KEY = 32,
	ERR_GENERAL = -1,
	ERR_UNSUPPORTED = -2,
	PRESENT = 1
};

struct sk_enroll_response {
	uint8_t flags;
	uint8_t *public_key;
	size_t public_key_len;
	uint8_t *key_handle;
	size_t key_handle_len;
	uint8_t *signature;
	size_t signature_len;
	uint8_t *attestation_cert;
	size_t attestation_cert_len;
	uint8_t *authdata;
	size_t authdata_len;
};

struct sk_sign_response {
	uint8_t flags;
	uint32_t counter;
	uint8_t *sig_r;
	size_t sig_r_len;
	uint8_t *sig_s;
	size_t sig_s_len;
};

struct sk_option;
struct sk_resident_key;

uint32_t sk_api_version(void);
int sk_enroll(uint32_t alg, const uint8_t *challenge, size_t challenge_len, const char *application,
	uint8_t flags, const char *pin, struct sk_option **options,
	struct sk_enroll_response **ret);
int sk_sign(uint32_t alg, const uint8_t *data, size_t data_len, const char *application,
	const uint8_t *key_handle, size_t key_handle_len, uint8_t flags, const char *pin,
	struct sk_option **options, struct sk_sign_response **ret);

int sk_load_resident_keys(
	const char *pin, struct sk_option **options, struct sk_resident_key ***ret, size_t *ret_n);

int
sk_load_resident_keys(
	const char *pin, struct sk_option **options, struct sk_resident_key ***ret, size_t *ret_n)
{
	(void)pin, (void)options, (void)ret, (void)ret_n;
	return ERR_UNSUPPORTED;
}

uint32_t
sk_api_version(void)
{
	return API_VERSION;
}

static uint8_t *
copy(const uint8_t *p, size_t n)
{
	uint8_t *to = malloc(n);

	if (to != NULL)
		memcpy(to, p, n);
	return to;
}

int
sk_enroll(uint32_t alg, const uint8_t *challenge, size_t challenge_len, const char *application,
	uint8_t flags, const char *pin, struct sk_option **options, struct sk_enroll_response **ret)
{
	struct sk_enroll_response *r = calloc(1, sizeof(*r));
	EVP_PKEY *pkey = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
	uint8_t point[KEY], seed[KEY];
	size_t n = KEY, m = KEY;

	(void)challenge, (void)challenge_len, (void)application, (void)pin, (void)options;
	if (alg != ALG_ED25519)
		return ERR_UNSUPPORTED;
	if (r == NULL || pkey == NULL || EVP_PKEY_get_raw_public_key(pkey, point, &n) != 1 ||
		EVP_PKEY_get_raw_private_key(pkey, seed, &m) != 1)
		return ERR_GENERAL;
	r->flags = flags;
	r->public_key = copy(point, KEY);
	r->public_key_len = KEY;
	r->key_handle = copy(seed, KEY);
	r->key_handle_len = KEY;
	r->signature = copy(point, KEY); /* of an attestation that nobody reads */
	r->signature_len = KEY;
	EVP_PKEY_free(pkey);
	*ret = r;
	return 0;
}

/* The flags of the device now. */
static uint8_t
flags_now(void)
{
	FILE *f = fopen(FIDO_FLAGS_FILE, "re");
	int c = f == NULL ? PRESENT : fgetc(f) - '0';

	if (f != NULL)
		(void)fclose(f);
	return (uint8_t)c;
}

int
sk_sign(uint32_t alg, const uint8_t *data, size_t data_len, const char *application,
	const uint8_t *key_handle, size_t key_handle_len, uint8_t flags, const char *pin,
	struct sk_option **options, struct sk_sign_response **ret)
{
	struct sk_sign_response *r = calloc(1, sizeof(*r));
	EVP_PKEY *pkey = EVP_PKEY_new_raw_private_key(
		EVP_PKEY_ED25519, NULL, key_handle, key_handle_len);
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	uint8_t made[SHA256_DIGEST_LENGTH * 2 + 5], signature[64];
	size_t n = sizeof(signature);

	(void)flags, (void)pin, (void)options;
	if (alg != ALG_ED25519 || r == NULL || pkey == NULL || ctx == NULL)
		return ERR_GENERAL;
	r->flags = flags_now();
	r->counter = 5;
	SHA256((const uint8_t *)application, strlen(application), made);
	made[32] = r->flags;
	memcpy(made + 33, (const uint8_t[]){0, 0, 0, 5}, 4);
	SHA256(data, data_len, made + 37);
	if (EVP_DigestSignInit(ctx, NULL, NULL, NULL, pkey) != 1 ||
		EVP_DigestSign(ctx, signature, &n, made, sizeof(made)) != 1)
		return ERR_GENERAL;
	r->sig_r = copy(signature, n);
	r->sig_r_len = n;
	EVP_MD_CTX_free(ctx);
	EVP_PKEY_free(pkey);
	*ret = r;
	return 0;
}
