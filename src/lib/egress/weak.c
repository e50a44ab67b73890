/* SPDX-License-Identifier: Apache-2.0 */
/* Weak rules; see weak.h. */
#include "lib/egress/weak.h"

static const char *const texts[RULE_WEAKS] = {
#define WEAK(NAME, text) [RULE_WEAK_##NAME] = text,
#include "lib/egress/weak.def"
#undef WEAK
};

static const char *const resolvers[] = {
#define RESOLVER(host) host,
#include "lib/egress/resolver.def"
#undef RESOLVER
};

static bool
resolves(const struct rule *r)
{
	for (size_t i = 0; i < ARRAY_LEN(resolvers); i++)
		if (rule_hosts(r, view_str(resolvers[i])))
			return true;
	return false;
}

unsigned
rule_weak(const struct rule *r)
{
	unsigned weak = 0;

	if (r->kind == RULE_KIND_TCP)
		weak |= 1U << RULE_WEAK_TCP;
	if (r->kind == RULE_KIND_PASSTHROUGH)
		weak |= 1U << RULE_WEAK_PASSTHROUGH;
	if (r->labels != LABELS_NONE)
		weak |= 1U << RULE_WEAK_LABELS;
	if (resolves(r))
		weak |= 1U << RULE_WEAK_RESOLVER;
	if (r->kind == RULE_KIND_FETCH && !r->tls)
		weak |= 1U << RULE_WEAK_PLAIN;
	if (r->websocket)
		weak |= 1U << RULE_WEAK_WEBSOCKET;
	return weak;
}

const char *
rule_weak_text(enum rule_weak w)
{
	must(w < RULE_WEAKS);
	return texts[w];
}
