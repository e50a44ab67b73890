/* SPDX-License-Identifier: Apache-2.0 */
/* The catalogue, what tasks may do with it, and what they used of their budgets. */
#include "actions.h"
#include "body.h"
#include "lib/json/canonical.h"
#include "route.h"

enum { WHERE_BYTES_MAX = 2048 };

static void
on_operations(void *owner, const struct answer *answer)
{
	struct request *req = owner;

	if (answer->type == MSG_OPERATION_ROW)
		row_operation(&req->out, answer->m);
	else if (!request_refused(req, answer))
		row_page_end(req, ((const struct msg_end *)answer->m)->more);
}

int
on_operation_list(struct request *req, struct err *err)
{
	row_page_begin(req);
	return REQUEST_ASK(
		req, on_operations, err, OPERATION_LIST, operation_list, {.caller = req->caller});
}

static void
on_operation(void *owner, const struct answer *answer)
{
	struct request *req = owner;

	if (request_refused(req, answer))
		return;
	row_operation(request_out(req), answer->m);
	request_json(req, 200);
}

int
on_operation_get(struct request *req, struct err *err)
{
	if (!operation_name_ok(req->arg[0]))
		return refuse(err, NOT_FOUND, "no such operation: it is not " OPERATION_NAME_SAYS);
	return REQUEST_ASK(req, on_operation, err, OPERATION_GET, operation_get,
		{.caller = req->caller, .name = req->arg[0]});
}

static void
on_issued(void *owner, const struct answer *answer)
{
	struct request *req = owner;

	if (request_refused(req, answer))
		return;
	row_grant(request_out(req), answer->m);
	request_json(req, 201);
}

int
on_grant_issue(struct request *req, struct err *err)
{
	const struct body_grant_issue *b = req->fields;
	struct msg_grant_issue m = {.caller = req->caller,
		.task = b->task.v,
		.operation = b->operation.v,
		.uses = (uint32_t)b->uses.v,
		.ttl_ms = (uint64_t)b->ttl_seconds_ms.v,
		.request_id = view_str(req->id)};
	auto_buf struct buf where;

	buf_init(&where, WHERE_BYTES_MAX);
	body_list(&b->where, &where);
	if (buf_check(&where) < 0)
		return refuse(err, TOO_LARGE, "where may have at most %d bytes", WHERE_BYTES_MAX);
	if (!operation_name_ok(m.operation))
		return refuse(err, BAD_REQUEST, "operation must be " OPERATION_NAME_SAYS);
	if (b->uses.state != FIELD_SET || b->ttl_seconds_ms.state != FIELD_SET)
		return refuse(err, BAD_REQUEST,
			"uses and ttl_seconds are needed: nothing is granted without an end");
	m.where = buf_view(&where);
	if (request_unkeyed(req, "each issue is a grant of its own; list them first", err) < 0)
		return err->code;
	return REQUEST_ASK(req, on_issued, err, GRANT_ISSUE, grant_issue, m);
}

static void
on_grants(void *owner, const struct answer *answer)
{
	struct request *req = owner;

	if (answer->type == MSG_GRANT_ROW)
		row_grant(&req->out, answer->m);
	else if (!request_refused(req, answer))
		row_page_end(req, ((const struct msg_end *)answer->m)->more);
}

int
on_grant_list(struct request *req, struct err *err)
{
	struct msg_grant_list m = {.caller = req->caller, .task = request_param(req, "task")};

	if (m.task.n == 0)
		return refuse(err, BAD_REQUEST, "?task= is needed: grants belong to a task");
	if (m.task.n > TASK_NAME_BYTES_MAX)
		return refuse(err, NOT_FOUND, "no such task: its name is too long");
	if (action_page(req, ID_GRANT, &m.after, &m.limit, err) < 0)
		return err->code;
	row_page_begin(req);
	return REQUEST_ASK(req, on_grants, err, GRANT_LIST, grant_list, m);
}

static void
on_revoked(void *owner, const struct answer *answer)
{
	struct request *req = owner;

	if (!request_refused(req, answer))
		request_nothing(req);
}

int
on_grant_revoke(struct request *req, struct err *err)
{
	struct id grant;

	if (request_id(req, 0, ID_GRANT, &grant, err) < 0)
		return err->code;
	return REQUEST_ASK(req, on_revoked, err, AUTHORITY_REVOKE, authority_revoke,
		{.caller = req->caller,
			.kind = AUTHORITY_GRANT,
			.name = req->arg[0],
			.request_id = view_str(req->id)});
}

static void
on_budgets(void *owner, const struct answer *answer)
{
	struct request *req = owner;

	if (answer->type == MSG_BUDGET_ROW)
		row_budget(&req->out, answer->m);
	else if (!request_refused(req, answer))
		row_page_end(req, ((const struct msg_end *)answer->m)->more);
}

int
on_budget_list(struct request *req, struct err *err)
{
	struct msg_budget_list m = {.caller = req->caller};

	if (action_task(req, &m.task, err) < 0)
		return err->code;
	row_page_begin(req);
	return REQUEST_ASK(req, on_budgets, err, BUDGET_LIST, budget_list, m);
}
