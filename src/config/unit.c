/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers with units; see unit.h. */
#include "config/unit.h"

#include "lib/base/num.h"

#include <errno.h>

struct unit {
	const char *suffix; /* NULL ends the table */
	uint64_t factor;
};

static const struct unit byte_units[] = {
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {NULL, 0}};
static const struct unit time_units[] = {
	{"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}, {NULL, 0}};
static const struct unit cpu_units[] = {{"m", 1}, {NULL, 0}};

static int
read_unit(struct view v, const struct unit *units, uint64_t *ret)
{
	for (const struct unit *u = units; u->suffix != NULL; u++) {
		size_t n = strlen(u->suffix);
		uint64_t value;

		if (v.n <= n || !view_is(view_skip(v, v.n - n), u->suffix) ||
			num_u64(view_of(v.p, v.n - n), UINT64_MAX / u->factor, &value) < 0)
			continue;
		*ret = value * u->factor;
		return 0;
	}
	return -EINVAL;
}

int
unit_duration(struct view v, uint64_t *ret)
{
	return read_unit(v, time_units, ret);
}

int
unit_bytes(struct view v, uint64_t *ret)
{
	return read_unit(v, byte_units, ret);
}

int
unit_cpu(struct view v, uint64_t *ret)
{
	return read_unit(v, cpu_units, ret);
}
