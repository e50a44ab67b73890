/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines; see log.h. */
#include "lib/base/log.h"

#include "lib/base/clock.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The one variable of the library: set once, before the loop, by main(). */
static const char *process_name = "demilune";

void
log_name(const char *name)
{
	process_name = name;
}

static void PRINTF(1, 0) log_va(const char *fmt, va_list ap)
{
	char line[1024], when[CLOCK_TEXT];
	size_t n, start;

	clock_text(clock_real_ms(), when);
	(void)snprintf(line, sizeof(line), "%s %s: ", when, process_name);
	start = strlen(line);
	(void)vsnprintf(line + start, sizeof(line) - start - 1, fmt, ap);
	n = strlen(line);
	for (size_t i = start; i < n; i++)
		if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
			line[i] = '?';
	line[n++] = '\n';
	/* One write per line, so that lines of several processes do not mix. */
	if (write(STDERR_FILENO, line, n) < 0)
		return; /* there is nowhere left to say so */
}

void
log_line(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_va(fmt, ap);
	va_end(ap);
}

void
log_exit(int status, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_va(fmt, ap);
	va_end(ap);
	_exit(status);
}
