/* SPDX-License-Identifier: Apache-2.0 */
/* Executions as rows and steps; see execution.h. */
#include "engine/execution.h"

#include "engine/task.h"

#include <errno.h>

void
execution_init(struct execution *x, struct engine *e)
{
	*x = (struct execution){.engine = e};
	buf_init(&x->receipt, EXECUTION_RECEIPT_MAX);
}

void
execution_done(struct execution *x)
{
	buf_done(&x->receipt);
}

static int
read_row(struct execution *x, struct query *q, struct err *err)
{
	struct view state, settled, denial;

	x->seq = col_u64(q);
	col_id(q, &x->id);
	col_id(q, &x->proposal);
	col_id(q, &x->task);
	col_text(q, x->tenant, sizeof(x->tenant));
	col_text(q, x->operation, sizeof(x->operation));
	col_text(q, x->key, sizeof(x->key));
	col_text(q, x->provider_account, sizeof(x->provider_account));
	state = col_view(q);
	settled = col_view(q);
	denial = col_view(q);
	if (execution_state_parse(state, &x->state) < 0 ||
		attempt_parse(settled, &x->settled) < 0 || denial_parse(denial, &x->denial) < 0)
		return err_set(err, -EUCLEAN, "an execution without a state");
	x->incident = col_u64(q) != 0;
	x->status = (uint16_t)col_u64(q);
	x->sends = (uint32_t)col_u64(q);
	x->amount = col_i64(q);
	col_text(q, x->currency, sizeof(x->currency));
	x->day = col_u64(q);
	x->started_ms = col_u64(q);
	x->spent_ms = col_u64(q);
	x->ended_ms = col_u64(q);
	x->first_byte_us = (uint32_t)col_u64(q);
	col_digest(q, x->response);
	col_text(q, x->text, sizeof(x->text));
	buf_clear(&x->receipt);
	buf_add_view(&x->receipt, col_view(q));
	x->lookups = (uint32_t)col_u64(q);
	x->lookup_ms = col_u64(q);
	x->lookup_until_ms = col_u64(q);
	return buf_check(&x->receipt) < 0 ? err_set(err, -ENOMEM, "no memory for an execution") : 0;
}

int
execution_load(struct execution *x, const struct id *id, struct err *err)
{
	auto_query struct query q = query_of(x->engine->store, Q_EXECUTION_GET);
	int r;

	arg_id(&q, id);
	r = query_one(&q, err);
	return r < 0 ? r : read_row(x, &q, err);
}

int
execution_load_of(struct execution *x, const struct id *proposal, struct err *err)
{
	struct id id;
	int r;

	{
		auto_query struct query q = query_of(x->engine->store, Q_PROPOSAL_EXECUTION);

		arg_id(&q, proposal);
		r = query_one(&q, err);
		if (r < 0)
			return r;
		col_id(&q, &id);
	}
	return execution_load(x, &id, err);
}

int
execution_find(struct execution *x, const struct principal *p, const struct id *id, struct err *err)
{
	auto_task struct task t;
	int r = execution_load(x, id, err);

	if (r == -ENOENT)
		return REFUSE(err, NOT_FOUND, "no such execution");
	if (r < 0)
		return r;
	task_init(&t, x->engine);
	r = task_load(&t, &x->task, err);
	if (r == 0 && !caller_sees(p, t.tenant, t.template))
		return REFUSE(err, NOT_FOUND, "no such execution");
	return r;
}

int
execution_insert(struct execution *x, struct err *err)
{
	auto_query struct query q = query_of(x->engine->store, Q_EXECUTION_INSERT);

	arg_id(&q, &x->id);
	arg_id(&q, &x->proposal);
	arg_id(&q, &x->task);
	arg_text(&q, x->tenant);
	arg_text(&q, x->operation);
	arg_text(&q, x->key);
	arg_text(&q, x->provider_account);
	arg_text(&q, execution_state_text(x->state));
	arg_i64(&q, x->amount);
	arg_text(&q, x->currency);
	arg_u64(&q, x->day);
	arg_u64(&q, x->started_ms);
	arg_u64(&q, x->lookup_until_ms);
	return query_run(&q, err);
}

int
execution_step(struct execution *x, enum execution_event event, struct err *err)
{
	auto_query struct query q = query_of(x->engine->store, Q_EXECUTION_RESULT);
	enum execution_state was = x->state;
	int r = execution_next(was, event, &x->state, err);

	if (r < 0)
		return r;
	arg_text(&q, execution_state_text(x->state));
	arg_text(&q, attempt_text(x->settled));
	arg_text(&q, denial_text(x->denial));
	arg_u64(&q, x->incident);
	arg_u64(&q, x->status);
	arg_u64(&q, x->sends);
	arg_u64(&q, x->spent_ms);
	arg_u64(&q, x->ended_ms);
	arg_u64(&q, x->first_byte_us);
	arg_digest(&q, x->response);
	arg_text(&q, x->text);
	arg_blob(&q, buf_view(&x->receipt));
	arg_u64(&q, x->lookups);
	arg_u64(&q, x->lookup_ms);
	arg_id(&q, &x->id);
	arg_text(&q, execution_state_text(was));
	r = query_next(&q, err);
	if (r == 0)
		return err_set(err, -EALREADY, "the execution is not %s any more",
			execution_state_text(was));
	return r < 0 ? r : 0;
}

void
execution_answer(struct execution *x, struct reply to)
{
	struct msg_execution_row row = {.execution = x->id,
		.proposal = x->proposal,
		.task = x->task,
		.tenant = view_str(x->tenant),
		.operation = view_str(x->operation),
		.state = x->state,
		.settled = x->settled,
		.denial = x->denial,
		.incident = x->incident,
		.status = x->status,
		.sends = x->sends,
		.key = view_str(x->key),
		.provider_account = view_str(x->provider_account),
		.started_ms = x->started_ms,
		.ended_ms = x->ended_ms,
		.first_byte_us = x->first_byte_us,
		.text = view_str(x->text),
		.receipt = buf_view(&x->receipt)};

	memcpy(row.response, x->response, 32);
	REPLY(x->engine, to, EXECUTION_ROW, execution_row, row);
}

int
execution_audit(struct execution *x, const char *event, const struct principal *who,
	struct view request_id, void (*data)(struct canon_writer *, const void *), const void *arg,
	struct err *err)
{
	const struct audit_event ev = {.event = event,
		.tenant = x->tenant,
		.task = &x->task,
		.who = who,
		.request_id = request_id,
		.data = data,
		.arg = arg};

	return audit_append(x->engine, &ev, err);
}
