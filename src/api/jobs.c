/* SPDX-License-Identifier: Apache-2.0 */
/* The record of a sandbox's jobs, and signals to them. Their output is in stream.c and exec.c. */
#include "body.h"
#include "route.h"
#include "rows.h"

static void
on_list(void *owner, const struct answer *answer)
{
	struct request *req = owner;

	if (answer->type == MSG_JOB_ROW)
		row_job(&req->out, answer->m);
	else if (!request_refused(req, answer))
		row_page_end(req, ((const struct msg_end *)answer->m)->more);
}

int
on_job_list(struct request *req, struct err *err)
{
	struct msg_job_list m = {.caller = req->caller};
	uint64_t limit;

	if (request_id(req, 0, ID_SANDBOX, &m.sandbox, err) < 0 ||
		row_after(req, ID_JOB, &m.after, err) < 0 ||
		request_number(req, "limit", LIMIT_PAGE, LIMIT_PAGE, &limit, err) < 0)
		return err->code;
	m.limit = (uint16_t)limit;
	row_page_begin(req);
	return REQUEST_ASK(req, on_list, err, JOB_LIST, job_list, m);
}

static void
on_got(void *owner, const struct answer *answer)
{
	struct request *req = owner;

	if (request_refused(req, answer))
		return;
	row_job(request_out(req), answer->m);
	request_json(req, 200);
}

int
on_job_get(struct request *req, struct err *err)
{
	struct msg_job_get m = {.caller = req->caller};

	if (request_id(req, 0, ID_SANDBOX, &m.sandbox, err) < 0 ||
		request_id(req, 1, ID_JOB, &m.job, err) < 0)
		return err->code;
	return REQUEST_ASK(req, on_got, err, JOB_GET, job_get, m);
}

static void
on_signalled(void *owner, const struct answer *answer)
{
	struct request *req = owner;

	if (!request_refused(req, answer))
		request_nothing(req);
}

static int
signal_job(struct request *req, uint32_t signal, struct err *err)
{
	struct msg_job_kill m = {.caller = req->caller, .signal = signal};

	if (request_id(req, 0, ID_SANDBOX, &m.sandbox, err) < 0 ||
		request_id(req, 1, ID_JOB, &m.job, err) < 0)
		return err->code;
	return REQUEST_ASK(req, on_signalled, err, JOB_KILL, job_kill, m);
}

int
on_job_cancel(struct request *req, struct err *err)
{
	return signal_job(req, 0, err);
}

int
on_job_signal(struct request *req, struct err *err)
{
	const struct body_signal *b = req->fields;

	if (b->signal.state != FIELD_SET)
		return refuse(err, BAD_REQUEST,
			"signal is needed: a number, 0 kills the job with all its descendants");
	return signal_job(req, (uint32_t)b->signal.v, err);
}
