/* SPDX-License-Identifier: Apache-2.0 */
/* Engine and api as they hang together: who gets which end of which edge when either is started. */
#pragma once

#include "supervisor/supervisor.h"

/* Sets both up; child_begin() starts them. */
void rooms_init(struct supervisor *sv);

/* Ends both and closes what waited for them. */
void rooms_end(struct supervisor *sv);
