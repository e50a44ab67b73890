/* SPDX-License-Identifier: Apache-2.0 */
/* `demilune task`: list, show, create, resume, close, input. A task is named by id or by its label ticket. */
#include "cli/answer.h"
#include "cli/exec.h"
#include "cli/list.h"
#include "cli/request.h"

#include <errno.h>
#include <inttypes.h>

enum { TARGET_BYTES = 16384, TEXT_BYTES = 32768 };

static void
task_cells(struct table *t, const json_t *task)
{
	struct view state = answer_text(task, "state");
	auto_buf struct buf labels;
	char created[32];

	buf_init(&labels, TEXT_BYTES);
	answer_pairs(answer_at(task, "labels"), &labels);
	answer_time(task, "created_at", created);
	table_cell(t, answer_text(task, "id"));
	table_tone(t, view_is(state, "marked") ? TONE_BAD : TONE_PLAIN, state);
	table_cell(t, answer_text(task, "tenant"));
	table_cell(t, view_str(created));
	table_cellf(t, "%" PRId64 "/%" PRId64, answer_int(task, "sandboxes_live", 0),
		answer_int(task, "sandboxes", 0));
	table_cellf(t, "%" PRId64, answer_int(task, "jobs", 0));
	table_cellf(t, "%" PRId64, answer_int(task, "inputs", 0));
	table_cell(t, buf_view(&labels));
}

int
verb_task_list(struct cli *cli, struct err *err)
{
	static const struct table_column columns[] = {{"TASK", false, 0}, {"STATE", false, 0},
		{"TENANT", false, 24}, {"CREATED", false, 0}, {"SANDBOXES", true, 0},
		{"JOBS", true, 0}, {"INPUTS", true, 0}, {"LABELS", false, 60}};
	const struct list list = {"/v1/tasks", columns, ARRAY_LEN(columns), task_cells};

	return list_show(cli, &list, err);
}

/* ---- inputs ---- */

static int
inputs_get(struct cli *cli, const char *task, json_t **ret, struct err *err)
{
	char target[160];

	(void)snprintf(target, sizeof(target), "/v1/tasks/%.64s/inputs", task);
	return client_get(&cli->client, view_str(target), ret, err);
}

static int
print_inputs(const json_t *page, struct err *err)
{
	static const struct table_column columns[] = {
		{"INPUT", false, 80}, {"SIZE", true, 0}, {"MODE", true, 0}, {"DIGEST", false, 0}};
	const json_t *list = json_object_get(page, "items");
	auto_table struct table t;

	table_init(&t, columns, ARRAY_LEN(columns));
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *input = json_array_get(list, i);

		table_cell(&t, answer_text(input, "path"));
		table_bytes(&t, answer_int(input, "size", 0));
		table_cell(&t, answer_text(input, "mode"));
		table_cell(&t, answer_text(input, "content"));
	}
	return table_print(&t, stdout, err);
}

int
verb_task_input(struct cli *cli, struct err *err)
{
	const struct args *a = &cli->args;
	char task[ID_TEXT];
	json_t *list auto_json = NULL;
	int r = request_task_id(cli, a->rest[0], task, err);

	for (size_t i = 1; r == 0 && i < a->n_rest; i++)
		r = request_input(cli, task, a->rest[i], err);
	if (r < 0 || (a->n_rest > 1 && !args_has(a, OPT_JSON)))
		return r;
	r = inputs_get(cli, task, &list, err);
	if (r < 0)
		return r;
	if (args_has(a, OPT_JSON))
		return answer_print(list, err);
	r = print_inputs(list, err);
	return r < 0 ? r : answer_done(err);
}

/* ---- one ---- */

static int
task_get(struct cli *cli, const char *name, json_t **ret, struct err *err)
{
	auto_buf struct buf target;

	buf_init(&target, TARGET_BYTES);
	buf_add_str(&target, "/v1/tasks/");
	target_add(&target, name);
	return client_get(&cli->client, buf_view(&target), ret, err);
}

static void
print_task(const json_t *task)
{
	char created[32], closed[32];
	auto_buf struct buf labels;

	buf_init(&labels, TEXT_BYTES);
	answer_pairs(answer_at(task, "labels"), &labels);
	answer_time(task, "created_at", created);
	answer_time(task, "closed_at", closed);
	field_line(stdout, "task", answer_text(task, "id"));
	field_line(stdout, "tenant", answer_text(task, "tenant"));
	field_line(stdout, "state", answer_text(task, "state"));
	field_line(stdout, "template", answer_text(task, "template"));
	field_line(stdout, "created", view_str(created));
	if (answer_at(task, "closed_at") != NULL)
		field_line(stdout, "closed", view_str(closed));
	field_line(stdout, "labels", buf_view(&labels));
	field_line(stdout, "policy", answer_text(task, "policy"));
	field_linef(stdout, "sandboxes", "%" PRId64 ", of these %" PRId64 " living",
		answer_int(task, "sandboxes", 0), answer_int(task, "sandboxes_live", 0));
	if (answer_text(task, "sandbox").n != 0)
		field_line(stdout, "sandbox", answer_text(task, "sandbox"));
	field_linef(stdout, "jobs", "%" PRId64, answer_int(task, "jobs", 0));
	field_linef(stdout, "records", "%" PRId64, answer_int(task, "records", 0));
}

int
verb_task_show(struct cli *cli, struct err *err)
{
	json_t *task auto_json = NULL, *inputs auto_json = NULL;
	char id[ID_TEXT];
	int r = task_get(cli, cli->args.rest[0], &task, err);

	if (r == 0)
		r = answer_id(task, ID_TASK, id, err);
	if (r < 0)
		return r;
	if (args_has(&cli->args, OPT_JSON))
		return answer_print(task, err);
	print_task(task);
	if (answer_int(task, "inputs", 0) != 0) {
		r = inputs_get(cli, id, &inputs, err);
		(void)putchar('\n');
		if (r == 0)
			r = print_inputs(inputs, err);
	}
	return r < 0 ? r : answer_done(err);
}

int
verb_task_create(struct cli *cli, struct err *err)
{
	const struct args *a = &cli->args;
	json_t *task auto_json = NULL;
	char id[ID_TEXT];
	int r = request_task(cli, &task, id, err);

	for (size_t i = 0; r == 0 && i < a->n_given; i++)
		if (a->given[i].option == OPT_INPUT)
			r = request_input(cli, id, a->given[i].text, err);
	return r < 0 ? r : request_print(cli, task, id, err);
}

/* "/v1/tasks/ID/what" */
static int
task_target(struct cli *cli, const char *what, char ret[static 160], struct err *err)
{
	char id[ID_TEXT];
	int r = request_task_id(cli, cli->args.rest[0], id, err);

	if (r == 0)
		(void)snprintf(ret, 160, "/v1/tasks/%s/%s", id, what);
	return r;
}

int
verb_task_resume(struct cli *cli, struct err *err)
{
	json_t *sandbox auto_json = NULL;
	char id[ID_TEXT], target[160];
	int r = exec_signals(&cli->client, err);

	if (r == 0)
		r = task_target(cli, "resume", target, err);
	if (r == 0)
		r = request_made(cli, view_str(target), view_of(NULL, 0), &sandbox, id, err);
	return r < 0 ? r : request_print(cli, sandbox, id, err);
}

int
verb_task_close(struct cli *cli, struct err *err)
{
	json_t *task auto_json = NULL;
	char target[160];
	int r = task_target(cli, "close", target, err);

	if (r == 0)
		r = client_send(
			&cli->client, HTTP_POST, view_str(target), view_of(NULL, 0), &task, err);
	if (r < 0)
		return r;
	if (args_has(&cli->args, OPT_JSON))
		return answer_print(task, err);
	return 0;
}
