/* SPDX-License-Identifier: Apache-2.0 */
/* The jail of the gateway: descriptor 3, those that the supervisor and the dialer pass, memory, a clock. */
#pragma once

#include "lib/base/err.h"

int confine(struct err *err) MUST_CHECK;
