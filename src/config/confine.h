/* SPDX-License-Identifier: Apache-2.0 */
/* Gives up everything but the two descriptors, before the first byte is read. */
#pragma once

#include "lib/base/err.h"

int confine(struct err *err) MUST_CHECK;

/* Fixed: the file that could name another is read only after this. */
enum { CONFIG_UID = 64104 };
