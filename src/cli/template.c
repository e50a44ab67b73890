/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `demilune template`. Building and importing need root and happen in demilune-template, which this becomes. Listing
 * asks the daemon, because what counts is what it can use; with --state it becomes demilune-template too, which reads
 * the files.
 */
#include "cli/answer.h"
#include "cli/program.h"
#include "cli/table.h"
#include "cli/verbs.h"
#include "lib/json/fields.h"

#include <errno.h>

enum { TARGET_BYTES = 4096, WORDS_MAX = 2 * ARGS_GIVEN_MAX + 8 };

static int
hand_over(struct cli *cli, const char *verb, struct err *err)
{
	const struct args *a = &cli->args;
	const char *state = program_state(args_text(a, OPT_STATE));
	char *argv[WORDS_MAX] = {0};
	size_t n = 1;

	if (state != NULL) {
		argv[n++] = (char *)(uintptr_t)args_option(OPT_STATE)->name;
		argv[n++] = (char *)(uintptr_t)state;
	}
	for (size_t i = 0; i < a->n_given; i++) {
		enum option o = a->given[i].option;

		if (o != OPT_SOURCE && o != OPT_PLACE)
			continue;
		argv[n++] = (char *)(uintptr_t)args_option(o)->name;
		argv[n++] = (char *)(uintptr_t)a->given[i].text;
	}
	argv[n++] = (char *)(uintptr_t)verb;
	for (size_t i = 0; i < a->n_rest; i++)
		argv[n++] = a->rest[i];
	return program_become(PROGRAM_TEMPLATE, argv, err);
}

int
verb_template_build(struct cli *cli, struct err *err)
{
	return hand_over(cli, "build", err);
}

int
verb_template_import(struct cli *cli, struct err *err)
{
	return hand_over(cli, "import", err);
}

/* The strings of an array as "a b c". */
static void
words(const json_t *array, struct buf *ret)
{
	for (size_t i = 0; i < json_array_size(array); i++) {
		const json_t *v = json_array_get(array, i);

		if (i != 0)
			buf_add_byte(ret, ' ');
		if (json_is_string(v))
			buf_add_view(ret, field_view(v));
	}
}

int
verb_template_list(struct cli *cli, struct err *err)
{
	static const struct table_column columns[] = {{"TEMPLATE", false, 0},
		{"ALIASES", false, 40}, {"SIZE", true, 0}, {"CREATED", false, 0},
		{"DIGEST", false, 23}, {"DESCRIPTION", false, 60}};
	json_t *list auto_json = NULL;
	auto_table struct table t;
	int r;

	table_init(&t, columns, ARRAY_LEN(columns));
	if (args_has(&cli->args, OPT_STATE))
		return hand_over(cli, "list", err);
	r = client_get(&cli->client, view_str("/v1/templates"), &list, err);
	if (r < 0)
		return r;
	if (args_has(&cli->args, OPT_JSON))
		return answer_print(list, err);
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *row = json_array_get(list, i);
		auto_buf struct buf aliases;
		char created[32];

		buf_init(&aliases, TARGET_BYTES);
		words(answer_at(row, "aliases"), &aliases);
		answer_time(row, "created_at", created);
		table_cell(&t, answer_text(row, "name"));
		table_cell(&t, buf_view(&aliases));
		table_bytes(&t, answer_int(row, "size_bytes", 0));
		table_cell(&t, view_str(created));
		table_cell(&t, answer_text(row, "digest"));
		table_cell(&t, answer_text(row, "description"));
	}
	r = table_print(&t, stdout, err);
	return r < 0 ? r : answer_done(err);
}

int
verb_template_show(struct cli *cli, struct err *err)
{
	json_t *row auto_json = NULL;
	auto_buf struct buf target, text;
	char created[32];
	int r;

	buf_init(&target, TARGET_BYTES);
	buf_init(&text, TARGET_BYTES);
	if (args_has(&cli->args, OPT_STATE))
		return hand_over(cli, "show", err);
	buf_add_str(&target, "/v1/templates/");
	target_add(&target, cli->args.rest[0]);
	r = client_get(&cli->client, buf_view(&target), &row, err);
	if (r < 0)
		return r;
	if (args_has(&cli->args, OPT_JSON))
		return answer_print(row, err);
	answer_time(row, "created_at", created);
	field_line(stdout, "template", answer_text(row, "name"));
	field_line(stdout, "description", answer_text(row, "description"));
	words(answer_at(row, "aliases"), &text);
	field_line(stdout, "aliases", buf_view(&text));
	buf_clear(&text);
	words(answer_at(row, "places"), &text);
	field_line(stdout, "writable", buf_view(&text));
	field_line(stdout, "created", view_str(created));
	field_line(stdout, "digest", answer_text(row, "digest"));
	return answer_done(err);
}
