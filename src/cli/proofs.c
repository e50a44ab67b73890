/* SPDX-License-Identifier: Apache-2.0 */
/* See proofs.h. */
#include "cli/proofs.h"

#include "cli/answer.h"
#include "cli/lines.h"
#include "cli/request.h"

#include <errno.h>
#include <inttypes.h>

void
proofs_init(struct proofs *p)
{
	buf_init(&p->text, (size_t)PROOFS_LINES * LIMIT_LINE_BYTES);
	p->n = 0;
	p->beyond = 0;
}

void
proofs_done(struct proofs *p)
{
	buf_done(&p->text);
}

static int
ask(struct proofs *p, json_t **ret, struct err *err)
{
	auto_buf struct buf target = {.max = 8192};
	size_t at = 0;

	buf_addf(
		&target, "/v1/audit/%s/inclusion?size=%" PRIu64 "&leaves=", p->task, p->head->size);
	for (size_t i = 0; i < p->n; at = p->end[i++]) {
		struct export_line l;

		if (export_read(view_of(p->text.p + at, p->end[i] - at), &l, err) < 0)
			return err->code;
		buf_addf(&target, "%s%" PRIu64, i == 0 ? "" : ",", l.leaf);
	}
	if (buf_check(&target) < 0)
		return err_set(err, -ENOMEM, "no memory");
	return client_get(&p->cli->client, buf_view(&target), ret, err);
}

static int
take(struct proofs *p, struct view line, const json_t *item, struct err *err)
{
	auto_buf struct buf proof = {.max = MERKLE_PROOF_MAX * SHA256_BYTES};
	struct export_line l;
	struct merkle_hash leaf;
	int r = export_read(line, &l, err);

	if (r == 0)
		r = head_hashes(answer_at(item, "hashes"), &proof, err);
	if (r < 0)
		return r;
	leaf = merkle_leaf(view_of(l.digest, SHA256_BYTES));
	if (!merkle_inclusion_ok(&leaf, l.leaf, p->head->size, buf_view(&proof), &p->head->root))
		return err_set(err, -EBADMSG,
			"record %" PRIu64 " is not in the log that was signed", l.number);
	return p->take(p->arg, &l, buf_view(&proof), err);
}

int
proofs_flush(struct proofs *p, struct err *err)
{
	json_t *answer auto_json = NULL;
	const json_t *items;
	size_t at = 0;
	int r;

	if (p->n == 0)
		return 0;
	r = ask(p, &answer, err);
	if (r < 0)
		return r;
	items = answer_at(answer, "items");
	if (json_array_size(items) != p->n)
		return err_set(err, -EBADMSG, "the daemon gives proofs of other records");
	for (size_t i = 0; r == 0 && i < p->n; at = p->end[i++])
		r = take(p, view_of(p->text.p + at, p->end[i] - at), json_array_get(items, i), err);
	p->n = 0;
	buf_clear(&p->text);
	return r;
}

int
proofs_add(struct proofs *p, struct view line, struct err *err)
{
	struct export_line l;
	int r = export_read(line, &l, err);

	if (r < 0)
		return r;
	if (l.leaf >= p->head->size) {
		p->beyond++;
		return 0;
	}
	if (p->beyond > 0)
		return err_set(err, -EBADMSG, "record %" PRIu64 " is not in the order of the log",
			l.number);
	buf_add_view(&p->text, line);
	if (buf_check(&p->text) < 0)
		return err_set(err, -ENOMEM, "no memory");
	p->end[p->n++] = p->text.n;
	return p->n == PROOFS_LINES ? proofs_flush(p, err) : 0;
}

int
proofs_read(struct proofs *p, struct err *err)
{
	auto_exchange struct exchange x = {0};
	auto_lines struct lines lines;
	struct view piece, line;
	int r;

	lines_init(&lines, LIMIT_LINE_BYTES);
	r = request_export(&p->cli->client, p->task, &x, err);
	while (r == 0 && (r = exchange_next(&x, &piece, err)) == 1) {
		while ((r = lines_next(&lines, &piece, &line, err)) == 1) {
			r = proofs_add(p, line, err);
			if (r < 0)
				return r;
		}
	}
	if (r == 0)
		r = lines_end(&lines, err);
	return r < 0 ? r : proofs_flush(p, err);
}
