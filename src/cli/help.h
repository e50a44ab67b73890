/* SPDX-License-Identifier: Apache-2.0 */
/* Help, made from verbs.def and options.def. */
#pragma once

#include "cli/args.h"

#include <stdio.h>

/* All verbs. */
void help_all(FILE *out);

/* One row with its options. */
void help_verb(const struct verb *v, FILE *out);

/* Each verb that begins with this word. */
void help_group(const char *verb, FILE *out);
