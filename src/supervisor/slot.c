/* SPDX-License-Identifier: Apache-2.0 */
/* Uid ranges; see slot.h. */
#include "supervisor/slot.h"

#include "supervisor/limits.h"

#include <errno.h>

int
slots_init(struct slots *s, uint32_t base, uint32_t n, struct err *err)
{
	/* The last id, -1, is nobody's. */
	if (base < LIMIT_UIDS_PER_SANDBOX || base + n * LIMIT_UIDS_PER_SANDBOX > UINT32_MAX)
		return err_set(err, -ERANGE, "%u uid ranges from %u on do not fit below 4294967295",
			n, base);
	*s = (struct slots){.used = calloc(n, 1), .n = n, .base = base};
	return s->used == NULL ? err_set(err, -ENOMEM, "no memory for uid ranges") : 0;
}

void
slots_done(struct slots *s)
{
	free(take_ptr(s->used));
}

int
slot_take(struct slots *s, uint32_t *ret, struct err *err)
{
	for (uint32_t i = 0; i < s->n; i++) {
		uint32_t slot = (s->next + i) % s->n;

		if (s->used[slot])
			continue;
		s->used[slot] = 1;
		s->next = (slot + 1) % s->n;
		*ret = slot;
		return 0;
	}
	return err_set(err, -EAGAIN, "all %u uid ranges are in use", s->n);
}

void
slot_give(struct slots *s, uint32_t slot)
{
	must(slot < s->n && s->used[slot]);
	s->used[slot] = 0;
}

uint32_t
slot_uid(const struct slots *s, uint32_t slot)
{
	return s->base + slot * (uint32_t)LIMIT_UIDS_PER_SANDBOX;
}
