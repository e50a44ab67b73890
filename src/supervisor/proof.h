/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is left of a sandbox: asked from the kernel, not from what we believe to have closed. While it lives its marks
 * are taken: what the kernel can be asked about after it has ended, and gives to nobody else meanwhile.
 */
#pragma once

#include "supervisor/sandbox.h"

/* All but `journal` and `teardown_us`. */
void proof_take(struct sandbox *sb, unsigned groups_left, struct proof *ret);
