/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks, and UTC time as text (RFC 3339 with milliseconds). */
#pragma once

#include <stdint.h>

/* CLOCK_MONOTONIC; for deadlines and durations. */
uint64_t clock_mono_ms(void);
uint64_t clock_mono_us(void);

/* CLOCK_REALTIME in milliseconds since 1970; for records. */
uint64_t clock_real_ms(void);

enum { CLOCK_TEXT = 32 };

/* The last millisecond of the year 9999, beyond which there is no text. */
#define CLOCK_MS_MAX UINT64_C(253402300799999)

/* "2026-11-29T16:13:04.123Z" into ret[CLOCK_TEXT]; at most CLOCK_MS_MAX. */
void clock_text(uint64_t real_ms, char *ret);
