/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Proposals and decisions about them. Nothing but POST to .../decision carries a decision, and what it carries is a signature over bytes that
 * name the proposal's digest: a link, a prefetch or a form of a page decides nothing.
 */
#include "actions.h"
#include "body.h"
#include "lib/base/hex.h"
#include "lib/json/canonical.h"
#include "lib/loop/loop.h"
#include "route.h"

#include <errno.h>

enum { PROVENANCE_BYTES_MAX = 2048, TEXT_MAX = 512 };

static void
on_made(void *owner, const struct answer *answer)
{
	const struct msg_proposal_row *m = answer->m;
	struct request *req = owner;

	if (request_refused(req, answer))
		return;
	if (m->state == PROPOSAL_STATE_DENIED) {
		json_out_object_begin(request_out(req));
		row_id(&req->out, "proposal", ID_PROPOSAL, &m->proposal);
		request_refuse_with(req, ERROR_DENIED, m->denial, m->text);
		return;
	}
	row_proposal(request_out(req), m);
	request_json(req, m->duplicate ? 200 : 201);
}

static int
provenance_put(const struct field_json *map, struct buf *ret, struct err *err)
{
	buf_init(ret, PROVENANCE_BYTES_MAX);
	body_map(map, false, ret);
	return buf_check(ret) == 0 ? 0
				   : refuse(err, TOO_LARGE, "provenance may have at most %d bytes",
					     PROVENANCE_BYTES_MAX);
}

int
on_proposal_create(struct request *req, struct err *err)
{
	const struct body_proposal_create *b = req->fields;
	struct msg_proposal_create m = {
		.caller = req->caller, .task = b->task.v, .request_id = view_str(req->id)};
	auto_buf struct buf proposal = {.max = PROPOSAL_CANONICAL_MAX}, provenance = {0};
	int r;

	if (!operation_name_ok(b->operation.v))
		return refuse(err, BAD_REQUEST, "operation must be " OPERATION_NAME_SAYS);
	r = canonical_proposal(b->operation.v, b->arguments.v, b->note.v, &proposal, err);
	if (r < 0)
		return err->code = -(r == -E2BIG || r == -ENOBUFS ? ERROR_TOO_LARGE
				     : r == -ENOMEM               ? ERROR_INTERNAL
								  : ERROR_BAD_REQUEST);
	if (provenance_put(&b->provenance, &provenance, err) < 0 ||
		request_unkeyed(req,
			"the same proposal again has the earlier one as its answer without it",
			err) < 0)
		return err->code;
	m.proposal = buf_view(&proposal);
	m.provenance = buf_view(&provenance);
	return REQUEST_ASK(req, on_made, err, PROPOSAL_CREATE, proposal_create, m);
}

static void
on_list(void *owner, const struct answer *answer)
{
	struct request *req = owner;

	if (answer->type == MSG_PROPOSAL_ROW)
		row_proposal(&req->out, answer->m);
	else if (!request_refused(req, answer))
		row_page_end(req, ((const struct msg_end *)answer->m)->more);
}

int
on_proposal_list(struct request *req, struct err *err)
{
	struct msg_proposal_list m = {.caller = req->caller,
		.task = request_param(req, "task"),
		.open = request_flag(req, "open")};

	if (m.task.n > TASK_NAME_BYTES_MAX)
		return refuse(err, NOT_FOUND, "no such task: its name is too long");
	if (action_page(req, ID_PROPOSAL, &m.after, &m.limit, err) < 0)
		return err->code;
	row_page_begin(req);
	return REQUEST_ASK(req, on_list, err, PROPOSAL_LIST, proposal_list, m);
}

static void
on_row(void *owner, const struct answer *answer)
{
	struct request *req = owner;

	if (request_refused(req, answer))
		return;
	row_proposal(request_out(req), answer->m);
	request_json(req, 200);
}

int
on_proposal_get(struct request *req, struct err *err)
{
	struct msg_proposal_get m = {.caller = req->caller};

	if (request_id(req, 0, ID_PROPOSAL, &m.proposal, err) < 0)
		return err->code;
	return REQUEST_ASK(req, on_row, err, PROPOSAL_GET, proposal_get, m);
}

/* ---- decisions ---- */

/* What a person saw, and what the engine said to it, until it is known what the proposal is. */
struct decide {
	struct id proposal;
	uint8_t shown[SHA256_BYTES];
	enum error error;
	enum denial denial;
	char text[TEXT_MAX + 1];
};

static void
decide_gone(struct request *req)
{
	loop_free_later(req->api->loop, req->own);
}

static const struct request_ops decide_ops = {.gone = decide_gone};

/* 409 with both digests when what was shown is not what there is, so that a client can show the other one; else what the engine said. */
static void
on_other(void *owner, const struct answer *answer)
{
	struct request *req = owner;
	const struct decide *d = req->own;
	const struct msg_proposal_row *m = answer->m;
	bool other = answer->type == MSG_PROPOSAL_ROW &&
		     memcmp(m->digest, d->shown, SHA256_BYTES) != 0;

	json_out_object_begin(request_out(req));
	if (other) {
		row_hex(&req->out, "shown", d->shown);
		row_hex(&req->out, "digest", m->digest);
	}
	request_refuse_with(req, other ? ERROR_CONFLICT : d->error,
		other ? DENIAL_DIGEST : d->denial, view_str(d->text));
}

static void
on_decided(void *owner, const struct answer *answer)
{
	struct request *req = owner;
	struct decide *d = req->own;
	const struct msg_refused *no = answer->m;
	struct err err = {0};

	if (answer->type != MSG_REFUSED ||
		(no->error != ERROR_CONFLICT && no->denial != DENIAL_DIGEST)) {
		on_row(req, answer);
		return;
	}
	d->error = error_info(no->error) == NULL ? ERROR_INTERNAL : (enum error)no->error;
	d->denial = no->denial;
	(void)snprintf(d->text, sizeof(d->text), "%.*s", VIEW_ARGS(no->text));
	if (REQUEST_ASK(req, on_other, &err, PROPOSAL_GET, proposal_get,
		    {.caller = req->caller, .proposal = d->proposal}) < 0)
		on_other(req, answer);
}

int
on_proposal_decide(struct request *req, struct err *err)
{
	const struct body_decision *b = req->fields;
	struct msg_proposal_decide m = {.caller = req->caller, .request_id = view_str(req->id)};
	auto_buf struct buf decision = {0}, signature = {0};
	struct decide *d;

	if (hex_decode(b->shown.v, m.shown, sizeof(m.shown)) < 0)
		return refuse(err, BAD_REQUEST,
			"shown must be the digest of the record that the person saw: 64 digits of "
			"0-9 and a-f");
	if (signed_bytes(&b->decision, "decision", &decision, err) < 0 ||
		signed_bytes(&b->signature, "signature", &signature, err) < 0 ||
		request_id(req, 0, ID_PROPOSAL, &m.proposal, err) < 0 ||
		request_unkeyed(req, "a decision counts once without it", err) < 0)
		return err->code;
	d = calloc(1, sizeof(*d));
	if (d == NULL)
		return refuse(err, INTERNAL, "no memory for a decision");
	d->proposal = m.proposal;
	memcpy(d->shown, m.shown, sizeof(d->shown));
	req->own = d;
	req->ops = &decide_ops;
	m.decision = buf_view(&decision);
	m.signature = buf_view(&signature);
	return REQUEST_ASK(req, on_decided, err, PROPOSAL_DECIDE, proposal_decide, m);
}
