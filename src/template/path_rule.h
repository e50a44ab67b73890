/* SPDX-License-Identifier: Apache-2.0 */
/* Which paths a manifest or a command line may name. */
#pragma once

#include "lib/base/view.h"

/*
 * Absolute, of letters, digits, "._+-" and the characters of `extra`; no empty, "." or ".."
 * component, no slash at the end.
 */
bool path_rule_plain(struct view v, const char *extra);

/* True if b is a or lies inside a. */
bool path_rule_holds(const char *a, struct view b);

/* A directory that may be writable in a sandbox: plain, and none of the system's. */
bool path_rule_place(struct view v);
