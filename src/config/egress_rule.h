/* SPDX-License-Identifier: Apache-2.0 */
/* One rule of a policy, as somebody wrote it: read once, compared with the others, written into the document. */
#pragma once

#include "config/section.h"
#include "lib/egress/policy.h"

struct rule_source {
	const struct node *node;
	struct section s;      /* of its kind */
	struct section secret; /* .node NULL: the credential is a name alone */
	struct rule rule;      /* what is known of it; views as those of lib/egress */
	char host[HOST_NAME_MAX_BYTES + 1];
	char address[ADDRESS_TEXT];
	const struct node *query[POLICY_QUERY_MAX], *field[POLICY_FIELDS_MAX]; /* ascending */
	bool placed;       /* host and port are known */
	bool methods_told; /* what is wrong with them: nothing is said about what they would need */
};

/* Faults are told. */
void rule_source_read(struct builder *b, const struct node *n, struct rule_source *ret);
void rule_source_write(const struct rule_source *r, struct canon_writer *w);

/* Texts of a list, ascending; what `ok` (which tells why) refuses, what comes twice and what is more than max is told. */
size_t texts_sort(struct builder *b, const struct node *list, const char *key,
	bool (*ok)(struct builder *b, const struct node *n), size_t max, const struct node **ret);
