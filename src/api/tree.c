/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree over all audit records: its signed checkpoint and proofs. Hashes are passed on in the order of RFC 6962, for a reader
 * that checks them without us.
 */
#include "actions.h"
#include "lib/base/hex.h"
#include "lib/base/num.h"
#include "lib/base/sha256.h"
#include "route.h"

enum { LEAVES_MAX = 256, LEAF_BYTES = 8 };

static void
hashes_out(struct json_out *o, struct view hashes)
{
	json_out_key(o, "hashes");
	json_out_array_begin(o);
	for (; hashes.n >= SHA256_BYTES; hashes = view_skip(hashes, SHA256_BYTES)) {
		char text[SHA256_TEXT];

		hex_encode(hashes.p, SHA256_BYTES, text);
		json_out_str(o, view_str(text));
	}
	json_out_array_end(o);
}

static void
key_u64(struct json_out *o, const char *key, uint64_t v)
{
	json_out_key(o, key);
	json_out_u64(o, v);
}

static void
on_checked(void *owner, const struct answer *answer)
{
	const struct msg_checkpoint_row *m = answer->m;
	struct request *req = owner;
	struct json_out *o;

	if (request_refused(req, answer))
		return;
	o = request_out(req);
	json_out_object_begin(o);
	key_u64(o, "size", m->size);
	json_out_key_str(o, "note", m->note);
	json_out_key_str(o, "audit_key", m->audit_key);
	json_out_object_end(o);
	request_json(req, 200);
}

int
on_checkpoint(struct request *req, struct err *err)
{
	return REQUEST_ASK(req, on_checked, err, CHECKPOINT_GET, checkpoint_get,
		{.caller = req->caller, .fresh = request_flag(req, "fresh")});
}

static void
on_consistent(void *owner, const struct answer *answer)
{
	const struct msg_proof_row *m = answer->m;
	struct request *req = owner;
	struct json_out *o;

	if (request_refused(req, answer))
		return;
	o = request_out(req);
	json_out_object_begin(o);
	key_u64(o, "size", m->size);
	hashes_out(o, m->hashes);
	json_out_object_end(o);
	request_json(req, 200);
}

static int
number_needed(const struct request *req, const char *name, uint64_t *ret, struct err *err)
{
	if (request_param(req, name).n == 0)
		return refuse(err, BAD_REQUEST, "the query must have %s=, a whole number", name);
	return request_number(req, name, 0, INT64_MAX, ret, err);
}

int
on_consistency(struct request *req, struct err *err)
{
	struct msg_consistency_get m = {.caller = req->caller};

	if (number_needed(req, "from", &m.from, err) < 0 ||
		number_needed(req, "size", &m.size, err) < 0)
		return err->code;
	if (m.from > m.size)
		return refuse(err, BAD_REQUEST, "from may not be larger than size");
	return REQUEST_ASK(req, on_consistent, err, CONSISTENCY_GET, consistency_get, m);
}

static void
on_proofs(void *owner, const struct answer *answer)
{
	const struct msg_proof_row *m = answer->m;
	struct request *req = owner;

	if (answer->type == MSG_PROOF_ROW) {
		json_out_object_begin(&req->out);
		key_u64(&req->out, "leaf", m->leaf);
		key_u64(&req->out, "size", m->size);
		hashes_out(&req->out, m->hashes);
		json_out_object_end(&req->out);
	} else if (!request_refused(req, answer)) {
		row_page_end(req, ((const struct msg_end *)answer->m)->more);
	}
}

/* ?leaves=1,2,3 as u64 each. */
static int
leaves_put(const struct request *req, struct buf *ret, struct err *err)
{
	struct view rest = request_param(req, "leaves");

	do {
		const uint8_t *comma = rest.n == 0 ? NULL : memchr(rest.p, ',', rest.n);
		size_t n = comma == NULL ? rest.n : (size_t)(comma - rest.p);
		uint64_t leaf;

		if (num_u64(view_of(rest.p, n), INT64_MAX, &leaf) < 0 ||
			(comma != NULL && rest.n == n + 1))
			return refuse(err, BAD_REQUEST,
				"the query must have leaves=, whole numbers with commas between");
		for (int shift = 56; shift >= 0; shift -= 8)
			buf_add_byte(ret, (uint8_t)(leaf >> shift));
		rest = view_skip(rest, comma == NULL ? n : n + 1);
	} while (rest.n > 0);
	return buf_check(ret) == 0
		       ? 0
		       : refuse(err, TOO_LARGE, "at most %d leaves at once", LEAVES_MAX);
}

int
on_inclusion(struct request *req, struct err *err)
{
	struct msg_inclusion_get m = {.caller = req->caller};
	auto_buf struct buf leaves = {.max = LEAVES_MAX * LEAF_BYTES};

	if (action_task(req, &m.task, err) < 0 || number_needed(req, "size", &m.size, err) < 0 ||
		leaves_put(req, &leaves, err) < 0)
		return err->code;
	m.leaves = buf_view(&leaves);
	row_page_begin(req);
	return REQUEST_ASK(req, on_proofs, err, INCLUSION_GET, inclusion_get, m);
}
