/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Policies, and what sandboxes reached or tried to. A policy's document passes through as the engine holds it: nothing here
 * decides by it. Names and paths in verdicts are what a program of a sandbox asked for.
 */
#include "lib/base/name.h"
#include "lib/egress/policy.h"
#include "route.h"
#include "rows.h"

enum { TASK_BYTES_MAX = 256, NET_ITEMS_DEPTH = 2 };

static void
key_u64(struct json_out *o, const char *key, uint64_t v)
{
	json_out_key(o, key);
	json_out_u64(o, v);
}

/* ---- policies ---- */

static void
policy_out(struct json_out *o, const struct msg_policy_row *m)
{
	json_out_object_begin(o);
	json_out_key_str(o, "name", m->name);
	row_digest(o, "digest", m->policy);
	json_out_key_bool(o, "current", m->current);
	key_u64(o, "sandboxes", m->sandboxes);
	if (m->document.n > 0) {
		json_out_key(o, "policy");
		json_out_raw(o, m->document);
	}
	json_out_object_end(o);
}

static void
on_policies(void *owner, const struct answer *answer)
{
	struct request *req = owner;

	if (answer->type == MSG_POLICY_ROW)
		policy_out(&req->out, answer->m);
	else if (!request_refused(req, answer))
		row_page_end(req, ((const struct msg_end *)answer->m)->more);
}

int
on_policy_list(struct request *req, struct err *err)
{
	row_page_begin(req);
	return REQUEST_ASK(
		req, on_policies, err, POLICY_LIST, policy_list, {.caller = req->caller});
}

static void
on_policy(void *owner, const struct answer *answer)
{
	struct request *req = owner;

	if (request_refused(req, answer))
		return;
	policy_out(request_out(req), answer->m);
	request_json(req, 200);
}

int
on_policy_get(struct request *req, struct err *err)
{
	if (!name_ok(req->arg[0]))
		return refuse(err, NOT_FOUND,
			"no such policy: it is not the name of one: a-z, 0-9, dot, - and _, "
			"starting "
			"with a letter or digit");
	return REQUEST_ASK(req, on_policy, err, POLICY_GET, policy_get,
		{.caller = req->caller, .name = req->arg[0]});
}

static int
task_check(const struct request *req, struct err *err)
{
	return req->arg[0].n <= TASK_BYTES_MAX
		       ? 0
		       : refuse(err, NOT_FOUND, "no such task: its name is too long");
}

int
on_task_policy(struct request *req, struct err *err)
{
	if (task_check(req, err) < 0)
		return err->code;
	return REQUEST_ASK(req, on_policy, err, POLICY_GET, policy_get,
		{.caller = req->caller, .task = req->arg[0]});
}

/* ---- verdicts ---- */

/* What a verdict of a task and one of the list for replay have in common. */
static void
verdict_out(struct json_out *o, enum verdict verdict, enum egress_reason reason,
	enum egress_scheme scheme)
{
	json_out_key_str(o, "verdict", view_str(verdict_text(verdict)));
	json_out_key_str(o, "reason", view_str(egress_reason_text(reason)));
	json_out_key_str(o, "scheme", view_str(egress_scheme_text(scheme)));
}

static void
net_out(struct json_out *o, const struct msg_net_row *m)
{
	json_out_object_begin(o);
	verdict_out(o, m->verdict, m->reason, m->scheme);
	json_out_key_str(o, "name", m->name);
	key_u64(o, "port", m->port);
	if (m->rule != EGRESS_NO_RULE)
		key_u64(o, "rule", m->rule + UINT64_C(1));
	json_out_key_str(o, "address", m->address);
	row_digest(o, "policy_digest", m->policy);
	key_u64(o, "count", m->count);
	key_u64(o, "bytes_out", m->bytes_out);
	key_u64(o, "bytes_in", m->bytes_in);
	row_time(o, "first_at", m->first_ms);
	row_time(o, "last_at", m->last_ms);
	json_out_object_end(o);
}

/* The rows are closed; without a budget from the engine the task has no policy and there are none. */
static void
budgets_out(struct json_out *o, const struct msg_net_budget *m)
{
	static const struct msg_net_budget none;
	const struct msg_net_budget *b = m == NULL ? &none : m;
	const struct {
		const char *name;
		uint64_t used, lent, limit;
	} rows[] = {
#define BUDGET(what) {#what, b->used.what, b->lent.what, b->limit.what}
		BUDGET(names),
		BUDGET(connections),
		BUDGET(handshakes),
		BUDGET(requests),
		BUDGET(brokered),
		BUDGET(bytes_out),
		BUDGET(bytes_in),
#undef BUDGET
	};

	json_out_array_end(o);
	json_out_key(o, "budgets");
	json_out_array_begin(o);
	for (size_t i = 0; m != NULL && i < ARRAY_LEN(rows); i++) {
		json_out_object_begin(o);
		json_out_key_str(o, "budget", view_str(rows[i].name));
		key_u64(o, "used", rows[i].used);
		key_u64(o, "lent", rows[i].lent);
		key_u64(o, "limit", rows[i].limit);
		json_out_object_end(o);
	}
	json_out_array_end(o);
}

/* The rows come first, then the budgets, then the end: the array is open until the budgets close it, and what comes in another order is left out. */
static void
on_net_row(void *owner, const struct answer *answer)
{
	struct request *req = owner;
	bool open = req->out.depth == NET_ITEMS_DEPTH;

	if (answer->type == MSG_NET_ROW) {
		if (open)
			net_out(&req->out, answer->m);
		return;
	}
	if (answer->type == MSG_NET_BUDGET) {
		if (open)
			budgets_out(&req->out, answer->m);
		return;
	}
	if (request_refused(req, answer))
		return;
	if (open)
		budgets_out(&req->out, NULL);
	json_out_key_bool(&req->out, "more", ((const struct msg_end *)answer->m)->more);
	json_out_object_end(&req->out);
	request_json(req, 200);
}

int
on_net(struct request *req, struct err *err)
{
	uint64_t limit;

	if (task_check(req, err) < 0 ||
		request_number(req, "limit", LIMIT_PAGE, LIMIT_PAGE, &limit, err) < 0)
		return err->code;
	json_out_object_begin(request_out(req));
	json_out_key(&req->out, "items");
	json_out_array_begin(&req->out);
	return REQUEST_ASK(req, on_net_row, err, NET_GET, net_get,
		{.caller = req->caller, .task = req->arg[0], .limit = (uint16_t)limit});
}

static void
egress_out(struct json_out *o, const struct msg_egress_row *m)
{
	json_out_object_begin(o);
	key_u64(o, "row", m->row);
	row_id(o, "task", ID_TASK, &m->task);
	json_out_key_str(o, "tenant", m->tenant);
	json_out_key_str(o, "policy", m->policy);
	verdict_out(o, m->verdict, m->reason, m->scheme);
	json_out_key_str(o, "name", m->name);
	key_u64(o, "port", m->port);
	json_out_key_str(o, "method", m->method);
	json_out_key_str(o, "path", m->path);
	row_strings(o, "query", m->query);
	key_u64(o, "count", m->counted);
	row_time(o, "last_at", m->last_ms);
	json_out_object_end(o);
}

static void
on_egress_row(void *owner, const struct answer *answer)
{
	struct request *req = owner;

	if (answer->type == MSG_EGRESS_ROW)
		egress_out(&req->out, answer->m);
	else if (!request_refused(req, answer))
		row_page_end(req, ((const struct msg_end *)answer->m)->more);
}

int
on_egress_list(struct request *req, struct err *err)
{
	struct msg_egress_list m = {.caller = req->caller};
	uint64_t limit;

	if (request_number(req, "since", 0, INT64_MAX, &m.since_ms, err) < 0 ||
		request_number(req, "after", 0, INT64_MAX, &m.after, err) < 0 ||
		request_number(req, "limit", LIMIT_PAGE, LIMIT_PAGE, &limit, err) < 0)
		return err->code;
	m.limit = (uint16_t)limit;
	row_page_begin(req);
	return REQUEST_ASK(req, on_egress_row, err, EGRESS_LIST, egress_list, m);
}
