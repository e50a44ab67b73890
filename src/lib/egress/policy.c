/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One policy document; see policy.h. Written by the configuration compiler, read by everybody who decides. It sees bytes of the supervisor
 * only, and believes them as little as any: what does not have the form is no policy.
 */
#include "lib/egress/policy.h"

#include "lib/base/name.h"
#include "lib/egress/part.h"

#include <errno.h>

enum { P_BUDGETS, P_CAPTURE, P_IPV6, P_NAME, P_RULES, P_TENANTS, P_V, P_N };

static const struct form_row policy_form[P_N] = {
	[P_BUDGETS] = {"budgets", FORM_OBJECT, false},
	[P_CAPTURE] = {"capture", FORM_BOOL, true},
	[P_IPV6] = {"ipv6", FORM_BOOL, true},
	[P_NAME] = {"name", FORM_STR, false},
	[P_RULES] = {"rules", FORM_ANY, false},
	[P_TENANTS] = {"tenants", FORM_ARRAY, true},
	[P_V] = {"v", FORM_INT, false},
};

int
texts_read(const struct form_value *v, const char *what, bool (*ok)(struct view), size_t max,
	struct view *ret, size_t *ret_n, struct err *err)
{
	struct form_value one = {0};
	struct form_list l;
	size_t n = 0;
	int e;

	*ret_n = 0;
	if (!v->there)
		return 0;
	e = form_list_begin(&l, v->raw, err);
	while (e == 0 && (e = form_list_next(&l, &one, err)) == 1) {
		if (one.type != FORM_TEXT || one.escaped || !ok(one.text))
			return err_set(err, -EINVAL, "%s: an entry is not well-formed", what);
		if (n == max)
			return err_set(err, -EINVAL, "%s: more than %zu entries", what, max);
		if (n > 0 && canon_key_compare(ret[n - 1], one.text) >= 0)
			return err_set(err, -EINVAL, "%s: entries ascend, each stands once", what);
		ret[n++] = one.text;
		e = 0;
	}
	*ret_n = n;
	return e;
}

static int
budgets_read(struct view raw, struct egress *ret, struct err *err)
{
	static const struct form_row form[] = {
		{"brokered", FORM_INT, false},
		{"bytes_in", FORM_INT, false},
		{"bytes_out", FORM_INT, false},
		{"connections", FORM_INT, false},
		{"handshakes", FORM_INT, false},
		{"names", FORM_INT, false},
		{"requests", FORM_INT, false},
	};
	struct form_value v[ARRAY_LEN(form)];
	int64_t n[ARRAY_LEN(form)] = {0};
	int e = form_read(raw, "budgets", form, ARRAY_LEN(form), v, err);

	for (size_t i = 0; e == 0 && i < ARRAY_LEN(form); i++)
		e = form_int(&v[i], form[i].key, 0, CANON_INT_MAX, &n[i], err);
	if (e < 0)
		return e;
	*ret = (struct egress){
		.brokered = (uint64_t)n[0],
		.bytes_in = (uint64_t)n[1],
		.bytes_out = (uint64_t)n[2],
		.connections = (uint64_t)n[3],
		.handshakes = (uint64_t)n[4],
		.names = (uint64_t)n[5],
		.requests = (uint64_t)n[6],
	};
	return 0;
}

static int
rules_read(const struct form_value *v, struct policy *p, struct err *err)
{
	struct form_value one = {0};
	struct form_list l;
	int e;

	if (v->type != FORM_ARRAY)
		return err_set(err, -EINVAL, "policy: \"rules\" must be an array");
	e = form_list_begin(&l, v->raw, err);
	while (e == 0 && (e = form_list_next(&l, &one, err)) == 1) {
		if (p->nrules == POLICY_RULES_MAX)
			return err_set(err, -EINVAL, "more than %d rules", POLICY_RULES_MAX);
		e = rule_read(one.raw, &p->rule[p->nrules], err);
		if (e < 0)
			return err_context(err, "rule %zu", p->nrules + 1);
		p->nrules++;
	}
	return e;
}

/* A flag that is there only when it is set: there is one way to say that it is not. */
static int
flag_read(const struct form_value *v, const char *what, bool *ret, struct err *err)
{
	if (v->there && !v->b)
		return err_set(err, -EINVAL, "policy: \"%s\" is left out when it is false", what);
	*ret = v->there;
	return 0;
}

static void
digest(struct view document, uint8_t ret[static SHA256_BYTES])
{
	struct sha256 h;

	sha256_init(&h);
	sha256_add(&h, "demilune-egress-v1", sizeof("demilune-egress-v1"));
	sha256_add(&h, document.p, document.n);
	sha256_end(&h, ret);
}

static int
parts_read(const struct form_value v[static P_N], struct policy *p, struct err *err)
{
	int64_t version;
	int e = form_int(&v[P_V], "policy: v", 1, 1, &version, err);

	if (e == 0 && !name_ok(v[P_NAME].text))
		e = err_set(err, -EINVAL, "policy: the name is not well-formed");
	if (e == 0)
		e = flag_read(&v[P_CAPTURE], "capture", &p->capture, err);
	if (e == 0)
		e = flag_read(&v[P_IPV6], "ipv6", &p->ipv6, err);
	if (e == 0)
		e = budgets_read(v[P_BUDGETS].raw, &p->budgets, err);
	if (e == 0)
		e = texts_read(&v[P_TENANTS], "tenants", name_ok, POLICY_TENANTS_MAX, p->tenant,
			&p->ntenants, err);
	if (e == 0)
		e = rules_read(&v[P_RULES], p, err);
	if (e == 0)
		e = places_read(p, err);
	p->name = v[P_NAME].text;
	return e;
}

int
policy_read(struct view document, struct policy *ret, struct err *err)
{
	struct form_value v[P_N];
	int e;

	*ret = (struct policy){.document = document};
	if (document.n > POLICY_BYTES_MAX)
		return err_set(err, -EINVAL, "a policy has more than %d bytes", POLICY_BYTES_MAX);
	e = form_read(document, "policy", policy_form, P_N, v, err);
	if (e == 0)
		e = parts_read(v, ret, err);
	if (e == 0) {
		digest(document, ret->digest);
		return 0;
	}
	*ret = (struct policy){.nrules = 0};
	return err->code = -EINVAL;
}
