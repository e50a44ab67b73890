/* SPDX-License-Identifier: Apache-2.0 */
/* The second half of a creation; see create.h. */
#pragma once

#include "engine/create.h"

/* SPAWN now, or when the image of its template is mounted. */
void spawn_or_wait(struct sandbox *s, struct template *t);
