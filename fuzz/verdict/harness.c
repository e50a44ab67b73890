/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a gateway tells the engine: the first byte chooses the message, the rest is its body. What is taken must be what a record and a row can hold:
 * a canonical name or none, a path of printable characters, whole names of parameters, a rule of the policy that leads to where something was allowed.
 */
#include "engine/verdict_check.h"
#include "lib/base/attr.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const char document[] =
	"{\"budgets\":{\"brokered\":1,\"bytes_in\":1,\"bytes_out\":1,\"connections\":1,"
	"\"handshakes\":1,\"names\":1,\"requests\":1},\"name\":\"p\",\"rules\":["
	"{\"host\":\"docs.example\",\"kind\":\"fetch\",\"methods\":[\"GET\"],\"path\":\"/**\","
	"\"port\":443,\"response_max\":1,\"tls\":true},"
	"{\"credential\":{\"header\":\"Authorization\",\"secret\":\"s\"},\"fields\":[\"a\"],"
	"\"host\":\"api.example\",\"kind\":\"brokered\",\"methods\":[\"GET\"],\"path\":\"/a\","
	"\"port\":443,\"response_max\":1},"
	"{\"host\":\"10.0.3.7\",\"kind\":\"tcp\",\"port\":873}],\"v\":1}";

static void
check_what(const struct policy *p, enum verdict verdict, uint16_t rule, struct view name,
	uint16_t port)
{
	struct address a;

	must(name.n == 0 || host_name_ok(name) || address_parse(name, &a) == 0);
	must(rule == EGRESS_NO_RULE || rule < p->nrules);
	if (verdict == VERDICT_ALLOWED && rule != EGRESS_NO_RULE)
		must(rule_names(&p->rule[rule], name, port));
}

static void
check_text(const struct msg_verdict *m)
{
	for (size_t i = 0; i < m->path.n; i++)
		must(m->path.p[i] > 0x20 && m->path.p[i] < 0x7f);
	for (size_t i = 0; i < m->method.n; i++)
		must(m->method.p[i] > 0x20 && m->method.p[i] < 0x7f);
	must(view_utf8(m->query));
	must(m->query.n == 0 || m->query.p[m->query.n - 1] == '\0');
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static struct policy p;
	struct msg_verdict v;
	struct msg_flow f;
	struct msg_lease_ask l;
	struct err err;
	struct view body;

	if (p.nrules == 0)
		must(policy_read(view_str(document), &p, &err) == 0);
	if (n == 0)
		return 0;
	body = view_of(data + 1, n - 1);
	if (data[0] % 3 == 0 && msg_verdict_get(body, &v, &err) == 0 &&
		verdict_check(&p, &v, &err) == 0) {
		must(v.verdict != VERDICT_ALLOWED || v.rule != EGRESS_NO_RULE);
		check_what(&p, v.verdict, v.rule, v.name, v.port);
		check_text(&v);
	}
	if (data[0] % 3 == 1 && msg_flow_get(body, &f, &err) == 0 &&
		flow_check(&p, &f, &err) == 0) {
		must(f.bytes_out <= INT64_MAX && f.bytes_in <= INT64_MAX);
		check_what(&p, f.verdict, f.rule, f.name, f.port);
	}
	if (data[0] % 3 == 2 && msg_lease_ask_get(body, &l, &err) == 0 &&
		lease_check(&p, &l, &err) == 0)
		must(p.rule[l.rule].kind == RULE_KIND_BROKERED);
	return 0;
}
