/* SPDX-License-Identifier: Apache-2.0 */
/* `demilune sandbox`: create, list, show, exec, pause, resume, kill. */
#include "cli/answer.h"
#include "cli/exec.h"
#include "cli/list.h"
#include "cli/request.h"
#include "cli/safe.h"
#include "cli/units.h"

#include <errno.h>
#include <inttypes.h>

enum { TEXT_BYTES = 32768 };

static int
sandbox_target(const char *id, const char *tail, char ret[static 128], struct err *err)
{
	(void)snprintf(ret, 128, "/v1/sandboxes/%.40s%s", id, tail);
	return request_check_id(id, "sb_", "sandbox", err);
}

int
verb_sandbox_create(struct cli *cli, struct err *err)
{
	json_t *made auto_json = NULL;
	char id[ID_TEXT];
	int r = exec_signals(&cli->client, err);

	if (r == 0)
		r = request_sandbox(cli, &made, id, err);
	return r < 0 ? r : request_print(cli, made, id, err);
}

static enum tone
status_tone(struct view status)
{
	return view_is(status, "running")  ? TONE_GOOD
	       : view_is(status, "failed") ? TONE_BAD
					   : TONE_PLAIN;
}

static void
sandbox_cells(struct table *t, const json_t *s)
{
	auto_buf struct buf labels;
	int64_t left = answer_int(s, "ttl_left_seconds", -1);

	buf_init(&labels, TEXT_BYTES);
	answer_pairs(answer_at(s, "metadata"), &labels);
	table_cell(t, answer_text(s, "id"));
	table_tone(t, status_tone(answer_text(s, "status")), answer_text(s, "status"));
	table_cell(t, answer_text(s, "tenant"));
	table_cell(t, answer_text(s, "template"));
	table_cell(t, answer_text(s, "task"));
	table_duration(t, left < 0 ? -1 : left * 1000000);
	table_bytes(t, answer_int(s, "limits.memory_mb", 0) << 20);
	table_cell(t, buf_view(&labels));
}

int
verb_sandbox_list(struct cli *cli, struct err *err)
{
	static const struct table_column columns[] = {{"SANDBOX", false, 0}, {"STATE", false, 0},
		{"TENANT", false, 24}, {"TEMPLATE", false, 24}, {"TASK", false, 0},
		{"LEFT", true, 0}, {"MEMORY", true, 0}, {"LABELS", false, 60}};
	const struct list list = {"/v1/sandboxes", columns, ARRAY_LEN(columns), sandbox_cells};

	return list_show(cli, &list, err);
}

static void
print_limits(const json_t *s)
{
	char memory[UNITS_TEXT], disk[UNITS_TEXT];

	units_bytes_text(answer_int(s, "limits.memory_mb", 0) << 20, memory);
	units_bytes_text(answer_int(s, "limits.disk_mb", 0) << 20, disk);
	field_linef(stdout, "limits",
		"memory %s, disk %s (%" PRId64 " files), %" PRId64 " processes, cpu %" PRId64
		"m, %" PRId64 " open files",
		memory, disk, answer_int(s, "limits.disk_inodes", 0),
		answer_int(s, "limits.pids", 0), answer_int(s, "limits.cpu_milli", 0),
		answer_int(s, "limits.open_files", 0));
}

static const char *const proof_kinds[] = {
	"processes", "cgroups", "mounts", "namespaces", "journal"};

/* What was left after teardown: 0 of everything is the proof. */
static int64_t
print_proof(const json_t *s)
{
	const json_t *proof = answer_at(s, "proof");
	auto_buf struct buf text;
	int64_t left = 0;

	if (proof == NULL)
		return 0;
	buf_init(&text, 1024);
	for (size_t i = 0; i < ARRAY_LEN(proof_kinds); i++) {
		int64_t n = answer_int(proof, proof_kinds[i], -1);

		left += n < 0 ? 1 : n;
		buf_addf(&text, "%s%" PRId64 " %s", i == 0 ? "" : ", ", n, proof_kinds[i]);
	}
	field_linef(stdout, "left over", "%.*s%s", VIEW_ARGS(buf_view(&text)),
		left == 0 ? "" : "; the daemon goes on removing it");
	return left;
}

static void
print_sandbox(const json_t *s)
{
	char created[32], ended[32], ttl[UNITS_TEXT], left[UNITS_TEXT], idle[UNITS_TEXT];
	struct view reason = answer_text(s, "reason"), status = answer_text(s, "status");
	auto_buf struct buf labels;

	buf_init(&labels, TEXT_BYTES);
	answer_pairs(answer_at(s, "metadata"), &labels);
	answer_time(s, "created_at", created);
	answer_time(s, "ended_at", ended);
	units_duration_text(answer_int(s, "ttl_seconds", 0) * 1000000, ttl);
	units_duration_text(answer_int(s, "ttl_left_seconds", 0) * 1000000, left);
	units_duration_text(answer_int(s, "idle_limit_seconds", 0) * 1000000, idle);
	field_line(stdout, "sandbox", answer_text(s, "id"));
	field_line(stdout, "task", answer_text(s, "task"));
	field_line(stdout, "tenant", answer_text(s, "tenant"));
	field_linef(stdout, "state", "%.*s%s%.*s", VIEW_ARGS(status),
		view_is(reason, "none") ? "" : ": ", view_is(reason, "none") ? 0 : (int)reason.n,
		(const char *)reason.p);
	field_linef(stdout, "template", "%.*s %.*s", VIEW_ARGS(answer_text(s, "template")),
		VIEW_ARGS(answer_text(s, "template_digest")));
	field_linef(stdout, "created", "%s, ready after %" PRId64 " us", created,
		answer_int(s, "timings.ready_us", 0));
	if (answer_at(s, "ended_at") != NULL)
		field_line(stdout, "ended", view_str(ended));
	else
		field_linef(stdout, "life", "%s of %s left; ends after %s without a request", left,
			ttl, answer_bool(s, "persistent") ? "any time" : idle);
	print_limits(s);
	field_line(stdout, "labels", buf_view(&labels));
	if (answer_text(s, "policy_digest").n != 0)
		field_linef(stdout, "policy", "%.*s, %.*s", VIEW_ARGS(answer_text(s, "policy")),
			VIEW_ARGS(answer_text(s, "policy_digest")));
	else
		field_line(stdout, "policy", answer_text(s, "policy"));
	field_line(stdout, "boundary", answer_text(s, "boundary.statement"));
	field_line(stdout, "contains", answer_text(s, "boundary.contains"));
	field_line(stdout, "trusts", answer_text(s, "boundary.trusts"));
	(void)print_proof(s);
}

int
verb_sandbox_show(struct cli *cli, struct err *err)
{
	json_t *s auto_json = NULL;
	char target[128];
	int r = sandbox_target(
		cli->args.rest[0], args_has(&cli->args, OPT_ENDED) ? "?ended=1" : "", target, err);

	if (r == 0)
		r = client_get(&cli->client, view_str(target), &s, err);
	if (r < 0)
		return r;
	if (args_has(&cli->args, OPT_JSON))
		return answer_print(s, err);
	print_sandbox(s);
	return answer_done(err);
}

int
verb_sandbox_exec(struct cli *cli, struct err *err)
{
	const struct args *a = &cli->args;
	json_t *answer auto_json = NULL;
	int code, r = request_check_id(a->rest[0], "sb_", "sandbox", err);

	if (r == 0)
		r = exec_signals(&cli->client, err);
	if (r < 0)
		return r;
	if (!args_has(a, OPT_JSON))
		return exec_words(cli, a->rest[0], a->rest + 1, a->n_rest - 1, err);
	r = exec_collect(cli, a->rest[0], a->rest + 1, a->n_rest - 1, &answer, &code, err);
	if (r == 0)
		r = answer_print(answer, err);
	return r < 0 ? r : code;
}

static int
freeze(struct cli *cli, const char *verb, struct err *err)
{
	json_t *s auto_json = NULL;
	char target[128];
	int r = sandbox_target(cli->args.rest[0], verb, target, err);

	if (r == 0)
		r = client_send(
			&cli->client, HTTP_POST, view_str(target), view_of(NULL, 0), &s, err);
	if (r < 0 || !args_has(&cli->args, OPT_JSON))
		return r;
	json_decref(take_ptr(s));
	r = sandbox_target(cli->args.rest[0], "", target, err);
	if (r == 0)
		r = client_get(&cli->client, view_str(target), &s, err);
	return r < 0 ? r : answer_print(s, err);
}

int
verb_sandbox_pause(struct cli *cli, struct err *err)
{
	return freeze(cli, "/pause", err);
}

int
verb_sandbox_resume(struct cli *cli, struct err *err)
{
	return freeze(cli, "/resume", err);
}

static int
kill_one(struct cli *cli, const char *id, json_t **ret, struct err *err)
{
	char target[128];
	int r = sandbox_target(id, "?proof=1", target, err);

	return r < 0 ? r
		     : client_send(&cli->client, HTTP_DELETE, view_str(target), view_of(NULL, 0),
			       ret, err);
}

/* All are tried; the first failure is the one that is told at the end. */
int
verb_sandbox_kill(struct cli *cli, struct err *err)
{
	const struct args *a = &cli->args;
	json_t *all auto_json = json_array();
	int code = 0;

	for (size_t i = 0; i < a->n_rest; i++) {
		json_t *s auto_json = NULL;

		if (kill_one(cli, a->rest[i], &s, err) < 0) {
			if (err->code == -EREMOTEIO)
				safe_say("%.40s: %s", a->rest[i], err->text);
			else
				safe_say("%s", err->text);
			code = 1;
			continue;
		}
		if (args_has(a, OPT_JSON)) {
			if (json_array_append(all, s) < 0)
				return err_set(err, -ENOMEM, "no memory");
			continue;
		}
		field_line(stdout, "killed", view_str(a->rest[i]));
		if (print_proof(s) != 0)
			code = 1;
	}
	if (args_has(a, OPT_JSON) && answer_print(all, err) < 0)
		return err->code;
	return code != 0 ? code : answer_done(err);
}
