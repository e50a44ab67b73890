/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See jks.h. The form: magic, version, number of entries; per entry its kind, alias, time, kind of certificate and its bytes; then a SHA-1 over
 * the password in UTF-16, the words "Mighty Aphrodite" and all before it. Java verifies it when a password is given.
 */
#include "jks.h"

#include <openssl/evp.h>

enum { JKS_VERSION = 2, JKS_TRUSTED = 2, SHA1_BYTES = 20 };
static const uint32_t jks_magic = 0xfeedfeed;
static const char jks_password[] = "changeit";
static const char jks_words[] = "Mighty Aphrodite";

static void
add_number(struct buf *out, uint64_t number, unsigned bytes)
{
	while (bytes-- > 0)
		buf_add_byte(out, (uint8_t)(number >> (8 * bytes)));
}

static void
add_text(struct buf *out, const char *text)
{
	add_number(out, strlen(text), 2);
	buf_add_str(out, text);
}

static bool
add_digest(struct buf *out)
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	EVP_MD *sha1 = EVP_MD_fetch(NULL, "SHA1", NULL);
	uint8_t digest[SHA1_BYTES];
	bool good = ctx != NULL && sha1 != NULL && EVP_DigestInit_ex(ctx, sha1, NULL) == 1;

	for (size_t i = 0; i < sizeof(jks_password) - 1 && good; i++)
		good = EVP_DigestUpdate(ctx, (char[]){0, jks_password[i]}, 2) == 1;
	good = good && EVP_DigestUpdate(ctx, jks_words, sizeof(jks_words) - 1) == 1 &&
	       EVP_DigestUpdate(ctx, out->p, out->n) == 1 &&
	       EVP_DigestFinal_ex(ctx, digest, NULL) == 1;
	EVP_MD_free(sha1);
	EVP_MD_CTX_free(ctx);
	if (good)
		buf_add(out, digest, sizeof(digest));
	return good;
}

bool
jks_write(struct buf *out, const char *alias, struct view certificate, uint64_t made_ms)
{
	buf_clear(out);
	add_number(out, jks_magic, 4);
	add_number(out, JKS_VERSION, 4);
	add_number(out, 1, 4);
	add_number(out, JKS_TRUSTED, 4);
	add_text(out, alias);
	add_number(out, made_ms, 8);
	add_text(out, "X.509");
	add_number(out, certificate.n, 4);
	buf_add_view(out, certificate);
	return buf_check(out) == 0 && add_digest(out) && buf_check(out) == 0;
}
