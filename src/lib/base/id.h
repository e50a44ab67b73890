/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Identifiers of tasks, sandboxes and jobs: 80 random bits from the kernel. In text a
 * kind prefix and 16 characters of Crockford's base 32 in lower case ("sb_8w2kd0..."),
 * safe in URLs, file names and cgroup names. Not a secret and never an authority.
 */
#pragma once

#include "lib/base/err.h"
#include "lib/base/view.h"

enum { ID_BYTES = 10, ID_DIGITS = 16, ID_TEXT = 24 /* prefix, digits, NUL */ };

struct id {
	uint8_t b[ID_BYTES];
};

/* The prefixes; each kind of object has one. */
#define ID_TASK      "tk_"
#define ID_SANDBOX   "sb_"
#define ID_JOB       "ex_"
#define ID_GRANT     "gr_"
#define ID_PROPOSAL  "pr_"
#define ID_EXECUTION "xc_"
#define ID_LEASE     "le_"

void id_new(struct id *ret);
bool id_eq(const struct id *a, const struct id *b);
bool id_is_zero(const struct id *a);

/* "prefix" + digits + NUL into ret[ID_TEXT]; the prefix has at most 7 characters. */
void id_text(const struct id *id, const char *prefix, char *ret);

/* The exact form that id_text writes, or -EINVAL. */
int id_parse(struct view text, const char *prefix, struct id *ret) MUST_CHECK;
