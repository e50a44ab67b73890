/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks as rows and steps; see task.h. The requests stand in task_serve.c. */
#include "engine/task.h"

#include "engine/labels.h"
#include "lib/base/clock.h"

#include <errno.h>

void
task_init(struct task *t, struct engine *e)
{
	*t = (struct task){.engine = e};
	buf_init(&t->labels, 16384);
}

void
task_done(struct task *t)
{
	buf_done(&t->labels);
}

static int
read_row(struct task *t, struct query *q, struct err *err)
{
	struct view state;

	t->seq = col_u64(q);
	col_id(q, &t->id);
	col_text(q, t->tenant, sizeof(t->tenant));
	col_text(q, t->template, sizeof(t->template));
	state = col_view(q);
	if (task_state_parse(state, &t->state) < 0)
		return err_set(err, -EUCLEAN, "a task without a state");
	t->implicit = col_u64(q) != 0;
	t->created_ms = col_u64(q);
	t->closed_ms = col_u64(q);
	col_text(q, t->owner, sizeof(t->owner));
	t->limits.memory_bytes = col_u64(q);
	t->limits.disk_bytes = col_u64(q);
	t->limits.disk_inodes = (uint32_t)col_u64(q);
	t->limits.pids = (uint32_t)col_u64(q);
	t->limits.cpu_milli = (uint32_t)col_u64(q);
	t->limits.open_files = (uint32_t)col_u64(q);
	t->ttl_ms = col_u64(q);
	t->idle_ms = col_u64(q);
	buf_clear(&t->labels);
	buf_add_view(&t->labels, col_view(q));
	col_text(q, t->policy, sizeof(t->policy));
	return buf_check(&t->labels) < 0 ? err_set(err, -ENOMEM, "no memory for a task") : 0;
}

int
task_load(struct task *t, const struct id *id, struct err *err)
{
	auto_query struct query q = query_of(t->engine->store, Q_TASK_GET);
	int r;

	arg_id(&q, id);
	r = query_one(&q, err);
	return r < 0 ? r : read_row(t, &q, err);
}

int
task_find(struct task *t, const struct principal *p, const struct id *id, struct err *err)
{
	int r = task_load(t, id, err);

	if (r < 0 && r != -ENOENT)
		return r;
	if (r == -ENOENT || !caller_sees(p, t->tenant, t->template))
		return REFUSE(err, NOT_FOUND, "no such task");
	return 0;
}

/* Another tenant's ticket is not found: the query looks in the caller's tenant only. */
static int
find_ticket(struct engine *e, const struct principal *p, struct view ticket, struct id *ret,
	struct err *err)
{
	auto_query struct query q = query_of(e->store, Q_TASK_BY_TICKET);
	int r;

	arg_view(&q, ticket);
	arg_text(&q, p->tenant);
	arg_text(&q, p->template);
	r = query_one(&q, err);
	if (r == -ENOENT)
		return REFUSE(err, NOT_FOUND, "no such task or ticket");
	if (r == 0)
		col_id(&q, ret);
	return r;
}

int
task_find_name(struct task *t, const struct principal *p, struct view name, struct err *err)
{
	struct id id;

	if (id_parse(name, ID_TASK, &id) < 0) {
		int r = find_ticket(t->engine, p, name, &id, err);

		if (r < 0)
			return r;
	}
	return task_find(t, p, &id, err);
}

static int
insert_row(struct task *t, struct err *err)
{
	auto_query struct query q = query_of(t->engine->store, Q_TASK_INSERT);

	arg_id(&q, &t->id);
	arg_text(&q, t->tenant);
	arg_text(&q, t->template);
	arg_u64(&q, t->implicit);
	arg_u64(&q, t->created_ms);
	arg_text(&q, t->owner);
	arg_u64(&q, t->limits.memory_bytes);
	arg_u64(&q, t->limits.disk_bytes);
	arg_u64(&q, t->limits.disk_inodes);
	arg_u64(&q, t->limits.pids);
	arg_u64(&q, t->limits.cpu_milli);
	arg_u64(&q, t->limits.open_files);
	arg_u64(&q, t->ttl_ms);
	arg_u64(&q, t->idle_ms);
	arg_blob(&q, buf_view(&t->labels));
	arg_text(&q, t->policy);
	return query_run(&q, err);
}

static int
insert_labels(struct task *t, struct err *err)
{
	struct view left = buf_view(&t->labels), key, value;
	int r = 0;

	while (r == 0 && labels_next(&left, &key, &value)) {
		auto_query struct query q = query_of(t->engine->store, Q_LABEL_INSERT);

		arg_u64(&q, t->seq);
		arg_view(&q, key);
		arg_view(&q, value);
		r = query_run(&q, err);
	}
	return r;
}

int
task_insert(struct task *t, struct err *err)
{
	int r;

	id_new(&t->id);
	t->state = TASK_STATE_OPEN;
	t->created_ms = clock_real_ms();
	{
		auto_query struct query q = query_of(t->engine->store, Q_CHAIN_INSERT);

		arg_id(&q, &t->id);
		r = query_run(&q, err);
	}
	if (r == 0)
		r = insert_row(t, err);
	if (r < 0)
		return r;
	t->seq = store_last_row(t->engine->store);
	return insert_labels(t, err);
}

int
task_step(struct task *t, enum task_event event, struct err *err)
{
	auto_query struct query q = query_of(t->engine->store, Q_TASK_STATE);
	int r = task_next(t->state, event, &t->state, err);

	if (r < 0)
		return r;
	if (event == TASK_CLOSE && t->closed_ms == 0)
		t->closed_ms = clock_real_ms();
	arg_text(&q, task_state_text(t->state));
	arg_u64(&q, t->closed_ms);
	arg_id(&q, &t->id);
	return query_run(&q, err);
}

int
task_check_open(const struct task *t, struct err *err)
{
	switch (t->state) {
	case TASK_STATE_OPEN:
		return 0;
	case TASK_STATE_CLOSED:
		return REFUSE(err, CONFLICT, "the task is closed; make another one");
	case TASK_STATE_MARKED:
		return REFUSE(err, CONFLICT,
			"something of an earlier sandbox of this task still stands on the host; "
			"its removal is retried");
	case TASK_STATE_MAX:
		break;
	}
	must(false);
}
