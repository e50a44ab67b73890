/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of limits.def. */
#pragma once

#include "lib/base/attr.h"

#include <stdint.h>

#define LIMIT(name, value, prose) static const uint64_t LIMIT_##name UNUSED = (value);
#include "limits.def"
#undef LIMIT
