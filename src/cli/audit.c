/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `demilune audit`: the record of a task as a table, or as the NDJSON lines of the daemon byte for byte, since the
 * digests are over these bytes. A ticket is turned into the id of a task once, before: whoever gives another task the same
 * ticket meanwhile must not change whose record this is. On a terminal the lines are shown safe, as any text of a stranger.
 */
#include "cli/answer.h"
#include "cli/export.h"
#include "cli/lines.h"
#include "cli/policy.h"
#include "cli/request.h"
#include "cli/safe.h"
#include "cli/table.h"
#include "lib/json/fields.h"

#include <errno.h>
#include <inttypes.h>

enum { CELL_BYTES = 4096 };

struct report {
	bool json;
	struct table table;
	json_t *texts; /* owned: job, or job and cell → what it does */
	uint64_t records;
};

static const struct json_limits record_limits = {
	.max_bytes = LIMIT_LINE_BYTES, .max_depth = LIMIT_DEPTH, .nul_ok = true};

/* ---- what happened ---- */

/* What a job or a cell does: its command or code, or the operation and its path. */
static void
job_text(const json_t *data, struct buf *ret)
{
	struct view kind = answer_text(data, "kind");

	if (view_is(kind, "exec") || answer_at(data, "cell") != NULL) {
		buf_add_view(ret, answer_text(data, "text"));
		return;
	}
	buf_addf(ret, "%.*s ", VIEW_ARGS(kind));
	buf_add_view(ret, answer_text(data, "path"));
}

/* The labels or the metadata of a record, [k, v, k, v]. */
static void
pairs_text(const json_t *list, struct buf *ret)
{
	for (size_t i = 0; i + 1 < json_array_size(list); i += 2) {
		const json_t *k = json_array_get(list, i), *v = json_array_get(list, i + 1);

		if (!json_is_string(k) || !json_is_string(v))
			continue;
		buf_addf(ret, "%s%.*s=", ret->n == 0 ? "" : " ", VIEW_ARGS(field_view(k)));
		buf_add_view(ret, field_view(v));
	}
}

/* The name of a job or of a cell in it, under which the record of its start left what it does. */
static void
name_of(const json_t *record, const json_t *data, struct buf *ret)
{
	buf_add_view(ret, answer_text(record, "job"));
	if (answer_at(data, "cell") != NULL)
		buf_addf(ret, " cell %" PRId64, answer_int(data, "cell", 0));
}

/* Whether it is about an action, or about who may have one. */
static bool
of_an_action(struct view event)
{
	static const char *const begins[] = {"grant.", "proposal.", "decision.", "execution.",
		"read.", "contain", "release", "restore"};

	for (size_t i = 0; i < ARRAY_LEN(begins); i++)
		if (view_starts(event, begins[i]))
			return true;
	return false;
}

/* Which action it is, who decided, and what stood in its way. */
static void
action_text(const json_t *data, struct buf *ret)
{
	static const struct {
		const char *key, *before;
	} words[] = {{"scope", ""}, {"execution", ""}, {"proposal", ""}, {"grant", ""},
		{"operation", ""}, {"approver", "by "}, {"outcome", ""}, {"denial", ""},
		{"text", ""}};
	const json_t *said = answer_at(data, "said"), *approve = answer_at(said, "approve");
	const char *verb = approve == NULL ? "" : json_is_true(approve) ? "approved " : "rejected ";

	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		struct view text = answer_text(data, words[i].key);

		if (text.n == 0)
			text = answer_text(said, words[i].key);
		if (text.n == 0 || view_is(text, "none"))
			continue;
		buf_addf(ret, "%s%s%s", ret->n == 0 ? "" : ", ",
			words[i].before[0] != '\0' ? verb : "", words[i].before);
		buf_add_view(ret, text);
	}
}

/* What left the sandbox, or did not: where to, and which rule says so. */
static void
egress_text(const json_t *data, struct buf *ret)
{
	struct view name = answer_text(data, "name"), method = answer_text(data, "method");
	int64_t rule = answer_int(data, "rule", 0);

	if (method.n != 0)
		buf_addf(ret, "%.*s ", VIEW_ARGS(method));
	if (name.n != 0 || answer_text(data, "address").n != 0)
		egress_add_where(ret, data);
	buf_add_view(ret, answer_text(data, "path"));
	for (size_t i = 0; i < json_array_size(answer_at(data, "query")); i++)
		buf_addf(ret, "%s%.*s=", i == 0 ? "?" : "&",
			VIEW_ARGS(answer_text(json_array_get(answer_at(data, "query"), i), "")));
	if (rule > 0)
		buf_addf(ret, "%srule %" PRId64, ret->n == 0 ? "" : ", ", rule);
	if (answer_int(data, "count", 0) > 0)
		buf_addf(ret, "%s%" PRId64 " times", ret->n == 0 ? "" : ", ",
			answer_int(data, "count", 0));
}

static int
what_text(struct report *r, const json_t *record, struct buf *ret)
{
	const json_t *data = answer_at(record, "data");
	struct view event = answer_text(record, "event");
	auto_buf struct buf name;

	buf_init(&name, CELL_BYTES);
	name_of(record, data, &name);
	if (view_is(event, "job.start") || view_is(event, "cell.start")) {
		job_text(data, ret);
		return json_object_setn_new(r->texts, (const char *)name.p, name.n,
			json_stringn((const char *)ret->p, ret->n));
	}
	if (name.n != 0) {
		const json_t *text = json_object_getn(r->texts, (const char *)name.p, name.n);

		buf_add_view(ret, json_is_string(text) ? field_view(text) : buf_view(&name));
	} else if (view_starts(event, "egress.")) {
		egress_text(data, ret);
	} else if (of_an_action(event)) {
		action_text(data, ret);
	} else if (answer_at(data, "labels") != NULL) {
		pairs_text(answer_at(data, "labels"), ret);
	} else if (view_starts(event, "sandbox.create")) {
		buf_addf(ret, "%.*s, template %.*s", VIEW_ARGS(answer_text(record, "sandbox")),
			VIEW_ARGS(answer_text(data, "template")));
	} else if (answer_text(data, "path").n != 0) {
		buf_add_view(ret, answer_text(data, "path"));
	} else {
		buf_add_view(ret, answer_text(record, "sandbox"));
	}
	return 0;
}

static int64_t
left_over(const json_t *proof)
{
	static const char *const kinds[] = {
		"processes", "cgroups", "mounts", "namespaces", "journal"};
	int64_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		n += answer_int(proof, kinds[i], 0);
	return n;
}

static enum tone
end_text(const json_t *record, struct buf *ret)
{
	const json_t *data = answer_at(record, "data"), *proof = answer_at(data, "proof");
	struct view event = answer_text(record, "event"), reason = answer_text(data, "reason");
	int64_t code = answer_int(data, "code", 0);

	if (view_starts(event, "egress.")) {
		bool allowed = view_is(answer_text(data, "verdict"), "allowed");

		buf_add_view(ret, answer_text(data, "verdict"));
		if (reason.n != 0 && !view_is(reason, "none"))
			buf_addf(ret, ": %.*s", VIEW_ARGS(reason));
		return allowed || reason.n == 0 ? TONE_PLAIN : TONE_BAD;
	}
	if (view_is(reason, "exited")) {
		buf_addf(ret, "exit %" PRId64, code);
		return code == 0 ? TONE_GOOD : TONE_BAD;
	}
	if (view_is(reason, "signalled")) {
		buf_addf(ret, "signal %" PRId64, code);
		return TONE_BAD;
	}
	buf_add_view(ret, reason);
	if (json_is_null(proof)) {
		buf_addf(ret, "%snobody looked", ret->n == 0 ? "" : ", ");
		return TONE_BAD;
	}
	if (json_is_object(proof)) {
		int64_t left = left_over(proof);

		buf_addf(ret, "%s%" PRId64 " left over", ret->n == 0 ? "" : ", ", left);
		return left == 0 ? TONE_GOOD : TONE_BAD;
	}
	return view_is(event, "job.end") || view_is(event, "cell.end") ||
			       view_is(event, "sandbox.mismatch")
		       ? TONE_BAD
		       : TONE_PLAIN;
}

/* Bytes that a job gave, or took where it is a write, or that went out and in; -1: it is about none. */
static int64_t
bytes_moved(const json_t *data)
{
	struct view kind = answer_text(data, "kind");
	int64_t out = answer_int(data, "stdout_seen", -1), in = answer_int(data, "bytes_in", -1);

	if (in >= 0)
		return in + answer_int(data, "bytes_out", 0);
	if (out < 0)
		return answer_int(data, "size_bytes", -1);
	if (view_is(kind, "file_write") || view_is(kind, "tree_up"))
		return answer_int(data, "stdin_bytes", 0);
	return out + answer_int(data, "stderr_seen", 0);
}

static int
add_row(struct report *r, const json_t *record, struct err *err)
{
	const json_t *data = answer_at(record, "data");
	int64_t wall = answer_int(data, "wall_us", answer_int(data, "boot_us", -1));
	int64_t out = bytes_moved(data);
	auto_buf struct buf what, end;
	enum tone tone;
	char when[32];

	buf_init(&what, CELL_BYTES);
	buf_init(&end, CELL_BYTES);
	if (what_text(r, record, &what) < 0)
		return err_set(err, -EBADMSG, "the daemon's record is not understood");
	tone = end_text(record, &end);
	answer_time(record, "ts_ms", when);
	table_cellf(&r->table, "%" PRId64, answer_int(record, "task_seq", 0));
	table_cell(&r->table, view_str(when));
	table_cell(&r->table, answer_text(record, "event"));
	table_tone(&r->table, tone, buf_view(&end));
	if (out >= 0)
		table_bytes(&r->table, out);
	else
		table_cell(&r->table, view_str(""));
	if (wall >= 0)
		table_duration(&r->table, wall);
	else
		table_cell(&r->table, view_str(""));
	table_cell(&r->table, buf_view(&what));
	return 0;
}

/* ---- reading ---- */

static int
take_line(struct report *report, struct view line, struct err *err)
{
	json_t *record auto_json = NULL;
	struct export_line l;
	int r = export_read(line, &l, err);

	if (r < 0)
		return r;
	report->records++;
	if (report->json) {
		auto_buf struct buf safe;

		buf_init(&safe, (size_t)LIMIT_LINE_BYTES * 8);
		if (isatty(STDOUT_FILENO) == 1) {
			safe_add(&safe, line, 0);
			line = buf_view(&safe);
		}
		(void)fwrite(line.p, 1, line.n, stdout);
		return putchar('\n') == EOF ? answer_done(err) : 0;
	}
	r = json_parse(l.record, &record_limits, &record, err);
	return r < 0 ? r : add_row(report, record, err);
}

static int
read_all(struct report *report, struct exchange *x, struct err *err)
{
	auto_lines struct lines lines;
	struct view piece, line;
	int r;

	lines_init(&lines, LIMIT_LINE_BYTES);
	while ((r = exchange_next(x, &piece, err)) == 1) {
		while ((r = lines_next(&lines, &piece, &line, err)) == 1) {
			r = take_line(report, line, err);
			if (r != 0)
				return r;
		}
		if (r < 0)
			return r;
	}
	return r < 0 ? r : lines_end(&lines, err);
}

int
verb_audit(struct cli *cli, struct err *err)
{
	static const struct table_column columns[] = {{"#", true, 0}, {"TIME (UTC)", false, 0},
		{"EVENT", false, 0}, {"END", false, 32}, {"BYTES", true, 0}, {"TOOK", true, 0},
		{"WHAT", false, 120}};
	struct report report = {.json = args_has(&cli->args, OPT_JSON)};
	auto_exchange struct exchange x = {0};
	char task[ID_TEXT];
	int r = request_record_id(cli, cli->args.rest[0], task, err);

	if (r == 0)
		r = request_export(&cli->client, task, &x, err);
	if (r < 0)
		return r;
	table_init(&report.table, columns, ARRAY_LEN(columns));
	report.texts = json_object();
	r = report.texts == NULL ? err_set(err, -ENOMEM, "no memory") : read_all(&report, &x, err);
	if (r == 0 && !report.json)
		r = table_print(&report.table, stdout, err);
	table_done(&report.table);
	json_decref(report.texts);
	return r != 0 ? r : answer_done(err);
}
