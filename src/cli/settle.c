/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a person signs besides decisions: a settlement (`reconcile --as`: what became of an unknown execution) and a release (a contained
 * scope gets its authority back). The broker verifies both against its own approvers; here the record is made and signed.
 */
#include "cli/action.h"
#include "cli/answer.h"
#include "cli/request.h"
#include "cli/signer.h"
#include "cli/table.h"
#include "lib/action/record.h"
#include "lib/approval/sshsig.h"
#include "lib/base/clock.h"

#include <errno.h>

/* {"<key>": record, "signature": ...} as the body of a request. */
static int
sign(struct signer *s, const char *key, struct view record, struct buf *body, struct err *err)
{
	auto_buf struct buf signature;
	struct json_out o;
	int r;

	buf_init(&signature, SSHSIG_BYTES_MAX);
	r = signer_sign(s, record, &signature, err);
	if (r < 0)
		return r;
	json_out_init(&o, body, false);
	json_out_object_begin(&o);
	r = signer_put(&o, key, record, err);
	if (r == 0)
		r = signer_put(&o, "signature", buf_view(&signature), err);
	return r < 0 ? r : request_end(&o, err);
}

static int
note_of(const struct args *a, struct view *ret, struct err *err)
{
	if (!args_has(a, OPT_NOTE))
		return err_set(err, -EINVAL,
			"say how you know, or why: --note TEXT; it is signed with it");
	*ret = view_str(args_text(a, OPT_NOTE));
	return 0;
}

int
settle_body(struct cli *cli, const char *execution, struct buf *body, struct err *err)
{
	const char *as = args_text(&cli->args, OPT_AS);
	struct settlement_record record = {.execution = view_str(execution),
		.succeeded = strcmp(as, "succeeded") == 0,
		.decided_ms = clock_real_ms()};
	auto_buf struct buf bytes = {.max = DECISION_RECORD_MAX};
	auto_signer struct signer s = {.agent = -1};
	int r;

	if (!record.succeeded && strcmp(as, "failed") != 0)
		return err_set(err, -EINVAL, "--as is succeeded or failed");
	r = note_of(&cli->args, &record.note, err);
	if (r == 0)
		r = signer_open(cli, &s, err);
	if (r < 0)
		return r;
	record.approver = view_str(s.name);
	r = settlement_record_write(&record, &bytes, err);
	return r < 0 ? r : sign(&s, "settlement", buf_view(&bytes), body, err);
}

static int
release_body(struct cli *cli, const char *scope, struct buf *body, struct err *err)
{
	struct release_record record = {.scope = view_str(scope), .decided_ms = clock_real_ms()};
	auto_buf struct buf bytes = {.max = DECISION_RECORD_MAX};
	auto_signer struct signer s = {.agent = -1};
	int r = note_of(&cli->args, &record.note, err);

	if (r == 0)
		r = signer_open(cli, &s, err);
	if (r < 0)
		return r;
	record.approver = view_str(s.name);
	r = release_record_write(&record, &bytes, err);
	return r < 0 ? r : sign(&s, "release", buf_view(&bytes), body, err);
}

int
verb_release(struct cli *cli, struct err *err)
{
	json_t *released auto_json = NULL;
	char scope[ACTION_SCOPE_BYTES], since[32], at[32];
	auto_buf struct buf body;
	int r;

	buf_init(&body, LIMIT_BODY_BYTES);
	r = action_scope(cli, scope, err);
	if (r == 0)
		r = release_body(cli, scope, &body, err);
	if (r == 0)
		r = client_send(&cli->client, HTTP_POST, view_str("/v1/releases"), buf_view(&body),
			&released, err);
	if (r < 0)
		return r;
	if (args_has(&cli->args, OPT_JSON))
		return answer_print(released, err);
	answer_time(released, "since", since);
	answer_time(released, "released_at", at);
	field_line(stdout, "released", answer_text(released, "scope"));
	field_line(stdout, "contained", view_str(since));
	field_line(stdout, "until", view_str(at));
	field_line(stdout, "grants", view_str("stay revoked; issue what is needed"));
	return answer_done(err);
}
