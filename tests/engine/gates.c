/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of gateways; see gates.h. */
#include "gates.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#define BROKERED_RULE(host, more)                                                               \
	"{\"credential\":{\"header\":\"Authorization\",\"prefix\":\"Bearer \",\"secret\":"      \
	"\"carrier\"},\"fields\":[\"status\"],\"host\":\"" host                                 \
	"\",\"kind\":\"brokered\",\"methods\":[\"GET\"],\"path\":\"/v1/track/*\",\"port\":443," \
	"\"query\":[\"number\"],\"response_max\":4096" more "}"

static const char rules[] =
	"{\"host\":\"docs.example\",\"kind\":\"fetch\",\"methods\":[\"GET\"],\"path\":\"/help/"
	"**\",\"port\":443,\"query\":[\"lang\"],\"response_max\":1000000,\"tls\":true}"
	"," BROKERED_RULE("api.carrier.example",
		",\"uses\":3") ","
			       "{\"host\":\"mirror.internal\",\"kind\":\"tcp\",\"port\":873},"
			       "{\"host\":\"wild.example\",\"kind\":\"fetch\",\"labels\":\"one\","
			       "\"methods\":[\"GET\"],"
			       "\"path\":\"/"
			       "**\",\"port\":80,\"response_max\":1000000}," BROKERED_RULE(
				       "open.carrier.example", "");

const char *
gates_support(const char *budgets)
{
	static char text[4096];

	(void)snprintf(text, sizeof(text),
		"{\"budgets\":%s,\"name\":\"support\",\"rules\":[%s],\"tenants\":[\"acme\"],\"v\":"
		"1}",
		budgets, rules);
	return text;
}

void
gates_open(struct gates *g)
{
	*g = (struct gates){0};
	play_open(&g->p);
	play_policy(&g->p, "{\"budgets\":" GATES_BUDGETS
			   ",\"capture\":true,\"name\":\"open\",\"rules\":[],\"v\":1}");
	play_policy(&g->p, gates_support(GATES_BUDGETS));
	play_policy(&g->p, "{\"budgets\":" GATES_BUDGETS
			   ",\"name\":\"zeta_only\",\"rules\":[],\"tenants\":[\"zeta\"],\"v\":1}");
}

void
gates_broker(struct gates *g, bool again)
{
	play_broker(&g->p, again);
	g->brokers++;
	for (int i = 0; i < 500; i++) {
		(void)play_audit_of(&g->p, "host");
		if (play_events(&g->p, "broker.ready") == g->brokers)
			return;
		(void)usleep(10000);
	}
	fail_msg("the engine does not know its broker");
}

void
gates_start(struct gates *g)
{
	play_start(&g->p);
	gates_broker(g, false);
	g->task = gates_task(g, "acme", "support");
}

void
gates_close(struct gates *g)
{
	for (unsigned i = 0; i < g->p.gates_n; i++)
		if (g->p.gates[i] >= 0)
			(void)close(g->p.gates[i]);
	play_close(&g->p);
}

int
gates_setup(void **state)
{
	static struct gates gates;

	gates_open(&gates);
	gates_start(&gates);
	*state = &gates;
	return 0;
}

int
gates_teardown(void **state)
{
	gates_close(*state);
	return 0;
}

struct id
gates_task(struct gates *g, const char *tenant, const char *policy)
{
	struct play *p = &g->p;

	ASK(p, TASK_CREATE, task_create,
		{.caller = as_root,
			.tenant = view_str(tenant),
			.template = view_str("python"),
			.policy = view_str(policy)});
	ANSWER(p, TASK_ROW, task_row, row);
	assert_true(view_is(row.policy, strcmp(policy, "none") == 0 ? "" : policy));
	return row.task;
}

/* A new edge of a gateway. */
static int
gateway_edge(struct gates *g, const struct id *sandbox)
{
	struct play *p = &g->p;
	int pair[2];
	struct err err;
	unsigned i = 0;

	assert_int_equal(ipc_pair(pair, &err), 0);
	SAY_FD(p->supervisor, GATEWAY_EDGE, gateway_edge, pair[1], {.sandbox = *sandbox});
	(void)close(pair[1]);
	while (i < p->gates_n && p->gates[i] >= 0)
		i++;
	assert_in_range(i, 0, PLAY_GATES - 1);
	p->gates[i] = pair[0];
	p->gates_n += i == p->gates_n;
	return pair[0];
}

void
boxed_begin(struct gates *g, const struct id *task, struct boxed *b)
{
	static const uint8_t zero[32];
	struct play *p = &g->p;

	ASK(p, SANDBOX_CREATE, sandbox_create, {.caller = as_root, .task = *task});
	WANT(p, p->supervisor, SPAWN, spawn, m);
	assert_memory_not_equal(m.policy, zero, 32);
	b->sandbox = m.sandbox;
	b->facts = play_facts(p, &m.limits);
	b->facts.captured = 51;
	b->relay = play_spawned(p, &b->sandbox, &b->facts);
	b->gateway = gateway_edge(g, &b->sandbox);
}

void
gateway_ready(struct boxed *b)
{
	SAY(b->gateway, GATEWAY_READY, gateway_ready,
		{.certificate = view_str("a certificate"),
			.keystore = view_str("a key store"),
			.system_roots = true});
}

void
boxed_create(struct gates *g, const struct id *task, struct boxed *b)
{
	struct play *p = &g->p;

	boxed_begin(g, task, b);
	gateway_ready(b);
	SAY(b->relay, RELAY_READY, relay_ready, {.agent_version = 1});
	WANT(p, b->relay, RELAY_TRUST, relay_trust, trust);
	assert_true(view_is(trust.certificate, "a certificate"));
	assert_true(view_is(trust.keystore, "a key store") && trust.system_roots);
	ANSWER(p, SANDBOX_ROW, sandbox_row, row);
	assert_int_equal(row.state, SANDBOX_STATE_RUNNING);
	assert_true(view_is(row.policy, "support"));
}

/* Its number may become another's: it is no gateway's any more. */
void
gateway_close(struct gates *g, struct boxed *b)
{
	struct play *p = &g->p;

	for (unsigned i = 0; i < p->gates_n; i++)
		if (p->gates[i] == b->gateway)
			p->gates[i] = -1;
	(void)close(take_fd(&b->gateway));
}

void
boxed_end(struct gates *g, struct boxed *b, enum sandbox_reason reason)
{
	struct play *p = &g->p;

	gateway_close(g, b);
	/* Whether its end or GONE is seen first is up to the two sockets. */
	play_gone(p, &b->sandbox, reason);
	for (;;) {
		ASK(p, SANDBOX_GET, sandbox_get, {.caller = as_root, .sandbox = b->sandbox});
		ANSWER(p, SANDBOX_ROW, sandbox_row, row);
		if (row.state == SANDBOX_STATE_GONE) {
			assert_int_equal(row.reason, reason);
			break;
		}
	}
	/* When its gateway was seen to end first, that was an end to be asked for. */
	if (poll(&(struct pollfd){.fd = p->supervisor, .events = POLLIN}, 1, 0) == 1)
		play_want(p, p->supervisor, MSG_KILL);
	(void)close(b->relay);
}

void
gates_held(struct gates *g, struct boxed *b, size_t n)
{
	struct play *p = &g->p;

	if (p->engine != 0)
		play_kill(p);
	for (size_t i = 0; i < n; i++) {
		(void)close(b[i].relay);
		gateway_close(g, &b[i]);
	}
	play_launch(p);
	for (size_t i = 0; i < n; i++) {
		int pair[2];
		struct err err;

		assert_int_equal(ipc_pair(pair, &err), 0);
		SAY_FD(p->supervisor, HELD, held, pair[1],
			{.sandbox = b[i].sandbox,
				.task = g->task,
				.facts = b[i].facts,
				.ttl_left_ms = 600000});
		(void)close(pair[1]);
		b[i].relay = pair[0];
		b[i].gateway = gateway_edge(g, &b[i].sandbox);
		gateway_ready(&b[i]);
	}
}

void
gates_restart(struct gates *g, struct boxed *b, size_t n)
{
	gates_held(g, b, n);
	play_ready(&g->p);
	for (size_t i = 0; i < n; i++)
		SAY(b[i].relay, RELAY_JOBS_END, relay_jobs_end, {0});
	gates_broker(g, false);
}

struct msg_verdict
good_verdict(void)
{
	struct msg_verdict m = {.verdict = VERDICT_ALLOWED,
		.scheme = EGRESS_SCHEME_HTTPS,
		.rule = DOCS,
		.port = 443,
		.name = view_str("docs.example"),
		.address = view_str("203.0.113.7"),
		.method = view_str("GET"),
		.path = view_str("/help/a%2Fb/c"),
		.query = view_of("lang", 5)};

	memset(m.digest, 0xd1, sizeof(m.digest));
	return m;
}

enum egress_reason
verdict_say(struct gates *g, struct boxed *b, uint64_t tag, const struct msg_verdict *m)
{
	struct play *p = &g->p;

	SAY_TAG(b->gateway, tag, VERDICT, verdict, -1, *m);
	WANT(p, b->gateway, VERDICT_KEPT, verdict_kept, kept);
	assert_int_equal(p->in.tag, tag);
	assert_int_equal(kept.kept, kept.reason == EGRESS_REASON_NONE);
	return kept.reason;
}

struct msg_allotment
allot(struct gates *g, struct boxed *b, const struct egress *used)
{
	struct play *p = &g->p;

	SAY_TAG(b->gateway, 77, ALLOTMENT_ASK, allotment_ask, -1, {.used = *used});
	WANT(p, b->gateway, ALLOTMENT, allotment, m);
	assert_int_equal(p->in.tag, 77);
	return m;
}

void
gates_net(struct gates *g, const struct id *task, struct msg_net_budget *ret_budget,
	struct msg_net_row *ret_rows, size_t *rows_n)
{
	struct play *p = &g->p;
	char name[ID_TEXT];
	size_t room = rows_n != NULL ? *rows_n : 0, n = 0;

	id_text(task, ID_TASK, name);
	ASK(p, NET_GET, net_get, {.caller = as_root, .task = view_str(name)});
	for (;;) {
		struct msg_net_row row;
		struct err err;

		play_want_any(p, p->api);
		if (p->in.type == MSG_END)
			break;
		if (p->in.type == MSG_NET_BUDGET) {
			play_decoded(
				msg_net_budget_get(p->in.body, ret_budget, &err), "NET_BUDGET");
			continue;
		}
		assert_int_equal(p->in.type, MSG_NET_ROW);
		play_decoded(msg_net_row_get(p->in.body, &row, &err), "NET_ROW");
		if (n < room) {
			ret_rows[n] = row;
			ret_rows[n].name = ret_rows[n].address = view_of(NULL, row.name.n);
		}
		n++;
	}
	if (rows_n != NULL)
		*rows_n = n;
}
