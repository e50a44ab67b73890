/* SPDX-License-Identifier: Apache-2.0 */
/* Names and ports of rules, and what holds between rules; see policy.h. The dialer asks this file and nothing else about a name. */
#include "lib/egress/part.h"

#include <errno.h>

/* A label of another script among the first n bytes. Whether it is a real one is not known here: only a rule that has it whole takes it. */
static bool
has_a_label(struct view name, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if ((i == 0 || name.p[i - 1] == '.') && view_starts(view_skip(name, i), "xn--"))
			return true;
	return false;
}

/* Whether `name` is labels and host, with a dot between; *ret_one: exactly one label. */
static bool
below(struct view name, struct view host, bool *ret_one)
{
	size_t labels = name.n > host.n + 1 ? name.n - host.n - 1 : 0;

	if (labels == 0 || name.p[labels] != '.' || !view_eq(view_skip(name, labels + 1), host))
		return false;
	*ret_one = !view_has(view_of(name.p, labels), '.');
	return true;
}

bool
rule_hosts(const struct rule *r, struct view name)
{
	bool one = false;

	if (r->labels == LABELS_NONE)
		return view_eq(name, r->host);
	return below(name, r->host, &one) && host_name_ok(name) &&
	       !has_a_label(name, name.n - r->host.n) && (one || r->labels == LABELS_MANY);
}

bool
rule_names(const struct rule *r, struct view name, uint16_t port)
{
	return r->port == port && rule_hosts(r, name);
}

/* Both have labels: "*.a.b" and "**.b" share "x.a.b". */
static bool
wild_overlap(const struct rule *a, const struct rule *b)
{
	bool one;

	if (view_eq(a->host, b->host))
		return true;
	return (b->labels == LABELS_MANY && below(a->host, b->host, &one)) ||
	       (a->labels == LABELS_MANY && below(b->host, a->host, &one));
}

bool
rule_overlaps(const struct rule *a, const struct rule *b)
{
	if (a->port != b->port)
		return false;
	if (a->labels == LABELS_NONE)
		return rule_hosts(b, a->host);
	return b->labels == LABELS_NONE ? rule_hosts(a, b->host) : wild_overlap(a, b);
}

/* A place is of one kind and of one way of speaking: the gateway knows it before the first byte. */
bool
rule_conflicts(const struct rule *a, const struct rule *b)
{
	return (a->kind != b->kind || a->tls != b->tls) && rule_overlaps(a, b);
}

/* In its place; false: there is no room. */
static bool
port_add(struct policy *p, uint16_t port)
{
	size_t at = 0;

	while (at < p->nports && p->ports[at] < port)
		at++;
	if (at < p->nports && p->ports[at] == port)
		return true;
	if (p->nports == POLICY_PORTS_MAX)
		return false;
	memmove(p->ports + at + 1, p->ports + at, (p->nports - at) * sizeof(p->ports[0]));
	p->ports[at] = port;
	p->nports++;
	return true;
}

static size_t
roots_count(const struct policy *p)
{
	size_t n = 0;

	for (size_t i = 0; i < p->nrules; i++) {
		bool first = p->rule[i].roots.n > 0;

		for (size_t k = 0; k < i; k++)
			first = first && !view_eq(p->rule[k].roots, p->rule[i].roots);
		n += first ? 1 : 0;
	}
	return n;
}

int
places_read(struct policy *p, struct err *err)
{
	for (size_t i = 0; p->capture && i < ARRAY_LEN(policy_capture_ports); i++)
		must(port_add(p, policy_capture_ports[i])); /* the first ones */
	for (size_t i = 0; i < p->nrules; i++) {
		if (!port_add(p, p->rule[i].port))
			return err_set(
				err, -EINVAL, "more than %d different ports", POLICY_PORTS_MAX);
		for (size_t k = 0; k < i; k++)
			if (rule_conflicts(&p->rule[k], &p->rule[i]))
				return err_set(err, -EINVAL,
					"rules %zu (%s) and %zu (%s) meet at one place", k + 1,
					rule_kind_text(p->rule[k].kind), i + 1,
					rule_kind_text(p->rule[i].kind));
	}
	if (roots_count(p) > POLICY_ROOTS_MAX)
		return err_set(err, -EINVAL, "more than %d different roots", POLICY_ROOTS_MAX);
	return 0;
}
