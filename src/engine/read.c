/* SPDX-License-Identifier: Apache-2.0 */
/* A read of a sandbox: counted by its grant, carried out by the broker, and only the digest of the answer is kept; see propose.h. */
#include "engine/propose.h"
#include "lib/action/check.h"
#include "lib/base/log.h"

struct outcome {
	struct asked *a;
	const struct msg_read_done *m; /* NULL: it was denied */
	const struct err *why;
};

static void
put_read(struct canon_writer *w, const void *arg)
{
	const struct outcome *t = arg;
	char id[ID_TEXT];
	uint8_t digest[32];

	id_text(&t->a->proposal, ID_PROPOSAL, id);
	if (t->m != NULL) {
		sha256_of(t->m->answer, digest);
		put_digest(w, "answer_digest", digest);
	}
	put_digest(w, "arguments_digest", t->a->arguments);
	if (t->m == NULL)
		put_str(w, "denial", denial_text(denial_of(t->why)));
	put_view(w, "operation", t->a->op->name);
	put_str(w, "proposal", id);
	if (t->m != NULL)
		put_u64(w, "status", t->m->status);
	else
		put_str(w, "text", t->why->text);
}

static int
record(struct outcome *t, uint32_t calls, uint64_t bytes, struct err *err)
{
	const struct asker *asker = &t->a->asker;
	const struct audit_event ev = {.event = t->m != NULL ? "read.answered" : "read.denied",
		.tenant = t->a->tenant,
		.task = &t->a->task,
		.sandbox = &asker->sandbox,
		.who = &asker->who,
		.data = put_read,
		.arg = t};
	auto_tx struct tx tx = {0};
	int r = tx_begin(&tx, asker->engine->store, err);

	if (r == 0)
		r = asked_settle(t->a, calls, bytes, err);
	if (r == 0)
		r = audit_append(asker->engine, &ev, err);
	return r == 0 ? tx_commit(&tx, err) : r;
}

static void
denied(struct asked *a, const struct err *why, uint32_t calls, uint64_t bytes)
{
	struct outcome t = {.a = a, .why = why};
	struct err err;

	if (record(&t, calls, bytes, &err) < 0)
		log_line("a denial is not recorded: %s", err.text);
	asker_denied(&a->asker, &a->proposal, why);
}

static void
answered(struct broker_wait *w, const struct broker_answer *answer)
{
	auto_free struct asked *a = container_of(w, struct asked, wait);
	const struct msg_read_done *m = &answer->m.read_done;
	struct outcome t = {.a = a, .m = m};
	struct err why;

	if (answer->denial != DENIAL_NONE) {
		err_denied(&why, answer->denial, answer->text);
		denied(a, &why, 1, a->bytes);
	} else if (m->denial != DENIAL_NONE) {
		err_denied(&why, m->denial, m->text);
		denied(a, &why, m->calls, m->bytes);
	} else if (record(&t, m->calls, m->bytes, &why) < 0) {
		asker_denied(&a->asker, &a->proposal, &why);
	} else {
		asker_read(&a->asker, &a->proposal, m->answer);
	}
}

void
read_begin(struct asked *asked, struct view arguments, struct view where)
{
	auto_free struct asked *a = asked;
	struct msg_read_ask m = {.name = a->op->name,
		.tenant = view_str(a->tenant),
		.task = a->task,
		.proposal = a->proposal,
		.arguments = arguments,
		.where = where};
	struct err why;

	memcpy(m.operation, a->op->digest, 32);
	a->wait.done = answered;
	if (BROKER_ASK(a->asker.engine, &a->wait, READ_ASK, read_ask, READ_DONE, &why, m) == 0) {
		(void)take_ptr(a);
		return;
	}
	err_denied(&why, DENIAL_BROKER_UNAVAILABLE,
		view_str(denial_sentence(DENIAL_BROKER_UNAVAILABLE)));
	denied(a, &why, 0, 0);
}
