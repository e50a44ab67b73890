/* SPDX-License-Identifier: Apache-2.0 */
/* Executions: what became of what was approved, and how one whose end is not known gets one. */
#include "actions.h"
#include "body.h"
#include "route.h"

static void
on_list(void *owner, const struct answer *answer)
{
	struct request *req = owner;

	if (answer->type == MSG_EXECUTION_ROW)
		row_execution(&req->out, answer->m);
	else if (!request_refused(req, answer))
		row_page_end(req, ((const struct msg_end *)answer->m)->more);
}

int
on_execution_list(struct request *req, struct err *err)
{
	struct msg_execution_list m = {.caller = req->caller,
		.task = request_param(req, "task"),
		.open = request_flag(req, "open")};

	if (m.task.n > TASK_NAME_BYTES_MAX)
		return refuse(err, NOT_FOUND, "no such task: its name is too long");
	if (action_page(req, ID_EXECUTION, &m.after, &m.limit, err) < 0)
		return err->code;
	row_page_begin(req);
	return REQUEST_ASK(req, on_list, err, EXECUTION_LIST, execution_list, m);
}

static void
on_row(void *owner, const struct answer *answer)
{
	struct request *req = owner;

	if (request_refused(req, answer))
		return;
	row_execution(request_out(req), answer->m);
	request_json(req, 200);
}

int
on_execution_get(struct request *req, struct err *err)
{
	struct msg_execution_get m = {.caller = req->caller};

	if (request_id(req, 0, ID_EXECUTION, &m.execution, err) < 0)
		return err->code;
	return REQUEST_ASK(req, on_row, err, EXECUTION_GET, execution_get, m);
}

int
on_reconcile(struct request *req, struct err *err)
{
	const struct body_reconcile *b = req->fields;
	bool settles = b->settlement.state == FIELD_SET;
	struct msg_reconcile m = {.caller = req->caller, .request_id = view_str(req->id)};
	auto_buf struct buf settlement = {0}, signature = {0};

	if (request_id(req, 0, ID_EXECUTION, &m.execution, err) < 0 ||
		request_unkeyed(req, "it may be asked as often as needed without it", err) < 0)
		return err->code;
	if (settles != (b->signature.state == FIELD_SET))
		return refuse(err, BAD_REQUEST,
			"settlement and signature belong together; {} only looks it up");
	if (settles && (signed_bytes(&b->settlement, "settlement", &settlement, err) < 0 ||
			       signed_bytes(&b->signature, "signature", &signature, err) < 0))
		return err->code;
	m.settlement = buf_view(&settlement);
	m.signature = buf_view(&signature);
	return REQUEST_ASK(req, on_row, err, RECONCILE, reconcile, m);
}
