/* SPDX-License-Identifier: Apache-2.0 */
/* Taking authority back: revocations and containments; giving it back: signed releases. */
#include "actions.h"
#include "body.h"
#include "route.h"

static void
on_revoked(void *owner, const struct answer *answer)
{
	struct request *req = owner;

	if (!request_refused(req, answer))
		request_nothing(req);
}

int
on_revoke(struct request *req, struct err *err)
{
	const struct body_revocation *b = req->fields;
	struct msg_authority_revoke m = {.caller = req->caller,
		.name = b->name.v,
		.reason = b->reason.v,
		.request_id = view_str(req->id)};

	if (authority_parse(b->kind.v, &m.kind) < 0)
		return refuse(err, BAD_REQUEST, "kind must be grant, approval or task");
	return REQUEST_ASK(req, on_revoked, err, AUTHORITY_REVOKE, authority_revoke, m);
}

static void
containment_out(struct json_out *o, const struct msg_containment_row *m)
{
	json_out_object_begin(o);
	row_containment(o, m);
	json_out_object_end(o);
}

/* One object: the containment, and in it the executions whose effect must be reconciled. */
static void
on_contained(void *owner, const struct answer *answer)
{
	struct request *req = owner;

	if (answer->type == MSG_CONTAINMENT_ROW) {
		json_out_object_begin(request_out(req));
		row_containment(&req->out, answer->m);
		json_out_key(&req->out, "executions");
		json_out_array_begin(&req->out);
	} else if (answer->type == MSG_EXECUTION_ROW) {
		row_execution(&req->out, answer->m);
	} else if (!request_refused(req, answer)) {
		json_out_array_end(&req->out);
		json_out_object_end(&req->out);
		request_json(req, 201);
	}
}

int
on_contain(struct request *req, struct err *err)
{
	const struct body_contain *b = req->fields;

	return REQUEST_ASK(req, on_contained, err, CONTAIN, contain,
		{.caller = req->caller,
			.scope = b->scope.v,
			.reason = b->reason.v,
			.request_id = view_str(req->id)});
}

static void
on_list(void *owner, const struct answer *answer)
{
	struct request *req = owner;

	if (answer->type == MSG_CONTAINMENT_ROW)
		containment_out(&req->out, answer->m);
	else if (!request_refused(req, answer))
		row_page_end(req, ((const struct msg_end *)answer->m)->more);
}

int
on_containment_list(struct request *req, struct err *err)
{
	row_page_begin(req);
	return REQUEST_ASK(
		req, on_list, err, CONTAINMENT_LIST, containment_list, {.caller = req->caller});
}

static void
on_released(void *owner, const struct answer *answer)
{
	struct request *req = owner;

	if (request_refused(req, answer))
		return;
	containment_out(request_out(req), answer->m);
	request_json(req, 200);
}

int
on_release(struct request *req, struct err *err)
{
	const struct body_release *b = req->fields;
	struct msg_release m = {.caller = req->caller, .request_id = view_str(req->id)};
	auto_buf struct buf release = {0}, signature = {0};

	if (signed_bytes(&b->release, "release", &release, err) < 0 ||
		signed_bytes(&b->signature, "signature", &signature, err) < 0)
		return err->code;
	m.release = buf_view(&release);
	m.signature = buf_view(&signature);
	return REQUEST_ASK(req, on_released, err, RELEASE, release, m);
}
