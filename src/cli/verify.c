/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `demilune audit verify`: recomputes the chain of a task, that each record is in the log that was signed, and that this log continues a
 * checkpoint that the person holds. From the daemon, or offline from a file that `audit export` or `audit --json` wrote ("-": standard input);
 * the latter has no proofs, so only the chain is shown. A file cannot show that its last records were cut off, so the head is told to be
 * compared; from the daemon the number of records must be what the task says.
 */
#include "cli/answer.h"
#include "cli/lines.h"
#include "cli/proofs.h"
#include "cli/request.h"
#include "cli/safe.h"
#include "lib/action/record.h"
#include "lib/audit/audit.h"
#include "lib/base/base64.h"
#include "lib/base/hex.h"
#include "lib/json/fields.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>

struct check {
	struct cli *cli;
	struct audit_chain chain;
	struct head head;
	struct merkle_path *path; /* owned: of the record before */
	bool signed_log;          /* there is a head, and each record was found in its log */
	json_t *proposals; /* owned: digests of those that the file has, which no record named yet */
	json_t *executions; /* owned: id and state of those that the file has */
	json_t *recorded;   /* owned: the same as the records that were read have them */
	uint64_t evidence;  /* lines beside the record */
};

static int
check_chain(struct check *c, const struct export_line *l, struct err *err)
{
	struct audit_row row = {.number = l->number, .record = l->record};

	memcpy(row.previous, l->previous, sizeof(row.previous));
	memcpy(row.digest, l->digest, sizeof(row.digest));
	return audit_chain_add(&c->chain, &row, err);
}

/* ---- a file ---- */

static int
check_proof(struct check *c, const struct export_line *l, struct err *err)
{
	auto_buf struct buf proof = {.max = MERKLE_PROOF_MAX * SHA256_BYTES};
	struct merkle_hash leaf = merkle_leaf(view_of(l->digest, SHA256_BYTES));
	uint8_t *room = buf_room(&proof, l->proof.n / 2 + 1);

	if (l->proof.p == NULL)
		return err_set(err, -EBADMSG, "record %" PRIu64 " has no proof", l->number);
	if (room == NULL || hex_decode(l->proof, room, l->proof.n / 2) < 0)
		return err_set(
			err, -EBADMSG, "the proof of record %" PRIu64 " is too long", l->number);
	buf_grew(&proof, l->proof.n / 2);
	if (!merkle_inclusion_next(
		    c->path, &leaf, l->leaf, c->head.size, buf_view(&proof), &c->head.root))
		return err_set(err, -EBADMSG,
			"record %" PRIu64 " is not in the log that was signed", l->number);
	return 0;
}

/* A proposal is one of the task when a record that was proved names its digest. */
static int
tick_proposals(struct check *c, struct view record, struct err *err)
{
	void *next;
	json_t *value;
	const char *digest;

	(void)err;
	if (json_object_size(c->proposals) == 0 ||
		memmem(record.p, record.n, "\"event\":\"proposal.", 18) == NULL)
		return 0;
	json_object_foreach_safe(c->proposals, next, digest, value)
	{
		if (memmem(record.p, record.n, digest, strlen(digest)) != NULL)
			(void)json_object_del(c->proposals, digest);
	}
	return 0;
}

/* What a person approved are the bytes of `record`; the digest is over them. */
static int
add_proposal(struct check *c, const json_t *proposal, struct err *err)
{
	auto_buf struct buf record = {.max = PROPOSAL_RECORD_MAX};
	uint8_t digest[SHA256_BYTES];
	char text[SHA256_TEXT];

	if (answer_text(proposal, "record").n == 0)
		return 0; /* it was refused before it became one */
	if (base64_decode(answer_text(proposal, "record"), &record) < 0)
		return err_set(err, -EBADMSG, "the bytes of a proposal are no base64");
	proposal_digest(buf_view(&record), digest);
	hex_encode(digest, SHA256_BYTES, text);
	if (!view_is(answer_text(proposal, "digest"), text))
		return err_set(err, -EBADMSG, "the bytes of proposal %.40s do not have its digest",
			(const char *)answer_text(proposal, "id").p);
	return json_object_set_new(c->proposals, text, json_true()) < 0
		       ? err_set(err, -ENOMEM, "no memory")
		       : 0;
}

static int
parse(struct view text, json_t **ret, struct err *err)
{
	static const struct json_limits limits = {
		.max_bytes = LIMIT_LINE_BYTES, .max_depth = LIMIT_DEPTH, .nul_ok = true};

	return json_parse(text, &limits, ret, err);
}

/* ---- executions: what the file says became of them, and what the record says ---- */

static int
note_state(json_t *states, struct view id, struct view state, struct err *err)
{
	return json_object_setn_new(states, (const char *)id.p, id.n,
		       json_stringn((const char *)state.p, state.n)) < 0
		       ? err_set(err, -ENOMEM, "no memory")
		       : 0;
}

static int
add_execution(struct check *c, const json_t *execution, struct err *err)
{
	struct view id = answer_text(execution, "id"), state = answer_text(execution, "state");

	if (id.n == 0 || state.n == 0)
		return err_set(err, -EBADMSG, "an execution of this file has no id or no state");
	return note_state(c->executions, id, state, err);
}

/* The state that an event of an execution leaves it in. */
static struct view
state_after(const json_t *record)
{
	struct view event = answer_text(record, "event");

	if (view_is(event, "execution.dispatching"))
		return view_str(execution_state_text(EXECUTION_STATE_DISPATCHING));
	if (view_is(event, "execution.settled"))
		return view_str(execution_state_text(EXECUTION_STATE_MANUAL));
	return answer_text(answer_at(record, "data"), "state");
}

static int
follow_executions(struct check *c, struct view record, struct err *err)
{
	json_t *json auto_json = NULL;
	struct view id, state;
	int r;

	if (!c->signed_log || memmem(record.p, record.n, "\"event\":\"execution.", 19) == NULL)
		return 0;
	r = parse(record, &json, err);
	if (r < 0)
		return r;
	id = answer_text(answer_at(json, "data"), "execution");
	state = state_after(json);
	if (id.n == 0 || state.n == 0)
		return 0; /* an event that says nothing of its state */
	return note_state(c->recorded, id, state, err);
}

/* What is open in the record may have ended since the log was signed; what ended there stays as it ended. */
static bool
is_open(const char *state)
{
	return strcmp(state, execution_state_text(EXECUTION_STATE_DISPATCHING)) == 0 ||
	       strcmp(state, execution_state_text(EXECUTION_STATE_UNKNOWN)) == 0;
}

static int
compare_executions(const struct check *c, struct err *err)
{
	const char *id;
	json_t *state;

	json_object_foreach(c->recorded, id, state)
	{
		const char *told = json_string_value(json_object_get(c->executions, id));

		if (told == NULL)
			return err_set(err, -EBADMSG,
				"the record has execution %.40s, this file does not", id);
		if (!is_open(json_string_value(state)) &&
			strcmp(told, json_string_value(state)) != 0)
			return err_set(err, -EBADMSG,
				"execution %.40s is %.20s in this file, and %.20s in the record",
				id, told, json_string_value(state));
	}
	json_object_foreach(c->executions, id, state)
	{
		if (json_object_get(c->recorded, id) == NULL)
			return err_set(
				err, -EBADMSG, "execution %.40s is in no record of this file", id);
	}
	return 0;
}

static int
take_other(struct check *c, struct view line, struct err *err)
{
	json_t *json auto_json = NULL;
	int r = parse(line, &json, err);

	if (r < 0)
		return r;
	if (view_is(answer_text(json, "export"), "demilune-audit-v1") && !c->signed_log &&
		c->chain.number == 0) {
		r = head_read(&c->head, &c->cli->args, answer_text(json, "audit_key"),
			answer_text(json, "checkpoint"), err);
		c->signed_log = r == 0;
		return r;
	}
	if (!c->signed_log || json_object_size(json) != 1)
		return err_set(err, -EBADMSG, "this is not a line of an audit export");
	c->evidence++;
	if (answer_at(json, "execution") != NULL)
		return add_execution(c, answer_at(json, "execution"), err);
	return answer_at(json, "proposal") == NULL
		       ? 0
		       : add_proposal(c, answer_at(json, "proposal"), err);
}

static int
take_line(struct check *c, struct view line, struct err *err)
{
	struct export_line l;
	int r;

	if (!view_starts(line, "{\"number\":") &&
		(view_starts(line, "{\"export\":") || c->signed_log))
		return take_other(c, line, err);
	r = export_read(line, &l, err);
	if (r < 0)
		return err_context(err, "behind record %" PRIu64, c->chain.number);
	r = check_chain(c, &l, err);
	if (r == 0 && c->signed_log)
		r = check_proof(c, &l, err);
	if (r == 0)
		r = follow_executions(c, l.record, err);
	return r == 0 ? tick_proposals(c, l.record, err) : r;
}

static int
read_file(int fd, struct check *c, struct err *err)
{
	auto_lines struct lines lines;
	uint8_t room[8192];
	struct view line;
	ssize_t n;
	int r;

	lines_init(&lines, LIMIT_LINE_BYTES);
	while ((n = read(fd, room, sizeof(room))) != 0) {
		struct view piece = view_of(room, n < 0 ? 0 : (size_t)n);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_errno(err, "cannot read");
		while ((r = lines_next(&lines, &piece, &line, err)) == 1) {
			r = take_line(c, line, err);
			if (r < 0)
				return r;
		}
		if (r < 0)
			return r;
	}
	return lines_end(&lines, err);
}

static int
verify_file(int fd, struct check *c, struct err *err)
{
	int r = read_file(fd, c, err);
	const char *digest = NULL;
	json_t *value;

	if (r < 0)
		return r;
	json_object_foreach(c->proposals, digest, value)
	{
		return err_set(err, -EBADMSG, "the proposal with the digest %.64s is in no record",
			digest);
	}
	r = compare_executions(c, err);
	if (r < 0)
		return r;
	if (!c->signed_log &&
		(args_has(&c->cli->args, OPT_KEY) || args_has(&c->cli->args, OPT_CHECKPOINT)))
		return err_set(err, -EBADMSG,
			"there is no signed checkpoint in this file: make it with `demilune audit "
			"export`");
	return c->signed_log ? head_continues(NULL, &c->cli->args, &c->head, err) : 0;
}

/* ---- the daemon ---- */

static int
take_proved(void *arg, const struct export_line *l, struct view proof, struct err *err)
{
	(void)proof;
	return check_chain(arg, l, err);
}

/* The task is asked first, so that records that come meanwhile are no fault. */
static int
verify_daemon(struct check *c, const char *name, struct err *err)
{
	struct cli *cli = c->cli;
	json_t *task auto_json = NULL;
	char text[ID_TEXT], target[128];
	struct proofs p auto_proofs = {
		.cli = cli, .task = text, .head = &c->head, .take = take_proved, .arg = c};
	int64_t records;
	int r = request_record_id(cli, name, text, err);

	proofs_init(&p);
	if (r < 0)
		return r;
	(void)snprintf(target, sizeof(target), "/v1/tasks/%s", text);
	r = client_get(&cli->client, view_str(target), &task, err);
	if (r == 0)
		r = head_fetch(cli, &c->head, err);
	if (r == 0)
		r = head_continues(cli, &cli->args, &c->head, err);
	if (r == 0)
		r = proofs_read(&p, err);
	if (r < 0)
		return r;
	c->signed_log = true;
	records = answer_int(task, "records", -1);
	if (records < 0 || c->chain.number < (uint64_t)records)
		return err_set(err, -EBADMSG,
			"the task has %" PRId64 " records, but only %" PRIu64 " came", records,
			c->chain.number);
	if (c->chain.number != 0 && strcmp(c->chain.task, text) != 0)
		return err_set(err, -EBADMSG, "the records are of the task %s", c->chain.task);
	return 0;
}

static int
print_whole(const struct check *c, struct err *err)
{
	char head[SHA256_TEXT];
	auto_buf struct buf task;

	if (c->chain.number == 0)
		return err_set(err, -EBADMSG, "there are no records");
	hex_encode(c->chain.head, SHA256_BYTES, head);
	buf_init(&task, 1024);
	safe_add(&task, view_str(c->chain.task), 0); /* of a file that may be anybody's */
	(void)printf("%.*s: %" PRIu64 " records, each follows the one before; head sha256:%s\n",
		VIEW_ARGS(buf_view(&task)), c->chain.number, head);
	if (c->signed_log)
		(void)printf("all in the log %s of %" PRIu64 " records, signed by %s+%08" PRIx32
			     "%s\n",
			c->head.origin, c->head.size, c->head.key.name, c->head.key.hash,
			c->head.key_held ? ""
					 : " (a key that came along: hold it elsewhere and give it "
					   "with --key)");
	if (c->evidence > 0)
		(void)printf("beside it %" PRIu64 " grants, proposals and executions as the daemon "
			     "told them: the bytes of proposals and what "
			     "became of executions are in the record; for the rest, believe the "
			     "record\n",
			c->evidence);
	if (c->signed_log && args_has(&c->cli->args, OPT_CHECKPOINT))
		(void)printf("the log continues the checkpoint in %s\n",
			args_text(&c->cli->args, OPT_CHECKPOINT));
	return answer_done(err);
}

static int
verify(struct check *c, const char *name, struct err *err)
{
	bool is_stdin = strcmp(name, "-") == 0;

	if (is_stdin || access(name, F_OK) == 0 || strchr(name, '/') != NULL) {
		int fd auto_fd = is_stdin ? dup(STDIN_FILENO)
					  : open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY);

		return fd < 0 ? err_errno(err, "%.120s", name) : verify_file(fd, c, err);
	}
	return verify_daemon(c, name, err);
}

int
verb_audit_verify(struct cli *cli, struct err *err)
{
	struct check c = {.cli = cli,
		.path = calloc(1, sizeof(*c.path)),
		.proposals = json_object(),
		.executions = json_object(),
		.recorded = json_object()};
	int r;

	head_init(&c.head);
	r = c.proposals == NULL || c.executions == NULL || c.recorded == NULL || c.path == NULL
		    ? err_set(err, -ENOMEM, "no memory")
		    : verify(&c, cli->args.rest[0], err);
	if (r == 0)
		r = print_whole(&c, err);
	head_done(&c.head);
	json_decref(c.proposals);
	json_decref(c.executions);
	json_decref(c.recorded);
	free(c.path);
	return r;
}
