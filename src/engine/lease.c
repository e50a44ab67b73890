/* SPDX-License-Identifier: Apache-2.0 */
/* Brokered requests; see lease.h. */
#include "engine/lease.h"

#include "engine/limits.h"
#include "engine/loan.h"
#include "engine/propose.h"
#include "lib/base/clock.h"

#include <errno.h>

/* With the broker. */
struct lease {
	struct link link;
	struct gate *gate; /* borrowed; NULL: it is no more */
	struct broker_wait wait;
	uint64_t tag;
	struct id id;
};

/* ---- what is counted ---- */

/* The same rule in another revision is the same: who edits the file gives no uses back. */
static void
rule_key(const struct rule *r, uint8_t ret[static 32])
{
	const uint8_t numbers[] = {(uint8_t)r->labels, (uint8_t)(r->port >> 8), (uint8_t)r->port};
	struct sha256 h;

	sha256_init(&h);
	sha256_add(&h, numbers, sizeof(numbers));
	sha256_add_part(&h, r->host);
	sha256_add_part(&h, r->path);
	sha256_add_part(&h, r->credential_secret);
	sha256_end(&h, ret);
}

/* Is one of the rule's uses left. */
static int
uses_left(struct gate *g, const struct rule *rule, bool *ret, struct err *err)
{
	auto_query struct query q = query_of(g->sandbox->engine->store, Q_USE_GET);
	uint8_t key[32];
	int r;

	*ret = true;
	if (rule->uses == 0)
		return 0;
	rule_key(rule, key);
	arg_id(&q, &g->sandbox->task);
	arg_digest(&q, key);
	r = query_next(&q, err);
	if (r > 0)
		*ret = col_u64(&q) < rule->uses;
	return r < 0 ? r : 0;
}

static int
uses_add(struct gate *g, const struct rule *rule, struct err *err)
{
	auto_query struct query q = query_of(g->sandbox->engine->store, Q_USE_ADD);
	uint8_t key[32];

	if (rule->uses == 0)
		return 0;
	rule_key(rule, key);
	arg_id(&q, &g->sandbox->task);
	arg_digest(&q, key);
	return query_run(&q, err);
}

static void
put_lease(struct canon_writer *w, const void *arg)
{
	const struct said *d = arg;
	char id[ID_TEXT];

	id_text(&d->lease, ID_LEASE, id);
	put_digest(w, "digest", d->digest);
	put_str(w, "lease", id);
	put_digest(w, "policy", d->gate->policy->digest);
	put_u64(w, "rule", d->rule + UINT64_C(1)); /* as people count them */
}

static int
record(struct said *d, struct err *err)
{
	const struct principal who = principal_sandbox(&d->gate->sandbox->id);

	id_new(&d->lease);
	return sandbox_audit(
		d->gate->sandbox, "egress.lease", &who, view_of(NULL, 0), put_lease, d, err);
}

/* ---- the decision ---- */

/* The verdict of exactly this request was kept, and nothing was leased for it yet. */
static struct kept *
kept_find(struct gate *g, uint16_t rule, const uint8_t digest[static 32])
{
	uint64_t now = clock_mono_ms();

	for (size_t i = 0; i < KEPT_MAX; i++)
		if (g->kept[i].until_ms > now && g->kept[i].rule == rule &&
			memcmp(g->kept[i].digest, digest, 32) == 0)
			return &g->kept[i];
	return NULL;
}

static int
deny(struct said *d, enum egress_reason reason)
{
	d->result = reason;
	return 0;
}

/* Nothing is taken when there is not one of both. */
static int
take(struct said *d, struct err *err)
{
	struct gate *g = d->gate;
	const struct rule *rule = &g->policy->rule[d->rule];
	bool left = false;
	int r = uses_left(g, rule, &left, err);

	if (r == 0 && left)
		r = loan_lease(g, err);
	if (r <= 0)
		return r < 0 ? r : deny(d, EGRESS_REASON_QUOTA);
	r = uses_add(g, rule, err);
	return r < 0 ? r : record(d, err);
}

int
lease_write(struct said *d, struct err *err)
{
	struct gate *g = d->gate;
	struct kept *k = kept_find(g, d->rule, d->digest);
	int r = gate_may(g, &d->result, err);

	if (r < 0 || d->result != EGRESS_REASON_NONE)
		return r;
	if (k == NULL)
		return deny(d, EGRESS_REASON_AUDIT);
	if (!broker_there(g->sandbox->engine) || g->leases_n >= LIMIT_LEASES)
		return deny(d, EGRESS_REASON_BROKER);
	k->until_ms = 0; /* whatever becomes of it */
	return take(d, err);
}

/* ---- the broker ---- */

static void
tell(struct gate *g, uint64_t tag, enum egress_reason reason, const struct id *id)
{
	struct msg_lease_is m = {.reason = reason};

	if (id != NULL)
		m.lease = *id;
	IPC_SEND(g->peer, tag, LEASE_IS, lease_is, m);
}

static void
lease_free(struct lease *l)
{
	list_remove(&l->link);
	if (l->gate != NULL)
		l->gate->leases_n--;
	free(l);
}

/* What was contained meanwhile is not told: nobody can use it. */
static void
on_leased(struct broker_wait *w, const struct broker_answer *a)
{
	struct lease *l = container_of(w, struct lease, wait);
	struct gate *g = l->gate;
	enum egress_reason reason = EGRESS_REASON_BROKER;
	struct err err;

	if (g != NULL && g->peer != NULL) {
		if (!a->lost && a->denial == DENIAL_NONE && gate_may_now(g, &reason, &err) < 0)
			reason = EGRESS_REASON_AUDIT;
		tell(g, l->tag, reason, reason == EGRESS_REASON_NONE ? &l->id : NULL);
	}
	lease_free(l);
}

void
lease_answer(struct said *d)
{
	struct gate *g = d->gate;
	struct lease *l = d->result == EGRESS_REASON_NONE ? calloc(1, sizeof(*l)) : NULL;
	struct msg_lease m = {.lease = d->lease,
		.sandbox = g->sandbox->id,
		.rule = d->rule,
		.valid_ms = (uint32_t)LIMIT_LEASE_MS};
	struct err err;

	if (l == NULL) {
		tell(g, d->tag, d->result == EGRESS_REASON_NONE ? EGRESS_REASON_BROKER : d->result,
			NULL);
		return;
	}
	*l = (struct lease){.gate = g, .tag = d->tag, .id = d->lease, .wait = {.done = on_leased}};
	list_append(&g->leases, &l->link);
	g->leases_n++;
	memcpy(m.digest, d->digest, 32);
	if (BROKER_ASK(g->sandbox->engine, &l->wait, LEASE, lease, BROKER_DONE, &err, m) < 0) {
		tell(g, d->tag, EGRESS_REASON_BROKER, NULL);
		lease_free(l);
	}
}

void
leases_forget(struct gate *g)
{
	list_each (l, &g->leases, struct lease, link) {
		list_remove(&l->link);
		l->gate = NULL;
	}
	g->leases_n = 0;
}
