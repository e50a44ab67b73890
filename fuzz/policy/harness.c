/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the document of a policy: refused as a whole, or one in which what everybody relies on holds. */
#include "lib/base/name.h"
#include "lib/canon/read.h"
#include "lib/egress/weak.h"

#include <errno.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool
inside(struct view document, struct view v)
{
	return v.n == 0 || (v.p >= document.p && v.p + v.n <= document.p + document.n);
}

static void
rule_holds(const struct policy *p, const struct rule *r)
{
	bool request = r->kind == RULE_KIND_FETCH || r->kind == RULE_KIND_BROKERED;
	struct address a;
	size_t port = 0;

	must(r->kind < RULE_KIND_MAX && r->port != 0 && r->port != GATEWAY_DNS_PORT &&
		r->port != GATEWAY_PROXY_PORT);
	while (port < p->nports && p->ports[port] != r->port)
		port++;
	must(port < p->nports);
	must(r->literal == (address_parse(r->host, &a) == 0));
	must(r->literal || host_name_ok(r->host));
	must(r->labels == LABELS_NONE || (!r->literal && !r->exact));
	must(r->labels != LABELS_NONE || rule_names(r, r->host, r->port));
	must(inside(p->document, r->host) && inside(p->document, r->path) &&
		inside(p->document, r->roots) && inside(p->document, r->credential_secret));
	must(request == (r->path.n > 0) && request == (r->methods != 0) &&
		request == (r->response_max > 0));
	must(!request || rule_path_ok(r->path));
	must((r->kind == RULE_KIND_BROKERED) == (r->credential_secret.n > 0));
	must((r->kind == RULE_KIND_BROKERED) == (r->nfields > 0));
	must(r->kind != RULE_KIND_BROKERED || (r->tls && r->methods == 1U << HTTP_GET));
	must(r->roots.n == 0 || (r->tls && name_ok(r->roots)));
	for (size_t i = 1; i < r->nquery; i++)
		must(canon_key_compare(r->query[i - 1], r->query[i]) < 0);
	(void)rule_weak(r);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct policy p, again;
	struct err err = {0};
	struct view document = view_of(data, size);

	if (policy_read(document, &p, &err) < 0) {
		must(err.code == -EINVAL && err.text[0] != '\0' && p.nrules == 0);
		return 0;
	}
	must(canon_check(document, false, &err) == 0);
	must(name_ok(p.name) && p.nrules <= POLICY_RULES_MAX && p.nports <= POLICY_PORTS_MAX);
	for (size_t i = 0; i < p.nrules; i++) {
		rule_holds(&p, &p.rule[i]);
		for (size_t k = 0; k < i; k++)
			must(!rule_conflicts(&p.rule[i], &p.rule[k]) &&
				rule_overlaps(&p.rule[i], &p.rule[k]) ==
					rule_overlaps(&p.rule[k], &p.rule[i]));
	}
	must(policy_read(document, &again, &err) == 0);
	must(memcmp(p.digest, again.digest, sizeof(p.digest)) == 0);
	return 0;
}
