/* SPDX-License-Identifier: Apache-2.0 */
/* What a configuration says, by the compiler that the daemon uses; for doctor. */
#pragma once

#include "lib/base/err.h"
#include "proto_gen.h"

/* file NULL: all options have their defaults. A configuration with faults is -EINVAL. */
int check_settings(const char *file, struct settings *ret, struct err *err) MUST_CHECK;
