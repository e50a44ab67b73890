/* SPDX-License-Identifier: Apache-2.0 */
/* Proposals as rows and steps; see proposal.h. */
#include "engine/proposal.h"

#include "lib/base/clock.h"

#include <errno.h>

enum { ARGUMENTS_MAX = 32768, NAMES_MAX = 4096 };

void
proposal_init(struct proposal *p, struct engine *e)
{
	*p = (struct proposal){.engine = e};
	buf_init(&p->arguments, ARGUMENTS_MAX);
	buf_init(&p->defaulted, NAMES_MAX);
	buf_init(&p->provenance, NAMES_MAX);
	buf_init(&p->note, NOTE_BYTES_MAX);
	buf_init(&p->record, PROPOSAL_RECORD_MAX);
}

void
proposal_done(struct proposal *p)
{
	buf_done(&p->arguments);
	buf_done(&p->defaulted);
	buf_done(&p->provenance);
	buf_done(&p->note);
	buf_done(&p->record);
}

static void
fill(struct buf *b, struct view v)
{
	buf_clear(b);
	buf_add_view(b, v);
}

static int
read_words(struct proposal *p, struct query *q, struct err *err)
{
	struct view effect = col_view(q), state = col_view(q), denial = col_view(q);

	if (effect_parse(effect, &p->effect) < 0 || proposal_state_parse(state, &p->state) < 0 ||
		denial_parse(denial, &p->denial) < 0)
		return err_set(err, -EUCLEAN, "a proposal without a state");
	return 0;
}

static int
read_row(struct proposal *p, struct query *q, struct err *err)
{
	int r;

	p->seq = col_u64(q);
	col_id(q, &p->id);
	col_id(q, &p->task);
	col_text(q, p->tenant, sizeof(p->tenant));
	col_id(q, &p->sandbox);
	col_text(q, p->operation, sizeof(p->operation));
	p->version = (uint32_t)col_u64(q);
	r = read_words(p, q, err);
	if (r < 0)
		return r;
	col_text(q, p->text, sizeof(p->text));
	col_digest(q, p->request);
	p->is_void = col_u64(q) != 0;
	col_id(q, &p->grant);
	col_text(q, p->actor, sizeof(p->actor));
	col_text(q, p->requester, sizeof(p->requester));
	fill(&p->arguments, col_view(q));
	fill(&p->defaulted, col_view(q));
	fill(&p->provenance, col_view(q));
	fill(&p->note, col_view(q));
	p->amount = col_i64(q);
	col_text(q, p->currency, sizeof(p->currency));
	p->quorum = (uint32_t)col_u64(q);
	fill(&p->record, col_view(q));
	col_digest(q, p->digest);
	p->created_ms = col_u64(q);
	p->decide_by_ms = col_u64(q);
	p->dispatch_by_ms = col_u64(q);
	p->ended_ms = col_u64(q);
	if (buf_check(&p->arguments) < 0 || buf_check(&p->provenance) < 0 ||
		buf_check(&p->record) < 0 || buf_check(&p->note) < 0 ||
		buf_check(&p->defaulted) < 0)
		return err_set(err, -ENOMEM, "no memory for a proposal");
	return 0;
}

int
proposal_load(struct proposal *p, const struct id *id, struct err *err)
{
	auto_query struct query q = query_of(p->engine->store, Q_PROPOSAL_GET);
	int r;

	arg_id(&q, id);
	r = query_one(&q, err);
	return r < 0 ? r : read_row(p, &q, err);
}

int
proposal_load_same(struct proposal *p, const uint8_t request[static 32], struct err *err)
{
	struct id id;
	int r;

	{
		auto_query struct query q = query_of(p->engine->store, Q_PROPOSAL_SAME);

		arg_digest(&q, request);
		r = query_next(&q, err);
		if (r <= 0)
			return r;
		col_id(&q, &id);
	}
	r = proposal_load(p, &id, err);
	return r < 0 ? r : 1;
}

int
proposal_find(struct proposal *p, const struct principal *who, const struct id *id, struct err *err)
{
	auto_task struct task t;
	int r = proposal_load(p, id, err);

	task_init(&t, p->engine);
	if (r == 0)
		r = task_load(&t, &p->task, err);
	if (r < 0 && r != -ENOENT)
		return r;
	if (r == -ENOENT || !caller_sees(who, t.tenant, t.template))
		return REFUSE(err, NOT_FOUND, "no such proposal");
	return 0;
}

int
proposal_insert(struct proposal *p, struct err *err)
{
	auto_query struct query q = query_of(p->engine->store, Q_PROPOSAL_INSERT);
	int r;

	must(p->state == PROPOSAL_STATE_PROPOSED);
	arg_id(&q, &p->id);
	arg_id(&q, &p->task);
	arg_text(&q, p->tenant);
	arg_id(&q, &p->sandbox);
	arg_text(&q, p->operation);
	arg_u64(&q, p->version);
	arg_text(&q, effect_text(p->effect));
	arg_digest(&q, p->request);
	arg_id(&q, &p->grant);
	arg_text(&q, p->actor);
	arg_text(&q, p->requester);
	arg_blob(&q, buf_view(&p->arguments));
	arg_blob(&q, buf_view(&p->defaulted));
	arg_blob(&q, buf_view(&p->provenance));
	arg_blob(&q, buf_view(&p->note));
	arg_i64(&q, p->amount);
	arg_text(&q, p->currency);
	arg_u64(&q, p->quorum);
	arg_u64(&q, p->created_ms);
	r = query_run(&q, err);
	if (r == 0)
		p->seq = store_last_row(p->engine->store);
	return r;
}

/* It came to nothing: the same may be asked again. */
static bool
is_nothing(enum proposal_state state)
{
	switch (state) {
	case PROPOSAL_STATE_FAILED:
	case PROPOSAL_STATE_DENIED:
	case PROPOSAL_STATE_REJECTED:
	case PROPOSAL_STATE_EXPIRED:
	case PROPOSAL_STATE_REVOKED:
	case PROPOSAL_STATE_SUPERSEDED:
		return true;
	case PROPOSAL_STATE_PROPOSED:
	case PROPOSAL_STATE_PENDING:
	case PROPOSAL_STATE_APPROVED:
	case PROPOSAL_STATE_DISPATCHING:
	case PROPOSAL_STATE_SUCCEEDED:
	case PROPOSAL_STATE_UNKNOWN:
	case PROPOSAL_STATE_MANUAL:
		return false;
	case PROPOSAL_STATE_MAX:
		break;
	}
	must(false);
}

static bool
is_final(enum proposal_state state)
{
	return is_nothing(state) || state == PROPOSAL_STATE_SUCCEEDED ||
	       state == PROPOSAL_STATE_MANUAL;
}

/*
 * Nothing was begun, so its use of the grant comes back: else forged proposals eat up what a person gave for one good one. The budget of
 * proposals bounds how often. A failed one was begun; it stays used.
 */
static int
grant_give_back(struct proposal *p, struct err *err)
{
	auto_query struct query q = query_of(p->engine->store, Q_GRANT_GIVE_BACK);

	arg_id(&q, &p->grant);
	return query_run(&q, err);
}

int
proposal_step(struct proposal *p, enum proposal_event event, struct err *err)
{
	auto_query struct query q = query_of(p->engine->store, Q_PROPOSAL_STEP);
	enum proposal_state before = p->state, after;
	int r = proposal_next(before, event, &after, err);

	if (r < 0)
		return r;
	if (is_nothing(after))
		p->is_void = true;
	if (is_final(after))
		p->ended_ms = clock_real_ms();
	arg_text(&q, proposal_state_text(after));
	arg_text(&q, denial_text(p->denial));
	arg_text(&q, p->text);
	arg_u64(&q, p->is_void);
	arg_u64(&q, p->quorum);
	arg_blob(&q, buf_view(&p->record));
	arg_digest(&q, p->digest);
	arg_u64(&q, p->decide_by_ms);
	arg_u64(&q, p->dispatch_by_ms);
	arg_u64(&q, p->ended_ms);
	arg_id(&q, &p->id);
	arg_text(&q, proposal_state_text(before));
	r = query_next(&q, err);
	if (r == 0)
		return err_set(err, -EALREADY, "the proposal is not %s any more",
			proposal_state_text(before));
	if (r < 0)
		return r;
	p->state = after;
	return is_nothing(after) && after != PROPOSAL_STATE_FAILED ? grant_give_back(p, err) : 0;
}

void
proposal_deny(struct proposal *p, enum denial denial, struct view text)
{
	size_t n = text.n < sizeof(p->text) - 1 ? text.n : sizeof(p->text) - 1;

	/* Not in the middle of a character. */
	while (n < text.n && n > 0 && (text.p[n] & 0xc0) == 0x80)
		n--;
	p->denial = denial;
	if (n > 0)
		memcpy(p->text, text.p, n);
	p->text[n] = '\0';
}

/* ---- audit ---- */

struct data {
	const struct proposal *p;
	void (*more)(struct canon_writer *w, const void *arg);
	const void *arg;
};

static void
put_data(struct canon_writer *w, const void *arg)
{
	const struct data *d = arg;
	char id[ID_TEXT];

	id_text(&d->p->id, ID_PROPOSAL, id);
	put_str(w, "operation", d->p->operation);
	put_str(w, "proposal", id);
	if (d->more != NULL) {
		canon_key(w, view_str("said"));
		canon_object_begin(w);
		d->more(w, d->arg);
		canon_object_end(w);
	}
	put_str(w, "state", proposal_state_text(d->p->state));
}

int
proposal_audit(struct proposal *p, const char *event, const struct principal *who,
	struct view request_id, void (*data)(struct canon_writer *, const void *), const void *arg,
	struct err *err)
{
	const struct data d = {.p = p, .more = data, .arg = arg};
	const struct audit_event ev = {.event = event,
		.tenant = p->tenant,
		.task = &p->task,
		.sandbox = id_is_zero(&p->sandbox) ? NULL : &p->sandbox,
		.who = who,
		.request_id = request_id,
		.data = put_data,
		.arg = &d};

	return audit_append(p->engine, &ev, err);
}
