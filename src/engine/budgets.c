/* SPDX-License-Identifier: Apache-2.0 */
/* Budgets; see budgets.h. */
#include "engine/budgets.h"

#include "engine/task.h"
#include "lib/base/clock.h"

#include <errno.h>
#include <inttypes.h>

enum { ROWS = 4, SCOPE_BYTES = 96, DAY_MS = 86400000 };

/* One row that a counter of somebody touches. */
struct row {
	char scope[SCOPE_BYTES];
	uint64_t day;
	struct view operation, unit;
	enum counter counter;
	uint64_t limit;
};

uint64_t
budget_day(uint64_t now_ms)
{
	return now_ms / DAY_MS;
}

static uint64_t
limit_of(const struct budgets *b, enum counter counter)
{
	switch (counter) {
	case COUNTER_PROPOSALS:
		return b->proposals;
	case COUNTER_ATTEMPTS:
		return b->attempts;
	case COUNTER_BROKER_CALLS:
		return b->broker_calls;
	case COUNTER_BROKER_BYTES:
		return b->broker_bytes;
	case COUNTER_MONEY:
	case COUNTER_MAX:
		break;
	}
	must(false);
}

/* 0: the operation has no limit of its own for this. */
static uint64_t
operation_limit(const struct operation *op, enum counter counter, bool of_tenant)
{
	switch (counter) {
	case COUNTER_ATTEMPTS:
		return of_tenant ? op->tenant_day_uses : op->task_uses;
	case COUNTER_MONEY:
		return of_tenant ? op->tenant_day_amount : op->task_amount;
	case COUNTER_PROPOSALS:
	case COUNTER_BROKER_CALLS:
	case COUNTER_BROKER_BYTES:
		return 0;
	case COUNTER_MAX:
		break;
	}
	must(false);
}

static void
scope_of(const struct budget_of *of, bool of_tenant, struct row *ret)
{
	char id[ID_TEXT];

	ret->day = of_tenant ? of->day : 0;
	if (of_tenant) {
		(void)snprintf(ret->scope, sizeof(ret->scope), "tenant:%s", of->tenant);
		return;
	}
	id_text(&of->task, ID_TASK, id);
	(void)snprintf(ret->scope, sizeof(ret->scope), "task:%s", id);
}

/* The rows that a counter touches, task before tenant; how many. */
static size_t
rows_of(const struct engine *e, const struct budget_of *of, enum counter counter,
	struct row ret[static ROWS])
{
	size_t n = 0;

	for (int tenant = 0; tenant < 2; tenant++) {
		const struct budgets *b = tenant != 0 ? &e->settings.actions.tenant_day
						      : &e->settings.actions.task;
		uint64_t own = of->op == NULL ? 0 : operation_limit(of->op, counter, tenant != 0);

		if (counter != COUNTER_MONEY) {
			ret[n] = (struct row){.counter = counter, .limit = limit_of(b, counter)};
			scope_of(of, tenant != 0, &ret[n++]);
		}
		if (own != 0) {
			ret[n] = (struct row){
				.counter = counter, .limit = own, .operation = of->op->name};
			if (counter == COUNTER_MONEY)
				ret[n].unit = of->op->currency;
			scope_of(of, tenant != 0, &ret[n++]);
		}
	}
	return n;
}

static void
args_of(struct query *q, const struct row *row)
{
	arg_text(q, row->scope);
	arg_u64(q, row->day);
	arg_view(q, row->operation);
	arg_text(q, counter_text(row->counter));
	arg_view(q, row->unit);
}

static uint64_t
bounded(uint64_t v)
{
	return v > INT64_MAX / 4 ? INT64_MAX / 4 : v;
}

static int
put(struct engine *e, const struct row *row, struct err *err)
{
	auto_query struct query q = query_of(e->store, Q_BUDGET_PUT);

	args_of(&q, row);
	arg_u64(&q, bounded(row->limit));
	return query_run(&q, err);
}

static int
used_up(const struct row *row, struct err *err)
{
	static const char *const what[] = {[COUNTER_PROPOSALS] = "proposals",
		[COUNTER_ATTEMPTS] = "executions",
		[COUNTER_BROKER_CALLS] = "requests to providers",
		[COUNTER_BROKER_BYTES] = "bytes from and to providers",
		[COUNTER_MONEY] = "of the smallest unit of"};
	bool task = strncmp(row->scope, "task:", 5) == 0;

	return err_set(err, -EDQUOT, "%s budget of %" PRIu64 " %s%s%.*s%s%.*s is used up%s",
		task ? "the task's" : "the tenant's", row->limit, what[row->counter],
		row->unit.n != 0 ? " " : "", VIEW_ARGS(row->unit),
		row->operation.n != 0 ? " for " : "", VIEW_ARGS(row->operation),
		task ? "" : " for today");
}

static int
add(struct engine *e, const struct row *row, uint64_t reserved, uint64_t used, struct err *err)
{
	auto_query struct query q = query_of(e->store, Q_BUDGET_ADD);
	int r;

	arg_u64(&q, bounded(reserved));
	arg_u64(&q, bounded(used));
	args_of(&q, row);
	r = query_run(&q, err);
	return r == -EEXIST ? used_up(row, err) : r;
}

static int
add_all(struct engine *e, const struct budget_of *of, enum counter counter, uint64_t reserved,
	uint64_t used, struct err *err)
{
	struct row rows[ROWS];
	size_t n = rows_of(e, of, counter, rows);
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++) {
		r = put(e, &rows[i], err);
		if (r == 0)
			r = add(e, &rows[i], reserved, used, err);
	}
	return r;
}

int
budget_reserve(struct engine *e, const struct budget_of *of, enum counter counter, uint64_t n,
	struct err *err)
{
	return add_all(e, of, counter, n, 0, err);
}

int
budget_take(struct engine *e, const struct budget_of *of, enum counter counter, uint64_t n,
	struct err *err)
{
	return add_all(e, of, counter, 0, n, err);
}

int
budget_settle(struct engine *e, const struct budget_of *of, enum counter counter, uint64_t n,
	uint64_t m, struct err *err)
{
	struct row rows[ROWS];
	size_t count = rows_of(e, of, counter, rows);
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++) {
		auto_query struct query q = query_of(e->store, Q_BUDGET_SETTLE);

		arg_u64(&q, bounded(n));
		arg_u64(&q, bounded(m));
		args_of(&q, &rows[i]);
		r = query_run(&q, err);
	}
	return r;
}

int
budget_call_reserve(struct engine *e, const struct budget_of *of, uint32_t bytes, struct err *err)
{
	int r = budget_reserve(e, of, COUNTER_BROKER_CALLS, 1, err);

	return r == 0 ? budget_reserve(e, of, COUNTER_BROKER_BYTES, bytes, err) : r;
}

int
budget_call_settle(struct engine *e, const struct budget_of *of, uint32_t bytes,
	uint32_t used_calls, uint64_t used_bytes, struct err *err)
{
	int r = budget_settle(e, of, COUNTER_BROKER_CALLS, 1, used_calls, err);

	return r == 0 ? budget_settle(e, of, COUNTER_BROKER_BYTES, bytes, used_bytes, err) : r;
}

int
budget_restart(struct engine *e, struct err *err)
{
	auto_query struct query q = query_of(e->store, Q_BUDGET_RESTART);

	return query_run(&q, err);
}

/* ---- looking ---- */

/* A counter that nobody touched yet has no row: it is told as it would begin. */
static int
send_configured(struct engine *e, struct reply to, const struct budget_of *of, bool of_tenant,
	enum counter counter, struct err *err)
{
	const struct budgets *b = of_tenant ? &e->settings.actions.tenant_day
					    : &e->settings.actions.task;
	struct msg_budget_row m = {
		.of_tenant = of_tenant, .counter = counter, .limit = limit_of(b, counter)};
	auto_query struct query q = query_of(e->store, Q_BUDGET_GET);
	struct row row = {.counter = counter};
	int r;

	scope_of(of, of_tenant, &row);
	args_of(&q, &row);
	r = query_next(&q, err);
	if (r > 0) {
		m.reserved = col_u64(&q);
		m.used = col_u64(&q);
	}
	if (r >= 0)
		REPLY(e, to, BUDGET_ROW, budget_row, m);
	return r < 0 ? r : 0;
}

static int
send_operations(struct engine *e, struct reply to, const struct budget_of *of, bool of_tenant,
	struct err *err)
{
	auto_query struct query q = query_of(e->store, Q_BUDGET_PAGE);
	struct row scope;
	int r;

	scope_of(of, of_tenant, &scope);
	arg_text(&q, scope.scope);
	arg_u64(&q, scope.day);
	for (r = query_next(&q, err); r > 0; r = query_next(&q, err)) {
		struct msg_budget_row row = {.of_tenant = of_tenant, .operation = col_view(&q)};

		if (counter_parse(col_view(&q), &row.counter) < 0)
			return err_set(err, -EUCLEAN, "a budget without a counter");
		row.unit = col_view(&q);
		row.reserved = col_u64(&q);
		row.used = col_u64(&q);
		row.limit = col_u64(&q);
		REPLY(e, to, BUDGET_ROW, budget_row, row);
	}
	return r;
}

int
on_budget_list(struct engine *e, struct reply to, const struct msg_budget_list *m, struct err *err)
{
	struct budget_of of = {.day = budget_day(clock_real_ms())};
	auto_task struct task t;
	struct principal p;
	int r;

	task_init(&t, e);
	r = caller_find(e, &m->caller, &p, err);
	if (r == 0)
		r = task_find_name(&t, &p, m->task, err);
	if (r < 0)
		return r;
	of.task = t.id;
	of.tenant = t.tenant;
	for (int tenant = 0; r == 0 && tenant < 2; tenant++) {
		for (unsigned c = 0; r == 0 && c < COUNTER_MONEY; c++)
			r = send_configured(e, to, &of, tenant != 0, (enum counter)c, err);
		if (r == 0)
			r = send_operations(e, to, &of, tenant != 0, err);
	}
	if (r == 0)
		REPLY(e, to, END, end, {0});
	return r;
}
