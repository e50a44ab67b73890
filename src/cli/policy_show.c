/* SPDX-License-Identifier: Apache-2.0 */
/* `demilune policy check` and `demilune policy show`: what policies say, and where they are weak. */
#include "cli/answer.h"
#include "cli/check.h"
#include "cli/policy.h"
#include "cli/safe.h"
#include "lib/base/hex.h"

#include <errno.h>
#include <inttypes.h>

enum { DIGEST_SHOWN = 7 + 12 };

/* ---- what is weak ---- */

/* One line for each rule that is weak; returns how many. */
static unsigned
print_weak(const struct policy *p)
{
	unsigned weak = 0;

	for (size_t i = 0; i < p->nrules; i++) {
		auto_buf struct buf name, words;

		buf_init(&name, POLICY_LINE_BYTES);
		buf_init(&words, POLICY_LINE_BYTES);
		if (!policy_add_weak(&words, &p->rule[i]))
			continue;
		weak++;
		policy_add_name(&name, &p->rule[i]);
		(void)printf("%.*s: rule %zu (%.*s) is weak: %.*s\n", VIEW_ARGS(p->name), i + 1,
			VIEW_ARGS(buf_view(&name)), VIEW_ARGS(buf_view(&words)));
	}
	return weak;
}

/* The directory that --config or the defaults name. */
static int
usual_dir(struct cli *cli, struct settings *settings, const char **ret, struct err *err)
{
	int r = check_settings(args_text(&cli->args, OPT_CONFIG), settings, err);

	if (r == 0)
		*ret = settings->policies_dir;
	return r;
}

int
verb_policy_check(struct cli *cli, struct err *err)
{
	const char *file = cli->args.n_rest > 0 ? cli->args.rest[0] : NULL;
	auto_policy struct policy_held h = {0};
	struct settings settings;
	unsigned faults = 0, weak = 0;
	int r = file == NULL ? usual_dir(cli, &settings, &file, err) : 0;

	if (r == 0)
		r = check_policies(file, stdout, &h.set, &faults, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < h.set.n; i++)
		weak += print_weak(&h.set.row[i]);
	if (faults == 0 && weak == 0)
		(void)printf(
			"%s: %zu polic%s, no faults\n", file, h.set.n, h.set.n == 1 ? "y" : "ies");
	else if (faults == 0)
		(void)printf("%s: %zu polic%s, no faults, %u weak rule%s\n", file, h.set.n,
			h.set.n == 1 ? "y" : "ies", weak, weak == 1 ? "" : "s");
	r = answer_done(err);
	return r != 0 ? r : faults != 0;
}

/* ---- one policy ---- */

static void
print_budgets(const struct policy *p)
{
	struct policy_budget budgets[POLICY_BUDGETS];
	auto_buf struct buf line;

	buf_init(&line, POLICY_LINE_BYTES);
	policy_budgets(&p->budgets, budgets);
	for (size_t i = 0; i < POLICY_BUDGETS; i++) {
		buf_addf(&line, "%s%s ", i == 0 ? "" : ", ", budgets[i].name);
		policy_add_amount(&line, budgets[i].value, budgets[i].bytes);
	}
	field_line(stdout, "budgets", buf_view(&line));
}

static void
print_head(const struct policy_held *h)
{
	const struct policy *p = h->p;
	char digest[SHA256_TEXT];
	auto_buf struct buf tenants;

	buf_init(&tenants, POLICY_LINE_BYTES);
	for (size_t i = 0; i < p->ntenants; i++)
		buf_addf(&tenants, "%s%.*s", i == 0 ? "" : ", ", VIEW_ARGS(p->tenant[i]));
	hex_encode(p->digest, SHA256_BYTES, digest);
	field_line(stdout, "policy", p->name);
	field_linef(stdout, "digest", "sha256:%s", digest);
	if (h->row != NULL && !answer_bool(h->row, "current"))
		field_line(stdout, "revision",
			view_str("an older one; new sandboxes get another: demilune policy show "
				 "NAME"));
	if (h->row != NULL && answer_bool(h->row, "current") &&
		answer_int(h->row, "sandboxes", 0) > 0)
		field_linef(stdout, "revision", "%" PRId64 " living sandbox%s an older one",
			answer_int(h->row, "sandboxes", 0),
			answer_int(h->row, "sandboxes", 0) == 1 ? " has" : "es have");
	field_line(stdout, "tenants", p->ntenants == 0 ? view_str("all") : buf_view(&tenants));
	if (p->ipv6)
		field_line(stdout, "addresses", view_str("ipv6"));
	if (p->capture)
		field_line(stdout, "capture", view_str("every address is captured and refused"));
	print_budgets(p);
}

static int
print_rules(const struct policy *p, struct err *err)
{
	static const struct table_column columns[] = {{"RULE", true, 0}, {"KIND", false, 0},
		{"WHERE", false, 0}, {"WEAK", false, 0}, {"WHAT", false, 0}};
	auto_table struct table t;

	table_init(&t, columns, ARRAY_LEN(columns));
	for (size_t i = 0; i < p->nrules; i++) {
		const struct rule *r = &p->rule[i];
		auto_buf struct buf where, what, weak;
		bool is_weak;

		buf_init(&where, POLICY_LINE_BYTES);
		buf_init(&what, POLICY_LINE_BYTES);
		buf_init(&weak, POLICY_LINE_BYTES);
		policy_add_where(&where, r);
		policy_add_rest(&what, r);
		is_weak = policy_add_weak(&weak, r);
		table_cellf(&t, "%zu", i + 1);
		table_cell(&t, view_str(rule_kind_text(r->kind)));
		table_cell(&t, buf_view(&where));
		table_tone(&t, TONE_BAD, view_str(is_weak ? "weak" : ""));
		table_cell(&t, buf_view(&what));
	}
	return table_print(&t, stdout, err);
}

static int
show_one(struct cli *cli, const struct policy_held *h, struct err *err)
{
	int r;

	if (args_has(&cli->args, OPT_JSON) && h->row != NULL)
		return answer_print(h->row, err);
	if (args_has(&cli->args, OPT_JSON)) {
		(void)printf("%.*s\n", VIEW_ARGS(h->p->document));
		return answer_done(err);
	}
	print_head(h);
	(void)putchar('\n');
	if (h->p->nrules == 0)
		(void)puts("no rules: nothing leaves a sandbox");
	r = h->p->nrules == 0 ? 0 : print_rules(h->p, err);
	if (r < 0)
		return r;
	(void)putchar('\n');
	if (print_weak(h->p) == 0 && h->p->nrules > 0)
		(void)puts("no weak rules");
	return answer_done(err);
}

/* ---- all of them ---- */

/* Who may use it. */
static void
add_tenants(struct buf *b, const json_t *tenants)
{
	if (json_array_size(tenants) == 0)
		buf_add_str(b, "all");
	for (size_t i = 0; i < json_array_size(tenants); i++) {
		const json_t *one = json_array_get(tenants, i);

		buf_add_str(b, i == 0 ? "" : ", ");
		buf_add(b, json_string_value(one), json_string_length(one));
	}
}

static void
cells(struct table *t, const json_t *policy)
{
	struct view digest = answer_text(policy, "digest");
	const json_t *rules = answer_at(policy, "policy.rules");
	auto_buf struct buf tenants;

	buf_init(&tenants, POLICY_LINE_BYTES);

	table_cell(t, answer_text(policy, "name"));
	if (rules == NULL)
		table_cell(t, view_str("-"));
	else
		table_cellf(t, "%zu", json_array_size(rules));
	table_cellf(t, "%" PRId64, answer_int(policy, "sandboxes", 0));
	table_cell(t, view_of(digest.p, digest.n < DIGEST_SHOWN ? digest.n : DIGEST_SHOWN));
	add_tenants(&tenants, answer_at(policy, "policy.tenants"));
	table_cell(t, buf_view(&tenants));
}

static int
show_all(struct cli *cli, struct err *err)
{
	static const struct table_column columns[] = {{"POLICY", false, 0}, {"RULES", true, 0},
		{"OLDER", true, 0}, {"DIGEST", false, 0}, {"TENANTS", false, 60}};
	json_t *page auto_json = NULL;
	const json_t *items;
	auto_table struct table t;
	int r = client_get(&cli->client, view_str("/v1/policies"), &page, err);

	table_init(&t, columns, ARRAY_LEN(columns));
	if (r < 0)
		return r;
	items = answer_at(page, "items");
	if (args_has(&cli->args, OPT_JSON))
		return answer_print(items, err);
	for (size_t i = 0; i < json_array_size(items); i++)
		cells(&t, json_array_get(items, i));
	r = table_print(&t, stdout, err);
	return r < 0 ? r : answer_done(err);
}

int
verb_policy_show(struct cli *cli, struct err *err)
{
	const char *task = args_text(&cli->args, OPT_TASK);
	const char *name = cli->args.n_rest > 0 ? cli->args.rest[0] : NULL;
	auto_policy struct policy_held h = {0};
	int r;

	if (task != NULL && name != NULL)
		return err_set(err, -EINVAL, "either a policy or --task");
	if (task == NULL && name == NULL)
		return show_all(cli, err);
	if (task != NULL)
		r = policy_of_task(cli, task, &h, err);
	else
		r = policy_is_file(name) ? policy_of_file(name, &h, err)
					 : policy_of_name(cli, name, &h, err);
	return r < 0 ? r : show_one(cli, &h, err);
}
