/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of limits.def as constants. */
#pragma once

#include "lib/base/attr.h"

#include <stdint.h>

#define LIMIT(name, value, why) static const uint64_t LIMIT_##name UNUSED = (value);
#include "broker/limits.def"
#undef LIMIT
