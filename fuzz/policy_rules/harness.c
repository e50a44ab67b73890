/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A document, and behind a NUL the lines of a request: host, port, scheme, method, path, query, flags. What is allowed is asked again, alone
 * and with its conditions taken away one by one, which must refuse it.
 */
#include "lib/base/num.h"
#include "lib/egress/rules.h"
#include "lib/http/path.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { QUERY_MAX = 4096 };

static struct view
line(struct view *rest)
{
	const uint8_t *end = rest->n == 0 ? NULL : memchr(rest->p, '\n', rest->n);
	struct view v = end == NULL ? *rest : view_of(rest->p, (size_t)(end - rest->p));

	*rest = view_skip(*rest, v.n + (end == NULL ? 0 : 1));
	return v;
}

static enum egress_reason
ask(const struct policy *p, rule_set set, const struct egress_request *r)
{
	struct egress_decision d;

	rules_request(p, set, r, NULL, &d);
	must(d.reason < EGRESS_REASON_MAX);
	must((d.reason == EGRESS_REASON_NONE) == (d.status == 0));
	must(d.rule == EGRESS_NO_RULE || (d.rule < p->nrules && (set >> d.rule & 1) == 1));
	must((d.reason == EGRESS_REASON_NO_RULE) == (d.rule == EGRESS_NO_RULE));
	return d.reason;
}

/* What was allowed stands on each of its conditions. */
static void
allowed(const struct policy *p, rule_set set, const struct egress_request *r)
{
	struct egress_request other = *r;

	must(http_path_judge(r->path, 0) == HTTP_FINE);
	other.credential = true;
	must(ask(p, set, &other) != EGRESS_REASON_NONE);
	other = *r;
	other.path = view_str("/a/../b");
	must(ask(p, set, &other) != EGRESS_REASON_NONE);
	other = *r;
	other.method = HTTP_CONNECT;
	must(ask(p, set, &other) != EGRESS_REASON_NONE);
	other = *r;
	other.has_query = true;
	other.query = NULL;
	must(ask(p, set, &other) != EGRESS_REASON_NONE);
	must(ask(p, 0, r) == EGRESS_REASON_NO_RULE);
}

static void
request(const struct policy *p, struct view rest)
{
	static uint8_t memory[QUERY_MAX];
	struct http_params params = {.n = 0};
	struct egress_place at = {.name = line(&rest)};
	struct egress_request r = {.method = HTTP_METHODS};
	struct view port = line(&rest), scheme = line(&rest), query, flags;
	uint8_t digest[SHA256_BYTES];
	enum egress_reason reason;
	uint64_t number = 0;
	rule_set set = 0;

	if (num_u64(port, UINT16_MAX, &number) < 0 || egress_scheme_parse(scheme, &at.scheme) < 0)
		return;
	at.port = (uint16_t)number;
	r.method = http_method_of(line(&rest));
	r.path = line(&rest);
	query = line(&rest);
	flags = line(&rest);
	r.has_query = query.n > 0;
	if (r.has_query && query.n <= QUERY_MAX &&
		http_query_parse(view_skip(query, 1), 0, memory, &params) == HTTP_FINE)
		r.query = &params;
	r.upgrade = view_has(flags, 'u');
	r.body = view_has(flags, 'b');
	r.body_bytes = view_has(flags, 'n') ? UINT64_MAX : flags.n;
	if (r.method == HTTP_METHODS)
		return;
	reason = rules_place(p, &at, &set, NULL);
	if (reason != EGRESS_REASON_NONE) {
		must(set == 0);
		return;
	}
	for (size_t i = 0; i < POLICY_RULES_MAX; i++)
		must((set >> i & 1) == 0 ||
			(i < p->nrules && rule_names(&p->rule[i], at.name, at.port)));
	if (ask(p, set, &r) == EGRESS_REASON_NONE)
		allowed(p, set, &r);
	egress_request_digest(&at, &r, digest);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct policy p;
	const uint8_t *end = size == 0 ? NULL : memchr(data, 0, size);
	struct err err = {0};

	if (end == NULL || policy_read(view_of(data, (size_t)(end - data)), &p, &err) < 0)
		return 0;
	request(&p, view_skip(view_of(data, size), (size_t)(end - data) + 1));
	return 0;
}
