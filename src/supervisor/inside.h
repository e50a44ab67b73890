/* SPDX-License-Identifier: Apache-2.0 */
/* What the process that becomes PID 1 does; called by spawn.c in the clone, never returns. */
#pragma once

#include "supervisor/spawn.h"

NORETURN void inside_main(const struct spawn_kit *kit, int sock);
