/* SPDX-License-Identifier: Apache-2.0 */
/* What is weak about a rule (weak.def), for whoever shows policies: `policy check` and `show`, the API, the record. Pure. */
#pragma once

#include "lib/egress/policy.h"

enum rule_weak {
#define WEAK(NAME, text) RULE_WEAK_##NAME,
#include "lib/egress/weak.def"
#undef WEAK
	RULE_WEAKS
};

/* Bits 1 << RULE_WEAK_x; 0: all that goes through it is judged. */
unsigned rule_weak(const struct rule *r);
const char *rule_weak_text(enum rule_weak w);
