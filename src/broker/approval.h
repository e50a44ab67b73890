/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The approvers file as it is now. It is looked at before each decision and each execution and read again whenever it is another one; a
 * file that is missing, not root's alone to write, or of a bad form is no file, and everything that needs a person is denied.
 */
#pragma once

#include "lib/approval/authority.h"

#include <sys/types.h>

struct approval {
	int trust; /* borrowed: the trust directory */
	struct approvers approvers;
	bool good; /* approvers holds the file of now */
	bool seen; /* it was looked at once */
	char fault[224];
	uint64_t inode, size;
	int64_t mtime_ns, ctime_ns;
};

/* True when it is another than before, also another fault. */
bool approval_refresh(struct approval *a);
void approval_done(struct approval *a);

/* For struct authority_ask; NULL: everything is denied. */
const struct approvers *approval_now(const struct approval *a);
