/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a process whose own invariant broke. */
#include "lib/base/attr.h"

#include <stdio.h>

void
must_failed(const char *file, int line, const char *what)
{
	(void)fprintf(stderr, "bug: %s:%d: must(%s)\n", file, line, what);
	abort();
}
