/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For differential.py: decisions line by line. "D<TAB>document" prints ok or refused; "R<TAB>host<TAB>port<TAB>scheme<TAB>method<TAB>flags<TAB>
 * bytes<TAB>path<TAB>query" prints the reason and the rule. query: "-" none, else behind a '?'. flags: c credential, u upgrade, b body.
 */
#include "lib/base/num.h"
#include "lib/egress/rules.h"

#include <stdio.h>

enum { FIELDS = 9, LINE_MAX = 1 << 17 };

static struct policy policy;
static uint8_t document[LINE_MAX], memory[LINE_MAX];

static size_t
split(struct view v, struct view *ret)
{
	size_t n = 0;

	for (;;) {
		const uint8_t *tab = v.n == 0 ? NULL : memchr(v.p, '\t', v.n);
		size_t here = tab == NULL ? v.n : (size_t)(tab - v.p);

		must(n < FIELDS);
		ret[n++] = view_of(v.p, here);
		if (tab == NULL)
			return n;
		v = view_of(v.p + here + 1, v.n - here - 1);
	}
}

static void
take_document(struct view v)
{
	struct err err = {0};

	memcpy(document, v.p, v.n);
	(void)puts(policy_read(view_of(document, v.n), &policy, &err) == 0 ? "ok" : "refused");
}

static void
take_request(const struct view *f)
{
	struct http_params params = {.n = 0};
	struct egress_place at = {.name = f[1]};
	struct egress_decision d = {.rule = EGRESS_NO_RULE};
	struct egress_request r = {.method = http_method_of(f[4]),
		.path = f[7],
		.has_query = !view_is(f[8], "-"),
		.credential = view_has(f[5], 'c'),
		.upgrade = view_has(f[5], 'u'),
		.body = view_has(f[5], 'b')};
	uint64_t port;
	rule_set set = 0;

	must(num_u64(f[2], UINT16_MAX, &port) == 0 && egress_scheme_parse(f[3], &at.scheme) == 0);
	must(num_u64(f[6], UINT64_MAX, &r.body_bytes) == 0 && r.method < HTTP_METHODS);
	at.port = (uint16_t)port;
	if (r.has_query && http_query_parse(view_skip(f[8], 1), 0, memory, &params) == HTTP_FINE)
		r.query = &params;
	d.reason = rules_place(&policy, &at, &set, NULL);
	if (d.reason == EGRESS_REASON_NONE)
		rules_request(&policy, set, &r, NULL, &d);
	(void)printf("%s %u\n", egress_reason_text(d.reason), d.rule);
}

int
main(void)
{
	static char line[LINE_MAX];

	while (fgets(line, sizeof(line), stdin) != NULL) {
		struct view v = view_str(line), f[FIELDS];
		size_t n;

		must(v.n > 0 && v.p[v.n - 1] == '\n');
		n = split(view_of(v.p, v.n - 1), f);
		if (n == 2 && view_is(f[0], "D"))
			take_document(f[1]);
		else if (n == FIELDS && view_is(f[0], "R"))
			take_request(f);
		else
			must(false);
	}
	return 0;
}
