/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `demilune audit verify`: recomputes the chain of a task. From the daemon, or offline from a file that `audit --json`
 * wrote ("-": standard input). A file cannot show that its last records were cut off, so the head is told to be compared;
 * from the daemon the number of records must be what the task says.
 */
#include "cli/answer.h"
#include "cli/export.h"
#include "cli/lines.h"
#include "cli/request.h"
#include "cli/safe.h"
#include "lib/audit/audit.h"
#include "lib/base/hex.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>

static int
take_line(struct audit_chain *chain, struct view line, struct err *err)
{
	struct export_line l;
	struct audit_row row;
	int r = export_read(line, &l, err);

	if (r < 0)
		return err_context(err, "behind record %" PRIu64, chain->number);
	row = (struct audit_row){.number = l.number, .record = l.record};
	memcpy(row.previous, l.previous, sizeof(row.previous));
	memcpy(row.digest, l.digest, sizeof(row.digest));
	return audit_chain_add(chain, &row, err);
}

static int
take_piece(struct audit_chain *chain, struct lines *lines, struct view piece, struct err *err)
{
	struct view line;
	int r;

	while ((r = lines_next(lines, &piece, &line, err)) == 1) {
		r = take_line(chain, line, err);
		if (r < 0)
			return r;
	}
	return r;
}

static int
verify_file(int fd, struct audit_chain *chain, struct err *err)
{
	auto_lines struct lines lines;
	uint8_t room[8192];
	ssize_t n;

	lines_init(&lines, LIMIT_LINE_BYTES);
	while ((n = read(fd, room, sizeof(room))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_errno(err, "cannot read");
		if (take_piece(chain, &lines, view_of(room, (size_t)n), err) < 0)
			return err->code;
	}
	return lines_end(&lines, err);
}

static int
verify_answer(struct client *c, const char *task, struct audit_chain *chain, struct err *err)
{
	auto_exchange struct exchange x = {0};
	auto_lines struct lines lines;
	struct view piece;
	int r;

	lines_init(&lines, LIMIT_LINE_BYTES);
	r = request_export(c, task, &x, err);
	while (r == 0 && (r = exchange_next(&x, &piece, err)) == 1)
		r = take_piece(chain, &lines, piece, err);
	return r < 0 ? r : lines_end(&lines, err);
}

/* The task is asked first, so that records that come meanwhile are no fault. */
static int
verify_daemon(struct cli *cli, const char *name, struct audit_chain *chain, struct err *err)
{
	struct client *c = &cli->client;
	json_t *task auto_json = NULL;
	char text[ID_TEXT], target[128];
	int64_t records;
	int r = request_record_id(cli, name, text, err);

	if (r < 0)
		return r;
	(void)snprintf(target, sizeof(target), "/v1/tasks/%s", text);
	r = client_get(c, view_str(target), &task, err);
	if (r == 0)
		r = verify_answer(c, text, chain, err);
	if (r < 0)
		return r;
	records = answer_int(task, "records", -1);
	if (records < 0 || chain->number < (uint64_t)records)
		return err_set(err, -EBADMSG,
			"the task has %" PRId64 " records, but only %" PRIu64 " came", records,
			chain->number);
	if (chain->number != 0 && strcmp(chain->task, text) != 0)
		return err_set(err, -EBADMSG, "the records are of the task %s", chain->task);
	return 0;
}

static int
print_whole(const struct audit_chain *chain, struct err *err)
{
	char head[SHA256_TEXT];
	auto_buf struct buf task;

	if (chain->number == 0)
		return err_set(err, -EBADMSG, "there are no records");
	hex_encode(chain->head, SHA256_BYTES, head);
	buf_init(&task, 1024);
	safe_add(&task, view_str(chain->task), 0); /* of a file that may be anybody's */
	(void)printf("%.*s: %" PRIu64 " records, each follows the one before; head sha256:%s\n",
		VIEW_ARGS(buf_view(&task)), chain->number, head);
	return answer_done(err);
}

int
verb_audit_verify(struct cli *cli, struct err *err)
{
	const char *name = cli->args.rest[0];
	bool is_stdin = strcmp(name, "-") == 0;
	struct audit_chain chain = {0};
	int r;

	if (is_stdin || access(name, F_OK) == 0 || strchr(name, '/') != NULL) {
		int fd auto_fd = is_stdin ? dup(STDIN_FILENO)
					  : open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY);

		r = fd < 0 ? err_errno(err, "%.120s", name) : verify_file(fd, &chain, err);
	} else {
		r = verify_daemon(cli, name, &chain, err);
	}
	return r < 0 ? r : print_whole(&chain, err);
}
