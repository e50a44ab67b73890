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

void
clock_text(uint64_t real_ms, char *ret)
{
	time_t s = (time_t)(real_ms / 1000);
	struct tm tm;

	must(gmtime_r(&s, &tm) != NULL);
	must(strftime(ret, CLOCK_TEXT, "%Y-%m-%dT%H:%M:%S", &tm) == 19);
	(void)snprintf(ret + 19, CLOCK_TEXT - 19, ".%03uZ", (unsigned)(real_ms % 1000));
}
