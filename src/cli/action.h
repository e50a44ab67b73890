/* SPDX-License-Identifier: Apache-2.0 */
/* What the verbs of actions share. */
#pragma once

#include "cli/verbs.h"
#include "lib/base/buf.h"

#include <jansson.h>

enum { ACTION_SCOPE_BYTES = 300 };

/* The scope that the first argument names: host (or all), tenant:NAME, or a task (task:NAME or NAME), which becomes its id. */
int action_scope(struct cli *cli, char ret[static ACTION_SCOPE_BYTES], struct err *err) MUST_CHECK;

/* The body of a signed settlement of this execution, by --as and --note. */
int settle_body(
	struct cli *cli, const char *execution, struct buf *body, struct err *err) MUST_CHECK;

/* A table of executions, an array. */
int executions_print(const json_t *list, struct err *err) MUST_CHECK;
