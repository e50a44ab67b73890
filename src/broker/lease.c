/* SPDX-License-Identifier: Apache-2.0 */
/* See lease.h. */
#include "broker/lease.h"

#include <errno.h>

static void
drop_old(struct leases *l, uint64_t now_ms, bool spent_too)
{
	size_t kept = 0;

	for (size_t i = 0; i < l->n; i++)
		if (l->row[i].until_ms > now_ms && !(spent_too && l->row[i].spent))
			l->row[kept++] = l->row[i];
	l->n = kept;
}

static struct lease *
find(struct leases *l, const struct id *id)
{
	for (size_t i = 0; i < l->n; i++)
		if (id_eq(&l->row[i].id, id))
			return &l->row[i];
	return NULL;
}

int
leases_add(struct leases *l, const struct lease *lease, uint64_t now_ms, struct err *err)
{
	size_t of_one = 0;

	drop_old(l, now_ms, false);
	if (find(l, &lease->id) != NULL)
		return err_set(err, -EEXIST, "this lease was given already");
	for (size_t i = 0; i < l->n; i++)
		of_one += !l->row[i].spent && id_eq(&l->row[i].sandbox, &lease->sandbox);
	if (of_one >= LEASES_OF_ONE)
		return err_set(err, -E2BIG, "the sandbox has %d leases", LEASES_OF_ONE);
	if (l->n == LEASES_MAX)
		drop_old(l, now_ms, true);
	if (l->n == LEASES_MAX)
		return err_set(err, -ENOSPC, "the broker has as many leases as it keeps");
	l->row[l->n++] = *lease;
	return 0;
}

int
leases_spend(struct leases *l, const struct id *id, const struct id *sandbox, uint16_t rule,
	uint64_t now_ms, uint8_t ret_digest[static SHA256_BYTES], struct err *err)
{
	struct lease *lease = find(l, id);

	if (lease == NULL || !id_eq(&lease->sandbox, sandbox) || lease->rule != rule)
		return err_set(err, -ENOENT, "there is no such lease");
	if (lease->spent)
		return err_set(err, -EALREADY, "the lease was used");
	if (lease->until_ms <= now_ms)
		return err_set(err, -ETIME, "the lease is over");
	lease->spent = true;
	memcpy(ret_digest, lease->digest, SHA256_BYTES);
	return 0;
}
