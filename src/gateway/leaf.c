/* SPDX-License-Identifier: Apache-2.0 */
/* See leaf.h. Kept as objects: to make one of its bytes costs more than a handshake (OpenSSL 3.0 looks for a decoder of the key). */
#include "leaf.h"

#include "limits.h"
#include "x509.h"

#include "lib/base/host.h"
#include "lib/base/list.h"

#include <errno.h>
#include <openssl/err.h>

enum { BUCKETS = 512, EXTENSIONS = 5 };

struct leaf {
	struct link used;  /* in leaves.used: the newest last */
	struct leaf *next; /* of its bucket */
	time_t renew;
	X509 *cert; /* owned */
	size_t name_n;
	char name[HOST_NAME_MAX_BYTES + 1];
};

struct leaves {
	X509 *authority;                    /* borrowed */
	EVP_PKEY *authority_key, *leaf_key; /* borrowed */
	EVP_MD *sha256;                     /* owned */
	X509_NAME *subject;                 /* owned */
	X509_EXTENSION *same[EXTENSIONS];   /* owned: what all leaves have */
	struct link used;
	size_t n;
	struct leaf *bucket[BUCKETS];
};

/* ---- making one ---- */

static bool
extensions_make(struct leaves *l)
{
	uint8_t id[X509_KEY_ID_BYTES], above[X509_KEY_ID_BYTES];
	X509_PUBKEY *public = NULL;
	bool good = X509_PUBKEY_set(&public, l->leaf_key) == 1 &&
		    x509_key_id(public, l->sha256, id) &&
		    x509_key_id(X509_get_X509_PUBKEY(l->authority), l->sha256, above);

	X509_PUBKEY_free(public);
	if (!good)
		return false;
	l->same[0] = x509_basic_constraints(false);
	l->same[1] = x509_key_usage(0);
	l->same[2] = x509_server_auth();
	l->same[3] = x509_subject_key(id);
	l->same[4] = x509_authority_key(above);
	for (size_t i = 0; i < EXTENSIONS; i++)
		if (l->same[i] == NULL)
			return false;
	return true;
}

static X509_EXTENSION *
alternative_name(struct view name)
{
	GENERAL_NAMES *all = GENERAL_NAMES_new();
	GENERAL_NAME *one = x509_host(name, false);

	if (all == NULL || one == NULL || sk_GENERAL_NAME_push(all, one) <= 0) {
		GENERAL_NAME_free(one);
		GENERAL_NAMES_free(all);
		return NULL;
	}
	return x509_extension(NID_subject_alt_name, false, all);
}

static bool
fill(const struct leaves *l, X509 *cert, struct view name)
{
	X509_EXTENSION *e = alternative_name(name);
	bool good = e != NULL && X509_add_ext(cert, e, -1) == 1 &&
		    X509_set_subject_name(cert, l->subject) == 1 &&
		    X509_set_issuer_name(cert, X509_get_subject_name(l->authority)) == 1;

	X509_EXTENSION_free(e);
	for (size_t i = 0; i < EXTENSIONS && good; i++)
		good = X509_add_ext(cert, l->same[i], -1) == 1;
	return good && X509_sign(cert, l->authority_key, l->sha256) > 0;
}

static time_t
authority_end(const struct leaves *l)
{
	struct tm end;

	return ASN1_TIME_to_tm(X509_get0_notAfter(l->authority), &end) == 1 ? timegm(&end) : 0;
}

/* ret->cert and renew. */
static int
make(const struct leaves *l, time_t now, struct leaf *ret, struct err *err)
{
	time_t end = now + (time_t)LIMIT_LEAF_S, last = authority_end(l);
	X509 *cert;

	if (end > last)
		end = last;
	if (now >= end)
		return err_set(err, -EKEYEXPIRED, "the authority of this sandbox has expired");
	ERR_clear_error();
	cert = x509_new(l->leaf_key, now - (time_t)LIMIT_CLOCK_S, end);
	if (cert == NULL || !fill(l, cert, view_of(ret->name, ret->name_n))) {
		X509_free(cert);
		ERR_clear_error();
		return err_set(err, -ENOMEM, "no certificate could be made");
	}
	X509_free(ret->cert);
	ret->cert = cert;
	ret->renew = now + (end - now) / 2;
	return 0;
}

/* ---- keeping them ---- */

static size_t
bucket(struct view name)
{
	uint32_t h = 2166136261U;

	for (size_t i = 0; i < name.n; i++)
		h = (h ^ name.p[i]) * 16777619U;
	return h % BUCKETS;
}

static struct leaf *
find(struct leaves *l, struct view name)
{
	for (struct leaf *f = l->bucket[bucket(name)]; f != NULL; f = f->next)
		if (view_eq(view_of(f->name, f->name_n), name))
			return f;
	return NULL;
}

static void
leaf_free(struct leaf *f)
{
	X509_free(f->cert);
	free(f);
}

static void
drop(struct leaves *l, struct leaf *f)
{
	struct leaf **at = &l->bucket[bucket(view_of(f->name, f->name_n))];

	while (*at != f)
		at = &(*at)->next;
	*at = f->next;
	list_remove(&f->used);
	l->n--;
	leaf_free(f);
}

static void
add(struct leaves *l, struct leaf *f)
{
	struct leaf **head = &l->bucket[bucket(view_of(f->name, f->name_n))];

	if (l->n >= LIMIT_LEAVES)
		drop(l, container_of(l->used.next, struct leaf, used));
	f->next = *head;
	*head = f;
	list_append(&l->used, &f->used);
	l->n++;
}

int
leaves_get(struct leaves *l, struct view name, time_t now, X509 **ret, struct err *err)
{
	struct leaf *f;

	if (name.n == 0 || name.n > HOST_NAME_MAX_BYTES)
		return err_set(err, -EINVAL, "no name of a server");
	f = find(l, name);
	if (f == NULL) {
		f = calloc(1, sizeof(*f));
		if (f == NULL)
			return err_set(err, -ENOMEM, "no memory");
		memcpy(f->name, name.p, name.n);
		f->name_n = name.n;
		if (make(l, now, f, err) < 0) {
			leaf_free(f);
			return err->code;
		}
		add(l, f);
	} else if (now >= f->renew && make(l, now, f, err) < 0) {
		return err->code;
	}
	list_remove(&f->used);
	list_append(&l->used, &f->used);
	*ret = f->cert;
	return 0;
}

size_t
leaves_count(const struct leaves *l)
{
	return l->n;
}

/* ---- life ---- */

static bool
prepare(struct leaves *l)
{
	l->sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
	l->subject = X509_NAME_new();
	if (l->sha256 == NULL || l->subject == NULL ||
		!x509_name_set(l->subject, NID_organizationName, "Demilune sandbox"))
		return false;
	return extensions_make(l);
}

struct leaves *
leaves_new(X509 *authority, EVP_PKEY *authority_key, EVP_PKEY *leaf_key, struct err *err)
{
	struct leaves *l = calloc(1, sizeof(*l));

	if (l != NULL) {
		l->authority = authority;
		l->authority_key = authority_key;
		l->leaf_key = leaf_key;
		list_init(&l->used);
	}
	if (l == NULL || !prepare(l)) {
		leaves_free(l);
		(void)err_set(err, -ENOMEM, "no memory for certificates");
		return NULL;
	}
	return l;
}

void
leaves_free(struct leaves *l)
{
	if (l == NULL)
		return;
	list_each (f, &l->used, struct leaf, used)
		leaf_free(f);
	for (size_t i = 0; i < EXTENSIONS; i++)
		X509_EXTENSION_free(l->same[i]);
	X509_NAME_free(l->subject);
	EVP_MD_free(l->sha256);
	free(l);
}
