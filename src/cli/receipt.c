/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `demilune audit export`: all that there is of a task, for somebody who verifies it without us (`demilune audit verify FILE`): NDJSON with
 *
 *	{"export":"demilune-audit-v1","task":"tk_...","audit_key":"...","checkpoint":"..."}	signed head, first
 *	{"grant":{...}} {"proposal":{...}} {"execution":{...}}					as the API tells them
 *	{"number":...,"leaf":N,"proof":"...","record":{...}}					the record, with proofs
 *
 * Nothing is written before it was verified here too; a file that could not be finished is removed.
 */
#include "cli/answer.h"
#include "cli/proofs.h"
#include "cli/request.h"
#include "lib/audit/audit.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>

struct receipt {
	FILE *out;
	struct audit_chain chain;
	uint64_t grants, proposals, executions;
};

static int
put_json(struct receipt *r, json_t *owned, struct err *err)
{
	json_t *json auto_json = owned;

	if (json == NULL)
		return err_set(err, -ENOMEM, "no memory");
	if (json_dumpf(json, r->out, JSON_COMPACT) < 0 || fputc('\n', r->out) == EOF)
		return err_errno(err, "cannot write the export");
	return 0;
}

static int
put_head(struct receipt *r, const char *task, const struct head *h, struct err *err)
{
	char key[NOTE_KEY_TEXT];

	note_key_write(&h->key, key);
	return put_json(r,
		json_pack("{s:s,s:s,s:s,s:s%}", "export", "demilune-audit-v1", "task", task,
			"audit_key", key, "checkpoint", (const char *)h->note.p, h->note.n),
		err);
}

static int
put_list(struct receipt *r, struct client *c, const char *target, const char *name, uint64_t *ret_n,
	struct err *err)
{
	json_t *list auto_json = NULL;
	size_t i;
	json_t *item;
	int code = answer_pages(c, view_str(target), true, "id", &list, err);

	if (code < 0)
		return code;
	json_array_foreach(list, i, item)
	{
		code = put_json(r, json_pack("{s:O}", name, item), err);
		if (code < 0)
			return code;
	}
	*ret_n = json_array_size(list);
	return 0;
}

static int
put_evidence(struct receipt *r, struct client *c, const char *task, struct err *err)
{
	char grants[96], proposals[96], executions[96];
	int code;

	(void)snprintf(grants, sizeof(grants), "/v1/grants?task=%s", task);
	(void)snprintf(proposals, sizeof(proposals), "/v1/proposals?task=%s", task);
	(void)snprintf(executions, sizeof(executions), "/v1/executions?task=%s", task);
	code = put_list(r, c, grants, "grant", &r->grants, err);
	if (code == 0)
		code = put_list(r, c, proposals, "proposal", &r->proposals, err);
	return code == 0 ? put_list(r, c, executions, "execution", &r->executions, err) : code;
}

static int
take(void *arg, const struct export_line *l, struct view proof, struct err *err)
{
	struct receipt *r = arg;
	auto_buf struct buf line = {.max = 2 * LIMIT_LINE_BYTES};
	struct audit_row row = {.number = l->number, .record = l->record};

	memcpy(row.previous, l->previous, SHA256_BYTES);
	memcpy(row.digest, l->digest, SHA256_BYTES);
	if (audit_chain_add(&r->chain, &row, err) < 0)
		return err->code;
	export_write(l, proof, &line);
	if (buf_check(&line) < 0)
		return err_set(err, -ENOMEM, "no memory");
	return fwrite(line.p, 1, line.n, r->out) == line.n
		       ? 0
		       : err_errno(err, "cannot write the export");
}

/* The head comes behind what it is about: what is asked for first is in it. */
static int
write_all(struct cli *cli, struct receipt *r, const char *task, struct err *err)
{
	struct proofs p auto_proofs = {.cli = cli, .task = task, .take = take, .arg = r};
	auto_head struct head h;
	int code;

	head_init(&h);
	proofs_init(&p);
	p.head = &h;
	code = head_fetch(cli, &h, err);
	if (code == 0)
		code = head_continues(cli, &cli->args, &h, err);
	if (code == 0)
		code = put_head(r, task, &h, err);
	if (code == 0)
		code = put_evidence(r, &cli->client, task, err);
	if (code == 0)
		code = proofs_read(&p, err);
	if (code == 0 && fflush(r->out) != 0)
		code = err_errno(err, "cannot write the export");
	if (code == 0)
		(void)fprintf(stderr,
			"%" PRIu64 " records in a signed log of %" PRIu64 ", %" PRIu64
			" grants, %" PRIu64 " proposals, %" PRIu64 " executions\n",
			r->chain.number, h.size, r->grants, r->proposals, r->executions);
	return code;
}

int
verb_audit_export(struct cli *cli, struct err *err)
{
	const char *path = args_text(&cli->args, OPT_OUT);
	struct receipt r = {.out = stdout};
	char task[ID_TEXT];
	int code = request_record_id(cli, cli->args.rest[0], task, err);

	if (code < 0)
		return code;
	if (path != NULL) {
		int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY, 0600);

		r.out = fd < 0 ? NULL : fdopen(fd, "w");
		if (r.out == NULL && errno == EEXIST)
			return err_set(err, -EEXIST,
				"%.120s is there already; --out makes a new file", path);
		if (r.out == NULL)
			return err_errno(err, "%.120s", path);
	}
	code = write_all(cli, &r, task, err);
	if (path == NULL)
		return code < 0 ? code : answer_done(err);
	if (fsync(fileno(r.out)) < 0 && code == 0)
		code = err_errno(err, "%.120s", path);
	(void)fclose(r.out); /* all of it is on disk, or it is removed */
	if (code < 0)
		(void)unlink(path);
	return code;
}
