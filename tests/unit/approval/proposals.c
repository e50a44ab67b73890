/* SPDX-License-Identifier: Apache-2.0 */
/* Records; see proposals.h. */
#include "proposals.h"

#include <stdio.h>

static const struct instead usual[] = {
	{"action", "\"refund\""},
	{"actor", "\"sandbox:sb_0123456789abcdef\""},
	{"adapter", "\"" PROPOSAL_ADAPTER "\""},
	{"arguments", "{\"cents\":4200,\"order_id\":\"48221\",\"reason\":\"damaged\"}"},
	{"capability", "\"gr_0123456789abcdef\""},
	{"catalogue", "\"dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd\""},
	{"decide_by_ms", "1795969384000"},
	{"defaulted", "[\"reason\"]"},
	{"dispatch_within_ms", "300000"},
	{"effect", "\"irreversible\""},
	{"environment", "\"production\""},
	{"epoch", "1"},
	{"facts", "{\"order__paid_cents\":4200,\"order__tenant\":\"acme\"}"},
	{"idempotency_key", "\"dml-0123456789012345678901234567890123456789\""},
	{"issued_ms", "1795968784000"},
	{"max_executions", "1"},
	{"owner", "\"uid:1000\""},
	{"policy", "\"" PROPOSAL_POLICY "\""},
	{"proposal", "\"pr_0123456789abcdef\""},
	{"provenance", "{\"cents\":\"sandbox\",\"order_id\":\"sandbox\"}"},
	{"provider_account", "\"acme-pay\""},
	{"quorum", "1"},
	{"request.body", "\"{\\\"amount\\\":4200,\\\"reason\\\":\\\"damaged\\\"}\""},
	{"request.content_type", "\"application/json\""},
	{"request.method", "\"POST\""},
	{"request.url", "\"https://pay.example/v1/refunds\""},
	{"requester", "\"sandbox:sb_0123456789abcdef\""},
	{"roles", "[\"support\"]"},
	{"schema", "\"" PROPOSAL_SCHEMA "\""},
	{"task", "\"tk_0123456789abcdef\""},
	{"tenant", "\"acme\""},
	{"v", "1"},
	{"where", "[\"order.tenant == @tenant\"]"},
};

void
proposal_put(struct buf *out, const struct instead *others, size_t n)
{
	bool inside = false;

	for (size_t i = 0; i < ARRAY_LEN(usual); i++) {
		const char *key = usual[i].key, *value = usual[i].value, *dot = strchr(key, '.');

		for (size_t j = 0; j < n; j++)
			if (strcmp(others[j].key, key) == 0)
				value = others[j].value;
		if (value == NULL)
			continue;
		if (inside && dot == NULL)
			buf_add_byte(out, '}');
		buf_add_byte(out, i == 0 ? '{' : ',');
		if (!inside && dot != NULL)
			buf_add_str(out, "\"request\":{");
		inside = dot != NULL;
		buf_addf(out, "\"%s\":", dot != NULL ? dot + 1 : key);
		buf_add_str(out, value);
	}
	buf_add_byte(out, '}');
}
