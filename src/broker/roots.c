/* SPDX-License-Identifier: Apache-2.0 */
/* See roots.h. */
#include "broker/roots.h"

#include "broker/limits.h"

#include "lib/base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/stat.h>

static const char system_bundle[] = "/etc/ssl/certs/ca-certificates.crt";

enum { ROWS_MAX = 1024, NAME_ROOM = 64 };

struct roots_row {
	char name[NAME_ROOM];
	X509_STORE *store; /* owned; NULL: none */
};

struct roots {
	size_t n;
	struct roots_row row[ROWS_MAX];
};

static int
store_fill(X509_STORE *store, const uint8_t *pem, size_t n, struct err *err)
{
	BIO *bio = BIO_new_mem_buf(pem, (int)n);
	size_t count = 0;
	bool bad = bio == NULL;

	while (!bad) {
		X509 *cert = PEM_read_bio_X509(bio, NULL, NULL, NULL);

		if (cert == NULL)
			break;
		bad = X509_STORE_add_cert(store, cert) != 1;
		X509_free(cert);
		count++;
	}
	/* "No start line" is how the end of the file is told; anything else is a bad certificate. */
	if (ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE)
		bad = true;
	ERR_clear_error();
	BIO_free(bio);
	if (bad || count == 0)
		return err_set(err, -EINVAL, "it is not a list of certificates in PEM");
	return 0;
}

static int
store_load(int dir, const char *path, X509_STORE **ret, struct err *err)
{
	auto_fd int fd = openat(dir, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	auto_free uint8_t *bytes = malloc((size_t)LIMIT_ROOTS_BYTES);
	X509_STORE *store;
	struct stat st;
	size_t n = 0;

	if (bytes == NULL)
		return err_set(err, -ENOMEM, "no memory");
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(err, "open");
	if (!S_ISREG(st.st_mode) || st.st_uid != 0 || (st.st_mode & 022) != 0)
		return err_set(err, -EPERM, "it is not a file that only root can write");
	if (fd_read_upto(fd, bytes, (size_t)LIMIT_ROOTS_BYTES, &n, err) < 0)
		return err->code;
	if (n == LIMIT_ROOTS_BYTES)
		return err_set(err, -E2BIG, "it is too large");
	store = X509_STORE_new();
	if (store == NULL)
		return err_set(err, -ENOMEM, "no memory");
	if (store_fill(store, bytes, n, err) < 0) {
		X509_STORE_free(store);
		return err->code;
	}
	*ret = store;
	return 0;
}

static bool
has(const struct roots *r, struct view name)
{
	for (size_t i = 0; i < r->n; i++)
		if (view_is(name, r->row[i].name))
			return true;
	return false;
}

void
roots_want(struct roots *r, int trust, struct view name, void (*note)(const char *text))
{
	struct roots_row row = {.store = NULL};
	struct err err = {0};
	char path[80];

	if (has(r, name) || name.n >= sizeof(row.name))
		return;
	if (r->n == ROWS_MAX) {
		note("there are more names of certificates than are kept");
		return;
	}
	if (name.n > 0)
		memcpy(row.name, name.p, name.n);
	(void)snprintf(path, sizeof(path), "%.*s.pem", VIEW_ARGS(name));
	if (store_load(trust, name.n == 0 ? system_bundle : path, &row.store, &err) < 0) {
		(void)err_context(&err, "%s", name.n == 0 ? system_bundle : path);
		note(err.text);
	}
	r->row[r->n++] = row;
}

int
roots_load(const struct catalogue *c, int trust, void (*note)(const char *text), struct roots **ret,
	struct err *err)
{
	struct roots *r = calloc(1, sizeof(*r));

	if (r == NULL)
		return err_set(err, -ENOMEM, "no memory for certificates");
	roots_want(r, trust, view_str(""), note);
	for (size_t i = 0; i < c->n; i++) {
		if (c->op[i].provider.tls)
			roots_want(r, trust, c->op[i].provider.roots, note);
		if (c->op[i].verify.n != 0 && c->op[i].verify_provider.tls)
			roots_want(r, trust, c->op[i].verify_provider.roots, note);
	}
	*ret = r;
	return 0;
}

void
roots_free(struct roots *r)
{
	if (r == NULL)
		return;
	for (size_t i = 0; i < r->n; i++)
		X509_STORE_free(r->row[i].store);
	free(r);
}

struct x509_store_st *
roots_find(const struct roots *r, struct view name)
{
	for (size_t i = 0; i < r->n; i++)
		if (view_is(name, r->row[i].name))
			return r->row[i].store;
	return NULL;
}
