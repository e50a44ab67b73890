/* SPDX-License-Identifier: Apache-2.0 */
/* See x509.h. */
#include "x509.h"

#include "lib/base/host.h"

#include <openssl/rand.h>

enum { SERIAL_BYTES = 16 };

EVP_PKEY *
x509_key_new(void)
{
	return EVP_EC_gen("P-256");
}

bool
x509_key_id(const X509_PUBKEY *key, const EVP_MD *sha256, uint8_t ret[static X509_KEY_ID_BYTES])
{
	uint8_t digest[EVP_MAX_MD_SIZE];
	const unsigned char *bits;
	int n;

	if (X509_PUBKEY_get0_param(NULL, &bits, &n, NULL, key) != 1 ||
		EVP_Digest(bits, (size_t)n, digest, NULL, sha256, NULL) != 1)
		return false;
	memcpy(ret, digest, X509_KEY_ID_BYTES);
	return true;
}

static bool
serial_set(X509 *cert)
{
	uint8_t bytes[SERIAL_BYTES];
	BIGNUM *number;
	bool good;

	if (RAND_bytes(bytes, sizeof(bytes)) != 1)
		return false;
	bytes[0] = (uint8_t)((bytes[0] & 0x3f) | 0x40); /* positive, of the same length for all */
	number = BN_bin2bn(bytes, sizeof(bytes), NULL);
	good = number != NULL && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(cert)) != NULL;
	BN_free(number);
	return good;
}

bool
x509_times_set(X509 *cert, time_t from, time_t to)
{
	return ASN1_TIME_set(X509_getm_notBefore(cert), from) != NULL &&
	       ASN1_TIME_set(X509_getm_notAfter(cert), to) != NULL;
}

X509 *
x509_new(EVP_PKEY *key, time_t from, time_t to)
{
	X509 *cert = X509_new();

	if (cert != NULL && X509_set_version(cert, X509_VERSION_3) == 1 && serial_set(cert) &&
		x509_times_set(cert, from, to) && X509_set_pubkey(cert, key) == 1)
		return cert;
	X509_free(cert);
	return NULL;
}

bool
x509_name_set(X509_NAME *name, int nid, const char *text)
{
	return name != NULL && X509_NAME_add_entry_by_NID(name, nid, MBSTRING_UTF8,
				       (const unsigned char *)text, -1, -1, 0) == 1;
}

X509_EXTENSION *
x509_extension(int nid, bool critical, void *value)
{
	X509_EXTENSION *e = value == NULL ? NULL : X509V3_EXT_i2d(nid, critical ? 1 : 0, value);

	if (value != NULL)
		ASN1_item_free(value, ASN1_ITEM_ptr(X509V3_EXT_get_nid(nid)->it));
	return e;
}

GENERAL_NAME *
x509_host(struct view host, bool mask)
{
	GENERAL_NAME *g = GENERAL_NAME_new();
	ASN1_STRING *text = NULL;
	struct address a;
	uint8_t bytes[32];
	int n;

	if (g == NULL)
		return NULL;
	if (address_parse(host, &a) == 0) {
		n = a.family == AF_INET ? 4 : 16;
		memcpy(bytes, a.b, (size_t)n);
		memset(bytes + n, 0xff, (size_t)n);
		text = ASN1_OCTET_STRING_new();
		if (text != NULL && ASN1_STRING_set(text, bytes, mask ? 2 * n : n) == 1) {
			GENERAL_NAME_set0_value(g, GEN_IPADD, text);
			return g;
		}
	} else {
		text = ASN1_IA5STRING_new();
		if (text != NULL && ASN1_STRING_set(text, host.p, (int)host.n) == 1) {
			GENERAL_NAME_set0_value(g, GEN_DNS, text);
			return g;
		}
	}
	ASN1_STRING_free(text);
	GENERAL_NAME_free(g);
	return NULL;
}

static ASN1_OCTET_STRING *
octets(const uint8_t *p, int n)
{
	ASN1_OCTET_STRING *s = ASN1_OCTET_STRING_new();

	if (s != NULL && ASN1_OCTET_STRING_set(s, p, n) != 1) {
		ASN1_OCTET_STRING_free(s);
		return NULL;
	}
	return s;
}

X509_EXTENSION *
x509_subject_key(const uint8_t id[static X509_KEY_ID_BYTES])
{
	return x509_extension(NID_subject_key_identifier, false, octets(id, X509_KEY_ID_BYTES));
}

X509_EXTENSION *
x509_authority_key(const uint8_t id[static X509_KEY_ID_BYTES])
{
	AUTHORITY_KEYID *a = AUTHORITY_KEYID_new();

	if (a == NULL)
		return NULL;
	a->keyid = octets(id, X509_KEY_ID_BYTES);
	if (a->keyid == NULL) {
		AUTHORITY_KEYID_free(a);
		return NULL;
	}
	return x509_extension(NID_authority_key_identifier, false, a);
}

/* An authority signs leaves only: a path length of 0. */
X509_EXTENSION *
x509_basic_constraints(bool ca)
{
	BASIC_CONSTRAINTS *b = BASIC_CONSTRAINTS_new();

	if (b == NULL)
		return NULL;
	b->ca = ca ? 0xff : 0;
	if (ca) {
		b->pathlen = ASN1_INTEGER_new();
		if (b->pathlen == NULL || ASN1_INTEGER_set(b->pathlen, 0) != 1) {
			BASIC_CONSTRAINTS_free(b);
			return NULL;
		}
	}
	return x509_extension(NID_basic_constraints, true, b);
}

X509_EXTENSION *
x509_key_usage(int bit)
{
	ASN1_BIT_STRING *bits = ASN1_BIT_STRING_new();

	if (bits != NULL && ASN1_BIT_STRING_set_bit(bits, bit, 1) != 1) {
		ASN1_BIT_STRING_free(bits);
		return NULL;
	}
	return x509_extension(NID_key_usage, true, bits);
}

X509_EXTENSION *
x509_server_auth(void)
{
	EXTENDED_KEY_USAGE *usage = EXTENDED_KEY_USAGE_new();

	if (usage != NULL && sk_ASN1_OBJECT_push(usage, OBJ_nid2obj(NID_server_auth)) <= 0) {
		EXTENDED_KEY_USAGE_free(usage);
		return NULL;
	}
	return x509_extension(NID_ext_key_usage, false, usage);
}
