/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The canonical JSON profile: for one value there is exactly one sequence of bytes.
 * What is hashed, chained and signed is always in this form.
 *
 * 1. No white space, nothing before or after the document.
 * 2. Object keys match [A-Za-z][A-Za-z0-9_]* and ascend strictly in byte order (so none
 *    is there twice).
 * 3. Numbers are integers within +-(2^53 - 1), without leading zeros, fraction, exponent
 *    or "-0". Decimals are strings with a grammar of their schema.
 * 4. Strings are well-formed UTF-8 without noncharacters. Only '"', '\' and C0 controls
 *    are escaped, in the shortest form: \" \\ \b \t \n \f \r, else \u00xx in lower case.
 *    C0 controls are refused where the caller does not allow them.
 * 5. At most 16 objects and arrays inside each other, at most 256 KiB.
 *
 * For keys and values within these rules the bytes are those of RFC 8785 too. Strings are
 * not normalised and their normal form (NFC) is not looked at here: a schema that has
 * identifiers for people checks that.
 */
#pragma once

#include "lib/base/view.h"

enum { CANON_DEPTH_MAX = 16, CANON_BYTES_MAX = 256 * 1024 };

#define CANON_INT_MAX ((INT64_C(1) << 53) - 1)

/* Rule 2. Whoever takes keys from a stranger asks this first; the writer insists on it. */
static inline bool
canon_key_ok(struct view key)
{
	for (size_t i = 0; i < key.n; i++) {
		uint8_t c = key.p[i], lower = c | 0x20;
		bool letter = lower >= 'a' && lower <= 'z';

		if (!letter && (i == 0 || (c != '_' && (c < '0' || c > '9'))))
			return false;
	}
	return key.n > 0;
}

/* Byte order: negative, 0, positive as memcmp; a prefix comes before what it starts. */
static inline int
canon_key_compare(struct view a, struct view b)
{
	size_t n = a.n < b.n ? a.n : b.n;
	int d = n == 0 ? 0 : memcmp(a.p, b.p, n);

	return d != 0 ? d : (a.n > b.n) - (a.n < b.n);
}
