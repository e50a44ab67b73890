/* SPDX-License-Identifier: Apache-2.0 */
/* `demilune proposal show`, and what approve shows before it asks; see proposal.h. */
#include "cli/proposal.h"

#include "cli/answer.h"
#include "cli/request.h"
#include "cli/table.h"
#include "lib/action/check.h"
#include "lib/approval/display.h"
#include "lib/approval/split.h"
#include "lib/approval/sshsig.h"
#include "lib/base/base64.h"
#include "lib/base/clock.h"
#include "lib/base/hex.h"
#include "lib/json/canonical.h"

#include <errno.h>

enum { TARGET_BYTES = 256, NOTE_BYTES = 32768 };

static int
contradicts(struct err *err, const char *what)
{
	return err_set(err, -EBADMSG, "the daemon contradicts itself: %s; nothing is shown", what);
}

/* The document of the operation, canonical again as JSON has it in any order. That it is the right one its schema's digest says. */
static int
get_operation(struct cli *cli, struct proposal *p, struct err *err)
{
	json_t *answer auto_json = NULL;
	auto_buf struct buf target;
	int r;

	buf_init(&target, TARGET_BYTES);
	buf_init(&p->document, OPERATION_BYTES_MAX);
	buf_addf(&target, "/v1/operations/%.*s", VIEW_ARGS(p->record.action));
	r = client_get(&cli->client, buf_view(&target), &answer, err);
	if (r < 0)
		return err_context(err, "the operation of the proposal");
	if (answer_at(answer, "document") == NULL)
		return contradicts(err, "the operation has no document");
	r = canonical_json(answer_at(answer, "document"), "document", &p->document, err);
	if (r == 0)
		r = operation_read(buf_view(&p->document), &p->op, err);
	if (r < 0)
		return err_context(err, "the operation of the proposal");
	p->changed = memcmp(p->op.schema, p->record.schema, SHA256_BYTES) != 0;
	return 0;
}

static int
read_record(struct proposal *p, struct err *err)
{
	struct view text = answer_text(p->answer, "record"),
		    digest = answer_text(p->answer, "digest");
	char hex[SHA256_TEXT];

	buf_init(&p->bytes, PROPOSAL_RECORD_MAX);
	buf_init(&p->room, PROPOSAL_RECORD_MAX);
	if (base64_decode(text, &p->bytes) < 0)
		return contradicts(err, "the record is not in base 64");
	if (proposal_record_read(buf_view(&p->bytes), &p->room, &p->record, err) < 0)
		return err_context(err, "the daemon's answer");
	proposal_digest(buf_view(&p->bytes), p->digest);
	hex_encode(p->digest, SHA256_BYTES, hex);
	if (!view_is(digest, hex))
		return contradicts(err, "the digest is of other bytes");
	if (!view_is(p->record.proposal, p->id))
		return contradicts(err, "the record is of another proposal");
	return 0;
}

/* Without its operation an amount or a default cannot be told from the rest; the record itself can still be read. */
static void
show_bytes(struct proposal *p)
{
	buf_addf(&p->text,
		"The operation %.*s changed since this was proposed, so nobody can sign it any "
		"more. The bytes as they are:\n",
		VIEW_ARGS(p->record.action));
	display_escape(buf_view(&p->bytes), &p->text);
	buf_add_byte(&p->text, '\n');
}

int
proposal_get(struct cli *cli, const char *id, struct proposal *ret, struct err *err)
{
	auto_proposal struct proposal p = {0};
	char target[TARGET_BYTES];
	int r = request_check_id(id, ID_PROPOSAL, "proposal", err);

	if (r < 0)
		return r;
	(void)snprintf(p.id, sizeof(p.id), "%s", id);
	(void)snprintf(target, sizeof(target), "/v1/proposals/%s", id);
	r = client_get(&cli->client, view_str(target), &p.answer, err);
	if (r < 0)
		return r;
	p.has_record = answer_text(p.answer, "record").n != 0;
	if (p.has_record) {
		r = read_record(&p, err);
		if (r == 0)
			r = get_operation(cli, &p, err);
		buf_init(&p.text, DISPLAY_BYTES_MAX);
		if (r == 0 && p.changed)
			show_bytes(&p);
		else if (r == 0)
			r = display_render(buf_view(&p.bytes), &p.op, &p.text, err);
		if (r < 0)
			return r;
	}
	*ret = p;
	p = (struct proposal){0};
	return 0;
}

void
proposal_done(struct proposal *p)
{
	json_decref(p->answer);
	buf_done(&p->bytes);
	buf_done(&p->room);
	buf_done(&p->document);
	buf_done(&p->text);
	*p = (struct proposal){0};
}

/* Each line of it is marked, so that none can look like one of ours. */
static void
print_note(struct view note, FILE *out)
{
	struct view line;

	if (note.n == 0)
		return;
	(void)fprintf(out, "\nThe model's own words. Nobody checked them, they are not part of "
			   "what is signed:\n");
	while (take_until(&note, '\n', &line)) {
		auto_buf struct buf text = {.max = NOTE_BYTES};

		display_escape(line, &text);
		(void)fprintf(out, "    | %.*s\n", (int)text.n, (const char *)text.p);
	}
}

/* Who says what, by a signature that is verified here; whether that person may is the broker's to say. */
static void
print_decision(const struct proposal *p, const json_t *one, FILE *out)
{
	auto_buf struct buf record = {.max = DECISION_RECORD_MAX}, blob = {.max = SSHSIG_BYTES_MAX},
			    room = {.max = DECISION_RECORD_MAX}, reason = {.max = NOTE_BYTES};
	char key[SSHKEY_FINGERPRINT], at[CLOCK_TEXT];
	struct decision_record d;
	struct sshsig s;
	struct err err;

	if (base64_decode(answer_text(one, "decision"), &record) < 0 ||
		base64_decode(answer_text(one, "signature"), &blob) < 0 ||
		decision_record_read(buf_view(&record), &room, &d, &err) < 0 ||
		d.decided_ms > CLOCK_MS_MAX || sshsig_read(buf_view(&blob), &s, &err) < 0 ||
		sshsig_verify(&s, buf_view(&record), SSHSIG_NAMESPACE, false, &err) < 0) {
		(void)fprintf(out, "decided: a decision whose signature does not hold\n");
		return;
	}
	if (!p->has_record || memcmp(d.proposal, p->digest, SHA256_BYTES) != 0) {
		(void)fprintf(out, "decided: a decision that somebody signed about other bytes\n");
		return;
	}
	sshkey_fingerprint(s.key.blob, key);
	clock_text(d.decided_ms, at);
	display_escape(d.reason, &reason);
	(void)fprintf(out, "decided: %s in the name of %.*s with %s at %s%s%.*s\n",
		d.approve ? "approved" : "rejected", VIEW_ARGS(d.approver), key, at,
		reason.n == 0 ? "" : ": ", (int)reason.n, (const char *)reason.p);
}

static void
print_escaped(const char *name, struct view v, FILE *out)
{
	auto_buf struct buf text = {.max = NOTE_BYTES};

	if (v.n == 0)
		return;
	display_escape(v, &text);
	(void)fprintf(out, "%s: %.*s\n", name, (int)text.n, (const char *)text.p);
}

void
proposal_print_state(const json_t *answer, FILE *out)
{
	enum denial denial = DENIAL_NONE;

	print_escaped("state", answer_text(answer, "state"), out);
	if (denial_parse(answer_text(answer, "denial"), &denial) == 0 && denial != DENIAL_NONE)
		(void)fprintf(
			out, "denial: %s, %s\n", denial_text(denial), denial_sentence(denial));
	print_escaped("says", answer_text(answer, "text"), out);
	print_escaped("execution", answer_text(answer, "execution"), out);
	if (view_is(answer_text(answer, "state"), "unknown"))
		(void)fprintf(out, "next: demilune reconcile EXECUTION asks the provider\n");
}

/* What a lost answer would mean, before anybody signs. From the operation, when it is the one that the record was made with. */
static void
print_lost_answer(const struct proposal *p, FILE *out)
{
	static const char *const means[] = {
		[LOOKUP_NONE] = "nobody can ask the provider; it stays unknown until a person "
				"finds out and signs what it was",
		[LOOKUP_KEY] =
			"the provider is asked by its key; it is never sent again on suspicion",
		[LOOKUP_REFERENCE] = "the provider is asked where it told a reference, else a "
				     "person finds out and signs what it was",
	};

	if (!p->changed && memcmp(p->op.adapter, p->record.adapter, SHA256_BYTES) == 0)
		(void)fprintf(
			out, "if no answer comes: %s\n", means[p->op.provider.capability.lookup]);
}

void
proposal_print(const struct proposal *p, FILE *out)
{
	const json_t *decisions = json_object_get(p->answer, "decisions");
	char hex[SHA256_TEXT];

	(void)fwrite(p->text.p, 1, p->text.n, out);
	print_note(answer_text(p->answer, "note"), out);
	(void)fputc('\n', out);
	if (p->has_record) {
		hex_encode(p->digest, SHA256_BYTES, hex);
		(void)fprintf(out, "digest: %s\n", hex);
		print_lost_answer(p, out);
	}
	if (answer_bool(p->answer, "duplicate"))
		(void)fprintf(out,
			"duplicate: this was asked for before, and this is the earlier proposal\n");
	for (size_t i = 0; i < json_array_size(decisions); i++)
		print_decision(p, json_array_get(decisions, i), out);
	proposal_print_state(p->answer, out);
}

int
verb_proposal_show(struct cli *cli, struct err *err)
{
	auto_proposal struct proposal p = {0};
	int r = proposal_get(cli, cli->args.rest[0], &p, err);

	if (r < 0)
		return r;
	if (args_has(&cli->args, OPT_JSON))
		return answer_print(p.answer, err);
	proposal_print(&p, stdout);
	return answer_done(err);
}
