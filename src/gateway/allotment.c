/* SPDX-License-Identifier: Apache-2.0 */
/* Slices of the task's budgets; see allotment.h. */
#include "allotment.h"

#include "conn.h"
#include "dns_serve.h"
#include "limits.h"
#include "names.h"

struct allotment {
	struct gateway *g; /* borrowed */
	uint64_t used[OF_MAX], total[OF_MAX];
	uint64_t low[OF_MAX]; /* when so little is left, more is asked for */
	bool asked;           /* ALLOTMENT_ASK is on its way */
	bool over;            /* what is lent is all that the task has */
	bool wanting;         /* ... and something could not be taken when it was sent */
	bool refused;         /* so it was the last time, and there was no more */
	ev_tstamp retry; /* not asked again before this; but once when something cannot be taken */
};

static struct egress
used_of(const struct allotment *a)
{
	return (struct egress){
		.names = a->used[OF_NAMES],
		.connections = a->used[OF_CONNECTIONS],
		.handshakes = a->used[OF_HANDSHAKES],
		.requests = a->used[OF_REQUESTS],
		.brokered = a->used[OF_BROKERED],
		.bytes_out = a->used[OF_BYTES_OUT],
		.bytes_in = a->used[OF_BYTES_IN],
	};
}

static void
ask(struct allotment *a, bool wanting)
{
	bool rests = ev_now(a->g->loop) < a->retry && (!wanting || a->refused);

	if (a->g->engine == NULL || a->asked || a->over || rests)
		return;
	a->asked = true;
	a->wanting = wanting;
	IPC_SEND(a->g->engine, 0, ALLOTMENT_ASK, allotment_ask, {.used = used_of(a)});
}

struct allotment *
allotment_new(struct gateway *g)
{
	struct allotment *a = calloc(1, sizeof(*a));

	if (a != NULL)
		a->g = g;
	return a;
}

/* The engine hears what was used, so that the rest is not lost to the task. */
void
allotment_free(struct allotment *a)
{
	if (a != NULL && a->g->begun && a->g->engine != NULL)
		IPC_SEND(a->g->engine, 0, ALLOTMENT_ASK, allotment_ask, {.used = used_of(a)});
	free(a);
}

uint64_t
allotment_left(struct gateway *g, enum allotment_of of, uint64_t n)
{
	const struct allotment *a = g->allotment;
	uint64_t left = a->total[of] > a->used[of] ? a->total[of] - a->used[of] : 0;

	return left < n ? left : n;
}

bool
allotment_take(struct gateway *g, enum allotment_of of, uint64_t n)
{
	struct allotment *a = g->allotment;
	bool fits = allotment_left(g, of, n) == n;

	if (fits)
		a->used[of] += n;
	if (!fits || a->total[of] - a->used[of] <= a->low[of])
		ask(a, !fits);
	return fits;
}

/* The policy writes it out, so it says nothing to whoever hears it. */
static bool
is_written_out(const struct policy *p, struct view name)
{
	for (size_t i = 0; i < p->nrules; i++)
		if (p->rule[i].labels == LABELS_NONE && view_eq(p->rule[i].host, name))
			return true;
	return false;
}

bool
allotment_name(struct gateway *g, struct view name)
{
	struct address a;
	struct err err = {0};

	if (address_parse(name, &a) == 0 || names_has(g->names, name))
		return true;
	if (!is_written_out(&g->policy, name) && !allotment_take(g, OF_NAMES, 1))
		return false;
	return names_address(g->names, name, &a, &err) == 0;
}

bool
allotment_coming(const struct gateway *g)
{
	const struct allotment *a = g->allotment;

	return a->asked || (g->engine == NULL && !a->over);
}

void
allotment_set(struct gateway *g, const struct msg_allotment *m)
{
	struct allotment *a = g->allotment;
	const uint64_t total[OF_MAX] = {
		[OF_NAMES] = m->total.names,
		[OF_CONNECTIONS] = m->total.connections,
		[OF_HANDSHAKES] = m->total.handshakes,
		[OF_REQUESTS] = m->total.requests,
		[OF_BROKERED] = m->total.brokered,
		[OF_BYTES_OUT] = m->total.bytes_out,
		[OF_BYTES_IN] = m->total.bytes_in,
	};
	bool more = false;

	for (size_t i = 0; i < OF_MAX; i++) {
		more = more || total[i] > a->total[i];
		a->total[i] = total[i];
		a->low[i] = total[i] > a->used[i] ? (total[i] - a->used[i]) / 2 : 0;
	}
	a->asked = false;
	a->over = m->over;
	a->refused = a->wanting && !more;
	a->retry = more ? 0 : ev_now(g->loop) + (double)LIMIT_BUDGET_RETRY_MS / 1e3;
	conns_wake(g);
	dns_wake(g);
}

void
allotment_engine(struct gateway *g, bool there)
{
	struct allotment *a = g->allotment;

	a->asked = a->over = a->refused = false;
	a->retry = 0;
	if (there)
		ask(a, false);
}
