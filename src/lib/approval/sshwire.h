/* SPDX-License-Identifier: Apache-2.0 */
/* The encoding of SSH (RFC 4251, 5): a string is u32 length and bytes. For keys, signatures and the answers of an agent. */
#pragma once

#include "lib/base/buf.h"

#include <errno.h>

/* Takes one string off the front; -EINVAL leaves *rest as it was. */
static inline int MUST_CHECK
ssh_take(struct view *rest, struct view *ret)
{
	const uint8_t *p = rest->p;
	size_t n;

	if (rest->n < 4)
		return -EINVAL;
	n = (size_t)p[0] << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 | p[3];
	if (n > rest->n - 4)
		return -EINVAL;
	*ret = view_of(p + 4, n);
	*rest = view_skip(*rest, 4 + n);
	return 0;
}

static inline int MUST_CHECK
ssh_take_u32(struct view *rest, uint32_t *ret)
{
	const uint8_t *p = rest->p;

	if (rest->n < 4)
		return -EINVAL;
	*ret = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
	*rest = view_skip(*rest, 4);
	return 0;
}

static inline void
ssh_put_u32(struct buf *b, uint32_t u)
{
	const uint8_t p[4] = {
		(uint8_t)(u >> 24), (uint8_t)(u >> 16), (uint8_t)(u >> 8), (uint8_t)u};

	buf_add(b, p, sizeof(p));
}

static inline void
ssh_put(struct buf *b, struct view v)
{
	ssh_put_u32(b, (uint32_t)v.n);
	buf_add_view(b, v);
}
