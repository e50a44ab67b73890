/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weighing a proposal; see propose.h. Called with canonical bytes of a relay (a sandbox asks) or of the api (trusted host code asks). Each
 * check returns 0, a denial (DENY) or a fault; the first that is not 0 ends it, and the transaction leaves nothing behind but the record of the
 * denial.
 */
#include "engine/propose.h"

#include "engine/contain.h"
#include "engine/create.h"
#include "engine/limits.h"
#include "lib/action/check.h"
#include "lib/canon/form.h"
#include "lib/action/request.h"
#include "lib/action/schema.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/ipc/job_bounds.h"

#include <errno.h>

enum { SAME = 1 }; /* weigh: an earlier one asks for the same */

/* One request while it is weighed. */
struct asking {
	struct engine *engine;
	struct asker asker;
	struct sandbox *s; /* NULL: host code asks */
	bool read, posture;
	struct view bytes, labels;
	struct view operation, arguments; /* as they came; in `bytes` */
	struct task task;
	const struct operation *op;
	struct grant grant;
	struct proposal p;
	uint64_t now_ms;
	uint32_t call_bytes;
};

static void
asking_init(struct asking *a, struct engine *e)
{
	*a = (struct asking){.engine = e, .asker = {.engine = e}};
	task_init(&a->task, e);
	grant_init(&a->grant, e);
	proposal_init(&a->p, e);
	id_new(&a->p.id);
}

static void
asking_done(struct asking *a)
{
	task_done(&a->task);
	grant_done(&a->grant);
	proposal_done(&a->p);
}
#define auto_asking __attribute__((cleanup(asking_done)))

/* ---- the checks, in the order of check.def ---- */

static int
check_bytes(struct asking *a, struct err *err)
{
	static const struct form_row rows[] = {{"arguments", FORM_OBJECT, false},
		{"note", FORM_TEXT, false}, {"operation", FORM_STR, false}};
	struct form_value v[ARRAY_LEN(rows)] = {0};
	struct err why;

	if (form_read(a->bytes, "proposal", rows, ARRAY_LEN(rows), v, &why) < 0)
		return DENY(err, RECORD_MALFORMED, "%s: %s",
			denial_sentence(DENIAL_RECORD_MALFORMED), why.text);
	a->arguments = v[0].raw;
	a->operation = v[2].text;
	form_text(&v[1], &a->p.note);
	if (buf_check(&a->p.note) < 0)
		return DENY(
			err, RECORD_MALFORMED, "the note is longer than %d bytes", NOTE_BYTES_MAX);
	return 0;
}

static int
check_contained(struct asking *a, struct err *err)
{
	return contain_refuse(a->engine, a->task.tenant, &a->task.id, err);
}

static int
check_task(struct asking *a, struct err *err)
{
	if (a->task.state != TASK_STATE_OPEN)
		return DENY(err, TASK_STATE, "%s: it is %s", denial_sentence(DENIAL_TASK_STATE),
			task_state_text(a->task.state));
	return 0;
}

/* Equal by construction: another one was ended at SPAWNED. What was measured is compared once more all the same, before the transaction. */
static int
check_posture(struct asking *a, struct err *err)
{
	if (!a->posture)
		return DENY(err, POSTURE, "%s", denial_sentence(DENIAL_POSTURE));
	return 0;
}

static int
check_operation(struct asking *a, struct err *err)
{
	a->op = catalogue_find(&a->engine->catalogue, a->operation);
	if (a->op == NULL)
		return DENY(
			err, OPERATION_UNKNOWN, "%s", denial_sentence(DENIAL_OPERATION_UNKNOWN));
	if (a->read != (a->op->effect == EFFECT_READ))
		return DENY(err, OPERATION_UNKNOWN, "%.*s is %s", VIEW_ARGS(a->op->name),
			a->read ? "not a read: propose it"
				: "a read: ask a sandbox of the task to read it");
	a->p.version = a->op->version;
	a->p.effect = a->op->effect;
	memcpy(a->p.operation, a->op->name.p, a->op->name.n);
	return 0;
}

static int
check_grant(struct asking *a, struct err *err)
{
	int r = grant_live(&a->grant, &a->task.id, a->op, a->now_ms, err), outdated;

	if (r == 0) {
		outdated = grant_outdated(a->engine, &a->task.id, a->op, a->now_ms, err);
		return outdated < 0 ? outdated
				    : DENY(err, NO_GRANT, "%s: %s%s; a person issues one",
					      denial_sentence(DENIAL_NO_GRANT), a->p.operation,
					      outdated ? " changed since it had one" : "");
	}
	a->p.grant = a->grant.id;
	return r < 0 ? r : 0;
}

/* Is the request that they make one that a path and a body can hold? The broker builds it again. */
static int
check_request(struct asking *a, struct err *err)
{
	struct request_values values;
	struct request_room room;
	struct request q = {0};
	struct err why;
	int r;

	request_values_of(a->engine, a->task.tenant, &a->task.id, &a->p.id,
		buf_view(&a->p.arguments), &room, &values);
	r = request_render(a->op, &values, &q, &why);
	if (r < 0)
		return DENY(err, ARGUMENTS, "%s: %s", denial_sentence(DENIAL_ARGUMENTS), why.text);
	request_done(&q);
	return 0;
}

/* A label of an argument that is not there says that the caller means something else. */
static int
check_labels(struct asking *a, struct err *err)
{
	struct view pairs = a->labels;

	while (pairs.n > 0) {
		size_t name = strnlen((const char *)pairs.p, pairs.n);
		struct form_value v;
		struct err why;

		if (form_find(buf_view(&a->p.arguments), view_of(pairs.p, name), &v, &why) != 1)
			return DENY(err, ARGUMENTS,
				"%s: provenance names an argument that is not "
				"there",
				denial_sentence(DENIAL_ARGUMENTS));
		pairs = view_skip(pairs, name + 1);
		pairs = view_skip(pairs, strnlen((const char *)pairs.p, pairs.n) + 1);
	}
	return 0;
}

static int
check_arguments(struct asking *a, struct err *err)
{
	struct err why;
	int r = schema_apply(a->op, a->arguments, &a->p.arguments, &a->p.defaulted, &why);

	if (r < 0)
		return DENY(err, ARGUMENTS, "%s: %s", denial_sentence(DENIAL_ARGUMENTS), why.text);
	a->p.amount = schema_amount(a->op, buf_view(&a->p.arguments));
	if (a->op->has_amount)
		(void)snprintf(
			a->p.currency, sizeof(a->p.currency), "%.*s", VIEW_ARGS(a->op->currency));
	a->p.quorum = operation_tier(a->op, a->p.amount)->quorum;
	r = check_labels(a, err);
	return r == 0 ? check_request(a, err) : r;
}

/* What makes two proposals the same; nothing in it is the asker's to choose but the arguments. */
static void
request_digest(struct asking *a)
{
	static const char domain[] = "demilune-request-v1";
	struct sha256 h;

	sha256_init(&h);
	sha256_add(&h, domain, sizeof(domain));
	sha256_add(&h, a->task.id.b, ID_BYTES);
	sha256_add(&h, a->op->schema, SHA256_BYTES);
	sha256_add(&h, a->op->adapter, SHA256_BYTES);
	sha256_add(&h, a->p.arguments.p, a->p.arguments.n);
	sha256_end(&h, a->p.request);
}

/*
 * The grant, the arguments, and whether the same was asked before. One that was uses no grant again, so it is found although its grant is used
 * up; without that it would be denied, in the order of the table.
 */
static int
check_authority(struct asking *a, struct err *err)
{
	struct err no_grant, no_arguments;
	int grant = check_grant(a, &no_grant), arguments;

	if (grant < 0 && grant >= -DENIAL_BASE) {
		*err = no_grant;
		return grant;
	}
	arguments = check_arguments(a, &no_arguments);
	if (arguments == 0 && !a->read) {
		int r;

		request_digest(a);
		auto_query struct query q = query_of(a->engine->store, Q_PROPOSAL_SAME);
		arg_digest(&q, a->p.request);
		r = query_next(&q, err);
		if (r < 0)
			return r;
		if (r > 0) {
			col_id(&q, &a->p.id);
			return SAME;
		}
	}
	*err = grant < 0 ? no_grant : no_arguments;
	return grant < 0 ? grant : arguments;
}

static int
check_cap(struct asking *a, struct err *err)
{
	auto_query struct query q = query_of(a->engine->store, Q_PROPOSAL_OPEN);
	uint32_t max = a->engine->settings.actions.pending_max;
	int r;

	arg_id(&q, &a->task.id);
	r = query_one(&q, err);
	if (r == 0 && col_u64(&q) >= max)
		return DENY(err, PENDING_CAP, "%s: %u", denial_sentence(DENIAL_PENDING_CAP), max);
	return r;
}

static struct budget_of
budget_of_task(const struct asking *a)
{
	return (struct budget_of){.task = a->task.id,
		.tenant = a->task.tenant,
		.op = a->op,
		.day = budget_day(a->now_ms)};
}

static int
over_budget(int r, struct err *err)
{
	struct err why = *err;

	return r == -EDQUOT ? DENY(err, BUDGET, "%s", why.text) : r;
}

/* Counted for ever, whatever becomes of it; and what the broker will do for it, until it is known. */
static int
check_budgets(struct asking *a, struct err *err)
{
	const struct budget_of of = budget_of_task(a);
	const struct provider *provider = a->read ? &a->op->provider : &a->op->verify_provider;
	bool call = a->read || a->op->verify.n != 0;
	int r = budget_take(a->engine, &of, COUNTER_PROPOSALS, 1, err);

	if (r == 0 && call) {
		a->call_bytes = provider->response_max;
		r = budget_call_reserve(a->engine, &of, a->call_bytes, err);
	}
	return over_budget(r, err);
}

/* Nobody's proposals may take the room that others, executions and decisions need. */
static int
check_broker(struct asking *a, struct err *err)
{
	unsigned all = 0, tenant = 0;

	if (a->engine->stopping || !broker_there(a->engine))
		return DENY(
			err, BROKER_UNAVAILABLE, "%s", denial_sentence(DENIAL_BROKER_UNAVAILABLE));
	list_each (w, &a->engine->broker.waits, struct broker_wait, link)
		if (w->expected == MSG_VERIFIED || w->expected == MSG_READ_DONE) {
			const struct asked *other = container_of(w, struct asked, wait);

			all++;
			tenant += strcmp(other->tenant, a->task.tenant) == 0;
		}
	if (all >= LIMIT_CHECKS || tenant >= LIMIT_CHECKS_PER_TENANT)
		return DENY(err, BROKER_UNAVAILABLE,
			"as many proposals are being checked as may be at the same time");
	return 0;
}

static int
check_all(struct asking *a, struct err *err)
{
	static int (*const checks[])(struct asking *, struct err *) = {check_bytes, check_contained,
		check_task, check_posture, check_operation, check_authority, check_cap,
		check_budgets, check_broker};
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_LEN(checks); i++)
		r = checks[i](a, err);
	return r;
}

/* ---- labels: where the arguments came from ---- */

/* The label of a name in the pairs of the caller; empty when it gave none. */
static struct view
label_of(struct view pairs, struct view name)
{
	while (pairs.n > 0) {
		struct view part[2];

		for (int i = 0; i < 2; i++) {
			const uint8_t *end = memchr(pairs.p, '\0', pairs.n);
			size_t n = end != NULL ? (size_t)(end - pairs.p) : pairs.n;

			part[i] = view_of(pairs.p, n);
			pairs = view_skip(pairs, n + 1);
		}
		if (view_eq(part[0], name))
			return part[1];
	}
	return view_of(NULL, 0);
}

static bool
has_name(struct view names, struct view name)
{
	while (names.n > 0) {
		const uint8_t *end = memchr(names.p, '\0', names.n);
		size_t n = end != NULL ? (size_t)(end - names.p) : names.n;

		if (view_eq(view_of(names.p, n), name))
			return true;
		names = view_skip(names, n + 1);
	}
	return false;
}

static struct view
origin_of(const struct asking *a, struct view name)
{
	struct view label = label_of(a->labels, name);

	if (has_name(buf_view(&a->p.defaulted), name))
		return view_str("default");
	if (a->s != NULL)
		return view_str("sandbox");
	return label.n != 0 ? label : view_str("caller");
}

static int
provenance(struct asking *a, struct err *err)
{
	struct canon_reader r;
	struct canon_writer w;
	struct canon_token t = {0};
	int e;

	canon_reader_init(&r, buf_view(&a->p.arguments), true);
	canon_begin(&w, &a->p.provenance);
	canon_object_begin(&w);
	e = canon_want(&r, CANON_OBJECT_BEGIN, &t, err);
	while (e == 0 && (e = canon_next(&r, &t, err)) == 0 && t.type == CANON_KEY) {
		canon_key(&w, t.raw);
		canon_str(&w, origin_of(a, t.raw));
		e = canon_skip(&r, err);
	}
	canon_object_end(&w);
	if (e == 0)
		e = canon_end(&w, err);
	return e;
}

static bool
label_ok(struct view label)
{
	return view_is(label, "ticket") || view_is(label, "db") || view_is(label, "model") ||
	       view_is(label, "human");
}

/* name NUL label NUL, again and again. */
static int
labels_ok(struct view pairs, struct err *err)
{
	while (pairs.n > 0) {
		struct view part[2] = {0};

		for (int i = 0; i < 2; i++) {
			const uint8_t *end = pairs.n == 0 ? NULL : memchr(pairs.p, '\0', pairs.n);

			if (end == NULL)
				return REFUSE(
					err, BAD_REQUEST, "provenance: a name without a label");
			part[i] = view_of(pairs.p, (size_t)(end - pairs.p));
			pairs = view_skip(pairs, part[i].n + 1);
		}
		if (part[0].n == 0 || !label_ok(part[1]))
			return REFUSE(err, BAD_REQUEST,
				"provenance: the label of an argument is ticket, db, model or "
				"human");
	}
	return 0;
}

/* ---- the records ---- */

static void
put_denied(struct canon_writer *w, const void *arg)
{
	const struct asking *a = arg;
	uint8_t digest[32];

	sha256_of(a->bytes, digest);
	put_str(w, "denial", denial_text(a->p.denial));
	put_view(w, "operation", form_name_ok(a->operation) ? a->operation : view_str(""));
	put_digest(w, "proposal_digest", digest);
	put_bool(w, "read", a->read);
	put_str(w, "text", a->p.text);
}

static int
audit(struct asking *a, const char *event, void (*data)(struct canon_writer *, const void *),
	struct err *err)
{
	const struct audit_event ev = {.event = event,
		.tenant = a->task.tenant,
		.task = &a->task.id,
		.sandbox = a->s != NULL ? &a->s->id : NULL,
		.who = &a->asker.who,
		.request_id = view_str(a->asker.request_id),
		.data = data,
		.arg = a};

	return audit_append(a->engine, &ev, err);
}

/*
 * The denial, counted. When the budget of proposals itself is used up, a sandbox that goes on asking writes one record and no more.
 */
static int
record_denied(struct asking *a, const struct err *why, struct err *err)
{
	const struct budget_of of = budget_of_task(a);
	auto_tx struct tx tx = {0};
	int r;

	proposal_deny(&a->p, denial_of(why), view_str(why->text));
	r = tx_begin(&tx, a->engine->store, err);
	if (r == 0)
		r = budget_take(a->engine, &of, COUNTER_PROPOSALS, 1, err);
	if (r == -EDQUOT) {
		if (a->s != NULL && a->s->budget_told)
			return 0;
		tx_cleanup(&tx);
		r = tx_begin(&tx, a->engine->store, err);
		if (a->s != NULL)
			a->s->budget_told = true;
	}
	if (r == 0)
		r = audit(a, a->read ? "read.denied" : "proposal.denied", put_denied, err);
	return r == 0 ? tx_commit(&tx, err) : r;
}

static void
put_proposed(struct canon_writer *w, const void *arg)
{
	const struct asking *a = arg;
	uint8_t arguments[32], note[32];
	char grant[ID_TEXT];

	sha256_of(buf_view(&a->p.arguments), arguments);
	sha256_of(buf_view(&a->p.note), note);
	id_text(&a->p.grant, ID_GRANT, grant);
	put_str(w, "actor", a->p.actor);
	put_digest(w, "arguments_digest", arguments);
	put_str(w, "grant", grant);
	put_digest(w, "note_digest", note);
	put_digest(w, "request", a->p.request);
	put_str(w, "requester", a->p.requester);
}

static void
put_read(struct canon_writer *w, const void *arg)
{
	const struct asking *a = arg;
	uint8_t arguments[32];
	char grant[ID_TEXT], id[ID_TEXT];

	sha256_of(buf_view(&a->p.arguments), arguments);
	id_text(&a->p.grant, ID_GRANT, grant);
	id_text(&a->p.id, ID_PROPOSAL, id);
	put_str(w, "actor", a->p.actor);
	put_digest(w, "arguments_digest", arguments);
	put_str(w, "grant", grant);
	put_str(w, "operation", a->p.operation);
	put_str(w, "proposal", id);
}

/* A read leaves no row: it is over with its answer. */
static int
keep(struct asking *a, struct err *err)
{
	int r = grant_use(&a->grant, err);

	if (r == 0 && a->read)
		return audit(a, "read.asked", put_read, err);
	if (r == 0)
		r = provenance(a, err);
	if (r == 0)
		r = proposal_insert(&a->p, err);
	if (r == 0)
		r = proposal_audit(&a->p, "proposal.proposed", &a->asker.who,
			view_str(a->asker.request_id), put_proposed, a, err);
	return r;
}

/* 0: the row stands; SAME: it did before, p.id is its; else a denial or a fault, and nothing stands. */
static int
weigh(struct asking *a, struct err *err)
{
	auto_tx struct tx tx = {0};
	int r = tx_begin(&tx, a->engine->store, err);

	a->now_ms = clock_real_ms(); /* after the lock */
	a->p.created_ms = a->now_ms;
	if (r == 0)
		r = check_all(a, err);
	if (r == 0)
		r = keep(a, err);
	return r == 0 ? tx_commit(&tx, err) : r;
}

/* The earlier one is the answer: no grant is used, nothing is asked, nobody is bothered. */
static int
same(struct asking *a, struct err *err)
{
	const struct budget_of of = budget_of_task(a);
	const struct id id = a->p.id;
	auto_tx struct tx tx = {0};
	int r = tx_begin(&tx, a->engine->store, err);

	if (r == 0)
		r = proposal_load(&a->p, &id, err);
	if (r == 0)
		r = over_budget(budget_take(a->engine, &of, COUNTER_PROPOSALS, 1, err), err);
	if (r == 0)
		r = proposal_audit(&a->p, "proposal.duplicate", &a->asker.who,
			view_str(a->asker.request_id), NULL, NULL, err);
	if (r == 0)
		r = tx_commit(&tx, err);
	return r;
}

static void
go_on(struct asking *a, struct asked *w)
{
	w->asker = a->asker;
	w->op = a->op;
	w->proposal = a->p.id;
	w->task = a->task.id;
	w->grant = a->grant.id;
	(void)snprintf(w->tenant, sizeof(w->tenant), "%s", a->task.tenant);
	sha256_of(buf_view(&a->p.arguments), w->arguments);
	w->day = budget_day(a->now_ms);
	w->bytes = a->call_bytes;
	if (a->read)
		read_begin(w, buf_view(&a->p.arguments), buf_view(&a->grant.where));
	else
		verify_begin(w, &a->p, buf_view(&a->grant.where));
}

static void
ask(struct asking *a)
{
	auto_free struct asked *w = calloc(1, sizeof(*w));
	struct err why, err;
	int r = w != NULL ? weigh(a, &why) : err_set(&why, -ENOMEM, "no memory for a proposal");

	if (r == 0) {
		go_on(a, take_ptr(w));
		return;
	}
	if (r == SAME)
		r = same(a, &why);
	if (r == 0) {
		asker_proposed(&a->asker, &a->p, true);
		return;
	}
	if (record_denied(a, &why, &err) < 0)
		log_line("a denial is not recorded: %s", err.text);
	asker_denied(&a->asker, NULL, &why);
}

/* ---- who asks ---- */

int
on_propose(struct sandbox *s, struct ipc_msg *in, const struct msg_propose *m, struct err *err)
{
	auto_asking struct asking a;
	int r;

	asking_init(&a, s->engine);
	if (s->proposing_n >= PROPOSE_LIVE_MAX)
		return err_set(
			err, -EPROTO, "more than %d proposals without an answer", PROPOSE_LIVE_MAX);
	r = task_load(&a.task, &s->task, err);
	if (r < 0)
		return r;
	s->proposing_n++;
	a.s = s;
	a.posture = s->spawned &&
		    (s->state == SANDBOX_STATE_RUNNING || s->state == SANDBOX_STATE_PAUSED) &&
		    create_facts_right(s);
	a.read = m->read;
	a.bytes = m->proposal;
	a.asker.sandbox = s->id;
	a.asker.tag = in->tag;
	a.asker.who = principal_sandbox(&s->id);
	a.p.sandbox = s->id;
	a.p.task = s->task;
	(void)snprintf(a.p.tenant, sizeof(a.p.tenant), "%s", a.task.tenant);
	(void)snprintf(a.p.actor, sizeof(a.p.actor), "%s", a.asker.who.name);
	(void)snprintf(a.p.requester, sizeof(a.p.requester), "%s", a.task.owner);
	ask(&a);
	return 0;
}

int
on_proposal_create(
	struct engine *e, struct reply to, const struct msg_proposal_create *m, struct err *err)
{
	auto_asking struct asking a;
	int r;

	asking_init(&a, e);
	r = caller_find(e, &m->caller, &a.asker.who, err);
	if (r == 0)
		r = task_find_name(&a.task, &a.asker.who, m->task, err);
	if (r == 0)
		r = labels_ok(m->provenance, err);
	if (r < 0)
		return r;
	a.bytes = m->proposal;
	a.posture = true; /* no sandbox has a part in it */
	a.labels = m->provenance;
	a.asker.to = to;
	(void)snprintf(
		a.asker.request_id, sizeof(a.asker.request_id), "%.*s", VIEW_ARGS(m->request_id));
	a.p.task = a.task.id;
	(void)snprintf(a.p.tenant, sizeof(a.p.tenant), "%s", a.task.tenant);
	principal_text(&a.asker.who, a.p.actor);
	r = principal_first(e, a.p.actor, a.p.requester, err);
	if (r < 0)
		return r;
	ask(&a);
	return 0;
}
