/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `demilune doctor`: whether this host can run the daemon. Needs none and no privilege; tries each thing of
 * probes.def. 1 when something that is needed is missing.
 */
#include "cli/answer.h"
#include "cli/probe.h"
#include "cli/table.h"

#include <errno.h>

enum { WISHED = 0, NEEDED = 1 };

static const struct row {
	const char *name;
	probe_fn *probe;
	bool needed;
	const char *what, *todo;
} rows[] = {
#define PROBE(name, function, needed, what, todo) {name, function, needed, what, todo},
#include "cli/probes.def"
#undef PROBE
};

static const char *
state_text(enum probe_state state, bool needed)
{
	switch (state) {
	case PROBE_OK:
		return "ok";
	case PROBE_MISSING:
		return needed ? "missing" : "not there";
	case PROBE_UNTRIED:
		return "not tried";
	}
	must(false);
}

static void
add_cells(struct table *t, const struct row *row, enum probe_state state, const char *detail)
{
	enum tone tone = state == PROBE_OK                       ? TONE_GOOD
			 : state == PROBE_MISSING && row->needed ? TONE_BAD
								 : TONE_QUIET;

	table_cell(t, view_str(row->name));
	table_tone(t, tone, view_str(state_text(state, row->needed)));
	table_cell(t, view_str(detail));
	table_cell(t, view_str(state == PROBE_OK        ? row->what
			       : state == PROBE_UNTRIED ? "run this as root to try it"
							: row->todo));
}

static int
add_json(json_t *all, const struct row *row, enum probe_state state, const char *detail,
	struct err *err)
{
	json_t *one = json_pack("{s:s, s:s, s:b, s:s, s:s, s:s}", "check", row->name, "state",
		state_text(state, row->needed), "needed", row->needed, "detail", detail, "for",
		row->what, "todo", state == PROBE_MISSING ? row->todo : "");

	return json_array_append_new(all, one) < 0 ? err_set(err, -ENOMEM, "no memory") : 0;
}

int
verb_doctor(struct cli *cli, struct err *err)
{
	static const struct table_column columns[] = {{"CHECK", false, 0}, {"STATE", false, 0},
		{"FOUND", false, 90}, {"FOR, OR WHAT TO DO", false, 0}};
	bool json = args_has(&cli->args, OPT_JSON), missing = false;
	json_t *all auto_json = json_array();
	auto_table struct table t;
	int r = 0;

	table_init(&t, columns, ARRAY_LEN(columns));
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(rows); i++) {
		char detail[PROBE_TEXT] = "";
		enum probe_state state = rows[i].probe(cli, detail);

		missing |= rows[i].needed && state == PROBE_MISSING;
		if (json)
			r = add_json(all, &rows[i], state, detail, err);
		else
			add_cells(&t, &rows[i], state, detail);
	}
	if (r == 0)
		r = json ? answer_print(all, err) : table_print(&t, stdout, err);
	if (r == 0)
		r = answer_done(err);
	return r != 0 ? r : missing;
}
