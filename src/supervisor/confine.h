/* SPDX-License-Identifier: Apache-2.0 */
/* What the supervisor itself gives up. */
#pragma once

#include "lib/base/err.h"

/* Keeps the capabilities of proto/caps.def, drops all others for good, here and for every child, and proves it. */
int confine(struct err *err) MUST_CHECK;
