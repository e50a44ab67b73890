/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verdicts and what is only counted; see verdict.h. Invariants: an allowed exchange goes on without a new record only when its kind has one, and
 * the engine is there to be told how often; a count that was made is told by a FLOW, unless the engine never comes back.
 */
#include "verdict.h"

#include "limits.h"

#include <errno.h>

enum { BUCKETS = 256 };

/* What a record and its counts have in common. */
struct kind {
	struct kind *next; /* of its bucket */
	struct kind *due;  /* the next one that a FLOW is owed for */
	bool owed;
	bool kept; /* the engine has a record of it */
	enum verdict verdict;
	enum egress_reason reason;
	enum egress_scheme scheme;
	uint16_t rule, port;
	uint8_t name_n;
	uint32_t count;
	uint64_t out, in;
	char name[];
};

struct verdict_wait {
	struct link link;
	struct kind *kind; /* borrowed; NULL beyond LIMIT_KINDS */
	uint64_t tag;
	struct buf body; /* VERDICT, packed: told again to an engine that is back */
	ev_tstamp until;
	verdict_kept_fn *kept;
	void *owner;
};

struct verdicts {
	struct gateway *g; /* borrowed */
	struct kind *bucket[BUCKETS];
	size_t nkinds;
	struct kind *rest[VERDICT_MAX][EGRESS_REASON_MAX]; /* beyond LIMIT_KINDS, without a name */
	struct kind *due;
	struct link waits; /* oldest first */
	uint64_t tag;
	double tokens;
	ev_tstamp filled;
	ev_timer late, flow;
};

static size_t
hash_of(const struct verdict_of *v)
{
	uint32_t h = 2166136261u;

	for (size_t i = 0; i < v->name.n; i++)
		h = (h ^ v->name.p[i]) * 16777619u;
	h = (h ^ (unsigned)v->verdict) * 16777619u;
	h = (h ^ (unsigned)v->reason) * 16777619u;
	h = (h ^ (unsigned)v->scheme) * 16777619u;
	h = (h ^ v->rule) * 16777619u;
	h = (h ^ v->port) * 16777619u;
	return (h ^ h >> 16) % BUCKETS;
}

static struct kind *
kind_new(const struct verdict_of *v)
{
	struct kind *k = calloc(1, sizeof(*k) + v->name.n);

	if (k == NULL)
		return NULL;
	k->verdict = v->verdict;
	k->reason = v->reason;
	k->scheme = v->scheme;
	k->rule = v->rule;
	k->port = v->port;
	k->name_n = (uint8_t)v->name.n;
	if (v->name.n > 0)
		memcpy(k->name, v->name.p, v->name.n);
	return k;
}

/* NULL: there are as many as are counted each by itself. */
static struct kind *
kind_of(struct verdicts *s, const struct verdict_of *v)
{
	struct kind **at = &s->bucket[hash_of(v)], *k;

	must(v->name.n <= HOST_NAME_MAX_BYTES);
	for (k = *at; k != NULL; k = k->next)
		if (k->rule == v->rule && k->port == v->port && k->verdict == v->verdict &&
			k->reason == v->reason && k->scheme == v->scheme &&
			view_eq(view_of(k->name, k->name_n), v->name))
			return k;
	if (s->nkinds >= LIMIT_KINDS)
		return NULL;
	k = kind_new(v);
	if (k == NULL)
		return NULL;
	k->next = *at;
	*at = k;
	s->nkinds++;
	return k;
}

/* Where it is counted when it has no kind of its own. NULL only without memory. */
static struct kind *
rest_of(struct verdicts *s, const struct verdict_of *v)
{
	struct kind **at = &s->rest[v->verdict][v->reason];

	if (*at == NULL)
		*at = kind_new(&(struct verdict_of){
			.verdict = v->verdict, .reason = v->reason, .rule = EGRESS_NO_RULE});
	return *at;
}

static bool
token(struct verdicts *s)
{
	ev_tstamp now = ev_now(s->g->loop);

	s->tokens += (now - s->filled) * (double)LIMIT_VERDICTS_S;
	s->filled = now;
	if (s->tokens > (double)LIMIT_VERDICTS)
		s->tokens = (double)LIMIT_VERDICTS;
	if (s->tokens < 1)
		return false;
	s->tokens -= 1;
	return true;
}

/*
 * The engine reads a gateway at its own rate. Beyond what may wait for it nothing new is told: it does not happen, or is only counted. Else a
 * program could fill the edge until it breaks, and its sandbox ends with it.
 */
static bool
hears(const struct gateway *g)
{
	return g->engine != NULL && g->engine->queued_bytes < LIMIT_TOLD_BYTES;
}

static void
flow_arm(struct verdicts *s)
{
	if (ev_is_active(&s->flow))
		return;
	ev_timer_set(&s->flow, (double)LIMIT_FLOW_MS / 1e3, 0);
	ev_timer_start(s->g->loop, &s->flow);
}

static void
owe(struct verdicts *s, struct kind *k)
{
	if (k == NULL || k->owed)
		return;
	k->owed = true;
	k->due = s->due;
	s->due = k;
	flow_arm(s);
}

static void
flows_tell(struct verdicts *s)
{
	if (s->g->engine == NULL)
		return; /* when it is back */
	while (s->due != NULL) {
		struct kind *k = s->due;

		IPC_SEND(s->g->engine, 0, FLOW, flow,
			{.verdict = k->verdict,
				.reason = k->reason,
				.scheme = k->scheme,
				.rule = k->rule,
				.port = k->port,
				.name = view_of(k->name, k->name_n),
				.count = k->count,
				.bytes_out = k->out,
				.bytes_in = k->in});
		k->count = 0;
		k->out = k->in = 0;
		s->due = k->due;
		k->owed = false;
	}
}

static void
on_flow(struct ev_loop *loop, ev_timer *w, int events)
{
	struct verdicts *s = container_of(w, struct verdicts, flow);

	(void)loop, (void)events;
	if (s->g->engine == NULL || hears(s->g))
		flows_tell(s);
	else
		flow_arm(s);
}

static void
pack(struct buf *b, const struct verdict_of *v)
{
	struct msg_verdict m = {
		.verdict = v->verdict,
		.reason = v->reason,
		.scheme = v->scheme,
		.rule = v->rule,
		.port = v->port,
		.name = v->name,
		.address = v->address,
		.method = v->method,
		.path = v->path.n <= 1024 ? v->path : view_of(NULL, 0),
		.query = v->query.n <= 1024 ? v->query : view_of(NULL, 0),
	};

	if (v->digest != NULL)
		memcpy(m.digest, v->digest, sizeof(m.digest));
	msg_verdict_put(b, &m);
	must(buf_check(b) == 0);
}

void
verdict_tell(struct gateway *g, const struct verdict_of *v)
{
	struct verdicts *s = g->verdicts;
	struct kind *k = kind_of(s, v);
	bool first = k != NULL && !k->kept;

	if (hears(g) && (first || token(s))) {
		struct buf b;

		buf_init(&b, IPC_MAX);
		pack(&b, v);
		ipc_peer_send(g->engine, MSG_VERDICT, 0, buf_view(&b), NULL, 0);
		buf_done(&b);
		if (k != NULL)
			k->kept = true;
		return;
	}
	k = k != NULL ? k : rest_of(s, v);
	if (k != NULL)
		k->count++;
	owe(s, k);
}

static void
wait_send(struct verdict_wait *w, struct gateway *g)
{
	ipc_peer_send(g->engine, MSG_VERDICT, w->tag, buf_view(&w->body), NULL, 0);
}

static void
wait_free(struct verdict_wait *w)
{
	list_remove(&w->link);
	buf_done(&w->body);
	free(w);
}

/* Times are equal for all, so the oldest is the first to be late. */
static void
late_arm(struct verdicts *s)
{
	ev_timer_stop(s->g->loop, &s->late);
	if (list_empty(&s->waits))
		return;
	struct verdict_wait *w = container_of(s->waits.next, struct verdict_wait, link);
	ev_tstamp in = w->until - ev_now(s->g->loop);

	ev_timer_set(&s->late, in > 0 ? in : 0, 0);
	ev_timer_start(s->g->loop, &s->late);
}

static void
on_late(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct verdicts *s = container_of(timer, struct verdicts, late);

	(void)events;
	while (!list_empty(&s->waits)) {
		struct verdict_wait *w = container_of(s->waits.next, struct verdict_wait, link);
		verdict_kept_fn *kept = w->kept;
		void *owner = w->owner;

		if (w->until > ev_now(loop))
			break;
		wait_free(w);
		kept(owner, EGRESS_REASON_AUDIT);
	}
	late_arm(s);
}

/* A lease is given for a request that is itself on record. */
static bool
leased(const struct gateway *g, const struct verdict_of *v)
{
	return v->rule < g->policy.nrules && g->policy.rule[v->rule].kind == RULE_KIND_BROKERED;
}

struct verdict_wait *
verdict_ask(struct gateway *g, const struct verdict_of *v, verdict_kept_fn *kept, void *owner)
{
	struct verdicts *s = g->verdicts;
	struct kind *k = kind_of(s, v);
	struct verdict_wait *w;

	if (k != NULL && k->kept && g->engine != NULL && !token(s) && !leased(g, v)) {
		k->count++;
		owe(s, k);
		kept(owner, EGRESS_REASON_NONE);
		return NULL;
	}
	w = g->engine == NULL || hears(g) ? calloc(1, sizeof(*w)) : NULL;
	if (w == NULL) {
		kept(owner, EGRESS_REASON_AUDIT);
		return NULL;
	}
	*w = (struct verdict_wait){.kind = k, .tag = ++s->tag, .kept = kept, .owner = owner};
	w->until = ev_now(g->loop) + (double)LIMIT_WAIT_MS / 1e3;
	buf_init(&w->body, IPC_MAX);
	pack(&w->body, v);
	list_append(&s->waits, &w->link);
	if (g->engine != NULL)
		wait_send(w, g);
	if (!ev_is_active(&s->late))
		late_arm(s);
	return w;
}

void
verdict_forget(struct verdict_wait *w)
{
	if (w != NULL)
		wait_free(w);
}

void
verdict_bytes(struct gateway *g, const struct verdict_of *v, uint64_t out, uint64_t in)
{
	struct verdicts *s = g->verdicts;
	struct kind *k = kind_of(s, v);

	k = k != NULL ? k : rest_of(s, v);
	if (k == NULL || out + in == 0)
		return;
	k->out += out;
	k->in += in;
	owe(s, k);
}

/* What the engine no longer keeps is asked for each time. */
static void
kinds_forget(struct verdicts *s)
{
	for (size_t i = 0; i < BUCKETS; i++)
		for (struct kind *k = s->bucket[i]; k != NULL; k = k->next)
			k->kept = false;
}

int
verdict_kept(struct gateway *g, uint64_t tag, bool kept, enum egress_reason reason, struct err *err)
{
	struct verdicts *s = g->verdicts;

	if (tag > s->tag)
		return err_set(err, -EPROTO, "VERDICT_KEPT of a verdict that was not told");
	if (!kept)
		kinds_forget(s);
	list_each (w, &s->waits, struct verdict_wait, link) {
		verdict_kept_fn *told = w->kept;
		void *owner = w->owner;

		if (w->tag != tag)
			continue;
		if (w->kind != NULL)
			w->kind->kept = kept;
		wait_free(w);
		if (kept)
			reason = EGRESS_REASON_NONE;
		else if (reason == EGRESS_REASON_NONE)
			reason = EGRESS_REASON_AUDIT;
		told(owner, reason);
		break;
	}
	return 0; /* nobody waits for those that were refused, or whose program left */
}

/* A new engine has what the old one had on disk; who still waits is told of again. */
void
verdicts_engine(struct gateway *g, bool there)
{
	struct verdicts *s = g->verdicts;

	if (!there)
		return;
	list_each (w, &s->waits, struct verdict_wait, link)
		wait_send(w, g);
	flows_tell(s);
}

struct verdicts *
verdicts_new(struct gateway *g)
{
	struct verdicts *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return NULL;
	s->g = g;
	s->tokens = (double)LIMIT_VERDICTS;
	s->filled = ev_now(g->loop);
	list_init(&s->waits);
	ev_init(&s->late, on_late);
	ev_init(&s->flow, on_flow);
	return s;
}

void
verdicts_free(struct verdicts *s)
{
	if (s == NULL)
		return;
	flows_tell(s);
	ev_timer_stop(s->g->loop, &s->late);
	ev_timer_stop(s->g->loop, &s->flow);
	while (!list_empty(&s->waits))
		wait_free(container_of(s->waits.next, struct verdict_wait, link));
	for (size_t i = 0; i < BUCKETS; i++)
		while (s->bucket[i] != NULL) {
			struct kind *k = s->bucket[i];

			s->bucket[i] = k->next;
			free(k);
		}
	for (size_t i = 0; i < VERDICT_MAX; i++)
		for (size_t j = 0; j < EGRESS_REASON_MAX; j++)
			free(s->rest[i][j]);
	free(s);
}
