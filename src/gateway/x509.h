/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a certificate of this room is built of, by the objects of OpenSSL and never by its configuration strings (in which a name could say more
 * than a name). Functions that return a bool say false when there is no memory; the caller tells so.
 */
#pragma once

#include "lib/base/view.h"

#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <time.h>

enum { X509_KEY_ID_BYTES = 20 };

/* P-256. NULL: no memory or no randomness. */
EVP_PKEY *x509_key_new(void);

/* Which key: the beginning of a SHA-256 over the public one. */
bool x509_key_id(
	const X509_PUBKEY *key, const EVP_MD *sha256, uint8_t ret[static X509_KEY_ID_BYTES]);

/* Version 3, a random serial number, this public key and these times (seconds since 1970). NULL: no memory. */
X509 *x509_new(EVP_PKEY *key, time_t from, time_t to);
bool x509_times_set(X509 *cert, time_t from, time_t to);

/* A name of one part. */
bool x509_name_set(X509_NAME *name, int nid, const char *text);

/* Takes `value` of a kind that X509V3_EXT_i2d() knows. NULL: no memory. */
X509_EXTENSION *x509_extension(int nid, bool critical, void *value);

/* The host as a general name: an address when it reads as one, else of DNS. With mask: as constraints say an address. NULL: no memory. */
GENERAL_NAME *x509_host(struct view host, bool mask);

X509_EXTENSION *x509_subject_key(const uint8_t id[static X509_KEY_ID_BYTES]);
X509_EXTENSION *x509_authority_key(const uint8_t id[static X509_KEY_ID_BYTES]);
X509_EXTENSION *x509_basic_constraints(bool ca);
/* bit: as in RFC 5280, 0 digitalSignature, 5 keyCertSign. */
X509_EXTENSION *x509_key_usage(int bit);
X509_EXTENSION *x509_server_auth(void);
