/* SPDX-License-Identifier: Apache-2.0 */
/* The programs that the builder needs: they stand beside it, or in a build tree in a folder of their own. */
#pragma once

#include "lib/base/err.h"

#include <limits.h>

/* `folder`: seen from ours, where it is looked for after that; NULL = nowhere. */
int beside_find(const char *name, const char *folder, char ret[static PATH_MAX],
	struct err *err) MUST_CHECK;
