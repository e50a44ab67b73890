/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of limits.def as constants. */
#pragma once

#include "lib/ipc/local_bounds.h"

enum api_limit {
#define LIMIT(name, value, prose) LIMIT_##name = (value),
#include "limits.def"
#undef LIMIT
};
