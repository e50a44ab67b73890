/* SPDX-License-Identifier: Apache-2.0 */
/* Base 64 (RFC 4648, 4): padded, canonical, nothing else. */
#pragma once

#include "lib/base/buf.h"

/* Appends the bytes; -EINVAL (nothing is appended) or -ENOBUFS. */
int base64_decode(struct view text, struct buf *out) MUST_CHECK;

/* Appends the text; see buf_check. */
void base64_encode(struct view bytes, struct buf *out);
