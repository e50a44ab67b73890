/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks; see clock.h. */
#include "lib/base/clock.h"

#include "lib/base/attr.h"

#include <stdio.h>
#include <time.h>

static uint64_t
clock_us(clockid_t which)
{
	struct timespec ts;

	must(clock_gettime(which, &ts) == 0);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

uint64_t
clock_mono_us(void)
{
	return clock_us(CLOCK_MONOTONIC);
}

uint64_t
clock_mono_ms(void)
{
	return clock_us(CLOCK_MONOTONIC) / 1000;
}

uint64_t
clock_real_ms(void)
{
	return clock_us(CLOCK_REALTIME) / 1000;
}

/*
 * Year, month and day of a day since 1970. Not gmtime_r(): it reads /etc/localtime once, which a confined process dies
 * of. Years begin in March here, so that the leap day is the last of one.
 */
static void
date_of(uint64_t days, unsigned *ret_year, unsigned *ret_month, unsigned *ret_day)
{
	uint64_t from_march = days + 719468; /* since 0000-03-01 */
	unsigned era = (unsigned)(from_march / 146097), in_era = (unsigned)(from_march % 146097);
	unsigned year = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
	unsigned in_year = in_era - (365 * year + year / 4 - year / 100);
	unsigned month = (5 * in_year + 2) / 153;

	*ret_day = in_year - (153 * month + 2) / 5 + 1;
	*ret_month = month < 10 ? month + 3 : month - 9;
	*ret_year = year + 400 * era + (*ret_month <= 2);
}

void
clock_text(uint64_t real_ms, char *ret)
{
	uint64_t s = real_ms / 1000;
	unsigned year, month, day, in_day = (unsigned)(s % 86400);

	date_of(s / 86400, &year, &month, &day);
	must(snprintf(ret, CLOCK_TEXT, "%04u-%02u-%02uT%02u:%02u:%02u.%03uZ", year, month, day,
		     in_day / 3600, in_day / 60 % 60, in_day % 60,
		     (unsigned)(real_ms % 1000)) == 24);
}
