/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside lib/http only: UTF-8 that arrives in pieces, refused at the first byte that cannot be
 * right.
 */
#pragma once

#include "lib/base/view.h"

struct http_utf8 {
	uint8_t p[4];    /* the sequence under way */
	uint8_t n, want; /* n == 0: between characters */
};

/* False: no continuation could make this legal. */
bool http_utf8_byte(struct http_utf8 *u, uint8_t c);
