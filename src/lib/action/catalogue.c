/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The catalogue from its memfd; see operation.h. The seals are what makes the bytes pinned.
 */
#include "lib/action/operation.h"
#include "lib/base/buf.h"
#include "lib/base/fd.h"
#include "lib/canon/profile.h"

#include <errno.h>

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
	int e = fd_read_sealed(fd, "catalogue", CATALOGUE_BYTES_MAX, &c.bytes, &n, err);

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
