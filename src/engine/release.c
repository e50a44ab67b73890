/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RELEASE: a person with the role `release` gives a scope its authority back. The broker tests the signature and keeps it; here it is
 * tested that nothing of the scope is unsettled, before the broker is asked and again when it answered. No grant and no
 * proposal comes back: what is left of them is taken in the same transaction.
 */
#include "engine/contain.h"

#include "engine/outbox.h"
#include "engine/propose.h"
#include "lib/action/record.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

#include <errno.h>

struct release {
	struct broker_wait wait;
	struct engine *engine;
	struct reply to;
	struct principal who;
	char request_id[65];
	struct scope scope;
	struct buf release, signature;
};

static void
release_free(struct release *v)
{
	buf_done(&v->release);
	buf_done(&v->signature);
	free(v);
}

static void
release_cleanup(struct release **v)
{
	if (*v != NULL)
		release_free(*v);
}
#define auto_release __attribute__((cleanup(release_cleanup)))

/* The containment, when it may be lifted now. */
static int
check(struct engine *e, const struct scope *s, struct containment *ret, struct err *err)
{
	uint32_t open = 0;
	int r = containment_load(e, s, ret, err);

	if (r == 0)
		return REFUSE(err, CONFLICT, "%s is not contained", s->text);
	if (r > 0)
		r = scope_open(e, s, &open, err);
	if (r < 0 || open == 0)
		return r;
	return DENY(err, RELEASE_BLOCKED,
		"%u execution(s) of %s are dispatching or unknown; each must be reconciled first",
		(unsigned)open, s->text);
}

/* ---- the broker says whose it is ---- */

struct released {
	const struct containment *c;
	const struct msg_decision_is *by;
	const struct release *v;
};

static void
put_released(struct canon_writer *w, const void *arg)
{
	const struct released *d = arg;
	uint8_t digest[SHA256_BYTES];

	put_view(w, "approver", d->by->approver);
	put_view(w, "key", d->by->key);
	sha256_of(buf_view(&d->v->release), digest);
	put_digest(w, "release", digest);
	put_str(w, "scope", d->c->scope.text);
}

static int
write_row(struct release *v, const struct containment *c, struct view approver, struct err *err)
{
	auto_query struct query q = query_of(v->engine->store, Q_CONTAINMENT_RELEASE);

	arg_u64(&q, c->released_ms);
	arg_view(&q, approver);
	arg_blob(&q, buf_view(&v->release));
	arg_blob(&q, buf_view(&v->signature));
	arg_u64(&q, c->seq);
	return query_run(&q, err);
}

static int
record(struct release *v, const struct msg_decision_is *by, struct containment *c, struct err *err)
{
	const struct released d = {.c = c, .by = by, .v = v};
	const struct audit_event ev = {.event = "release",
		.tenant = v->scope.tenant,
		.task = id_is_zero(&v->scope.task) ? NULL : &v->scope.task,
		.who = &v->who,
		.request_id = view_str(v->request_id),
		.data = put_released,
		.arg = &d};
	auto_tx struct tx tx = {0};
	int r = tx_begin(&tx, v->engine->store, err);

	if (r == 0)
		r = check(v->engine, &v->scope, c, err);
	if (r == 0)
		r = containment_take(v->engine, c, &v->who, view_str(v->request_id), err);
	if (r < 0)
		return r;
	c->released_ms = clock_real_ms();
	r = write_row(v, c, by->approver, err);
	if (r == 0)
		r = audit_append(v->engine, &ev, err);
	if (r == 0)
		r = tx_commit(&tx, err);
	if (r == 0)
		store_sync(v->engine->store);
	return r;
}

static void
on_released(struct broker_wait *w, const struct broker_answer *a)
{
	auto_release struct release *v = container_of(w, struct release, wait);
	enum denial denial = a->denial != DENIAL_NONE ? a->denial : a->m.decision_is.denial;
	struct view text = a->denial != DENIAL_NONE ? a->text : a->m.decision_is.text;
	struct msg_containment_row row;
	struct containment c;
	struct err err;
	int r;

	if (denial != DENIAL_NONE)
		err_denied(&err, denial, text);
	r = denial != DENIAL_NONE ? err.code : record(v, &a->m.decision_is, &c, &err);
	if (r < 0) {
		answer_refused(v->engine, v->to, &err);
		return;
	}
	outbox_tell(v->engine);
	containment_row(&c, 0, &row);
	REPLY(v->engine, v->to, CONTAINMENT_ROW, containment_row, row);
}

/* ---- RELEASE ---- */

static struct release *
release_new(struct engine *e, struct reply to, const struct msg_release *m,
	const struct principal *p, struct err *err)
{
	auto_release struct release *v = calloc(1, sizeof(*v));

	if (v == NULL) {
		(void)err_set(err, -ENOMEM, "no memory for a release");
		return NULL;
	}
	v->engine = e;
	v->to = to;
	v->who = *p;
	v->wait.done = on_released;
	(void)snprintf(v->request_id, sizeof(v->request_id), "%.*s", VIEW_ARGS(m->request_id));
	buf_init(&v->release, DECISION_RECORD_MAX);
	buf_init(&v->signature, 4096);
	buf_add_view(&v->release, m->release);
	buf_add_view(&v->signature, m->signature);
	if (buf_check(&v->release) < 0 || buf_check(&v->signature) < 0) {
		(void)err_set(err, -ENOMEM, "no memory for a release");
		return NULL;
	}
	return take_ptr(v);
}

static int
read_scope(struct engine *e, const struct principal *p, struct view bytes, struct scope *ret,
	struct err *err)
{
	struct release_record record;
	auto_buf struct buf room;
	struct err why;
	int r;

	buf_init(&room, DECISION_RECORD_MAX);
	if (release_record_read(bytes, &room, &record, &why) < 0)
		return DENY(err, RECORD_MALFORMED, "the release is not one: %s", why.text);
	r = scope_read(e, p, record.scope, ret, err);
	/* The scope as it was signed, word for word: a ticket's name is not one. */
	if (r == 0 && !view_is(record.scope, ret->text))
		return DENY(err, RECORD_MALFORMED, "a release names its task by its id");
	return r;
}

int
on_release(struct engine *e, struct reply to, const struct msg_release *m, struct err *err)
{
	auto_release struct release *v = NULL;
	struct containment c;
	struct principal p;
	struct scope s;
	int r = caller_find(e, &m->caller, &p, err);

	if (r == 0)
		r = read_scope(e, &p, m->release, &s, err);
	if (r == 0)
		r = check(e, &s, &c, err);
	if (r < 0)
		return r;
	if (!broker_there(e))
		return DENY(err, BROKER_UNAVAILABLE, "the broker is not there at the moment");
	v = release_new(e, to, m, &p, err);
	if (v == NULL)
		return err->code;
	v->scope = s;
	r = BROKER_ASK(e, &v->wait, RELEASE_ASK, release_ask, DECISION_IS, err,
		{.release = m->release, .signature = m->signature});
	if (r == 0)
		(void)take_ptr(v); /* until it is answered */
	return r;
}
