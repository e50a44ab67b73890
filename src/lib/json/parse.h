/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strict JSON from people and programs, on jansson: request bodies in api, proposals in
 * relay, answers in cli. RFC 8259, and stricter:
 *
 * - one object or array in valid UTF-8, nothing behind it, no byte order mark;
 * - no key twice in one object (compared after unescaping);
 * - no lone surrogates; no NUL in keys, and in strings only where the caller allows it;
 * - integers within 64 bits, no number that overflows a double (no NaN or Infinity);
 * - bounded bytes, depth and number of values, all looked at before anything is allocated:
 *   jansson takes about 220 bytes for a "{}".
 */
#pragma once

#include "lib/base/err.h"
#include "lib/base/view.h"

#include <jansson.h>

enum { JSON_VALUES_MAX = 16384 };

struct json_limits {
	size_t max_bytes;
	unsigned max_depth; /* objects and arrays inside each other; at most 1024 */
	bool nul_ok;        /* strings may have \u0000 */
};

static inline void
json_cleanup(json_t **j)
{
	json_decref(*j);
}
#define auto_json __attribute__((cleanup(json_cleanup)))

/*
 * Seeds jansson's hash tables from the kernel. Once at the start of a process: jansson
 * would open /dev/urandom later, inside the jail, and fall back to the clock.
 */
int json_start(struct err *err) MUST_CHECK;

/*
 * 0 with a new reference in *ret, or -E2BIG (a limit), -EINVAL (not strict JSON, with
 * line, column and what to do), -ENOMEM.
 */
int json_parse(struct view text, const struct json_limits *limits, json_t **ret,
	struct err *err) MUST_CHECK;
