/* SPDX-License-Identifier: Apache-2.0 */
/* Requests about policies and what was reached; see net.h. Nothing here decides. */
#include "engine/limits.h"
#include "engine/loan.h"
#include "engine/net.h"
#include "engine/revision.h"
#include "engine/task.h"

#include <errno.h>

static uint64_t
page_of(uint16_t asked)
{
	return asked == 0 || asked > LIMIT_PAGE_ROWS ? LIMIT_PAGE_ROWS : asked;
}

/* ---- policies ---- */

/* For a token of one tenant, that tenant's; an administrator sees all. */
static bool
sees_policy(const struct principal *p, const struct policy *policy)
{
	return p->admin || policy_is_for(policy, p->tenant);
}

/* Living sandboxes that the caller sees and that have another revision of it. */
static uint32_t
others(struct engine *e, const struct principal *p, const struct policy *policy)
{
	uint32_t n = 0;

	list_each (s, &e->sandboxes, struct sandbox, link)
		n += caller_sees(p, s->tenant, s->template) && view_is(policy->name, s->policy) &&
		     memcmp(s->policy_digest, policy->digest, 32) != 0;
	return n;
}

static void
answer_policy(struct engine *e, struct reply to, const struct principal *p,
	const struct policy *policy, bool document)
{
	const struct policy *now = policies_find(&e->policies, policy->name);
	struct msg_policy_row row = {.name = policy->name,
		.current = now != NULL && memcmp(now->digest, policy->digest, 32) == 0,
		.sandboxes = others(e, p, policy),
		.document = document ? policy->document : view_of(NULL, 0)};

	memcpy(row.policy, policy->digest, 32);
	REPLY(e, to, POLICY_ROW, policy_row, row);
}

int
on_policy_list(struct engine *e, struct reply to, const struct msg_policy_list *m, struct err *err)
{
	struct principal p;
	size_t bytes = 0;
	int r = caller_find(e, &m->caller, &p, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < e->policies.n; i++) {
		const struct policy *policy = &e->policies.row[i];

		if (!sees_policy(&p, policy))
			continue;
		bytes += policy->document.n;
		answer_policy(e, to, &p, policy, bytes <= LIMIT_PAGE_BYTES);
	}
	REPLY(e, to, END, end, {0});
	return 0;
}

/* Its newest sandbox's, as it was pinned. 1: there is one. */
static int
pinned(struct task *t, const struct policy **ret, struct err *err)
{
	auto_query struct query q = query_of(t->engine->store, Q_POLICY_OF_TASK);
	uint8_t digest[32];
	int r;

	arg_id(&q, &t->id);
	r = query_next(&q, err);
	if (r <= 0)
		return r;
	col_digest(&q, digest);
	r = revision_find(t->engine, digest, ret, err);
	return r < 0 ? r : 1;
}

static int
policy_of_task(struct task *t, const struct policy **ret, struct err *err)
{
	int r = pinned(t, ret, err);

	if (r != 0)
		return r < 0 ? r : 0;
	if (t->policy[0] == '\0')
		return REFUSE(err, NOT_FOUND,
			"the task has no policy: its sandboxes reach nothing at all");
	return revision_now(t->engine, t->tenant, t->policy, ret, err);
}

int
on_policy_get(struct engine *e, struct reply to, const struct msg_policy_get *m, struct err *err)
{
	const struct policy *policy = NULL;
	auto_task struct task t;
	struct principal p;
	int r = caller_find(e, &m->caller, &p, err);

	task_init(&t, e);
	if (r < 0)
		return r;
	if (m->name.n == 0) {
		r = task_find_name(&t, &p, m->task, err);
		if (r == 0)
			r = policy_of_task(&t, &policy, err);
	} else {
		policy = policies_find(&e->policies, m->name);
		if (policy == NULL || !sees_policy(&p, policy))
			r = REFUSE(err, NOT_FOUND,
				"no such policy; `demilune policy show` (GET /v1/policies) has "
				"those that may be used");
	}
	if (r == 0)
		answer_policy(e, to, &p, policy, true);
	return r;
}

/* ---- what was reached ---- */

static int
col_kind(struct query *q, enum verdict *verdict, enum egress_reason *reason,
	enum egress_scheme *scheme, struct err *err)
{
	struct view v = col_view(q), r = col_view(q), s = col_view(q);

	if (verdict_parse(v, verdict) < 0 || egress_reason_parse(r, reason) < 0 ||
		egress_scheme_parse(s, scheme) < 0)
		return err_set(err, -EUCLEAN, "a verdict that is none");
	return 0;
}

static int
send_net(struct engine *e, struct reply to, struct query *q, struct err *err)
{
	struct msg_net_row row = {0};

	col_digest(q, row.policy);
	if (col_kind(q, &row.verdict, &row.reason, &row.scheme, err) < 0)
		return err->code;
	row.rule = (uint16_t)col_u64(q);
	row.name = col_view(q);
	row.port = (uint16_t)col_u64(q);
	row.address = col_view(q);
	row.count = col_u64(q);
	row.bytes_out = col_u64(q);
	row.bytes_in = col_u64(q);
	row.first_ms = col_u64(q);
	row.last_ms = col_u64(q);
	REPLY(e, to, NET_ROW, net_row, row);
	return 0;
}

static int
send_budgets(struct task *t, struct reply to, struct err *err)
{
	const struct policy *policy = NULL;
	struct msg_net_budget row = {0};
	int r = pinned(t, &policy, err);

	if (r == 0 && t->policy[0] != '\0')
		policy = policies_find(&t->engine->policies, view_str(t->policy));
	if (r < 0 || policy == NULL)
		return r < 0 ? r : 0;
	row.limit = policy->budgets;
	r = loan_show(t->engine, &t->id, &row.used, &row.lent, err);
	if (r == 0)
		REPLY(t->engine, to, NET_BUDGET, net_budget, row);
	return r;
}

int
on_net_get(struct engine *e, struct reply to, const struct msg_net_get *m, struct err *err)
{
	uint64_t limit = page_of(m->limit), n = 0;
	auto_task struct task t;
	struct principal p;
	bool more = false;
	int r = caller_find(e, &m->caller, &p, err);

	task_init(&t, e);
	if (r == 0)
		r = task_find_name(&t, &p, m->task, err);
	if (r < 0)
		return r;
	{
		auto_query struct query q = query_of(e->store, Q_NET_PAGE);

		arg_id(&q, &t.id);
		arg_u64(&q, limit + 1);
		while ((r = query_next(&q, err)) > 0) {
			more = n++ == limit;
			if (more)
				break;
			r = send_net(e, to, &q, err);
			if (r < 0)
				return r;
		}
	}
	if (r >= 0)
		r = send_budgets(&t, to, err);
	if (r >= 0)
		REPLY(e, to, END, end, {.more = more});
	return r < 0 ? r : 0;
}

/* ---- for replay ---- */

static int
send_request(struct engine *e, struct reply to, struct query *q, size_t *bytes, struct err *err)
{
	struct msg_egress_row row = {.row = col_u64(q)};

	col_id(q, &row.task);
	row.tenant = col_view(q);
	row.policy = col_view(q);
	if (col_kind(q, &row.verdict, &row.reason, &row.scheme, err) < 0)
		return err->code;
	row.name = col_view(q);
	row.port = (uint16_t)col_u64(q);
	row.method = col_view(q);
	row.path = col_view(q);
	row.query = col_view(q);
	row.counted = col_u64(q);
	row.last_ms = col_u64(q);
	*bytes += 512 + row.name.n + row.path.n + row.query.n;
	REPLY(e, to, EGRESS_ROW, egress_row, row);
	return 0;
}

static struct query
requests_page(struct engine *e, const struct principal *p, const struct msg_egress_list *m,
	uint64_t limit)
{
	uint64_t since = m->since_ms > INT64_MAX ? INT64_MAX : m->since_ms;
	uint64_t after = m->after > INT64_MAX ? INT64_MAX : m->after;
	struct query q;

	if (p->admin) {
		q = query_of(e->store, Q_EGRESS_PAGE_ALL);
	} else {
		q = query_of(e->store, Q_EGRESS_PAGE);
		arg_text(&q, p->tenant);
		arg_text(&q, p->template);
	}
	arg_u64(&q, since);
	arg_u64(&q, after);
	arg_u64(&q, limit);
	return q;
}

int
on_egress_list(struct engine *e, struct reply to, const struct msg_egress_list *m, struct err *err)
{
	uint64_t limit = page_of(m->limit), n = 0;
	struct principal p;
	size_t bytes = 0;
	bool more = false;
	int r = caller_find(e, &m->caller, &p, err);

	if (r < 0)
		return r;
	auto_query struct query q = requests_page(e, &p, m, limit + 1);
	while ((r = query_next(&q, err)) > 0) {
		more = n++ == limit || bytes > LIMIT_PAGE_BYTES;
		if (more)
			break;
		r = send_request(e, to, &q, &bytes, err);
		if (r < 0)
			return r;
	}
	if (r >= 0)
		REPLY(e, to, END, end, {.more = more});
	return r < 0 ? r : 0;
}
