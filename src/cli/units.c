/* SPDX-License-Identifier: Apache-2.0 */
/* Times and sizes; see units.h. */
#include "cli/units.h"

#include "lib/base/num.h"

#include <errno.h>
#include <inttypes.h>

struct unit {
	const char *name;
	int64_t factor;
};

static const struct unit durations[] = {
	{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}};
static const struct unit sizes[] = {{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}};
static const struct unit shares[] = {{"m", 1}, {"", 1000}};
static const struct unit counts[] = {{"", 1}};

/* Digits and one of the units, as a product from min to max; what else it was, `must` says. */
static int
read_unit(struct view v, const struct unit *units, size_t n, int64_t min, int64_t max, int64_t *ret)
{
	size_t digits = 0;
	uint64_t number;

	while (digits < v.n && v.p[digits] >= '0' && v.p[digits] <= '9')
		digits++;
	if (num_u64(view_of(v.p, digits), INT64_MAX, &number) < 0)
		return -EINVAL;
	for (size_t i = 0; i < n; i++) {
		int64_t product;

		if (!view_is(view_skip(v, digits), units[i].name))
			continue;
		if (__builtin_mul_overflow((int64_t)number, units[i].factor, &product) ||
			product < min || product > max)
			return -ERANGE;
		*ret = product;
		return 0;
	}
	return -EINVAL;
}

int
units_duration(struct view v, int64_t *ret, struct err *err)
{
	const int64_t ten_years = INT64_C(3660) * 86400000;

	if (read_unit(v, durations, ARRAY_LEN(durations), 1, ten_years, ret) < 0)
		return err_set(err, -EINVAL,
			"must be a number with ms, s, m, h or d, such as 30s, up to 3660d");
	return 0;
}

int
units_bytes(struct view v, int64_t *ret, struct err *err)
{
	int64_t bytes;

	if (read_unit(v, sizes, ARRAY_LEN(sizes), 1 << 20, INT64_C(1) << 50, &bytes) < 0 ||
		bytes % (1 << 20) != 0)
		return err_set(err, -EINVAL,
			"must be a number with KiB, MiB or GiB, whole MiB, such as 512MiB");
	*ret = bytes;
	return 0;
}

int
units_cpu(struct view v, int64_t *ret, struct err *err)
{
	if (read_unit(v, shares, ARRAY_LEN(shares), 1, 1024000, ret) < 0)
		return err_set(err, -EINVAL,
			"must be thousandths of a processor such as 1500m, or whole ones such as "
			"2");
	return 0;
}

int
units_count(struct view v, int64_t *ret, struct err *err)
{
	if (read_unit(v, counts, ARRAY_LEN(counts), 1, 1000000000, ret) < 0)
		return err_set(err, -EINVAL, "must be a number from 1 to 1000000000");
	return 0;
}

void
units_bytes_text(int64_t bytes, char ret[static UNITS_TEXT])
{
	static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
	int64_t tenths = bytes;
	size_t i = 0;

	if (bytes < 0) {
		(void)snprintf(ret, UNITS_TEXT, "-");
		return;
	}
	if (bytes < 1024) {
		(void)snprintf(ret, UNITS_TEXT, "%" PRId64 " B", bytes);
		return;
	}
	for (; bytes >= 1024 && i + 1 < ARRAY_LEN(names); i++) {
		tenths = bytes % 1024 * 10 / 1024;
		bytes /= 1024;
	}
	if (tenths == 0)
		(void)snprintf(ret, UNITS_TEXT, "%" PRId64 " %s", bytes, names[i]);
	else
		(void)snprintf(
			ret, UNITS_TEXT, "%" PRId64 ".%" PRId64 " %s", bytes, tenths, names[i]);
}

void
units_duration_text(int64_t us, char ret[static UNITS_TEXT])
{
	int64_t s = us / 1000000;

	if (us < 0)
		(void)snprintf(ret, UNITS_TEXT, "-");
	else if (us < 10000)
		(void)snprintf(
			ret, UNITS_TEXT, "%" PRId64 ".%" PRId64 " ms", us / 1000, us % 1000 / 100);
	else if (us < 1000000)
		(void)snprintf(ret, UNITS_TEXT, "%" PRId64 " ms", us / 1000);
	else if (s < 60)
		(void)snprintf(
			ret, UNITS_TEXT, "%" PRId64 ".%" PRId64 " s", s, us % 1000000 / 100000);
	else if (s < 3600)
		(void)snprintf(ret, UNITS_TEXT, "%" PRId64 "m%02" PRId64 "s", s / 60, s % 60);
	else if (s < 86400)
		(void)snprintf(
			ret, UNITS_TEXT, "%" PRId64 "h%02" PRId64 "m", s / 3600, s % 3600 / 60);
	else
		(void)snprintf(
			ret, UNITS_TEXT, "%" PRId64 "d%02" PRId64 "h", s / 86400, s % 86400 / 3600);
}
