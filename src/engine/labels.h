/* SPDX-License-Identifier: Apache-2.0 */
/* Labels and metadata: key NUL value NUL ..., as they come from the api. */
#pragma once

#include "engine/engine.h"

/* One pair after the other; false at the end. The views have no NUL. */
bool labels_next(struct view *left, struct view *ret_key, struct view *ret_value);

/* Well-formed: pairs, UTF-8, at most LIMIT_LABELS, keys of 1 to 128 bytes, none twice, values up to 4096. */
int labels_check(struct view labels, struct err *err) MUST_CHECK;

/* Has it this pair? An empty filter (key NUL value NUL) matches all. */
bool labels_match(struct view labels, struct view filter);

/* The value of a key, or an empty view. */
struct view labels_get(struct view labels, const char *key);
