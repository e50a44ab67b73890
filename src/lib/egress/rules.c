/* SPDX-License-Identifier: Apache-2.0 */
/* The decision; see rules.h. Sees what programs of a sandbox say, after the codec took it; each step is one row of step.def. */
#include "lib/egress/rules.h"

#include "lib/canon/profile.h"
#include "lib/http/path.h"

#include <stdio.h>

_Static_assert(POLICY_RULES_MAX <= 64, "a rule_set has a bit for each rule");

static const char *const steps[EGRESS_STEPS] = {
#define EGRESS_STEP(NAME, text) [EGRESS_STEP_##NAME] = text,
#include "lib/egress/step.def"
#undef EGRESS_STEP
};

const char *
egress_step_text(enum egress_step step)
{
	must(step < EGRESS_STEPS);
	return steps[step];
}

static bool
holds(const struct rules_trace *trace, size_t rule, enum egress_step step, bool it_does)
{
	if (trace != NULL)
		trace->step(trace->owner, rule, step, it_does);
	return it_does;
}

bool
rules_know(const struct policy *p, struct view name)
{
	for (size_t i = 0; i < p->nrules; i++)
		if (!p->rule[i].literal && rule_hosts(&p->rule[i], name))
			return true;
	return false;
}

/* ---- the place ---- */

static bool
speaks(const struct rule *r, enum egress_scheme scheme)
{
	if (scheme == EGRESS_SCHEME_NONE)
		return true;
	switch (r->kind) {
	case RULE_KIND_FETCH:
	case RULE_KIND_BROKERED:
		return scheme == (r->tls ? EGRESS_SCHEME_HTTPS : EGRESS_SCHEME_HTTP);
	case RULE_KIND_TCP:
		return scheme == EGRESS_SCHEME_TCP || scheme == EGRESS_SCHEME_HTTP ||
		       scheme == EGRESS_SCHEME_HTTPS;
	case RULE_KIND_PASSTHROUGH:
		return scheme == EGRESS_SCHEME_PASSTHROUGH || scheme == EGRESS_SCHEME_HTTPS;
	case RULE_KIND_MAX:
		break;
	}
	return false;
}

enum egress_reason
rules_place(const struct policy *p, const struct egress_place *at, rule_set *ret,
	const struct rules_trace *trace)
{
	enum egress_reason reason = EGRESS_REASON_NO_RULE;
	struct address literal;
	rule_set set = 0;

	for (size_t i = 0; i < p->nrules; i++) {
		const struct rule *r = &p->rule[i];

		if (!holds(trace, i, EGRESS_STEP_NAME, rule_hosts(r, at->name)))
			continue;
		if (reason == EGRESS_REASON_NO_RULE)
			reason = EGRESS_REASON_PORT;
		if (!holds(trace, i, EGRESS_STEP_PORT, r->port == at->port))
			continue;
		reason = EGRESS_REASON_SCHEME;
		if (holds(trace, i, EGRESS_STEP_SCHEME, speaks(r, at->scheme)))
			set |= UINT64_C(1) << i;
	}
	if (set != 0) {
		*ret = set;
		return EGRESS_REASON_NONE;
	}
	return reason == EGRESS_REASON_NO_RULE && address_parse(at->name, &literal) == 0
		       ? EGRESS_REASON_IP_LITERAL
		       : reason;
}

/* ---- the request ---- */

/* Both begin with '/'. */
static bool
path_fits(struct view pattern, struct view path)
{
	while (pattern.n > 0 && path.n > 0) {
		struct view want = http_path_next(&pattern), have;

		if (view_is(want, "**"))
			return true;
		have = http_path_next(&path);
		if (view_is(want, "*") ? have.n == 0 : !view_eq(want, have))
			return false;
	}
	return pattern.n == 0 && path.n == 0;
}

static bool
query_fits(const struct rule *r, const struct egress_request *q)
{
	if (!q->has_query)
		return true;
	if (r->nquery == 0 || q->query == NULL)
		return false;
	for (unsigned i = 0; i < q->query->n; i++) {
		bool listed = false;

		for (size_t k = 0; k < r->nquery; k++)
			listed = listed || view_eq(q->query->param[i].name, r->query[k]);
		if (!listed)
			return false;
	}
	return true;
}

static bool
carries_credential(const struct egress_request *q)
{
	bool it_does = q->credential;

	for (unsigned i = 0; q->has_query && q->query != NULL && i < q->query->n; i++)
		it_does = it_does || egress_parameter_is_credential(q->query->param[i].name);
	return it_does;
}

/* What is not announced is counted as it comes. */
static bool
body_fits(const struct rule *r, const struct egress_request *q)
{
	bool may = q->method == HTTP_POST || q->method == HTTP_PUT || q->method == HTTP_PATCH;

	if (!q->body || q->body_bytes == 0)
		return true;
	if (!may || r->request_max == 0)
		return false;
	return q->body_bytes == UINT64_MAX || q->body_bytes <= r->request_max;
}

static bool
step_holds(enum egress_step step, const struct rule *r, const struct egress_request *q,
	enum http_reason syntax)
{
	switch (step) {
	case EGRESS_STEP_METHOD:
		return q->method < HTTP_METHODS && (r->methods & 1U << q->method) != 0;
	case EGRESS_STEP_SYNTAX:
		return syntax == HTTP_FINE;
	case EGRESS_STEP_PATH:
		return path_fits(r->path, q->path);
	case EGRESS_STEP_QUERY:
		return query_fits(r, q);
	case EGRESS_STEP_CREDENTIAL:
		return !carries_credential(q);
	case EGRESS_STEP_UPGRADE:
		return !q->upgrade || r->websocket;
	case EGRESS_STEP_BODY:
		return body_fits(r, q);
	case EGRESS_STEP_NAME:
	case EGRESS_STEP_PORT:
	case EGRESS_STEP_SCHEME:
	case EGRESS_STEPS:
		break;
	}
	must(false);
}

static enum egress_reason
reason_of(enum egress_step step)
{
	switch (step) {
	case EGRESS_STEP_METHOD:
		return EGRESS_REASON_METHOD;
	case EGRESS_STEP_SYNTAX:
	case EGRESS_STEP_PATH:
		return EGRESS_REASON_PATH;
	case EGRESS_STEP_QUERY:
		return EGRESS_REASON_QUERY;
	case EGRESS_STEP_CREDENTIAL:
		return EGRESS_REASON_CRED_SCOPE;
	case EGRESS_STEP_UPGRADE:
		return EGRESS_REASON_UPGRADE;
	case EGRESS_STEP_BODY:
		return EGRESS_REASON_BODY_LIMIT;
	case EGRESS_STEP_NAME:
	case EGRESS_STEP_PORT:
	case EGRESS_STEP_SCHEME:
	case EGRESS_STEPS:
		break;
	}
	must(false);
}

/* The first step that does not hold; EGRESS_STEPS: the rule takes the request. */
static enum egress_step
judge(size_t i, const struct rule *r, const struct egress_request *q, enum http_reason syntax,
	const struct rules_trace *trace)
{
	enum egress_step step = EGRESS_STEP_METHOD;

	while (step < EGRESS_STEPS && holds(trace, i, step, step_holds(step, r, q, syntax)))
		step++;
	return step;
}

void
rules_request(const struct policy *p, rule_set candidates, const struct egress_request *r,
	const struct rules_trace *trace, struct egress_decision *ret)
{
	enum http_reason syntax = http_path_judge(r->path, 0);
	struct egress_decision best = {.reason = EGRESS_REASON_NO_RULE,
		.rule = EGRESS_NO_RULE,
		.step = EGRESS_STEPS,
		.status = egress_reason_status(EGRESS_REASON_NO_RULE)};

	for (size_t i = 0; i < p->nrules; i++) {
		const struct rule *rule = &p->rule[i];
		enum egress_step step;

		if ((candidates >> i & 1) == 0 ||
			(rule->kind != RULE_KIND_FETCH && rule->kind != RULE_KIND_BROKERED))
			continue;
		step = judge(i, rule, r, syntax, trace);
		if (step == EGRESS_STEPS) {
			*ret = (struct egress_decision){.reason = EGRESS_REASON_NONE,
				.rule = (uint16_t)i,
				.step = EGRESS_STEPS};
			return;
		}
		if (best.rule != EGRESS_NO_RULE && step <= best.step)
			continue;
		best = (struct egress_decision){
			.reason = reason_of(step), .rule = (uint16_t)i, .step = step};
		best.status = step == EGRESS_STEP_SYNTAX ? http_reason_status(syntax, HTTP_REQUEST)
							 : egress_reason_status(best.reason);
	}
	*ret = best;
}

/* ---- digest ---- */

static void
add(struct sha256 *h, struct view v)
{
	uint8_t n[4] = {
		(uint8_t)(v.n >> 24), (uint8_t)(v.n >> 16), (uint8_t)(v.n >> 8), (uint8_t)v.n};

	must(v.n <= UINT32_MAX);
	sha256_add(h, n, sizeof(n));
	sha256_add(h, v.p, v.n);
}

/* Parameters in the order of their names. */
static void
add_query(struct sha256 *h, const struct http_params *q)
{
	const struct http_param *order[HTTP_PARAMS_MAX];

	for (unsigned n = 0; n < q->n; n++) {
		unsigned at = n;

		while (at > 0 && canon_key_compare(order[at - 1]->name, q->param[n].name) > 0) {
			order[at] = order[at - 1];
			at--;
		}
		order[at] = &q->param[n];
	}
	for (unsigned i = 0; i < q->n; i++) {
		add(h, order[i]->name);
		add(h, order[i]->value);
	}
}

void
egress_request_digest(const struct egress_place *at, const struct egress_request *r,
	uint8_t ret[static SHA256_BYTES])
{
	char port[8];
	struct sha256 h;

	(void)snprintf(port, sizeof(port), "%u", at->port);
	sha256_init(&h);
	sha256_add(&h, "demilune-request-v1", sizeof("demilune-request-v1"));
	add(&h, view_str(egress_scheme_text(at->scheme)));
	add(&h, at->name);
	add(&h, view_str(port));
	add(&h, view_str(http_method_name(r->method)));
	add(&h, r->path);
	if (r->has_query && r->query != NULL)
		add_query(&h, r->query);
	sha256_end(&h, ret);
}
