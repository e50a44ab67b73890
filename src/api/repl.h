/* SPDX-License-Identifier: Apache-2.0 */
/* Code contexts: interpreters that are held open for callers; see repl.c. */
#pragma once

#include "api.h"

void repl_start(struct api *api); /* the reaper of idle ones */
void repl_stop(struct api *api);
