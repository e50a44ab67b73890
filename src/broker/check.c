/* SPDX-License-Identifier: Apache-2.0 */
/* See check.h. */
#include "broker/check.h"

#include "lib/base/clock.h"

#include <errno.h>

static void
fails(struct record_check *c, enum denial denial)
{
	c->failed |= AUTHORITY_BIT(denial);
}

/* The request that these arguments make is the request that the person saw. */
static void
check_request(struct record_check *c)
{
	const struct request_values v = {.arguments = c->r.arguments,
		.tenant = c->r.tenant,
		.task = c->r.task,
		.proposal = c->r.proposal,
		.key = c->r.idempotency_key};
	struct request q = {0};
	struct err err = {0};

	if (request_render(c->op, &v, &q, &err) < 0) {
		fails(c, DENIAL_ARGUMENTS);
	} else if (!view_is(c->r.method, q.method) || !view_eq(c->r.url, buf_view(&q.url)) ||
		   !view_eq(c->r.body, buf_view(&q.body)) ||
		   !view_is(c->r.content_type, q.content_type)) {
		fails(c, DENIAL_REQUEST_DIFFERENT);
	}
	request_done(&q);
}

static void
check_single_use(struct record_check *c)
{
	const struct spent *s = ledger_by_proposal(c->b->ledger, c->r.proposal);
	const struct spent *k = ledger_by_key(c->b->ledger, c->r.idempotency_key);
	char key[REQUEST_KEY_MAX + 1];
	struct id id;

	if (s != NULL)
		fails(c, DENIAL_SPENT);
	if (k != NULL && memcmp(k->record, c->digest, SHA256_BYTES) != 0)
		fails(c, DENIAL_KEY_CONFLICT);
	if (id_parse(c->r.proposal, ID_PROPOSAL, &id) < 0) {
		fails(c, DENIAL_RECORD_MALFORMED);
		return;
	}
	request_key(c->r.epoch, &id, 0, key);
	if (!view_is(c->r.idempotency_key, key))
		fails(c, DENIAL_KEY_CONFLICT);
}

void
check_record(struct record_check *c, bool dispatch)
{
	struct err err = {0};
	struct id task;

	buf_init(&c->room, 4 * PROPOSAL_RECORD_MAX);
	proposal_digest(c->record, c->digest);
	if (proposal_record_read(c->record, &c->room, &c->r, &err) < 0) {
		fails(c, DENIAL_RECORD_MALFORMED);
		return;
	}
	if (!view_is(c->r.proposal, c->proposal) || id_parse(c->r.task, ID_TASK, &task) < 0)
		fails(c, DENIAL_RECORD_MALFORMED);
	if (ledger_contained(c->b->ledger, c->r.task, c->r.tenant) != NULL)
		fails(c, DENIAL_CONTAINED);
	if (c->r.epoch != ledger_epoch(c->b->ledger))
		fails(c, DENIAL_EPOCH);
	if (ledger_revoked(c->b->ledger, c->r.proposal))
		fails(c, DENIAL_REVOKED);
	c->op = catalogue_find(&c->b->catalogue, c->r.action);
	if (c->op == NULL)
		fails(c, DENIAL_OPERATION_UNKNOWN);
	else
		check_request(c);
	if (dispatch)
		check_single_use(c);
}

void
check_done(struct record_check *c)
{
	buf_done(&c->room);
}

static uint64_t
seen_ms(void *arg, const uint8_t decision[static SHA256_BYTES])
{
	const struct broker *b = arg;

	return ledger_accepted_ms(b->ledger, decision);
}

struct authority_ask
check_ask(const struct record_check *c)
{
	return (struct authority_ask){.op = c->op,
		.approvers = approval_now(&c->b->approval),
		.record = c->record,
		.now_ms = clock_real_ms(),
		.failed = c->failed,
		.seen_ms = seen_ms,
		.arg = c->b};
}
