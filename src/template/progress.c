/* SPDX-License-Identifier: Apache-2.0 */
/* Progress lines; build.c, import.c and child.c call this, nobody reads it back. */
#include "template/progress.h"

#include <stdarg.h>
#include <stdio.h>

void
progress(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vprintf(fmt, ap);
	va_end(ap);
	(void)putchar('\n');
	(void)fflush(stdout);
}
