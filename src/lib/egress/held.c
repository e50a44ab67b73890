/* SPDX-License-Identifier: Apache-2.0 */
/* See held.h. */
#include "lib/egress/held.h"

#include <errno.h>
#include <stdlib.h>

struct held_policy *
held_policy_find(struct link *all, const uint8_t digest[static SHA256_BYTES])
{
	list_each (p, all, struct held_policy, link)
		if (memcmp(p->policy.digest, digest, SHA256_BYTES) == 0)
			return p;
	return NULL;
}

struct held_policy *
held_policy_ref(struct held_policy *p)
{
	p->refs++;
	return p;
}

int
held_policy_get(struct link *all, int fd, const uint8_t digest[static SHA256_BYTES],
	struct held_policy **ret, struct err *err)
{
	struct held_policy *p = held_policy_find(all, digest);
	auto_free struct held_policy *made = NULL;
	int r;

	if (p != NULL) {
		*ret = held_policy_ref(p);
		return 0;
	}
	made = calloc(1, sizeof(*made));
	if (made == NULL)
		return err_set(err, -ENOMEM, "no memory for a policy");
	r = policy_load(fd, &made->bytes, &made->policy, err);
	if (r < 0)
		return r;
	if (memcmp(made->policy.digest, digest, SHA256_BYTES) != 0) {
		free(made->bytes);
		return err_set(err, -EPROTO, "the policy is not the one whose digest was told");
	}
	list_append(all, &made->link);
	*ret = held_policy_ref(take_ptr(made));
	return 0;
}

void
held_policy_unref(struct held_policy *p)
{
	if (p == NULL || --p->refs > 0)
		return;
	list_remove(&p->link);
	free(p->bytes);
	free(p);
}
