/* SPDX-License-Identifier: Apache-2.0 */
/* Policies from sealed memory files; see policy.h. */
#include "lib/egress/policy.h"

#include "lib/base/fd.h"
#include "lib/canon/profile.h"
#include "lib/canon/sequence.h"

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

static int
rows_read(struct view all, struct policies *p, struct err *err)
{
	struct view one;
	int e;

	while ((e = canon_sequence_next(&all, "list of policies", POLICY_BYTES_MAX, &one, err)) ==
		1) {
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
	must(document.n <= POLICY_BYTES_MAX);
	canon_sequence_add(b, document);
}
