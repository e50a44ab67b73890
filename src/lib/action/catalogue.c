/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The catalogue from its memfd; see operation.h. The seals are what makes the bytes pinned.
 */
#include "lib/action/operation.h"
#include "lib/base/buf.h"
#include "lib/base/fd.h"
#include "lib/canon/profile.h"
#include "lib/canon/sequence.h"

#include <errno.h>

static int
count(struct view all, size_t *ret, struct err *err)
{
	struct view one;
	size_t n = 0;
	int e;

	while ((e = canon_sequence_next(&all, "catalogue", OPERATION_BYTES_MAX, &one, err)) == 1) {
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
		int e = canon_sequence_next(&all, "catalogue", OPERATION_BYTES_MAX, &one, err);

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
	must(document.n <= OPERATION_BYTES_MAX);
	canon_sequence_add(b, document);
}
