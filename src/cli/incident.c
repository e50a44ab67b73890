/* SPDX-License-Identifier: Apache-2.0 */
/* `demilune revoke`, `contain`, `containment list`: authority is taken back at once, without a signature. */
#include "cli/action.h"
#include "cli/answer.h"
#include "cli/list.h"
#include "cli/request.h"
#include "cli/safe.h"

#include <errno.h>
#include <inttypes.h>

enum { BODY_BYTES = 8192 };

/* ---- revoke ---- */

static int
take_back(struct cli *cli, const char *kind, const char *name, struct err *err)
{
	json_t *answer auto_json = NULL;
	auto_buf struct buf body;
	struct json_out o;
	bool replaced = false;
	int r;

	buf_init(&body, BODY_BYTES);
	json_out_init(&o, &body, false);
	json_out_object_begin(&o);
	json_out_key_str(&o, "kind", view_str(kind));
	json_out_key_str(&o, "name", view_str(name));
	if (args_has(&cli->args, OPT_REASON)) {
		json_out_key(&o, "reason");
		replaced = json_out_str(&o, view_str(args_text(&cli->args, OPT_REASON)));
	}
	r = request_end(&o, err);
	if (r == 0 && replaced)
		r = err_set(err, -EILSEQ, "--reason must be UTF-8");
	return r < 0 ? r
		     : client_send(&cli->client, HTTP_POST, view_str("/v1/revocations"),
			       buf_view(&body), &answer, err);
}

int
verb_revoke_grant(struct cli *cli, struct err *err)
{
	int r = request_check_id(cli->args.rest[0], ID_GRANT, "grant", err);

	return r < 0 ? r : take_back(cli, "grant", cli->args.rest[0], err);
}

int
verb_revoke_approval(struct cli *cli, struct err *err)
{
	int r = request_check_id(cli->args.rest[0], ID_PROPOSAL, "proposal", err);

	return r < 0 ? r : take_back(cli, "approval", cli->args.rest[0], err);
}

int
verb_revoke_task(struct cli *cli, struct err *err)
{
	char id[ID_TEXT];
	int r = request_task_id(cli, cli->args.rest[0], id, err);

	if (r == 0)
		r = take_back(cli, "task", id, err);
	if (r == 0)
		request_say_others(cli, cli->args.rest[0], id);
	return r;
}

/* ---- contain ---- */

int
action_scope(struct cli *cli, char ret[static ACTION_SCOPE_BYTES], struct err *err)
{
	const char *name = cli->args.rest[0];
	char id[ID_TEXT];
	int r;

	if (strcmp(name, "host") == 0 || strcmp(name, "all") == 0) {
		(void)snprintf(ret, ACTION_SCOPE_BYTES, "host");
		return 0;
	}
	if (view_starts(view_str(name), "tenant:")) {
		(void)snprintf(ret, ACTION_SCOPE_BYTES, "%s", name);
		return 0;
	}
	if (view_starts(view_str(name), "task:"))
		name += strlen("task:");
	r = request_task_id(cli, name, id, err);
	if (r == -EREMOTEIO && cli->client.refusal_status == 404)
		return err_set(err, -ENOENT,
			"there is no task or ticket %.64s; a scope is host, tenant:NAME or a task",
			name);
	if (r < 0)
		return r;
	(void)snprintf(ret, ACTION_SCOPE_BYTES, "task:%s", id);
	return 0;
}

static int
print_contained(const json_t *c, struct err *err)
{
	const json_t *open = answer_at(c, "executions");
	int r;

	field_line(stdout, "contained", answer_text(c, "scope"));
	field_linef(stdout, "sandboxes", "%" PRId64 " ended", answer_int(c, "sandboxes_ended", 0));
	field_linef(stdout, "grants", "%" PRId64 " revoked", answer_int(c, "grants_revoked", 0));
	field_linef(
		stdout, "proposals", "%" PRId64 " stopped", answer_int(c, "proposals_stopped", 0));
	field_linef(stdout, "effects", "%zu to reconcile", json_array_size(open));
	if (json_array_size(open) > 0) {
		(void)putchar('\n');
		r = executions_print(open, err);
		if (r < 0)
			return r;
	}
	return answer_done(err);
}

/* Nothing was stopped: a wrong name looks the same. */
static bool
empty(const json_t *c)
{
	return answer_int(c, "sandboxes_ended", 0) == 0 &&
	       answer_int(c, "grants_revoked", 0) == 0 &&
	       answer_int(c, "proposals_stopped", 0) == 0 &&
	       answer_int(c, "executions_open", 0) == 0;
}

int
verb_contain(struct cli *cli, struct err *err)
{
	const struct args *a = &cli->args;
	json_t *contained auto_json = NULL;
	auto_buf struct buf body;
	char scope[ACTION_SCOPE_BYTES];
	struct json_out o;
	bool replaced;
	int r;

	buf_init(&body, BODY_BYTES);
	if (!args_has(a, OPT_REASON))
		return err_set(err, -EINVAL, "--reason is needed: it stands in the record");
	r = action_scope(cli, scope, err);
	if (r < 0)
		return r;
	json_out_init(&o, &body, false);
	json_out_object_begin(&o);
	json_out_key(&o, "scope");
	replaced = json_out_str(&o, view_str(scope));
	json_out_key(&o, "reason");
	replaced = json_out_str(&o, view_str(args_text(a, OPT_REASON))) || replaced;
	r = request_end(&o, err);
	if (r == 0 && replaced)
		r = err_set(err, -EILSEQ, "the scope and --reason must be UTF-8");
	if (r == 0)
		r = client_send(&cli->client, HTTP_POST, view_str("/v1/containments"),
			buf_view(&body), &contained, err);
	if (r < 0)
		return r;
	r = args_has(a, OPT_JSON) ? answer_print(contained, err) : print_contained(contained, err);
	if (view_starts(view_str(scope), "task:"))
		request_say_others(cli,
			a->rest[0] + (view_starts(view_str(a->rest[0]), "task:") ? 5 : 0),
			scope + 5);
	else if (view_starts(view_str(scope), "tenant:") && empty(contained))
		safe_say("nothing of %s was there to stop: look whether this is its right name; "
			 "demilune task list shows tenants",
			scope);
	return r;
}

static void
containment_cells(struct table *t, const json_t *c)
{
	bool released = answer_text(c, "released_at").n != 0;
	char since[32];

	answer_time(c, "since", since);
	table_cell(t, answer_text(c, "scope"));
	table_tone(
		t, released ? TONE_QUIET : TONE_BAD, view_str(released ? "released" : "contained"));
	table_cell(t, view_str(since));
	table_cell(t, answer_text(c, "by"));
	table_cellf(t, "%" PRId64, answer_int(c, "sandboxes_ended", 0));
	table_cellf(t, "%" PRId64, answer_int(c, "grants_revoked", 0));
	table_cellf(t, "%" PRId64, answer_int(c, "proposals_stopped", 0));
	table_cellf(t, "%" PRId64, answer_int(c, "executions_open", 0));
	table_cell(t, answer_text(c, "reason"));
}

int
verb_containment_list(struct cli *cli, struct err *err)
{
	static const struct table_column columns[] = {{"SCOPE", false, 60}, {"STATE", false, 0},
		{"SINCE", false, 0}, {"BY", false, 24}, {"SANDBOXES", true, 0}, {"GRANTS", true, 0},
		{"PROPOSALS", true, 0}, {"NOT KNOWN", true, 0}, {"REASON", false, 60}};
	const struct list list = {
		"/v1/containments", columns, ARRAY_LEN(columns), containment_cells};

	return list_show(cli, &list, err);
}
