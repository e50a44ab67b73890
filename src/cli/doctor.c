/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `demilune doctor`: whether this host can run the daemon. Needs none and no privilege; tries each thing of
 * probes.def. 1 when something that is needed is missing.
 */
#include "cli/answer.h"
#include "cli/check.h"
#include "cli/probe.h"
#include "cli/safe.h"
#include "cli/table.h"

#include <errno.h>

enum { WISHED = 0, NEEDED = 1, FINDINGS_BYTES = 64 << 10 };

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
	case PROBE_WRONG:
		return "wrong";
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
			 : state == PROBE_WRONG                  ? TONE_BAD
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
		row->what, "todo", state == PROBE_MISSING || state == PROBE_WRONG ? row->todo : "");

	return json_array_append_new(all, one) < 0 ? err_set(err, -ENOMEM, "no memory") : 0;
}

/* What is wrong since the finding before, as texts. */
static int
add_findings(json_t *all, const struct buf *findings, size_t from, struct err *err)
{
	json_t *one = json_array_get(all, json_array_size(all) - 1), *list = json_array();
	bool ok = list != NULL;

	for (size_t at = from; ok && at < findings->n;) {
		const char *text = (const char *)findings->p + at;

		ok = json_array_append_new(list, json_string(text)) == 0;
		at += strlen(text) + 1;
	}
	if (!ok)
		json_decref(list);
	return ok && json_object_set_new(one, "findings", list) == 0
		       ? 0
		       : err_set(err, -ENOMEM, "no memory");
}

static void
print_findings(const struct buf *findings)
{
	for (size_t at = 0; at < findings->n;) {
		const char *text = (const char *)findings->p + at;
		auto_buf struct buf safe;

		buf_init(&safe, 8192);
		safe_add(&safe, view_str(text), 0);
		(void)printf("\n%.*s\n", (int)safe.n, (const char *)safe.p);
		at += strlen(text) + 1;
	}
}

static int
try_all(struct cli *cli, struct table *t, json_t *all, bool *ret_bad, struct err *err)
{
	bool json = args_has(&cli->args, OPT_JSON);
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_LEN(rows); i++) {
		char detail[PROBE_TEXT] = "";
		size_t before = cli->doctor->findings.n;
		enum probe_state state = rows[i].probe(cli, detail);

		*ret_bad |= state == PROBE_WRONG || (rows[i].needed && state == PROBE_MISSING);
		if (json)
			r = add_json(all, &rows[i], state, detail, err);
		else
			add_cells(t, &rows[i], state, detail);
		if (r == 0 && json)
			r = add_findings(all, &cli->doctor->findings, before, err);
	}
	return r;
}

int
verb_doctor(struct cli *cli, struct err *err)
{
	static const struct table_column columns[] = {{"CHECK", false, 0}, {"STATE", false, 0},
		{"FOUND", false, 90}, {"FOR, OR WHAT TO DO", false, 0}};
	const char *config = args_text(&cli->args, OPT_CONFIG);
	bool json = args_has(&cli->args, OPT_JSON), bad = false;
	json_t *all auto_json = json_array();
	struct doctor doctor = {.unsettled = ""};
	auto_table struct table t;
	int r;

	table_init(&t, columns, ARRAY_LEN(columns));
	r = check_settings(config, &doctor.settings, err);
	if (r < 0 && config != NULL)
		return r;
	if (r < 0)
		(void)snprintf(doctor.unsettled, sizeof(doctor.unsettled), "%.110s", err->text);
	buf_init(&doctor.findings, FINDINGS_BYTES);
	cli->doctor = &doctor;
	r = try_all(cli, &t, all, &bad, err);
	cli->doctor = NULL;
	if (r == 0)
		r = json ? answer_print(all, err) : table_print(&t, stdout, err);
	if (r == 0 && !json)
		print_findings(&doctor.findings);
	buf_done(&doctor.findings);
	if (r == 0)
		r = answer_done(err);
	return r != 0 ? r : bad;
}
