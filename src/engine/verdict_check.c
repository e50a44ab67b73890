/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of a gateway's messages; see verdict_check.h. */
#include "engine/verdict_check.h"

#include "engine/limits.h"

#include <errno.h>

/* What a verdict and a flow have in common. */
struct what {
	enum verdict verdict;
	enum egress_reason reason;
	enum egress_scheme scheme;
	uint16_t rule, port;
	struct view name;
};

static bool
alnum(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool
name_is_canonical(struct view v)
{
	struct address a;

	return v.n == 0 || host_name_ok(v) || address_parse(v, &a) == 0;
}

static bool
address_is_canonical(struct view v)
{
	struct address a;

	return v.n == 0 || address_parse(v, &a) == 0;
}

/* RFC 9110: token. */
static bool
method_ok(struct view v)
{
	for (size_t i = 0; i < v.n; i++)
		if (!alnum(v.p[i]) && !view_has(view_str("!#$%&'*+-.^_`|~"), v.p[i]))
			return false;
	return true;
}

static bool
hex_digit(uint8_t c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* RFC 3986: segments of pchar. */
static bool
path_ok(struct view v)
{
	if (v.n != 0 && v.p[0] != '/')
		return false;
	for (size_t i = 0; i < v.n; i++) {
		if (alnum(v.p[i]) || view_has(view_str("/-._~!$&'()*+,;=:@"), v.p[i]))
			continue;
		if (v.p[i] != '%' || v.n - i < 3 || !hex_digit(v.p[i + 1]) ||
			!hex_digit(v.p[i + 2]))
			return false;
		i += 2;
	}
	return true;
}

/* Whole UTF-8 names, each with its NUL. */
static bool
query_ok(struct view v)
{
	return v.n == 0 || (v.p[v.n - 1] == '\0' && view_utf8(v));
}

static enum egress_scheme
scheme_of(const struct rule *r)
{
	switch (r->kind) {
	case RULE_KIND_FETCH:
		return r->tls ? EGRESS_SCHEME_HTTPS : EGRESS_SCHEME_HTTP;
	case RULE_KIND_BROKERED:
		return EGRESS_SCHEME_HTTPS;
	case RULE_KIND_TCP:
		return EGRESS_SCHEME_TCP;
	case RULE_KIND_PASSTHROUGH:
		return EGRESS_SCHEME_PASSTHROUGH;
	case RULE_KIND_MAX:
		break;
	}
	return EGRESS_SCHEME_NONE;
}

/* What the rule leads to, and nothing else, may be allowed by it. */
static int
allowed_check(const struct policy *p, const struct what *w, struct err *err)
{
	if (w->reason != EGRESS_REASON_NONE)
		return err_set(err, -EPROTO, "allowed, with a reason why not");
	if (w->rule == EGRESS_NO_RULE)
		return err_set(err, -EPROTO, "allowed by no rule");
	if (w->scheme != scheme_of(&p->rule[w->rule]))
		return err_set(err, -EPROTO, "allowed by a rule for another way of speaking");
	if (!rule_names(&p->rule[w->rule], w->name, w->port))
		return err_set(err, -EPROTO, "allowed by a rule that does not lead there");
	return 0;
}

static int
what_check(const struct policy *p, const struct what *w, struct err *err)
{
	if (w->rule != EGRESS_NO_RULE && w->rule >= p->nrules)
		return err_set(err, -EPROTO, "a rule that the policy does not have");
	if (!name_is_canonical(w->name))
		return err_set(err, -EPROTO, "a name that is not canonical");
	if (w->verdict == VERDICT_ALLOWED)
		return allowed_check(p, w, err);
	return w->reason == EGRESS_REASON_NONE ? err_set(err, -EPROTO, "refused without a reason")
					       : 0;
}

int
verdict_check(const struct policy *p, const struct msg_verdict *m, struct err *err)
{
	const struct what w = {m->verdict, m->reason, m->scheme, m->rule, m->port, m->name};

	if (!address_is_canonical(m->address))
		return err_set(err, -EPROTO, "an address that is not canonical");
	if (!method_ok(m->method))
		return err_set(err, -EPROTO, "a method that is no token");
	if (!path_ok(m->path))
		return err_set(err, -EPROTO, "a path that is none");
	if (!query_ok(m->query))
		return err_set(err, -EPROTO, "names of parameters that are none");
	return what_check(p, &w, err);
}

int
flow_check(const struct policy *p, const struct msg_flow *m, struct err *err)
{
	const struct what w = {m->verdict, m->reason, m->scheme, m->rule, m->port, m->name};

	if (m->bytes_out > LIMIT_FLOW_BYTES || m->bytes_in > LIMIT_FLOW_BYTES)
		return err_set(err, -EPROTO, "more bytes than can have moved");
	/* The sum over all kinds that the gateway does not count each by itself. */
	if (m->rule == EGRESS_NO_RULE && m->name.n == 0 && m->port == 0 &&
		m->scheme == EGRESS_SCHEME_NONE)
		return 0;
	return what_check(p, &w, err);
}

int
lease_check(const struct policy *p, const struct msg_lease_ask *m, struct err *err)
{
	if (m->rule >= p->nrules || p->rule[m->rule].kind != RULE_KIND_BROKERED)
		return err_set(err, -EPROTO, "a lease for what is no brokered rule");
	return 0;
}
