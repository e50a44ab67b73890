/* SPDX-License-Identifier: Apache-2.0 */
/* The device tree of all sandboxes: made once, read-only, copied as a mount into each. */
#pragma once

#include "lib/base/err.h"

/* Makes it at directory `at`; the mount stays there until the supervisor ends. */
int dev_make(int stage, const char *at, struct err *err) MUST_CHECK;

/* A copy, shown through the user namespace where tmpfs can (Linux 6.3), so that its owner is the sandbox's root. */
int dev_copy(int stage, const char *at, int userns, struct err *err) MUST_CHECK;
