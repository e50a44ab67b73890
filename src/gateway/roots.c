/* SPDX-License-Identifier: Apache-2.0 */
/* See roots.h. Files are read by position: the supervisor may have given the same open file to others. */
#include "roots.h"

#include "limits.h"
#include "tls.h"

#include "lib/egress/policy.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <sys/stat.h>

enum { ROOTS_MAX = POLICY_ROOTS_MAX + 1, ROOTS_NAME = 64, CHAIN_DEPTH = 10 };

struct roots_row {
	char name[ROOTS_NAME]; /* "" is the system's */
	int fd;                /* owned; -1: it was read */
	SSL_CTX *ctx;          /* owned; NULL: not read yet, or fault */
	struct err fault;      /* of reading it: it is not tried again */
};

struct roots {
	size_t n;
	struct roots_row row[ROOTS_MAX];
};

struct roots *
roots_new(void)
{
	return calloc(1, sizeof(struct roots));
}

void
roots_free(struct roots *r)
{
	if (r == NULL)
		return;
	for (size_t i = 0; i < r->n; i++) {
		SSL_CTX_free(r->row[i].ctx);
		if (r->row[i].fd >= 0)
			(void)close(r->row[i].fd); /* only read from */
	}
	free(r);
}

static struct roots_row *
find(struct roots *r, struct view name)
{
	for (size_t i = 0; i < r->n; i++)
		if (view_is(name, r->row[i].name))
			return &r->row[i];
	return NULL;
}

int
roots_add(struct roots *r, const char *name, int fd, struct err *err)
{
	auto_fd int file = fd;
	size_t n = strlen(name);

	if (n >= ROOTS_NAME || r->n == ROOTS_MAX || find(r, view_str(name)) != NULL)
		return err_set(err, -EINVAL, "roots that cannot be: too many, or the same twice");
	memcpy(r->row[r->n].name, name, n + 1);
	r->row[r->n].fd = take_fd(&file);
	r->n++;
	return 0;
}

/* All of it. *ret is the caller's. */
static int
read_file(int fd, uint8_t **ret, size_t *ret_n, struct err *err)
{
	auto_free uint8_t *bytes = NULL;
	struct stat st;
	size_t n = 0;
	ssize_t r = 1;

	if (fstat(fd, &st) < 0)
		return err_errno(err, "stat");
	if (!S_ISREG(st.st_mode) || st.st_size <= 0 || (uint64_t)st.st_size > LIMIT_ROOTS_BYTES)
		return err_set(err, -EINVAL, "no file, empty or too large");
	bytes = malloc((size_t)st.st_size);
	if (bytes == NULL)
		return err_set(err, -ENOMEM, "no memory");
	while (n < (size_t)st.st_size && r > 0) {
		r = pread(fd, bytes + n, (size_t)st.st_size - n, (off_t)n);
		n += r > 0 ? (size_t)r : 0;
	}
	if (r < 0)
		return err_errno(err, "read");
	*ret = take_ptr(bytes);
	*ret_n = n;
	return 0;
}

/* Each block of the file is a certificate that can be read, and there is one. */
static int
fill(X509_STORE *store, const uint8_t *pem, size_t n, struct err *err)
{
	BIO *bio = BIO_new_mem_buf(pem, (int)n);
	X509 *cert = NULL;
	size_t count = 0;
	bool bad = bio == NULL;

	ERR_clear_error();
	while (!bad && (cert = PEM_read_bio_X509(bio, NULL, NULL, NULL)) != NULL) {
		bad = X509_STORE_add_cert(store, cert) != 1;
		X509_free(cert);
		count++;
	}
	/* "No start line" is how the end of the file is told; anything else is a bad certificate. */
	bad = bad || ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE;
	ERR_clear_error();
	BIO_free(bio);
	if (bad || count == 0)
		return err_set(err, -EINVAL, "it is not a list of certificates in PEM");
	return 0;
}

static SSL_CTX *
context(int fd, struct err *err)
{
	auto_free uint8_t *bytes = NULL;
	size_t n = 0;
	SSL_CTX *ctx;

	if (read_file(fd, &bytes, &n, err) < 0)
		return NULL;
	ctx = tls_context(false, err);
	if (ctx == NULL)
		return NULL;
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_verify_depth(ctx, CHAIN_DEPTH);
	if (fill(SSL_CTX_get_cert_store(ctx), bytes, n, err) < 0) {
		SSL_CTX_free(ctx);
		return NULL;
	}
	return ctx;
}

SSL_CTX *
roots_context(struct roots *r, struct view name, struct err *err)
{
	struct roots_row *row = find(r, name);

	if (row == NULL) {
		(void)err_set(err, -ENOENT, "there are no such roots");
		return NULL;
	}
	if (row->fd >= 0) {
		row->ctx = context(row->fd, &row->fault);
		if (row->ctx == NULL)
			(void)err_context(&row->fault, "roots %s",
				row->name[0] == '\0' ? "of the system" : row->name);
		(void)close(take_fd(&row->fd)); /* only read from */
	}
	if (row->ctx == NULL)
		*err = row->fault;
	return row->ctx;
}
