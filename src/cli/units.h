/* SPDX-License-Identifier: Apache-2.0 */
/* Times, sizes and shares as people write them, and back for tables. Strict: nothing is guessed. */
#pragma once

#include "lib/base/err.h"
#include "lib/base/view.h"

/* Milliseconds, from "500ms", "30s", "10m", "2h", "7d"; 1 ms to 10 years. */
int units_duration(struct view v, int64_t *ret, struct err *err) MUST_CHECK;

/* Bytes, from "512MiB", "2GiB", "4096KiB"; whole MiB, 1 MiB to 1 PiB. */
int units_bytes(struct view v, int64_t *ret, struct err *err) MUST_CHECK;

/* Thousandths of a processor, from "1500m" or "2"; up to 1024 processors. */
int units_cpu(struct view v, int64_t *ret, struct err *err) MUST_CHECK;

/* From 1 to 10^9. */
int units_count(struct view v, int64_t *ret, struct err *err) MUST_CHECK;

enum { UNITS_TEXT = 32 };

/* "512 MiB", "1.5 GiB", "17 B" */
void units_bytes_text(int64_t bytes, char ret[static UNITS_TEXT]);

/* "0.4 ms", "12 ms", "3.2 s", "4m10s", "2h05m", "3d04h"; negative: "-" */
void units_duration_text(int64_t us, char ret[static UNITS_TEXT]);
