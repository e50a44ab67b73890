/* SPDX-License-Identifier: Apache-2.0 */
/* Looking at executions; see execution.h. */
#include "engine/execution.h"

#include "engine/limits.h"
#include "engine/task.h"

#include <errno.h>

int
on_execution_get(
	struct engine *e, struct reply to, const struct msg_execution_get *m, struct err *err)
{
	auto_execution struct execution x;
	struct principal p;
	int r;

	execution_init(&x, e);
	r = caller_find(e, &m->caller, &p, err);
	if (r == 0)
		r = execution_find(&x, &p, &m->execution, err);
	if (r == 0)
		execution_answer(&x, to);
	return r;
}

/* ---- pages ---- */

enum { PAGE_MAX = 200 };

struct page {
	struct engine *engine;
	const struct principal *who;
	struct id task; /* zero = all */
	bool open;
	uint64_t before, limit;
};

static struct query
page_query(const struct page *g)
{
	struct store *store = g->engine->store;
	struct query q;

	if (g->open) {
		q = query_of(store, Q_EXECUTION_PAGE_OPEN);
		arg_text(&q, g->who->tenant);
		arg_text(&q, g->who->template);
		arg_id(&q, &g->task);
	} else if (!id_is_zero(&g->task)) {
		q = query_of(store, Q_EXECUTION_PAGE_TASK);
		arg_id(&q, &g->task);
	} else if (g->who->tenant[0] != '\0') {
		q = query_of(store, Q_EXECUTION_PAGE);
		arg_text(&q, g->who->tenant);
		arg_text(&q, g->who->template);
	} else {
		q = query_of(store, Q_EXECUTION_PAGE_ALL);
	}
	arg_u64(&q, g->before);
	/* One more than asked for tells whether more follow. */
	arg_u64(&q, g->limit + 1);
	return q;
}

/* The ids first: the rows are read with another statement. */
static int
read_ids(const struct page *g, struct id *ret, struct err *err)
{
	auto_query struct query q = page_query(g);
	int r, n = 0;

	for (r = query_next(&q, err); r > 0; r = query_next(&q, err))
		col_id(&q, &ret[n++]);
	return r < 0 ? r : n;
}

static int
send_page(const struct page *g, struct reply to, struct err *err)
{
	struct id ids[PAGE_MAX + 1];
	auto_execution struct execution x;
	size_t bytes = 0;
	int n, i, r = 0;

	execution_init(&x, g->engine);
	n = read_ids(g, ids, err);
	for (i = 0; r == 0 && i < n && i < (int)g->limit && bytes < LIMIT_PAGE_BYTES; i++) {
		r = execution_load(&x, &ids[i], err);
		if (r < 0)
			return r;
		bytes += sizeof(struct msg_execution_row) + x.receipt.n;
		execution_answer(&x, to);
	}
	if (n >= 0)
		REPLY(g->engine, to, END, end, {.more = i < n});
	return n < 0 ? n : 0;
}

/* A page begins only behind what its reader may see. */
static int
seq_of(struct page *g, const struct id *after, struct err *err)
{
	auto_execution struct execution x;
	int r = 0;

	g->before = INT64_MAX;
	execution_init(&x, g->engine);
	if (!id_is_zero(after)) {
		r = execution_find(&x, g->who, after, err);
		g->before = x.seq;
	}
	return r;
}

int
on_execution_list(
	struct engine *e, struct reply to, const struct msg_execution_list *m, struct err *err)
{
	auto_task struct task t;
	struct principal p;
	struct page g = {.engine = e,
		.who = &p,
		.open = m->open,
		.limit = m->limit == 0 || m->limit > PAGE_MAX ? PAGE_MAX : m->limit};
	int r;

	task_init(&t, e);
	r = caller_find(e, &m->caller, &p, err);
	if (r == 0 && m->task.n != 0)
		r = task_find_name(&t, &p, m->task, err);
	if (r == 0)
		r = seq_of(&g, &m->after, err);
	g.task = t.id;
	return r == 0 ? send_page(&g, to, err) : r;
}
