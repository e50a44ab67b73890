/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log lines of a process on standard error: "2026-11-29T16:13:04.123Z engine: text".
 * Only code of a process calls this, once, where it decides; the library never does.
 * Text is made printable. Secrets have no way in: see broker/secret.h.
 */
#pragma once

#include "lib/base/attr.h"

/* `name` must outlive the process (a literal). */
void log_name(const char *name);
void log_line(const char *fmt, ...) PRINTF(1, 2);

/* Logs and ends the process with `status`; for start-up and for a lost peer. */
NORETURN void log_exit(int status, const char *fmt, ...) PRINTF(2, 3);
