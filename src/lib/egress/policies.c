/* SPDX-License-Identifier: Apache-2.0 */
/* Policies from sealed memory files; see policy.h. */
#include "lib/egress/policy.h"

#include "lib/base/fd.h"
#include "lib/canon/profile.h"

#include <errno.h>

int
policy_load(int fd, uint8_t **ret_bytes, struct policy *ret, struct err *err)
{
	auto_free uint8_t *bytes = NULL;
	size_t n = 0;
	int e = fd_read_sealed(fd, "policy", POLICY_BYTES_MAX, &bytes, &n, err);

	if (e == 0)
		e = policy_read(view_of(bytes, n), ret, err);
	if (e == 0)
		*ret_bytes = take_ptr(bytes);
	return e;
}

/* The next document: 1, 0 at the end, -EINVAL. */
static int
document_take(struct view *rest, struct view *ret, struct err *err)
{
	size_t n;

	if (rest->n == 0)
		return 0;
	if (rest->n < 4)
		return err_set(err, -EINVAL, "the policies are cut off");
	n = (size_t)rest->p[0] << 24 | (size_t)rest->p[1] << 16 | (size_t)rest->p[2] << 8 |
	    rest->p[3];
	if (n == 0 || n > POLICY_BYTES_MAX || n > rest->n - 4)
		return err_set(err, -EINVAL, "the policies are cut off or one is too large");
	*ret = view_of(rest->p + 4, n);
	*rest = view_skip(*rest, 4 + n);
	return 1;
}

static int
rows_read(struct view all, struct policies *p, struct err *err)
{
	struct view one;
	int e;

	while ((e = document_take(&all, &one, err)) == 1) {
		struct policy *row = &p->row[p->n];

		if (p->n == POLICIES_MAX)
			return err_set(err, -EINVAL, "more than %d policies", POLICIES_MAX);
		e = policy_read(one, row, err);
		if (e < 0)
			return e;
		if (p->n > 0 && canon_key_compare(row[-1].name, row->name) >= 0)
			return err_set(err, -EINVAL, "policy %.*s stands twice or out of order",
				VIEW_ARGS(row->name));
		p->n++;
	}
	return e;
}

int
policies_load(int fd, struct policies *ret, struct err *err)
{
	struct policies p = {0};
	size_t n = 0;
	int e = fd_read_sealed(
		fd, "policies", POLICIES_MAX * (4 + POLICY_BYTES_MAX), &p.bytes, &n, err);

	if (e < 0)
		return e;
	p.row = calloc(POLICIES_MAX, sizeof(*p.row));
	e = p.row == NULL ? err_set(err, -ENOMEM, "no memory for the policies")
			  : rows_read(view_of(p.bytes, n), &p, err);
	if (e < 0)
		policies_done(&p);
	else
		*ret = p;
	return e;
}

void
policies_done(struct policies *p)
{
	free(p->row);
	free(p->bytes);
	*p = (struct policies){0};
}

const struct policy *
policies_find(const struct policies *p, struct view name)
{
	for (size_t i = 0; i < p->n; i++)
		if (view_eq(p->row[i].name, name))
			return &p->row[i];
	return NULL;
}

void
policies_put(struct buf *b, struct view document)
{
	uint8_t n[4] = {(uint8_t)(document.n >> 24), (uint8_t)(document.n >> 16),
		(uint8_t)(document.n >> 8), (uint8_t)document.n};

	must(document.n <= POLICY_BYTES_MAX);
	buf_add(b, n, sizeof(n));
	buf_add_view(b, document);
}
