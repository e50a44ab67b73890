/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Policies that living sandboxes have, one copy of each revision: for the rooms that get one with every sandbox (dialer, broker). A policy
 * lives until the last one that has it lets go.
 */
#pragma once

#include "lib/base/list.h"
#include "lib/egress/policy.h"

struct held_policy {
	struct link link;
	unsigned refs;
	uint8_t *bytes; /* owned; the views of `policy` point there */
	struct policy policy;
};

/*
 * One more that has it. A revision that is not among `all` is read from `fd` (policy_load; it stays the caller's) and must be what `digest`
 * says: -EPROTO.
 */
int held_policy_get(struct link *all, int fd, const uint8_t digest[static SHA256_BYTES],
	struct held_policy **ret, struct err *err) MUST_CHECK;
struct held_policy *held_policy_ref(struct held_policy *p);
void held_policy_unref(struct held_policy *p); /* NULL too */

/* NULL: no sandbox has it. */
struct held_policy *held_policy_find(struct link *all, const uint8_t digest[static SHA256_BYTES]);
