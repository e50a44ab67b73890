/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers from text, strictly: digits only, no sign but '-' where the type has one,
 * no blanks, no leading zeros but "0" itself, no overflow. 0 or -EINVAL / -ERANGE.
 */
#pragma once

#include "lib/base/attr.h"
#include "lib/base/view.h"

int num_u64(struct view v, uint64_t max, uint64_t *ret) MUST_CHECK;
int num_i64(struct view v, int64_t *ret) MUST_CHECK;

/* Checked arithmetic: 0 or -EOVERFLOW. */
static inline int
num_add(size_t a, size_t b, size_t *ret)
{
	return __builtin_add_overflow(a, b, ret) ? -75 /* EOVERFLOW */ : 0;
}

static inline int
num_mul(size_t a, size_t b, size_t *ret)
{
	return __builtin_mul_overflow(a, b, ret) ? -75 /* EOVERFLOW */ : 0;
}
