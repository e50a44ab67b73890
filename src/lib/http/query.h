/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parameters of queries and of application/x-www-form-urlencoded bodies, decoded into the caller's
 * memory. Strict: a pair has a name, every escape is well formed, names and values are UTF-8
 * without NUL, and no name comes twice (two readers would pick different ones). '+' is a blank.
 */
#pragma once

#include "lib/http/path.h"

enum { HTTP_PARAMS_MAX = 32 };

struct http_param {
	struct view name, value; /* borrowed from the memory given to http_query_parse */
	bool has_value;          /* "a=" has one, "a" has not */
};

struct http_params {
	struct http_param param[HTTP_PARAMS_MAX];
	unsigned n;
};

/* mem must have room for text.n bytes and outlive ret. flags: HTTP_DECODE_NUL, for values only. */
enum http_reason http_query_parse(
	struct view text, unsigned flags, uint8_t *mem, struct http_params *ret) MUST_CHECK;

/* NULL when there is none. */
const struct http_param *http_param_find(const struct http_params *params, const char *name);
