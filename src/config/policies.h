/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of policies (YAML, demilune-policy(5)) into canonical documents, one for each file, as docs/decisions/0004-egress.md has them. Pure;
 * for main.c, tests and fuzzing. lib/egress, which everybody reads them with, has the last word about each document.
 */
#pragma once

#include "config/operations.h"
#include "lib/egress/policy.h"

struct compiled_policy {
	char name[POLICY_NAME_MAX + 1];
	struct buf document; /* owned */
};

struct policies_compiled {
	struct compiled_policy row[POLICIES_MAX]; /* ascending by name */
	size_t n;
};

/*
 * Names of files are NAME.yaml, all different (operations_sink, operations_file: as for operations). The number of faults; *ret is complete
 * when it is 0, and to be ended by policies_compiled_done() in any case.
 */
unsigned policies_compile(const struct operations_file *files, size_t n,
	struct policies_compiled *ret, const struct operations_sink *sink);
void policies_compiled_done(struct policies_compiled *p);

static inline void
policies_compiled_cleanup(struct policies_compiled *p)
{
	policies_compiled_done(p);
}
#define auto_policies_compiled __attribute__((cleanup(policies_compiled_cleanup)))
