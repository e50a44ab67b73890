/* SPDX-License-Identifier: Apache-2.0 */
/* VERIFY_ASK and READ_ASK: what may be read for a task, without a person. */
#include "broker/answer.h"
#include "broker/work.h"

#include "lib/action/schema.h"
#include "lib/json/parse.h"

#include <errno.h>

enum { FIELDS = 64 };

/* Both messages have these fields in this form. */
struct question {
	const uint8_t *operation;
	struct view name, tenant, arguments, where;
	const struct id *task, *proposal;
};

/* Arguments are the canonical ones with their defaults, or they are not what the engine stored. */
static int
check_arguments(const struct operation *op, struct view arguments, struct err *err)
{
	auto_buf struct buf out = {.max = ARGUMENTS_BYTES_MAX}, defaulted = {.max = 65536};
	int r = schema_apply(op, arguments, &out, &defaulted, err);

	if (r < 0)
		return r;
	return view_eq(buf_view(&out), arguments)
		       ? 0
		       : err_set(err, -EINVAL, "the arguments lack a default of the operation");
}

static enum denial
check(struct broker *b, const struct question *q, const struct operation **ret, struct err *err)
{
	const struct operation *op = catalogue_find(&b->catalogue, q->name);
	char task[ID_TEXT];
	const char *contained;

	id_text(q->task, ID_TASK, task);
	contained = ledger_contained(b->ledger, view_str(task), q->tenant);
	if (contained != NULL) {
		(void)err_set(err, -EPERM, "the %s is contained", contained);
		return DENIAL_CONTAINED;
	}
	if (op == NULL || memcmp(op->digest, q->operation, SHA256_BYTES) != 0) {
		(void)err_set(err, -ENOENT, "the broker's catalogue does not have this operation");
		return DENIAL_OPERATION_UNKNOWN;
	}
	if (check_arguments(op, q->arguments, err) < 0)
		return DENIAL_ARGUMENTS;
	if (reading_secrets(b, op, err) < 0)
		return DENIAL_SECRET_MISSING;
	*ret = op;
	return DENIAL_NONE;
}

/* The same values for the read of facts and for a read itself. */
static enum denial
prepare(struct work *w, const struct question *q, struct err *err)
{
	enum denial denial = check(w->b, q, &w->op, err);
	size_t tenant_at = q->arguments.n;

	if (denial != DENIAL_NONE)
		return denial;
	/* One copy: arguments, tenant, conditions. */
	buf_add_view(&w->question, q->arguments);
	buf_add_view(&w->question, q->tenant);
	buf_add_view(&w->question, q->where);
	if (buf_check(&w->question) < 0) {
		(void)err_set(err, -ENOMEM, "no memory for a read");
		return DENIAL_BROKER_UNAVAILABLE;
	}
	id_text(q->task, ID_TASK, w->task);
	id_text(q->proposal, ID_PROPOSAL, w->proposal);
	w->reading = (struct reading){.b = w->b,
		.op = w->op,
		.values = {.arguments = view_of(w->question.p, q->arguments.n),
			.tenant = view_of(w->question.p + tenant_at, q->tenant.n),
			.task = view_str(w->task),
			.proposal = view_str(w->proposal)},
		.where = view_of(w->question.p + tenant_at + q->tenant.n, q->where.n),
		.owner = w};
	return DENIAL_NONE;
}

static void
tell_verified(struct broker *b, struct ask ask, enum denial denial, const struct err *why,
	const struct reading *f)
{
	char room[TEXT_BYTES];

	TELL(b, ask, VERIFIED, verified,
		{.denial = denial,
			.text = view_str(
				denial == DENIAL_NONE ? "" : broker_text(b, why->text, room)),
			.facts = f == NULL ? view_str("{}") : buf_view(&f->read),
			.calls = f == NULL ? 0 : f->calls,
			.bytes = f == NULL ? 0 : f->bytes});
}

static void
on_verified(struct reading *f)
{
	struct work *w = f->owner;

	tell_verified(w->b, w->ask[0], f->denial, &f->why, f);
	work_free(w);
}

void
verify_ask(struct broker *b, struct ask ask, const struct msg_verify_ask *m)
{
	const struct question q = {
		m->operation, m->name, m->tenant, m->arguments, m->where, &m->task, &m->proposal};
	struct work *w = work_new(b, WORK_VERIFY, ask);
	struct err err = {0};
	enum denial denial;

	if (w == NULL)
		return;
	denial = prepare(w, &q, &err);
	if (denial != DENIAL_NONE) {
		tell_verified(b, ask, denial, &err, NULL);
		work_free(w);
		return;
	}
	w->reading.done = on_verified;
	reading_start(&w->reading);
}

/* ---- reads ---- */

static void
read_end(struct work *w, enum denial denial, const struct err *why, unsigned status,
	struct view answer)
{
	char room[TEXT_BYTES];

	TELL(w->b, w->ask[0], READ_DONE, read_done,
		{.denial = denial,
			.text = view_str(
				denial == DENIAL_NONE ? "" : broker_text(w->b, why->text, room)),
			.status = (uint16_t)status,
			.answer = answer.n == 0 ? view_str("{}") : answer,
			.calls = w->calls + w->reading.calls,
			.bytes = w->bytes_used + w->reading.bytes});
	work_free(w);
}

static void
on_read(struct call *c)
{
	struct work *w = c->owner;
	struct answer_judge judge = judge_of(w->b);
	struct answer_field fields[FIELDS];
	size_t n = request_receipt_fields(w->op, fields, FIELDS);
	auto_buf struct buf answer = {.max = LIMIT_READ_BYTES + 8};
	auto_json json_t *root = NULL;
	struct err err = c->why;
	enum denial denial = DENIAL_NONE;
	bool redacted = false;

	w->calls += c->sent;
	w->bytes_used += c->bytes;
	if (c->end == CALL_NOT_SENT) {
		denial = DENIAL_DIAL_REFUSED;
	} else if (c->end == CALL_CUT) {
		denial = DENIAL_PROVIDER_ANSWER;
	} else if (!codes_have(&w->op->success, (unsigned)c->status)) {
		(void)err_set(&err, -EIO, "the provider answered %ld", c->status);
		denial = DENIAL_PROVIDER_ANSWER;
	} else if (answer_parse(buf_view(&c->body), &root, &err) < 0 ||
		   answer_keep(root, fields, n, &judge, LIMIT_READ_BYTES, &answer, &redacted,
			   &err) < 0) {
		denial = DENIAL_PROVIDER_ANSWER;
	}
	read_end(w, denial, &err, (unsigned)c->status, buf_view(&answer));
}

static void
on_read_facts(struct reading *f)
{
	struct work *w = f->owner;
	struct request request = {0};
	struct err err = f->why;

	if (f->denial != DENIAL_NONE) {
		read_end(w, f->denial, &err, 0, view_of(NULL, 0));
		return;
	}
	if (request_render(w->op, &f->values, &request, &err) < 0) {
		request_done(&request);
		read_end(w, DENIAL_ARGUMENTS, &err, 0, view_of(NULL, 0));
		return;
	}
	w->call = call_new(w->b, &w->op->provider, &request, &err);
	request_done(&request);
	if (w->call == NULL) {
		read_end(w, DENIAL_SECRET_MISSING, &err, 0, view_of(NULL, 0));
		return;
	}
	w->call->owner = w;
	w->call->done = on_read;
	call_start(w->call);
}

void
read_ask(struct broker *b, struct ask ask, const struct msg_read_ask *m)
{
	const struct question q = {
		m->operation, m->name, m->tenant, m->arguments, m->where, &m->task, &m->proposal};
	struct work *w = work_new(b, WORK_READ, ask);
	struct err err = {0};
	enum denial denial;

	if (w == NULL)
		return;
	denial = prepare(w, &q, &err);
	/* What changes something needs a person. */
	if (denial == DENIAL_NONE && (w->op->effect != EFFECT_READ || w->op->base.quorum != 0)) {
		(void)err_set(&err, -EPERM, "the operation is not a read that needs nobody");
		denial = DENIAL_QUORUM;
	}
	if (denial != DENIAL_NONE) {
		read_end(w, denial, &err, 0, view_of(NULL, 0));
		return;
	}
	w->reading.done = on_read_facts;
	reading_start(&w->reading);
}
