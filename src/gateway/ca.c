/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See ca.h. The certificate names what it may speak for: the names of the rules, and by that no others. A kind of name that is not constrained at
 * all would be free, so each of the two kinds (DNS, addresses) always is, with something that no server has when no rule has any of it.
 */
#include "ca.h"

#include "jks.h"
#include "leaf.h"
#include "limits.h"
#include "tls.h"
#include "x509.h"

#include "lib/base/clock.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>

/* The same for all: libraries find it in a directory of certificates by the hash of this name. */
static const char ca_subject[] = "Demilune sandbox authority";
static const char ca_alias[] = "demilune";
static const char no_name[] = "invalid"; /* RFC 2606: never a host's */
static const char no_address[] = "0.0.0.0";

struct ca {
	EVP_PKEY *key, *leaf_key; /* owned */
	EVP_MD *sha256;           /* owned */
	X509 *cert; /* owned: without times, constraints and signature until it is certified */
	bool certified;
	SSL_CTX *ctx;          /* owned */
	struct leaves *leaves; /* owned */
};

/* ---- constraints ---- */

static bool
permit(NAME_CONSTRAINTS *c, struct view host)
{
	GENERAL_SUBTREE *tree = GENERAL_SUBTREE_new();

	if (tree == NULL)
		return false;
	GENERAL_NAME_free(tree->base);
	tree->base = x509_host(host, true);
	if (tree->base != NULL && sk_GENERAL_SUBTREE_push(c->permittedSubtrees, tree) > 0)
		return true;
	GENERAL_SUBTREE_free(tree);
	return false;
}

static bool
intercepted(const struct rule *r)
{
	return r->kind == RULE_KIND_BROKERED || (r->kind == RULE_KIND_FETCH && r->tls);
}

static bool
said_before(const struct policy *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (intercepted(&p->rule[i]) && view_eq(p->rule[i].host, p->rule[n].host))
			return true;
	return false;
}

static bool
permit_rules(NAME_CONSTRAINTS *c, const struct policy *p)
{
	bool names = false, addresses = false;

	for (size_t i = 0; i < p->nrules; i++) {
		const struct rule *r = &p->rule[i];

		if (!intercepted(r) || said_before(p, i))
			continue;
		if (!permit(c, r->host))
			return false;
		names |= !r->literal;
		addresses |= r->literal;
	}
	return (names || permit(c, view_str(no_name))) &&
	       (addresses || permit(c, view_str(no_address)));
}

static X509_EXTENSION *
constraints(const struct policy *p)
{
	NAME_CONSTRAINTS *c = NAME_CONSTRAINTS_new();

	if (c == NULL)
		return NULL;
	c->permittedSubtrees = sk_GENERAL_SUBTREE_new_null();
	if (c->permittedSubtrees == NULL || !permit_rules(c, p)) {
		NAME_CONSTRAINTS_free(c);
		return NULL;
	}
	return x509_extension(NID_name_constraints, true, c);
}

/* ---- the certificate ---- */

static bool
add(X509 *cert, X509_EXTENSION *e)
{
	bool good = e != NULL && X509_add_ext(cert, e, -1) == 1;

	X509_EXTENSION_free(e);
	return good;
}

/* All that needs no policy: writing a key down costs more than to sign with it (OpenSSL 3.0 looks for an encoder each time). */
static bool
prepare(X509 *cert, const EVP_MD *sha256)
{
	X509_NAME *name = X509_NAME_new();
	uint8_t id[X509_KEY_ID_BYTES];
	bool good = x509_name_set(name, NID_commonName, ca_subject) &&
		    X509_set_subject_name(cert, name) == 1 &&
		    X509_set_issuer_name(cert, name) == 1 &&
		    x509_key_id(X509_get_X509_PUBKEY(cert), sha256, id);

	X509_NAME_free(name);
	return good && add(cert, x509_basic_constraints(true)) && add(cert, x509_key_usage(5)) &&
	       add(cert, x509_subject_key(id)) && add(cert, x509_authority_key(id));
}

static bool
make(struct ca *ca, struct err *err)
{
	ca->sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
	ca->key = x509_key_new();
	ca->leaf_key = x509_key_new();
	if (ca->sha256 == NULL || ca->key == NULL || ca->leaf_key == NULL ||
		SSL_CTX_use_PrivateKey(ca->ctx, ca->leaf_key) != 1)
		return false;
	ca->cert = x509_new(ca->key, 0, 0); /* expired until it is certified */
	if (ca->cert == NULL || !prepare(ca->cert, ca->sha256))
		return false;
	ca->leaves = leaves_new(ca->cert, ca->key, ca->leaf_key, err);
	return ca->leaves != NULL;
}

static bool
write_pem(const X509 *cert, struct buf *out)
{
	BIO *bio = BIO_new(BIO_s_mem());
	bool good = bio != NULL && PEM_write_bio_X509(bio, cert) == 1;
	char *p;
	long n;

	if (good) {
		n = BIO_get_mem_data(bio, &p);
		buf_clear(out);
		buf_add(out, p, (size_t)n);
	}
	BIO_free(bio);
	return good && buf_check(out) == 0;
}

static bool
write_out(const X509 *cert, struct buf *pem, struct buf *keystore)
{
	uint8_t *der = NULL;
	int n = i2d_X509(cert, &der);
	bool good = n > 0 && write_pem(cert, pem) &&
		    jks_write(keystore, ca_alias, view_of(der, (size_t)n), clock_real_ms());

	OPENSSL_free(der);
	return good;
}

struct ca *
ca_new(struct err *err)
{
	SSL_CTX *ctx = tls_context(true, err);
	struct ca *ca = calloc(1, sizeof(*ca));

	if (ctx == NULL || ca == NULL) {
		SSL_CTX_free(ctx);
		free(ca);
		(void)err_set(err, -ENOMEM, "no memory for the authority");
		return NULL;
	}
	ca->ctx = ctx;
	if (make(ca, err))
		return ca;
	ERR_clear_error();
	ca_free(ca);
	(void)err_set(err, -ENOMEM, "the authority could not be prepared");
	return NULL;
}

int
ca_certify(struct ca *ca, const struct policy *p, struct buf *ret_certificate,
	struct buf *ret_keystore, struct err *err)
{
	time_t now = (time_t)(clock_real_ms() / 1000);
	bool good = !ca->certified &&
		    x509_times_set(ca->cert, now - (time_t)LIMIT_CLOCK_S,
			    now + (time_t)LIMIT_AUTHORITY_S) &&
		    add(ca->cert, constraints(p)) && X509_sign(ca->cert, ca->key, ca->sha256) > 0 &&
		    write_out(ca->cert, ret_certificate, ret_keystore);

	ca->certified = true;
	ERR_clear_error();
	return good ? 0 : err_set(err, -ENOMEM, "the authority could not be made");
}

void
ca_free(struct ca *ca)
{
	if (ca == NULL)
		return;
	leaves_free(ca->leaves);
	SSL_CTX_free(ca->ctx);
	X509_free(ca->cert);
	EVP_MD_free(ca->sha256);
	EVP_PKEY_free(ca->leaf_key);
	EVP_PKEY_free(ca->key);
	free(ca);
}

SSL_CTX *
ca_context(struct ca *ca)
{
	return ca->ctx;
}

int
ca_leaf_use(struct ca *ca, SSL *ssl, struct view name, struct err *err)
{
	X509 *cert;

	if (leaves_get(ca->leaves, name, (time_t)(clock_real_ms() / 1000), &cert, err) < 0)
		return err->code;
	if (SSL_use_certificate(ssl, cert) != 1)
		return err_set(err, -ENOMEM, "no memory for a certificate");
	return 0;
}
