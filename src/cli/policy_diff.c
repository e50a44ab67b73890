/* SPDX-License-Identifier: Apache-2.0 */
/* `demilune policy diff`: what changes from one policy to another. A rule that moved is taken away and added: the order of rules decides. */
#include "cli/answer.h"
#include "cli/policy.h"

#include <errno.h>

enum { CHANGES_MAX = 2 * (POLICY_RULES_MAX + POLICY_BUDGETS + 4) };

/* One line of the difference. */
struct change {
	char sign; /* '-', '+', ' ' */
	const char *what;
	char *text; /* owned */
};

struct diff {
	struct change change[CHANGES_MAX];
	size_t n;
	bool differs;
};

static void
diff_done(struct diff *d)
{
	for (size_t i = 0; i < d->n; i++)
		free(d->change[i].text);
}
#define auto_diff __attribute__((cleanup(diff_done)))

static int
add(struct diff *d, char sign, const char *what, const struct buf *text, struct err *err)
{
	char *copy = strndup(text->n == 0 ? "" : (const char *)text->p, text->n);

	must(d->n < CHANGES_MAX);
	if (copy == NULL || buf_check(text) < 0) {
		free(copy);
		return err_set(err, -ENOMEM, "no memory");
	}
	d->change[d->n++] = (struct change){.sign = sign, .what = what, .text = copy};
	d->differs |= sign != ' ';
	return 0;
}

/* ---- rules: the longest common run of both lists stays ---- */

static void
rule_line(struct buf *b, const struct rule *r)
{
	auto_buf struct buf rest;

	buf_init(&rest, POLICY_LINE_BYTES);
	policy_add_name(b, r);
	policy_add_rest(&rest, r);
	if (rest.n > 0)
		buf_addf(b, ": %.*s", VIEW_ARGS(buf_view(&rest)));
}

static bool
same(const struct policy *a, size_t i, const struct policy *b, size_t j)
{
	auto_buf struct buf x, y;

	buf_init(&x, POLICY_LINE_BYTES);
	buf_init(&y, POLICY_LINE_BYTES);
	rule_line(&x, &a->rule[i]);
	rule_line(&y, &b->rule[j]);
	return view_eq(buf_view(&x), buf_view(&y));
}

static int
add_rule(struct diff *d, char sign, const struct rule *r, struct err *err)
{
	auto_buf struct buf line;

	buf_init(&line, POLICY_LINE_BYTES);
	rule_line(&line, r);
	return add(d, sign, "rule", &line, err);
}

static int
diff_rules(struct diff *d, const struct policy *a, const struct policy *b, struct err *err)
{
	/* keep[i][j]: rules that both have in this order from a's i-th and b's j-th on. */
	uint8_t keep[POLICY_RULES_MAX + 1][POLICY_RULES_MAX + 1] = {0};
	bool eq[POLICY_RULES_MAX][POLICY_RULES_MAX];
	size_t i, j;
	int r = 0;

	for (i = a->nrules; i-- > 0;)
		for (j = b->nrules; j-- > 0;) {
			uint8_t down = keep[i + 1][j], right = keep[i][j + 1];

			eq[i][j] = same(a, i, b, j);
			keep[i][j] = eq[i][j]       ? (uint8_t)(keep[i + 1][j + 1] + 1)
				     : down > right ? down
						    : right;
		}
	for (i = j = 0; r == 0 && (i < a->nrules || j < b->nrules);) {
		if (i < a->nrules && j < b->nrules && eq[i][j]) {
			r = add_rule(d, ' ', &a->rule[i++], err);
			j++;
		} else if (i < a->nrules && (j == b->nrules || keep[i + 1][j] >= keep[i][j + 1])) {
			r = add_rule(d, '-', &a->rule[i++], err);
		} else {
			r = add_rule(d, '+', &b->rule[j++], err);
		}
	}
	return r;
}

/* ---- what is not a rule ---- */

/* Nothing when both are the same. */
static int
add_pair(struct diff *d, const char *what, const struct buf *was, const struct buf *is,
	struct err *err)
{
	int r;

	if (view_eq(buf_view(was), buf_view(is)))
		return 0;
	r = add(d, '-', what, was, err);
	return r < 0 ? r : add(d, '+', what, is, err);
}

static int
add_words(struct diff *d, const char *what, const char *was, const char *is, struct err *err)
{
	auto_buf struct buf x, y;

	buf_init(&x, POLICY_LINE_BYTES);
	buf_init(&y, POLICY_LINE_BYTES);
	buf_add_str(&x, was);
	buf_add_str(&y, is);
	return add_pair(d, what, &x, &y, err);
}

static int
diff_budgets(struct diff *d, const struct policy *a, const struct policy *b, struct err *err)
{
	struct policy_budget was[POLICY_BUDGETS], is[POLICY_BUDGETS];
	int r = 0;

	policy_budgets(&a->budgets, was);
	policy_budgets(&b->budgets, is);
	for (size_t i = 0; r == 0 && i < POLICY_BUDGETS; i++) {
		auto_buf struct buf x, y;

		buf_init(&x, POLICY_LINE_BYTES);
		buf_init(&y, POLICY_LINE_BYTES);
		buf_addf(&x, "%s ", was[i].name);
		buf_addf(&y, "%s ", is[i].name);
		/* What both show as the same number of MiB is told in bytes. */
		policy_add_amount(&x, was[i].value, was[i].bytes);
		policy_add_amount(&y, is[i].value, is[i].bytes);
		if (was[i].value != is[i].value && view_eq(buf_view(&x), buf_view(&y))) {
			buf_addf(&x, " (%llu B)", (unsigned long long)was[i].value);
			buf_addf(&y, " (%llu B)", (unsigned long long)is[i].value);
		}
		r = add_pair(d, "budget", &x, &y, err);
	}
	return r;
}

static void
tenants_line(struct buf *b, const struct policy *p)
{
	for (size_t i = 0; i < p->ntenants; i++)
		buf_addf(b, "%s%.*s", i == 0 ? "" : ", ", VIEW_ARGS(p->tenant[i]));
	if (p->ntenants == 0)
		buf_add_str(b, "all");
}

static int
diff_rest(struct diff *d, const struct policy *a, const struct policy *b, struct err *err)
{
	auto_buf struct buf was, is;
	int r;

	buf_init(&was, POLICY_LINE_BYTES);
	buf_init(&is, POLICY_LINE_BYTES);
	tenants_line(&was, a);
	tenants_line(&is, b);
	r = add_pair(d, "tenants", &was, &is, err);
	if (r == 0)
		r = add_words(
			d, "addresses", a->ipv6 ? "ipv6" : "ipv4", b->ipv6 ? "ipv6" : "ipv4", err);
	if (r == 0)
		r = add_words(d, "capture", a->capture ? "true" : "false",
			b->capture ? "true" : "false", err);
	return r;
}

/* ---- the verb ---- */

static void
print_change(const struct change *c, bool colours)
{
	const char *on = c->sign == '-' ? "\033[31m" : c->sign == '+' ? "\033[32m" : "";

	(void)printf("%s%c %s %s%s\n", colours ? on : "", c->sign, c->what, c->text,
		colours && on[0] != '\0' ? "\033[0m" : "");
}

static int
print_json(const struct diff *d, struct err *err)
{
	json_t *all auto_json = json_array();
	int r = 0;

	for (size_t i = 0; r == 0 && i < d->n; i++)
		if (d->change[i].sign != ' ')
			r = json_array_append_new(
				all, json_pack("{s:s, s:s, s:s}", "change",
					     d->change[i].sign == '-' ? "removed" : "added", "what",
					     d->change[i].what, "text", d->change[i].text));
	return r != 0 ? err_set(err, -ENOMEM, "no memory") : answer_print(all, err);
}

static int
hold(struct cli *cli, const char *text, struct policy_held *ret, struct err *err)
{
	return policy_is_file(text) ? policy_of_file(text, ret, err)
				    : policy_of_name(cli, text, ret, err);
}

int
verb_policy_diff(struct cli *cli, struct err *err)
{
	auto_policy struct policy_held was = {0}, is = {0};
	auto_diff struct diff d = {.n = 0};
	bool colours = table_colours(stdout);
	int r = hold(cli, cli->args.rest[0], &was, err);

	if (r == 0)
		r = hold(cli, cli->args.rest[1], &is, err);
	if (r == 0)
		r = diff_rules(&d, was.p, is.p, err);
	if (r == 0)
		r = diff_budgets(&d, was.p, is.p, err);
	if (r == 0)
		r = diff_rest(&d, was.p, is.p, err);
	if (r == 0 && args_has(&cli->args, OPT_JSON))
		r = print_json(&d, err);
	else
		for (size_t i = 0; r == 0 && i < d.n && d.differs; i++)
			print_change(&d.change[i], colours);
	if (r == 0)
		r = answer_done(err);
	return r != 0 ? r : d.differs;
}
