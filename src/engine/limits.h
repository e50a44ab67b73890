/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of limits.def as constants. */
#pragma once

#include "lib/base/attr.h"
#include "lib/ipc/job_bounds.h"

#include <stdint.h>

#define LIMIT(name, value, why) static const uint64_t LIMIT_##name UNUSED = value;
#include "engine/limits.def"
#undef LIMIT
