/* SPDX-License-Identifier: Apache-2.0 */
/* Looking at proposals and operations; see proposal.h. Nothing here changes anything. */
#include "engine/limits.h"
#include "engine/proposal.h"

#include <errno.h>

enum { DECISIONS_MAX = 41000 };

/* Decisions and signatures as EXECUTE has them, rejections too. */
static int
decisions(struct proposal *p, struct buf *out, struct err *err)
{
	auto_query struct query q = query_of(p->engine->store, Q_DECISION_LIST);
	int r;

	arg_id(&q, &p->id);
	for (r = query_next(&q, err); r > 0; r = query_next(&q, err)) {
		struct view decision;

		(void)col_view(&q), (void)col_view(&q), (void)col_u64(&q);
		decision = col_view(&q);
		approvals_put(out, decision, col_view(&q));
	}
	if (r == 0 && buf_check(out) < 0)
		return err_set(err, -ENOMEM, "no memory for the decisions of a proposal");
	return r;
}

static int
execution_of(struct proposal *p, struct id *ret, struct err *err)
{
	auto_query struct query q = query_of(p->engine->store, Q_PROPOSAL_EXECUTION);
	int r;

	arg_id(&q, &p->id);
	r = query_next(&q, err);
	if (r > 0)
		col_id(&q, ret);
	return r < 0 ? r : 0;
}

static int
answer(struct proposal *p, struct reply to, bool duplicate, size_t *ret_bytes, struct err *err)
{
	struct msg_proposal_row row = {.proposal = p->id,
		.task = p->task,
		.tenant = view_str(p->tenant),
		.operation = view_str(p->operation),
		.state = p->state,
		.denial = p->denial,
		.text = view_str(p->text),
		.duplicate = duplicate,
		.quorum = p->quorum,
		.created_ms = p->created_ms,
		.decide_by_ms = p->decide_by_ms,
		.dispatch_by_ms = p->dispatch_by_ms,
		.record = buf_view(&p->record),
		.note = buf_view(&p->note)};
	auto_buf struct buf b;
	int r;

	buf_init(&b, DECISIONS_MAX);
	memcpy(row.digest, p->digest, 32);
	r = decisions(p, &b, err);
	if (r == 0)
		r = execution_of(p, &row.execution, err);
	if (r < 0)
		return r;
	row.decisions = buf_view(&b);
	REPLY(p->engine, to, PROPOSAL_ROW, proposal_row, row);
	*ret_bytes = sizeof(row) + p->record.n + p->note.n + b.n;
	return 0;
}

int
proposal_answer(struct proposal *p, struct reply to, bool duplicate, struct err *err)
{
	size_t bytes;

	return answer(p, to, duplicate, &bytes, err);
}

int
on_proposal_get(
	struct engine *e, struct reply to, const struct msg_proposal_get *m, struct err *err)
{
	auto_proposal struct proposal p;
	struct principal who;
	int r;

	proposal_init(&p, e);
	r = caller_find(e, &m->caller, &who, err);
	if (r == 0)
		r = proposal_find(&p, &who, &m->proposal, err);
	return r == 0 ? proposal_answer(&p, to, false, err) : r;
}

/* ---- list ---- */

static struct query
page_query(struct engine *e, const struct principal *who, const struct id *task, bool open,
	uint64_t before, uint64_t limit)
{
	struct query q;

	if (!id_is_zero(task)) {
		q = query_of(e->store, open ? Q_PROPOSAL_PENDING_TASK : Q_PROPOSAL_PAGE_TASK);
		arg_id(&q, task);
	} else if (who->tenant[0] != '\0') {
		q = query_of(e->store, open ? Q_PROPOSAL_PENDING : Q_PROPOSAL_PAGE);
		arg_text(&q, who->tenant);
		arg_text(&q, who->template);
	} else {
		q = query_of(e->store, open ? Q_PROPOSAL_PENDING_ALL : Q_PROPOSAL_PAGE_ALL);
	}
	arg_u64(&q, before);
	arg_u64(&q, limit);
	return q;
}

/* Where the page begins and whose it is. */
static int
page_of(struct engine *e, const struct principal *who, const struct msg_proposal_list *m,
	struct id *ret_task, uint64_t *ret_before, struct err *err)
{
	auto_proposal struct proposal after;
	auto_task struct task t;
	int r = 0;

	task_init(&t, e);
	proposal_init(&after, e);
	if (m->task.n != 0) {
		r = task_find_name(&t, who, m->task, err);
		*ret_task = t.id;
	}
	if (r == 0 && !id_is_zero(&m->after)) {
		r = proposal_find(&after, who, &m->after, err);
		*ret_before = after.seq;
	}
	return r;
}

int
on_proposal_list(
	struct engine *e, struct reply to, const struct msg_proposal_list *m, struct err *err)
{
	uint64_t limit = m->limit == 0 || m->limit > LIMIT_PAGE_ROWS ? LIMIT_PAGE_ROWS : m->limit,
		 before = INT64_MAX, n = 0;
	struct id task = {0};
	size_t bytes = 0, more = 0;
	auto_proposal struct proposal p;
	struct principal who;
	int r;

	proposal_init(&p, e);
	r = caller_find(e, &m->caller, &who, err);
	if (r == 0)
		r = page_of(e, &who, m, &task, &before, err);
	if (r < 0)
		return r;
	auto_query struct query q = page_query(e, &who, &task, m->open, before, limit + 1);
	for (r = query_next(&q, err); r > 0 && n < limit && bytes < LIMIT_PAGE_BYTES;
		r = query_next(&q, err), n++) {
		struct id id;

		col_id(&q, &id);
		r = proposal_load(&p, &id, err);
		if (r == 0)
			r = answer(&p, to, false, &more, err);
		if (r < 0)
			return r;
		bytes += more;
	}
	if (r >= 0)
		REPLY(e, to, END, end, {.more = r > 0});
	return r < 0 ? r : 0;
}

/* ---- operations ---- */

static void
operation_answer(struct engine *e, struct reply to, const struct operation *op)
{
	struct msg_operation_row row = {.name = op->name,
		.version = op->version,
		.effect = op->effect,
		.document = op->document};

	memcpy(row.operation, op->digest, 32);
	memcpy(row.catalogue, e->catalogue.digest, 32);
	REPLY(e, to, OPERATION_ROW, operation_row, row);
}

int
on_operation_list(
	struct engine *e, struct reply to, const struct msg_operation_list *m, struct err *err)
{
	struct principal who;
	int r = caller_find(e, &m->caller, &who, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < e->catalogue.n; i++)
		operation_answer(e, to, &e->catalogue.op[i]);
	REPLY(e, to, END, end, {0});
	return 0;
}

int
on_operation_get(
	struct engine *e, struct reply to, const struct msg_operation_get *m, struct err *err)
{
	const struct operation *op;
	struct principal who;
	int r = caller_find(e, &m->caller, &who, err);

	if (r < 0)
		return r;
	op = catalogue_find(&e->catalogue, m->name);
	if (op == NULL)
		return REFUSE(err, NOT_FOUND, "there is no such operation");
	operation_answer(e, to, op);
	return 0;
}
