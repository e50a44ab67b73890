/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `demilune approve` and `demilune reject`: the complete display, a question to the person, a signature of ssh-agent over a decision about
 * exactly these bytes, one POST. What is signed is made of what was shown, never of what the daemon says in words.
 */
#include "cli/answer.h"
#include "cli/proposal.h"
#include "cli/request.h"
#include "cli/safe.h"
#include "cli/signer.h"
#include "lib/approval/display.h"
#include "lib/base/clock.h"
#include "lib/base/hex.h"

#include <errno.h>

enum { TYPED_MAX = 128 };

/* The operation's name, typed by a person at a terminal. */
static int
ask(const struct proposal *p, struct err *err)
{
	char typed[TYPED_MAX];
	struct view name;

	if (isatty(STDIN_FILENO) != 1)
		return err_set(err, -ENOTTY,
			"standard input is no terminal, so nobody can be asked; --yes approves "
			"without");
	(void)printf("\nType the operation's name to approve: ");
	if (fflush(stdout) != 0)
		return err_errno(err, "standard output");
	if (fgets(typed, sizeof(typed), stdin) == NULL)
		return err_set(err, -ECANCELED, "nothing was typed; nothing is approved");
	name = view_str(typed);
	if (name.n != 0 && name.p[name.n - 1] == '\n')
		name.n--;
	if (!view_eq(name, p->record.action))
		return err_set(
			err, -ECANCELED, "that is not the operation's name; nothing is approved");
	return 0;
}

static int
check_open(const struct proposal *p, struct err *err)
{
	struct view state = answer_text(p->answer, "state");

	if (!p->has_record)
		return err_set(
			err, -EINVAL, "there is nothing to decide: it never became a proposal");
	if (p->changed)
		return err_set(err, -EINVAL,
			"the operation changed since this was proposed: nobody can sign it any "
			"more; propose it again");
	if (!view_is(state, "pending"))
		return err_set(err, -EINVAL, "it does not wait for a decision, it is %.*s",
			(int)(state.n < 32 ? state.n : 32), (const char *)state.p);
	return 0;
}

/* The decision about what was shown, signed. */
static int
decide(const struct proposal *p, struct signer *s, bool approve, const char *reason,
	struct buf *decision, struct buf *signature, struct err *err)
{
	struct decision_record d = {.approver = view_str(s->name),
		.reason = view_str(reason == NULL ? "" : reason),
		.approve = approve,
		.decided_ms = clock_real_ms()};
	int r;

	if (approve)
		d.dispatch_by_ms = d.decided_ms + p->record.dispatch_within_ms;
	memcpy(d.proposal, p->digest, SHA256_BYTES);
	memcpy(d.policy, p->record.policy, SHA256_BYTES);
	memcpy(d.schema, p->record.schema, SHA256_BYTES);
	display_digest(buf_view(&p->text), d.display);
	r = decision_record_write(&d, decision, err);
	return r < 0 ? r : signer_sign(s, buf_view(decision), signature, err);
}

static int
post(struct cli *cli, const struct proposal *p, struct view decision, struct view signature,
	json_t **ret, struct err *err)
{
	auto_buf struct buf body;
	struct json_out o;
	char shown[SHA256_TEXT], target[128];
	int r;

	buf_init(&body, LIMIT_BODY_BYTES);
	json_out_init(&o, &body, false);
	json_out_object_begin(&o);
	hex_encode(p->digest, SHA256_BYTES, shown);
	json_out_key_str(&o, "shown", view_str(shown));
	r = signer_put(&o, "decision", decision, err);
	if (r == 0)
		r = signer_put(&o, "signature", signature, err);
	if (r == 0)
		r = request_end(&o, err);
	if (r < 0)
		return r;
	(void)snprintf(target, sizeof(target), "/v1/proposals/%s/decision", p->id);
	cli->client.patience_ms = LIMIT_PROVIDER_MS;
	return client_send(&cli->client, HTTP_POST, view_str(target), buf_view(&body), ret, err);
}

/* Whether what came of it is what was wanted. */
static bool
went_well(struct view state, bool approve)
{
	static const char *const good[] = {"pending", "approved", "dispatching", "succeeded"};

	if (!approve)
		return view_is(state, "rejected");
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		if (view_is(state, good[i]))
			return true;
	return false;
}

static int
run(struct cli *cli, bool approve, struct err *err)
{
	const struct args *a = &cli->args;
	bool json = args_has(a, OPT_JSON);
	auto_buf struct buf decision = {.max = DECISION_RECORD_MAX},
			    signature = {.max = SSHSIG_BYTES_MAX};
	auto_proposal struct proposal p = {0};
	auto_signer struct signer s = {.agent = -1};
	json_t *answer auto_json = NULL;
	int r = proposal_get(cli, a->rest[0], &p, err);

	if (r == 0)
		r = check_open(&p, err);
	if (r < 0)
		return r;
	proposal_print(&p, json ? stderr : stdout);
	r = signer_open(cli, &s, err);
	if (r == 0 && approve && !args_has(a, OPT_YES))
		r = ask(&p, err);
	if (r == 0)
		r = decide(&p, &s, approve, args_text(a, OPT_REASON), &decision, &signature, err);
	if (r == 0)
		r = post(cli, &p, buf_view(&decision), buf_view(&signature), &answer, err);
	if (r < 0)
		return r;
	if (json) {
		r = answer_print(answer, err);
	} else {
		(void)printf("\n%s by %s with %s\n", approve ? "approved" : "rejected", s.name,
			s.fingerprint);
		proposal_print_state(answer, stdout);
		r = answer_done(err);
	}
	return r != 0 ? r : went_well(answer_text(answer, "state"), approve) ? 0 : 1;
}

int
verb_approve(struct cli *cli, struct err *err)
{
	return run(cli, true, err);
}

int
verb_reject(struct cli *cli, struct err *err)
{
	if (!args_has(&cli->args, OPT_REASON))
		return err_set(err, -EINVAL, "say why: --reason TEXT");
	return run(cli, false, err);
}
