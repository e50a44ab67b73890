/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The catalogue from its memfd; see operation.h. The seals are what makes the bytes pinned: nobody, not even who handed the descriptor over, can
 * change them behind the reader's back.
 */
#include "lib/action/operation.h"
#include "lib/base/buf.h"
#include "lib/canon/profile.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum { SEALS = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE };

static int
bytes_read(int fd, uint8_t **ret, size_t *ret_n, struct err *err)
{
	int seals = fcntl(fd, F_GET_SEALS);
	auto_free uint8_t *p = NULL;
	struct stat st;
	size_t n, at = 0;

	if (seals < 0 || (seals & SEALS) != SEALS)
		return err_set(err, -EINVAL, "the catalogue is not a sealed memory file");
	if (fstat(fd, &st) < 0)
		return err_errno(err, "fstat of the catalogue");
	if (st.st_size < 0 || st.st_size > CATALOGUE_BYTES_MAX)
		return err_set(
			err, -EINVAL, "the catalogue has more than %d bytes", CATALOGUE_BYTES_MAX);
	n = (size_t)st.st_size;
	p = malloc(n + 1);
	if (p == NULL)
		return err_set(err, -ENOMEM, "no memory for the catalogue");
	while (at < n) {
		ssize_t got = pread(fd, p + at, n - at, (off_t)at);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return err_errno(err, "reading the catalogue");
		at += (size_t)got;
	}
	*ret = take_ptr(p);
	*ret_n = n;
	return 0;
}

/* The next document: 1, 0 at the end, -EINVAL. */
static int
document_take(struct view *rest, struct view *ret, struct err *err)
{
	size_t n;

	if (rest->n == 0)
		return 0;
	if (rest->n < 4)
		return err_set(err, -EINVAL, "the catalogue is cut off");
	n = (size_t)rest->p[0] << 24 | (size_t)rest->p[1] << 16 | (size_t)rest->p[2] << 8 |
	    rest->p[3];
	if (n == 0 || n > OPERATION_BYTES_MAX || n > rest->n - 4)
		return err_set(err, -EINVAL, "the catalogue is cut off or a document too large");
	*ret = view_of(rest->p + 4, n);
	*rest = view_skip(*rest, 4 + n);
	return 1;
}

static int
count(struct view all, size_t *ret, struct err *err)
{
	struct view one;
	size_t n = 0;
	int e;

	while ((e = document_take(&all, &one, err)) == 1) {
		if (++n > OPERATIONS_MAX)
			return err_set(err, -EINVAL, "more than %d operations", OPERATIONS_MAX);
	}
	*ret = n;
	return e;
}

static int
operations_read(struct view all, struct catalogue *c, struct err *err)
{
	struct sha256 h;

	sha256_init(&h);
	sha256_add(&h, "demilune-catalogue-v1", sizeof("demilune-catalogue-v1"));
	for (size_t i = 0; i < c->n; i++) {
		struct operation *op = &c->op[i];
		struct view one;
		int e = document_take(&all, &one, err);

		must(e == 1);
		e = operation_read(one, op, err);
		if (e < 0)
			return e;
		if (i > 0 && canon_key_compare(op[-1].name, op->name) >= 0)
			return err_set(err, -EINVAL, "operation %.*s stands twice or out of order",
				VIEW_ARGS(op->name));
		sha256_add(&h, op->digest, sizeof(op->digest));
	}
	sha256_end(&h, c->digest);
	return 0;
}

int
catalogue_read(int fd, struct catalogue *ret, struct err *err)
{
	struct catalogue c = {0};
	size_t n = 0;
	int e = bytes_read(fd, &c.bytes, &n, err);

	if (e < 0)
		return e;
	e = count(view_of(c.bytes, n), &c.n, err);
	if (e == 0) {
		c.op = calloc(c.n + 1, sizeof(*c.op));
		e = c.op == NULL ? err_set(err, -ENOMEM, "no memory for the catalogue")
				 : operations_read(view_of(c.bytes, n), &c, err);
	}
	if (e < 0)
		catalogue_done(&c);
	else
		*ret = c;
	return e;
}

void
catalogue_done(struct catalogue *c)
{
	free(c->op);
	free(c->bytes);
	*c = (struct catalogue){0};
}

const struct operation *
catalogue_find(const struct catalogue *c, struct view name)
{
	for (size_t i = 0; i < c->n; i++) {
		if (view_eq(c->op[i].name, name))
			return &c->op[i];
	}
	return NULL;
}

void
catalogue_put(struct buf *b, struct view document)
{
	uint8_t n[4] = {(uint8_t)(document.n >> 24), (uint8_t)(document.n >> 16),
		(uint8_t)(document.n >> 8), (uint8_t)document.n};

	must(document.n <= OPERATION_BYTES_MAX);
	buf_add(b, n, sizeof(n));
	buf_add_view(b, document);
}
