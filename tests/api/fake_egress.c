/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Policies and verdicts as the stand-in plays them: the policy support, tasks 48221 (with it), bare (without a policy), and twisted, whose answer
 * comes in an order that no engine has. A token with the label "other" sees none of it.
 */
#include "fake_actions.h"

#include "lib/egress/policy.h"

#define HANDLER(name)                                                   \
	static int on_##name(struct ipc_peer *peer, struct ipc_msg *in, \
		const struct msg_##name *m, struct err *err);           \
	IPC_HANDLER(name, on_##name)                                    \
	static int on_##name(struct ipc_peer *peer, struct ipc_msg *in, \
		const struct msg_##name *m, struct err *err)

static const char document[] =
	"{\"budgets\":{\"names\":100},\"name\":\"support\",\"rules\":[{\"host\":\"docs.example\","
	"\"kind\":\"fetch\"}],\"v\":1}";

/* Whether the question goes on: a known caller, and not of another tenant. */
static bool
own(struct ipc_peer *peer, uint64_t tag, const struct caller *c, const char *what)
{
	if (!fake_known(peer, tag, c))
		return false;
	if (!fake_other_tenant(peer, c))
		return true;
	fake_refused(peer, tag, ERROR_NOT_FOUND, what);
	return false;
}

static void
policy_row(struct ipc_peer *peer, uint64_t tag, bool current)
{
	IPC_SEND(peer, tag, POLICY_ROW, policy_row,
		{.name = view_str("support"),
			.policy = {0xcc},
			.current = current,
			.sandboxes = 2,
			.document = view_str(document)});
}

HANDLER(policy_list)
{
	(void)err;
	if (!fake_known(peer, in->tag, &m->caller))
		return 0;
	if (!fake_other_tenant(peer, &m->caller)) {
		policy_row(peer, in->tag, true);
		IPC_SEND(peer, in->tag, POLICY_ROW, policy_row,
			{.name = view_str("too-long-for-a-list"), .current = true});
	}
	IPC_SEND(peer, in->tag, END, end, {0});
	return 0;
}

HANDLER(policy_get)
{
	(void)err;
	if (!own(peer, in->tag, &m->caller, "no such policy"))
		return 0;
	if (view_is(m->task, "48221") && m->name.n == 0)
		policy_row(peer, in->tag, false);
	else if (view_is(m->name, "support") && m->task.n == 0)
		policy_row(peer, in->tag, true);
	else
		fake_refused(peer, in->tag, ERROR_NOT_FOUND,
			m->task.n > 0 ? "the task has no policy" : "no such policy");
	return 0;
}

static void
net_row(struct ipc_peer *peer, uint64_t tag, enum egress_reason reason, uint16_t rule)
{
	IPC_SEND(peer, tag, NET_ROW, net_row,
		{.verdict = reason == EGRESS_REASON_NONE ? VERDICT_ALLOWED : VERDICT_REFUSED,
			.reason = reason,
			.scheme = EGRESS_SCHEME_HTTPS,
			.rule = rule,
			.policy = {0xcc},
			.name = view_str("docs.example"),
			.port = 443,
			.address = view_str(reason == EGRESS_REASON_NONE ? "192.0.2.7" : ""),
			.count = 3,
			.bytes_out = 512,
			.bytes_in = UINT64_C(1) << 40,
			.first_ms = 1700000000000,
			.last_ms = 1700000001000});
}

HANDLER(net_get)
{
	bool twisted = view_is(m->task, "twisted");

	(void)err;
	if (!own(peer, in->tag, &m->caller, "no such task"))
		return 0;
	if (twisted || view_is(m->task, "48221")) {
		net_row(peer, in->tag, EGRESS_REASON_NO_RULE, EGRESS_NO_RULE);
		if (!twisted && m->limit > 1)
			net_row(peer, in->tag, EGRESS_REASON_NONE, 0);
		IPC_SEND(peer, in->tag, NET_BUDGET, net_budget,
			{.used = {.names = 1, .bytes_in = UINT64_MAX},
				.lent = {.names = 4},
				.limit = {.names = 100, .bytes_in = UINT64_MAX}});
		if (twisted)
			net_row(peer, in->tag, EGRESS_REASON_NONE, 0);
	} else if (!view_is(m->task, "bare")) {
		fake_refused(peer, in->tag, ERROR_NOT_FOUND, "no such task");
		return 0;
	}
	IPC_SEND(peer, in->tag, END, end, {.more = m->limit == 1});
	return 0;
}

HANDLER(egress_list)
{
	static const char names[] = "number\0lang";

	(void)err;
	if (!fake_known(peer, in->tag, &m->caller))
		return 0;
	/* Rows 1 to 3 of the times 1 ms to 3 ms. */
	if (!fake_other_tenant(peer, &m->caller))
		for (uint64_t row = m->after + 1, n = 0; row <= 3 && n < m->limit; row++) {
			if (row < m->since_ms)
				continue;
			n++;
			IPC_SEND(peer, in->tag, EGRESS_ROW, egress_row,
				{.row = row,
					.task = {{1}},
					.tenant = view_str("acme"),
					.policy = view_str("support"),
					.verdict = VERDICT_ABORTED,
					.reason = EGRESS_REASON_RESP_LIMIT,
					.scheme = EGRESS_SCHEME_HTTP,
					.name = view_str("docs.example"),
					.port = 80,
					.method = view_str("GET"),
					.path = view_str("/a%20b"),
					.query = view_of(names, sizeof(names)),
					.counted = row,
					.last_ms = row});
		}
	IPC_SEND(peer, in->tag, END, end, {.more = m->after + m->limit < 3});
	return 0;
}

const struct ipc_row fake_egress_rows[] = {
	IPC_ROW(POLICY_LIST, IN_ANY, on_policy_list),
	IPC_ROW(POLICY_GET, IN_ANY, on_policy_get),
	IPC_ROW(NET_GET, IN_ANY, on_net_get),
	IPC_ROW(EGRESS_LIST, IN_ANY, on_egress_list),
};
const size_t fake_egress_rows_n = ARRAY_LEN(fake_egress_rows);
