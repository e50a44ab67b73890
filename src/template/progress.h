/* SPDX-License-Identifier: Apache-2.0 */
/* Lines for the person who waits, on standard output, each written at once. */
#pragma once

#include "lib/base/attr.h"

void progress(const char *fmt, ...) PRINTF(1, 2);
