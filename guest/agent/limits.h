/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of limits.def. */
#pragma once

enum {
#define LIMIT(name, value, prose) AGENT_##name = (value),
#include "limits.def"
#undef LIMIT
};
