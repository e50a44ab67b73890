/* SPDX-License-Identifier: Apache-2.0 */
/* The jail of the engine, and the proof that it took. */
#pragma once

#include "lib/base/err.h"

/* state_fd may be read (templates/), engine_fd written. Before the first message. */
int confine(int state_fd, int engine_fd, struct err *err) MUST_CHECK;
