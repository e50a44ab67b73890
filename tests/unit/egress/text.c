/* SPDX-License-Identifier: Apache-2.0 */
/* Documents; see text.h. */
#include "text.h"

#include <stdio.h>

struct view
document_of(const char *rules)
{
	static char text[POLICY_BYTES_MAX + 512];
	int n = snprintf(text, sizeof(text),
		"{\"budgets\":" BUDGETS ",\"name\":\"test\",\"rules\":[%s],\"v\":1}", rules);

	must(n > 0 && (size_t)n < sizeof(text));
	return view_of(text, (size_t)n);
}

const struct policy *
policy_of(const char *rules)
{
	static struct policy p;
	struct err err = {0};

	if (policy_read(document_of(rules), &p, &err) < 0) {
		(void)fprintf(stderr, "%s\n%s\n", err.text, rules);
		abort();
	}
	return &p;
}
