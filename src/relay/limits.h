/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of limits.def. */
#pragma once

#include "lib/ipc/job_bounds.h"

#include <stdint.h>

#define LIMIT(name, value, prose) static const uint64_t RELAY_##name = (value);
#include "limits.def"
#undef LIMIT
