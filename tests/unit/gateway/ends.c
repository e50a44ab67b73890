/* SPDX-License-Identifier: Apache-2.0 */
/* See ends.h. */
#include "ends.h"

#include "lib/base/fd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

static void
on_readable(void *owner)
{
	((struct heard *)owner)->readable++;
}
static void
on_writable(void *owner)
{
	((struct heard *)owner)->writable++;
}
static void
on_shaken(void *owner)
{
	((struct heard *)owner)->shaken++;
}
static void
on_failed(void *owner, const struct err *why)
{
	((struct heard *)owner)->failed++;
	((struct heard *)owner)->why = *why;
}
const struct stream_events heard_events = {on_readable, on_writable, on_shaken, on_failed};

void
ends_pair(int fds[static 2])
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(a);
	struct err err = {0};
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	must(listener >= 0 && bind(listener, (void *)&a, sizeof(a)) == 0 &&
		listen(listener, 1) == 0 && getsockname(listener, (void *)&a, &n) == 0);
	fds[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	must(fds[1] >= 0 && connect(fds[1], (void *)&a, sizeof(a)) == 0);
	fds[0] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	must(fds[0] >= 0 && fd_set_nonblock(fds[0], &err) == 0 &&
		fd_set_nonblock(fds[1], &err) == 0);
	(void)close(listener);
}

struct stream *
ends_stream(struct ev_loop *loop, struct heard *h, int *ret_fd)
{
	struct stream *s;
	int fds[2];

	ends_pair(fds);
	*h = (struct heard){0};
	s = stream_new(loop, fds[0], &heard_events, h);
	must(s != NULL);
	*ret_fd = fds[1];
	return s;
}

/* ---- the other end ---- */

static void
info(const SSL *ssl, int where, int ret)
{
	struct other *o = SSL_get_app_data(ssl);

	if ((where & SSL_CB_READ_ALERT) == SSL_CB_READ_ALERT)
		o->alert = ret & 0xff;
}

void
other_begin(struct other *o, SSL_CTX *ctx, int fd, bool server, const char *server_name)
{
	*o = (struct other){.ssl = SSL_new(ctx)};
	must(o->ssl != NULL && SSL_set_fd(o->ssl, fd) == 1);
	(void)SSL_set_app_data(o->ssl, o);
	SSL_set_info_callback(o->ssl, info);
	if (server)
		SSL_set_accept_state(o->ssl);
	else
		SSL_set_connect_state(o->ssl);
	if (server_name != NULL) {
		char name[256];

		must(snprintf(name, sizeof(name), "%s", server_name) < (int)sizeof(name));
		must(SSL_set_tlsext_host_name(o->ssl, name) == 1);
	}
}

void
other_done(struct other *o)
{
	if (o->ssl == NULL)
		return;
	(void)close(SSL_get_fd(o->ssl));
	SSL_free(o->ssl);
	o->ssl = NULL;
}

static void
other_step(struct other *o)
{
	int r, e;

	if (o->broken || o->ended)
		return;
	ERR_clear_error();
	if (!o->shaken) {
		r = SSL_do_handshake(o->ssl);
		o->shaken = r == 1;
	} else {
		r = o->n == sizeof(o->got)
			    ? 1
			    : SSL_read(o->ssl, o->got + o->n, (int)(sizeof(o->got) - o->n));
		if (r > 0 && o->n != sizeof(o->got))
			o->n += (size_t)r;
	}
	e = r > 0 ? SSL_ERROR_NONE : SSL_get_error(o->ssl, r);
	if (e == SSL_ERROR_ZERO_RETURN) {
		o->ended = true;
	} else if (e != SSL_ERROR_NONE && e != SSL_ERROR_WANT_READ && e != SSL_ERROR_WANT_WRITE) {
		o->broken = true;
		o->reason = ERR_GET_REASON(ERR_peek_last_error());
	}
	ERR_clear_error();
}

void
ends_step(struct ev_loop *loop, struct other *o)
{
	(void)ev_run(loop, EVRUN_NOWAIT);
	if (o != NULL)
		other_step(o);
	(void)usleep(100);
}

/* ---- certificates ---- */

struct authority {
	EVP_PKEY *key;
	X509 *cert;
};

static void
names_add(X509 *cert, const struct wanted *w)
{
	GENERAL_NAMES *all = GENERAL_NAMES_new();

	for (size_t i = 0; i < 3 && w->dns[i] != NULL; i++) {
		GENERAL_NAME *g = GENERAL_NAME_new();
		ASN1_IA5STRING *text = ASN1_IA5STRING_new();
		size_t n = i == 0 && w->dns_n != 0 ? w->dns_n : strlen(w->dns[i]);

		must(ASN1_STRING_set(text, w->dns[i], (int)n) == 1);
		GENERAL_NAME_set0_value(g, GEN_DNS, text);
		must(sk_GENERAL_NAME_push(all, g) > 0);
	}
	if (w->address != NULL) {
		GENERAL_NAME *g = GENERAL_NAME_new();

		GENERAL_NAME_set0_value(g, GEN_IPADD, a2i_IPADDRESS(w->address));
		must(sk_GENERAL_NAME_push(all, g) > 0);
	}
	if (sk_GENERAL_NAME_num(all) > 0)
		must(X509_add1_ext_i2d(cert, NID_subject_alt_name, all, 0, 0) == 1);
	GENERAL_NAMES_free(all);
}

static X509 *
certificate(const struct wanted *w, EVP_PKEY *key, const struct authority *by)
{
	X509 *cert = X509_new();
	X509_NAME *name = X509_NAME_new();
	long from = w->from_s == 0 && w->to_s == 0 ? -3600 : w->from_s;
	long to = w->from_s == 0 && w->to_s == 0 ? 3600 : w->to_s;

	must(cert != NULL && name != NULL && X509_set_version(cert, 2) == 1);
	(void)ASN1_INTEGER_set(X509_get_serialNumber(cert), 7);
	(void)X509_gmtime_adj(X509_getm_notBefore(cert), from);
	(void)X509_gmtime_adj(X509_getm_notAfter(cert), to);
	must(X509_set_pubkey(cert, key) == 1);
	must(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
		     (const unsigned char *)(w->common == NULL ? "one of the tests" : w->common),
		     -1, -1, 0) == 1);
	must(X509_set_subject_name(cert, name) == 1);
	must(X509_set_issuer_name(cert, by == NULL ? name : X509_get_subject_name(by->cert)) == 1);
	X509_NAME_free(name);
	names_add(cert, w);
	if (w->client_only) {
		EXTENDED_KEY_USAGE *usage = EXTENDED_KEY_USAGE_new();

		must(sk_ASN1_OBJECT_push(usage, OBJ_nid2obj(NID_client_auth)) > 0);
		must(X509_add1_ext_i2d(cert, NID_ext_key_usage, usage, 0, 0) == 1);
		EXTENDED_KEY_USAGE_free(usage);
	}
	must(X509_sign(cert, by == NULL ? key : by->key, EVP_sha256()) > 0);
	return cert;
}

static const struct authority *
authority(bool trusted)
{
	static struct authority both[2];
	struct authority *a = &both[trusted ? 1 : 0];
	BASIC_CONSTRAINTS *b;

	if (a->cert != NULL)
		return a;
	a->key = EVP_EC_gen("P-256");
	a->cert = certificate(
		&(struct wanted){.common = trusted ? "trusted by the tests" : "stranger"}, a->key,
		NULL);
	b = BASIC_CONSTRAINTS_new();
	b->ca = 1;
	must(X509_add1_ext_i2d(a->cert, NID_basic_constraints, b, 1, 0) == 1);
	BASIC_CONSTRAINTS_free(b);
	must(X509_sign(a->cert, a->key, EVP_sha256()) > 0);
	return a;
}

SSL_CTX *
wanted_server(const struct wanted *w)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *cert = certificate(w, key, w->self_signed ? NULL : authority(!w->by_stranger));

	must(ctx != NULL && SSL_CTX_use_certificate(ctx, cert) == 1 &&
		SSL_CTX_use_PrivateKey(ctx, key) == 1);
	X509_free(cert);
	EVP_PKEY_free(key);
	return ctx;
}

int
wanted_roots(void)
{
	int fd = memfd_create("roots", MFD_CLOEXEC);
	BIO *bio = BIO_new(BIO_s_mem());
	struct err err = {0};
	char *p;
	long n;

	must(fd >= 0 && PEM_write_bio_X509(bio, authority(true)->cert) == 1);
	n = BIO_get_mem_data(bio, &p);
	must(fd_write_all(fd, p, (size_t)n, &err) == 0);
	BIO_free(bio);
	return fd;
}
