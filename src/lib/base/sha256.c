/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256; see sha256.h. */
#include "lib/base/sha256.h"

void
sha256_init(struct sha256 *h)
{
	SHA256Init(&h->ctx);
}

void
sha256_add(struct sha256 *h, const void *p, size_t n)
{
	SHA256Update(&h->ctx, p, n);
}

void
sha256_add_part(struct sha256 *h, struct view v)
{
	const uint8_t n[2] = {(uint8_t)(v.n >> 8), (uint8_t)v.n};

	sha256_add(h, n, 2);
	if (v.n > 0)
		sha256_add(h, v.p, v.n);
}

void
sha256_end(struct sha256 *h, uint8_t ret[static SHA256_BYTES])
{
	SHA256Final(ret, &h->ctx);
}

void
sha256_of(struct view v, uint8_t ret[static SHA256_BYTES])
{
	struct sha256 h;

	sha256_init(&h);
	sha256_add(&h, v.p, v.n);
	sha256_end(&h, ret);
}
