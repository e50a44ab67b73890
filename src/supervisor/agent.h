/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's program, in memory. */
#pragma once

#include "lib/base/err.h"

/*
 * A sealed, executable memory file with the bytes of `path`: no sandbox can reach, hold or change the file of the host.
 * Owned by the caller.
 */
int agent_load(const char *path, struct err *err) MUST_CHECK;
