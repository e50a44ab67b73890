/* SPDX-License-Identifier: Apache-2.0 */
/* The jail of the relay: descriptors 3, 4, 5, those that the engine passes, memory, a clock. */
#pragma once

#include "lib/base/err.h"

int confine(struct err *err) MUST_CHECK;
