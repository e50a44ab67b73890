/* SPDX-License-Identifier: Apache-2.0 */
/* Loans; see loan.h. */
#include "engine/loan.h"

#include <errno.h>

enum { SLICES = 8 };

enum {
#define BUDGET(name, least) AT_##name,
#include "engine/egress.def"
#undef BUDGET
	BUDGETS
};

/* struct egress as numbers in a row: its fields are these and no others, in this order. */
struct amounts {
	uint64_t n[BUDGETS];
};
_Static_assert(sizeof(struct amounts) == sizeof(struct egress), "a number for each budget");

static const uint64_t least[BUDGETS] = {
#define BUDGET(name, least) [AT_##name] = least,
#include "engine/egress.def"
#undef BUDGET
};

static struct amounts
amounts_of(const struct egress *e)
{
	return (struct amounts){{
#define BUDGET(name, least) [AT_##name] = e->name,
#include "engine/egress.def"
#undef BUDGET
	}};
}

static struct egress
egress_of(const struct amounts *a)
{
	return (struct egress){
#define BUDGET(name, least) .name = a->n[AT_##name],
#include "engine/egress.def"
#undef BUDGET
	};
}

struct loan {
	uint64_t leases;
	struct amounts lent, used;
};

/* ---- rows ---- */

static void
cols(struct query *q, struct amounts *ret)
{
	for (size_t i = 0; i < BUDGETS; i++)
		ret->n[i] = col_u64(q);
}

static void
args(struct query *q, const struct amounts *a)
{
	for (size_t i = 0; i < BUDGETS; i++)
		arg_u64(q, a->n[i]);
}

int
loan_begin(struct sandbox *s, struct err *err)
{
	struct store *store = s->engine->store;
	int r;

	{
		auto_query struct query q = query_of(store, Q_EGRESS_TASK_PUT);

		arg_id(&q, &s->task);
		r = query_run(&q, err);
	}
	if (r < 0)
		return r;
	auto_query struct query q = query_of(store, Q_LOAN_PUT);
	arg_id(&q, &s->id);
	arg_id(&q, &s->task);
	return query_run(&q, err);
}

static int
loan_get(struct gate *g, struct loan *ret, struct err *err)
{
	auto_query struct query q = query_of(g->sandbox->engine->store, Q_LOAN_GET);
	int r;

	arg_id(&q, &g->sandbox->id);
	r = query_one(&q, err);
	if (r < 0)
		return r;
	ret->leases = col_u64(&q);
	cols(&q, &ret->lent);
	cols(&q, &ret->used);
	return 0;
}

static int
loan_set(struct gate *g, const struct loan *l, struct err *err)
{
	auto_query struct query q = query_of(g->sandbox->engine->store, Q_LOAN_SET);

	args(&q, &l->lent);
	args(&q, &l->used);
	arg_id(&q, &g->sandbox->id);
	return query_run(&q, err);
}

static int
of_task(struct engine *e, const struct id *task, enum query_name name, struct amounts *ret,
	struct err *err)
{
	auto_query struct query q = query_of(e->store, name);
	int r;

	arg_id(&q, task);
	r = query_next(&q, err);
	*ret = (struct amounts){0};
	if (r > 0)
		cols(&q, ret);
	return r < 0 ? r : 0;
}

/* ---- lending ---- */

/* What is used never shrinks, and is never more than what was lent. */
static bool
plausible(const struct loan *l, const struct amounts *used)
{
	for (size_t i = 0; i < BUDGETS; i++)
		if (used->n[i] < l->used.n[i] || used->n[i] > l->lent.n[i])
			return false;
	return true;
}

/* Fills up to a slice what is down to a half of one. True: of nothing is anything left. */
static bool
lend(struct loan *l, const struct amounts *limit, const struct amounts *taken)
{
	bool over = true;

	for (size_t i = 0; i < BUDGETS; i++) {
		uint64_t slice = limit->n[i] / SLICES, has = l->lent.n[i] - l->used.n[i];
		uint64_t left = limit->n[i] > taken->n[i] ? limit->n[i] - taken->n[i] : 0;
		uint64_t more = 0;

		if (slice < least[i])
			slice = least[i];
		if (has <= slice / 2)
			more = slice - has < left ? slice - has : left;
		l->lent.n[i] += more;
		over = over && left == more;
	}
	return over;
}

int
loan_write(struct said *d, struct err *err)
{
	struct gate *g = d->gate;
	const struct amounts used = amounts_of(&d->used), limit = amounts_of(&g->policy->budgets);
	struct amounts taken;
	struct loan l;
	int r = loan_get(g, &l, err);

	if (r < 0)
		return r;
	if (!plausible(&l, &used)) {
		d->lied = true;
		return 0;
	}
	l.used = used;
	r = of_task(g->sandbox->engine, &g->sandbox->task, Q_LOAN_TAKEN, &taken, err);
	if (r < 0)
		return r;
	d->over = lend(&l, &limit, &taken);
	d->total = egress_of(&l.lent);
	return loan_set(g, &l, err);
}

int
loan_lease(struct gate *g, struct err *err)
{
	struct loan l;
	int r = loan_get(g, &l, err);

	if (r < 0)
		return r;
	if (l.leases >= l.lent.n[AT_brokered])
		return 0;
	auto_query struct query q = query_of(g->sandbox->engine->store, Q_LOAN_LEASE);
	arg_id(&q, &g->sandbox->id);
	r = query_run(&q, err);
	return r < 0 ? r : 1;
}

/* ---- the end ---- */

static uint64_t
most(uint64_t a, uint64_t b, uint64_t limit)
{
	uint64_t n = a > b ? a : b;

	return n < limit ? n : limit;
}

/* Its last word, and what the engine saw itself: leases, and bytes of flows. */
static struct amounts
used_of(const struct gate *g, const struct loan *l)
{
	struct amounts a = l->used;

	a.n[AT_brokered] = most(a.n[AT_brokered], l->leases, l->lent.n[AT_brokered]);
	a.n[AT_bytes_out] = most(a.n[AT_bytes_out], g->bytes_out, l->lent.n[AT_bytes_out]);
	a.n[AT_bytes_in] = most(a.n[AT_bytes_in], g->bytes_in, l->lent.n[AT_bytes_in]);
	return a;
}

int
loan_settle(struct gate *g, bool all, struct err *err)
{
	struct store *store = g->sandbox->engine->store;
	struct amounts used;
	struct loan l;
	int r = loan_get(g, &l, err);

	if (r < 0)
		return r;
	used = all ? l.lent : used_of(g, &l);
	{
		auto_query struct query q = query_of(store, Q_LOAN_SETTLE);

		args(&q, &used);
		arg_id(&q, &g->sandbox->task);
		r = query_run(&q, err);
	}
	if (r < 0)
		return r;
	auto_query struct query q = query_of(store, Q_LOAN_END);
	arg_id(&q, &g->sandbox->id);
	return query_run(&q, err);
}

int
loan_show(struct engine *e, const struct id *task, struct egress *ret_used, struct egress *ret_lent,
	struct err *err)
{
	struct amounts taken, used;
	int r = of_task(e, task, Q_LOAN_TAKEN, &taken, err);

	if (r == 0)
		r = of_task(e, task, Q_LOAN_USED, &used, err);
	if (r < 0)
		return r;
	*ret_used = egress_of(&used);
	for (size_t i = 0; i < BUDGETS; i++)
		used.n[i] = taken.n[i] > used.n[i] ? taken.n[i] - used.n[i] : 0;
	*ret_lent = egress_of(&used);
	return 0;
}
