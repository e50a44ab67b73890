/* SPDX-License-Identifier: Apache-2.0 */
/* Proofs for the api; see proof.h. A head is everybody's; that a record is in the tree is told to who may see the record. */
#include "engine/proof.h"

#include "engine/caller.h"
#include "engine/task.h"
#include "engine/tree.h"

#include <errno.h>
#include <inttypes.h>

enum { LEAF_BYTES = 8 };

static int
size_known(struct engine *e, uint64_t size, struct err *err)
{
	if (size > tree_size(e->tree))
		return REFUSE(
			err, BAD_REQUEST, "the tree has %" PRIu64 " records", tree_size(e->tree));
	return 0;
}

static int
chain_of(struct engine *e, struct view name, const struct principal *p, struct id *ret,
	struct err *err)
{
	static const struct id host_chain;
	auto_task struct task t;
	int r;

	task_init(&t, e);
	if (p->admin && view_is(name, "host")) {
		*ret = host_chain;
		return 0;
	}
	r = task_find_name(&t, p, name, err);
	if (r == 0)
		*ret = t.id;
	return r;
}

static int
leaf_of(struct engine *e, const struct id *chain, uint64_t leaf, struct err *err)
{
	auto_query struct query q = query_of(e->store, Q_AUDIT_CHAIN);
	struct id id;
	int r;

	arg_u64(&q, leaf + 1);
	r = query_next(&q, err);
	if (r < 0)
		return r;
	if (r > 0)
		col_id(&q, &id);
	if (r == 0 || !id_eq(&id, chain))
		return REFUSE(err, NOT_FOUND, "leaf %" PRIu64 " is no record of this task", leaf);
	return 0;
}

int
on_inclusion_get(
	struct engine *e, struct reply to, const struct msg_inclusion_get *m, struct err *err)
{
	const struct merkle_source nodes = tree_source(e);
	struct view leaves = m->leaves;
	struct principal p;
	struct id chain;
	int r = caller_find(e, &m->caller, &p, err);

	if (r == 0)
		r = chain_of(e, m->task, &p, &chain, err);
	if (r == 0)
		r = size_known(e, m->size, err);
	if (r == 0 && leaves.n % LEAF_BYTES != 0)
		r = REFUSE(err, BAD_REQUEST, "a leaf is a number of %d bytes", LEAF_BYTES);
	for (; r == 0 && leaves.n > 0; leaves = view_skip(leaves, LEAF_BYTES)) {
		struct msg_proof_row row = {.size = m->size};
		struct merkle_proof proof;

		for (unsigned i = 0; i < LEAF_BYTES; i++)
			row.leaf = row.leaf << 8 | leaves.p[i];
		if (row.leaf >= m->size)
			return REFUSE(err, BAD_REQUEST,
				"leaf %" PRIu64 " is not in a tree of %" PRIu64, row.leaf, m->size);
		r = leaf_of(e, &chain, row.leaf, err);
		if (r == 0)
			r = merkle_inclusion(&nodes, row.leaf, m->size, &proof, err);
		if (r < 0)
			return r;
		row.hashes = merkle_proof_view(&proof);
		REPLY(e, to, PROOF_ROW, proof_row, row);
	}
	if (r == 0)
		REPLY(e, to, END, end, {.more = false});
	return r;
}

int
on_consistency_get(
	struct engine *e, struct reply to, const struct msg_consistency_get *m, struct err *err)
{
	const struct merkle_source nodes = tree_source(e);
	struct merkle_proof proof;
	struct principal p;
	int r = caller_find(e, &m->caller, &p, err);

	if (r == 0)
		r = size_known(e, m->size, err);
	if (r == 0 && m->from > m->size)
		r = REFUSE(err, BAD_REQUEST, "from is larger than size");
	if (r == 0)
		r = merkle_consistency(&nodes, m->from, m->size, &proof, err);
	if (r == 0)
		REPLY(e, to, PROOF_ROW, proof_row,
			{.leaf = m->from, .size = m->size, .hashes = merkle_proof_view(&proof)});
	return r;
}
