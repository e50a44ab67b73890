/* SPDX-License-Identifier: Apache-2.0 */
/* What policy.c is made of: the parts of a document that have a reader of their own. Nobody else includes this. */
#pragma once

#include "lib/canon/form.h"
#include "lib/egress/policy.h"

/* One entry of "rules". */
int rule_read(struct view raw, struct rule *ret, struct err *err) MUST_CHECK;

/* What holds between the rules: kinds that meet, ports, roots. Fills p->ports. */
int places_read(struct policy *p, struct err *err) MUST_CHECK;

/* At most max texts that are ok(), ascending, each once, at least one; none when v is not there. */
int texts_read(const struct form_value *v, const char *what, bool (*ok)(struct view), size_t max,
	struct view *ret, size_t *ret_n, struct err *err) MUST_CHECK;
