/* SPDX-License-Identifier: Apache-2.0 */
/* The options of demilune.yaml: finding one by its path, reading its value, checking all together. */
#pragma once

#include "lib/base/err.h"
#include "lib/base/view.h"
#include "proto_gen.h"

enum { OPTION_NONE_UID = 0xffffffff }; /* uids.admin: none */

/* cgroup_mode */
enum cgroup_mode { CGROUP_AUTO, CGROUP_V1, CGROUP_V2 };

/* All defaults; a table whose default is refused is a bug of ours. */
void options_default(struct settings *ret);

/* Reads the value of one option into its field. -ENOENT: no such option; -EINVAL: the sentence says what is accepted. */
int option_set(struct settings *s, const char *path, struct view value, struct err *err) MUST_CHECK;

/* Whether some option's path begins with "path.". */
bool option_is_section(const char *path);

/* What only holds between options (defaults within limits, uids apart); 0, or the n-th fault, counted from 0. */
int options_check(const struct settings *s, unsigned n, struct err *err) MUST_CHECK;
