/* SPDX-License-Identifier: Apache-2.0 */
/* What the process gives up before the first byte of a stranger. */
#pragma once

#include "lib/base/err.h"

/* No capability, no file, no exec, no new socket but accepted ones; proves it. Must not run as root. */
int confine(struct err *err) MUST_CHECK;
