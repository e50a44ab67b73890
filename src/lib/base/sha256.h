/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SHA-256 (FIPS 180-4) by libmd: small enough for a process per sandbox, where loading
 * libcrypto would cost more than all the rest.
 */
#pragma once

#include "lib/base/view.h"

#include <sha2.h>

enum { SHA256_BYTES = 32, SHA256_TEXT = 65 };

struct sha256 {
	SHA2_CTX ctx;
};

void sha256_init(struct sha256 *h);
void sha256_add(struct sha256 *h, const void *p, size_t n);
/* A text of at most 65535 bytes behind its length (u16, big-endian): two texts are never one. */
void sha256_add_part(struct sha256 *h, struct view v);
void sha256_end(struct sha256 *h, uint8_t ret[static SHA256_BYTES]);

/* All at once. */
void sha256_of(struct view v, uint8_t ret[static SHA256_BYTES]);
