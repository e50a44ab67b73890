/* SPDX-License-Identifier: Apache-2.0 */
/* Lists; see list.h. */
#include "cli/list.h"

#include "cli/answer.h"

#include <errno.h>

enum { TARGET_BYTES = 16384 };

/* The path of a list with the one --label, if there is one, as its query. */
static int
list_target(const struct args *a, const char *path, struct buf *ret, struct err *err)
{
	size_t labels = 0;

	for (size_t i = 0; i < a->n_given; i++)
		labels += a->given[i].option == OPT_LABEL;
	if (labels > 1)
		return err_set(err, -EINVAL, "a list takes one --label");
	buf_add_str(ret, path);
	if (labels == 1) {
		buf_add_str(ret, "?label=");
		target_add(ret, args_text(a, OPT_LABEL));
	}
	return buf_check(ret) < 0 ? err_set(err, -E2BIG, "the label is too long") : 0;
}

int
list_show(struct cli *cli, const struct list *l, struct err *err)
{
	const struct args *a = &cli->args;
	json_t *items auto_json = NULL;
	auto_table struct table t;
	auto_buf struct buf target;
	int r;

	buf_init(&target, TARGET_BYTES);
	table_init(&t, l->column, l->columns);
	r = list_target(a, l->path, &target, err);
	if (r == 0)
		r = answer_pages(&cli->client, buf_view(&target), view_has(buf_view(&target), '?'),
			"id", &items, err);
	if (r < 0)
		return r;
	if (args_has(a, OPT_JSON))
		return answer_print(items, err);
	for (size_t i = 0; i < json_array_size(items); i++)
		l->cells(&t, json_array_get(items, i));
	r = table_print(&t, stdout, err);
	return r < 0 ? r : answer_done(err);
}
