/* SPDX-License-Identifier: Apache-2.0 */
/* The command line. */
#pragma once

#include "lib/base/err.h"

#include <stdbool.h>

struct options {
	const char *config, *libexec; /* borrowed from argv; NULL: not given */
	bool help;
};

int options_read(int argc, char **argv, struct options *ret, struct err *err) MUST_CHECK;
void options_print(void);
