/* SPDX-License-Identifier: Apache-2.0 */
/* The value of a member of a canonical object, as it stands there; empty: it has none, or it is no object. */
#pragma once

#include "lib/base/view.h"

struct view member(struct view object, struct view name);

struct buf;

/* Is this value a canonical string: its text appended to ret. */
bool string_of(struct view value, struct buf *ret);
