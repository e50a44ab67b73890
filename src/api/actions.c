/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of actions as JSON, and signed bytes; see actions.h. */
#include "actions.h"

#include "collect.h"
#include "lib/base/base64.h"
#include "lib/base/hex.h"
#include "lib/base/sha256.h"

#include <errno.h>

static void
key_u64(struct json_out *o, const char *key, uint64_t v)
{
	json_out_key(o, key);
	json_out_u64(o, v);
}

static bool
digest_known(const uint8_t *digest)
{
	static const uint8_t none[SHA256_BYTES];

	return memcmp(digest, none, sizeof(none)) != 0;
}

static void
denial_out(struct json_out *o, enum denial denial)
{
	if (denial != DENIAL_NONE)
		json_out_key_str(o, "denial", view_str(denial_text(denial)));
}

void
row_hex(struct json_out *o, const char *key, const uint8_t *digest)
{
	char text[SHA256_TEXT];

	hex_encode(digest, SHA256_BYTES, text);
	json_out_key_str(o, key, view_str(text));
}

void
row_operation(struct json_out *o, const struct msg_operation_row *m)
{
	json_out_object_begin(o);
	json_out_key_str(o, "name", m->name);
	key_u64(o, "version", m->version);
	json_out_key_str(o, "effect", view_str(effect_text(m->effect)));
	row_hex(o, "digest", m->operation);
	row_hex(o, "catalogue", m->catalogue);
	json_out_key(o, "document");
	json_out_raw(o, m->document.n > 0 ? m->document : view_str("{}"));
	json_out_object_end(o);
}

void
row_grant(struct json_out *o, const struct msg_grant_row *m)
{
	json_out_object_begin(o);
	row_id(o, "id", ID_GRANT, &m->grant);
	row_id(o, "task", ID_TASK, &m->task);
	json_out_key_str(o, "tenant", m->tenant);
	json_out_key_str(o, "operation", m->operation);
	key_u64(o, "version", m->version);
	row_strings(o, "where", m->where);
	key_u64(o, "uses", m->uses);
	key_u64(o, "used", m->used);
	row_time(o, "created_at", m->created_ms);
	row_time(o, "expires_at", m->expires_ms);
	row_time(o, "revoked_at", m->revoked_ms);
	json_out_key_bool(o, "changed", m->changed);
	json_out_key_str(o, "issuer", m->issuer);
	json_out_object_end(o);
}

/* One of the pairs: u16 length and bytes. False at the end, or where the length goes beyond it. */
static bool
sized_take(struct view *rest, struct view *ret)
{
	size_t n;

	if (rest->n < 2)
		return false;
	n = (size_t)rest->p[0] << 8 | rest->p[1];
	if (rest->n - 2 < n)
		return false;
	*ret = view_of(rest->p + 2, n);
	*rest = view_skip(*rest, n + 2);
	return true;
}

static void
decisions_out(struct json_out *o, struct view rest)
{
	struct view decision, signature;

	json_out_key(o, "decisions");
	json_out_array_begin(o);
	while (sized_take(&rest, &decision) && sized_take(&rest, &signature)) {
		json_out_object_begin(o);
		base64_out(o, "decision", decision);
		base64_out(o, "signature", signature);
		json_out_object_end(o);
	}
	json_out_array_end(o);
}

void
row_proposal(struct json_out *o, const struct msg_proposal_row *m)
{
	json_out_object_begin(o);
	row_id(o, "id", ID_PROPOSAL, &m->proposal);
	row_id(o, "task", ID_TASK, &m->task);
	json_out_key_str(o, "tenant", m->tenant);
	json_out_key_str(o, "operation", m->operation);
	json_out_key_str(o, "state", view_str(proposal_state_text(m->state)));
	denial_out(o, m->denial);
	json_out_key_str(o, "text", m->text);
	json_out_key_bool(o, "duplicate", m->duplicate);
	if (digest_known(m->digest))
		row_hex(o, "digest", m->digest);
	key_u64(o, "quorum", m->quorum);
	row_time(o, "created_at", m->created_ms);
	row_time(o, "decide_by", m->decide_by_ms);
	row_time(o, "dispatch_by", m->dispatch_by_ms);
	row_id(o, "execution", ID_EXECUTION, &m->execution);
	if (m->record.n > 0)
		base64_out(o, "record", m->record);
	json_out_key_str(o, "note", m->note);
	decisions_out(o, m->decisions);
	json_out_object_end(o);
}

void
row_execution(struct json_out *o, const struct msg_execution_row *m)
{
	json_out_object_begin(o);
	row_id(o, "id", ID_EXECUTION, &m->execution);
	row_id(o, "proposal", ID_PROPOSAL, &m->proposal);
	row_id(o, "task", ID_TASK, &m->task);
	json_out_key_str(o, "tenant", m->tenant);
	json_out_key_str(o, "operation", m->operation);
	json_out_key_str(o, "state", view_str(execution_state_text(m->state)));
	if (m->state == EXECUTION_STATE_MANUAL)
		json_out_key_str(o, "settled", view_str(attempt_text(m->settled)));
	denial_out(o, m->denial);
	json_out_key_bool(o, "incident", m->incident);
	key_u64(o, "status", m->status);
	key_u64(o, "sends", m->sends);
	json_out_key_str(o, "key", m->key);
	json_out_key_str(o, "provider_account", m->provider_account);
	row_time(o, "started_at", m->started_ms);
	row_time(o, "ended_at", m->ended_ms);
	key_u64(o, "first_byte_us", m->first_byte_us);
	if (digest_known(m->response))
		row_digest(o, "response", m->response);
	json_out_key_str(o, "text", m->text);
	json_out_key(o, "receipt");
	json_out_raw(o, m->receipt.n > 0 ? m->receipt : view_str("{}"));
	json_out_object_end(o);
}

void
row_containment(struct json_out *o, const struct msg_containment_row *m)
{
	json_out_key_str(o, "scope", m->scope);
	json_out_key_str(o, "reason", m->reason);
	json_out_key_str(o, "by", m->by);
	row_time(o, "since", m->since_ms);
	row_time(o, "released_at", m->released_ms);
	key_u64(o, "sandboxes_ended", m->sandboxes_ended);
	key_u64(o, "grants_revoked", m->grants_revoked);
	key_u64(o, "proposals_stopped", m->proposals_stopped);
	key_u64(o, "executions_open", m->executions_open);
}

void
row_budget(struct json_out *o, const struct msg_budget_row *m)
{
	json_out_object_begin(o);
	json_out_key_bool(o, "of_tenant", m->of_tenant);
	json_out_key_str(o, "operation", m->operation);
	json_out_key_str(o, "counter", view_str(counter_text(m->counter)));
	json_out_key_str(o, "unit", m->unit);
	key_u64(o, "reserved", m->reserved);
	key_u64(o, "used", m->used);
	key_u64(o, "limit", m->limit);
	json_out_object_end(o);
}

int
signed_bytes(const struct field_str *f, const char *name, struct buf *ret, struct err *err)
{
	int r;

	buf_init(ret, SIGNED_BYTES_MAX);
	r = base64_decode(f->v, ret);
	if (r == -EINVAL)
		return refuse(err, BAD_REQUEST,
			"%s must be base 64 as in RFC 4648, with its padding and without blanks",
			name);
	if (r < 0)
		return refuse(
			err, TOO_LARGE, "%s may have at most %d bytes", name, SIGNED_BYTES_MAX);
	return ret->n > 0 ? 0 : refuse(err, BAD_REQUEST, "%s is empty", name);
}

int
action_task(const struct request *req, struct view *ret, struct err *err)
{
	if (req->arg[0].n > TASK_NAME_BYTES_MAX)
		return refuse(err, NOT_FOUND, "no such task: its name is too long");
	*ret = req->arg[0];
	return 0;
}

int
action_page(const struct request *req, const char *prefix, struct id *ret_after,
	uint16_t *ret_limit, struct err *err)
{
	uint64_t limit;

	if (row_after(req, prefix, ret_after, err) < 0 ||
		request_number(req, "limit", LIMIT_PAGE, LIMIT_PAGE, &limit, err) < 0)
		return err->code;
	*ret_limit = (uint16_t)limit;
	return 0;
}
