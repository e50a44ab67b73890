/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes as lower-case hexadecimal text and back. */
#pragma once

#include "lib/base/attr.h"
#include "lib/base/view.h"

/* Writes 2n digits and a NUL. */
void hex_encode(const uint8_t *p, size_t n, char *ret);

/* Exactly 2n lower-case digits, or -EINVAL. */
int hex_decode(struct view text, uint8_t *ret, size_t n) MUST_CHECK;
