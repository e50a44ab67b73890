/* SPDX-License-Identifier: Apache-2.0 */
/* What the verbs of actions share. */
#pragma once

#include "lib/base/err.h"

#include <jansson.h>

/* A table of executions, an array. */
int executions_print(const json_t *list, struct err *err) MUST_CHECK;
