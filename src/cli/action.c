/* SPDX-License-Identifier: Apache-2.0 */
/* `demilune operation list|show`, `grant`, `budget`: what may be done, who may, and how much of it is left. */
#include "cli/answer.h"
#include "cli/list.h"
#include "cli/request.h"
#include "cli/units.h"
#include "lib/base/clock.h"

#include <errno.h>
#include <inttypes.h>

enum { TARGET_BYTES = 4096, TEXT_BYTES = 65536, BODY_BYTES = 16384, DIGEST_SHOWN = 12 };

/* ---- operations ---- */

static void
operation_cells(struct table *t, const json_t *operation)
{
	struct view digest = answer_text(operation, "digest");

	table_cell(t, answer_text(operation, "name"));
	table_cellf(t, "%" PRId64, answer_int(operation, "version", 0));
	table_cell(t, answer_text(operation, "effect"));
	table_cellf(t, "%" PRId64, answer_int(operation, "document.approval.quorum", 0));
	table_cell(t, answer_text(operation, "document.request.provider.account"));
	table_cell(t, view_of(digest.p, digest.n < DIGEST_SHOWN ? digest.n : DIGEST_SHOWN));
	table_cell(t, answer_text(operation, "document.describe"));
}

int
verb_operation_list(struct cli *cli, struct err *err)
{
	static const struct table_column columns[] = {{"OPERATION", false, 0}, {"VERSION", true, 0},
		{"EFFECT", false, 0}, {"PEOPLE", true, 0}, {"ACCOUNT", false, 24},
		{"DIGEST", false, 0}, {"WHAT", false, 60}};
	const struct list list = {"/v1/operations", columns, ARRAY_LEN(columns), operation_cells};

	return list_show(cli, &list, err);
}

/* JSON of a value of the document in one line. */
static void
json_add(struct buf *b, const json_t *value)
{
	char *text auto_free = value == NULL ? NULL
					     : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT |
									 JSON_ENSURE_ASCII);

	if (text != NULL)
		buf_add_str(b, text);
}

/* What of a parameter is neither its name nor its type. */
static void
rules_add(struct buf *b, const json_t *parameter)
{
	static const char *const names[] = {"values", "min", "max", "pattern", "identifier",
		"multiline", "optional", "default", "fields", "items"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const json_t *v = answer_at(parameter, names[i]);

		if (v == NULL || json_is_false(v))
			continue;
		buf_addf(b, "%s%s", b->n == 0 ? "" : " ", names[i]);
		if (json_is_true(v))
			continue;
		buf_add_byte(b, ' ');
		json_add(b, v);
	}
}

static int
print_parameters(const json_t *parameters, struct err *err)
{
	static const struct table_column columns[] = {
		{"PARAMETER", false, 0}, {"TYPE", false, 0}, {"RULES", false, 0}};
	auto_table struct table t;

	table_init(&t, columns, ARRAY_LEN(columns));
	for (size_t i = 0; i < json_array_size(parameters); i++) {
		const json_t *p = json_array_get(parameters, i);
		auto_buf struct buf rules;

		buf_init(&rules, TEXT_BYTES);
		rules_add(&rules, p);
		table_cell(&t, answer_text(p, "name"));
		table_cell(&t, answer_text(p, "type"));
		table_cell(&t, buf_view(&rules));
	}
	return table_print(&t, stdout, err);
}

static void
within_line(const json_t *operation, const char *name, const char *path)
{
	int64_t ms = answer_int(operation, path, 0);
	char text[UNITS_TEXT];

	if (ms <= 0 || ms > INT64_MAX / 1000)
		return;
	units_duration_text(ms * 1000, text);
	field_line(stdout, name, view_str(text));
}

/* Roles of the approvers, and the amounts from which on it takes more. */
static void
approval_lines(const json_t *operation)
{
	const json_t *tiers = answer_at(operation, "document.approval.tiers");
	auto_buf struct buf roles;

	buf_init(&roles, TEXT_BYTES);
	json_add(&roles, answer_at(operation, "document.approval.roles"));
	field_linef(
		stdout, "people", "%" PRId64, answer_int(operation, "document.approval.quorum", 0));
	field_line(stdout, "roles", buf_view(&roles));
	for (size_t i = 0; i < json_array_size(tiers); i++) {
		const json_t *tier = json_array_get(tiers, i);

		buf_clear(&roles);
		json_add(&roles, answer_at(tier, "roles"));
		field_linef(stdout, "above", "%" PRId64 ": %" PRId64 " people, roles %.*s",
			answer_int(tier, "above", 0), answer_int(tier, "quorum", 0),
			VIEW_ARGS(buf_view(&roles)));
	}
	within_line(operation, "decide within", "document.approval.decide_within_ms");
	within_line(operation, "dispatch within", "document.approval.dispatch_within_ms");
}

static void
print_operation(const json_t *operation)
{
	field_line(stdout, "operation", answer_text(operation, "name"));
	field_linef(stdout, "version", "%" PRId64, answer_int(operation, "version", 0));
	field_line(stdout, "what", answer_text(operation, "document.describe"));
	field_line(stdout, "effect", answer_text(operation, "effect"));
	field_line(stdout, "provider", answer_text(operation, "document.request.provider.name"));
	field_line(stdout, "account", answer_text(operation, "document.request.provider.account"));
	field_line(stdout, "environment",
		answer_text(operation, "document.request.provider.environment"));
	approval_lines(operation);
	field_line(stdout, "digest", answer_text(operation, "digest"));
	field_line(stdout, "catalogue", answer_text(operation, "catalogue"));
}

int
verb_operation_show(struct cli *cli, struct err *err)
{
	json_t *operation auto_json = NULL;
	auto_buf struct buf target;
	int r;

	buf_init(&target, TARGET_BYTES);
	buf_add_str(&target, "/v1/operations/");
	target_add(&target, cli->args.rest[0]);
	r = client_get(&cli->client, buf_view(&target), &operation, err);
	if (r < 0)
		return r;
	if (args_has(&cli->args, OPT_JSON))
		return answer_print(operation, err);
	print_operation(operation);
	(void)putchar('\n');
	r = print_parameters(answer_at(operation, "document.parameters"), err);
	return r < 0 ? r : answer_done(err);
}

/* ---- grants ---- */

static int
compose_grant(const struct args *a, const char *task, struct buf *body, struct err *err)
{
	struct json_out o;

	json_out_init(&o, body, false);
	json_out_object_begin(&o);
	json_out_key_str(&o, "task", view_str(task));
	json_out_key_str(&o, "operation", view_str(args_text(a, OPT_OPERATION)));
	if (args_has(a, OPT_WHERE)) {
		json_out_key(&o, "where");
		json_out_array_begin(&o);
		for (size_t i = 0; i < a->n_given; i++)
			if (a->given[i].option == OPT_WHERE &&
				json_out_str(&o, view_str(a->given[i].text)))
				return err_set(err, -EILSEQ, "--where must be UTF-8");
		json_out_array_end(&o);
	}
	json_out_key_int(&o, "uses", args_get(a, OPT_USES)->number);
	json_out_key(&o, "ttl_seconds");
	json_out_fixed3(&o, args_get(a, OPT_TTL)->number);
	return request_end(&o, err);
}

int
verb_grant_issue(struct cli *cli, struct err *err)
{
	static const enum option needed[] = {OPT_TASK, OPT_OPERATION, OPT_USES, OPT_TTL};
	const struct args *a = &cli->args;
	json_t *grant auto_json = NULL;
	char task[ID_TEXT], id[ID_TEXT];
	auto_buf struct buf body;
	int r;

	buf_init(&body, BODY_BYTES);
	for (size_t i = 0; i < ARRAY_LEN(needed); i++)
		if (!args_has(a, needed[i]))
			return err_set(err, -EINVAL,
				"a grant needs %s: it is for one task and one operation, so many "
				"uses, and has an end",
				args_option(needed[i])->name);
	r = request_task_id(cli, args_text(a, OPT_TASK), task, err);
	if (r == 0)
		r = compose_grant(a, task, &body, err);
	if (r == 0)
		r = client_send(&cli->client, HTTP_POST, view_str("/v1/grants"), buf_view(&body),
			&grant, err);
	if (r == 0)
		r = answer_id(grant, ID_GRANT, id, err);
	return r < 0 ? r : request_print(cli, grant, id, err);
}

/* The strings of an array, with "and" between. */
static void
conditions_add(struct buf *b, const json_t *where)
{
	for (size_t i = 0; i < json_array_size(where); i++) {
		buf_add_str(b, i == 0 ? "" : " and ");
		buf_add_view(b, answer_text(json_array_get(where, i), ""));
	}
}

/* Times of the daemon are UTC in one form, so their order is that of their text. */
static bool
is_over(const json_t *grant)
{
	struct view until = answer_text(grant, "expires_at");
	char now[CLOCK_TEXT];

	clock_text(clock_real_ms(), now);
	return until.n == strlen(now) && memcmp(until.p, now, until.n) <= 0;
}

static void
grant_cells(struct table *t, const json_t *grant)
{
	int64_t uses = answer_int(grant, "uses", 0), used = answer_int(grant, "used", 0);
	const char *state = answer_text(grant, "revoked_at").n != 0 ? "revoked"
			    : is_over(grant)                        ? "expired"
			    : used >= uses                          ? "used up"
			    : answer_bool(grant, "changed")         ? "changed"
								    : "valid";
	auto_buf struct buf where;
	char expires[32];

	buf_init(&where, TEXT_BYTES);
	conditions_add(&where, answer_at(grant, "where"));
	answer_time(grant, "expires_at", expires);
	table_cell(t, answer_text(grant, "id"));
	table_tone(t, strcmp(state, "valid") == 0 ? TONE_GOOD : TONE_QUIET, view_str(state));
	table_cell(t, answer_text(grant, "operation"));
	table_cellf(t, "%" PRId64, answer_int(grant, "version", 0));
	table_cellf(t, "%" PRId64 "/%" PRId64, used, uses);
	table_cell(t, view_str(expires));
	table_cell(t, answer_text(grant, "issuer"));
	table_cell(t, buf_view(&where));
}

int
verb_grant_list(struct cli *cli, struct err *err)
{
	static const struct table_column columns[] = {{"GRANT", false, 0}, {"STATE", false, 0},
		{"OPERATION", false, 0}, {"VERSION", true, 0}, {"USED", true, 0},
		{"EXPIRES", false, 0}, {"ISSUER", false, 24}, {"WHERE", false, 0}};
	struct list list = {NULL, columns, ARRAY_LEN(columns), grant_cells};
	char task[ID_TEXT], target[64];
	int r = request_task_id(cli, cli->args.rest[0], task, err);

	if (r == 0)
		(void)snprintf(target, sizeof(target), "/v1/grants?task=%s", task);
	list.path = target;
	return r < 0 ? r : list_show(cli, &list, err);
}

/* ---- budgets ---- */

static void
budget_cells(struct table *t, const json_t *budget)
{
	int64_t limit = answer_int(budget, "limit", 0), used = answer_int(budget, "used", 0),
		reserved = answer_int(budget, "reserved", 0);
	bool full = limit > 0 && (used >= limit || reserved >= limit - used);

	table_cell(t, view_str(answer_bool(budget, "of_tenant") ? "tenant today" : "task"));
	table_cell(t, answer_text(budget, "operation"));
	table_cell(t, answer_text(budget, "counter"));
	table_cell(t, answer_text(budget, "unit"));
	table_cellf(t, "%" PRId64, used);
	table_cellf(t, "%" PRId64, reserved);
	if (limit == 0)
		table_cell(t, view_str("none"));
	else
		table_cellf(t, "%" PRId64, limit);
	table_tone(t, full ? TONE_BAD : TONE_PLAIN, view_str(full ? "used up" : ""));
}

int
verb_budget_show(struct cli *cli, struct err *err)
{
	static const struct table_column columns[] = {{"OF", false, 0}, {"OPERATION", false, 0},
		{"COUNTER", false, 0}, {"UNIT", false, 0}, {"USED", true, 0}, {"RESERVED", true, 0},
		{"LIMIT", true, 0}, {"STATE", false, 0}};
	struct list list = {NULL, columns, ARRAY_LEN(columns), budget_cells};
	char target[160];
	char task[ID_TEXT];
	int r = request_task_id(cli, cli->args.rest[0], task, err);

	if (r == 0)
		(void)snprintf(target, sizeof(target), "/v1/tasks/%s/budgets", task);

	list.path = target;
	return r < 0 ? r : list_show(cli, &list, err);
}
