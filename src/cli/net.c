/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `demilune net TASK`: what a task reached and what was refused, and what is left of its egress budgets. Names and addresses are of programs in a
 * sandbox and of strangers' servers: made terminal-safe by the table.
 */
#include "cli/answer.h"
#include "cli/policy.h"
#include "cli/request.h"
#include "cli/safe.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>

enum { FOLLOW_MS = 1000, KEY_BYTES = 1024 };

static int
net_get(struct cli *cli, const char *task, json_t **ret, struct err *err)
{
	char target[160];

	(void)snprintf(target, sizeof(target), "/v1/tasks/%s/net", task);
	return client_get(&cli->client, view_str(target), ret, err);
}

static void
add_rule(struct buf *b, const json_t *row)
{
	int64_t rule = answer_int(row, "rule", 0);

	if (rule > 0)
		buf_addf(b, "%" PRId64, rule);
	else
		buf_add_byte(b, '-');
}

static void
cells(struct table *t, const json_t *row)
{
	struct view verdict = answer_text(row, "verdict"), reason = answer_text(row, "reason");
	bool allowed = view_is(verdict, "allowed");
	auto_buf struct buf where, rule;
	char last[32];

	buf_init(&where, KEY_BYTES);
	buf_init(&rule, 32);
	egress_add_where(&where, row);
	add_rule(&rule, row);
	answer_time(row, "last_at", last);
	table_tone(t, allowed ? TONE_GOOD : TONE_BAD, verdict);
	table_cell(t, allowed ? view_str("-") : reason);
	table_cell(t, buf_view(&where));
	table_cell(t, buf_view(&rule));
	table_cell(t, answer_text(row, "address"));
	table_cellf(t, "%" PRId64, answer_int(row, "count", 0));
	table_bytes(t, answer_int(row, "bytes_out", 0));
	table_bytes(t, answer_int(row, "bytes_in", 0));
	table_cell(t, view_str(last));
}

static int
print_rows(const json_t *net, struct err *err)
{
	static const struct table_column columns[] = {{"VERDICT", false, 0}, {"REASON", false, 0},
		{"WHERE", false, 80}, {"RULE", true, 0}, {"ADDRESS", false, 0}, {"COUNT", true, 0},
		{"OUT", true, 0}, {"IN", true, 0}, {"LAST", false, 0}};
	const json_t *items = answer_at(net, "items");
	auto_table struct table t;
	int r;

	table_init(&t, columns, ARRAY_LEN(columns));
	for (size_t i = 0; i < json_array_size(items); i++)
		cells(&t, json_array_get(items, i));
	r = table_print(&t, stdout, err);
	if (r == 0 && answer_bool(net, "more"))
		(void)printf("and more, older; the record has all of them: demilune audit TASK\n");
	return r;
}

static void
add_amount(struct table *t, const json_t *budget, const char *what, bool bytes)
{
	if (bytes)
		table_bytes(t, answer_int(budget, what, 0));
	else
		table_cellf(t, "%" PRId64, answer_int(budget, what, 0));
}

static int
print_budgets(const json_t *net, struct err *err)
{
	static const struct table_column columns[] = {{"BUDGET", false, 0}, {"USED", true, 0},
		{"LENT", true, 0}, {"LIMIT", true, 0}, {"STATE", false, 0}};
	const json_t *budgets = answer_at(net, "budgets");
	auto_table struct table t;

	table_init(&t, columns, ARRAY_LEN(columns));
	for (size_t i = 0; i < json_array_size(budgets); i++) {
		const json_t *b = json_array_get(budgets, i);
		struct view name = answer_text(b, "budget");
		bool bytes = view_starts(name, "bytes_");
		bool full = answer_int(b, "used", 0) >= answer_int(b, "limit", 0);

		table_cell(&t, name);
		add_amount(&t, b, "used", bytes);
		add_amount(&t, b, "lent", bytes);
		add_amount(&t, b, "limit", bytes);
		table_tone(&t, full ? TONE_BAD : TONE_PLAIN, view_str(full ? "used up" : ""));
	}
	return table_print(&t, stdout, err);
}

static int
print_net(const json_t *net, struct err *err)
{
	int r = 0;

	if (json_array_size(answer_at(net, "items")) == 0)
		(void)puts(json_array_size(answer_at(net, "budgets")) == 0
				   ? "the task has no policy: its sandboxes reach nothing"
				   : "nothing was asked for yet");
	else
		r = print_rows(net, err);
	if (r < 0 || json_array_size(answer_at(net, "budgets")) == 0)
		return r;
	(void)putchar('\n');
	return print_budgets(net, err);
}

/* ---- follow ---- */

/* What names a row among those of the task. */
static void
key_of(const json_t *row, struct buf *key)
{
	static const char *const parts[] = {
		"verdict", "reason", "scheme", "name", "address", "policy_digest"};

	buf_addf(key, "%" PRId64 " %" PRId64, answer_int(row, "port", 0),
		answer_int(row, "rule", 0));
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		buf_add_byte(key, '\n');
		buf_add_view(key, answer_text(row, parts[i]));
	}
	buf_add_byte(key, 0);
}

static void
print_line(const json_t *row)
{
	struct view reason = answer_text(row, "reason");
	auto_buf struct buf where, safe, rule;
	char last[32];

	buf_init(&where, KEY_BYTES);
	buf_init(&rule, 32);
	buf_init(&safe, KEY_BYTES * 8);
	egress_add_where(&where, row);
	add_rule(&rule, row);
	answer_time(row, "last_at", last);
	safe_add(&safe, answer_text(row, "verdict"), 0);
	if (!view_is(reason, "none")) {
		buf_add_byte(&safe, ' ');
		safe_add(&safe, reason, 0);
	}
	buf_add_byte(&safe, ' ');
	safe_add(&safe, buf_view(&where), 0);
	(void)printf("%s  %.*s  rule %.*s  count %" PRId64 "  out %" PRId64 "  in %" PRId64 "\n",
		last, VIEW_ARGS(buf_view(&safe)), VIEW_ARGS(buf_view(&rule)),
		answer_int(row, "count", 0), answer_int(row, "bytes_out", 0),
		answer_int(row, "bytes_in", 0));
}

/* Prints a row that is new or that counted on since the last look. */
static int
follow_row(json_t *known, const json_t *row, bool json, struct err *err)
{
	auto_buf struct buf key;
	json_t *before;
	char *text auto_free = NULL;
	int64_t sum = answer_int(row, "count", 0) + answer_int(row, "bytes_out", 0) +
		      answer_int(row, "bytes_in", 0);

	buf_init(&key, KEY_BYTES);
	key_of(row, &key);
	if (buf_check(&key) < 0)
		return err_set(err, -EBADMSG, "the daemon's answer has a name that is too long");
	before = json_object_get(known, (const char *)key.p);
	if (before != NULL && json_integer_value(before) == sum)
		return 0;
	if (json_object_set_new(known, (const char *)key.p, json_integer(sum)) < 0)
		return err_set(err, -EBADMSG, "the daemon's answer has a name that is no text");
	if (!json) {
		print_line(row);
		return 0;
	}
	text = json_dumps(row, JSON_COMPACT | JSON_ENSURE_ASCII);
	return text != NULL && puts(text) >= 0 ? 0 : answer_done(err);
}

/* 1: the task is over. */
static int
is_over(struct cli *cli, const char *task, struct err *err)
{
	json_t *answer auto_json = NULL;
	char target[160];
	int r;

	(void)snprintf(target, sizeof(target), "/v1/tasks/%s", task);
	r = client_get(&cli->client, view_str(target), &answer, err);
	return r < 0 ? r : view_is(answer_text(answer, "state"), "closed");
}

/* The state is asked first, so that what came before the end is still seen. */
static int
follow(struct cli *cli, const char *task, struct err *err)
{
	bool json = args_has(&cli->args, OPT_JSON);
	json_t *known auto_json = json_object();

	for (;;) {
		json_t *net auto_json = NULL;
		const json_t *items;
		int over = is_over(cli, task, err);
		int r = over < 0 ? over : net_get(cli, task, &net, err);

		items = answer_at(net, "items");
		for (size_t i = json_array_size(items); r == 0 && i-- > 0;)
			r = follow_row(known, json_array_get(items, i), json, err);
		if (r == 0)
			r = answer_done(err);
		if (r != 0 || over == 1)
			return r;
		(void)poll(NULL, 0, FOLLOW_MS);
	}
}

int
verb_net(struct cli *cli, struct err *err)
{
	json_t *net auto_json = NULL;
	char task[ID_TEXT];
	int r = request_record_id(cli, cli->args.rest[0], task, err);

	if (r == 0 && args_has(&cli->args, OPT_FOLLOW))
		return follow(cli, task, err);
	if (r == 0)
		r = net_get(cli, task, &net, err);
	if (r < 0)
		return r;
	if (args_has(&cli->args, OPT_JSON))
		return answer_print(net, err);
	r = print_net(net, err);
	return r < 0 ? r : answer_done(err);
}
