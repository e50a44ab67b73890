/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A policy in hand, from wherever it was named, and its words for people. What a file or the daemon says is read with lib/egress as every
 * other room reads it; nothing here decides in another way.
 */
#pragma once

#include "cli/table.h"
#include "cli/verbs.h"
#include "lib/egress/policy.h"
#include "lib/json/parse.h"

struct policy_held {
	struct policies set;    /* all of a file or directory, or the one of the daemon */
	const struct policy *p; /* borrowed from set: the one that was asked for */
	json_t *row;            /* owned: what the daemon says of it; NULL: of a file */
};

void policy_held_done(struct policy_held *h);

static inline void
policy_held_cleanup(struct policy_held *h)
{
	policy_held_done(h);
}
#define auto_policy __attribute__((cleanup(policy_held_cleanup)))

/* Whether an argument is a file: it ends in .yaml or has a slash. All else is the name of a policy. */
bool policy_is_file(const char *text);

/* One file, compiled; its faults are told on standard error. */
int policy_of_file(const char *file, struct policy_held *ret, struct err *err) MUST_CHECK;

/* Of the daemon, by name, or of a task by id or ticket. */
int policy_of_name(
	struct cli *cli, const char *name, struct policy_held *ret, struct err *err) MUST_CHECK;
int policy_of_task(
	struct cli *cli, const char *task, struct policy_held *ret, struct err *err) MUST_CHECK;

/* "https docs.example:443" of a verdict; "dns docs.example"; "[2001:db8::1]:22" when nobody knows what was to be spoken. */
void egress_add_where(struct buf *b, const json_t *verdict);

enum { POLICY_LINE_BYTES = 65536 };

/* "https://docs.example/help/", "*.docs.example:873" */
void policy_add_where(struct buf *b, const struct rule *r);

/* "fetch https://docs.example/", as a rule is named in a sentence. */
void policy_add_name(struct buf *b, const struct rule *r);

/* What else the rule says, in a fixed order: two rules with the same name and the same rest are the same. */
void policy_add_rest(struct buf *b, const struct rule *r);

/* What is weak about the rule, in words; false: nothing. */
bool policy_add_weak(struct buf *b, const struct rule *r);

struct policy_budget {
	const char *name;
	uint64_t value;
	bool bytes;
};
enum { POLICY_BUDGETS = 7 };
void policy_budgets(const struct egress *e, struct policy_budget ret[static POLICY_BUDGETS]);

/* "100", "64 MiB" */
void policy_add_amount(struct buf *b, uint64_t value, bool bytes);
