/* SPDX-License-Identifier: Apache-2.0 */
/* `demilune proposal list`, `execution`, `reconcile`: what was asked for, and what became of it. Looking never decides anything. */
#include "cli/action.h"
#include "cli/answer.h"
#include "cli/list.h"
#include "cli/request.h"

#include <errno.h>
#include <inttypes.h>

enum { TARGET_BYTES = 4096, TEXT_BYTES = 65536 };

/* "path?task=ID&open=1" of the one argument and --open. */
static int
list_of(struct cli *cli, const char *path, char ret[static 160], struct err *err)
{
	const struct args *a = &cli->args;
	bool open = args_has(a, OPT_OPEN);
	char id[ID_TEXT] = "";
	int r = a->n_rest == 0 ? 0 : request_task_id(cli, a->rest[0], id, err);

	if (r == 0)
		(void)snprintf(ret, 160, "%s%s%s%s%s", path, id[0] != '\0' || open ? "?" : "",
			id[0] != '\0' ? "task=" : "", id,
			!open           ? ""
			: id[0] != '\0' ? "&open=1"
					: "open=1");
	return r;
}

static enum tone
state_tone(struct view state)
{
	static const struct {
		const char *state;
		enum tone tone;
	} tones[] = {{"succeeded", TONE_GOOD}, {"unknown", TONE_BAD}, {"failed", TONE_BAD},
		{"denied", TONE_QUIET}, {"rejected", TONE_QUIET}, {"expired", TONE_QUIET},
		{"revoked", TONE_QUIET}, {"superseded", TONE_QUIET}};

	for (size_t i = 0; i < ARRAY_LEN(tones); i++)
		if (view_is(state, tones[i].state))
			return tones[i].tone;
	return TONE_PLAIN;
}

static void
proposal_cells(struct table *t, const json_t *proposal)
{
	struct view state = answer_text(proposal, "state");
	char created[32], decide_by[32];

	answer_time(proposal, "created_at", created);
	answer_time(proposal, "decide_by", decide_by);
	table_cell(t, answer_text(proposal, "id"));
	table_tone(t, state_tone(state), state);
	table_cell(t, answer_text(proposal, "operation"));
	table_cell(t, answer_text(proposal, "task"));
	table_cell(t, answer_text(proposal, "tenant"));
	table_cell(t, view_str(created));
	table_cell(t, view_str(decide_by));
	table_cellf(t, "%zu/%" PRId64, json_array_size(answer_at(proposal, "decisions")),
		answer_int(proposal, "quorum", 0));
	table_cell(t, answer_text(proposal, "denial"));
}

int
verb_proposal_list(struct cli *cli, struct err *err)
{
	static const struct table_column columns[] = {{"PROPOSAL", false, 0}, {"STATE", false, 0},
		{"OPERATION", false, 0}, {"TASK", false, 0}, {"TENANT", false, 24},
		{"CREATED", false, 0}, {"DECIDE BY", false, 0}, {"DECISIONS", true, 0},
		{"DENIAL", false, 0}};
	struct list list = {NULL, columns, ARRAY_LEN(columns), proposal_cells};
	char target[160];
	int r = list_of(cli, "/v1/proposals", target, err);

	list.path = target;
	return r < 0 ? r : list_show(cli, &list, err);
}

/* ---- executions ---- */

static void
execution_cells(struct table *t, const json_t *execution)
{
	struct view state = answer_text(execution, "state");
	char started[32];

	answer_time(execution, "started_at", started);
	table_cell(t, answer_text(execution, "id"));
	table_tone(t, state_tone(state), state);
	table_cell(t, answer_text(execution, "operation"));
	table_cell(t, answer_text(execution, "task"));
	table_cell(t, answer_text(execution, "proposal"));
	table_cell(t, view_str(started));
	table_cellf(t, "%" PRId64, answer_int(execution, "status", 0));
	table_cell(t, answer_text(execution, "provider_account"));
}

static const struct table_column execution_columns[] = {{"EXECUTION", false, 0},
	{"STATE", false, 0}, {"OPERATION", false, 0}, {"TASK", false, 0}, {"PROPOSAL", false, 0},
	{"STARTED", false, 0}, {"STATUS", true, 0}, {"ACCOUNT", false, 24}};

int
executions_print(const json_t *list, struct err *err)
{
	auto_table struct table t;

	table_init(&t, execution_columns, ARRAY_LEN(execution_columns));
	for (size_t i = 0; i < json_array_size(list); i++)
		execution_cells(&t, json_array_get(list, i));
	return table_print(&t, stdout, err);
}

int
verb_execution_list(struct cli *cli, struct err *err)
{
	struct list list = {NULL, execution_columns, ARRAY_LEN(execution_columns), execution_cells};
	char target[160];
	int r = list_of(cli, "/v1/executions", target, err);

	list.path = target;
	return r < 0 ? r : list_show(cli, &list, err);
}

static void
print_execution(const json_t *execution)
{
	char started[32], ended[32];
	auto_buf struct buf receipt;

	buf_init(&receipt, TEXT_BYTES);
	answer_pairs(answer_at(execution, "receipt"), &receipt);
	answer_time(execution, "started_at", started);
	answer_time(execution, "ended_at", ended);
	field_line(stdout, "execution", answer_text(execution, "id"));
	field_line(stdout, "state", answer_text(execution, "state"));
	if (answer_text(execution, "settled").n != 0)
		field_line(stdout, "settled as", answer_text(execution, "settled"));
	if (answer_text(execution, "denial").n != 0)
		field_line(stdout, "denial", answer_text(execution, "denial"));
	field_line(stdout, "text", answer_text(execution, "text"));
	if (answer_bool(execution, "incident"))
		field_line(stdout, "incident",
			view_str("the provider's answer contradicts what was asked for"));
	field_line(stdout, "operation", answer_text(execution, "operation"));
	field_line(stdout, "proposal", answer_text(execution, "proposal"));
	field_line(stdout, "task", answer_text(execution, "task"));
	field_line(stdout, "tenant", answer_text(execution, "tenant"));
	field_line(stdout, "account", answer_text(execution, "provider_account"));
	field_line(stdout, "key", answer_text(execution, "key"));
	field_linef(stdout, "sent", "%" PRId64 "%s", answer_int(execution, "sends", 0),
		answer_int(execution, "sends", 0) == 1 ? " time" : " times");
	field_linef(stdout, "status", "%" PRId64, answer_int(execution, "status", 0));
	field_line(stdout, "started", view_str(started));
	field_line(stdout, "ended", view_str(ended));
	field_line(stdout, "response", answer_text(execution, "response"));
	field_line(stdout, "receipt", buf_view(&receipt));
}

/* "/v1/executions/ID" of the argument. */
static int
execution_target(const struct args *a, const char *what, char ret[static 160], struct err *err)
{
	int r = request_check_id(a->rest[0], ID_EXECUTION, "execution", err);

	if (r == 0)
		(void)snprintf(ret, 160, "/v1/executions/%s%s", a->rest[0], what);
	return r;
}

int
verb_execution_show(struct cli *cli, struct err *err)
{
	json_t *execution auto_json = NULL;
	char target[160];
	int r = execution_target(&cli->args, "", target, err);

	if (r == 0)
		r = client_get(&cli->client, view_str(target), &execution, err);
	if (r < 0)
		return r;
	if (args_has(&cli->args, OPT_JSON))
		return answer_print(execution, err);
	print_execution(execution);
	return answer_done(err);
}

/* It must be unknown now: a settlement is never signed in advance. */
static int
settle(struct cli *cli, struct buf *body, struct err *err)
{
	json_t *execution auto_json = NULL;
	struct view state;
	char target[160];
	int r = execution_target(&cli->args, "", target, err);

	if (r == 0)
		r = client_get(&cli->client, view_str(target), &execution, err);
	if (r < 0)
		return r;
	state = answer_text(execution, "state");
	if (!view_is(state, "unknown"))
		return err_set(err, -EINVAL, "there is nothing to settle: it is %.*s",
			(int)(state.n < 32 ? state.n : 32), (const char *)state.p);
	return settle_body(cli, cli->args.rest[0], body, err);
}

int
verb_reconcile(struct cli *cli, struct err *err)
{
	json_t *execution auto_json = NULL;
	auto_buf struct buf body;
	char target[160];
	int r = execution_target(&cli->args, "/reconcile", target, err);

	buf_init(&body, LIMIT_BODY_BYTES);
	if (r == 0 && args_has(&cli->args, OPT_AS))
		r = settle(cli, &body, err);
	else
		buf_add_str(&body, "{}");
	cli->client.patience_ms = LIMIT_PROVIDER_MS;
	if (r == 0)
		r = client_send(&cli->client, HTTP_POST, view_str(target), buf_view(&body),
			&execution, err);
	if (r < 0)
		return r;
	if (args_has(&cli->args, OPT_JSON))
		r = answer_print(execution, err);
	else
		print_execution(execution);
	if (r == 0)
		r = answer_done(err);
	if (r != 0 || !view_is(answer_text(execution, "state"), "unknown"))
		return r;
	return err_set(err, -EAGAIN,
		"it is still not known what became of %s; ask again later, or when you know it: "
		"--as succeeded|failed --note TEXT",
		cli->args.rest[0]);
}
