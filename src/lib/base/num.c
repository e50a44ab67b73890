/* SPDX-License-Identifier: Apache-2.0 */
/* Strict numbers; see num.h. */
#include "lib/base/num.h"

#include <errno.h>

_Static_assert(EOVERFLOW == 75, "num.h returns this value");

int
num_u64(struct view v, uint64_t max, uint64_t *ret)
{
	uint64_t value = 0;

	if (v.n == 0 || (v.n > 1 && v.p[0] == '0'))
		return -EINVAL;
	for (size_t i = 0; i < v.n; i++) {
		uint8_t c = v.p[i];

		if (c < '0' || c > '9')
			return -EINVAL;
		if (__builtin_mul_overflow(value, 10u, &value) ||
			__builtin_add_overflow(value, (uint64_t)(c - '0'), &value))
			return -ERANGE;
	}
	if (value > max)
		return -ERANGE;
	*ret = value;
	return 0;
}

int
num_i64(struct view v, int64_t *ret)
{
	bool negative = v.n > 0 && v.p[0] == '-';
	uint64_t max = (uint64_t)INT64_MAX + (negative ? 1 : 0), value;
	int r = num_u64(negative ? view_skip(v, 1) : v, max, &value);

	if (r < 0)
		return r;
	*ret = negative ? (int64_t)(0 - value) : (int64_t)value;
	return 0;
}
