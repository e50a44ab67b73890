/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of the daemon that come in pages and can be narrowed by one --label: as a table or, with --json, as an array. */
#pragma once

#include "cli/table.h"
#include "cli/verbs.h"
#include "lib/json/parse.h"

struct list {
	const char *path;                  /* with its query, if the verb has no --label */
	const struct table_column *column; /* borrowed */
	size_t columns;
	void (*cells)(struct table *t, const json_t *item); /* one row */
};

int list_show(struct cli *cli, const struct list *l, struct err *err) MUST_CHECK;
