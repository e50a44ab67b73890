/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of limits.def as constants. */
#pragma once

enum {
#define LIMIT(name, value, what) LIMIT_##name = (value),
#include "cli/limits.def"
#undef LIMIT
};
