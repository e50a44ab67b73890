/* SPDX-License-Identifier: Apache-2.0 */
/* What is left of a sandbox: counted in the kernel's tables, not in what we believe to have closed. */
#pragma once

#include "supervisor/sandbox.h"

/* All but `teardown_us`. `journal` is true while its line stands. */
void proof_take(const struct sandbox *sb, unsigned groups_left, bool journal, struct proof *ret);
bool proof_is_zero(const struct proof *p);
